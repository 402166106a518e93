//! What a query comes to at each of its steps.

use super::aggregate::{self, aggregate};
use super::binary;
use super::columns::{Budget, Row, distinct, merged, without_name};
use super::node::{Order, OverTime, Root, Scalar, Selected, Selector, Vector};
use super::number::{apply, each, float, least, most};
use super::over_time::over_time;
use super::window::{Point, Track, instant};
use super::{EvaluateError, Line, Range, Value};
use crate::base::Timestamp;
use crate::series::{Labels, Sample, Series};

/// A query at work.
pub(super) struct Evaluation<'a> {
    selectors: &'a [Selector],
    /// What each selected.
    data: &'a [Vec<Series>],
    range: Range,
    /// The times of the steps, in milliseconds.
    times: Vec<i64>,
    budget: Budget<'a>,
}

type Rows = Result<Vec<Row>, EvaluateError>;
type Numbers = Result<Vec<f64>, EvaluateError>;

impl<'a> Evaluation<'a> {
    pub(super) fn new(
        selectors: &'a [Selector],
        data: &'a [Vec<Series>],
        range: Range,
        budget: Budget<'a>,
    ) -> Self {
        Self { selectors, data, range, times: range.times().map(Timestamp::as_millis).collect(), budget }
    }

    /// Evaluates all of it.
    pub(super) fn run(mut self, root: &Root) -> Result<Value, EvaluateError> {
        let at = self.range.from;
        match root {
            Root::Scalar(scalar) => {
                let numbers = self.scalar(scalar)?;
                if self.range.is_instant() {
                    let value = numbers.first().copied().unwrap_or(f64::NAN);
                    return Ok(Value::Scalar(Sample { at, value }));
                }
                let labels = Labels::none();
                let samples = self.range.times().zip(numbers).map(|(at, value)| Sample { at, value });
                Ok(Value::Matrix(vec![Line { labels, samples: samples.collect() }]))
            }
            Root::Vector(vector) => {
                let rows = self.vector(vector)?;
                if self.range.is_instant() {
                    let element = |row: Row| Some((row.labels.clone(), Sample { at, value: row.at(0)? }));
                    return Ok(Value::Vector(rows.into_iter().filter_map(element).collect()));
                }
                Ok(Value::Matrix(self.lines(rows)))
            }
            Root::Window(selected) => Ok(Value::Matrix(self.samples(*selected))),
        }
    }

    /// Rows that have values, in the order of their labels.
    fn lines(&self, rows: Vec<Row>) -> Vec<Line> {
        let line = |row: Row| {
            let samples = self.range.times().zip(&row.cells);
            let samples = samples.filter_map(|(at, cell)| Some(Sample { at, value: (*cell)? }));
            Line { samples: samples.collect(), labels: row.labels }
        };
        let mut lines: Vec<Line> =
            rows.into_iter().map(line).filter(|line| !line.samples.is_empty()).collect();
        lines.sort_by(|a, b| a.labels.cmp(&b.labels));
        lines
    }

    /// The samples of a window as they are; of spans the last ones.
    fn samples(&self, selected: Selected) -> Vec<Line> {
        let (series, selector) = self.selected(selected);
        let window = |series: &Series| {
            let (from, to) = selector?.window_at(self.range, self.range.from.as_millis());
            let track = Track::of(series);
            let window = track.window(from, to);
            let points = window
                .points()
                .map(|point| Sample { at: Timestamp::from_millis(point.at), value: point.value });
            Some(Line { labels: series.labels.clone(), samples: points.collect() })
        };
        series.iter().filter_map(window).filter(|line| !line.samples.is_empty()).collect()
    }

    fn selected(&self, selected: Selected) -> (&'a [Series], Option<&'a Selector>) {
        (self.data.get(selected).map_or(&[], Vec::as_slice), self.selectors.get(selected))
    }

    fn scalar(&mut self, scalar: &Scalar) -> Numbers {
        let steps = self.times.len();
        Ok(match scalar {
            Scalar::Number(number) => vec![*number; steps],
            Scalar::Time => self.step_times(),
            Scalar::Negated(of) => self.scalar(of)?.into_iter().map(|number| -number).collect(),
            Scalar::Only(vector) => {
                let rows = self.vector(vector)?;
                let only = |step: usize| {
                    let mut present = rows.iter().filter_map(|row| row.at(step));
                    match (present.next(), present.next()) {
                        (Some(value), None) => value,
                        _ => f64::NAN,
                    }
                };
                (0..steps).map(only).collect()
            }
            Scalar::Binary(operator, left, right) => {
                let (left, right) = (self.scalar(left)?, self.scalar(right)?);
                let both = left.into_iter().zip(right);
                let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
                both.map(|(left, right)| {
                    let result = apply(*operator, left, right);
                    if operator.compares() { truth(result.is_some()) } else { result.unwrap_or(f64::NAN) }
                })
                .collect()
            }
        })
    }

    fn step_times(&self) -> Vec<f64> {
        self.times.iter().map(|at| float(*at) / 1_000.0).collect()
    }

