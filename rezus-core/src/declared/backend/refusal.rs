//! Why the backend refuses, and with which status: the protocol's table of refusals, in one place.

use crate::base::TenantName;
use crate::declared::compute::Busy;
use crate::declared::document::DocumentError;
use crate::declared::store::{ReleasedLock, StoreError};
use crate::declared::{Lineage, LockError, LockId, LockInfo, Serial, VersionNumber};

/// Why a request was refused. Nothing changed; no text repeats what was sent but names, serials and lineages.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// There is no such tenant, and the caller may not create one by writing.
    #[error("there is no tenant {tenant}: create it with `rezus-server tenant create {tenant}`")]
    UnknownTenant {
        /// Which one.
        tenant: TenantName,
    },
    /// The tenant exists already.
    #[error("the tenant {tenant} exists already")]
    TenantExists {
        /// Which one.
        tenant: TenantName,
    },
    /// The tenant's name is the ID of a lock that is held: requests could not be told apart.
    #[error("{tenant} is the ID of a lock that is held: choose another name, or wait until it is released")]
    NameIsLockId {
        /// Which one.
        tenant: TenantName,
    },
    /// Another client holds the lock.
    #[error("the state is locked by {} with {} (lock {})", or_unknown(.holder.who.as_str()), or_unknown(.holder.operation.as_str()), .holder.id)]
    Locked {
        /// Its lock.
        holder: Box<LockInfo>,
    },
    /// An operator has stopped writes.
    #[error("the tenant is frozen by {} since {}: {}", or_unknown(.freeze.who.as_str()), .freeze.created, or_unknown(.freeze.info.as_str()))]
    Frozen {
        /// The freeze, as clients are shown it.
        freeze: Box<LockInfo>,
    },
    /// The write names a lock that was let go since.
    #[error("lock no longer held: {} was {} at {}, before this write", .released.info.id, how(.released), .released.released_at)]
    LockNoLongerHeld {
        /// The lock as it was.
        released: Box<ReleasedLock>,
    },
    /// The write names a lock that nobody holds or is known to have held.
    #[error("lock not held: {id} is no lock of this tenant")]
    LockNotHeld {
        /// Which lock.
        id: LockId,
    },
    /// The tenant takes writes under its lock only.
    #[error(
        "the tenant {tenant} requires locks and the write named none: set lock_address and unlock_address in the backend block (`rezus-server backend-config {tenant}` prints it)"
    )]
    LockRequired {
        /// Which tenant.
        tenant: TenantName,
    },
    /// The tenant takes encrypted states only.
    #[error(
        "the tenant {tenant} requires encrypted states and this one is in clear: give tofu an encryption block, or TF_ENCRYPTION, with state.enforced; or let states in clear in with `rezus-server tenant configure {tenant} --encryption optional`"
    )]
    EncryptionRequired {
        /// Which tenant.
        tenant: TenantName,
    },
    /// UNLOCK of a lock that is not the one held.
    #[error("{id} is not the lock that is held")]
    NotTheHolder {
        /// The lock that was to be released.
        id: LockId,
        /// The one that is held, if any.
        holder: Option<Box<LockInfo>>,
    },
    /// UNLOCK without an ID by one who may not break locks.
    #[error("only who may break locks can unlock without naming the lock: {} holds {}", or_unknown(.holder.who.as_str()), .holder.id)]
    MayNotBreakLocks {
        /// The lock that is held.
        holder: Box<LockInfo>,
    },
    /// The ID of the lock is held in another tenant.
    #[error("the lock ID {id} is held in another tenant")]
    LockIdHeldElsewhere {
        /// Which ID.
        id: LockId,
    },
    /// The ID of the lock is the name of a tenant.
    #[error("the lock ID {id} is the name of a tenant: use a UUID")]
    LockIdIsName {
        /// Which ID.
        id: LockId,
    },
    /// The state is older than the current one.
    #[error("serial {posted} is lower than the current version's serial {current}")]
    SerialTooLow {
        /// The current version's.
        current: Serial,
        /// The refused state's.
        posted: Serial,
    },
    /// The state differs from the current one and has its serial.
    #[error(
        "serial {posted} is the current version's serial {current}, but the content differs: two writers started from one state"
    )]
    SerialReused {
        /// The current version's.
        current: Serial,
        /// The refused state's: the same.
        posted: Serial,
    },
    /// The state is another one altogether.
    #[error("lineage {} is not the current version's lineage {}: this is another state", shown(.posted.as_str()), shown(.current.as_str()))]
    OtherLineage {
        /// The current version's.
        current: Lineage,
        /// The refused state's.
        posted: Lineage,
    },
    /// The body is no state that can be kept.
    #[error("{0}")]
    Document(DocumentError),
    /// The body of LOCK or UNLOCK is none.
    #[error("{0}")]
    LockInfo(LockError),
    /// The body is not what `Content-MD5` says.
    #[error("the body does not match its Content-MD5: it was damaged on the way")]
    DigestMismatch,
    /// `Content-MD5` is no MD5.
    #[error("the Content-MD5 header is not 16 bytes in base64")]
    BadDigest,
    /// The body ended early, or came too slowly.
    #[error("the body did not arrive whole: {got} of {expected} bytes")]
    Incomplete {
        /// Bytes that came.
        got: u64,
        /// Bytes that were announced.
        expected: u64,
    },
    /// The body is larger than allowed.
    #[error(
        "the state is larger than the limit of {limit} bytes: raise state.max_body in the server's configuration, then `state push errored.tfstate`"
    )]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// There is no such version.
    #[error("there is no version {version} of {tenant}: `rezus-server state versions {tenant}` lists them")]
    NoSuchVersion {
        /// Of which tenant.
        tenant: TenantName,
        /// Which one.
        version: VersionNumber,
    },
    /// The version to go back to is the current one.
    #[error("version {version} is the current one: there is nothing to roll back")]
    AlreadyCurrent {
        /// Which one.
        version: VersionNumber,
    },
    /// The version to go back to is encrypted, and its serial is sealed inside.
    #[error(
        "version {version} is encrypted, its serial sealed inside, so it cannot be renumbered here. Instead: save `rezus-server state get {tenant} --version {version}` as terraform.tfstate in an empty directory with the same encryption block, run `tofu init && tofu state pull > plain.tfstate` there, set its \"serial\" to {serial}, then run `tofu state push plain.tfstate` in the tenant's configuration"
    )]
    EncryptedVersion {
        /// Of which tenant.
        tenant: TenantName,
        /// Which one.
        version: VersionNumber,
        /// The first serial above every serial ever accepted.
        serial: Serial,
    },
    /// The version to go back to is a deletion.
    #[error("version {version} is a deletion and holds no state")]
    NoStateInVersion {
        /// Which one.
        version: VersionNumber,
    },
    /// There is no serial above the greatest.
    #[error("the greatest serial ever accepted is the greatest there is: nothing can follow it")]
    SerialsExhausted,
    /// The tenant still declares resources.
    #[error(
        "the tenant {tenant} still declares {objects} objects: destroy them first, or add --force to forget them with their history"
    )]
    StillDeclared {
        /// Which tenant.
        tenant: TenantName,
        /// How many; of an encrypted state at least one is assumed.
        objects: u64,
    },
}

