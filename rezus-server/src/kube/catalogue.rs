//! Keeps what is shown up to date with the tenants' states: never older than what was acknowledged before one asks.

mod observed;
mod render;
mod runs;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rezus_core::base::{Clock, TenantName, Timestamp};
use rezus_core::client::MachineSpec;
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::projector::Projector;
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::store::{RefusalRecord, StateStore, StoreError, TenantRecord};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, OnceCell};
use tokio::time::Instant;

use super::credentials;
use super::hub::{Hub, Part};
use super::item::Item;
use super::kinds::{EVENT, KindInfo, MACHINE, NODE_GROUP, PROVIDER};
use super::object::Condition;
use super::show;
use crate::error::Chain;
use crate::pulls::{Desk, Standing};
use crate::secrets::Secrets;
pub use observed::Observed;
pub(super) use render::drafts;
use render::{Facts, Known, Rendered, Summary};
pub use runs::RunsShown;

/// How far ahead of the numbers in use the mark is kept: 71 minutes of microseconds. It is written once in as long.
const AHEAD: u64 = 1 << 32;

/// How often everything is looked at, whether anybody said that it changed or not: versions that retention removed.
const LOOK: Duration = Duration::from_mins(5);

/// How many names are remembered, of tenants and of none.
const NAMES: usize = 10_000;

/// What hinders knowing what a tenant's state declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is encrypted, and its plaintext is not known.
    Encrypted(Standing),
    /// What is kept of it is not what was written.
    Damaged,
}

/// Where what is shown comes from.
#[derive(Debug)]
pub struct Means {
    /// Tenants and versions.
    pub states: Arc<dyn StateStore>,
    /// What they declare.
    pub projector: Projector,
    /// With what their clusters are reached.
    pub secrets: Secrets,
    /// Their runs.
    pub runs: RunsShown,
    /// The mark of resource versions.
    pub mark: Arc<dyn VersionMark>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which plaintexts are wanted.
    pub desk: Desk,
    /// What was observed.
    pub observed: Observed,
}

/// All that is shown, and where it comes from.
#[derive(Clone, Debug)]
pub struct Catalogue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    states: Arc<dyn StateStore>,
    projector: Projector,
    secrets: Secrets,
    runs: RunsShown,
    mark: Arc<dyn VersionMark>,
    clock: Arc<dyn Clock>,
    desk: Desk,
    observed: Observed,
    hub: OnceCell<Hub>,
    /// Up to which resource version the mark is raised.
    reserved: AtomicU64,
    /// What was published of each tenant.
    published: Mutex<HashMap<TenantName, Published>>,
    /// How often something was said to have changed that the tenant's record does not show.
    touched: Mutex<HashMap<TenantName, u64>>,
    providers: Mutex<Option<Mappings>>,
    publishing: tokio::sync::Mutex<()>,
    /// Held by whoever makes a tenant's objects: one at a time for each.
    turns: Mutex<HashMap<TenantName, Arc<tokio::sync::Mutex<()>>>>,
    wake: Notify,
}

/// A tenant's objects are not up to date.
struct Stale;

/// From what a tenant's objects were made.
#[derive(Clone, Debug)]
struct Published {
    record: TenantRecord,
    touched: u64,
    mappings: Mappings,
    /// What the state declares as a whole; none where nothing is known.
    summary: Option<Arc<Summary>>,
    trouble: Option<Trouble>,
    conditions: Vec<Condition>,
}

impl Catalogue {
    /// A catalogue of a store's tenants that shows nothing yet.
    pub fn new(means: Means) -> Self {
        let Means { states, projector, secrets, runs, mark, clock, desk, observed } = means;
        Self(Arc::new(Inner {
            states,
            projector,
            secrets,
            runs,
            mark,
            clock,
            desk,
            observed,
            hub: OnceCell::new(),
            reserved: AtomicU64::new(0),
            published: Mutex::default(),
            touched: Mutex::default(),
            providers: Mutex::default(),
            publishing: tokio::sync::Mutex::new(()),
            turns: Mutex::default(),
            wake: Notify::new(),
        }))
    }

    /// What is shown. It is as old as it is: bring it up to date first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where no resource version can be reserved.
    pub async fn hub(&self) -> Result<&Hub, StoreError> {
        self.0.hub().await
    }

