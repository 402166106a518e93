//! What handles of the fake share, and every step that is taken on it at once.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bytes::Bytes;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::index::{INDEX_FORMAT, IndexHead, IndexRow};
use rezus_core::declared::store::{
    Change, CommitError, Content, HeldLock, HistoryEntry, HistoryHead, LOCK_MEMORY, LockTrace, NewVersion,
    REFUSALS_KEPT, REFUSALS_OF_NOBODY_KEPT, RefusalRecord, ReleasedLock, Revision, StoreError, TenantRecord,
    VersionMeta,
};
use rezus_core::declared::{LockId, VersionNumber};

use super::rules;

/// How the fake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write fails with `Unavailable` and has no effect.
    BeforeWrite,
    /// A write takes effect, and then fails with `Unavailable`. Waits for a write that is not refused.
    AfterWrite,
    /// A read fails with `Unavailable`.
    Read,
}

/// The source of the `Unavailable` that a [`Fault`] causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InjectedFault(pub Fault);

impl std::fmt::Display for InjectedFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Fault::BeforeWrite => "a fault was injected before the write",
            Fault::AfterWrite => "a fault was injected after the write",
            Fault::Read => "a fault was injected into the read",
        })
    }
}

impl std::error::Error for InjectedFault {}

impl InjectedFault {
    fn unavailable(self) -> StoreError {
        StoreError::Unavailable { source: Box::new(self) }
    }
}

/// All that is stored.
#[derive(Default)]
pub(super) struct Storage {
    tenants: BTreeMap<TenantName, Tenant>,
    released: Vec<(TenantName, ReleasedLock)>,
    refusals: BTreeMap<TenantName, VecDeque<RefusalRecord>>,
    indexes: BTreeMap<TenantName, (IndexHead, Vec<IndexRow>)>,
    pub(super) histories: BTreeMap<TenantName, (HistoryHead, Vec<HistoryEntry>)>,
    /// The high-water mark of resource versions.
    pub(super) mark: u64,
    revisions: u64,
    write_faults: VecDeque<Fault>,
    read_faults: usize,
    /// Whether commits leave the index as it is.
    pub(super) index_lags: bool,
    /// How many bytes of bodies were given out.
    pub(super) bytes_read: u64,
}

/// One tenant. The head of `record` is that of `versions`, so that a pin shows in both.
struct Tenant {
    record: TenantRecord,
    revision: Revision,
    versions: BTreeMap<VersionNumber, (VersionMeta, Bytes)>,
}

impl Tenant {
    fn record(&self) -> TenantRecord {
        let head = self.versions.last_key_value().map(|(_, (meta, _))| meta.clone());
        TenantRecord { head, ..self.record.clone() }
    }
}

impl Storage {
    pub(super) fn inject(&mut self, fault: Fault) {
        match fault {
            Fault::BeforeWrite | Fault::AfterWrite => self.write_faults.push_back(fault),
            Fault::Read => self.read_faults += 1,
        }
    }

    /// Reads, unless a fault was injected.
    pub(super) fn reading<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Result<T, StoreError> {
        if self.read_faults > 0 {
            self.read_faults -= 1;
            return Err(InjectedFault(Fault::Read).unavailable());
        }
        Ok(read(self))
    }

