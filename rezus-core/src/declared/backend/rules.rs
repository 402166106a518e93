//! The rules: what a request makes of a tenant's record. Pure functions, no store, no clock.

use crate::base::{TenantName, Timestamp};
use crate::declared::backend::refusal::Refusal;
use crate::declared::store::{Content, HeldLock, LockTrace, ReleasedLock, TenantRecord, VersionMeta};
use crate::declared::{Encryption, Fingerprint, Lineage, LockId, LockInfo, Serial, VersionNumber};

/// Who asks, as the server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// A name for history and audit: a user, or an address.
    pub name: String,
    /// Whether the caller may release locks that others hold.
    pub may_break_locks: bool,
    /// Whether the caller may create a tenant by writing to it.
    pub may_create_tenants: bool,
}

/// A record as the rules would have it, and what else the change carries.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) record: Option<TenantRecord>,
    /// Whether the record's head is a new version.
    pub(super) appends: bool,
    pub(super) mark_intermediate: Option<VersionNumber>,
    pub(super) released: Option<ReleasedLock>,
}

impl Next {
    /// A change without a version.
    pub(super) fn settings(record: Option<TenantRecord>) -> Self {
        Self { record, appends: false, mark_intermediate: None, released: None }
    }

    fn version(record: TenantRecord, mark_intermediate: Option<VersionNumber>) -> Self {
        Self { record: Some(record), appends: true, mark_intermediate, released: None }
    }
}

/// What is known of a state that is to be written.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) serial: Option<Serial>,
    pub(super) lineage: Option<Lineage>,
    pub(super) writer: Option<String>,
    pub(super) fingerprint: Fingerprint,
    pub(super) size_bytes: u64,
    pub(super) content: Content,
}

/// A tenant that did not exist before.
pub(super) fn new_tenant(name: &TenantName, now: Timestamp) -> TenantRecord {
    TenantRecord {
        name: name.clone(),
        created_at: now,
        permanent: false,
        require_locks: false,
        encryption: None,
        freeze: None,
        lock: None,
        last_released: None,
        head: None,
        highest_serial: None,
    }
}

/// Returns the tenant's record, or a fresh one where the caller may create it.
pub(super) fn existing_or_new(
    record: Option<&TenantRecord>,
    name: &TenantName,
    caller: &Caller,
    now: Timestamp,
) -> Result<TenantRecord, Refusal> {
    match record {
        Some(record) => Ok(record.clone()),
        None if caller.may_create_tenants => Ok(new_tenant(name, now)),
        None => Err(Refusal::UnknownTenant { tenant: name.clone() }),
    }
}

/// LOCK: granted when free and not frozen; granted again to the client that holds it, whose first answer was lost.
pub(super) fn lock(
    mut record: TenantRecord,
    info: &LockInfo,
    caller: &Caller,
    now: Timestamp,
) -> Result<Option<Next>, Refusal> {
    if record.lock.as_ref().is_some_and(|held| held.info.id == info.id) {
        return Ok(None);
    }
    not_frozen(&record)?;
    if let Some(held) = &record.lock {
        return Err(Refusal::Locked { holder: Box::new(held.info.clone()) });
    }
    record.lock = Some(HeldLock {
        info: info.clone(),
        acquired_at: now,
        acquired_by: caller.name.clone(),
        acquired_head: record.head.as_ref().map(|head| head.version),
    });
    Ok(Some(Next::settings(Some(record))))
}

/// Which lock an UNLOCK means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unlock {
    /// The one with this ID.
    Id(LockId),
    /// Whichever is held: `terraform force-unlock` sends an empty body.
    Any,
    /// The one with this ID, by an operator who does not hold it.
    Break(LockId),
}

