//! What is set of tenants: in the configuration file, and by operators.

pub mod archive;
pub mod names;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::runs::TenantKey;
use rezus_core::runs::store::{RunStore, RunStoreError};
use rezus_core::runs::workspace::TenantSettings;

use crate::config::TenantConfig;

/// What is set of all tenants. Clones share it.
#[derive(Clone, Debug)]
pub struct Workspaces {
    store: Arc<dyn RunStore>,
    /// Of the configuration file: these win over what was set otherwise.
    fixed: Arc<BTreeMap<TenantName, TenantConfig>>,
    /// Held while settings are read, changed and written: the store compares nothing.
    changing: Arc<tokio::sync::Mutex<()>>,
}

impl Workspaces {
    /// Those in a store, and those of the configuration file.
    pub fn new(store: Arc<dyn RunStore>, config: &BTreeMap<TenantKey, TenantConfig>) -> Self {
        let fixed = config.iter().map(|(tenant, config)| (tenant.0.clone(), config.clone()));
        Self { store, fixed: Arc::new(fixed.collect()), changing: Arc::default() }
    }

    /// Tells whether the configuration file says what a tenant's runs are made with.
    pub fn is_fixed(&self, tenant: &TenantName) -> bool {
        self.fixed.get(tenant).is_some_and(|fixed| fixed.workspace.is_some())
    }

    /// Returns what the configuration file says of a tenant.
    pub fn fixed(&self, tenant: &TenantName) -> Option<&TenantConfig> {
        self.fixed.get(tenant)
    }

    /// Returns what is set of a tenant.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    pub async fn of(&self, tenant: &TenantName) -> Result<TenantSettings, RunStoreError> {
        let stored = self.store.settings(tenant).await?;
        Ok(self.in_force(tenant, stored))
    }

    /// Returns what is set of all tenants of which something is.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    pub async fn all(&self) -> Result<BTreeMap<TenantName, TenantSettings>, RunStoreError> {
        let mut all: BTreeMap<_, _> = self.store.all_settings().await?.into_iter().collect();
        for tenant in self.fixed.keys() {
            let stored = all.remove(tenant).unwrap_or_default();
            all.insert(tenant.clone(), self.in_force(tenant, stored));
        }
        Ok(all)
    }

    fn in_force(&self, tenant: &TenantName, stored: TenantSettings) -> TenantSettings {
        let Some(fixed) = self.fixed.get(tenant).cloned() else {
            return stored;
        };
        TenantSettings {
            workspace: fixed.workspace.or(stored.workspace),
            kubeconfig_file: fixed.kubeconfig_file.or(stored.kubeconfig_file),
            talosconfig_file: fixed.talosconfig_file.or(stored.talosconfig_file),
            ..stored
        }
    }

    /// Changes what was set of a tenant by operators, and keeps an archive with it. An error changes nothing.
    ///
    /// # Errors
    ///
    /// That of the change; [`RunStoreError`].
    pub async fn change<E: From<RunStoreError>>(
        &self,
        tenant: &TenantName,
        archive: Option<(String, Bytes)>,
        change: impl FnOnce(&mut TenantSettings) -> Result<(), E> + Send,
    ) -> Result<(), E> {
        let _one = self.changing.lock().await;
        let mut settings = self.store.settings(tenant).await?;
        change(&mut settings)?;
        Ok(self.store.set_settings(tenant, &settings, archive).await?)
    }
}
