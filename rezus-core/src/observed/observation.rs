//! One observed value, with its date and its source.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Source;
use crate::base::Timestamp;

/// A value that was seen, never one that was declared: always dated, never authoritative.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation<T> {
    /// What was seen.
    pub value: T,
    /// When it was seen.
    pub observed_at: Timestamp,
    /// Who saw it.
    pub source: Source,
}

/// Whether an observation is still news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freshness {
    /// As new as its pace promises.
    Fresh,
    /// Older than three intervals: shown with its date, never as the present.
    Stale,
    /// Older than ten intervals: what it says is no longer known.
    Unknown,
}

/// How often something is read: what its age is measured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(
    /// From one reading to the next.
    pub Duration,
);

impl Pace {
    /// After how many intervals a value is stale, and after how many unknown.
    const STALE: u32 = 3;
    const UNKNOWN: u32 = 10;

    /// Judges the age at `now` of what was seen at `observed_at`.
    ///
    /// Ages are computed when read, so an observer that died leaves values that age.
    ///
    /// ```
    /// use std::time::Duration;
    /// use rezus_core::base::Timestamp;
    /// use rezus_core::observed::{Freshness, Pace};
    ///
    /// let seen = Timestamp::from_millis(10_000);
    /// let pace = Pace(Duration::from_secs(30));
    /// assert_eq!(pace.freshness(seen, Timestamp::from_millis(100_000)), Freshness::Fresh);
    /// assert_eq!(pace.freshness(seen, Timestamp::from_millis(100_001)), Freshness::Stale);
    /// assert_eq!(pace.freshness(seen, Timestamp::from_millis(310_001)), Freshness::Unknown);
    /// ```
    pub fn freshness(self, observed_at: Timestamp, now: Timestamp) -> Freshness {
        let age = now.since(observed_at);
        if age > self.0.saturating_mul(Self::UNKNOWN) {
            Freshness::Unknown
        } else if age > self.0.saturating_mul(Self::STALE) {
            Freshness::Stale
        } else {
            Freshness::Fresh
        }
    }

    /// When what was seen at `observed_at` becomes stale or unknown, whichever is next after `now`; nothing once it is
    /// unknown.
    pub fn next_turn(self, observed_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let at = |times| {
            let millis = i64::try_from(self.0.saturating_mul(times).as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(observed_at.as_millis().saturating_add(millis).saturating_add(1))
        };
        [at(Self::STALE), at(Self::UNKNOWN)].into_iter().find(|turn| *turn > now)
    }
}
