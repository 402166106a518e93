//! A clock that tests set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
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
    /// How many milliseconds passed.
    elapsed: Arc<AtomicU64>,
}

impl ManualClock {
    /// Makes a clock that shows `at`.
    pub fn at(at: Timestamp) -> Self {
        Self { millis: Arc::new(AtomicI64::new(at.as_millis())), elapsed: Arc::default() }
    }

    /// Shows `at` from now on. Where that is later, so much time passes; it may lie in the past, too, as real clocks are set
    /// back, and then none does.
    pub fn set(&self, at: Timestamp) {
        let before = Timestamp::from_millis(self.millis.swap(at.as_millis(), Ordering::SeqCst));
        self.pass(at.since(before));
    }

    /// Shows `at` from now on without that any time passes, as when somebody sets a real clock.
    pub fn jump(&self, at: Timestamp) {
        self.millis.store(at.as_millis(), Ordering::SeqCst);
    }

    /// Moves the time on; what is less than a millisecond is cut off.
    pub fn advance(&self, span: Duration) {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        self.millis.fetch_add(millis, Ordering::SeqCst);
        self.pass(span);
    }

    fn pass(&self, span: Duration) {
        let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        self.elapsed.fetch_add(millis, Ordering::SeqCst);
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

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.elapsed.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_with_the_clock_but_not_when_it_is_put_right() {
        let at = Timestamp::from_millis;
        let clock = ManualClock::at(at(1_000));
        let shown = || (clock.now(), clock.elapsed().as_millis());
        clock.advance(Duration::from_secs(1));
        clock.set(at(5_000));
        assert_eq!(shown(), (at(5_000), 4_000));
        clock.set(at(3_000));
        assert_eq!(shown(), (at(3_000), 4_000));
        clock.jump(at(9_000_000));
        assert_eq!(shown(), (at(9_000_000), 4_000));
        clock.jump(at(0));
        clock.advance(Duration::from_millis(5));
        assert_eq!(shown(), (at(5), 4_005));
    }
}
