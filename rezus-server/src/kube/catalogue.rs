//! Keeps what is shown up to date with the tenants' states: never older than what was acknowledged before one asks.

mod render;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rezus_core::base::{Clock, TenantName, Timestamp};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::projector::{Declared, Projector};
use rezus_core::declared::reader::{ReadError, StateReader};
use rezus_core::declared::store::{StateStore, StoreError, TenantRecord};
use tokio::sync::{Notify, OnceCell};

use super::credentials::{self, Validity};
use super::hub::{Hub, Part};
use super::kinds::{KindInfo, MACHINE, NODE_GROUP, PROVIDER};
use super::object::Condition;
use super::show;
use crate::error::Chain;
pub(super) use render::drafts;
use render::{Facts, Rendered};

/// How far ahead of the numbers in use the mark is kept: 71 minutes of microseconds. It is written once in as long.
const AHEAD: u64 = 1 << 32;

/// How often everything is looked at, whether anybody said that it changed or not: versions that retention removed.
const LOOK: Duration = Duration::from_mins(5);

/// How many names are remembered, of tenants and of none.
const NAMES: usize = 10_000;

/// What hinders knowing what a tenant's state declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is encrypted.
    Encrypted,
    /// What is kept of it is not what was written.
    Damaged,
}

/// All that is shown, and where it comes from.
#[derive(Clone, Debug)]
pub struct Catalogue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    states: Arc<dyn StateStore>,
    projector: Projector,
    reader: StateReader,
    mark: Arc<dyn VersionMark>,
    clock: Arc<dyn Clock>,
    hub: OnceCell<Hub>,
    /// Up to which resource version the mark is raised.
    reserved: AtomicU64,
    /// What was published of each tenant.
    published: Mutex<HashMap<TenantName, Published>>,
    /// How often something was said to have changed that the tenant's record does not show.
    touched: Mutex<HashMap<TenantName, u64>>,
    providers: Mutex<Option<Mappings>>,
    publishing: tokio::sync::Mutex<()>,
    wake: Notify,
}

/// From what a tenant's objects were made.
#[derive(Clone, Debug)]
struct Published {
    record: TenantRecord,
    touched: u64,
    mappings: Mappings,
    /// The projection; none where nothing is known.
    declared: Option<Weak<Declared>>,
    trouble: Option<Trouble>,
    conditions: Vec<Condition>,
    /// How long the credentials are good that the state holds.
    validity: Vec<Validity>,
}

impl Catalogue {
    /// A catalogue of a store's tenants that shows nothing yet.
    pub fn new(
        states: Arc<dyn StateStore>,
        projector: Projector,
        reader: StateReader,
        mark: Arc<dyn VersionMark>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Inner {
            states,
            projector,
            reader,
            mark,
            clock,
            hub: OnceCell::new(),
            reserved: AtomicU64::new(0),
            published: Mutex::default(),
            touched: Mutex::default(),
            providers: Mutex::default(),
            publishing: tokio::sync::Mutex::new(()),
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

    /// Says that something of a tenant changed which its record does not show: a refusal, a version that was removed.
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
        self.0.bring(tenant, record).await
    }

    /// Brings all objects up to date, and tells of which tenants they are not known.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where they cannot be read now.
    pub async fn all(&self) -> Result<Vec<(TenantName, Trouble)>, ReadError> {
        let Inner { states, published, .. } = &*self.0;
        self.0.publish_providers().await?;
        let records = states.tenants().await?;
        let known: BTreeSet<_> = records.iter().map(|record| record.name.clone()).collect();
        let gone: Vec<_> = lock(published).keys().filter(|name| !known.contains(*name)).cloned().collect();
        for tenant in gone {
            self.0.refresh(&tenant).await?;
        }
        let mut troubles = Vec::new();
        for record in records {
            let name = record.name.clone();
            if let Some(trouble) = self.0.bring(&name, Some(record)).await? {
                troubles.push((name, trouble));
            }
        }
        Ok(troubles)
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
        loop {
            if let Err(error) = self.all().await {
                tracing::warn!(cause = %Chain(&error), "what is shown may be out of date: it will be looked at again");
            }
            let looked = tokio::time::timeout(LOOK, self.0.wake.notified()).await;
            if looked.is_err() {
                let tenants: Vec<_> = lock(&self.0.published).keys().cloned().collect();
                for tenant in tenants {
                    *lock(&self.0.touched).entry(tenant).or_default() += 1;
                }
            }
        }
    }
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

    /// Shows objects of one kind, while no one else publishes.
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
        *lock(&self.providers) = Some(mappings);
        Ok(())
    }

    fn touched(&self, tenant: &TenantName) -> u64 {
        lock(&self.touched).get(tenant).copied().unwrap_or(0)
    }

