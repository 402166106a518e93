//! The port behind who objects are over time.

use std::fmt;

use async_trait::async_trait;

use super::StoreError;
use crate::base::TenantName;
use crate::declared::VersionNumber;
use crate::declared::projection::{Lifetime, ResourceKind};

/// Which version a tenant's object history was carried on to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryHead {
    /// The version.
    pub version: VersionNumber,
    /// SHA-256 of its bytes.
    pub sha256: [u8; 32],
}

/// One object's entry in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its kind.
    pub kind: ResourceKind,
    /// Its object name; empty for the cluster.
    pub name: String,
    /// Who it is, since when.
    pub lifetime: Lifetime,
}

/// Where the table of object history is kept: small, without any value of a state, and no loss but of precision: objects
/// then count as having come with the version at hand.
///
/// *Contract.* [`HistoryStore::put_history`] swaps all of a tenant's table at once, if it is still the one that the new
/// one was made of: who comes late puts back nothing. A tenant that is removed from a store that is both loses it.
///
/// The suite: `rezus_testkit::history_store_contract!`.
#[async_trait]
pub trait HistoryStore: fmt::Debug + Send + Sync + 'static {
    /// Returns a tenant's table, sorted by kind and name, and what it was carried on to; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be read.
    async fn history(
        &self,
        tenant: &TenantName,
    ) -> Result<Option<(HistoryHead, Vec<HistoryEntry>)>, StoreError>;

    /// Replaces a tenant's table that was carried on to `before`, `None` where there was none. Returns false, and
    /// changes nothing, where another table is there.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be written.
    async fn put_history(
        &self,
        tenant: &TenantName,
        before: Option<HistoryHead>,
        head: HistoryHead,
        entries: Vec<HistoryEntry>,
    ) -> Result<bool, StoreError>;
}
