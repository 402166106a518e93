//! Values at every step of a query, by series: what evaluating works on.

use std::collections::HashMap;

use super::{EvaluateError, LIMIT_ADVICE};
use crate::series::{Labels, NAME};

/// One series: a value, or none, for each step.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) labels: Labels,
    pub(super) cells: Vec<Option<f64>>,
}

impl Row {
    /// The value at a step.
    pub(super) fn at(&self, step: usize) -> Option<f64> {
        self.cells.get(step).copied().flatten()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells.iter().all(Option::is_none)
    }
}

/// What evaluating is held to, and what it has come to.
pub(super) struct Budget<'a> {
    limit: usize,
    is_over: &'a (dyn Fn() -> bool + Sync),
    /// Cells that were made.
    cells: usize,
    /// Pieces of work since the time was last looked at.
    work: usize,
}

/// How much is done between two looks at the time: some milliseconds.
const LOOK: usize = 1 << 18;

impl<'a> Budget<'a> {
    pub(super) fn new(limit: usize, is_over: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { limit, is_over, cells: 0, work: LOOK }
    }

    /// Says that so many samples or cells are about to be gone through.
    pub(super) fn work(&mut self, pieces: usize) -> Result<(), EvaluateError> {
        self.work = self.work.saturating_add(pieces);
        if self.work >= LOOK {
            self.work = 0;
            if (self.is_over)() {
                return Err(EvaluateError::Timeout);
            }
        }
        Ok(())
    }

    /// Asks for room for so many rows. It is not given back: one side of an operator is there while the other is made, and so
    /// on for as many as there are.
    pub(super) fn room(&mut self, rows: usize, steps: usize) -> Result<(), EvaluateError> {
        let cells = rows.saturating_mul(steps);
        self.cells = self.cells.saturating_add(cells);
        if self.cells > self.limit {
            return Err(EvaluateError::TooMany { limit: self.limit, advice: LIMIT_ADVICE });
        }
        self.work(cells)
    }
}

/// Returns labels without some of them.
pub(super) fn without(labels: &Labels, is_dropped: impl Fn(&str) -> bool) -> Labels {
    if labels.iter().all(|(name, _)| !is_dropped(name)) {
        return labels.clone();
    }
    of(labels.iter().filter(|(name, _)| !is_dropped(name)))
}

/// Returns labels without the metric's name.
pub(super) fn without_name(labels: &Labels) -> Labels {
    without(labels, |name| name == NAME)
}

/// Makes labels of pairs that were in labels.
pub(super) fn of<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Labels {
    // What was in labels, once each, is fit to be in labels.
    Labels::new(pairs).unwrap_or_else(|_| Labels::none())
}

/// Makes one row of those that have the same labels now, in the order of their first.
pub(super) fn merged(rows: Vec<Row>) -> Result<Vec<Row>, EvaluateError> {
    let mut places: HashMap<Labels, usize> = HashMap::with_capacity(rows.len());
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        let place = places.get(&row.labels).copied();
        let Some(first) = place.and_then(|place| merged.get_mut(place)) else {
            places.insert(row.labels.clone(), merged.len());
            merged.push(row);
            continue;
        };
        for (own, other) in first.cells.iter_mut().zip(row.cells) {
            match (*own, other) {
                (Some(_), Some(_)) => return Err(EvaluateError::SameLabels),
                (None, other) => *own = other,
                (Some(_), None) => {}
            }
        }
    }
    Ok(merged)
}

/// Fails where two rows have the same labels, whenever they have values.
pub(super) fn distinct(rows: Vec<Row>) -> Result<Vec<Row>, EvaluateError> {
    let mut seen = std::collections::HashSet::with_capacity(rows.len());
    if rows.iter().all(|row| seen.insert(&row.labels)) { Ok(rows) } else { Err(EvaluateError::SameLabels) }
}
