//! Samples of the last hours, in memory.
//!
//! Each series has a head (`head`): packs of a few bytes a sample, of which those that are older than the hot window are dropped.
//! A series of which nothing is left is forgotten. Heads lie in shards with a lock each (`heads`), which is held for one series at
//! a time, so that readers and writers hardly meet; what there is to be found is told by a directory (`directory`).

mod directory;
mod head;
mod heads;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::Clock;
use rezus_core::series::{
    Appended, Entry, Labels, Selection, Series, SeriesError, TimeSeries, TimeSeriesSink, Window,
};

#[cfg(feature = "history")]
pub(crate) use head::in_order;
#[cfg(feature = "history")]
pub(crate) use heads::Judged;
pub(crate) use heads::{Heads, Judgement};

/// How many series there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesCaps {
    /// Of one tenant.
    pub per_tenant: usize,
    /// In all.
    pub total: usize,
}

impl Default for SeriesCaps {
    /// 50,000 of a tenant, 500,000 in all.
    fn default() -> Self {
        Self { per_tenant: 50_000, total: 500_000 }
    }
}

/// What a [`Ring`] keeps.
#[derive(Clone, Copy, Debug)]
pub struct RingSettings {
    /// For how long samples are kept, at least; never shorter than what [`Window::late`] lets in.
    pub hot: Duration,
    /// How far from the clock samples may be.
    pub window: Window,
    /// How many series there may be.
    pub caps: SeriesCaps,
}

impl Default for RingSettings {
    /// Two hours.
    fn default() -> Self {
        Self { hot: Duration::from_hours(2), window: Window::default(), caps: SeriesCaps::default() }
    }
}

/// A [`TimeSeries`] in memory, of the last hours. A clone is another handle of the same one.
#[derive(Clone)]
pub struct Ring {
    heads: Arc<Heads>,
    settings: RingSettings,
    clock: Arc<dyn Clock>,
    /// The minute in which it was tended last.
    tended: Arc<AtomicI64>,
}

impl Ring {
    /// Makes an empty one.
    pub fn new(settings: RingSettings, clock: Arc<dyn Clock>) -> Self {
        Self { heads: Arc::new(Heads::new(settings.caps)), settings, clock, tended: Arc::default() }
    }

    /// Returns how many series there are.
    pub fn series(&self) -> usize {
        self.heads.count()
    }

    /// Drops what is older than the hot window. Each minute the first call that appends does so; it takes some milliseconds.
    pub fn tend(&self) {
        let hot = self.settings.hot.max(self.settings.window.late);
        self.heads.set_floor(self.clock.now().minus(hot));
        self.heads.sweep();
    }
}

#[async_trait]
impl TimeSeriesSink for Ring {
    async fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError> {
        let now = self.clock.now();
        let minute = now.as_millis().div_euclid(60_000);
        if self.tended.swap(minute, Ordering::Relaxed) != minute {
            self.tend();
        }
        let mut appended = Appended::default();
        for entry in entries {
            count(&mut appended, self.heads.append(entry, now, self.settings.window));
        }
        Ok(appended)
    }
}

#[async_trait]
impl TimeSeries for Ring {
    async fn select(&self, selection: &Selection) -> Result<Vec<Series>, SeriesError> {
        let (heads, selection) = (Arc::clone(&self.heads), selection.clone());
        blocking(move || heads.select(&selection)).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Labels>, SeriesError> {
        let (heads, selection) = (Arc::clone(&self.heads), selection.clone());
        blocking(move || {
            let found = heads.list(&selection);
            if found.len() > selection.limit {
                return Err(SeriesError::TooMany { limit: selection.limit });
            }
            Ok(found)
        })
        .await
    }
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Counts what became of a sample.
pub(crate) fn count(appended: &mut Appended, judgement: Judgement) {
    let counter = match judgement {
        Judgement::Kept => &mut appended.kept,
        Judgement::Repeated => &mut appended.repeated,
        Judgement::Late => &mut appended.late,
        Judgement::Early => &mut appended.early,
        Judgement::OverLimit => &mut appended.over_limit,
    };
    *counter += 1;
}

/// Unpacks on a thread that may take its time.
async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, SeriesError> + Send + 'static,
) -> Result<T, SeriesError> {
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|error| Err(SeriesError::Unavailable { doing: "read", source: Box::new(error) }))
}
