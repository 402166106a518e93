//! From readings to samples that are kept: each turn of the collector is sampled, put into a queue that makes nobody wait,
//! and written from there, about once a second.
//!
//! What finds no room in the queue is dropped and counted. A tenant has at most half of it, so that a large cluster does not
//! keep the others' samples out.

mod queue;
mod seldom;
mod tally;
mod writer;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::observed::{Incarnation, Incarnations, Reading, Sampler, Source, cluster_series, clusters};
use rezus_core::series::{Entry, TimeSeries};

use crate::error::Chain;
use queue::Queue;
use tally::Tally;
pub use tally::Told;
pub use writer::forward;

/// How many samples may wait to be written: 32 bytes each, and nothing for those that do not.
const ROOM: usize = 1 << 18;

/// Samples on their way. Clones share it.
#[derive(Clone, Debug)]
pub struct Samples(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Arc<dyn TimeSeries>,
    /// Whether anything is sampled at all.
    is_enabled: bool,
    samplers: Mutex<HashMap<TenantName, Arc<Mutex<Sampler>>>>,
    queue: Queue,
    tally: Tally,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Samples {
    /// Samples that are kept in `store`, if any are at all. Nothing is written until [`Samples::write`] runs.
    pub fn new(store: Arc<dyn TimeSeries>, is_enabled: bool) -> Self {
        Self::with_room(store, is_enabled, ROOM)
    }

    fn with_room(store: Arc<dyn TimeSeries>, is_enabled: bool, room: usize) -> Self {
        Self(Arc::new(Inner {
            store,
            is_enabled,
            samplers: Mutex::default(),
            queue: Queue::new(room),
            tally: Tally::default(),
        }))
    }

    /// Tells whether anything is sampled.
    pub fn is_enabled(&self) -> bool {
        self.0.is_enabled
    }

    /// Samples a turn of reading a source that is read so often, of this cluster. It returns at once, whatever becomes of the samples.
    pub fn take(
        &self,
        tenant: &TenantName,
        source: Source,
        reading: &Reading,
        incarnation: &Incarnation,
        expires_at: Option<Timestamp>,
        every: Duration,
    ) {
        if !self.0.is_enabled {
            return;
        }
        let sampler = {
            let mut samplers = lock(&self.0.samplers);
            let sampler = samplers
                .entry(tenant.clone())
                .or_insert_with_key(|tenant| Arc::new(Mutex::new(Sampler::new(tenant.clone()))));
            Arc::clone(sampler)
        };
        let entries = lock(&sampler).take(source, reading, incarnation, expires_at, every);
        self.put(tenant, entries);
    }

    /// Ends the series of all other tenants: they are not observed any more.
    pub fn keep_only(&self, tenants: &BTreeSet<TenantName>, now: Timestamp) {
        let gone: Vec<_> = lock(&self.0.samplers).extract_if(|tenant, _| !tenants.contains(tenant)).collect();
        for (tenant, sampler) in gone {
            let entries = lock(&sampler).end(now);
            self.put(&tenant, entries);
        }
    }

    /// Returns the clusters that a tenant had, as far as samples of them are kept; nothing where that cannot be told now.
    pub async fn clusters(&self, tenant: &TenantName) -> Option<Incarnations> {
        if !self.0.is_enabled {
            return Some(Incarnations::default());
        }
        match self.0.store.list(&cluster_series(tenant)).await {
            Ok(series) => Some(clusters(&series)),
            Err(error) => {
                tracing::warn!(tenant.name = %tenant, cause = %Chain(&error), "which clusters there were cannot be told now");
                None
            }
        }
    }

    fn put(&self, tenant: &TenantName, entries: Vec<Entry>) {
        let dropped = self.0.queue.put(tenant, entries);
        if dropped > 0 {
            self.0.tally.no_room(tenant, dropped);
        }
    }

    /// Tells what became of samples so far.
    pub fn told(&self) -> Told {
        let samplers: Vec<_> = lock(&self.0.samplers).values().cloned().collect();
        let live = samplers.iter().map(|sampler| lock(sampler).live()).sum();
        self.0.tally.told(self.0.queue.len(), live)
    }
}

#[cfg(test)]
mod tests;
