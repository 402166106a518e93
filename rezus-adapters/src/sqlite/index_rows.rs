//! Rows of the index.

use rezus_core::base::TenantName;
use rezus_core::declared::index::{IndexHead, IndexRow, InstanceKey, Mode};
use rezus_core::declared::{ResourceAddress, VersionNumber};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::JobError;
use super::records;

/// Replaces a tenant's index.
pub(super) fn replace(
    connection: &Connection,
    tenant: &TenantName,
    head: IndexHead,
    rows: &[IndexRow],
) -> Result<(), JobError> {
    remove(connection, tenant)?;
    let head_id: i64 = connection
        .prepare_cached(
            "INSERT INTO index_heads (tenant, version, sha256, format, row_count, secret_rules)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
        )?
        .query_row(
            params![
                tenant.as_str(),
                records::number(head.version),
                head.sha256,
                head.format,
                head.rows,
                head.secret_rules
            ],
            |row| row.get(0),
        )?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO index_rows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    // In the order of the key: each row then goes to the end of the table's last page.
    let mut ordered: Vec<&IndexRow> = rows.iter().collect();
    ordered.sort_unstable_by(|a, b| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
    for row in ordered {
        let (number, text) = match &row.key {
            Some(InstanceKey::Number(number)) => (Some(*number), None),
            Some(InstanceKey::Text(text)) => (None, Some(text.as_str())),
            None => (None, None),
        };
        let key: &dyn rusqlite::ToSql = if number.is_some() { &number } else { &text };
        let masked = match row.masked.as_slice() {
            [] => None,
            masked => Some(serde_json::to_string(masked).map_err(|_| JobError::Damaged("a masked path"))?),
        };
        let signed = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX);
        insert.execute(params![
            head_id,
            row.address.as_str(),
            row.deposed.as_deref().unwrap_or_default(),
            row.module,
            match row.mode {
                Mode::Managed => "managed",
                Mode::Data => "data",
            },
            row.resource_type,
            row.name,
            key,
            row.provider,
            row.tainted,
            row.position.0,
            row.position.1,
            signed(row.span.start),
            signed(row.span.end),
            row.checksum,
            masked.as_deref().unwrap_or("[]"),
            seal(row),
        ])?;
    }
    Ok(())
}

/// Removes a tenant's index. Its rows become nobody's at once, and go while nobody waits.
pub(super) fn remove(connection: &Connection, tenant: &TenantName) -> Result<(), JobError> {
    connection
        .prepare_cached("INSERT INTO index_garbage SELECT id FROM index_heads WHERE tenant = ?1")?
        .execute([tenant.as_str()])?;
    connection.prepare_cached("DELETE FROM index_heads WHERE tenant = ?1")?.execute([tenant.as_str()])?;
    Ok(())
}

/// Removes at most `batch` rows that are nobody's; returns how many that were.
pub(super) fn collect(connection: &Connection, batch: i64) -> Result<usize, JobError> {
    let head: Option<i64> = connection
        .prepare_cached("SELECT head_id FROM index_garbage LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(head) = head else {
        return Ok(0);
    };
    let removed = connection
        .prepare_cached(
            "DELETE FROM index_rows WHERE (head_id, address, deposed) IN
                (SELECT head_id, address, deposed FROM index_rows WHERE head_id = ?1 LIMIT ?2)",
        )?
        .execute((head, batch))?;
    if removed == 0 {
        connection.prepare_cached("DELETE FROM index_garbage WHERE head_id = ?1")?.execute([head])?;
        return Ok(1);
    }
    Ok(removed)
}

/// Reads what a tenant's index was built from, without looking whether it is whole, and the id its rows go by.
pub(super) fn stored_head(
    connection: &Connection,
    tenant: &TenantName,
) -> Result<Option<(i64, IndexHead)>, JobError> {
    let row = connection
        .prepare_cached(
            "SELECT id, version, sha256, format, row_count, secret_rules FROM index_heads WHERE tenant = ?1",
        )?
        .query_row([tenant.as_str()], |row| {
            let (id, version): (i64, u64) = (row.get(0)?, row.get(1)?);
            let head = match VersionNumber::new(version) {
                Some(version) => Some(IndexHead {
                    version,
                    sha256: row.get(2)?,
                    format: row.get(3)?,
                    rows: row.get(4)?,
                    secret_rules: row.get(5)?,
                }),
                None => None,
            };
            Ok(head.map(|head| (id, head)))
        })
        .optional()?;
    Ok(row.flatten())
}

