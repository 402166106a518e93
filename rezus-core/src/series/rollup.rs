//! What samples come to in spans of time.

use std::time::Duration;

use super::{Rollup, Sample, counter_increase};
use crate::base::Timestamp;

/// Rolls samples up, which are in the order of time, into spans that are `width` long (whole milliseconds; at least one).
///
/// `before` is the last value before them that is a number, where there is one: it is what the first increase counts from.
/// Samples that are no number (NaN, so [`STALE`](super::STALE) too) are passed over; a span of no others comes to nothing.
pub fn roll_up(samples: &[Sample], width: Duration, before: Option<f64>) -> Vec<Rollup> {
    let millis = i64::try_from(width.as_millis()).unwrap_or(i64::MAX).max(1);
    let mut rolled: Vec<Rollup> = Vec::new();
    let mut before = before;
    for sample in samples.iter().filter(|sample| !sample.value.is_nan()) {
        let Sample { at, value } = *sample;
        let increase = before.map_or(0.0, |before| counter_increase(before, value));
        before = Some(value);
        let from = Timestamp::from_millis(at.as_millis().div_euclid(millis).saturating_mul(millis));
        match rolled.last_mut().filter(|rollup| rollup.from == from) {
            Some(rollup) => {
                rollup.min = rollup.min.min(value);
                rollup.max = rollup.max.max(value);
                rollup.sum += value;
                rollup.count += 1;
                (rollup.last, rollup.last_at) = (value, at);
                rollup.increase += increase;
            }
            None => rolled.push(Rollup {
                from,
                width: Duration::from_millis(millis.unsigned_abs()),
                min: value,
                max: value,
                sum: value,
                count: 1,
                last: value,
                last_at: at,
                increase,
            }),
        }
    }
    rolled
}

/// Rolls rollups up, which are in the order of time, into wider ones: `width` is a multiple of theirs. What comes of it is what
/// [`roll_up`] makes of the samples, but for the order in which sums are taken.
pub fn widen(rollups: &[Rollup], width: Duration) -> Vec<Rollup> {
    let millis = i64::try_from(width.as_millis()).unwrap_or(i64::MAX).max(1);
    let mut rolled: Vec<Rollup> = Vec::new();
    for part in rollups {
        let from = Timestamp::from_millis(part.from.as_millis().div_euclid(millis).saturating_mul(millis));
        match rolled.last_mut().filter(|rollup| rollup.from == from) {
            Some(rollup) => {
                rollup.min = rollup.min.min(part.min);
                rollup.max = rollup.max.max(part.max);
                rollup.sum += part.sum;
                rollup.count += part.count;
                (rollup.last, rollup.last_at) = (part.last, part.last_at);
                rollup.increase += part.increase;
            }
            None => {
                rolled.push(Rollup { from, width: Duration::from_millis(millis.unsigned_abs()), ..*part });
            }
        }
    }
    rolled
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::series::STALE;

    fn samples(pairs: &[(i64, f64)]) -> Vec<Sample> {
        pairs.iter().map(|(at, value)| Sample { at: Timestamp::from_millis(*at), value: *value }).collect()
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_counter_that_began_anew_counts_what_came_after() {
        let counter =
            samples(&[(0, 10.0), (500, 14.0), (900, f64::NAN), (1_000, 3.0), (1_500, STALE), (1_900, 5.0)]);
        let increases =
            |before| roll_up(&counter, SECOND, before).iter().map(|r| r.increase).collect::<Vec<_>>();
        assert_eq!(increases(None), [4.0, 5.0]);
        assert_eq!(increases(Some(9.0)), [5.0, 5.0]);
        assert_eq!(increases(Some(11.0)), [14.0, 5.0]);
        let last = roll_up(&counter, SECOND, None)[1];
        assert_eq!((last.min, last.max, last.sum, last.count), (3.0, 5.0, 8.0, 2));
        assert_eq!(
            (last.last, last.last_at, last.from),
            (5.0, Timestamp::from_millis(1_900), Timestamp::from_millis(1_000))
        );
    }

    #[test]
    fn what_holds_no_number_comes_to_nothing() {
        assert_eq!(roll_up(&samples(&[(1, f64::NAN), (2, STALE)]), SECOND, Some(1.0)), []);
        assert_eq!(roll_up(&[], SECOND, None), []);
    }

    proptest! {
        /// However samples are cut into parts, and whatever the width, together they come to the same.
        #[test]
        fn parts_come_to_what_the_whole_comes_to(
            steps in prop::collection::vec((1_i64..3_000, prop_oneof![8 => (0_u32..50).prop_map(f64::from), 1 => Just(f64::NAN)]), 1..100),
            start in -100_000_i64..100_000,
            part in 1_usize..20,
        ) {
            let mut at = start;
            let pairs: Vec<(i64, f64)> = steps.iter().map(|(step, value)| { at += step; (at, *value) }).collect();
            let all = samples(&pairs);
            let numbers: Vec<f64> = pairs.iter().map(|(_, value)| *value).filter(|value| !value.is_nan()).collect();
            let whole = roll_up(&all, SECOND, None);
            prop_assert_eq!(whole.iter().map(|r| r.count).sum::<u64>(), u64::try_from(numbers.len()).unwrap());
            prop_assert_eq!(whole.iter().map(|r| r.sum).sum::<f64>(), numbers.iter().sum::<f64>());
            for times in [1, 3, 60] {
                prop_assert_eq!(widen(&whole, SECOND * times), roll_up(&all, SECOND * times, None));
            }
            let least = whole.iter().map(|r| r.min).fold(f64::INFINITY, f64::min);
            let most = whole.iter().map(|r| r.max).fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(least, numbers.iter().copied().fold(f64::INFINITY, f64::min));
            prop_assert_eq!(most, numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            for rollup in &whole {
                let within = |at: Timestamp| (0..1_000).contains(&(at.as_millis() - rollup.from.as_millis()));
                prop_assert!(rollup.from.as_millis() % 1_000 == 0 && within(rollup.last_at));
            }
            prop_assert!(whole.is_sorted_by(|a, b| a.from < b.from));
            // By resets, without spans: each value against the one before.
            let rose: f64 = numbers.windows(2).map(|pair| counter_increase(pair[0], pair[1])).sum();
            prop_assert_eq!(whole.iter().map(|r| r.increase).sum::<f64>(), rose);
            let mut before = None;
            let mut in_parts = 0.0;
            for part in all.chunks(part) {
                let rolled = roll_up(part, SECOND, before);
                in_parts += rolled.iter().map(|r| r.increase).sum::<f64>();
                before = rolled.last().map(|r| r.last).or(before);
            }
            prop_assert_eq!(in_parts, rose);
        }
    }
}
