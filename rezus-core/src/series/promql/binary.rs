//! Operators with a vector on at least one side.

use std::collections::HashMap;

use super::EvaluateError;
use super::columns::{Budget, Row, merged, of, without, without_name};
use super::node::{Many, Matching, On, Operator, SetOperator};
use super::number::apply;
use crate::series::{Labels, NAME};

/// Applies an operator to each value and the scalar of its step.
pub(super) fn with_scalar(
    operator: Operator,
    rows: Vec<Row>,
    scalar: &[f64],
    is_swapped: bool,
    is_bool: bool,
) -> Result<Vec<Row>, EvaluateError> {
    let value = |value: f64, scalar: f64| {
        let (left, right) = if is_swapped { (scalar, value) } else { (value, scalar) };
        let result = apply(operator, left, right);
        match (operator.compares(), is_bool) {
            (true, true) => Some(truth(result.is_some())),
            // What is kept is the element, on whichever side it stands.
            (true, false) => result.map(|_| value),
            (false, _) => result,
        }
    };
    let drops_name = operator.drops_name() || is_bool;
    let mapped = rows.into_iter().map(|row| Row {
        labels: if drops_name { without_name(&row.labels) } else { row.labels },
        cells: row.cells.iter().zip(scalar).map(|(cell, scalar)| value((*cell)?, *scalar)).collect(),
    });
    merged(mapped.collect())
}

fn truth(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

/// Returns the labels by which an element matches others.
fn signature(on: &On, labels: &Labels) -> Labels {
    match on {
        On::These(names) => of(labels.iter().filter(|(name, _)| names.iter().any(|own| own == name))),
        On::AllBut(names) => without(labels, |name| name == NAME || names.iter().any(|own| own == name)),
    }
}

/// Rows by their signatures.
fn by_signature(on: &On, rows: &[Row]) -> HashMap<Labels, Vec<usize>> {
    let mut groups: HashMap<Labels, Vec<usize>> = HashMap::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        groups.entry(signature(on, &row.labels)).or_default().push(place);
    }
    groups
}

/// Tells for each step whether there is a value at all.
fn any(rows: &[Row], steps: usize) -> Vec<bool> {
    let mut any = vec![false; steps];
    for row in rows {
        any.iter_mut().zip(&row.cells).for_each(|(any, cell)| *any |= cell.is_some());
    }
    any
}

/// Applies an operator to elements that match.
pub(super) fn matched(
    operator: Operator,
    (left, right): (Vec<Row>, Vec<Row>),
    matching: &Matching,
    is_bool: bool,
    steps: usize,
    budget: &mut Budget<'_>,
) -> Result<Vec<Row>, EvaluateError> {
    let is_swapped = matches!(matching.many, Many::Right(_));
    let (many, ones) = if is_swapped { (right, left) } else { (left, right) };
    let groups = by_signature(&matching.on, &ones);
    unique(&groups, &ones, &any(&many, steps), is_swapped, budget)?;
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut made: Vec<Row> = Vec::new();
    for row in &many {
        let Some(group) = groups.get(&signature(&matching.on, &row.labels)) else { continue };
        budget.room(made.len() + 1, steps)?;
        budget.work(steps.saturating_mul(group.len()))?;
        // Which of the group it was last, and where what comes of that is put.
        let mut last: Option<(usize, usize)> = None;
        for step in 0..steps {
            let Some(value) = row.at(step) else { continue };
            let present = group.iter().find_map(|one| Some((*one, ones.get(*one)?.at(step)?)));
            let Some((one, other)) = present else { continue };
            let (a, b) = if is_swapped { (other, value) } else { (value, other) };
            let result = apply(operator, a, b);
            let result = if is_bool { Some(truth(result.is_some())) } else { result };
            let Some(result) = result else { continue };
            let place = match last {
                Some((known, place)) if known == one => place,
                _ => {
                    let one = ones.get(one).map_or(&row.labels, |one| &one.labels);
                    let labels = result_labels(operator, is_bool, matching, &row.labels, one);
                    *places.entry(labels.clone()).or_insert_with(|| {
                        made.push(Row { labels, cells: vec![None; steps] });
                        made.len() - 1
                    })
                }
            };
            last = Some((one, place));
            let cell = made.get_mut(place).and_then(|row| row.cells.get_mut(step));
            match cell {
                Some(cell @ None) => *cell = Some(result),
                _ if matching.many == Many::Neither => return Err(EvaluateError::ManyOnTheLeft),
                _ => return Err(EvaluateError::ManyAlike),
            }
        }
    }
    Ok(made)
}

