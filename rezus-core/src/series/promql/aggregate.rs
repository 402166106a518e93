//! What is made of the elements of a group.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::EvaluateError;
use super::columns::{Budget, Row, of, without};
use super::node::{Aggregation, Grouping};
use super::number::{count, quantile, stays_infinite};
use crate::series::{Labels, NAME};

/// Returns the labels that a group is told apart by.
fn group_of(grouping: &Grouping, labels: &Labels) -> Labels {
    match grouping {
        Grouping::By(names) => of(labels.iter().filter(|(name, _)| names.iter().any(|own| own == name))),
        Grouping::Without(names) => {
            without(labels, |name| name == NAME || names.iter().any(|own| own == name))
        }
    }
}

/// Aggregates rows; `parameters` has one for each step where the aggregation takes one.
pub(super) fn aggregate(
    by: Aggregation,
    grouping: &Grouping,
    parameters: &[f64],
    rows: Vec<Row>,
    steps: usize,
    budget: &mut Budget<'_>,
) -> Result<Vec<Row>, EvaluateError> {
    let mut places: HashMap<Labels, usize> = HashMap::new();
    let mut groups: Vec<(Labels, Vec<Row>)> = Vec::new();
    for row in rows {
        let labels = group_of(grouping, &row.labels);
        let place = *places.entry(labels.clone()).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, members)) => members.push(row),
            None => groups.push((labels, vec![row])),
        }
    }
    if matches!(by, Aggregation::Top | Aggregation::Bottom) {
        if let Some(places) = parameters.iter().find(|places| !is_whole(**places)) {
            return Err(EvaluateError::NoCount { value: places.to_string() });
        }
        let mut kept = Vec::new();
        for (_, members) in groups {
            budget.room(members.len(), steps)?;
            kept.extend(extremes(by == Aggregation::Top, parameters, members, steps));
        }
        return Ok(kept);
    }
    budget.room(groups.len(), steps)?;
    let mut made = Vec::with_capacity(groups.len());
    let mut values = Vec::new();
    for (labels, members) in groups {
        let mut cells = Vec::with_capacity(steps);
        for step in 0..steps {
            budget.work(members.len())?;
            values.clear();
            values.extend(members.iter().filter_map(|row| row.at(step)));
            let parameter = parameters.get(step).copied().unwrap_or(f64::NAN);
            cells.push(one(by, parameter, &mut values));
        }
        made.push(Row { labels, cells });
    }
    Ok(made)
}

/// Whether a number, its fraction cut off, is one of 64 bits.
fn is_whole(number: f64) -> bool {
    (-9.223_372_036_854_775e18..9.223_372_036_854_775e18).contains(&number)
}

/// What the values of a group at a step come to.
fn one(by: Aggregation, parameter: f64, values: &mut [f64]) -> Option<f64> {
    let first = *values.first()?;
    Some(match by {
        Aggregation::Sum => values.iter().sum(),
        Aggregation::Average => average(values),
        Aggregation::Least => pick(first, values, |value, so_far| value < so_far),
        Aggregation::Most => pick(first, values, |value, so_far| value > so_far),
        Aggregation::Count => count(values.len()),
        Aggregation::Group => 1.0,
        Aggregation::Deviation => variance(values).sqrt(),
        Aggregation::Variance => variance(values),
        Aggregation::Quantile => quantile(parameter, values),
        // These keep elements as they are.
        Aggregation::Top | Aggregation::Bottom => return None,
    })
}

fn pick(first: f64, values: &[f64], is_beyond: impl Fn(f64, f64) -> bool) -> f64 {
    let step = |so_far: f64, value: &f64| {
        if is_beyond(*value, so_far) || so_far.is_nan() { *value } else { so_far }
    };
    values.iter().fold(first, step)
}

fn average(values: &[f64]) -> f64 {
    let (mut mean, mut seen) = (0.0, 0.0);
    for value in values {
        seen += 1.0;
        if !stays_infinite(mean, *value) {
            mean += value / seen - mean / seen;
        }
    }
    mean
}

/// As Prometheus has it, the first value is no distance from itself, even where it is infinite or no number.
fn variance(values: &[f64]) -> f64 {
    let [first, others @ ..] = values else { return f64::NAN };
    let (mut mean, mut squares, mut seen) = (*first, 0.0, 1.0);
    for value in others {
        seen += 1.0;
        let distance = value - mean;
        mean += distance / seen;
        squares += distance * (value - mean);
    }
    squares / seen
}

/// Which of two values is shown first: what is no number comes last either way.
pub(super) fn rank(is_falling: bool, a: f64, b: f64) -> Ordering {
    let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    a.is_nan().cmp(&b.is_nan()).then(if is_falling { order.reverse() } else { order })
}

/// The greatest or the least elements of each step, as many as its parameter says; of a single step, in their order.
fn extremes(is_top: bool, parameters: &[f64], mut rows: Vec<Row>, steps: usize) -> Vec<Row> {
    let mut order: Vec<(usize, f64)> = Vec::new();
    for step in 0..steps {
        let places = parameters.get(step).copied().unwrap_or(f64::NAN);
        order.clear();
        order.extend(rows.iter().enumerate().filter_map(|(row, it)| Some((row, it.at(step)?))));
        // Of equal ones those that come first.
        order.sort_by(|(_, a), (_, b)| rank(is_top, *a, *b));
        let kept = (0..order.len()).take_while(|index| count(index + 1) <= places).count();
        for (row, _) in order.iter().skip(kept) {
            if let Some(cell) = rows.get_mut(*row).and_then(|row| row.cells.get_mut(step)) {
                *cell = None;
            }
        }
    }
    rows.retain(|row| !row.is_empty());
    if steps == 1 {
        sort(is_top, &mut rows);
    }
    rows
}

/// Puts rows in the order of their values at the only step.
pub(super) fn sort(is_falling: bool, rows: &mut [Row]) {
    rows.sort_by(|a, b| rank(is_falling, a.at(0).unwrap_or(f64::NAN), b.at(0).unwrap_or(f64::NAN)));
}
