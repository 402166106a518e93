//! Runs, settings and uploaded configurations in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::runs::store::{RunStore, RunStoreError};
use rezus_core::runs::workspace::{ConfigurationSource, TenantSettings};
use rezus_core::runs::{RunName, RunRecord};

use super::{Fault, InjectedFault};

/// A [`RunStore`] in memory that fails on demand. A clone is another handle of the same storage.
#[derive(Clone, Default)]
pub struct FakeRunStore(Arc<Mutex<Storage>>);

#[derive(Default)]
struct Storage {
    runs: Vec<RunRecord>,
    settings: BTreeMap<TenantName, TenantSettings>,
    archives: BTreeMap<String, Bytes>,
    faults: Vec<Fault>,
}

impl FakeRunStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the next read or write fail.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.push(fault);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Storage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, read: impl FnOnce(&Storage) -> T) -> Result<T, RunStoreError> {
        let mut storage = self.lock();
        take(&mut storage.faults, Fault::Read)?;
        Ok(read(&storage))
    }

    fn write<T>(&self, write: impl FnOnce(&mut Storage) -> T) -> Result<T, RunStoreError> {
        let mut storage = self.lock();
        take(&mut storage.faults, Fault::BeforeWrite)?;
        let written = write(&mut storage);
        take(&mut storage.faults, Fault::AfterWrite)?;
        Ok(written)
    }
}

/// Fails if such a fault was injected.
fn take(faults: &mut Vec<Fault>, fault: Fault) -> Result<(), RunStoreError> {
    match faults.iter().position(|injected| *injected == fault) {
        Some(place) => {
            faults.remove(place);
            Err(RunStoreError::Unavailable { source: Box::new(InjectedFault(fault)) })
        }
        None => Ok(()),
    }
}

impl std::fmt::Debug for FakeRunStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeRunStore").finish_non_exhaustive()
    }
}

fn is(run: &RunRecord, tenant: &TenantName, name: &RunName) -> bool {
    run.tenant() == tenant && run.facts().name == *name
}

impl Storage {
    fn place(&self, tenant: &TenantName, name: &RunName) -> Option<usize> {
        self.runs.iter().position(|run| is(run, tenant, name))
    }

    fn forget_unnamed_archives(&mut self) {
        let sources = self.settings.values().filter_map(|settings| settings.workspace.as_ref());
        let named: Vec<&ConfigurationSource> = sources.map(|workspace| &workspace.source).collect();
        self.archives.retain(|digest, _| named.contains(&&ConfigurationSource::Archive(digest.clone())));
    }
}

#[async_trait]
impl RunStore for FakeRunStore {
    async fn add(&self, run: &RunRecord) -> Result<bool, RunStoreError> {
        self.write(|storage| {
            let is_new = storage.place(run.tenant(), &run.facts().name).is_none();
            if is_new {
                storage.runs.push(run.clone());
            }
            is_new
        })
    }

    async fn put(&self, run: &RunRecord) -> Result<bool, RunStoreError> {
        self.write(|storage| {
            let place = storage.place(run.tenant(), &run.facts().name);
            if let Some(place) = place {
                storage.runs[place] = run.clone();
            }
            place.is_some()
        })
    }

    async fn runs(&self, tenant: Option<&TenantName>) -> Result<Vec<RunRecord>, RunStoreError> {
        let wanted = |run: &&RunRecord| tenant.is_none_or(|tenant| run.tenant() == tenant);
        self.read(|storage| storage.runs.iter().filter(wanted).cloned().collect())
    }

    async fn run(&self, tenant: &TenantName, name: &RunName) -> Result<Option<RunRecord>, RunStoreError> {
        self.read(|storage| storage.place(tenant, name).map(|place| storage.runs[place].clone()))
    }

    async fn unended(&self) -> Result<Vec<RunRecord>, RunStoreError> {
        self.read(|storage| storage.runs.iter().filter(|run| !run.phase().is_end()).cloned().collect())
    }

    async fn remove(&self, tenant: &TenantName, name: &RunName) -> Result<bool, RunStoreError> {
        self.write(|storage| {
            let place = storage.place(tenant, name);
            drop(place.map(|place| storage.runs.remove(place)));
            place.is_some()
        })
    }

    async fn settings(&self, tenant: &TenantName) -> Result<TenantSettings, RunStoreError> {
        self.read(|storage| storage.settings.get(tenant).cloned().unwrap_or_default())
    }

    async fn all_settings(&self) -> Result<Vec<(TenantName, TenantSettings)>, RunStoreError> {
        self.read(|storage| {
            storage.settings.iter().map(|(tenant, settings)| (tenant.clone(), settings.clone())).collect()
        })
    }

    async fn set_settings(
        &self,
        tenant: &TenantName,
        settings: &TenantSettings,
        archive: Option<(String, Bytes)>,
    ) -> Result<(), RunStoreError> {
        self.write(|storage| {
            if *settings == TenantSettings::default() {
                storage.settings.remove(tenant);
            } else {
                storage.settings.insert(tenant.clone(), settings.clone());
            }
            storage.archives.extend(archive);
            storage.forget_unnamed_archives();
        })
    }

    async fn archive(&self, digest: &str) -> Result<Option<Bytes>, RunStoreError> {
        self.read(|storage| storage.archives.get(digest).cloned())
    }

    async fn remove_tenant(&self, tenant: &TenantName) -> Result<Vec<RunName>, RunStoreError> {
        self.write(|storage| {
            let (gone, left) =
                std::mem::take(&mut storage.runs).into_iter().partition(|run| run.tenant() == tenant);
            storage.runs = left;
            storage.settings.remove(tenant);
            storage.forget_unnamed_archives();
            let gone: Vec<RunRecord> = gone;
            gone.into_iter().map(|run| run.facts().name.clone()).collect()
        })
    }
}
