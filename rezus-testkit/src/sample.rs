//! Small valid values for tests of the stores: names, records, versions, rows, bodies; and the changes that a client
//! makes of them. Each panics where a store does not do as asked.

#![expect(clippy::missing_panics_doc, reason = "the module's first line says it for all of them")]

use bytes::Bytes;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::index::{IndexRow, Mode};
use rezus_core::declared::store::{
    Change, CommitError, Content, HeldLock, NewVersion, RefusalRecord, ReleasedLock, StateStore,
    TenantRecord, VersionMeta,
};
use rezus_core::declared::{Fingerprint, Lineage, LockId, LockInfo, ResourceAddress, Serial, VersionNumber};
use rezus_core::runs::{Approval, Operation, RunFacts, RunName, RunRequest, TenantKey};

/// A point in time that is after the epoch and before any test: 2026-11-30T19:10:37Z.
pub const NOON: Timestamp = Timestamp::from_millis(1_796_065_837_000);

/// By which rules the rows of a [`new_version`] were masked.
pub const SECRET_RULES: [u8; 32] = [7; 32];

/// Returns the time `millis` after [`NOON`]; before it, if negative.
pub fn noon_plus(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOON.as_millis() + millis)
}

/// Returns a tenant's name.
pub fn tenant(name: &str) -> TenantName {
    TenantName::parse(name).expect("a test uses a valid name")
}

/// Returns a version's number.
pub fn version(number: u64) -> VersionNumber {
    VersionNumber::new(number).expect("a test counts from 1")
}

/// Returns a lock's ID.
pub fn lock_id(text: &str) -> LockId {
    LockId::parse(text).expect("a test uses a valid ID")
}

/// Returns what a client says of its lock.
pub fn lock_info(id: &str) -> LockInfo {
    LockInfo {
        id: lock_id(id),
        operation: "OperationTypeApply".to_owned(),
        info: String::new(),
        who: "ops@bastion.example".to_owned(),
        version: "1.12.6".to_owned(),
        created: "2026-11-30T19:10:37.123456789Z".to_owned(),
        path: String::new(),
    }
}

/// Returns that lock as held.
pub fn held_lock(id: &str) -> HeldLock {
    HeldLock {
        info: lock_info(id),
        acquired_at: NOON,
        acquired_by: "token ci".to_owned(),
        acquired_head: VersionNumber::new(7),
    }
}

/// Returns that lock as let go by its holder.
pub fn released_lock(id: &str, released_at: Timestamp) -> ReleasedLock {
    ReleasedLock { info: lock_info(id), released_at, broken: false }
}

/// Returns a refusal that can be told from others by its number.
pub fn refusal(number: u16) -> RefusalRecord {
    RefusalRecord {
        at: noon_plus(i64::from(number)),
        who: "token ci, ops@bastion.example".to_owned(),
        operation: "POST".to_owned(),
        code: 409,
        reason: format!("serial {number} is not above 7"),
        head: VersionNumber::new(u64::from(number)),
    }
}