    /// Writes, unless a fault was injected; or writes and fails all the same.
    pub(super) fn writing<T, E: From<StoreError>>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.write_faults.front() == Some(&Fault::BeforeWrite) {
            self.write_faults.pop_front();
            return Err(InjectedFault(Fault::BeforeWrite).unavailable().into());
        }
        let written = write(self)?;
        if self.write_faults.front() == Some(&Fault::AfterWrite) {
            self.write_faults.pop_front();
            return Err(InjectedFault(Fault::AfterWrite).unavailable().into());
        }
        Ok(written)
    }

    /// Returns a revision that was never given out: a generator of full period, so that no caller can come to rely on
    /// the first one or on their order.
    fn new_revision(&mut self) -> Revision {
        self.revisions =
            self.revisions.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Revision(self.revisions)
    }

    pub(super) fn tenants(&self) -> Vec<TenantRecord> {
        self.tenants.values().map(Tenant::record).collect()
    }

    pub(super) fn tenant(&self, tenant: &TenantName) -> Option<(TenantRecord, Revision)> {
        self.tenants.get(tenant).map(|tenant| (tenant.record(), tenant.revision))
    }

    pub(super) fn commit(&mut self, change: Change) -> Result<(), CommitError> {
        let present = self.tenant(&change.tenant);
        if change.expected != present.as_ref().map(|(_, revision)| *revision) {
            return Err(CommitError::Conflict);
        }
        let is_version = |version| {
            self.tenants.get(&change.tenant).is_some_and(|tenant| tenant.versions.contains_key(&version))
        };
        rules::check_decision(&change, present.as_ref().map(|(record, _)| record), is_version);
        let wanted = change.record.as_ref().and_then(|record| record.lock.as_ref());
        if let Some(lock) = wanted
            && self.holder(&lock.info.id).is_some_and(|holder| holder != &change.tenant)
        {
            return Err(CommitError::LockIdHeld);
        }
        let was_locked = present.as_ref().is_some_and(|(record, _)| record.lock.is_some());
        let names_a_tenant = |lock: &HeldLock| {
            let id = lock.info.id.as_str();
            id == change.tenant.as_str() || self.tenants.keys().any(|name| name.as_str() == id)
        };
        let takes_a_locks_name = change.expected.is_none()
            && self.tenants.values().any(|tenant| {
                tenant
                    .record
                    .lock
                    .as_ref()
                    .is_some_and(|lock| lock.info.id.as_str() == change.tenant.as_str())
            });
        if takes_a_locks_name || (!was_locked && wanted.is_some_and(names_a_tenant)) {
            return Err(CommitError::NameIsLockId);
        }

        if let Some(released) = change.released {
            let forgotten = released.released_at.minus(LOCK_MEMORY);
            self.released.retain(|(_, earlier)| earlier.released_at >= forgotten);
            self.released.push((change.tenant.clone(), released));
        }
        let Some(record) = change.record else {
            self.tenants.remove(&change.tenant);
            self.indexes.remove(&change.tenant);
            self.histories.remove(&change.tenant);
            return Ok(());
        };
        let revision = self.new_revision();
        let mut versions =
            self.tenants.remove(&change.tenant).map(|tenant| tenant.versions).unwrap_or_default();
        if let Some((meta, _)) = change.mark_intermediate.and_then(|version| versions.get_mut(&version)) {
            meta.intermediate = true;
        }
        if let Some(NewVersion { meta, body, rows, secret_rules }) = change.append {
            self.take_rows(&change.tenant, &meta, &rows, secret_rules);
            versions.insert(meta.version, (meta, body));
        }
        self.tenants.insert(change.tenant, Tenant { record, revision, versions });
        Ok(())
    }

    /// Takes the index along with a version. Of an envelope there is none: the last known one stays, and is behind.
    fn take_rows(
        &mut self,
        tenant: &TenantName,
        meta: &VersionMeta,
        rows: &[IndexRow],
        secret_rules: [u8; 32],
    ) {
        if self.index_lags || meta.content == Content::Encrypted {
            return;
        }
        let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
        let head = IndexHead {
            version: meta.version,
            sha256: meta.fingerprint.sha256,
            format: INDEX_FORMAT,
            rows: count,
            secret_rules,
        };
        self.replace(tenant, head, rows);
    }

    fn holder(&self, id: &LockId) -> Option<&TenantName> {
        let holds = |tenant: &Tenant| tenant.record.lock.as_ref().is_some_and(|lock| lock.info.id == *id);
        self.tenants.iter().find(|(_, tenant)| holds(tenant)).map(|(name, _)| name)
    }

    pub(super) fn trace_lock(&self, id: &LockId, now: Timestamp) -> Option<LockTrace> {
        if let Some(holder) = self.holder(id) {
            return Some(LockTrace::Held(holder.clone()));
        }
        let forgotten = now.minus(LOCK_MEMORY);
        self.released
            .iter()
            .filter(|(_, released)| released.info.id == *id && released.released_at >= forgotten)
            .max_by_key(|(_, released)| released.released_at)
            .map(|(tenant, released)| LockTrace::Released(tenant.clone(), released.clone()))
    }

    pub(super) fn versions(&self, tenant: &TenantName) -> Vec<VersionMeta> {
        let versions = self.tenants.get(tenant).map(|tenant| tenant.versions.values());
        versions.into_iter().flatten().map(|(meta, _)| meta.clone()).collect()
    }

    pub(super) fn version(&self, tenant: &TenantName, version: VersionNumber) -> Option<VersionMeta> {
        Some(self.tenants.get(tenant)?.versions.get(&version)?.0.clone())
    }

    pub(super) fn read(
        &mut self,
        tenant: &TenantName,
        version: VersionNumber,
        range: &Range<u64>,
    ) -> Option<Bytes> {
        let (_, body) = self.tenants.get(tenant)?.versions.get(&version)?;
        let end = usize::try_from(range.end).unwrap_or(usize::MAX).min(body.len());
        let start = usize::try_from(range.start).unwrap_or(usize::MAX).min(end);
        let part = body.slice(start..end);
        self.bytes_read += u64::try_from(part.len()).unwrap_or(u64::MAX);
        Some(part)
    }

    /// Pinning the head is a change of the record, so that a decision made before it comes too late.
    pub(super) fn set_pinned(&mut self, tenant: &TenantName, version: VersionNumber, pinned: bool) -> bool {
        let revision = self.new_revision();
        let Some(tenant) = self.tenants.get_mut(tenant) else {
            return false;
        };
        let newest = tenant.versions.last_key_value().map(|(number, _)| *number);
        let Some((meta, _)) = tenant.versions.get_mut(&version) else {
            return false;
        };
        if newest == Some(version) && meta.pinned != pinned {
            tenant.revision = revision;
        }
        meta.pinned = pinned;
        true
    }

    pub(super) fn remove_versions(&mut self, tenant: &TenantName, versions: &[VersionNumber]) -> u64 {
        let Some(tenant) = self.tenants.get_mut(tenant) else {
            return 0;
        };
        let newest = tenant.versions.last_key_value().map(|(number, _)| *number);
        let before = tenant.versions.len();
        tenant
            .versions
            .retain(|number, (meta, _)| Some(*number) == newest || meta.pinned || !versions.contains(number));
        u64::try_from(before - tenant.versions.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn record_refusal(&mut self, tenant: &TenantName, refusal: RefusalRecord) {
        let refusals = self.refusals.entry(tenant.clone()).or_default();
        refusals.push_front(refusal);
        refusals.truncate(REFUSALS_KEPT);
        if self.tenants.contains_key(tenant) {
            return;
        }
        let is_nobody = |name: &TenantName| !self.tenants.contains_key(name);
        let mut of_nobody: usize = self
            .refusals
            .iter()
            .filter(|(name, _)| is_nobody(name))
            .map(|(_, refusals)| refusals.len())
            .sum();
        // The oldest go first; of names with equal times, the first by name.
        while of_nobody > REFUSALS_OF_NOBODY_KEPT {
            let oldest = self.refusals.iter().filter(|(name, _)| is_nobody(name));
            let oldest = oldest.min_by_key(|(_, refusals)| refusals.back().map(|refusal| refusal.at));
            let Some(name) = oldest.map(|(name, _)| name.clone()) else { return };
            let emptied = self.refusals.get_mut(&name).is_none_or(|refusals| {
                refusals.pop_back();
                refusals.is_empty()
            });
            if emptied {
                self.refusals.remove(&name);
            }
            of_nobody -= 1;
        }
    }

    pub(super) fn refusals(&self, tenant: &TenantName) -> Vec<RefusalRecord> {
        self.refusals.get(tenant).into_iter().flatten().cloned().collect()
    }

    /// Forgets refusals of nobody; memory has no space to give back.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        let oldest = now.minus(LOCK_MEMORY);
        let tenants = &self.tenants;
        self.refusals.retain(|name, refusals| {
            if !tenants.contains_key(name) {
                refusals.retain(|refusal| refusal.at >= oldest);
            }
            !refusals.is_empty()
        });
    }

    pub(super) fn index(&self, tenant: &TenantName) -> Option<&(IndexHead, Vec<IndexRow>)> {
        self.indexes.get(tenant)
    }

    pub(super) fn replace(&mut self, tenant: &TenantName, head: IndexHead, rows: &[IndexRow]) {
        let mut rows = rows.to_vec();
        rows.sort_by_key(|row| row.position);
        self.indexes.insert(tenant.clone(), (head, rows));
    }

    pub(super) fn drop_index(&mut self, tenant: &TenantName) {
        self.indexes.remove(tenant);
    }
}