/// UNLOCK: the holder's own; one already let go (its answer was lost); any, by who may break locks. A tenant that was
/// locked and never written vanishes.
pub(super) fn unlock(
    record: Option<&TenantRecord>,
    name: &TenantName,
    which: &Unlock,
    trace: Option<&LockTrace>,
    caller: &Caller,
    now: Timestamp,
) -> Result<Option<Next>, Refusal> {
    // Its own answer was lost: it was let go by its holder, and no other one since.
    let was_released = |id: &LockId, last: Option<&LockId>| match trace {
        Some(LockTrace::Released(tenant, released)) => tenant == name && !released.broken && last == Some(id),
        Some(LockTrace::Held(_)) | None => false,
    };
    let Some(record) = record else {
        // The tenant went with the lock: whoever let it go, there is nothing left to be told about.
        let vanished = matches!(trace, Some(LockTrace::Released(tenant, _)) if tenant == name);
        return if vanished { Ok(None) } else { Err(Refusal::UnknownTenant { tenant: name.clone() }) };
    };
    let Some(held) = &record.lock else {
        return match which {
            Unlock::Any => Ok(None),
            Unlock::Id(id) if was_released(id, record.last_released.as_ref()) => Ok(None),
            Unlock::Id(id) | Unlock::Break(id) => Err(Refusal::NotTheHolder { id: id.clone(), holder: None }),
        };
    };
    let holder = || Box::new(held.info.clone());
    let broken = match which {
        Unlock::Id(id) if *id == held.info.id => false,
        Unlock::Id(id) if was_released(id, record.last_released.as_ref()) => return Ok(None),
        Unlock::Break(id) if *id == held.info.id && caller.may_break_locks => true,
        Unlock::Id(id) | Unlock::Break(id) if *id != held.info.id => {
            return Err(Refusal::NotTheHolder { id: id.clone(), holder: Some(holder()) });
        }
        Unlock::Any if caller.may_break_locks => true,
        Unlock::Any | Unlock::Id(_) | Unlock::Break(_) => {
            return Err(Refusal::MayNotBreakLocks { holder: holder() });
        }
    };
    let released = ReleasedLock { info: held.info.clone(), released_at: now, broken };
    let last_released = Some(held.info.id.clone());
    let record = record.permanent.then(|| TenantRecord { lock: None, last_released, ..record.clone() });
    Ok(Some(Next { released: Some(released), ..Next::settings(record) }))
}

/// POST: what the record becomes, with the new version as its head; `None` when the bytes are the current version's.
pub(super) fn post(
    mut record: TenantRecord,
    lock_id: Option<&LockId>,
    trace: Option<&LockTrace>,
    candidate: &Candidate,
    encryption: Encryption,
    caller: &Caller,
    now: Timestamp,
) -> Result<Option<Next>, Refusal> {
    let lock = lock_of_write(&record, lock_id, trace)?;
    let current = record.head.as_ref().filter(|head| head.content != Content::Tombstone);
    if current.is_some_and(|head| head.fingerprint == candidate.fingerprint) {
        return Ok(None);
    }
    encrypted_enough(&record.name, candidate.content, encryption)?;
    let disorder = current.and_then(|head| disorder(head, candidate));
    let may_force = lock.is_some_and(|held| held.info.is_state_push());
    let forced = match disorder {
        Some(refusal) if !may_force => return Err(refusal),
        Some(_) => true,
        None => false,
    };
    let lock_info = lock.map(|held| held.info.clone());
    // Written since this lock was granted: an ID may be used again, by scripts that lock by themselves.
    let mark_intermediate = current
        .filter(|head| {
            lock.is_some_and(|held| held.acquired_head.is_none_or(|granted| head.version > granted))
        })
        .map(|head| head.version);
    let head = VersionMeta {
        lock_id: lock_info.as_ref().map(|info| info.id.clone()),
        unlocked: lock_info.is_none(),
        lock_operation: lock_info.map(|info| info.operation),
        forced,
        ..next_head(&record, candidate, caller, now)
    };
    accept(&mut record, head);
    Ok(Some(Next::version(record, mark_intermediate)))
}

/// Refuses a state in clear where states have to be encrypted: no lock and no force lets one in.
fn encrypted_enough(tenant: &TenantName, content: Content, encryption: Encryption) -> Result<(), Refusal> {
    match (content, encryption) {
        (Content::Plain { .. }, Encryption::Required) => {
            Err(Refusal::EncryptionRequired { tenant: tenant.clone() })
        }
        (Content::Plain { .. }, Encryption::Optional) | (Content::Encrypted | Content::Tombstone, _) => {
            Ok(())
        }
    }
}

/// Refuses what a freeze keeps from clients.
fn not_frozen(record: &TenantRecord) -> Result<(), Refusal> {
    match &record.freeze {
        Some(freeze) if freeze.clients => Err(Refusal::Frozen { freeze: Box::new(freeze.as_lock()) }),
        Some(_) | None => Ok(()),
    }
}

/// Finds the lock a write is made under: the one held, by its ID; none only where none is held and none required. A lock
/// that was granted before a freeze is written under all the same: what is under way has to save.
fn lock_of_write<'a>(
    record: &'a TenantRecord,
    lock_id: Option<&LockId>,
    trace: Option<&LockTrace>,
) -> Result<Option<&'a HeldLock>, Refusal> {
    match (&record.lock, lock_id) {
        (Some(held), Some(id)) if held.info.id == *id => return Ok(Some(held)),
        _ => not_frozen(record)?,
    }
    match (&record.lock, lock_id) {
        (Some(held), _) => Err(Refusal::Locked { holder: Box::new(held.info.clone()) }),
        (None, Some(id)) => Err(lock_gone(&record.name, id, trace)),
        (None, None) if record.require_locks => Err(Refusal::LockRequired { tenant: record.name.clone() }),
        (None, None) => Ok(None),
    }
}