    /// Says that something of a tenant changed which its record does not show: a refusal, a version that was removed, a run.
    pub fn touch(&self, tenant: &TenantName) {
        let mut touched = lock(&self.0.touched);
        *touched.entry(tenant.clone()).or_default() += 1;
        if touched.len() > NAMES {
            // Names of no tenant: anybody can make them up.
            let published = lock(&self.0.published);
            touched.retain(|name, _| published.contains_key(name));
        }
        drop(touched);
        self.0.wake.notify_one();
    }

    /// Has everything looked at soon, for those who watch.
    pub fn look(&self) {
        self.0.wake.notify_one();
    }

    /// Brings a tenant's objects up to date, and tells what hinders knowing them.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where they cannot be read now.
    pub async fn tenant(&self, tenant: &TenantName) -> Result<Option<Trouble>, ReadError> {
        self.0.publish_providers().await?;
        let record = self.0.states.tenant(tenant).await?.map(|(record, _)| record);
        let trouble = self.0.bring(tenant, record).await?;
        if trouble.is_some() {
            // Somebody asks for this one: it goes before those that nobody asks for.
            self.0.desk.hurry(tenant);
        }
        Ok(trouble)
    }

    /// Brings the objects of all tenants up to date that are `wanted`, and tells of which of them they are not known.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where some of them cannot be read now. The others are up to date all the same.
    pub async fn all(
        &self,
        wanted: impl Fn(&TenantName) -> bool + Sync,
    ) -> Result<Vec<(TenantName, Trouble)>, ReadError> {
        let Inner { states, published, .. } = &*self.0;
        self.0.publish_providers().await?;
        let records = states.tenants().await?;
        let known: BTreeSet<_> = records.iter().map(|record| record.name.clone()).collect();
        let gone: Vec<_> = lock(published).keys().filter(|name| !known.contains(*name)).cloned().collect();
        for tenant in gone {
            self.0.bring(&tenant, None).await?;
        }
        let (mut troubles, mut failure) = (Vec::new(), None);
        for record in records.into_iter().filter(|record| wanted(&record.name)) {
            let name = record.name.clone();
            match self.0.bring(&name, Some(record)).await {
                Ok(trouble) => troubles.extend(trouble.map(|trouble| (name, trouble))),
                // It would be no other with the next one, and each waits for its turn.
                Err(busy @ ReadError::Busy(_)) => return Err(busy),
                Err(error) => {
                    tracing::debug!(tenant.name = %name, cause = %Chain(&error), "a tenant cannot be read now");
                    failure = failure.or(Some(error));
                }
            }
        }
        failure.map_or(Ok(troubles), Err)
    }

    /// The machines that are shown of a tenant, by name: what its newest state that could be read declares.
    pub async fn machines(&self, tenant: &TenantName) -> Vec<(String, MachineSpec)> {
        let Ok(hub) = self.0.hub().await else { return Vec::new() };
        let items = hub.snapshot(&MACHINE).items;
        of_namespace(&items, tenant.as_str())
            .filter_map(|item| Some((item.name().to_owned(), spec(item)?)))
            .collect()
    }

    /// Brings the mappings up to date.
    ///
    /// # Errors
    ///
    /// [`StoreError`] where no resource version can be reserved.
    pub async fn providers(&self) -> Result<(), StoreError> {
        self.0.publish_providers().await
    }

    /// Publishes what changes as it changes, for those who watch, until the task is ended.
    pub async fn run(self) {
        let mut look = Instant::now() + LOOK;
        loop {
            if let Err(error) = self.all(|_| true).await {
                tracing::warn!(cause = %Chain(&error), "what is shown may be out of date: it will be looked at again");
            }
            drop(tokio::time::timeout_at(look, self.0.wake.notified()).await);
            // However often it was woken meanwhile: somewhere somebody always writes.
            if Instant::now() >= look {
                look = Instant::now() + LOOK;
                let tenants: Vec<_> = lock(&self.0.published).keys().cloned().collect();
                for tenant in tenants {
                    *lock(&self.0.touched).entry(tenant).or_default() += 1;
                }
            }
        }
    }
}

/// The objects of a namespace, of a list that is sorted.
fn of_namespace<'i>(items: &'i [Arc<Item>], namespace: &str) -> impl Iterator<Item = &'i Arc<Item>> {
    let from = items.partition_point(|item| item.namespace() < namespace);
    let to = items.partition_point(|item| item.namespace() <= namespace);
    items.get(from..to).unwrap_or_default().iter()
}

/// What is declared of an object.
fn spec<T: DeserializeOwned>(item: &Item) -> Option<T> {
    serde_json::from_str(item.shown().spec()?.get()).ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Microseconds since 1970.
fn micros(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0).saturating_mul(1_000)
}

