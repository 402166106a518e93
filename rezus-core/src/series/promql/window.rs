//! What of a series is seen from a point in time: a value, or the samples of a window.
//!
//! Windows are closed on both sides, as those of Prometheus 2 are (Prometheus 3 opened them on the left). What is kept only
//! in spans is seen so: a span is in the windows that its last value is in, and at an instant within a span, or up to five
//! minutes after it, the value is the last one that the span had by then, else the last one of the span before, else the
//! span's own last one, although that came a little later. So a graph of finer steps than what is kept is a stair.

use std::borrow::Cow;

use crate::series::{Rollup, Sample, Series};

/// For how long a value counts where none comes after it: five minutes, as Prometheus has it.
pub(super) const LOOKBACK: i64 = 300_000;

/// A value, and when it was taken in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) at: i64,
    pub(super) value: f64,
}

impl From<&Sample> for Point {
    fn from(sample: &Sample) -> Self {
        Self { at: sample.at.as_millis(), value: sample.value }
    }
}

/// The last value of a span.
impl From<&Rollup> for Point {
    fn from(span: &Rollup) -> Self {
        Self { at: span.last_at.as_millis(), value: span.last }
    }
}

/// Finds the value that counts at a time in milliseconds.
pub(super) fn instant(series: &Series, at: i64) -> Option<Point> {
    let after = series.samples.partition_point(|sample| sample.at.as_millis() <= at);
    if let Some(sample) = after.checked_sub(1).and_then(|last| series.samples.get(last))
        && sample.at.as_millis() >= at.saturating_sub(LOOKBACK)
    {
        return (!sample.is_stale()).then(|| sample.into());
    }
    let begun = series.rolled.partition_point(|span| span.from.as_millis() <= at);
    let mut seen = series.rolled.get(..begun)?.iter().rev();
    let is_near = |span: &&Rollup| span.from.after(span.width).as_millis() > at.saturating_sub(LOOKBACK);
    let newest = seen.next().filter(is_near)?;
    let before = if newest.last_at.as_millis() <= at { None } else { seen.next().filter(is_near) };
    Some(before.unwrap_or(newest).into())
}

/// A series without the marks that say where it ended, which are no samples to windows.
#[derive(Debug)]
pub(super) struct Track<'a> {
    rolled: &'a [Rollup],
    samples: Cow<'a, [Sample]>,
}

/// What of a series is in a window, by time: spans, then samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<'a> {
    pub(super) rolled: &'a [Rollup],
    pub(super) samples: &'a [Sample],
    /// Where it begins, in milliseconds.
    pub(super) from: i64,
    /// Where it ends.
    pub(super) to: i64,
}

impl<'a> Track<'a> {
    pub(super) fn of(series: &'a Series) -> Self {
        let samples = if series.samples.iter().any(Sample::is_stale) {
            series.samples.iter().filter(|sample| !sample.is_stale()).copied().collect()
        } else {
            Cow::Borrowed(series.samples.as_slice())
        };
        Self { rolled: &series.rolled, samples }
    }

    /// Cuts out a window between two times in milliseconds.
    pub(super) fn window(&self, from: i64, to: i64) -> Window<'_> {
        Window {
            rolled: cut(self.rolled, from, to, |span| span.last_at.as_millis()),
            samples: cut(&self.samples, from, to, |sample| sample.at.as_millis()),
            from,
            to,
        }
    }
}

fn cut<T>(all: &[T], from: i64, to: i64, at: impl Fn(&T) -> i64) -> &[T] {
    let begin = all.partition_point(|it| at(it) < from);
    let end = all.partition_point(|it| at(it) <= to);
    all.get(begin..end).unwrap_or_default()
}

impl Window<'_> {
    /// How many samples and spans there are.
    pub(super) fn len(&self) -> usize {
        self.rolled.len() + self.samples.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values by time: of a span its last one.
    pub(super) fn points(&self) -> impl DoubleEndedIterator<Item = Point> {
        self.rolled.iter().map(Point::from).chain(self.samples.iter().map(Point::from))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::Timestamp;
    use crate::series::{Labels, STALE};

    const MINUTE: i64 = 60_000;

    fn sample(minute: i64, value: f64) -> Sample {
        Sample { at: Timestamp::from_millis(minute * MINUTE), value }
    }

    fn span(from: i64, last_at: i64, last: f64) -> Rollup {
        Rollup {
            from: Timestamp::from_millis(from * MINUTE),
            width: Duration::from_hours(1),
            min: 0.0,
            max: 9.0,
            sum: 9.0,
            count: 60,
            last,
            last_at: Timestamp::from_millis(last_at * MINUTE),
            increase: 0.0,
        }
    }

    fn series(rolled: Vec<Rollup>, samples: Vec<Sample>) -> Series {
        Series { labels: Labels::new([("__name__", "up")]).unwrap(), rolled, samples }
    }

    #[test]
    fn a_value_counts_for_five_minutes_or_until_the_series_ends() {
        let series = series(vec![], vec![sample(10, 1.0), sample(12, STALE), sample(20, 2.0)]);
        let at = |minute: i64, more: i64| instant(&series, minute * MINUTE + more).map(|point| point.value);
        assert_eq!((at(10, -1), at(10, 0), at(11, 0)), (None, Some(1.0), Some(1.0)));
        assert_eq!((at(12, 0), at(14, 0), at(20, 0)), (None, None, Some(2.0)));
        assert_eq!((at(25, 0), at(25, 1)), (Some(2.0), None));
    }

    #[test]
    fn what_is_kept_in_spans_is_a_stair() {
        let series = series(vec![span(0, 59, 1.0), span(60, 119, 2.0)], vec![sample(121, 3.0)]);
        let at = |minute: i64| instant(&series, minute * MINUTE).map(|point| point.value);
        // Within the first, before anything else is known.
        assert_eq!(at(30), Some(1.0));
        assert_eq!((at(60), at(64), at(65)), (Some(1.0), Some(1.0), Some(2.0)));
        assert_eq!((at(119), at(120), at(121), at(127)), (Some(2.0), Some(2.0), Some(3.0), None));
        // What is read for an instant is enough to tell it.
        let alone = Series { rolled: vec![span(60, 119, 2.0)], samples: vec![], ..series };
        assert_eq!(instant(&alone, 65 * MINUTE).map(|point| point.value), Some(2.0));
        assert_eq!(instant(&alone, 124 * MINUTE).map(|point| point.value), Some(2.0));
        assert_eq!(instant(&alone, 125 * MINUTE), None);
    }

    #[test]
    fn windows_are_closed_and_know_no_ends() {
        let series =
            series(vec![span(0, 59, 1.0)], vec![sample(61, 2.0), sample(62, STALE), sample(63, 3.0)]);
        let track = Track::of(&series);
        let values = |from: i64, to: i64| {
            let window = track.window(from * MINUTE, to * MINUTE);
            (window.len(), window.points().map(|point| point.value).collect::<Vec<_>>())
        };
        assert_eq!(values(59, 63), (3, vec![1.0, 2.0, 3.0]));
        assert_eq!(values(60, 62), (1, vec![2.0]));
        assert_eq!(values(64, 70), (0, vec![]));
    }
}
