//! Giving space back, backups, and checks of a whole file.

use std::path::Path;

use rezus_core::base::Timestamp;
use rezus_core::declared::store::{Space, StoreError};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::SqliteStore;
use super::error::{JobError, OpenError};
use super::index_rows;
use super::schema;
use super::writer::Verdict;

/// Rows of chunks that one transaction removes, and pages that one gives back: a few milliseconds each, so writers in
/// between do not wait.
const BATCH: i64 = 1_024;

/// Pages that a backup copies between two reports of its progress.
const PAGES_A_STEP: i32 = 4096;

impl SqliteStore {
    /// Removes what belongs to versions and tenants that are gone, and gives the pages back to the file system, in
    /// small transactions.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be written; what was done until then stays done.
    pub(super) async fn collect_garbage(&self) -> Result<(), StoreError> {
        loop {
            let batch = self.writer.run(|connection| Ok(Verdict::Keep(collect(connection)?)));
            if batch.await.map_err(StoreError::from)? == 0 {
                break;
            }
        }
        let mut before = u64::MAX;
        loop {
            let free = self.writer.run(|connection| Ok(Verdict::Keep(give_back(connection)?)));
            let free = free.await.map_err(StoreError::from)?;
            // Where nothing more comes loose there is nothing left, or somebody else is at it.
            if free == 0 || free >= before {
                return Ok(());
            }
            before = free;
        }
    }

    /// Forgets refusals, older than `before`, of names that are no tenants.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be written.
    pub(super) async fn forget_old_refusals_of_nobody(&self, before: Timestamp) -> Result<(), StoreError> {
        let job = move |connection: &Connection| {
            connection.execute(
                "DELETE FROM refusals WHERE at < ?1 AND tenant NOT IN (SELECT name FROM tenants)",
                [before.as_millis()],
            )?;
            Ok(Verdict::Keep(()))
        };
        Ok(self.writer.run(job).await?)
    }

    /// Returns how the file's space is used.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when the file cannot be read.
    pub(super) async fn used_space(&self) -> Result<Space, StoreError> {
        let read = |connection: &Connection| {
            let pragma = |name: &str| -> Result<u64, JobError> {
                let number: i64 = connection.pragma_query_value(None, name, |row| row.get(0))?;
                Ok(u64::try_from(number).unwrap_or(0))
            };
            let page = pragma("page_size")?;
            Ok(Space {
                total_bytes: pragma("page_count")? * page,
                free_bytes: pragma("freelist_count")? * page,
            })
        };
        Ok(std::sync::Arc::clone(&self.readers).run(read).await?)
    }
}

/// Removes a batch of what is nobody's; returns how many rows that were.
pub(super) fn collect(connection: &Connection) -> Result<usize, JobError> {
    let rows = index_rows::collect(connection, BATCH)?;
    if rows > 0 {
        return Ok(rows);
    }
    let chunks = connection
        .prepare_cached(
            "DELETE FROM chunks WHERE (version_id, seq) IN (SELECT c.version_id, c.seq FROM versions v
                JOIN chunks c ON c.version_id = v.id WHERE v.tenant_id = 0 LIMIT ?1)",
        )?
        .execute([BATCH])?;
    if chunks > 0 {
        return Ok(chunks);
    }
    let removed = connection
        .prepare_cached(
            "DELETE FROM versions WHERE id IN (SELECT id FROM versions WHERE tenant_id = 0 LIMIT ?1)",
        )?
        .execute([BATCH])?;
    Ok(removed)
}

/// Gives a batch of free pages back; returns how many are left.
fn give_back(connection: &Connection) -> Result<u64, JobError> {
    let mut statement = connection.prepare_cached(&format!("PRAGMA incremental_vacuum({BATCH})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    let free: i64 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    Ok(u64::try_from(free).unwrap_or(0))
}

/// Copies a file as it is at this moment, while a server may be writing to it. `progress` is told pages done and pages
/// in all. The copy is whole and durable when this returns; on failure there is none.
///
/// # Errors
///
/// [`OpenError`] if the file cannot be read or the copy not written, and if there is a file at `to` already.
pub fn backup(from: &Path, to: &Path, progress: impl FnMut(u64, u64)) -> Result<(), OpenError> {
    let partial = to.with_added_extension("partial");
    let outcome = check(from, Depth::Marks).and_then(|()| copy(from, &partial, progress)).and_then(|()| {
        finish(&partial, to).map_err(|source| OpenError::Copy { path: to.to_owned(), source })
    });
    if outcome.is_err() && partial.exists() {
        // The failure is what the caller must hear of; a left-over is overwritten by the next try.
        drop(std::fs::remove_file(&partial));
    }
    outcome
}

fn copy(from: &Path, to: &Path, mut progress: impl FnMut(u64, u64)) -> Result<(), OpenError> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |source| OpenError::Sqlite { path, source }
    };
    let fresh = std::fs::File::create(to).and_then(|file| file.sync_all());
    fresh.map_err(|source| OpenError::Copy { path: to.to_owned(), source })?;
    schema::restrict(to);
    let source = schema::open_for_reading(from).map_err(at(from))?;
    // An open read transaction holds the moment still: the copy would start over with each write otherwise.
    source.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema;").map_err(at(from))?;
    let mut copy = Connection::open(to).map_err(at(to))?;
    let copying = Backup::new(&source, &mut copy).map_err(at(from))?;
    loop {
        let step = copying.step(PAGES_A_STEP).map_err(at(to))?;
        let pages = |count| u64::try_from(count).unwrap_or(0);
        let state = copying.progress();
        progress(pages(state.pagecount - state.remaining), pages(state.pagecount));
        if step == StepResult::Done {
            return Ok(());
        }
    }
}

/// Makes the copy durable under its own name, unless that is taken.
fn finish(partial: &Path, to: &Path) -> Result<(), std::io::Error> {
    std::fs::File::open(partial)?.sync_all()?;
    std::fs::hard_link(partial, to)?;
    std::fs::remove_file(partial)?;
    let directory = to.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(directory)?.sync_all()
}

/// How much of a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The marks that tell whose it is and of which format.
    Marks,
    /// All of it.
    Whole,
}

/// Tells whether a file is a sound database of rezus.
///
/// # Errors
///
/// [`OpenError`] if it is not.
pub fn check(path: &Path, depth: Depth) -> Result<(), OpenError> {
    let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
    let connection = schema::open_for_reading(path).map_err(fail)?;
    schema::check_marks(&connection, path)?;
    if depth == Depth::Whole {
        let verdict: String =
            connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).map_err(fail)?;
        if verdict != "ok" {
            return Err(OpenError::Damaged { path: path.to_owned() });
        }
    }
    Ok(())
}
