//! The ports through which samples are kept and read again.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::{Labels, Matcher, Rollup, Sample, TENANT};
use crate::base::{TenantName, Timestamp};

/// One sample and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Which series: [`NAME`](super::NAME) and [`TENANT`] are among its labels.
    pub labels: Labels,
    /// The sample.
    pub sample: Sample,
}

/// How far from the clock samples may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// How far behind it.
    pub late: Duration,
    /// How far ahead of it.
    pub early: Duration,
}

impl Default for Window {
    /// Ten minutes behind, five ahead.
    fn default() -> Self {
        Self { late: Duration::from_mins(10), early: Duration::from_mins(5) }
    }
}

/// What became of the samples of one call. They add up to those that were given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Kept. One of the time of an older one is among them, although the older one is what is read.
    pub kept: u64,
    /// Not kept: of the time of the newest one of its series.
    pub repeated: u64,
    /// Not kept: too old.
    pub late: u64,
    /// Not kept: too far ahead.
    pub early: u64,
    /// Not kept: of new series beyond a limit.
    pub over_limit: u64,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Whose series; `None` are everybody's.
    pub tenants: Option<BTreeSet<TenantName>>,
    /// What their labels fulfil.
    pub matchers: Vec<Matcher>,
    /// Since when; samples of this very time are among them.
    pub from: Timestamp,
    /// Until when; samples of this very time are among them.
    pub to: Timestamp,
    /// How wide a [`Rollup`] may be where samples as they were taken are kept as well; zero asks for those.
    pub width: Duration,
    /// How many samples and rollups may be given.
    pub limit: usize,
}

impl Selection {
    /// Tells whether a series is meant, whatever samples it has.
    pub fn is_of(&self, labels: &Labels) -> bool {
        let is_theirs = self.tenants.as_ref().is_none_or(|tenants| {
            let own = labels.get(TENANT);
            tenants.iter().any(|tenant| tenant.as_str() == own)
        });
        is_theirs && self.matchers.iter().all(|matcher| matcher.matches(labels))
    }
}

/// One series and what it came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Which.
    pub labels: Labels,
    /// What is only kept, or was asked for, in spans: by time, no two overlap, each whole where a part of it is within the
    /// range.
    pub rolled: Vec<Rollup>,
    /// The samples after them, by time, no two of one time, each after `last_at` of every rollup.
    pub samples: Vec<Sample>,
}

/// Why samples were not kept, or not given.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// More is asked for than may be given.
    #[error("more than {limit} samples are asked for: ask for a shorter time, fewer series, or wider steps")]
    TooMany {
        /// How many may be given.
        limit: usize,
    },
    /// It cannot be done now.
    #[error("samples cannot be {doing} now")]
    Unavailable {
        /// `kept` or `read`.
        doing: &'static str,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Takes samples.
#[async_trait]
pub trait TimeSeriesSink: fmt::Debug + Send + Sync + 'static {
    /// Takes samples, in any order. What is kept of them once this returns is kept as durably as the sink keeps anything.
    ///
    /// # Errors
    ///
    /// [`SeriesError`] where none of them was kept.
    async fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError>;
}

/// Takes samples and gives them again.
///
/// *Contract:* what was appended is read by the next call, bit for bit, in the order of time; a reader never waits for
/// a writer, nor a writer for a reader.
#[async_trait]
pub trait TimeSeries: TimeSeriesSink {
    /// Gives the series that are meant, sorted by labels; none without a sample or a rollup in the range.
    ///
    /// # Errors
    ///
    /// [`SeriesError`].
    async fn select(&self, selection: &Selection) -> Result<Vec<Series>, SeriesError>;

    /// Gives the labels of the series that [`TimeSeries::select`] would give, sorted; where samples are long past, also those of
    /// series that had some near the range. `limit` counts series here.
    ///
    /// # Errors
    ///
    /// [`SeriesError`].
    async fn list(&self, selection: &Selection) -> Result<Vec<Labels>, SeriesError>;
}

/// What became of samples that were to be sent on, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forwarded {
    /// Taken by whoever they were sent to.
    pub sent: u64,
    /// Refused there: they are not sent again.
    pub refused: u64,
    /// Dropped, since too many waited, or since what waited could not be read.
    pub dropped: u64,
    /// Attempts that came to nothing and are made again.
    pub retried: u64,
    /// Samples that wait.
    pub pending: u64,
    /// How many bytes those take.
    pub pending_bytes: u64,
    /// When any were last taken.
    pub succeeded_at: Option<Timestamp>,
}

/// Takes samples and sends them on to somebody who need not be there.
///
/// *Contract:* nobody who appends waits for whoever the samples are sent to. What was appended is sent at least once, each
/// series' samples by time, unless it was refused or dropped, which is counted; a restart loses nothing.
#[async_trait]
pub trait Forwarder: TimeSeriesSink {
    /// Tells what became of samples so far.
    fn forwarded(&self) -> Forwarded;

    /// Sends what was appended, and what will be, until it is dropped. Tells of whatever goes wrong; nothing of that shows a
    /// secret.
    async fn forward(&self, tell: &(dyn for<'e> Fn(&'e (dyn Error + 'static)) + Send + Sync));
}
