//! What was seen of all tenants, in memory only.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rezus_core::base::TenantName;
use rezus_core::observed::{Picture, Reading, Source};
use tokio::sync::Notify;

/// The newest news of each tenant. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    held: Mutex<Held>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Held {
    pictures: HashMap<TenantName, Arc<Picture>>,
    /// Of whom there is news that nobody fetched yet.
    fresh: BTreeSet<TenantName>,
}

impl Board {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a turn of reading gave.
    pub fn take(&self, tenant: &TenantName, source: Source, reading: Reading) {
        let mut held = self.held();
        let picture = held.pictures.entry(tenant.clone()).or_default();
        Arc::make_mut(picture).take(source, reading);
        held.fresh.insert(tenant.clone());
        drop(held);
        self.0.news.notify_one();
    }

    /// What is known of a tenant; nothing where it is not observed, or nothing was tried yet.
    pub fn picture(&self, tenant: &TenantName) -> Option<Arc<Picture>> {
        self.held().pictures.get(tenant).cloned()
    }

    /// All that is known.
    pub fn pictures(&self) -> Vec<(TenantName, Arc<Picture>)> {
        let of = |(tenant, picture): (&TenantName, &Arc<Picture>)| (tenant.clone(), Arc::clone(picture));
        self.held().pictures.iter().map(of).collect()
    }

    /// Forgets whoever is not wanted.
    pub fn retain(&self, wanted: &BTreeSet<TenantName>) {
        let mut held = self.held();
        let gone: Vec<_> = held.pictures.keys().filter(|tenant| !wanted.contains(*tenant)).cloned().collect();
        for tenant in gone {
            held.pictures.remove(&tenant);
            held.fresh.insert(tenant);
            self.0.news.notify_one();
        }
    }

    /// Takes the names of whom there is news.
    pub fn fresh(&self) -> BTreeSet<TenantName> {
        std::mem::take(&mut self.held().fresh)
    }

    /// Returns when there is news.
    pub async fn news(&self) {
        self.0.news.notified().await;
    }
}
