//! The fake of both stores of the spec plane.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::index::{IndexHead, IndexRow};
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::store::{
    Change, CommitError, HistoryEntry, HistoryHead, HistoryStore, IndexStore, LockTrace, RefusalRecord,
    Revision, Space, StateStore, StoreError, TenantRecord, VersionMeta,
};
use rezus_core::declared::{LockId, ResourceAddress, VersionNumber};
use tokio::task::yield_now;

use super::rules;
use super::storage::{Fault, Storage};

/// [`StateStore`] and [`IndexStore`] in memory.
///
/// - A change that breaks a rule of [`Change`] panics, and says which: a version's number that does not follow the
///   last, a head that is not the version appended, a lock that vanishes without being released, and so on.
/// - Every call yields to other tasks before and after its one step. On a runtime of one thread, what happens is the
///   same every time.
/// - It fails on demand: [`FakeStateStore::fail_next`].
///
/// Clones are handles on the same storage: a second client, or the same one after a restart.
#[derive(Clone, Default)]
pub struct FakeStateStore {
    storage: Arc<Mutex<Storage>>,
}

impl FakeStateStore {
    /// Makes an empty store whose commits take the index along.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store whose commits leave the index behind, as a store does that cannot write both at once; only
    /// [`IndexStore::replace`] and [`IndexStore::drop_index`] change it, and the removal of its tenant drops it.
    pub fn with_lagging_index() -> Self {
        let store = Self::default();
        store.storage().index_lags = true;
        store
    }

    /// Returns another handle on the same storage.
    #[must_use]
    pub fn handle(&self) -> Self {
        self.clone()
    }

    /// Makes the next write or read (of either port) fail. Called again before that, the one after it fails too.
    pub fn fail_next(&self, fault: Fault) {
        self.storage().inject(fault);
    }

    /// Returns how many bytes of bodies [`StateStore::read`] has given out: to show that a reader takes no more than
    /// it needs.
    pub fn bytes_read(&self) -> u64 {
        self.storage().bytes_read
    }

    /// A panic for misuse happens before anything is changed, so a poisoned lock guards sound data.
    fn storage(&self) -> MutexGuard<'_, Storage> {
        self.storage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn reading<T>(&self, read: impl FnOnce(&mut Storage) -> T) -> Result<T, StoreError> {
        yield_now().await;
        let answer = self.storage().reading(read);
        yield_now().await;
        answer
    }

    async fn writing<T, E: From<StoreError>>(
        &self,
        write: impl FnOnce(&mut Storage) -> Result<T, E>,
    ) -> Result<T, E> {
        yield_now().await;
        let outcome = self.storage().writing(write);
        yield_now().await;
        outcome
    }
}

/// Names only: bodies hold secrets.
impl fmt::Debug for FakeStateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenants: Vec<String> =
            self.storage().tenants().iter().map(|record| record.name.to_string()).collect();
        f.debug_struct("FakeStateStore").field("tenants", &tenants).finish_non_exhaustive()
    }
}

#[async_trait]
impl StateStore for FakeStateStore {
    async fn tenants(&self) -> Result<Vec<TenantRecord>, StoreError> {
        self.reading(|storage| storage.tenants()).await
    }

    async fn tenant(&self, tenant: &TenantName) -> Result<Option<(TenantRecord, Revision)>, StoreError> {
        self.reading(|storage| storage.tenant(tenant)).await
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        rules::check_shape(&change);
        self.writing(|storage| storage.commit(change)).await
    }

    async fn trace_lock(&self, id: &LockId, now: Timestamp) -> Result<Option<LockTrace>, StoreError> {
        self.reading(|storage| storage.trace_lock(id, now)).await
    }

    async fn versions(&self, tenant: &TenantName) -> Result<Vec<VersionMeta>, StoreError> {
        self.reading(|storage| storage.versions(tenant)).await
    }

    async fn version(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
    ) -> Result<Option<VersionMeta>, StoreError> {
        self.reading(|storage| storage.version(tenant, version)).await
    }

    async fn read(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        self.reading(|storage| storage.read(tenant, version, &range)).await
    }

    async fn set_pinned(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        pinned: bool,
    ) -> Result<bool, StoreError> {
        self.writing(|storage| Ok(storage.set_pinned(tenant, version, pinned))).await
    }

