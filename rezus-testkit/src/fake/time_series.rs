//! Samples in memory, the plainest way there is.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::series::{
    Appended, Entry, Labels, Sample, Selection, Series, SeriesError, TimeSeries, TimeSeriesSink, Window,
};

use super::{Fault, InjectedFault};
use crate::clock::ManualClock;

/// A [`TimeSeries`] in memory that keeps everything as it came and fails on demand. A clone is another handle of the same
/// storage.
#[derive(Clone)]
pub struct FakeTimeSeries {
    clock: ManualClock,
    window: Window,
    storage: Arc<Mutex<Storage>>,
}

#[derive(Default)]
struct Storage {
    series: BTreeMap<Labels, BTreeMap<Timestamp, f64>>,
    faults: Vec<Fault>,
}

impl FakeTimeSeries {
    /// Makes an empty store that refuses what is out of the window around the clock.
    pub fn new(clock: &ManualClock, window: Window) -> Self {
        Self { clock: clock.clone(), window, storage: Arc::default() }
    }

    /// Lets the next read or write fail.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    fn lock(&self) -> MutexGuard<'_, Storage> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage {
    /// Fails if such a fault was injected.
    fn fail(&mut self, fault: Fault, doing: &'static str) -> Result<(), SeriesError> {
        match self.faults.iter().position(|injected| *injected == fault) {
            Some(place) => {
                self.faults.remove(place);
                Err(SeriesError::Unavailable { doing, source: Box::new(InjectedFault(fault)) })
            }
            None => Ok(()),
        }
    }

    fn keep(&mut self, entry: &Entry, now: Timestamp, window: Window, appended: &mut Appended) {
        let at = entry.sample.at;
        if at < now.minus(window.late) {
            appended.late += 1;
            return;
        }
        if at > now.after(window.early) {
            appended.early += 1;
            return;
        }
        let samples = self.series.entry(entry.labels.clone()).or_default();
        if samples.last_key_value().is_some_and(|(newest, _)| *newest == at) {
            appended.repeated += 1;
            return;
        }
        samples.entry(at).or_insert(entry.sample.value);
        appended.kept += 1;
    }

    fn select(&mut self, selection: &Selection) -> Result<Vec<Series>, SeriesError> {
        self.fail(Fault::Read, "read")?;
        let mut found = Vec::new();
        for (labels, samples) in self.series.iter().filter(|(labels, _)| selection.is_of(labels)) {
            let within = samples.iter().filter(|(at, _)| (selection.from..=selection.to).contains(at));
            let samples: Vec<Sample> = within.map(|(at, value)| Sample { at: *at, value: *value }).collect();
            if !samples.is_empty() {
                found.push(Series { labels: labels.clone(), rolled: Vec::new(), samples });
            }
        }
        Ok(found)
    }
}

#[async_trait]
impl TimeSeriesSink for FakeTimeSeries {
    async fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError> {
        let mut storage = self.lock();
        storage.fail(Fault::BeforeWrite, "kept")?;
        let mut appended = Appended::default();
        for entry in entries {
            storage.keep(entry, self.clock.now(), self.window, &mut appended);
        }
        storage.fail(Fault::AfterWrite, "kept")?;
        Ok(appended)
    }
}

#[async_trait]
impl TimeSeries for FakeTimeSeries {
    async fn select(&self, selection: &Selection) -> Result<Vec<Series>, SeriesError> {
        let found = self.lock().select(selection)?;
        let count: usize = found.iter().map(|series| series.samples.len()).sum();
        if count > selection.limit {
            return Err(SeriesError::TooMany { limit: selection.limit });
        }
        Ok(found)
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Labels>, SeriesError> {
        let found: Vec<Labels> =
            self.lock().select(selection)?.into_iter().map(|series| series.labels).collect();
        if found.len() > selection.limit {
            return Err(SeriesError::TooMany { limit: selection.limit });
        }
        Ok(found)
    }
}

impl fmt::Debug for FakeTimeSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeTimeSeries").finish_non_exhaustive()
    }
}