/// The refusal of a write whose lock is not held: with the lock as it was, where that is remembered.
pub(super) fn lock_gone(tenant: &TenantName, id: &LockId, trace: Option<&LockTrace>) -> Refusal {
    match trace {
        Some(LockTrace::Released(of, released)) if of == tenant => {
            Refusal::LockNoLongerHeld { released: Box::new(released.clone()) }
        }
        Some(LockTrace::Held(_) | LockTrace::Released(..)) | None => Refusal::LockNotHeld { id: id.clone() },
    }
}

/// Tells which rule of succession a state breaks (OpenTofu, `statemgr.CheckValidImport`): an empty state may be
/// followed by anything, and so may one where either lineage is empty; of envelopes without serial or lineage nothing
/// is known.
fn disorder(current: &VersionMeta, next: &Candidate) -> Option<Refusal> {
    if matches!(current.content, Content::Plain { empty: true, .. }) {
        return None;
    }
    let (was, is) = (current.lineage.as_ref()?, next.lineage.as_ref()?);
    if was.is_empty() || is.is_empty() {
        return None;
    }
    if was != is {
        return Some(Refusal::OtherLineage { current: was.clone(), posted: is.clone() });
    }
    let (was, is) = (current.serial?, next.serial?);
    if is < was {
        return Some(Refusal::SerialTooLow { current: was, posted: is });
    }
    (is == was).then_some(Refusal::SerialReused { current: was, posted: is })
}

/// DELETE: a tombstone; nothing where there is nothing.
pub(super) fn delete(
    mut record: TenantRecord,
    caller: &Caller,
    now: Timestamp,
) -> Result<Option<Next>, Refusal> {
    lock_of_write(&record, None, None)?;
    if record.head.as_ref().is_none_or(|head| head.content == Content::Tombstone) {
        return Ok(None);
    }
    let nothing = Candidate {
        serial: None,
        lineage: None,
        writer: None,
        fingerprint: Fingerprint::of(b""),
        size_bytes: 0,
        content: Content::Tombstone,
    };
    let head = VersionMeta { unlocked: true, ..next_head(&record, &nothing, caller, now) };
    accept(&mut record, head);
    Ok(Some(Next::version(record, None)))
}

/// Rollback, part one: may `version` be brought back, and under which serial?
pub(super) fn rollback_serial(
    record: &TenantRecord,
    target: Option<&VersionMeta>,
    version: VersionNumber,
    encryption: Encryption,
) -> Result<Serial, Refusal> {
    let tenant = || record.name.clone();
    if let Some(held) = &record.lock {
        return Err(Refusal::Locked { holder: Box::new(held.info.clone()) });
    }
    let Some(target) = target else {
        return Err(Refusal::NoSuchVersion { tenant: tenant(), version });
    };
    match target.content {
        Content::Encrypted => {
            let serial = record.highest_serial.map_or(Some(Serial::new(1)), Serial::next);
            let serial = serial.ok_or(Refusal::SerialsExhausted)?;
            return Err(Refusal::EncryptedVersion { tenant: tenant(), version, serial });
        }
        Content::Tombstone => return Err(Refusal::NoStateInVersion { version }),
        Content::Plain { .. } => {}
    }
    if record.head.as_ref().is_some_and(|head| head.version == version) {
        return Err(Refusal::AlreadyCurrent { version });
    }
    encrypted_enough(&record.name, target.content, encryption)?;
    record.highest_serial.map_or(target.serial, Serial::next).ok_or(Refusal::SerialsExhausted)
}

/// Rollback, part two: the record with the renumbered state as its head.
pub(super) fn rollback(
    mut record: TenantRecord,
    version: VersionNumber,
    candidate: &Candidate,
    caller: &Caller,
    now: Timestamp,
) -> Next {
    let head = VersionMeta {
        lock_operation: Some("rollback".to_owned()),
        rollback_of: Some(version),
        ..next_head(&record, candidate, caller, now)
    };
    accept(&mut record, head);
    Next::version(record, None)
}

/// The version that a state would become, with nothing said yet of how it came.
fn next_head(record: &TenantRecord, candidate: &Candidate, caller: &Caller, now: Timestamp) -> VersionMeta {
    VersionMeta {
        version: record.head.as_ref().map_or(VersionNumber::FIRST, |head| head.version.next()),
        serial: candidate.serial,
        lineage: candidate.lineage.clone(),
        writer: candidate.writer.clone(),
        fingerprint: candidate.fingerprint,
        size_bytes: candidate.size_bytes,
        content: candidate.content,
        written_at: now,
        written_by: caller.name.clone(),
        lock_id: None,
        lock_operation: None,
        forced: false,
        unlocked: false,
        intermediate: false,
        pinned: false,
        rollback_of: None,
    }
}

fn accept(record: &mut TenantRecord, head: VersionMeta) {
    record.permanent = true;
    record.highest_serial = record.highest_serial.max(head.serial);
    record.head = Some(head);
}
