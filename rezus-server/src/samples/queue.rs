//! Samples that wait to be written. Whoever puts them there never waits.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rezus_core::base::TenantName;
use rezus_core::series::Entry;
use tokio::sync::Notify;

/// A bounded queue. It takes no memory for what is not in it.
#[derive(Debug)]
pub(super) struct Queue {
    held: Mutex<Held>,
    news: Notify,
    room: usize,
}

#[derive(Debug, Default)]
struct Held {
    turns: VecDeque<(TenantName, Vec<Entry>)>,
    len: usize,
    of: HashMap<TenantName, usize>,
}

impl Queue {
    /// One with room for so many samples, half of it for any one tenant.
    pub(super) fn new(room: usize) -> Self {
        Self { held: Mutex::default(), news: Notify::new(), room }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in what there is room for, and tells how many samples there was none for.
    pub(super) fn put(&self, tenant: &TenantName, mut entries: Vec<Entry>) -> usize {
        if entries.is_empty() {
            return 0;
        }
        let mut held = self.held();
        let own = held.of.get(tenant).copied().unwrap_or(0);
        let room = (self.room - held.len).min((self.room / 2).saturating_sub(own));
        let dropped = entries.len().saturating_sub(room);
        entries.truncate(room);
        if !entries.is_empty() {
            held.len += entries.len();
            *held.of.entry(tenant.clone()).or_default() += entries.len();
            held.turns.push_back((tenant.clone(), entries));
            drop(held);
            self.news.notify_one();
        }
        dropped
    }

    /// Takes whole turns out, the oldest first, until there are so many samples at least. Nothing where nothing waits.
    pub(super) fn take(&self, samples: usize) -> Option<Vec<Entry>> {
        let mut held = self.held();
        let (_, mut taken) = held.pop()?;
        while taken.len() < samples
            && let Some((_, mut entries)) = held.pop()
        {
            taken.append(&mut entries);
        }
        Some(taken)
    }

    pub(super) fn len(&self) -> usize {
        self.held().len
    }

    /// Returns when something was put in.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }
}

impl Held {
    fn pop(&mut self) -> Option<(TenantName, Vec<Entry>)> {
        let (tenant, entries) = self.turns.pop_front()?;
        self.len = self.len.saturating_sub(entries.len());
        if let Some(own) = self.of.get_mut(&tenant) {
            *own = own.saturating_sub(entries.len());
            if *own == 0 {
                self.of.remove(&tenant);
            }
        }
        Some((tenant, entries))
    }
}
