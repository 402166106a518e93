//! The ports behind the spec plane: where tenants, versions and locks are kept, and where the derived index is.

mod history;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::base::{TenantName, Timestamp};
use crate::declared::index::{IndexHead, IndexRow};
use crate::declared::{
    Encryption, Fingerprint, Freeze, Lineage, LockId, LockInfo, ResourceAddress, Serial, VersionNumber,
};

pub use history::{HistoryEntry, HistoryHead, HistoryStore};

/// How long the ID of a lock that was released or broken is remembered.
pub const LOCK_MEMORY: Duration = Duration::from_hours(7 * 24);

/// How many refusals of a tenant are kept.
pub const REFUSALS_KEPT: usize = 100;

/// How many refusals are kept of all names that are no tenants.
pub const REFUSALS_OF_NOBODY_KEPT: usize = 1_000;

/// Which state of a tenant's record a change was decided on. Opaque; only equality means anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision(pub u64);

/// All that is known of a tenant, but for its versions' bytes: small, read and replaced as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantRecord {
    /// The tenant's name.
    pub name: TenantName,
    /// When it was created.
    pub created_at: Timestamp,
    /// Whether it stays when its lock is released: true once it was written or created by name.
    pub permanent: bool,
    /// Whether writes without the lock are refused.
    pub require_locks: bool,
    /// What is asked of its states; none where the server's own setting counts.
    pub encryption: Option<Encryption>,
    /// What stops runs, and writes of clients where it says so.
    pub freeze: Option<Freeze>,
    /// The lock, while one is held.
    pub lock: Option<HeldLock>,
    /// The lock that was let go last.
    pub last_released: Option<LockId>,
    /// The newest version, tombstones included; `None` before the first.
    pub head: Option<VersionMeta>,
    /// The greatest serial of any version ever accepted, removed ones included.
    pub highest_serial: Option<Serial>,
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// What its client says of it.
    pub info: LockInfo,
    /// When it was granted.
    pub acquired_at: Timestamp,
    /// To whom: the caller as the server knows it.
    pub acquired_by: String,
    /// The newest version when it was granted: later ones under its ID are of this lock, earlier ones of another with
    /// the same ID.
    pub acquired_head: Option<VersionNumber>,
}

/// What the bytes of a version are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A state in clear.
    Plain {
        /// How many instance objects it holds, deposed ones included.
        objects: u64,
        /// Whether it holds no instance object and no output: such a state may be overwritten by anything.
        empty: bool,
    },
    /// An envelope of OpenTofu's state encryption: opaque.
    Encrypted,
    /// No state: a DELETE was accepted.
    Tombstone,
}

/// One accepted version, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one write, not a state machine")]
pub struct VersionMeta {
    /// The server's count.
    pub version: VersionNumber,
    /// The serial the state has; absent in some envelopes and in tombstones.
    pub serial: Option<Serial>,
    /// The lineage the state has; absent in some envelopes and in tombstones.
    pub lineage: Option<Lineage>,
    /// `terraform_version` of the state: the version of the tool that wrote it.
    pub writer: Option<String>,
    /// Digests of the bytes.
    pub fingerprint: Fingerprint,
    /// Length of the bytes.
    pub size_bytes: u64,
    /// What the bytes are.
    pub content: Content,
    /// When it was accepted.
    pub written_at: Timestamp,
    /// By whom: the caller as the server knows it.
    pub written_by: String,
    /// The lock it was written under.
    pub lock_id: Option<LockId>,
    /// That lock's operation.
    pub lock_operation: Option<String>,
    /// Whether it broke the rules of serial and lineage, as `state push -force` may.
    pub forced: bool,
    /// Whether it was written without a lock.
    pub unlocked: bool,
    /// Whether the same operation wrote a later version: a snapshot of an apply under way.
    pub intermediate: bool,
    /// Whether retention must keep it.
    pub pinned: bool,
    /// The version whose content it brought back.
    pub rollback_of: Option<VersionNumber>,
}

impl VersionMeta {
    /// Tells whether both are of one write, whatever was said of it since: that it is pinned, that another followed it.
    pub fn is_same_write(&self, other: &Self) -> bool {
        // A tenant that was removed and made anew counts from 1 again.
        (self.version, self.fingerprint, self.written_at)
            == (other.version, other.fingerprint, other.written_at)
    }
}

/// A version to be appended, with its bytes and what was derived from them.
#[derive(Clone)]
pub struct NewVersion {
    /// Becomes the record's head.
    pub meta: VersionMeta,
    /// The bytes, kept exactly. Empty for a tombstone.
    pub body: Bytes,
    /// The index of the bytes: of an envelope and of a tombstone none.
    pub rows: Arc<[IndexRow]>,
    /// [`IndexHead::secret_rules`] of the rows.
    pub secret_rules: [u8; 32],
}

