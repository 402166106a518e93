//! One observed value, with its date and its source.

use std::time::Duration;

use crate::base::Timestamp;

/// A value that was seen, never one that was declared: always dated, never authoritative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation<T> {
    /// What was seen.
    pub value: T,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// Who saw it: the name of a scraper.
    pub source: String,
}

/// Whether an observation is still news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Not older than allowed.
    Fresh,
    /// Older than allowed: shown with its date, never as the present.
    Stale,
}

impl<T> Observation<T> {
    /// Judges the observation's age at `now`: stale once it is older than `max_age`.
    ///
    /// Ages are computed when read, so an observer that died leaves values that age.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rezus_core::base::Timestamp;
    /// use rezus_core::observed::{Freshness, Observation};
    ///
    /// let seen = Observation {
    ///     value: "Ready",
    ///     observed_at: Timestamp::from_millis(10_000),
    ///     source: "kubernetes".to_owned(),
    /// };
    /// let limit = Duration::from_secs(30);
    /// assert_eq!(seen.freshness(Timestamp::from_millis(40_000), limit), Freshness::Fresh);
    /// assert_eq!(seen.freshness(Timestamp::from_millis(40_001), limit), Freshness::Stale);
    /// ```
    pub fn freshness(&self, now: Timestamp, max_age: Duration) -> Freshness {
        if now.since(self.observed_at) > max_age { Freshness::Stale } else { Freshness::Fresh }
    }
}
