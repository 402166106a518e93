//! The history store's port over the file.

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::projection::{History, Lifetime, ResourceKind};
use rezus_core::declared::store::{HistoryEntry, HistoryHead, HistoryStore, StoreError};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::SqliteStore;
use super::error::JobError;
use super::records::{number, version_number};
use super::writer::Verdict;

#[async_trait]
impl HistoryStore for SqliteStore {
    async fn history(
        &self,
        tenant: &TenantName,
    ) -> Result<Option<(HistoryHead, Vec<HistoryEntry>)>, StoreError> {
        let tenant = tenant.clone();
        Ok(Arc::clone(&self.readers).run(move |connection| read(connection, &tenant)).await?)
    }

    async fn put_history(
        &self,
        tenant: &TenantName,
        before: Option<HistoryHead>,
        head: HistoryHead,
        entries: Vec<HistoryEntry>,
    ) -> Result<bool, StoreError> {
        let tenant = tenant.clone();
        let job = move |connection: &Connection| {
            if stored_head(connection, &tenant)?.map(|(_, stored)| stored) != before {
                return Ok(Verdict::Keep(false));
            }
            replace(connection, &tenant, head, &entries)?;
            Ok(Verdict::Keep(true))
        };
        Ok(self.writer.run(job).await?)
    }
}

fn read(
    connection: &Connection,
    tenant: &TenantName,
) -> Result<Option<(HistoryHead, Vec<HistoryEntry>)>, JobError> {
    let transaction = connection.unchecked_transaction()?;
    let Some((id, head)) = stored_head(&transaction, tenant)? else {
        return Ok(None);
    };
    let mut select = transaction.prepare_cached(
        "SELECT kind, name, uid, first_version, changed_version, digest, created_at, changed_at FROM object_history
            WHERE head_id = ?1",
    )?;
    let entries = select.query_map([id], |row| Ok(entry(row)))?;
    let mut entries: Vec<HistoryEntry> = entries.map(|entry| entry?).collect::<Result<_, JobError>>()?;
    entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(Some((head, entries)))
}

/// Reads what a tenant's table was carried on to, and the id its entries go by.
fn stored_head(connection: &Connection, tenant: &TenantName) -> Result<Option<(i64, HistoryHead)>, JobError> {
    let head = connection
        .prepare_cached("SELECT id, version, sha256 FROM history_heads WHERE tenant = ?1")?
        .query_row([tenant.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, [u8; 32]>(2)?))
        })
        .optional()?;
    let Some((id, version, sha256)) = head else {
        return Ok(None);
    };
    Ok(Some((id, HistoryHead { version: version_number(version)?, sha256 })))
}

fn entry(row: &Row<'_>) -> Result<HistoryEntry, JobError> {
    let kinds = [ResourceKind::Cluster, ResourceKind::NodeGroup, ResourceKind::Machine];
    let word: String = row.get(0)?;
    let kind = kinds.into_iter().find(|kind| kind.as_str() == word);
    let lifetime = Lifetime {
        history: History {
            uid: row.get(2)?,
            first_version: version_number(row.get(3)?)?,
            changed_version: version_number(row.get(4)?)?,
            digest: row.get(5)?,
        },
        created_at: Timestamp::from_millis(row.get(6)?),
        changed_at: Timestamp::from_millis(row.get(7)?),
    };
    let kind = kind.ok_or(JobError::Damaged("an object's kind"))?;
    Ok(HistoryEntry { kind, name: row.get(1)?, lifetime })
}

fn replace(
    connection: &Connection,
    tenant: &TenantName,
    head: HistoryHead,
    entries: &[HistoryEntry],
) -> Result<(), JobError> {
    remove(connection, tenant)?;
    let id: i64 = connection
        .prepare_cached(
            "INSERT INTO history_heads (tenant, version, sha256) VALUES (?1, ?2, ?3) RETURNING id",
        )?
        .query_row((tenant.as_str(), number(head.version), head.sha256), |row| row.get(0))?;
    let mut insert = connection
        .prepare_cached("INSERT INTO object_history VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for entry in entries {
        let (lifetime, history) = (&entry.lifetime, &entry.lifetime.history);
        insert.execute(params![
            id,
            entry.kind.as_str(),
            entry.name,
            history.uid,
            number(history.first_version),
            number(history.changed_version),
            history.digest,
            lifetime.created_at.as_millis(),
            lifetime.changed_at.as_millis(),
        ])?;
    }
    Ok(())
}

/// Removes a tenant's table.
pub(super) fn remove(connection: &Connection, tenant: &TenantName) -> Result<(), JobError> {
    connection
        .prepare_cached(
            "DELETE FROM object_history WHERE head_id = (SELECT id FROM history_heads WHERE tenant = ?1)",
        )?
        .execute([tenant.as_str()])?;
    connection.prepare_cached("DELETE FROM history_heads WHERE tenant = ?1")?.execute([tenant.as_str()])?;
    Ok(())
}
