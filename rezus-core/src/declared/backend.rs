//! The backend that keeps states: the HTTP backend's operations over a [`StateStore`], whatever carries the requests.
//!
//! Each operation reads the tenant's record, lets the rules decide what becomes of it, and commits that decision
//! under the condition that the record is still the one it was made on. Whoever comes second decides again.

mod ingest;
mod refusal;
mod retention;
mod rules;
mod tenants;

use std::sync::Arc;

use bytes::Bytes;

use crate::base::{Clock, TenantName};
use crate::declared::compute::{Compute, compute};
use crate::declared::mapping::MappingsInForce;
use crate::declared::store::{
    Change, CommitError, Content, LockTrace, NewVersion, RefusalRecord, Revision, StateStore, StoreError,
    TenantRecord, VersionMeta,
};
use crate::declared::{EncryptionPolicy, LockId, LockInfo, VersionNumber};

use ingest::renumbered;
pub use ingest::{Ingested, ingest};
use refusal::shown;
pub use refusal::{BackendError, Refusal};
pub use retention::Retention;
pub use rules::{Caller, Unlock};

/// How often a change is decided again before the caller is asked to come back: only writers of one tenant compete.
const ATTEMPTS: usize = 64;

/// The state backend of all tenants.
#[derive(Clone, Debug)]
pub struct StateBackend {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    compute: Arc<dyn Compute>,
    mappings: MappingsInForce,
    encryption: Arc<EncryptionPolicy>,
}

/// What an accepted write did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// It made a new version.
    Version(Box<VersionMeta>),
    /// The bytes are those of the current version already; nothing changed.
    Unchanged,
}

impl StateBackend {
    /// Makes a backend over a store. A rollback is computed behind `compute`, and its secrets are hidden by `mappings`.
    pub fn new(
        store: Arc<dyn StateStore>,
        clock: Arc<dyn Clock>,
        compute: Arc<dyn Compute>,
        mappings: MappingsInForce,
    ) -> Self {
        Self { store, clock, compute, mappings, encryption: Arc::default() }
    }

    /// Has it ask of states what `policy` says.
    #[must_use]
    pub fn with_encryption(self, policy: EncryptionPolicy) -> Self {
        Self { encryption: Arc::new(policy), ..self }
    }

    /// Returns what is asked of whose states.
    pub fn encryption(&self) -> &EncryptionPolicy {
        &self.encryption
    }

    /// Returns the store, for reads that no rule governs.
    pub fn store(&self) -> &Arc<dyn StateStore> {
        &self.store
    }

    /// Returns the current version, or `None` where there is no state.
    ///
    /// # Errors
    ///
    /// [`BackendError::Store`].
    pub async fn current(&self, tenant: &TenantName) -> Result<Option<VersionMeta>, BackendError> {
        let record = self.store.tenant(tenant).await?;
        Ok(record.and_then(|(record, _)| record.head).filter(|head| head.content != Content::Tombstone))
    }

    /// Finds the tenant that a bare `ID` parameter means: the one where a lock with this ID is held, else the one with
    /// this name, else the one where such a lock was held of late. `None` when it means none.
    ///
    /// Source: with the address `/state?ID=NAME`, clients *replace* NAME by their lock's ID when they POST.
    ///
    /// # Errors
    ///
    /// [`BackendError::Store`].
    pub async fn resolve(&self, id: &str) -> Result<Option<TenantName>, BackendError> {
        let trace = self.trace(LockId::parse(id).ok().as_ref()).await?;
        if let Some(LockTrace::Held(tenant)) = trace {
            return Ok(Some(tenant));
        }
        if let Ok(tenant) = TenantName::parse(id) {
            return Ok(Some(tenant));
        }
        Ok(trace.map(|trace| match trace {
            LockTrace::Held(tenant) | LockTrace::Released(tenant, _) => tenant,
        }))
    }

    /// Takes the lock.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] while another holds it; the refusal is kept.
    pub async fn lock(
        &self,
        tenant: &TenantName,
        info: &LockInfo,
        caller: &Caller,
    ) -> Result<(), BackendError> {
        let outcome = self.try_lock(tenant, info, caller).await;
        self.keep_refusal(tenant, "LOCK", &who(caller, Some(info)), outcome).await
    }

    async fn try_lock(
        &self,
        tenant: &TenantName,
        info: &LockInfo,
        caller: &Caller,
    ) -> Result<(), BackendError> {
        self.change(tenant, |record| {
            let now = self.clock.now();
            let record = rules::existing_or_new(record, tenant, caller, now)?;
            Ok(rules::lock(record, info, caller, now)?.map(|next| (next, None)))
        })
        .await
        .map_err(|error| match error {
            Failed::LockIdHeld => Refusal::LockIdHeldElsewhere { id: info.id.clone() }.into(),
            Failed::NameIsLockId(_) if TenantName::parse(info.id.as_str()).is_ok() => {
                Refusal::LockIdIsName { id: info.id.clone() }.into()
            }
            Failed::NameIsLockId(tenant) => Refusal::NameIsLockId { tenant }.into(),
            Failed::Backend(error) => error,
        })?;
        Ok(())
    }

