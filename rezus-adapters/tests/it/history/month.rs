//! A month with a fast clock: the size settles, and whatever is asked for at the end is what was.

use std::collections::BTreeMap;
use std::time::Duration;

use rezus_adapters::history::{History, HistorySettings};
use rezus_adapters::ring::RingSettings;
use rezus_core::base::Timestamp;
use rezus_core::series::{Rollup, Sample, Series, TimeSeries as _, TimeSeriesSink as _, Window, roll_up};

use super::fixture::{
    DAY, HOUR, MINUTE, START, Store, at, entries, is_full, labels, samples, select, selection, tend, value,
};

const FINE: Duration = Duration::from_mins(5);
const COARSE: Duration = Duration::from_hours(1);

fn days(count: u64) -> Duration {
    Duration::from_hours(24 * count)
}

fn minutes(number: u32) -> u32 {
    number * 24 * 60
}

/// So that an hour can come at once.
fn settings() -> HistorySettings {
    let window = Window { late: Duration::from_hours(1), ..Window::default() };
    HistorySettings { ring: RingSettings { window, ..RingSettings::default() }, ..HistorySettings::default() }
}

/// Lets days pass; a call appends an hour. Returns the size at the end of each.
async fn pass(store: &Store, history: &mut History, series: u32, days: std::ops::Range<u32>) -> Vec<u64> {
    let mut sizes = Vec::new();
    for day in days {
        for minute in (minutes(day)..minutes(day + 1)).step_by(60) {
            store.clock.set(at(START + i64::from(minute + 59) * MINUTE));
            history.append(&entries(series, minute..minute + 60)).await.unwrap();
            assert_eq!(tend(history).await.len(), 0);
        }
        // A start every few days, at another hour of work each time.
        if day % 5 == 3 {
            let left_undone = history.tend().await.unwrap();
            assert!(left_undone.set_aside.is_empty());
            *history = store.history();
        }
        sizes.push(history.bytes());
    }
    sizes
}

/// All that a series had, and what it comes to.
pub(super) struct Model {
    samples: Vec<Sample>,
    rolled: BTreeMap<(Duration, Timestamp), Rollup>,
}

impl Model {
    pub(super) fn new(series: u32, minutes: u32) -> Self {
        let samples = samples(series, 0..minutes);
        let rolled = [FINE, COARSE].into_iter().flat_map(|width| roll_up(&samples, width, None));
        let rolled = rolled.map(|rollup| ((rollup.width, rollup.from), rollup)).collect();
        Self { samples, rolled }
    }

    /// Each rollup is what its span came to, each sample is one that was, and none is missing.
    pub(super) fn check(&self, found: &Series, from: i64, to: i64) {
        let name = &found.labels;
        for rollup in &found.rolled {
            assert_eq!(self.rolled.get(&(rollup.width, rollup.from)), Some(rollup), "{name}");
        }
        assert!(found.rolled.is_sorted_by(|a, b| a.from.after(a.width) <= b.from), "{name}");
        let is_rolled = |sample: &Sample| {
            let begun = found.rolled.partition_point(|rollup| rollup.from <= sample.at);
            found.rolled[..begun].last().is_some_and(|rollup| sample.at < rollup.from.after(rollup.width))
        };
        let last = found.rolled.last().map(|rollup| rollup.last_at);
        assert!(found.samples.first().is_none_or(|first| last.is_none_or(|last| last < first.at)));
        let since = found.samples.first().map_or(at(to + 1), |first| first.at);
        let (rolled, kept): (Vec<Sample>, Vec<Sample>) = self
            .samples
            .iter()
            .filter(|sample| (at(from)..=at(to)).contains(&sample.at))
            .copied()
            .partition(|sample| sample.at < since);
        assert_eq!(found.samples, kept, "{name}");
        assert!(rolled.iter().all(|sample| is_rolled(sample) || sample.value.is_nan()), "{name}");
    }
}

