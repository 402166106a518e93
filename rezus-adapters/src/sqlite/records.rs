//! Rows of tenants and versions, and the records they stand for.

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::store::{Content, HeldLock, ReleasedLock, Revision, TenantRecord, VersionMeta};
use rezus_core::declared::{
    Encryption, Fingerprint, Freeze, Lineage, LockId, LockInfo, Serial, VersionNumber,
};
use rusqlite::{Connection, OptionalExtension as _, Row, named_params};

use super::error::JobError;

/// The columns of a tenant and of its newest version, which are absent where it has none.
const TENANT: &str = "SELECT t.name, t.revision, t.created_at, t.permanent, t.require_locks,
    t.require_encryption, t.frozen_at, t.frozen_by, t.freeze_reason, t.freeze_clients, t.highest_serial, t.lock_info, t.lock_acquired_at, t.lock_acquired_by, t.lock_head, t.last_released, v.*
    FROM tenants t LEFT JOIN versions v ON v.tenant_id = t.id AND v.version = t.head";

/// A tenant's record as it is stored.
pub(super) struct TenantRow {
    pub(super) revision: Revision,
    pub(super) record: TenantRecord,
}

/// Reads one tenant.
pub(super) fn tenant(connection: &Connection, name: &TenantName) -> Result<Option<TenantRow>, JobError> {
    let mut select = connection.prepare_cached(&format!("{TENANT} WHERE t.name = ?1"))?;
    let row = select.query_row([name.as_str()], |row| Ok(tenant_row(row))).optional()?;
    row.transpose()
}

/// Reads all tenants, sorted by name.
pub(super) fn tenants(connection: &Connection) -> Result<Vec<TenantRow>, JobError> {
    let mut select = connection.prepare_cached(&format!("{TENANT} ORDER BY t.name"))?;
    let rows = select.query_map([], |row| Ok(tenant_row(row)))?;
    rows.map(|row| row?).collect()
}

fn tenant_row(row: &Row<'_>) -> Result<TenantRow, JobError> {
    let damaged = |_| JobError::Damaged("a tenant's record");
    let lock = match row.get_ref("lock_info")?.as_str_or_null().map_err(|_| JobError::Damaged("a lock"))? {
        Some(info) => Some(HeldLock {
            info: lock_info(info)?,
            acquired_at: Timestamp::from_millis(row.get("lock_acquired_at")?),
            acquired_by: row.get("lock_acquired_by")?,
            acquired_head: row.get::<_, Option<i64>>("lock_head")?.map(version_number).transpose()?,
        }),
        None => None,
    };
    let record = TenantRecord {
        name: TenantName::parse(row.get_ref("name")?.as_str().unwrap_or_default())
            .map_err(|_| JobError::Damaged("a tenant's name"))?,
        created_at: Timestamp::from_millis(row.get("created_at")?),
        permanent: row.get("permanent")?,
        require_locks: row.get("require_locks")?,
        encryption: row.get::<_, Option<bool>>("require_encryption")?.map(encryption),
        freeze: freeze(row)?,
        lock,
        last_released: row
            .get::<_, Option<String>>("last_released")?
            .map(|id| LockId::parse(&id).map_err(|_| JobError::Damaged("a lock's ID")))
            .transpose()?,
        head: row.get::<_, Option<i64>>("version")?.map(|_| version_row(row)).transpose()?,
        highest_serial: serial(row, "highest_serial")?,
    };
    let revision: i64 = row.get("revision")?;
    Ok(TenantRow { revision: Revision(u64::try_from(revision).map_err(damaged)?), record })
}

const fn encryption(is_required: bool) -> Encryption {
    if is_required { Encryption::Required } else { Encryption::Optional }
}

fn freeze(row: &Row<'_>) -> Result<Option<Freeze>, JobError> {
    let Some(at) = row.get::<_, Option<i64>>("frozen_at")? else {
        return Ok(None);
    };
    Ok(Some(Freeze {
        by: row.get("frozen_by")?,
        reason: row.get("freeze_reason")?,
        at: Timestamp::from_millis(at),
        clients: row.get("freeze_clients")?,
    }))
}

/// Reads a lock as it was stored.
fn lock_info(json: &str) -> Result<LockInfo, JobError> {
    LockInfo::from_json(json.as_bytes(), Timestamp::from_millis(0)).map_err(|_| JobError::Damaged("a lock"))
}

fn serial(row: &Row<'_>, column: &str) -> Result<Option<Serial>, JobError> {
    let text: Option<String> = row.get(column)?;
    text.map(|text| text.parse().map_err(|_| JobError::Damaged("a serial"))).transpose()
}