impl Inner {
    async fn hub(&self) -> Result<&Hub, StoreError> {
        self.hub
            .get_or_try_init(|| async {
                let now = micros(self.clock.now());
                let mark = match self.mark.raise(now).await {
                    Ok(mark) => mark,
                    // Reading needs no place to write: the clock alone is mostly right.
                    Err(StoreError::Unavailable { source }) => {
                        tracing::warn!(cause = %Chain(&*source), "the mark of resource versions cannot be raised: after a restart they may repeat");
                        0
                    }
                    Err(error) => return Err(error),
                };
                let start = mark.max(now);
                self.reserve(start).await;
                Ok(Hub::new(start))
            })
            .await
    }

    /// Sees to it that resource versions up to far beyond `newest` are this server's.
    async fn reserve(&self, newest: u64) {
        if newest.saturating_add(AHEAD / 2) <= self.reserved.load(Ordering::Acquire) {
            return;
        }
        let to = newest.saturating_add(AHEAD);
        if let Err(error) = self.mark.raise(to).await {
            tracing::warn!(cause = %Chain(&error), "the mark of resource versions cannot be raised now");
        } else {
            self.reserved.fetch_max(to, Ordering::AcqRel);
        }
    }

    /// Shows objects of one kind, while no one else publishes. Those who watch are told when all is shown.
    async fn publish(
        &self,
        kind: &'static KindInfo,
        part: Part<'_>,
        drafts: Vec<super::item::Draft>,
    ) -> Result<(), StoreError> {
        let (hub, now) = (self.hub().await?, micros(self.clock.now()));
        self.reserve(hub.newest().max(now)).await;
        hub.publish(kind, part, drafts, now);
        Ok(())
    }

    async fn publish_providers(&self) -> Result<(), StoreError> {
        let mappings = self.projector.mappings();
        let is_shown =
            |shown: &Option<Mappings>| shown.as_ref().is_some_and(|shown| shown.is_same(&mappings));
        if is_shown(&lock(&self.providers)) {
            return Ok(());
        }
        let _one = self.publishing.lock().await;
        if is_shown(&lock(&self.providers)) {
            return Ok(());
        }
        let now = self.clock.now();
        let drafts = mappings.providers().iter().map(|provider| show::provider(provider, now)).collect();
        self.publish(&PROVIDER, Part::Whole, drafts).await?;
        self.hub().await?.announce();
        *lock(&self.providers) = Some(mappings);
        Ok(())
    }

    fn touched(&self, tenant: &TenantName) -> u64 {
        lock(&self.touched).get(tenant).copied().unwrap_or(0)
    }

    /// What is known of a tenant with this record, if its objects are up to date.
    fn fresh(&self, tenant: &TenantName, record: Option<&TenantRecord>) -> Result<Option<Trouble>, Stale> {
        // Before the other lock: `touch` takes them in this order.
        let touched = self.touched(tenant);
        let published = lock(&self.published);
        match (published.get(tenant), record) {
            (None, None) => Ok(None),
            (Some(published), Some(record))
                if published.record == *record
                    && published.touched == touched
                    && published.mappings.is_same(&self.projector.mappings()) =>
            {
                Ok(published.trouble.clone())
            }
            _ => Err(Stale),
        }
    }

    /// Brings a tenant's objects up to date where they are not, given its record.
    async fn bring(
        &self,
        tenant: &TenantName,
        record: Option<TenantRecord>,
    ) -> Result<Option<Trouble>, ReadError> {
        if let Ok(trouble) = self.fresh(tenant, record.as_ref()) {
            return Ok(trouble);
        }
        // Whoever asks meanwhile finds what the first one made: a large state is not in memory once for each of them. And
        // nobody publishes what somebody else has replaced since.
        let turn = Arc::clone(lock(&self.turns).entry(tenant.clone()).or_default());
        let _turn = turn.lock().await;
        let touched = self.touched(tenant);
        let record = self.states.tenant(tenant).await?.map(|(record, _)| record);
        match (self.fresh(tenant, record.as_ref()), record) {
            (Ok(trouble), _) => Ok(trouble),
            (Err(Stale), Some(record)) => self.refresh(record, touched).await,
            (Err(Stale), None) => {
                self.secrets.forget(tenant);
                self.observed.forget(tenant);
                let _one = self.publishing.lock().await;
                self.publish_tenant(tenant, Rendered::nothing()).await?;
                lock(&self.published).remove(tenant);
                lock(&self.touched).remove(tenant);
                Ok(None)
            }
        }
    }