/// Tells whether all rows of an index are there.
pub(super) fn is_whole(connection: &Connection, head_id: i64, head: IndexHead) -> Result<bool, JobError> {
    let rows: i64 = connection
        .prepare_cached("SELECT count(*) FROM index_rows WHERE head_id = ?1")?
        .query_row([head_id], |row| row.get(0))?;
    Ok(u64::try_from(rows) == Ok(head.rows))
}

/// What a row says, in this order: columns are read by their place, which takes a third of the time that names take.
const COLUMNS: &str =
    "address, deposed, module, mode, resource_type, name, instance_key, provider, tainted, block, instance,
    span_start, span_end, checksum, masked, seal";

/// Which of them is the type.
const TYPE: usize = 4;

/// Reads one row.
pub(super) fn find(
    connection: &Connection,
    head_id: i64,
    address: &ResourceAddress,
    deposed: Option<&str>,
) -> Result<Option<IndexRow>, JobError> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM index_rows WHERE head_id = ?1 AND address = ?2 AND deposed = ?3"
        ))?
        .query_row((head_id, address.as_str(), deposed.unwrap_or_default()), |row| Ok(index_row(row)))
        .optional()?
        .transpose()
}

/// Reads the rows of the types that are wanted, in the order of their place in the state; `None` unless all rows of the
/// index are there.
pub(super) fn all(
    connection: &Connection,
    head_id: i64,
    head: IndexHead,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Option<Vec<IndexRow>>, JobError> {
    let mut select =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM index_rows WHERE head_id = ?1"))?;
    let mut found = select.query([head_id])?;
    let (mut rows, mut count) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        count += 1;
        if row.get_ref(TYPE)?.as_str().is_ok_and(&is_wanted) {
            rows.push(index_row(row)?);
        }
    }
    rows.sort_unstable_by_key(|row| row.position);
    Ok((count == head.rows).then_some(rows))
}

fn index_row(row: &Row<'_>) -> Result<IndexRow, JobError> {
    const DAMAGED: JobError = JobError::Damaged("a row of the index");
    let unsigned = |column: usize| u64::try_from(row.get::<_, i64>(column)?).map_err(|_| DAMAGED);
    let deposed: String = row.get(1)?;
    let key = match row.get_ref(6)? {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(InstanceKey::Number(number)),
        ValueRef::Text(text) => {
            Some(InstanceKey::Text(std::str::from_utf8(text).map_err(|_| DAMAGED)?.to_owned()))
        }
        ValueRef::Real(_) | ValueRef::Blob(_) => return Err(DAMAGED),
    };
    let index_row = IndexRow {
        address: ResourceAddress::from_kept(row.get::<_, String>(0)?),
        deposed: Some(deposed).filter(|key| !key.is_empty()),
        module: row.get(2)?,
        mode: match row.get_ref(3)?.as_str().unwrap_or_default() {
            "managed" => Mode::Managed,
            "data" => Mode::Data,
            _ => return Err(DAMAGED),
        },
        resource_type: row.get(TYPE)?,
        name: row.get(5)?,
        key,
        provider: row.get(7)?,
        tainted: row.get(8)?,
        position: (row.get(9)?, row.get(10)?),
        span: unsigned(11)?..unsigned(12)?,
        checksum: row.get(13)?,
        masked: match row.get_ref(14)?.as_str().unwrap_or_default() {
            "[]" => Vec::new(),
            masked => serde_json::from_str(masked).map_err(|_| DAMAGED)?,
        },
    };
    if seal(&index_row) == row.get::<_, u32>(15)? { Ok(index_row) } else { Err(DAMAGED) }
}

/// A checksum of all that a row says: what is hidden must not become shown by a flipped bit.
fn seal(row: &IndexRow) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut text = |text: &str| {
        hasher.update(&text.len().to_le_bytes());
        hasher.update(text.as_bytes());
    };
    text(row.address.as_str());
    text(row.deposed.as_deref().unwrap_or_default());
    text(&row.module);
    text(&row.resource_type);
    text(&row.name);
    text(&row.provider);
    for pointer in &row.masked {
        text(pointer);
    }
    let (kind, number) = match &row.key {
        None => (0, 0),
        Some(InstanceKey::Number(number)) => (1, *number),
        Some(InstanceKey::Text(key)) => {
            text(key);
            (2, 0)
        }
    };
    let kind = [kind, u8::from(row.tainted), u8::from(row.mode == Mode::Data)];
    hasher.update(&kind);
    hasher.update(&number.to_le_bytes());
    for number in [u64::from(row.position.0), u64::from(row.position.1), row.span.start, row.span.end] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(&row.checksum.to_le_bytes());
    hasher.finalize()
}
