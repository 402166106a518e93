//! What a series came to, step by step.

use std::collections::BTreeMap;
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::{Rollup, Series, counter_increase};

/// What a series came to in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// When the step begins: a multiple of its length since 1970.
    pub(super) at: Timestamp,
    /// The average; of a counter by how much it rose in a second.
    pub(super) value: f64,
    /// The least and the greatest value; of a counter nothing.
    pub(super) bounds: Option<[f64; 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Gathered {
    min: f64,
    max: f64,
    sum: f64,
    count: f64,
}

/// Averages a gauge. A step without a value that is a number is left out.
pub(super) fn averages(series: &Series, step: Duration) -> Vec<Point> {
    let mut steps: BTreeMap<i64, Gathered> = BTreeMap::new();
    let mut add = |at: Timestamp, [min, max, sum, count]: [f64; 4]| {
        let none = Gathered { min: f64::INFINITY, max: f64::NEG_INFINITY, sum: 0.0, count: 0.0 };
        let gathered = steps.entry(begin(at, step)).or_insert(none);
        gathered.min = gathered.min.min(min);
        gathered.max = gathered.max.max(max);
        gathered.sum += sum;
        gathered.count += count;
    };
    for Rollup { from, min, max, sum, count, .. } in &series.rolled {
        // More than four thousand millions in a span: their average is known all the same.
        let count = u32::try_from(*count).unwrap_or(u32::MAX);
        add(*from, [*min, *max, *sum, f64::from(count)]);
    }
    for sample in series.samples.iter().filter(|sample| sample.value.is_finite()) {
        add(sample.at, [sample.value, sample.value, sample.value, 1.0]);
    }
    let points = steps.into_iter().map(|(at, Gathered { min, max, sum, count })| Point {
        at: Timestamp::from_millis(at),
        value: sum / count,
        bounds: Some([min, max]),
    });
    let is_number =
        |point: &Point| point.value.is_finite() && point.bounds.iter().flatten().all(|it| it.is_finite());
    points.filter(is_number).collect()
}

/// By how much a counter rose in a second: counted in the step of the later of two values, over the time between them. What
/// rose while the series had ended is not known, and counts for nothing.
pub(super) fn rates(series: &Series, step: Duration) -> Vec<Point> {
    let mut steps: BTreeMap<i64, (f64, Duration)> = BTreeMap::new();
    let mut add = |at: Timestamp, increase: f64, over: Duration| {
        let (sum, time) = steps.entry(begin(at, step)).or_default();
        *sum += increase;
        *time += over;
    };
    let mut before: Option<(Timestamp, f64)> = None;
    for Rollup { from, width, last, last_at, increase, .. } in &series.rolled {
        add(*from, *increase, before.map_or(*width, |(at, _)| last_at.since(at)));
        before = Some((*last_at, *last));
    }
    for sample in &series.samples {
        if let Some((at, value)) = before
            && sample.value.is_finite()
        {
            add(sample.at, counter_increase(value, sample.value), sample.at.since(at));
        }
        before = sample.value.is_finite().then_some((sample.at, sample.value));
    }
    let rate = |(at, (sum, time)): (i64, (f64, Duration))| {
        let value = sum / time.as_secs_f64();
        value.is_finite().then_some(Point { at: Timestamp::from_millis(at), value, bounds: None })
    };
    steps.into_iter().filter_map(rate).collect()
}

/// Where the step begins that a time is in.
fn begin(at: Timestamp, step: Duration) -> i64 {
    let step = i64::try_from(step.as_millis()).unwrap_or(i64::MAX).max(1);
    at.as_millis().div_euclid(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rezus_core::series::{Labels, STALE, Sample};

    use super::*;

    const STEP: Duration = Duration::from_mins(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn series(rolled: Vec<Rollup>, samples: &[(i64, f64)]) -> Series {
        let samples =
            samples.iter().map(|(second, value)| Sample { at: at(*second), value: *value }).collect();
        Series { labels: Labels::new([("__name__", "x")]).unwrap(), rolled, samples }
    }

    fn shown(points: &[Point]) -> Vec<(i64, f64, Option<[f64; 2]>)> {
        points.iter().map(|point| (point.at.as_millis() / 1_000, point.value, point.bounds)).collect()
    }

    fn rollup(from: i64, last_at: i64, [min, max, sum, last, increase]: [f64; 5], count: u64) -> Rollup {
        Rollup { from: at(from), width: STEP * 5, min, max, sum, count, last, last_at: at(last_at), increase }
    }

    #[test]
    fn rollups_and_samples_are_averaged_by_how_many_values_they_are() {
        let rolled = vec![rollup(0, 290, [1.0, 9.0, 20.0, 2.0, 0.0], 4)];
        let samples =
            [(310, 1.0), (320, f64::NAN), (340, STALE), (359, 4.0), (360, f64::INFINITY), (420, 8.0)];
        let points = averages(&series(rolled, &samples), STEP * 5);
        assert_eq!(shown(&points), [(0, 5.0, Some([1.0, 9.0])), (300, 13.0 / 3.0, Some([1.0, 8.0]))]);
    }

    #[test]
    fn a_counter_rises_over_resets_and_not_over_an_end() {
        let rolled = vec![rollup(0, 290, [0.0, 60.0, 0.0, 60.0, 60.0], 5)];
        let samples = [(300, 70.0), (330, 100.0), (350, 20.0), (360, STALE), (400, 90.0), (410, 100.0)];
        let points = rates(&series(rolled, &samples), STEP);
        // 10 + 30 + 20 in 60 s; 10 in 10 s after the end.
        assert_eq!(shown(&points), [(0, 0.2, None), (300, 1.0, None), (360, 1.0, None)]);
    }

    proptest! {
        #[test]
        fn averages_lie_between_their_bounds_and_hold_all_values(
            values in prop::collection::vec((0..3_600_i64, -1e6..1e6_f64), 1..200)
        ) {
            let samples: BTreeMap<i64, f64> = values.into_iter().collect();
            let samples: Vec<_> = samples.into_iter().collect();
            let points = averages(&series(Vec::new(), &samples), STEP);
            for point in &points {
                let [min, max] = point.bounds.unwrap();
                prop_assert!(min - 1e-6 <= point.value && point.value <= max + 1e-6);
                prop_assert_eq!(point.at.as_millis() % 60_000, 0);
            }
            let least = samples.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
            let found = points.iter().map(|point| point.bounds.unwrap()[0]).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(least.to_bits(), found.to_bits());
        }
    }
}