    /// Makes a tenant's objects anew and publishes them. What changes while it does is for the next turn.
    async fn refresh(&self, record: TenantRecord, touched: u64) -> Result<Option<Trouble>, ReadError> {
        let tenant = &record.name;
        let mappings = self.projector.mappings();
        let before = lock(&self.published).get(tenant).cloned();
        let same = before.as_ref().filter(|before| {
            before.summary.is_some()
                && before.record.head == record.head
                && before.mappings.is_same(&mappings)
        });
        let known = match same {
            Some(before) => Known { summary: before.summary.clone(), ..Known::default() },
            None => self.know(tenant).await?,
        };
        let (summary, trouble) = (known.summary.clone(), known.trouble.clone());
        let is_talos = summary.as_ref().is_some_and(|summary| summary.is_talos());
        // Each time: files change by themselves. Of a state they are held, and those of an earlier one are dropped.
        let validity = credentials::validity(&self.secrets, tenant, is_talos).await?;
        let (runs, labels) = self.runs.of(tenant).await?;
        let facts = Facts {
            is_shown: same.is_some(),
            known,
            validity,
            now: self.clock.now(),
            versions: self.states.versions(tenant).await?,
            refusals: self.refusals(tenant).await?,
            runs,
            labels,
            conditions: before.map(|before| before.conditions).unwrap_or_default(),
            record: record.clone(),
        };
        let rendered = tokio::task::spawn_blocking(move || facts.render());
        let rendered = rendered.await.map_err(|error| StoreError::Unavailable { source: Box::new(error) })?;
        let _one = self.publishing.lock().await;
        let conditions = rendered.conditions.clone();
        self.publish_tenant(tenant, rendered).await?;
        // All that is asked for is written out now; the rest is projected anew where somebody wants it.
        self.projector.let_go(tenant);
        let name = tenant.clone();
        let published =
            Published { record, touched, mappings, summary, trouble: trouble.clone(), conditions };
        lock(&self.published).insert(name, published);
        Ok(trouble)
    }

    /// A tenant's refusals: none where they are damaged, which is no reason to show nothing of it.
    async fn refusals(&self, tenant: &TenantName) -> Result<Vec<RefusalRecord>, StoreError> {
        match self.states.refusals(tenant).await {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(%tenant, cause = %Chain(&error), "the refusals that are kept are damaged: they are not shown");
                Ok(Vec::new())
            }
            found => found,
        }
    }

    /// Reads what a tenant's current state declares; its record may be older by now.
    async fn know(&self, tenant: &TenantName) -> Result<Known, ReadError> {
        let trouble = match self.projector.current(tenant).await {
            Ok(declared) => {
                let summary = Some(Arc::new(Summary::of(&declared)));
                return Ok(Known { declared: Some(declared), summary, ..Known::default() });
            }
            Err(ReadError::NoState(_) | ReadError::NoTenant(_)) => return Ok(Known::default()),
            Err(ReadError::Encrypted { version, .. }) => {
                // Without a key there is nothing to wait for.
                let has_key = self.runs.decrypts(tenant).await;
                let ask = || self.desk.ask(tenant, version, self.clock.now());
                Trouble::Encrypted(if has_key { ask() } else { Standing::NoKey })
            }
            Err(ReadError::Store(StoreError::Corrupt { .. })) => {
                tracing::error!(%tenant, "the state is damaged: roll back to a version that is not, or restore a backup");
                Trouble::Damaged
            }
            Err(error) => return Err(error),
        };
        let remembered = self.projector.remembered(tenant).await?;
        Ok(Known { trouble: Some(trouble), remembered, ..Known::default() })
    }

    async fn publish_tenant(&self, tenant: &TenantName, rendered: Rendered) -> Result<(), StoreError> {
        let name = tenant.as_str();
        let mut outcome = Ok(());
        for (kind, mut drafts) in rendered.objects {
            if kind.is(&EVENT) {
                drafts.extend(self.observed.events(tenant));
            }
            let part = if kind.namespaced { Part::Namespace(name) } else { Part::Name(name) };
            outcome = self.publish(kind, part, drafts).await;
            if outcome.is_err() {
                break;
            }
        }
        self.hub().await?.announce();
        self.observed.stir(tenant);
        outcome
    }
}

/// The kinds that a projection fills.
const PROJECTED: [&KindInfo; 2] = [&NODE_GROUP, &MACHINE];
