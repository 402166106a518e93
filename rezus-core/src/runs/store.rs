//! The port that keeps runs, what they are made with, and uploaded configurations.

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;

use super::workspace::TenantSettings;
use super::{RunName, RunRecord};
use crate::base::TenantName;

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum RunStoreError {
    /// What was read is not what was written.
    #[error("{what} is damaged")]
    Corrupt {
        /// What, in words.
        what: &'static str,
        /// The adapter's own error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The store cannot be used now. A write may or may not have taken effect.
    #[error("the store cannot be used")]
    Unavailable {
        /// The adapter's own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Where runs, tenants' settings and uploaded configurations are kept.
///
/// *Contract.* Each change is atomic and durable before it returns `Ok`, and seen by every read that begins afterwards.
/// One process writes: there is no compare-and-swap.
///
/// *Cancellation.* A dropped call has happened wholly or not at all.
///
/// The suite: `rezus_testkit::run_store_contract!`.
#[async_trait]
pub trait RunStore: fmt::Debug + Send + Sync + 'static {
    /// Adds a run behind all others. Returns false, and changes nothing, if its tenant has one of this name.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn add(&self, run: &RunRecord) -> Result<bool, RunStoreError>;

    /// Replaces a run by what it has become; its place among the others stays. Returns false if there is none.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn put(&self, run: &RunRecord) -> Result<bool, RunStoreError>;

    /// Returns a tenant's runs in the order they were added, or those of all tenants.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn runs(&self, tenant: Option<&TenantName>) -> Result<Vec<RunRecord>, RunStoreError>;

    /// Returns one run.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn run(&self, tenant: &TenantName, name: &RunName) -> Result<Option<RunRecord>, RunStoreError>;

    /// Returns all runs that have not ended, in the order they were added.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn unended(&self) -> Result<Vec<RunRecord>, RunStoreError>;

    /// Removes a run. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn remove(&self, tenant: &TenantName, name: &RunName) -> Result<bool, RunStoreError>;

    /// Returns what is set of a tenant: nothing where nothing was.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn settings(&self, tenant: &TenantName) -> Result<TenantSettings, RunStoreError>;

    /// Returns what is set of all tenants of which something is, sorted by name.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn all_settings(&self) -> Result<Vec<(TenantName, TenantSettings)>, RunStoreError>;

    /// Replaces what is set of a tenant, and keeps an uploaded configuration by its digest with it. Configurations that
    /// no tenant's settings name any more are forgotten.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn set_settings(
        &self,
        tenant: &TenantName,
        settings: &TenantSettings,
        archive: Option<(String, Bytes)>,
    ) -> Result<(), RunStoreError>;

    /// Returns an uploaded configuration.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn archive(&self, digest: &str) -> Result<Option<Bytes>, RunStoreError>;

    /// Removes a tenant's runs and settings. Returns the names of its runs.
    ///
    /// # Errors
    ///
    /// [`RunStoreError`].
    async fn remove_tenant(&self, tenant: &TenantName) -> Result<Vec<RunName>, RunStoreError>;
}
