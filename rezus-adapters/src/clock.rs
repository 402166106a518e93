//! The machine's clock.

use std::sync::LazyLock;
use std::time::{Duration, Instant, SystemTime};

use rezus_core::base::{Clock, Timestamp};

/// The machine's clock, in UTC.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the machine")]
        let now = SystemTime::now();
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        BEGINNING.elapsed()
    }
}

/// When somebody first asked how much time passed.
static BEGINNING: LazyLock<Instant> = LazyLock::new(Instant::now);