    /// Releases the lock.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] where it is not the caller's to release; the refusal is kept.
    pub async fn unlock(
        &self,
        tenant: &TenantName,
        which: &Unlock,
        caller: &Caller,
    ) -> Result<(), BackendError> {
        let outcome = self.try_unlock(tenant, which, caller).await;
        self.keep_refusal(tenant, "UNLOCK", &who(caller, None), outcome).await
    }

    async fn try_unlock(
        &self,
        tenant: &TenantName,
        which: &Unlock,
        caller: &Caller,
    ) -> Result<(), BackendError> {
        let id = match which {
            Unlock::Id(id) | Unlock::Break(id) => Some(id),
            Unlock::Any => None,
        };
        let trace = self.trace(id).await?;
        self.change(tenant, |record| {
            let next = rules::unlock(record, tenant, which, trace.as_ref(), caller, self.clock.now())?;
            Ok(next.map(|next| (next, None)))
        })
        .await?;
        Ok(())
    }

    /// Writes a state, under the lock `lock_id` where one is given.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] by the rules of locks, serial and lineage; the refusal is kept.
    pub async fn post(
        &self,
        tenant: &TenantName,
        lock_id: Option<&LockId>,
        state: &Ingested,
        caller: &Caller,
    ) -> Result<Written, BackendError> {
        let outcome = self.try_post(tenant, lock_id, state, caller).await;
        self.keep_refusal(tenant, "POST", &who(caller, None), outcome).await
    }

    async fn try_post(
        &self,
        tenant: &TenantName,
        lock_id: Option<&LockId>,
        state: &Ingested,
        caller: &Caller,
    ) -> Result<Written, BackendError> {
        let trace = self.trace(lock_id).await?;
        let written = self
            .change(tenant, |record| {
                let now = self.clock.now();
                if let (None, Some(id)) = (record, lock_id) {
                    return Err(rules::lock_gone(tenant, id, trace.as_ref()));
                }
                let record = rules::existing_or_new(record, tenant, caller, now)?;
                let (trace, encryption) = (trace.as_ref(), self.encryption.of(&record));
                let next = rules::post(record, lock_id, trace, &state.candidate, encryption, caller, now)?;
                Ok(next.map(|next| (next, Some(state))))
            })
            .await?;
        Ok(written.map_or(Written::Unchanged, |head| Written::Version(Box::new(head))))
    }

    /// Deletes the state and keeps its history: a tombstone becomes the newest version.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] while a lock is held or required, and where there is no such tenant; the refusal is
    /// kept.
    pub async fn delete(&self, tenant: &TenantName, caller: &Caller) -> Result<Written, BackendError> {
        let outcome = self
            .change(tenant, |record| {
                let record = known(record, tenant)?;
                Ok(rules::delete(record.clone(), caller, self.clock.now())?.map(|next| (next, None)))
            })
            .await
            .map_err(BackendError::from)
            .map(|head| head.map_or(Written::Unchanged, |head| Written::Version(Box::new(head))));
        self.keep_refusal(tenant, "DELETE", &who(caller, None), outcome).await
    }

    /// Brings an earlier version's content back as a new version, its serial above every serial ever accepted and
    /// nothing else changed. Holds off every other writer as its lock would: the change is made on the record that was
    /// found unlocked, or not at all.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] while a lock is held, and for versions that hold no readable state; the refusal is
    /// kept.
    pub async fn rollback(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        caller: &Caller,
    ) -> Result<VersionMeta, BackendError> {
        let outcome = self.try_rollback(tenant, version, caller).await;
        self.keep_refusal(tenant, "rollback", &who(caller, None), outcome).await
    }

