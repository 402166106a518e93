//! What functions make of the samples of a window.
//!
//! Of spans: least, greatest, sum and count are folded, `avg_over_time` is all sums by all counts, `last_over_time` is the last
//! value. Counters rise by the increases of spans, so that one that began anew within a span is told right. What needs each
//! sample refuses spans.

use super::node::OverTime;
use super::number::{Spread, Total, count, float, quantile, stays_infinite};
use super::window::{Point, Window};
use crate::series::{Rollup, counter_increase};

/// Why a function cannot be told of a window: there are spans in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NeedsSamples;

/// What a function gives for a window that is not empty; nothing where it is of no meaning.
pub(super) fn over_time(
    function: OverTime,
    parameter: f64,
    window: Window<'_>,
) -> Result<Option<f64>, NeedsSamples> {
    if !function.takes_spans() && !window.rolled.is_empty() {
        return Err(NeedsSamples);
    }
    Ok(match function {
        OverTime::Rate => extrapolated(window, true, seconds(window.to - window.from)),
        OverTime::Increase => extrapolated(window, true, 1.0),
        OverTime::Delta => extrapolated(window, false, 1.0),
        OverTime::Irate => newest_step(window, true),
        OverTime::Idelta => newest_step(window, false),
        OverTime::Changes => Some(steps(window, is_other)),
        OverTime::Resets => Some(steps(window, |before, after| after < before)),
        OverTime::Average => Some(average(window)),
        OverTime::Least => {
            let values = window.rolled.iter().map(|span| span.min);
            extreme(values.chain(window.samples.iter().map(|sample| sample.value)), |value, so_far| {
                value < so_far
            })
        }
        OverTime::Most => {
            let values = window.rolled.iter().map(|span| span.max);
            extreme(values.chain(window.samples.iter().map(|sample| sample.value)), |value, so_far| {
                value > so_far
            })
        }
        OverTime::Sum => Some(sum(window)),
        OverTime::Count => Some(spans_count(window) + count(window.samples.len())),
        OverTime::Last => window.points().next_back().map(|point| point.value),
        OverTime::Present => Some(1.0),
        OverTime::Deviation => Some(variance(window).sqrt()),
        OverTime::Variance => Some(variance(window)),
        OverTime::Quantile => {
            let mut values: Vec<f64> = window.samples.iter().map(|sample| sample.value).collect();
            Some(quantile(parameter, &mut values))
        }
    })
}

fn seconds(millis: i64) -> f64 {
    float(millis) / 1_000.0
}

/// How a window's values rose: of a counter how much it counted, however often it began anew.
struct Rise {
    /// Where what is known begins, in milliseconds, and with what value.
    from: Point,
    /// When the last value was.
    to: i64,
    /// By how much it rose between them.
    by: f64,
    /// In how many steps.
    steps: usize,
}

fn rise(window: Window<'_>, is_counter: bool) -> Option<Rise> {
    let mut points = window.points();
    let first = points.next()?;
    if is_counter && let [span, spans @ ..] = window.rolled {
        return Some(counted(window, span, spans)).filter(|rise| rise.steps > 0);
    }
    let last = points.next_back()?;
    let mut by = last.value - first.value;
    let mut before = first.value;
    for sample in window.samples.iter().filter(|_| is_counter) {
        if sample.value < before {
            by += before;
        }
        before = sample.value;
    }
    Some(Rise { from: first, to: last.at, by, steps: window.len() - 1 })
}

/// What a counter counted in spans and the samples after them. A span that is all in the window counts from its beginning, one
/// that began before from its last value on.
fn counted(window: Window<'_>, first: &Rollup, spans: &[Rollup]) -> Rise {
    let mut total = Total::default();
    let is_whole = first.from.as_millis() >= window.from && first.from < first.last_at;
    let from = if is_whole {
        total.add(first.increase);
        // What it was before, unless it began anew since.
        Point { at: first.from.as_millis(), value: (first.last - first.increase).max(0.0) }
    } else {
        first.into()
    };
    for span in spans {
        total.add(span.increase);
    }
    let newest = spans.last().unwrap_or(first);
    let mut last = Point::from(newest);
    for sample in window.samples {
        total.add(counter_increase(last.value, sample.value));
        last = sample.into();
    }
    Rise { from, to: last.at, by: total.get(), steps: window.len() - usize::from(!is_whole) }
}