/// Writes a tenant's record, all but its id; returns the id.
pub(super) fn put_tenant(connection: &Connection, record: &TenantRecord) -> Result<i64, JobError> {
    let revision: i64 = connection
        .prepare_cached("UPDATE counters SET value = value + 1 WHERE name = 'revision' RETURNING value")?
        .query_row([], |row| row.get(0))?;
    let (lock, freeze) = (record.lock.as_ref(), record.freeze.as_ref());
    let id = connection
        .prepare_cached(
            "INSERT INTO tenants (name, revision, created_at, permanent, require_locks, highest_serial, head,
                lock_id, lock_info, lock_acquired_at, lock_acquired_by, lock_head, last_released,
                frozen_at, frozen_by, freeze_reason, freeze_clients, require_encryption)
            VALUES (:name, :revision, :created_at, :permanent, :require_locks, :highest_serial, :head,
                :lock_id, :lock_info, :lock_acquired_at, :lock_acquired_by, :lock_head, :last_released,
                :frozen_at, :frozen_by, :freeze_reason, :freeze_clients, :require_encryption)
            ON CONFLICT (name) DO UPDATE SET revision = :revision, created_at = :created_at,
                permanent = :permanent, require_locks = :require_locks, highest_serial = :highest_serial,
                head = :head, lock_id = :lock_id, lock_info = :lock_info,
                lock_acquired_at = :lock_acquired_at, lock_acquired_by = :lock_acquired_by,
                lock_head = :lock_head, last_released = :last_released, frozen_at = :frozen_at,
                frozen_by = :frozen_by, freeze_reason = :freeze_reason, freeze_clients = :freeze_clients,
                require_encryption = :require_encryption
            RETURNING id",
        )?
        .query_row(
            named_params! {
                ":name": record.name.as_str(),
                ":revision": revision,
                ":created_at": record.created_at.as_millis(),
                ":permanent": record.permanent,
                ":require_locks": record.require_locks,
                ":highest_serial": record.highest_serial.map(|serial| serial.to_string()),
                ":head": record.head.as_ref().map(|head| number(head.version)),
                ":lock_id": lock.map(|lock| lock.info.id.as_str()),
                ":lock_info": lock.map(|lock| lock.info.to_json()),
                ":lock_acquired_at": lock.map(|lock| lock.acquired_at.as_millis()),
                ":lock_acquired_by": lock.map(|lock| lock.acquired_by.as_str()),
                ":lock_head": lock.and_then(|lock| lock.acquired_head).map(number),
                ":last_released": record.last_released.as_ref().map(LockId::as_str),
                ":frozen_at": freeze.map(|freeze| freeze.at.as_millis()),
                ":frozen_by": freeze.map(|freeze| freeze.by.as_str()),
                ":freeze_reason": freeze.map(|freeze| freeze.reason.as_str()),
                ":require_encryption": record.encryption.map(|asked| asked == Encryption::Required),
                ":freeze_clients": freeze.map(|freeze| freeze.clients),
            },
            |row| row.get(0),
        )?;
    Ok(id)
}

/// A version's number as SQLite holds it.
pub(super) fn number(version: VersionNumber) -> i64 {
    i64::try_from(version.get()).unwrap_or(i64::MAX)
}

/// Reads a version's number.
pub(super) fn version_number(number: i64) -> Result<VersionNumber, JobError> {
    u64::try_from(number).ok().and_then(VersionNumber::new).ok_or(JobError::Damaged("a version's number"))
}

/// Reads one version, and the id of its row.
pub(super) fn version(
    connection: &Connection,
    tenant: &TenantName,
    version: VersionNumber,
) -> Result<Option<(i64, VersionMeta)>, JobError> {
    let mut select = connection.prepare_cached(
        "SELECT v.* FROM versions v JOIN tenants t ON t.id = v.tenant_id WHERE t.name = ?1 AND v.version = ?2",
    )?;
    let row = select
        .query_row((tenant.as_str(), number(version)), |row| Ok((row.get("id")?, version_row(row))))
        .optional()?;
    row.map(|(id, meta)| Ok((id, meta?))).transpose()
}

/// Reads all versions of a tenant, oldest first.
pub(super) fn versions(connection: &Connection, tenant: &TenantName) -> Result<Vec<VersionMeta>, JobError> {
    let mut select = connection.prepare_cached(
        "SELECT v.* FROM versions v JOIN tenants t ON t.id = v.tenant_id WHERE t.name = ?1 ORDER BY v.version",
    )?;
    let rows = select.query_map([tenant.as_str()], |row| Ok(version_row(row)))?;
    rows.map(|row| row?).collect()
}