/// The length only: the body holds secrets.
impl fmt::Debug for NewVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewVersion")
            .field("meta", &self.meta)
            .field("body_bytes", &self.body.len())
            .field("rows", &self.rows.len())
            .finish_non_exhaustive()
    }
}

/// A change of one tenant, decided on the record at `expected`.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which tenant.
    pub tenant: TenantName,
    /// The revision the change was decided on; `None` when there was no such tenant.
    pub expected: Option<Revision>,
    /// The record afterwards; `None` removes the tenant with all its versions.
    pub record: Option<TenantRecord>,
    /// The version to append. Its `meta` equals the record's `head`, and its number follows the last one.
    pub append: Option<NewVersion>,
    /// A version that turns out to be a snapshot of an operation under way.
    pub mark_intermediate: Option<VersionNumber>,
    /// The lock that this change lets go, to be remembered for [`LOCK_MEMORY`].
    pub released: Option<ReleasedLock>,
}

/// A lock that is no longer held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleasedLock {
    /// What its client said of it.
    pub info: LockInfo,
    /// When it was let go.
    pub released_at: Timestamp,
    /// Whether by someone else than its holder.
    pub broken: bool,
}

/// What is known of a lock's ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockTrace {
    /// It is held, by a client of this tenant.
    Held(TenantName),
    /// It was held in this tenant, and let go within [`LOCK_MEMORY`].
    Released(TenantName, ReleasedLock),
}

/// One request that was refused, without anything of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalRecord {
    /// When.
    pub at: Timestamp,
    /// Who asked: the caller as the server knows it, and what the lock said of its owner.
    pub who: String,
    /// What was asked for: `LOCK`, `UNLOCK`, `POST`, `DELETE`, `rollback`.
    pub operation: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// Why, in words for an operator.
    pub reason: String,
    /// The tenant's newest version at that time; a later one was written since.
    pub head: Option<VersionNumber>,
}

