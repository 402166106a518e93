//! The state store's port over the file.

use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::index::{INDEX_FORMAT, IndexHead};
use rezus_core::declared::store::{
    Change, CommitError, Content, LOCK_MEMORY, LockTrace, NewVersion, REFUSALS_KEPT, REFUSALS_OF_NOBODY_KEPT,
    RefusalRecord, ReleasedLock, Revision, Space, StateStore, StoreError, TenantRecord, VersionMeta,
};
use rezus_core::declared::{LockId, VersionNumber};
use rusqlite::{Connection, OptionalExtension as _};

use super::SqliteStore;
use super::error::JobError;
use super::writer::Verdict;
use super::{chunks, history_store, index_rows, records};

/// How many versions one transaction disowns: well under a millisecond.
const VERSIONS_A_JOB: usize = 256;

impl SqliteStore {
    async fn read_job<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, StoreError> {
        Ok(Arc::clone(&self.readers).run(read).await?)
    }
}

#[async_trait]
impl StateStore for SqliteStore {
    async fn tenants(&self) -> Result<Vec<TenantRecord>, StoreError> {
        let rows = self.read_job(records::tenants).await?;
        Ok(rows.into_iter().map(|row| row.record).collect())
    }

    async fn tenant(&self, tenant: &TenantName) -> Result<Option<(TenantRecord, Revision)>, StoreError> {
        let tenant = tenant.clone();
        let row = self.read_job(move |connection| records::tenant(connection, &tenant)).await?;
        Ok(row.map(|row| (row.record, row.revision)))
    }

    async fn commit(&self, change: Change) -> Result<(), CommitError> {
        let (change, pieces) = tokio::task::spawn_blocking(move || {
            let pieces = change.append.as_ref().map(|version| chunks::compress(&version.body)).transpose();
            (change, pieces)
        })
        .await
        .map_err(|_| StoreError::from(JobError::Closed))?;
        let pieces = pieces.map_err(|source| StoreError::Unavailable { source: Box::new(source) })?;
        let job = move |connection: &Connection| commit(connection, &change, &pieces.unwrap_or_default());
        match self.writer.run(job).await.map_err(StoreError::from)? {
            Outcome::Done => {}
            Outcome::Conflict => return Err(CommitError::Conflict),
            Outcome::LockIdHeld => return Err(CommitError::LockIdHeld),
            Outcome::NameIsLockId => return Err(CommitError::NameIsLockId),
        }
        Ok(())
    }

    async fn trace_lock(&self, id: &LockId, now: Timestamp) -> Result<Option<LockTrace>, StoreError> {
        let id = id.clone();
        self.read_job(move |connection| trace_lock(connection, &id, now)).await
    }

    async fn versions(&self, tenant: &TenantName) -> Result<Vec<VersionMeta>, StoreError> {
        let tenant = tenant.clone();
        self.read_job(move |connection| records::versions(connection, &tenant)).await
    }

    async fn version(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
    ) -> Result<Option<VersionMeta>, StoreError> {
        let tenant = tenant.clone();
        let found = self.read_job(move |connection| records::version(connection, &tenant, version)).await?;
        Ok(found.map(|(_, meta)| meta))
    }

    async fn read(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        range: Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        let tenant = tenant.clone();
        self.read_job(move |connection| {
            // One transaction: a version must not be removed between its record and its chunks.
            let transaction = connection.unchecked_transaction()?;
            let Some((id, meta)) = records::version(&transaction, &tenant, version)? else {
                return Ok(None);
            };
            let range = range.start..range.end.min(meta.size_bytes);
            Ok(Some(Bytes::from(chunks::read(&transaction, id, range)?)))
        })
        .await
    }