/// The rise over a whole window, although what is known begins after its beginning and ends before its end: on either side
/// it goes on to the window's edge where that is about as near as the next sample would be, else by half of what is between
/// two samples; a counter not further than to where it was zero. As Prometheus does it.
fn extrapolated(window: Window<'_>, is_counter: bool, per: f64) -> Option<f64> {
    let Rise { from, to, by, steps } = rise(window, is_counter)?;
    let sampled = seconds(to - from.at);
    let between = sampled / count(steps);
    let mut to_start = seconds(from.at - window.from);
    let to_end = seconds(window.to - to);
    if is_counter && by > 0.0 && from.value >= 0.0 {
        let to_zero = sampled * (from.value / by);
        if to_zero < to_start {
            to_start = to_zero;
        }
    }
    let threshold = between * 1.1;
    let mut whole = sampled;
    whole += if to_start < threshold { to_start } else { between / 2.0 };
    whole += if to_end < threshold { to_end } else { between / 2.0 };
    Some(by * (whole / sampled / per))
}

/// What came between the last two samples: of a counter, per second.
fn newest_step(window: Window<'_>, is_counter: bool) -> Option<f64> {
    let mut points = window.points();
    let (last, before) = (points.next_back()?, points.next_back()?);
    let between = last.at - before.at;
    if between == 0 {
        return None;
    }
    if !is_counter {
        return Some(last.value - before.value);
    }
    let rise = match window.rolled {
        [.., span] if window.samples.is_empty() => span.increase,
        _ => counter_increase(before.value, last.value),
    };
    Some(rise / seconds(between))
}

/// How many steps from sample to sample are of a kind.
fn steps(window: Window<'_>, is_one: impl Fn(f64, f64) -> bool) -> f64 {
    let pairs = window.samples.windows(2);
    count(pairs.filter(|pair| matches!(pair, [before, after] if is_one(before.value, after.value))).count())
}

#[expect(clippy::float_cmp, reason = "any change is one")]
fn is_other(before: f64, after: f64) -> bool {
    before != after && !(before.is_nan() && after.is_nan())
}

/// The least or the greatest value; no number only where none is one.
fn extreme(values: impl Iterator<Item = f64>, is_beyond: impl Fn(f64, f64) -> bool) -> Option<f64> {
    values.reduce(|so_far, value| if is_beyond(value, so_far) || so_far.is_nan() { value } else { so_far })
}

fn spans_count(window: Window<'_>) -> f64 {
    window.rolled.iter().map(|span| float(i64::try_from(span.count).unwrap_or(i64::MAX))).sum()
}

fn sum(window: Window<'_>) -> f64 {
    let mut total = Total::default();
    for span in window.rolled {
        total.add(span.sum);
    }
    for sample in window.samples {
        total.add(sample.value);
    }
    total.get()
}

fn average(window: Window<'_>) -> f64 {
    if !window.rolled.is_empty() {
        return sum(window) / (spans_count(window) + count(window.samples.len()));
    }
    // Not the sum by the count: that may be infinite where the mean is not.
    let (mut mean, mut seen) = (Total::default(), 0.0);
    for sample in window.samples {
        seen += 1.0;
        if !stays_infinite(mean.rough(), sample.value) {
            mean.add(sample.value / seen - mean.rough() / seen);
        }
    }
    mean.get()
}

fn variance(window: Window<'_>) -> f64 {
    let mut spread = Spread::default();
    for sample in window.samples {
        spread.add(sample.value);
    }
    spread.variance()
}
