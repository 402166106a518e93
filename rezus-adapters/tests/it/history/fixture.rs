//! A directory, a clock that tests set, and series whose every value is known.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_adapters::history::{History, HistorySettings, SetAside};
use rezus_core::base::Timestamp;
use rezus_core::series::{
    Entry, Labels, Matcher, NAME, Operator, STALE, Sample, Selection, Series, TENANT, TimeSeries,
    TimeSeriesSink as _,
};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::contract::time_series::TimeSeriesFixture;
use tempfile::TempDir;

pub(super) const MINUTE: i64 = 60_000;
pub(super) const HOUR: i64 = 60 * MINUTE;
pub(super) const DAY: i64 = 24 * HOUR;

/// Where histories of tests begin: a midnight, on which a week and thirteen weeks begin.
pub(super) const START: i64 = 91 * DAY * 228;

pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// Whether long drills run in full (`DRILLS=full`) or in their short form.
pub(super) fn is_full() -> bool {
    std::env::var("DRILLS").as_deref() == Ok("full")
}

/// A directory of its own.
pub(super) struct Store {
    directory: PathBuf,
    pub(super) clock: ManualClock,
    settings: HistorySettings,
    /// Removed in the end, unless it is another's.
    _owned: Option<TempDir>,
}

impl Store {
    pub(super) fn new(settings: HistorySettings) -> Self {
        let owned = tempfile::tempdir().unwrap();
        let store = Self::at(owned.path().to_owned(), settings);
        Self { _owned: Some(owned), ..store }
    }

    /// One in a directory of somebody else's.
    pub(super) fn at(directory: PathBuf, settings: HistorySettings) -> Self {
        Self { directory, clock: ManualClock::at(at(START)), settings, _owned: None }
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(super) fn history(&self) -> History {
        History::open(&self.directory, self.settings, Arc::new(self.clock.clone())).unwrap()
    }

    /// How many files there are whose names begin with this, without the logs beside them.
    pub(super) fn count(&self, kind: &str) -> usize {
        let all = self.files(kind);
        all.iter().filter(|path| path.extension().is_some_and(|ending| ending == "db")).count()
    }

    /// The files whose names have this in them, sorted.
    pub(super) fn files(&self, part: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.directory).unwrap();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        found.retain(|path| path.file_name().unwrap().to_str().unwrap().contains(part));
        found.sort();
        found
    }
}

#[async_trait]
impl TimeSeriesFixture for Store {
    async fn open(&self) -> Arc<dyn TimeSeries> {
        Arc::new(self.history())
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }
}

/// Does all there is to do; returns what was found to be damaged.
pub(super) async fn tend(history: &History) -> Vec<SetAside> {
    let mut set_aside = Vec::new();
    loop {
        let tended = history.tend().await.unwrap();
        set_aside.extend(tended.set_aside);
        if !tended.more {
            return set_aside;
        }
    }
}

/// Lets minutes pass, ten at a time, with samples of four series.
pub(super) async fn pass(store: &Store, history: &History, minutes: std::ops::Range<u32>) {
    for minute in minutes.step_by(10) {
        store.clock.set(at(START + i64::from(minute + 9) * MINUTE));
        history.append(&entries(4, minute..minute + 10)).await.unwrap();
        tend(history).await;
    }
}

pub(super) fn labels(series: u32) -> Labels {
    let kind = ["counter_total", "gauge", "constant", "seldom"][usize::try_from(series % 4).unwrap()];
    Labels::new([(NAME, kind), (TENANT, "prod"), ("machine", &format!("machine-{series:05}"))]).unwrap()
}

/// The value of a series at a minute since [`START`], where it has one.
pub(super) fn value(series: u32, minute: u32) -> Option<f64> {
    let phase = minute.wrapping_mul(7).wrapping_add(series * 13);
    match series % 4 {
        // Begins anew every 1,000 minutes.
        0 => Some(f64::from((minute + series * 17) % 1_000 * 3)),
        1 => Some(f64::from(phase % 101) / 10.0),
        2 => Some(f64::from(series)),
        _ if minute % 9 == 8 => Some(STALE),
        _ => (minute % 9 < 6).then(|| f64::from(phase % 5)),
    }
}

/// What a series has in so many minutes from one on.
pub(super) fn samples(series: u32, minutes: std::ops::Range<u32>) -> Vec<Sample> {
    let sample = |minute: u32| {
        let value = value(series, minute)?;
        Some(Sample { at: at(START + i64::from(minute) * MINUTE), value })
    };
    minutes.filter_map(sample).collect()
}

/// What all series have then, minute by minute.
pub(super) fn entries(count: u32, minutes: std::ops::Range<u32>) -> Vec<Entry> {
    let of = |minute: u32| {
        (0..count).flat_map(move |series| {
            samples(series, minute..minute + 1)
                .into_iter()
                .map(move |sample| Entry { labels: labels(series), sample })
        })
    };
    minutes.flat_map(of).collect()
}

pub(super) fn selection(from: i64, to: i64, width: Duration) -> Selection {
    let (from, to) = (at(from), at(to));
    Selection { tenants: None, matchers: Vec::new(), from, to, width, limit: usize::MAX }
}

/// Selects one of the series.
pub(super) async fn select(
    history: &History,
    series: u32,
    from: i64,
    to: i64,
    width: Duration,
) -> Option<Series> {
    let own = labels(series);
    let matchers = [NAME, TENANT, "machine"];
    let matchers = matchers.map(|name| Matcher::new(name, Operator::Equal, own.get(name)).unwrap());
    let selection = Selection { matchers: matchers.to_vec(), ..selection(from, to, width) };
    let mut found = history.select(&selection).await.unwrap();
    assert!(found.len() <= 1, "{found:?}");
    found.pop()
}