    async fn set_pinned(
        &self,
        tenant: &TenantName,
        version: VersionNumber,
        pinned: bool,
    ) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let job = move |connection: &Connection| {
            let changed = connection
                .prepare_cached(
                    "UPDATE versions SET pinned = ?3
                    WHERE version = ?2 AND tenant_id = (SELECT id FROM tenants WHERE name = ?1)",
                )?
                .execute((tenant.as_str(), records::number(version), pinned))?;
            Ok(Verdict::Keep(changed > 0))
        };
        Ok(self.writer.run(job).await?)
    }

    async fn remove_versions(
        &self,
        tenant: &TenantName,
        versions: &[VersionNumber],
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        for some in versions.chunks(VERSIONS_A_JOB) {
            let (tenant, some) = (tenant.clone(), some.to_vec());
            let job = move |connection: &Connection| {
                let mut disown = connection.prepare_cached(
                    "UPDATE versions SET tenant_id = 0, version = -id WHERE version = ?2 AND NOT pinned AND tenant_id =
                        (SELECT id FROM tenants WHERE name = ?1 AND head IS NOT ?2)",
                )?;
                let mut gone = 0;
                for version in some {
                    gone += disown.execute((tenant.as_str(), records::number(version)))?;
                }
                Ok(Verdict::Keep(gone))
            };
            removed += self.writer.run(job).await.map_err(StoreError::from)?;
        }
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }

    async fn record_refusal(&self, tenant: &TenantName, refusal: RefusalRecord) -> Result<(), StoreError> {
        let tenant = tenant.clone();
        let job = move |connection: &Connection| {
            connection
                .prepare_cached(
                    "INSERT INTO refusals (tenant, at, who, operation, code, reason, head)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute((
                    tenant.as_str(),
                    refusal.at.as_millis(),
                    &refusal.who,
                    &refusal.operation,
                    refusal.code,
                    &refusal.reason,
                    refusal.head.map(records::number),
                ))?;
            connection
                .prepare_cached(
                    "DELETE FROM refusals WHERE tenant = ?1 AND id <=
                        (SELECT id FROM refusals WHERE tenant = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                )?
                .execute((tenant.as_str(), REFUSALS_KEPT))?;
            forget_refusals_of_nobody(connection, &tenant)?;
            Ok(Verdict::Keep(()))
        };
        Ok(self.writer.run(job).await?)
    }

    async fn refusals(&self, tenant: &TenantName) -> Result<Vec<RefusalRecord>, StoreError> {
        let tenant = tenant.clone();
        self.read_job(move |connection| {
            let mut select = connection.prepare_cached(
                "SELECT at, who, operation, code, reason, head FROM refusals WHERE tenant = ?1 ORDER BY id DESC",
            )?;
            let mut rows = select.query([tenant.as_str()])?;
            let mut refusals = Vec::new();
            while let Some(row) = rows.next()? {
                refusals.push(RefusalRecord {
                    at: Timestamp::from_millis(row.get(0)?),
                    who: row.get(1)?,
                    operation: row.get(2)?,
                    code: row.get(3)?,
                    reason: row.get(4)?,
                    head: row.get::<_, Option<i64>>(5)?.map(records::version_number).transpose()?,
                });
            }
            Ok(refusals)
        })
        .await
    }

    async fn tidy(&self, now: Timestamp) -> Result<(), StoreError> {
        self.collect_garbage().await?;
        self.forget_old_refusals_of_nobody(now.minus(LOCK_MEMORY)).await
    }

    async fn space(&self) -> Result<Space, StoreError> {
        self.used_space().await
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.read_job(|connection| Ok(connection.query_row("SELECT 1 FROM counters", [], |_| Ok(()))?))
            .await?;
        // A transaction that writes and is undone: nothing is synced, and a full disk or a dead thread shows.
        let job = |connection: &Connection| {
            connection.execute("UPDATE counters SET value = value", [])?;
            Ok(Verdict::Undo(()))
        };
        Ok(self.writer.run(job).await?)
    }
}

enum Outcome {
    Done,
    Conflict,
    LockIdHeld,
    NameIsLockId,
}

fn commit(
    connection: &Connection,
    change: &Change,
    pieces: &[Vec<u8>],
) -> Result<Verdict<Outcome>, JobError> {
    let present = records::tenant(connection, &change.tenant)?;
    if present.as_ref().map(|row| row.revision) != change.expected {
        return Ok(Verdict::Undo(Outcome::Conflict));
    }
    if let Some(released) = &change.released {
        remember(connection, &change.tenant, released)?;
    }
    let Some(record) = &change.record else {
        connection
            .prepare_cached(
                "UPDATE versions SET tenant_id = 0, version = -id WHERE tenant_id =
                    (SELECT id FROM tenants WHERE name = ?1)",
            )?
            .execute([change.tenant.as_str()])?;
        connection
            .prepare_cached("DELETE FROM tenants WHERE name = ?1")?
            .execute([change.tenant.as_str()])?;
        index_rows::remove(connection, &change.tenant)?;
        history_store::remove(connection, &change.tenant)?;
        return Ok(Verdict::Keep(Outcome::Done));
    };
    if change.expected.is_none() && is_held(connection, change.tenant.as_str())? {
        return Ok(Verdict::Undo(Outcome::NameIsLockId));
    }
    if let Some(lock) = &record.lock {
        let is_new = present.as_ref().and_then(|row| row.record.lock.as_ref()).is_none();
        if is_new
            && (lock.info.id.as_str() == record.name.as_str()
                || is_tenant(connection, lock.info.id.as_str())?)
        {
            return Ok(Verdict::Undo(Outcome::NameIsLockId));
        }
        let holder: Option<String> = connection
            .prepare_cached("SELECT name FROM tenants WHERE lock_id = ?1 AND name <> ?2")?
            .query_row((lock.info.id.as_str(), change.tenant.as_str()), |row| row.get(0))
            .optional()?;
        if holder.is_some() {
            return Ok(Verdict::Undo(Outcome::LockIdHeld));
        }
    }
    let tenant_id = records::put_tenant(connection, record)?;
    if let Some(version) = change.mark_intermediate {
        connection
            .prepare_cached("UPDATE versions SET intermediate = 1 WHERE tenant_id = ?1 AND version = ?2")?
            .execute((tenant_id, records::number(version)))?;
    }
    if let Some(version) = &change.append {
        append(connection, &change.tenant, tenant_id, version, pieces)?;
    }
    Ok(Verdict::Keep(Outcome::Done))
}