    /// Brings a tenant's objects up to date where they are not, given its record.
    async fn bring(
        &self,
        tenant: &TenantName,
        record: Option<TenantRecord>,
    ) -> Result<Option<Trouble>, ReadError> {
        let fresh = {
            let published = lock(&self.published);
            match (published.get(tenant), record) {
                (None, None) => Some(None),
                (Some(published), Some(record)) => (published.record == record
                    && published.touched == self.touched(tenant)
                    && published.mappings.is_same(&self.projector.mappings()))
                .then_some(published.trouble),
                _ => None,
            }
        };
        match fresh {
            Some(trouble) => Ok(trouble),
            None => self.refresh(tenant).await,
        }
    }

    /// Makes a tenant's objects anew and publishes them.
    async fn refresh(&self, tenant: &TenantName) -> Result<Option<Trouble>, ReadError> {
        loop {
            let touched = self.touched(tenant);
            let mappings = self.projector.mappings();
            let Some((record, _)) = self.states.tenant(tenant).await? else {
                let _one = self.publishing.lock().await;
                if self.states.tenant(tenant).await?.is_none() {
                    self.forget(tenant).await?;
                    return Ok(None);
                }
                continue;
            };
            let (declared, trouble) = match self.projector.current(tenant).await {
                Ok(declared) => (Some(declared), None),
                Err(ReadError::NoState(_)) => (None, None),
                Err(ReadError::Encrypted { .. }) => (None, Some(Trouble::Encrypted)),
                Err(ReadError::NoTenant(_)) => continue,
                Err(ReadError::Store(StoreError::Corrupt { .. })) => {
                    tracing::error!(%tenant, "the state is damaged: roll back to a version that is not, or restore a backup");
                    (None, Some(Trouble::Damaged))
                }
                Err(error) => return Err(error),
            };
            let is_of_record = |declared: &Arc<Declared>| Some(&declared.version) == record.head.as_ref();
            if !declared.as_ref().is_none_or(is_of_record) {
                continue;
            }
            let before = lock(&self.published).get(tenant).cloned();
            let remembered = match trouble {
                Some(_) => self.projector.remembered(tenant).await?,
                None => None,
            };
            let is_shown = before.as_ref().is_some_and(|before| shows(before, declared.as_ref(), trouble));
            let validity = match (&before, &declared) {
                (Some(before), _) if is_shown => before.validity.clone(),
                (_, Some(_)) => credentials::validity(&self.reader, tenant).await?,
                (_, None) => Vec::new(),
            };
            let facts = Facts {
                validity: validity.clone(),
                now: self.clock.now(),
                versions: self.states.versions(tenant).await?,
                refusals: self.states.refusals(tenant).await?,
                conditions: before.as_ref().map(|before| before.conditions.clone()).unwrap_or_default(),
                trouble,
                remembered,
                is_shown,
                declared: declared.clone(),
                record: record.clone(),
            };
            let rendered = tokio::task::spawn_blocking(move || facts.render());
            let rendered =
                rendered.await.map_err(|error| StoreError::Unavailable { source: Box::new(error) })?;
            let _one = self.publishing.lock().await;
            if self.states.tenant(tenant).await?.map(|(record, _)| record).as_ref() != Some(&record) {
                continue;
            }
            let conditions = rendered.conditions.clone();
            self.publish_tenant(tenant, rendered).await?;
            let declared = declared.as_ref().map(Arc::downgrade);
            let published = Published { record, touched, mappings, declared, trouble, conditions, validity };
            lock(&self.published).insert(tenant.clone(), published);
            return Ok(trouble);
        }
    }

    async fn publish_tenant(&self, tenant: &TenantName, rendered: Rendered) -> Result<(), StoreError> {
        let name = tenant.as_str();
        for (kind, drafts) in rendered.objects {
            let part = if kind.namespaced { Part::Namespace(name) } else { Part::Name(name) };
            self.publish(kind, part, drafts).await?;
        }
        Ok(())
    }

    /// Shows nothing of a tenant that is no more.
    async fn forget(&self, tenant: &TenantName) -> Result<(), StoreError> {
        let rendered = Rendered::nothing();
        self.publish_tenant(tenant, rendered).await?;
        lock(&self.published).remove(tenant);
        lock(&self.touched).remove(tenant);
        Ok(())
    }
}

/// Tells whether machines and node groups are shown as they are already.
fn shows(before: &Published, declared: Option<&Arc<Declared>>, trouble: Option<Trouble>) -> bool {
    let is_same = |old: &Weak<Declared>, new: &Arc<Declared>| std::ptr::eq(old.as_ptr(), Arc::as_ptr(new));
    before.trouble == trouble
        && match (&before.declared, declared) {
            (Some(old), Some(new)) => is_same(old, new),
            // Nothing is declared, or only remembered: that is quickly shown again.
            _ => false,
        }
}

/// The kinds that a projection fills.
const PROJECTED: [&KindInfo; 2] = [&NODE_GROUP, &MACHINE];
