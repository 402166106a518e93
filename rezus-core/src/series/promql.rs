//! Queries over series: a subset of PromQL with the meaning that it has for Prometheus 2.
//!
//! [`Query::parse`] reads a query and refuses what is not evaluated here by its name; [`Query::selections`] says what is to be read
//! for it, one [`Selection`] for each selector, and [`Query::evaluate`] computes it of what was read.
//!
//! | supported | |
//! | --- | --- |
//! | selectors | all four matchers, `offset`, `@`; ranges as arguments of functions, or alone in an instant query |
//! | of a range | `rate` `irate` `increase` `delta` `idelta` `changes` `resets`, and `avg` `min` `max` `sum` `count` `last` `present` `stddev` `stdvar` `quantile` `_over_time` |
//! | of elements | `abs` `ceil` `floor` `sqrt` `exp` `ln` `log2` `log10` `sgn` `round` `clamp` `clamp_min` `clamp_max` `timestamp` `sort` `sort_desc` |
//! | scalars | numbers, `time()`, `pi()`, `scalar()`, `vector()` |
//! | aggregations | `sum` `avg` `min` `max` `count` `group` `stddev` `stdvar` `quantile` `topk` `bottomk`, `by` and `without` |
//! | operators | `+ - * / % ^ atan2`, comparisons with and without `bool`, `and` `or` `unless`, `on` `ignoring` `group_left` `group_right` |
//!
//! Ranges and lookback are closed on both sides, as in Prometheus 2: in Prometheus 3 a sample that lies exactly at the
//! beginning of a window is not in it.
//!
//! What is kept only in spans ([`Rollup`](super::Rollup)) is seen through them: see [`Query::selections`].

mod aggregate;
mod binary;
mod columns;
mod evaluate;
mod functions;
mod node;
mod number;
mod operators;
mod over_time;
mod plan;
mod window;

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Labels, Matcher, MatcherError, Sample, Selection, Series};
use crate::base::{TenantName, Timestamp};
use columns::Budget;
use evaluate::Evaluation;
use node::{Anchor, Root, Selector};
use window::LOOKBACK;

/// How many steps a query may have, as Prometheus has it: enough for a week of minutes, or a year of hours.
pub const STEPS: u64 = 11_000;

/// What else can be done about a limit.
const LIMIT_ADVICE: &str = "ask for a shorter time, fewer series, or wider steps";

/// A query that can be evaluated.
#[derive(Debug)]
pub struct Query {
    root: Root,
    selectors: Vec<Selector>,
}

/// When a query is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    from: Timestamp,
    to: Timestamp,
    /// Zero for once.
    step: Duration,
}

/// Why there is no such range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// It ends before it begins.
    #[error("end timestamp must not be before start time")]
    Backwards,
    /// It gets nowhere.
    #[error("zero or negative query resolution step widths are not accepted. Try a positive integer")]
    NoStep,
    /// It has more steps than [`STEPS`].
    #[error(
        "exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)"
    )]
    TooMany,
}

/// What a query came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number, at one time.
    Scalar(Sample),
    /// A value of each series, at one time. In the order of their labels, or as the query sorted them.
    Vector(Vec<(Labels, Sample)>),
    /// Values of each series over time, in the order of their labels; none without a value.
    Matrix(Vec<Line>),
}

/// Values of a series over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Of which.
    pub labels: Labels,
    /// Its values, by time.
    pub samples: Vec<Sample>,
}

/// Why a text is no query that can be evaluated.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// It is no PromQL.
    #[error("parse error: {0}")]
    Syntax(String),
    /// It is more than a query has reason to be.
    #[error(
        "the query is too long or too deeply nested: at most {most_bytes} bytes and {most_signs} operators and parentheses"
    )]
    TooLong {
        /// In bytes.
        most_bytes: usize,
        /// How many operators, parentheses and braces.
        most_signs: usize,
    },
    /// It has more regular expressions than a query has reason to have.
    #[error(
        "there are too many or too long regular expressions: at most {most}, of {most_bytes} bytes together"
    )]
    TooManyExpressions {
        /// How many.
        most: usize,
        /// Their bytes together.
        most_bytes: usize,
    },
    /// It is PromQL, but not of the subset.
    #[error("{what} is not supported: {instead}, or ask a Prometheus that is fed by remote write")]
    Unsupported {
        /// What.
        what: String,
        /// What is.
        instead: &'static str,
    },
    /// A regular expression is none.
    #[error(transparent)]
    Matcher(#[from] MatcherError),
}

