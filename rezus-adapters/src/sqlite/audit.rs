//! Rows of the audit trail.

use rezus_core::access::{AuditFilter, AuditRow, TokenId};
use rezus_core::base::{TenantName, Timestamp};
use rusqlite::{Connection, Row, named_params};

use super::error::JobError;

/// How many rows one transaction forgets: a few milliseconds, so writers in between do not wait.
const BATCH: i64 = 4_096;

/// Appends rows.
pub(super) fn append(connection: &Connection, rows: &[AuditRow]) -> Result<(), JobError> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO audit (at, who, groups, token, came_from, action, tenant, object, code)
            VALUES (:at, :who, :groups, :token, :from, :action, :tenant, :object, :code)",
    )?;
    for row in rows {
        insert.execute(named_params! {
            ":at": row.at.as_millis(),
            ":who": row.who,
            ":groups": serde_json::Value::from(row.groups.as_slice()).to_string(),
            ":token": row.token.as_ref().map(TokenId::as_str),
            ":from": row.from,
            ":action": row.action,
            ":tenant": row.tenant.as_ref().map(TenantName::as_str),
            ":object": row.object,
            ":code": row.code,
        })?;
    }
    Ok(())
}

/// Reads rows, the last appended first.
pub(super) fn list(connection: &Connection, filter: &AuditFilter) -> Result<Vec<AuditRow>, JobError> {
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let tenant = filter.tenant.as_ref().map(TenantName::as_str);
    // Each has an index of its own.
    let condition = match (tenant, &filter.who) {
        (None, None) => "?1 IS NULL AND ?2 IS NULL",
        (Some(_), None) => "tenant = ?1 AND ?2 IS NULL",
        (None, Some(_)) => "?1 IS NULL AND who = ?2",
        (Some(_), Some(_)) => "tenant = ?1 AND who = ?2",
    };
    let mut select = connection
        .prepare_cached(&format!("SELECT * FROM audit WHERE {condition} ORDER BY id DESC LIMIT ?3"))?;
    let rows = select.query_map((tenant, filter.who.as_deref(), limit), |row| Ok(audit_row(row)))?;
    rows.map(|row| row?).collect()
}

fn audit_row(row: &Row<'_>) -> Result<AuditRow, JobError> {
    let damaged = JobError::Damaged("a row of the audit trail");
    let (token, tenant): (Option<String>, Option<String>) = (row.get("token")?, row.get("tenant")?);
    let groups: String = row.get("groups")?;
    Ok(AuditRow {
        at: Timestamp::from_millis(row.get("at")?),
        who: row.get("who")?,
        groups: serde_json::from_str(&groups).map_err(|_| damaged.clone())?,
        token: token.map(|id| TokenId::parse(&id)).transpose().map_err(|_| damaged.clone())?,
        from: row.get("came_from")?,
        action: row.get("action")?,
        tenant: tenant.map(|name| TenantName::parse(&name)).transpose().map_err(|_| damaged)?,
        object: row.get("object")?,
        code: row.get("code")?,
    })
}

/// Forgets a batch of what is from before `before` or not among the last `keep`; returns how many rows.
pub(super) fn prune(connection: &Connection, before: Timestamp, keep: u64) -> Result<u64, JobError> {
    let keep = i64::try_from(keep).unwrap_or(i64::MAX);
    let mut removed = connection
        .prepare_cached(
            "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < ?1 ORDER BY at LIMIT ?2)",
        )?
        .execute((before.as_millis(), BATCH))?;
    removed += connection
        .prepare_cached(
            "DELETE FROM audit WHERE id IN (SELECT id FROM audit
                WHERE id <= (SELECT id FROM audit ORDER BY id DESC LIMIT 1 OFFSET ?1) ORDER BY id LIMIT ?2)",
        )?
        .execute((keep, BATCH))?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}