/// Returns bytes that do not compress, the same ones for the same seed.
pub fn random_bytes(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// Returns text that compresses well, as states do.
pub fn compressible_bytes(length: usize) -> Bytes {
    let mut bytes = Vec::with_capacity(length + 100);
    let mut line = 0_u64;
    while bytes.len() < length {
        bytes
            .extend_from_slice(format!("      \"attribute_{line}\": \"subnet-{}\",\n", line % 97).as_bytes());
        line += 1;
    }
    bytes.truncate(length);
    bytes.into()
}

/// Returns a row for the bytes `span` of `body`, in the root module, of a resource without a key.
pub fn row(body: &[u8], name: &str, position: (u32, u32), span: std::ops::Range<usize>) -> IndexRow {
    let checksum = crc32fast::hash(&body[span.clone()]);
    let offset = |at: usize| u64::try_from(at).expect("a body is shorter than 2^64 bytes");
    IndexRow {
        address: address(&format!("hcloud_server.{name}")),
        deposed: None,
        module: String::new(),
        mode: Mode::Managed,
        resource_type: "hcloud_server".to_owned(),
        name: name.to_owned(),
        key: None,
        provider: r#"provider["registry.opentofu.org/hetznercloud/hcloud"]"#.to_owned(),
        tainted: false,
        position,
        span: offset(span.start)..offset(span.end),
        checksum,
        masked: Vec::new(),
    }
}

/// Returns an address.
pub fn address(text: &str) -> ResourceAddress {
    ResourceAddress::parse(text).expect("a test uses a valid address")
}

/// Returns a body and an index of it with `count` rows, in order. Other seeds give other rows.
pub fn indexed_body(count: u32, seed: u64) -> (Bytes, Vec<IndexRow>) {
    let mut body = Vec::from(&b"{\"resources\":["[..]);
    let mut rows = Vec::new();
    for block in 0..count {
        let start = body.len();
        body.extend_from_slice(format!("{{\"seed\":{seed},\"block\":{block}}}").as_bytes());
        rows.push(row(&body, &format!("node-{seed}-{block}"), (block, 0), start..body.len()));
        body.push(b',');
    }
    body.extend_from_slice(b"{}]}");
    (body.into(), rows)
}

/// Returns a version of a state in clear, with this number, body and index.
pub fn new_version(number: VersionNumber, body: Bytes, rows: Vec<IndexRow>) -> NewVersion {
    let objects = u64::try_from(rows.len()).expect("rows can be counted");
    let meta = VersionMeta {
        version: number,
        serial: Some(Serial::new(number.get())),
        lineage: Some(Lineage::new("5f0e2c3c-1c7a-4d3c-8a0e-6f1f0c0a7b11")),
        writer: Some("1.12.6".to_owned()),
        fingerprint: Fingerprint::of(&body),
        size_bytes: u64::try_from(body.len()).expect("a body is shorter than 2^64 bytes"),
        content: Content::Plain { objects, empty: false },
        written_at: noon_plus(i64::try_from(number.get()).expect("tests write few versions")),
        written_by: "token ci".to_owned(),
        lock_id: None,
        lock_operation: None,
        forced: false,
        unlocked: true,
        intermediate: false,
        pinned: false,
        rollback_of: None,
    };
    NewVersion { meta, body, rows: rows.into(), secret_rules: SECRET_RULES }
}

/// Returns a version whose bytes are an envelope.
pub fn encrypted_version(number: VersionNumber, body: Bytes) -> NewVersion {
    let mut new = new_version(number, body, Vec::new());
    new.meta.content = Content::Encrypted;
    new.meta.writer = None;
    new
}

/// Returns a version that says that the state was deleted.
pub fn tombstone(number: VersionNumber) -> NewVersion {
    let mut new = new_version(number, Bytes::new(), Vec::new());
    new.meta.content = Content::Tombstone;
    new.meta.serial = None;
    new.meta.lineage = None;
    new.meta.writer = None;
    new
}

/// Returns a tenant's record as it is when the tenant was just created by name.
pub fn new_record(tenant: &TenantName) -> TenantRecord {
    TenantRecord {
        name: tenant.clone(),
        created_at: NOON,
        permanent: true,
        require_locks: false,
        encryption: None,
        freeze: None,
        lock: None,
        head: None,
        last_released: None,
        highest_serial: None,
    }
}

/// Returns a change that changes nothing yet, decided on what the store holds now; of a tenant that it does not know,
/// one that creates it. Set its other members to what is to be changed.
pub async fn decide(store: &dyn StateStore, tenant: &TenantName) -> Change {
    let present = store.tenant(tenant).await.expect("the tenant can be read");
    let (record, expected) = match present {
        Some((record, revision)) => (record, Some(revision)),
        None => (new_record(tenant), None),
    };
    Change {
        tenant: tenant.clone(),
        expected,
        record: Some(record),
        append: None,
        mark_intermediate: None,
        released: None,
    }
}

/// Appends a version, which `make` makes from its number, in a change: the record's head and highest serial follow.
pub fn append_to(change: &mut Change, make: impl FnOnce(VersionNumber) -> NewVersion) -> VersionMeta {
    let record = change.record.as_mut().expect("a tenant that is removed gets no version");
    let new = make(record.head.as_ref().map_or(VersionNumber::FIRST, |head| head.version.next()));
    record.permanent = true;
    record.highest_serial = record.highest_serial.max(new.meta.serial);
    record.head = Some(new.meta.clone());
    let meta = new.meta.clone();
    change.append = Some(new);
    meta
}

/// Commits a new version that `make` makes from its number, and returns it.
pub async fn commit_version(
    store: &dyn StateStore,
    tenant: &TenantName,
    make: impl FnOnce(VersionNumber) -> NewVersion,
) -> VersionMeta {
    let mut change = decide(store, tenant).await;
    let meta = append_to(&mut change, make);
    store.commit(change).await.expect("the version is appended");
    meta
}

/// Commits a new version of a state in clear without any resource, with this body, and returns it.
pub async fn commit_body(store: &dyn StateStore, tenant: &TenantName, body: impl Into<Bytes>) -> VersionMeta {
    let body = body.into();
    commit_version(store, tenant, |number| new_version(number, body, Vec::new())).await
}

/// Grants the tenant's lock, creating the tenant where there is none.
///
/// # Errors
///
/// What the store answered.
pub async fn lock(store: &dyn StateStore, tenant: &TenantName, id: &str) -> Result<(), CommitError> {
    let mut change = decide(store, tenant).await;
    if let Some(record) = &mut change.record {
        record.lock = Some(held_lock(id));
    }
    store.commit(change).await
}

/// Lets the tenant's lock go.
pub async fn unlock(store: &dyn StateStore, tenant: &TenantName, released_at: Timestamp) {
    let mut change = decide(store, tenant).await;
    let held = change.record.as_mut().and_then(|record| record.lock.take()).expect("the lock is held");
    change.released = Some(ReleasedLock { info: held.info, released_at, broken: false });
    store.commit(change).await.expect("the lock is let go");
}

/// Removes the tenant with all its versions; its lock, if held, is let go at [`NOON`].
pub async fn remove(store: &dyn StateStore, tenant: &TenantName) {
    let mut change = decide(store, tenant).await;
    let held = change.record.take().and_then(|record| record.lock);
    change.released = held.map(|held| ReleasedLock { info: held.info, released_at: NOON, broken: false });
    store.commit(change).await.expect("the tenant is removed");
}

/// Returns all bytes of a version, or `None` if there is no such version.
pub async fn body_of(store: &dyn StateStore, tenant: &TenantName, version: VersionNumber) -> Option<Bytes> {
    store.read(tenant, version, 0..u64::MAX).await.expect("the body can be read")
}

/// Returns what is known of a run that was just asked for, and can be told from others.
pub fn run_facts(tenant: &TenantName, name: &str) -> RunFacts {
    RunFacts {
        labels: [("by".to_owned(), name.to_owned())].into(),
        ..RunFacts::new(
            TenantKey(tenant.clone()),
            RunName::parse(name).expect("a test uses a valid name"),
            format!("uid of {tenant}/{name}"),
            RunRequest::new(Operation::Plan, format!("who asked for {name}")),
            Approval::Manual,
            NOON,
        )
    }
}