    async fn try_rollback(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        caller: &Caller,
    ) -> Result<VersionMeta, BackendError> {
        for _ in 0..ATTEMPTS {
            let found = self.store.tenant(tenant).await?;
            let (record, revision) =
                found.ok_or_else(|| Refusal::UnknownTenant { tenant: tenant.clone() })?;
            let target = self.store.version(tenant, version).await?;
            let encryption = self.encryption.of(&record);
            let serial = rules::rollback_serial(&record, target.as_ref(), version, encryption)?;
            let body = self.body(tenant, version).await?;
            let size = u64::try_from(body.len()).unwrap_or(u64::MAX).saturating_mul(2);
            let mappings = self.mappings.get();
            let renumber = move || ingest(renumbered(&body, serial.get())?, None, &mappings);
            let state = compute(self.compute.as_ref(), size, renumber).await??;
            let next = rules::rollback(record, version, &state.candidate, caller, self.clock.now());
            match self.commit(tenant, Some(revision), next, Some(&state)).await {
                Ok(Some(head)) => return Ok(head),
                Ok(None)
                | Err(CommitError::Conflict | CommitError::LockIdHeld | CommitError::NameIsLockId) => {}
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Err(BackendError::Contended)
    }

    /// Keeps a refusal that was made before a request got this far, such as of its size.
    ///
    /// # Errors
    ///
    /// Always the refusal itself.
    pub async fn refuse<T>(
        &self,
        tenant: &TenantName,
        operation: &str,
        caller: &Caller,
        refusal: Refusal,
    ) -> Result<T, BackendError> {
        self.keep_refusal(tenant, operation, &who(caller, None), Err(refusal.into())).await
    }

    /// Returns a version's bytes as a whole.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] if it is not there, [`BackendError::Store`] if it cannot be read.
    pub async fn body(&self, tenant: &TenantName, version: VersionNumber) -> Result<Bytes, BackendError> {
        let gone = || Refusal::NoSuchVersion { tenant: tenant.clone(), version };
        let meta = self.store.version(tenant, version).await?.ok_or_else(gone)?;
        let body = self.store.read(tenant, version, 0..meta.size_bytes).await?.ok_or_else(gone)?;
        Ok(body)
    }

    async fn trace(&self, id: Option<&LockId>) -> Result<Option<LockTrace>, StoreError> {
        match id {
            Some(id) => self.store.trace_lock(id, self.clock.now()).await,
            None => Ok(None),
        }
    }

    /// Decides and commits until nobody came in between. Returns the new head where the change appended one.
    async fn change<'a>(
        &self,
        tenant: &TenantName,
        decide: impl Fn(Option<&TenantRecord>) -> Result<Option<(rules::Next, Option<&'a Ingested>)>, Refusal>
        + Send,
    ) -> Result<Option<VersionMeta>, Failed> {
        for _ in 0..ATTEMPTS {
            let (record, revision) = self.store.tenant(tenant).await?.unzip();
            let Some((next, state)) = decide(record.as_ref())? else {
                return Ok(None);
            };
            match self.commit(tenant, revision, next, state).await {
                Ok(head) => return Ok(head),
                Err(CommitError::Conflict) => {}
                Err(CommitError::LockIdHeld) => return Err(Failed::LockIdHeld),
                Err(CommitError::NameIsLockId) => return Err(Failed::NameIsLockId(tenant.clone())),
                Err(CommitError::Store(error)) => return Err(error.into()),
            }
        }
        Err(Failed::Backend(BackendError::Contended))
    }

    async fn commit(
        &self,
        tenant: &TenantName,
        expected: Option<Revision>,
        next: rules::Next,
        state: Option<&Ingested>,
    ) -> Result<Option<VersionMeta>, CommitError> {
        let head = next.record.as_ref().and_then(|record| record.head.clone());
        // A tombstone is the version that comes without a state.
        let append = head.filter(|_| next.appends).map(|meta| match state {
            Some(state) => NewVersion {
                meta,
                body: state.body.clone(),
                rows: Arc::clone(&state.rows),
                secret_rules: state.secret_rules,
            },
            None => NewVersion { meta, body: Bytes::new(), rows: Arc::default(), secret_rules: [0; 32] },
        });
        let appended = append.as_ref().map(|version| version.meta.clone());
        let change = Change {
            tenant: tenant.clone(),
            expected,
            record: next.record,
            append,
            mark_intermediate: next.mark_intermediate,
            released: next.released,
        };
        self.store.commit(change).await?;
        Ok(appended)
    }

    /// Keeps the refusal of `outcome`, if it is one: no client shows the body of an answer to a POST, so this list is
    /// where an operator finds what was refused and why.
    async fn keep_refusal<T>(
        &self,
        tenant: &TenantName,
        operation: &str,
        who: &str,
        outcome: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        if let Err(BackendError::Refused(refusal)) = &outcome {
            let record = self.store.tenant(tenant).await.ok().flatten();
            let record = RefusalRecord {
                at: self.clock.now(),
                who: who.to_owned(),
                operation: operation.to_owned(),
                code: refusal.status(),
                reason: refusal.to_string(),
                head: record.and_then(|(record, _)| record.head).map(|head| head.version),
            };
            // A store that cannot write now takes nothing from the refusal: it is the client's fault all the same, and
            // must not be answered as one of ours.
            drop(self.store.record_refusal(tenant, record).await);
        }
        outcome
    }
}

/// Why a change was not made, before it is known which lock's ID was in the way.
enum Failed {
    LockIdHeld,
    NameIsLockId(TenantName),
    Backend(BackendError),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Backend(refusal.into())
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Backend(error.into())
    }
}

impl From<Failed> for BackendError {
    fn from(failed: Failed) -> Self {
        match failed {
            // Only a LOCK brings a new ID, and it names that ID itself.
            Failed::LockIdHeld => Self::Contended,
            Failed::NameIsLockId(tenant) => Refusal::NameIsLockId { tenant }.into(),
            Failed::Backend(error) => error,
        }
    }
}

fn known<'a>(record: Option<&'a TenantRecord>, tenant: &TenantName) -> Result<&'a TenantRecord, Refusal> {
    record.ok_or_else(|| Refusal::UnknownTenant { tenant: tenant.clone() })
}

fn who(caller: &Caller, info: Option<&LockInfo>) -> String {
    match info {
        Some(info) if !info.who.is_empty() => format!("{} ({})", shown(&info.who), caller.name),
        _ => caller.name.clone(),
    }
}
