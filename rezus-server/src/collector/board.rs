//! What was seen of all tenants, in memory only.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::observed::{Incarnation, Incarnations, Picture, Reading, Source};
use tokio::sync::{Notify, broadcast};

/// How many turns whoever records them may lag behind.
const LAG: usize = 64;

/// The newest news of each tenant. Clones share it.
#[derive(Clone, Debug)]
pub struct Board(Arc<Inner>);

/// One turn of reading, as it comes in.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Of whom.
    pub tenant: TenantName,
    /// What was read.
    pub source: Source,
    /// What it gave.
    pub reading: Arc<Reading>,
}

#[derive(Debug)]
struct Inner {
    held: Mutex<Held>,
    news: Notify,
    turns: broadcast::Sender<Turn>,
}

#[derive(Debug, Default)]
struct Held {
    pictures: HashMap<TenantName, Arc<Picture>>,
    /// Who is not to be observed.
    off: BTreeSet<TenantName>,
    beaten_at: Option<Timestamp>,
    /// Of whom there is news that nobody fetched yet.
    fresh: BTreeSet<TenantName>,
}

impl Default for Board {
    fn default() -> Self {
        let (turns, _) = broadcast::channel(LAG);
        Self(Arc::new(Inner { held: Mutex::default(), news: Notify::new(), turns }))
    }
}

impl Board {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whose news a reading is, which was taken from servers that this authority stands for. What was known of another
    /// cluster is forgotten; what may be another one's is made none.
    pub fn recognize(
        &self,
        tenant: &TenantName,
        source: Source,
        reading: &mut Reading,
        authority: Option<&str>,
    ) -> Incarnation {
        let mut held = self.held();
        let picture = held.pictures.entry(tenant.clone()).or_default();
        Arc::make_mut(picture).recognize(source, reading, authority).clone()
    }

    /// Says which clusters a tenant had until it is observed.
    pub fn had(&self, tenant: &TenantName, incarnations: Incarnations) {
        if let Some(picture) = self.held().pictures.get_mut(tenant) {
            Arc::make_mut(picture).incarnations = incarnations;
        }
    }

    /// Says that a tenant has nothing that is read so, and no turn of it is to be waited for.
    pub fn has_none(&self, tenant: &TenantName, source: Source) {
        let mut held = self.held();
        let Some(picture) = held.pictures.get_mut(tenant).filter(|picture| picture.awaited.contains(&source))
        else {
            return;
        };
        Arc::make_mut(picture).awaited.remove(&source);
        held.fresh.insert(tenant.clone());
        drop(held);
        self.0.news.notify_one();
    }

    /// Takes in what a turn of reading gave.
    pub fn take(&self, tenant: &TenantName, source: Source, reading: Reading) {
        if self.0.turns.receiver_count() > 0 {
            let turn = Turn { tenant: tenant.clone(), source, reading: Arc::new(reading.clone()) };
            // Whoever listened may be gone by now.
            drop(self.0.turns.send(turn));
        }
        let mut held = self.held();
        let picture = held.pictures.entry(tenant.clone()).or_default();
        Arc::make_mut(picture).take(source, reading);
        held.fresh.insert(tenant.clone());
        drop(held);
        self.0.news.notify_one();
    }

    /// Says that the collector lives.
    pub fn beat(&self, now: Timestamp) {
        self.held().beaten_at = Some(now);
    }

    /// When the collector last said that it lives.
    pub fn beaten_at(&self) -> Option<Timestamp> {
        self.held().beaten_at
    }

    /// What is known of a tenant; nothing where it is not observed.
    pub fn picture(&self, tenant: &TenantName) -> Option<Arc<Picture>> {
        self.held().pictures.get(tenant).cloned()
    }

    /// Tells whether a tenant is not to be observed.
    pub fn is_off(&self, tenant: &TenantName) -> bool {
        self.held().off.contains(tenant)
    }

    /// All that is known.
    pub fn pictures(&self) -> Vec<(TenantName, Arc<Picture>)> {
        let of = |(tenant, picture): (&TenantName, &Arc<Picture>)| (tenant.clone(), Arc::clone(picture));
        self.held().pictures.iter().map(of).collect()
    }

    /// Says who is to be observed, by these sources, and who is not. What is known of others is forgotten. Of whoever is to be,
    /// it is known that nothing is known yet.
    pub fn set(&self, on: &BTreeSet<TenantName>, off: BTreeSet<TenantName>, sources: &BTreeSet<Source>) {
        let mut held = self.held();
        for tenant in on {
            let begun = || Arc::new(Picture { awaited: sources.clone(), ..Picture::default() });
            held.pictures.entry(tenant.clone()).or_insert_with(begun);
        }
        let mut changed: BTreeSet<TenantName> =
            held.pictures.keys().filter(|tenant| !on.contains(*tenant)).cloned().collect();
        changed.extend(off.symmetric_difference(&held.off).cloned());
        for tenant in &changed {
            if !on.contains(tenant) {
                held.pictures.remove(tenant);
            }
        }
        held.off = off;
        held.fresh.extend(changed);
        let is_news = !held.fresh.is_empty();
        drop(held);
        if is_news {
            self.0.news.notify_one();
        }
    }

    /// Says that a tenant declares something else: what was observed has to be put beside that.
    pub fn stir(&self, tenant: &TenantName) {
        let mut held = self.held();
        if held.pictures.contains_key(tenant) || held.off.contains(tenant) {
            held.fresh.insert(tenant.clone());
            drop(held);
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

    /// All turns from now on, of all tenants.
    pub fn turns(&self) -> broadcast::Receiver<Turn> {
        self.0.turns.subscribe()
    }
}
