//! What is said once a minute at most, however often there is reason to.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const EVERY: Duration = Duration::from_mins(1);

/// Tells whether it is time to say something again.
#[derive(Debug, Default)]
pub(super) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// True where that was not so within the last minute.
    pub(super) fn may(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let may = last.is_none_or(|last| now.duration_since(last) >= EVERY);
        if may {
            *last = Some(now);
        }
        may
    }
}
