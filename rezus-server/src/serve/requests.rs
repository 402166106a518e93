//! The requests of one connection, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the requests of a connection. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A request that is under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Counts>);

impl Requests {
    /// Counts a request in.
    pub(super) fn begin(&self) -> UnderWay {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(&self.0))
    }

    /// How many have begun, and how many have ended since.
    pub(super) fn counts(&self) -> (u64, u64) {
        // In this order: what ends in between is not taken for one that never began.
        let ended = self.0.ended.load(Ordering::Acquire);
        (self.0.begun.load(Ordering::Acquire), ended)
    }

    /// Whether one is under way.
    pub(super) fn under_way(&self) -> bool {
        let (begun, ended) = self.counts();
        begun > ended
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}