/// Fails where several elements of the side that has one each match at a step.
fn unique(
    groups: &HashMap<Labels, Vec<usize>>,
    ones: &[Row],
    is_asked: &[bool],
    is_left: bool,
    budget: &mut Budget<'_>,
) -> Result<(), EvaluateError> {
    for (signature, group) in groups.iter().filter(|(_, group)| group.len() > 1) {
        budget.work(is_asked.len().saturating_mul(group.len()))?;
        for (step, _) in is_asked.iter().enumerate().filter(|(_, is_asked)| **is_asked) {
            let mut present =
                group.iter().filter_map(|one| ones.get(*one)).filter(|one| one.at(step).is_some());
            if let (Some(first), Some(second)) = (present.next(), present.next()) {
                return Err(EvaluateError::ManyAtOnce {
                    group: signature.to_string(),
                    side: if is_left { "left" } else { "right" },
                    first: first.labels.to_string(),
                    second: second.labels.to_string(),
                });
            }
        }
    }
    Ok(())
}

/// Returns the labels of what comes of an element and the one that it matches.
fn result_labels(
    operator: Operator,
    is_bool: bool,
    matching: &Matching,
    many: &Labels,
    one: &Labels,
) -> Labels {
    let drops_name = operator.drops_name() || is_bool;
    let is_kept = |name: &str| {
        let is_fit = match (&matching.many, &matching.on) {
            (Many::Left(included) | Many::Right(included), _) => !included.iter().any(|own| own == name),
            (Many::Neither, On::These(names)) => names.iter().any(|own| own == name),
            (Many::Neither, On::AllBut(names)) => !names.iter().any(|own| own == name),
        };
        is_fit && !(drops_name && name == NAME)
    };
    let own = many.iter().filter(|(name, _)| is_kept(name));
    let included = match &matching.many {
        Many::Left(names) | Many::Right(names) => names.as_slice(),
        Many::Neither => &[],
    };
    of(own.chain(one.iter().filter(|(name, _)| included.iter().any(|own| own == name))))
}

/// Joins two sets of elements.
pub(super) fn set(
    operator: SetOperator,
    (left, right): (Vec<Row>, Vec<Row>),
    on: &On,
    steps: usize,
    budget: &mut Budget<'_>,
) -> Result<Vec<Row>, EvaluateError> {
    let (kept, other) = match operator {
        SetOperator::And | SetOperator::Unless => (left, right),
        SetOperator::Or => (right, left),
    };
    let groups = by_signature(on, &other);
    let mut kept = kept;
    for row in &mut kept {
        let group: Vec<&Row> = match groups.get(&signature(on, &row.labels)) {
            Some(group) => group.iter().filter_map(|place| other.get(*place)).collect(),
            None => Vec::new(),
        };
        budget.work(steps.saturating_mul(group.len() + 1))?;
        for step in 0..steps {
            let is_matched = group.iter().any(|row| row.at(step).is_some());
            if is_matched != (operator == SetOperator::And)
                && let Some(cell) = row.cells.get_mut(step)
            {
                *cell = None;
            }
        }
    }
    kept.retain(|row| !row.is_empty());
    match operator {
        SetOperator::And | SetOperator::Unless => merged(kept),
        SetOperator::Or => merged(other.into_iter().chain(kept).collect()),
    }
}