    async fn remove_versions(
        &self,
        tenant: &TenantName,
        versions: &[VersionNumber],
    ) -> Result<u64, StoreError> {
        self.writing(|storage| Ok(storage.remove_versions(tenant, versions))).await
    }

    async fn record_refusal(&self, tenant: &TenantName, refusal: RefusalRecord) -> Result<(), StoreError> {
        self.writing(|storage| {
            storage.record_refusal(tenant, refusal);
            Ok(())
        })
        .await
    }

    async fn refusals(&self, tenant: &TenantName) -> Result<Vec<RefusalRecord>, StoreError> {
        self.reading(|storage| storage.refusals(tenant)).await
    }

    async fn tidy(&self, now: Timestamp) -> Result<(), StoreError> {
        self.writing(|storage| {
            storage.tidy(now);
            Ok(())
        })
        .await
    }

    async fn space(&self) -> Result<Space, StoreError> {
        self.reading(|_| Space { total_bytes: 0, free_bytes: 0 }).await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.reading(|_| ()).await
    }
}

#[async_trait]
impl HistoryStore for FakeStateStore {
    async fn history(
        &self,
        tenant: &TenantName,
    ) -> Result<Option<(HistoryHead, Vec<HistoryEntry>)>, StoreError> {
        self.reading(|storage| storage.histories.get(tenant).cloned()).await
    }

    async fn put_history(
        &self,
        tenant: &TenantName,
        before: Option<HistoryHead>,
        head: HistoryHead,
        mut entries: Vec<HistoryEntry>,
    ) -> Result<bool, StoreError> {
        entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        self.writing(|storage| {
            let is_same = storage.histories.get(tenant).map(|(stored, _)| *stored) == before;
            if is_same {
                storage.histories.insert(tenant.clone(), (head, entries));
            }
            Ok(is_same)
        })
        .await
    }
}

#[async_trait]
impl VersionMark for FakeStateStore {
    async fn raise(&self, to: u64) -> Result<u64, StoreError> {
        self.writing(|storage| {
            let before = storage.mark;
            storage.mark = before.max(to);
            Ok(before)
        })
        .await
    }
}

#[async_trait]
impl IndexStore for FakeStateStore {
    async fn head(&self, tenant: &TenantName) -> Result<Option<IndexHead>, StoreError> {
        self.reading(|storage| storage.index(tenant).map(|(head, _)| *head)).await
    }

    async fn find(
        &self,
        tenant: &TenantName,
        address: &ResourceAddress,
        deposed: Option<&str>,
    ) -> Result<Option<(IndexHead, IndexRow)>, StoreError> {
        self.reading(|storage| {
            let (head, rows) = storage.index(tenant)?;
            let found = rows.iter().find(|row| row.address == *address && row.deposed.as_deref() == deposed);
            found.map(|row| (*head, row.clone()))
        })
        .await
    }

    async fn rows(&self, tenant: &TenantName) -> Result<Option<(IndexHead, Vec<IndexRow>)>, StoreError> {
        self.reading(|storage| storage.index(tenant).cloned()).await
    }

    async fn rows_of_types(
        &self,
        tenant: &TenantName,
        types: &[&str],
    ) -> Result<Option<(IndexHead, Vec<IndexRow>)>, StoreError> {
        let found = self.rows(tenant).await?;
        Ok(found.map(|(head, mut rows)| {
            rows.retain(|row| types.contains(&row.resource_type.as_str()));
            (head, rows)
        }))
    }

    async fn replace(
        &self,
        tenant: &TenantName,
        head: IndexHead,
        rows: Arc<[IndexRow]>,
    ) -> Result<(), StoreError> {
        rules::check_rows(&rows);
        assert_eq!(
            u64::try_from(rows.len()),
            Ok(head.rows),
            "misuse of replace: the head counts other rows than these"
        );
        self.writing(|storage| {
            storage.replace(tenant, head, &rows);
            Ok(())
        })
        .await
    }

    async fn drop_index(&self, tenant: &TenantName) -> Result<(), StoreError> {
        self.writing(|storage| {
            storage.drop_index(tenant);
            Ok(())
        })
        .await
    }
}