/// Why a store could not answer. Nothing is known to have changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// What was read is not what was written.
    #[error("{what} is damaged")]
    Corrupt {
        /// What, in words.
        what: String,
        /// The adapter's own error.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The store cannot be used now. A write may or may not have taken effect: read before writing again.
    #[error("the store cannot be used")]
    Unavailable {
        /// The adapter's own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The record is no longer at the expected revision: decide again. Nothing changed.
    #[error("another change of the tenant came first")]
    Conflict,
    /// The lock's ID is held in another tenant. Nothing changed.
    #[error("the lock's ID is held in another tenant")]
    LockIdHeld,
    /// The lock's ID is the name of a tenant, or the new tenant's name is the ID of a lock that is held: requests that
    /// name either could not be told apart. Nothing changed.
    #[error("a lock's ID and a tenant's name are the same")]
    NameIsLockId,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where tenants, their versions and their locks are kept.
///
/// *Contract.* [`StateStore::commit`] is the only way to change a record. It is atomic (all of a [`Change`] or
/// nothing), a compare-and-swap on the record's revision, and durable before it returns `Ok`. What it wrote is seen by
/// every read that begins afterwards. A lock's ID is held by one tenant at most, and is no tenant's name. Versions are immutable but for
/// `intermediate` and `pinned`, and are given back byte for byte. Reads may run while a commit does, and see all of it
/// or nothing.
///
/// *Cancellation.* A dropped `commit` has happened wholly or not at all.
///
/// The suite: `rezus_testkit::state_store_contract!`.
#[async_trait]
pub trait StateStore: fmt::Debug + Send + Sync + 'static {
    /// Returns all tenants' records, sorted by name.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they cannot be read.
    async fn tenants(&self) -> Result<Vec<TenantRecord>, StoreError>;

    /// Returns a tenant's record and its revision, or `None` if there is no such tenant.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be read.
    async fn tenant(&self, tenant: &TenantName) -> Result<Option<(TenantRecord, Revision)>, StoreError>;

    /// Makes one change.
    ///
    /// # Errors
    ///
    /// [`CommitError::Conflict`] when `expected` is not the present revision, [`CommitError::LockIdHeld`] when the
    /// record's lock is held in another tenant, [`CommitError::NameIsLockId`] when a lock's ID and a tenant's name would
    /// be the same, [`CommitError::Store`] when the store failed.
    async fn commit(&self, change: Change) -> Result<(), CommitError>;

    /// Returns what is known of a lock's ID; a held one before a released one, the last released before earlier ones.
    /// Locks released before `now` - [`LOCK_MEMORY`] are forgotten.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be read.
    async fn trace_lock(&self, id: &LockId, now: Timestamp) -> Result<Option<LockTrace>, StoreError>;

    /// Returns a tenant's versions, oldest first, tombstones and intermediates included; none for an unknown tenant.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they cannot be read.
    async fn versions(&self, tenant: &TenantName) -> Result<Vec<VersionMeta>, StoreError>;

    /// Returns one version, or `None` if it never was or was removed.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be read.
    async fn version(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
    ) -> Result<Option<VersionMeta>, StoreError>;

    /// Returns the bytes of a version that lie in `range`, cut at the version's end; `None` if there is no such
    /// version. Costs as much as the range is long, however long the version is.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they cannot be read, [`StoreError::Corrupt`] when they are not what was written.
    async fn read(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError>;

    /// Sets whether retention must keep a version; false if there is no such version.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be written.
    async fn set_pinned(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        pinned: bool,
    ) -> Result<bool, StoreError>;

    /// Removes versions; [`StateStore::tidy`] gives their space back. The newest version and pinned ones stay, whatever
    /// is asked. Returns how many were removed. The tenant's counter and its highest serial do not move.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they cannot be removed.
    async fn remove_versions(
        &self,
        tenant: &TenantName,
        versions: &[VersionNumber],
    ) -> Result<u64, StoreError>;

    /// Keeps a refusal, and forgets all but the newest [`REFUSALS_KEPT`] of the tenant, and all but the newest
    /// [`REFUSALS_OF_NOBODY_KEPT`] of names that are no tenants.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be written.
    async fn record_refusal(&self, tenant: &TenantName, refusal: RefusalRecord) -> Result<(), StoreError>;

    /// Returns a tenant's refusals, newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they cannot be read.
    async fn refusals(&self, tenant: &TenantName) -> Result<Vec<RefusalRecord>, StoreError>;

    /// Does what nobody waits for: finishes removals, gives free space back, and forgets refusals of names that are no
    /// tenants once they are older than [`LOCK_MEMORY`]. Others may work meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when something cannot be written; what was done until then stays done.
    async fn tidy(&self, now: Timestamp) -> Result<(), StoreError>;

    /// Returns how space is used.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be read.
    async fn space(&self) -> Result<Space, StoreError>;

    /// Tells whether the store can be read and written, and changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot.
    async fn ready(&self) -> Result<(), StoreError>;
}

/// How a store's space is used, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What the store takes.
    pub total_bytes: u64,
    /// What of it holds nothing.
    pub free_bytes: u64,
}

/// Where the derived index is kept: a cache, whose loss costs a rebuild and nothing else.
///
/// *Contract.* What it holds of a tenant was built from one version, which it names; [`IndexStore::replace`] swaps all
/// of it at once. A store whose [`StateStore::commit`] takes the rows along has an index that is never behind; any
/// other is brought up to date by its reader. Rows that are missing or cannot be read show as a missing head; whether a
/// row fits the state its reader checks by the row's checksum.
///
/// The suite: `rezus_testkit::index_store_contract!`.
#[async_trait]
pub trait IndexStore: fmt::Debug + Send + Sync + 'static {
    /// Returns what a tenant's index was built from, or `None` if there is none, or it is not whole.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot be used.
    async fn head(&self, tenant: &TenantName) -> Result<Option<IndexHead>, StoreError>;

    /// Returns one row and the head it belongs to.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot be used.
    async fn find(
        &self,
        tenant: &TenantName,
        address: &ResourceAddress,
        deposed: Option<&str>,
    ) -> Result<Option<(IndexHead, IndexRow)>, StoreError>;

    /// Returns all rows in the order of their place in the state, and the head they belong to; `None` if there is no
    /// index, or it is not whole.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot be used.
    async fn rows(&self, tenant: &TenantName) -> Result<Option<(IndexHead, Vec<IndexRow>)>, StoreError>;

    /// Returns the rows of resources of some types, otherwise as [`rows`](Self::rows) does: of a large state, a few.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the store cannot be used.
    async fn rows_of_types(
        &self,
        tenant: &TenantName,
        types: &[&str],
    ) -> Result<Option<(IndexHead, Vec<IndexRow>)>, StoreError>;

    /// Replaces a tenant's index.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be written.
    async fn replace(
        &self,
        tenant: &TenantName,
        head: IndexHead,
        rows: Arc<[IndexRow]>,
    ) -> Result<(), StoreError>;

    /// Drops a tenant's index.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be written.
    async fn drop_index(&self, tenant: &TenantName) -> Result<(), StoreError>;
}
