//! A clock that tests set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rezus_core::base::{Clock, Timestamp};

/// A clock that stands still until it is set or advanced. Its clones show the same time.
///
/// ```
/// use rezus_core::base::{Clock as _, Timestamp};
/// use rezus_testkit::clock::ManualClock;
///
/// let clock = ManualClock::at(Timestamp::from_millis(1_000));
/// let same = clock.clone();
/// clock.advance(std::time::Duration::from_secs(2));
/// assert_eq!(same.now(), Timestamp::from_millis(3_000));
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    millis: Arc<AtomicI64>,
}

impl ManualClock {
    /// Makes a clock that shows `at`.
    pub fn at(at: Timestamp) -> Self {
        Self { millis: Arc::new(AtomicI64::new(at.as_millis())) }
    }

    /// Shows `at` from now on, which may lie in the past: real clocks are set back, too.
    pub fn set(&self, at: Timestamp) {
        self.millis.store(at.as_millis(), Ordering::SeqCst);
    }

    /// Moves the time on; what is less than a millisecond is cut off.
    pub fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }
}

/// Shows 2026-11-30T19:10:37Z.
impl Default for ManualClock {
    fn default() -> Self {
        Self::at(Timestamp::from_millis(1_796_065_837_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.millis.load(Ordering::SeqCst))
    }
}