#[tokio::test]
async fn the_size_settles_in_a_month_and_everything_is_as_it_was() {
    let series = if is_full() { 400 } else { 8 };
    let settings = HistorySettings { raw: days(2), fine: days(7), coarse: days(91), ..settings() };
    let store = Store::new(settings);
    let mut history = store.history();
    let sizes = pass(&store, &mut history, series, 0..30).await;
    let most = |days: std::ops::Range<usize>| *sizes[days].iter().max().unwrap();
    // Weeks come and go whole, so two weeks are compared with the two before; the hours' rollups grow, as they are to.
    let (before, after) = (most(9..16), most(23..30));
    assert!(after * 100 <= before * 115, "{sizes:?}");
    assert!(store.files("raw-").len() <= 3, "{:?}", store.files("raw-"));

    let now = minutes(30) - 1;
    let end = START + i64::from(now) * MINUTE;
    for number in 0..series.min(8) {
        let model = Model::new(number, now + 1);
        for width in [Duration::ZERO, FINE, Duration::from_mins(30), COARSE, days(1)] {
            for (from, to) in [
                (START, end),
                (end - HOUR, end),
                (end - 3 * HOUR + 1, end - HOUR - 1),
                (end - 2 * DAY, end - DAY + 17 * MINUTE),
                (START + 20 * DAY + 7 * MINUTE, START + 26 * DAY - 1),
                (START + 6 * DAY - 5 * HOUR, START + 8 * DAY),
                (START + 29 * DAY - 1, START + 29 * DAY + 1),
                (START - DAY, START + 1),
            ] {
                let found = select(&history, number, from, to, width).await;
                let empty = Series { labels: labels(number), rolled: Vec::new(), samples: Vec::new() };
                model.check(&found.unwrap_or(empty), from, to);
            }
        }
    }
    // Samples are given of the days they are kept for, and rollups of their width before.
    let found = select(&history, 2, START, end, Duration::ZERO).await.unwrap();
    let kept = found.samples.len();
    assert!((2 * 1_440 - 20..=3 * 1_440).contains(&kept), "{kept}");
    let wide = select(&history, 2, START, end, COARSE).await.unwrap();
    assert!(wide.rolled.len() >= 24 * 28 && wide.rolled.iter().all(|rollup| rollup.width == COARSE));
    let listed = history.list(&selection(START, end, Duration::ZERO)).await.unwrap();
    assert_eq!(listed.len(), usize::try_from(series).unwrap());
    assert!(value(3, now).is_none() || listed.contains(&labels(3)));
}

#[tokio::test]
async fn there_is_no_more_than_may_be() {
    let store = Store::new(HistorySettings { max_bytes: Some(600_000), ..settings() });
    let mut history = store.history();
    let sizes = pass(&store, &mut history, 12, 0..12).await;
    assert!(sizes.iter().all(|size| *size <= 600_000), "{sizes:?}");
    assert!(*sizes.last().unwrap() > 300_000, "{sizes:?}");
    // The finest went, the rollups are there since the beginning.
    let end = START + 12 * DAY - MINUTE;
    assert!(store.files("raw-").len() < 11, "{:?}", store.files("raw-"));
    let found = select(&history, 2, START, end, Duration::ZERO).await.unwrap();
    assert_eq!(found.rolled[0].from, at(START));
    Model::new(2, minutes(12)).check(&found, START, end);
}

/// After the clock was set back by days, what comes for a day that was compacted is merged into it.
#[tokio::test]
async fn a_day_that_was_compacted_takes_more() {
    let store = Store::new(settings());
    let mut history = store.history();
    pass(&store, &mut history, 4, 0..4).await;
    let middle = START + DAY + 12 * HOUR + 30_000;
    store.clock.set(at(middle));
    let entry =
        rezus_core::series::Entry { labels: labels(2), sample: Sample { at: at(middle), value: 7.0 } };
    assert_eq!(history.append(&[entry]).await.unwrap().kept, 1);
    let end = START + 4 * DAY - MINUTE;
    for is_merged in [false, true] {
        let raw = select(&history, 2, START, end, Duration::ZERO).await.unwrap();
        assert_eq!(raw.samples.len(), 4 * 1_440 + 1);
        let own = raw.samples.iter().find(|sample| sample.at == at(middle)).unwrap();
        assert_eq!(own.value.to_bits(), 7.0_f64.to_bits());
        let wide = select(&history, 2, START, end, COARSE).await.unwrap();
        let rolled: u64 = wide.rolled.iter().map(|rollup| rollup.count).sum();
        assert_eq!(rolled + u64::try_from(wide.samples.len()).unwrap(), 4 * 1_440 + 1);
        let hour = wide.rolled.iter().find(|rollup| rollup.from == at(START + DAY + 12 * HOUR));
        assert_eq!(
            hour.map(|hour| (hour.count, hour.max.to_bits())),
            is_merged.then_some((61, 7.0_f64.to_bits()))
        );
        store.clock.set(at(end + 2 * HOUR));
        assert_eq!(tend(&history).await.len(), 0);
    }
}