fn version_row(row: &Row<'_>) -> Result<VersionMeta, JobError> {
    let unsigned = |column: &str| -> Result<u64, JobError> {
        u64::try_from(row.get::<_, i64>(column)?).map_err(|_| JobError::Damaged("a version's size"))
    };
    let content = match row.get_ref("content")?.as_str().unwrap_or_default() {
        "plain" => Content::Plain { objects: unsigned("objects")?, empty: row.get("is_empty")? },
        "encrypted" => Content::Encrypted,
        "tombstone" => Content::Tombstone,
        _ => return Err(JobError::Damaged("a version's kind")),
    };
    let lock_id: Option<String> = row.get("lock_id")?;
    Ok(VersionMeta {
        version: version_number(row.get("version")?)?,
        serial: serial(row, "serial")?,
        lineage: row.get::<_, Option<String>>("lineage")?.map(Lineage::new),
        writer: row.get("writer")?,
        fingerprint: Fingerprint { sha256: row.get("sha256")?, md5: row.get("md5")? },
        size_bytes: unsigned("size_bytes")?,
        content,
        written_at: Timestamp::from_millis(row.get("written_at")?),
        written_by: row.get("written_by")?,
        lock_id: lock_id
            .map(|id| LockId::parse(&id).map_err(|_| JobError::Damaged("a lock's ID")))
            .transpose()?,
        lock_operation: row.get("lock_operation")?,
        forced: row.get("forced")?,
        unlocked: row.get("unlocked")?,
        intermediate: row.get("intermediate")?,
        pinned: row.get("pinned")?,
        rollback_of: row.get::<_, Option<i64>>("rollback_of")?.map(version_number).transpose()?,
    })
}

/// Appends a version; returns the id of its row.
pub(super) fn insert_version(
    connection: &Connection,
    tenant_id: i64,
    meta: &VersionMeta,
) -> Result<i64, JobError> {
    let (content, objects, is_empty) = match meta.content {
        Content::Plain { objects, empty } => ("plain", objects, empty),
        Content::Encrypted => ("encrypted", 0, false),
        Content::Tombstone => ("tombstone", 0, false),
    };
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    connection
        .prepare_cached(
            "INSERT INTO versions (tenant_id, version, serial, lineage, writer, sha256, md5, size_bytes, content,
                objects, is_empty, written_at, written_by, lock_id, lock_operation, forced, unlocked, intermediate,
                pinned, rollback_of)
            VALUES (:tenant_id, :version, :serial, :lineage, :writer, :sha256, :md5, :size_bytes, :content,
                :objects, :is_empty, :written_at, :written_by, :lock_id, :lock_operation, :forced, :unlocked,
                :intermediate, :pinned, :rollback_of)",
        )?
        .execute(named_params! {
            ":tenant_id": tenant_id,
            ":version": number(meta.version),
            ":serial": meta.serial.map(|serial| serial.to_string()),
            ":lineage": meta.lineage.as_ref().map(Lineage::as_str),
            ":writer": meta.writer,
            ":sha256": meta.fingerprint.sha256,
            ":md5": meta.fingerprint.md5,
            ":size_bytes": signed(meta.size_bytes),
            ":content": content,
            ":objects": signed(objects),
            ":is_empty": is_empty,
            ":written_at": meta.written_at.as_millis(),
            ":written_by": meta.written_by,
            ":lock_id": meta.lock_id.as_ref().map(LockId::as_str),
            ":lock_operation": meta.lock_operation,
            ":forced": meta.forced,
            ":unlocked": meta.unlocked,
            ":intermediate": meta.intermediate,
            ":pinned": meta.pinned,
            ":rollback_of": meta.rollback_of.map(number),
        })?;
    Ok(connection.last_insert_rowid())
}

/// Reads a lock that was let go.
pub(super) fn released_lock(row: &Row<'_>) -> Result<(TenantName, ReleasedLock), JobError> {
    let tenant = TenantName::parse(row.get_ref("tenant")?.as_str().unwrap_or_default())
        .map_err(|_| JobError::Damaged("a tenant's name"))?;
    let released = ReleasedLock {
        info: lock_info(row.get_ref("info")?.as_str().unwrap_or_default())?,
        released_at: Timestamp::from_millis(row.get("released_at")?),
        broken: row.get("broken")?,
    };
    Ok((tenant, released))
}