    fn vector(&mut self, vector: &Vector) -> Rows {
        match vector {
            Vector::Instant(selected) => self.instants(*selected, |point| point.value),
            Vector::Taken(selected) => {
                let rows = self.instants(*selected, |point| float(point.at) / 1_000.0)?;
                unnamed(rows)
            }
            Vector::OverTime(function, parameter, selected) => {
                let parameters = parameter.as_ref().map(|it| self.scalar(it)).transpose()?;
                self.over_time(*function, &parameters.unwrap_or_default(), *selected)
            }
            Vector::Constant(scalar) => {
                let cells = self.scalar(scalar)?.into_iter().map(Some).collect();
                Ok(vec![Row { labels: Labels::none(), cells }])
            }
            Vector::Each(function, of) => {
                let rows = self.vector(of)?;
                unnamed(mapped(rows, |_, value| Some(each(*function, value))))
            }
            Vector::StepTimes(of) => {
                let rows = self.vector(of)?;
                let times = self.step_times();
                unnamed(mapped(rows, |step, _| times.get(step).copied()))
            }
            Vector::Clamped { of, least: low, most: high } => {
                let rows = self.vector(of)?;
                let low = low.as_ref().map(|it| self.scalar(it)).transpose()?;
                let high = high.as_ref().map(|it| self.scalar(it)).transpose()?;
                unnamed(mapped(rows, |step, value| {
                    let low = low.as_ref().map(|it| it.get(step).copied()).unwrap_or_default();
                    let high = high.as_ref().map(|it| it.get(step).copied()).unwrap_or_default();
                    if let (Some(low), Some(high)) = (low, high)
                        && high < low
                    {
                        return None;
                    }
                    let value = high.map_or(value, |high| least(high, value));
                    Some(low.map_or(value, |low| most(low, value)))
                }))
            }
            Vector::Rounded(of, nearest) => {
                let rows = self.vector(of)?;
                let nearest = self.scalar(nearest)?;
                unnamed(mapped(rows, |step, value| {
                    let inverse = 1.0 / nearest.get(step)?;
                    Some((value * inverse + 0.5).floor() / inverse)
                }))
            }
            Vector::Sorted(order, of) => {
                let mut rows = self.vector(of)?;
                if self.range.is_instant() {
                    rows.retain(|row| !row.is_empty());
                    aggregate::sort(*order == Order::Falling, &mut rows);
                }
                Ok(rows)
            }
            Vector::Negated(of) => {
                let rows = mapped(self.vector(of)?, |_, value| Some(-value));
                let rows = rows.into_iter().filter(|row| !row.is_empty());
                distinct(rows.map(|row| Row { labels: without_name(&row.labels), ..row }).collect())
            }
            Vector::Aggregated { by, grouping, parameter, of } => {
                let parameters = parameter.as_ref().map(|it| self.scalar(it)).transpose()?;
                let rows = self.vector(of)?;
                let steps = self.times.len();
                aggregate(*by, grouping, &parameters.unwrap_or_default(), rows, steps, &mut self.budget)
            }
            Vector::WithScalar { operator, vector, scalar, is_swapped, is_bool } => {
                let rows = self.vector(vector)?;
                let scalar = self.scalar(scalar)?;
                binary::with_scalar(*operator, rows, &scalar, *is_swapped, *is_bool)
            }
            Vector::Matched { operator, left, right, matching, is_bool } => {
                let sides = (self.vector(left)?, self.vector(right)?);
                let steps = self.times.len();
                binary::matched(*operator, sides, matching, *is_bool, steps, &mut self.budget)
            }
            Vector::Set(operator, left, right, on) => {
                let sides = (self.vector(left)?, self.vector(right)?);
                let steps = self.times.len();
                binary::set(*operator, sides, on, steps, &mut self.budget)
            }
        }
    }

    /// What an instant selector gives.
    fn instants(&mut self, selected: Selected, value: impl Fn(Point) -> f64) -> Rows {
        let (series, Some(selector)) = self.selected(selected) else { return Ok(Vec::new()) };
        let steps = self.times.len();
        let mut rows = Vec::new();
        for series in series {
            let at = |time: &i64| instant(series, selector.window_at(self.range, *time).1).map(&value);
            let row = Row { labels: series.labels.clone(), cells: self.times.iter().map(at).collect() };
            if !row.is_empty() {
                self.budget.room(rows.len() + 1, steps)?;
                rows.push(row);
            }
            self.budget.work(steps)?;
        }
        Ok(rows)
    }

    /// What a function of windows gives.
    fn over_time(&mut self, function: OverTime, parameters: &[f64], selected: Selected) -> Rows {
        let (series, Some(selector)) = self.selected(selected) else { return Ok(Vec::new()) };
        let steps = self.times.len();
        let mut rows = Vec::new();
        for series in series {
            let track = Track::of(series);
            let mut cells = Vec::with_capacity(steps);
            for (step, time) in self.times.iter().enumerate() {
                let (from, to) = selector.window_at(self.range, *time);
                let window = track.window(from, to);
                self.budget.work(window.len() + 1)?;
                let parameter = parameters.get(step).copied().unwrap_or(f64::NAN);
                let cell = if window.is_empty() { Ok(None) } else { over_time(function, parameter, window) };
                cells.push(cell.map_err(|_| EvaluateError::NeedsSamples { function: function.name() })?);
            }
            let labels =
                if function == OverTime::Last { series.labels.clone() } else { without_name(&series.labels) };
            let row = Row { labels, cells };
            if !row.is_empty() {
                self.budget.room(rows.len() + 1, steps)?;
                rows.push(row);
            }
        }
        distinct(rows)
    }
}

/// Rows with other values.
fn mapped(mut rows: Vec<Row>, value: impl Fn(usize, f64) -> Option<f64>) -> Vec<Row> {
    for row in &mut rows {
        for (step, cell) in row.cells.iter_mut().enumerate() {
            *cell = cell.and_then(|own| value(step, own));
        }
    }
    rows
}

/// Rows without the metric's name.
fn unnamed(rows: Vec<Row>) -> Rows {
    merged(rows.into_iter().map(|row| Row { labels: without_name(&row.labels), ..row }).collect())
}
