//! What functions make of the samples of a window.
//!
//! Of spans: least, greatest, sum and count are folded, `avg_over_time` is all sums by all counts, `last_over_time` is the last
//! value. Counters go on from the last value of a span by the increases of the spans after it, so that a counter that began
//! anew within one is told right. What needs each sample refuses spans.

use super::node::OverTime;
use super::number::{Spread, Total, count, float, quantile, stays_infinite};
use super::window::Window;
use crate::series::counter_increase;

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

/// By how much the last value is more than the first one: of a counter what it counted, however often it began anew.
fn rise(window: Window<'_>, is_counter: bool) -> Option<f64> {
    let mut points = window.points();
    let (first, last) = (points.next()?, points.next_back()?);
    if !is_counter {
        return Some(last.value - first.value);
    }
    if let [first, spans @ ..] = window.rolled {
        let mut total = Total::default();
        for span in spans {
            total.add(span.increase);
        }
        let mut before = spans.last().unwrap_or(first).last;
        for sample in window.samples {
            total.add(counter_increase(before, sample.value));
            before = sample.value;
        }
        return Some(total.get());
    }
    let mut rise = last.value - first.value;
    let mut before = first.value;
    for sample in window.samples {
        if sample.value < before {
            rise += before;
        }
        before = sample.value;
    }
    Some(rise)
}

/// The rise over a whole window, although the first and the last sample are within it: on either side it goes on to the
/// window's edge where that is about as near as the next sample would be, else by half of what is between two samples; a
/// counter not further than to where it was zero. As Prometheus does it.
fn extrapolated(window: Window<'_>, is_counter: bool, per: f64) -> Option<f64> {
    let rise = rise(window, is_counter)?;
    let mut points = window.points();
    let (first, last) = (points.next()?, points.next_back()?);
    let sampled = seconds(last.at - first.at);
    let between = sampled / count(window.len() - 1);
    let mut to_start = seconds(first.at - window.from);
    let to_end = seconds(window.to - last.at);
    if is_counter && rise > 0.0 && first.value >= 0.0 {
        let to_zero = sampled * (first.value / rise);
        if to_zero < to_start {
            to_start = to_zero;
        }
    }
    let threshold = between * 1.1;
    let mut whole = sampled;
    whole += if to_start < threshold { to_start } else { between / 2.0 };
    whole += if to_end < threshold { to_end } else { between / 2.0 };
    Some(rise * (whole / sampled / per))
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