/// Why a query came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// Its time was over.
    #[error("query timed out in expression evaluation")]
    Timeout,
    /// It came to more than may be in memory.
    #[error(
        "query processing would load too many samples into memory in query execution (more than {limit}): {advice}"
    )]
    TooMany {
        /// How many may be there.
        limit: usize,
        /// What can be done.
        advice: &'static str,
    },
    /// Two elements have the same labels once the metric's name is gone.
    #[error("vector cannot contain metrics with the same labelset")]
    SameLabels,
    /// How many elements are to be kept is no number of them.
    #[error("Scalar value {value} overflows int64")]
    NoCount {
        /// What it is.
        value: String,
    },
    /// Several elements match where one may.
    #[error(
        "found duplicate series for the match group {group} on the {side} hand-side of the operation: [{second}, {first}];many-to-many matching not allowed: matching labels must be unique on one side"
    )]
    ManyAtOnce {
        /// Their common labels.
        group: String,
        /// `left` or `right`.
        side: &'static str,
        /// One of them.
        first: String,
        /// Another one.
        second: String,
    },
    /// Several elements on the left match one.
    #[error("multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)")]
    ManyOnTheLeft,
    /// Several elements come to the same labels.
    #[error("multiple matches for labels: grouping labels must ensure unique matches")]
    ManyAlike,
    /// A function needs samples where only spans are kept.
    #[error(
        "{function} needs every sample, and of this time only spans of minutes are kept: ask for a later time, or use avg, min, max, sum, count or last _over_time, rate, increase or delta"
    )]
    NeedsSamples {
        /// Which.
        function: &'static str,
    },
}

/// Reads a length of time as queries have it: `5m`, `1h30m`; nothing for other texts.
pub fn duration(text: &str) -> Option<Duration> {
    promql_parser::util::parse_duration(text).ok()
}

impl Range {
    /// One time.
    pub const fn at(time: Timestamp) -> Self {
        Self { from: time, to: time, step: Duration::ZERO }
    }

    /// All times from `from` on, by steps of whole milliseconds, that are not after `to`.
    ///
    /// # Errors
    ///
    /// [`RangeError`].
    pub fn new(from: Timestamp, to: Timestamp, step: Duration) -> Result<Self, RangeError> {
        if to < from {
            return Err(RangeError::Backwards);
        }
        let step = Duration::from_millis(u64::try_from(step.as_millis()).unwrap_or(u64::MAX));
        if step.is_zero() {
            return Err(RangeError::NoStep);
        }
        if to.since(from).as_millis() / step.as_millis() > u128::from(STEPS) {
            return Err(RangeError::TooMany);
        }
        Ok(Self { from, to, step })
    }

    /// Whether it is one time.
    pub fn is_instant(&self) -> bool {
        self.step.is_zero()
    }

    /// Returns the times.
    pub fn times(self) -> impl Iterator<Item = Timestamp> {
        let whole = self.to.since(self.from).as_millis().checked_div(self.step.as_millis());
        let steps = whole.and_then(|steps| u32::try_from(steps).ok()).unwrap_or(0);
        (0..=steps).map(move |step| self.from.after(self.step * step))
    }
}

impl Selector {
    /// Returns the ends of the window that is looked at in a step, in milliseconds.
    fn window_at(&self, range: Range, step: i64) -> (i64, i64) {
        let anchor = match self.anchor {
            Anchor::Step => step,
            Anchor::Start => range.from.as_millis(),
            Anchor::End => range.to.as_millis(),
            Anchor::At(time) => time.as_millis(),
        };
        let to = anchor.saturating_sub(self.offset);
        let length =
            self.window.map_or(LOOKBACK, |window| i64::try_from(window.as_millis()).unwrap_or(i64::MAX));
        (to.saturating_sub(length), to)
    }
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    ///
    /// [`ParseError`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        plan::query(text)
    }

    /// Reads a selector of series, such as `up{tenant="prod"}`: the matchers of one, as requests for labels have them.
    ///
    /// # Errors
    ///
    /// [`ParseError`] for anything else.
    pub fn selector(text: &str) -> Result<Vec<Matcher>, ParseError> {
        plan::selector(text)
    }

    /// Whether it is evaluated to the samples of a window, which a range of times has no meaning for.
    pub fn is_window(&self) -> bool {
        matches!(self.root, Root::Window(_))
    }

    /// Returns what is to be read: a selection for each selector, in an order of its own.
    ///
    /// Where both samples and spans are kept, spans do: for a function of a window those of up to a fifth of it, for an instant
    /// selector those of up to a step of the query. `irate`, `idelta`, `timestamp` and what is told of each sample have samples
    /// wherever they are kept.
    pub fn selections(
        &self,
        range: Range,
        tenants: Option<&BTreeSet<TenantName>>,
        limit: usize,
    ) -> Vec<Selection> {
        let selection = |selector: &Selector| {
            let (from, _) = selector.window_at(range, range.from.as_millis());
            let (_, to) = selector.window_at(range, range.to.as_millis());
            let width = match selector.window {
                _ if !selector.coarse => Duration::ZERO,
                Some(window) => window / 5,
                None => range.step,
            };
            Selection {
                tenants: tenants.cloned(),
                matchers: selector.matchers.clone(),
                from: Timestamp::from_millis(from),
                to: Timestamp::from_millis(to),
                width,
                limit,
            }
        };
        self.selectors.iter().map(selection).collect()
    }

    /// Evaluates it of what was read for its selections, in their order.
    ///
    /// `limit` is how many values may be in memory at a time. `is_over` tells whether its time is: it is asked now and then.
    ///
    /// # Errors
    ///
    /// [`EvaluateError`].
    pub fn evaluate(
        &self,
        range: Range,
        data: &[Vec<Series>],
        limit: usize,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Value, EvaluateError> {
        Evaluation::new(&self.selectors, data, range, Budget::new(limit, is_over)).run(&self.root)
    }
}