/// Tells whether a lock with this ID is held.
fn is_held(connection: &Connection, id: &str) -> Result<bool, JobError> {
    let mut select = connection.prepare_cached("SELECT 1 FROM tenants WHERE lock_id = ?1")?;
    Ok(select.exists([id])?)
}

/// Tells whether there is a tenant of this name.
fn is_tenant(connection: &Connection, name: &str) -> Result<bool, JobError> {
    let mut select = connection.prepare_cached("SELECT 1 FROM tenants WHERE name = ?1")?;
    Ok(select.exists([name])?)
}

/// Keeps few refusals of names that are no tenants: anybody can make up names.
fn forget_refusals_of_nobody(connection: &Connection, tenant: &TenantName) -> Result<(), JobError> {
    if is_tenant(connection, tenant.as_str())? {
        return Ok(());
    }
    connection
        .prepare_cached(
            "DELETE FROM refusals WHERE id IN (SELECT id FROM refusals WHERE tenant NOT IN (SELECT name FROM tenants)
                ORDER BY id DESC LIMIT -1 OFFSET ?1)",
        )?
        .execute([REFUSALS_OF_NOBODY_KEPT])?;
    Ok(())
}

fn append(
    connection: &Connection,
    tenant: &TenantName,
    tenant_id: i64,
    version: &NewVersion,
    pieces: &[Vec<u8>],
) -> Result<(), JobError> {
    let version_id = records::insert_version(connection, tenant_id, &version.meta)?;
    chunks::insert(connection, version_id, pieces)?;
    match version.meta.content {
        Content::Plain { objects, .. } => {
            let head = IndexHead {
                version: version.meta.version,
                sha256: version.meta.fingerprint.sha256,
                format: INDEX_FORMAT,
                rows: objects,
                secret_rules: version.secret_rules,
            };
            index_rows::replace(connection, tenant, head, &version.rows)
        }
        Content::Encrypted | Content::Tombstone => index_rows::remove(connection, tenant),
    }
}

fn remember(connection: &Connection, tenant: &TenantName, released: &ReleasedLock) -> Result<(), JobError> {
    connection
        .prepare_cached("DELETE FROM released_locks WHERE released_at < ?1")?
        .execute([released.released_at.minus(LOCK_MEMORY).as_millis()])?;
    connection.prepare_cached("INSERT OR REPLACE INTO released_locks VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(
        (
            released.info.id.as_str(),
            tenant.as_str(),
            released.info.to_json(),
            released.released_at.as_millis(),
            released.broken,
        ),
    )?;
    Ok(())
}

fn trace_lock(connection: &Connection, id: &LockId, now: Timestamp) -> Result<Option<LockTrace>, JobError> {
    let holder: Option<String> = connection
        .prepare_cached("SELECT name FROM tenants WHERE lock_id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(name) = holder {
        let name = TenantName::parse(&name).map_err(|_| JobError::Damaged("a tenant's name"))?;
        return Ok(Some(LockTrace::Held(name)));
    }
    let released = connection
        .prepare_cached(
            "SELECT tenant, info, released_at, broken FROM released_locks WHERE lock_id = ?1 AND released_at >= ?2
            ORDER BY released_at DESC LIMIT 1",
        )?
        .query_row((id.as_str(), now.minus(LOCK_MEMORY).as_millis()), |row| Ok(records::released_lock(row)))
        .optional()?
        .transpose()?;
    Ok(released.map(|(tenant, released)| LockTrace::Released(tenant, released)))
}