fn how(released: &ReleasedLock) -> &'static str {
    if released.broken { "broken by somebody else" } else { "released" }
}

fn or_unknown(text: &str) -> String {
    if text.is_empty() { "somebody".to_owned() } else { shown(text) }
}

/// Returns a client's text as it may stand in a message: its first 64 characters, without control characters.
pub(super) fn shown(text: &str) -> String {
    let mut characters = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
    let mut start: String = characters.by_ref().take(64).collect();
    if characters.next().is_some() {
        start.push('\u{2026}');
    }
    start
}

impl Refusal {
    /// Returns the HTTP status of the answer (the table of refusals of the HTTP backend's protocol). Never 5xx: clients
    /// send such requests again, three times in all.
    pub fn status(&self) -> u16 {
        match self {
            Self::BadDigest | Self::DigestMismatch | Self::Incomplete { .. } | Self::LockInfo(_) => 400,
            Self::Document(error) => {
                if error.is_malformed() {
                    400
                } else {
                    422
                }
            }
            Self::EncryptionRequired { .. } => 422,
            Self::UnknownTenant { .. } | Self::NoSuchVersion { .. } => 404,
            Self::TenantExists { .. }
            | Self::NameIsLockId { .. }
            | Self::NotTheHolder { .. }
            | Self::MayNotBreakLocks { .. }
            | Self::LockIdHeldElsewhere { .. }
            | Self::LockIdIsName { .. }
            | Self::SerialTooLow { .. }
            | Self::SerialReused { .. }
            | Self::OtherLineage { .. }
            | Self::AlreadyCurrent { .. }
            | Self::EncryptedVersion { .. }
            | Self::NoStateInVersion { .. }
            | Self::SerialsExhausted
            | Self::StillDeclared { .. } => 409,
            Self::TooLarge { .. } => 413,
            Self::Locked { .. }
            | Self::Frozen { .. }
            | Self::LockNoLongerHeld { .. }
            | Self::LockNotHeld { .. }
            | Self::LockRequired { .. } => 423,
        }
    }

    /// Returns the lock that the answer must show: clients read it from the body of 409 and 423.
    pub fn lock_info(&self) -> Option<&LockInfo> {
        match self {
            Self::Frozen { freeze } => Some(freeze),
            Self::Locked { holder } | Self::MayNotBreakLocks { holder } => Some(holder),
            Self::NotTheHolder { holder, .. } => holder.as_deref(),
            Self::LockNoLongerHeld { released } => Some(&released.info),
            _ => None,
        }
    }
}

/// Why the backend did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The rules forbid it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There was no room to compute.
    #[error(transparent)]
    Busy(#[from] Busy),
    /// Too many changes of the tenant came first.
    #[error("the tenant is being changed too often: try again")]
    Contended,
}
