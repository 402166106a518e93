//! States, versions, locks, the index, accounts, the audit trail and runs in one SQLite file.
//!
//! One thread writes; queued changes share a transaction, and so the sync of the write-ahead log that makes them
//! durable. Any number of readers, each on a connection of its own, see the last committed transaction.

mod account_store;
mod accounts;
mod audit;
mod chunks;
mod error;
mod history_store;
mod index_rows;
mod index_store;
mod maintenance;
mod readers;
mod records;
mod run_store;
mod schema;
mod state_store;
mod version_mark;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use readers::Readers;
use writer::Writer;

pub use error::OpenError;
pub use maintenance::{Depth, backup, check};

/// A SQLite file as [`StateStore`](rezus_core::declared::store::StateStore),
/// [`IndexStore`](rezus_core::declared::store::IndexStore),
/// [`HistoryStore`](rezus_core::declared::store::HistoryStore), [`AccountStore`](rezus_core::access::AccountStore) and
/// [`RunStore`](rezus_core::runs::store::RunStore). A clone is another handle of the same file.
///
/// Index rows are committed with the version they are of, so the index is never behind.
#[derive(Clone)]
pub struct SqliteStore {
    path: PathBuf,
    writer: Arc<Writer>,
    readers: Arc<Readers>,
}

impl SqliteStore {
    /// Opens a file, or makes it; brings an older format up to this release's.
    ///
    /// One process at a time may hold a file open for writing: that is the caller's to see to.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if it cannot be opened, is no file of rezus, or was written by a newer release.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let connection = schema::open_for_writing(path)?;
        let writer = Writer::start(connection).map_err(OpenError::Thread)?;
        let readers = Readers::new(path)?;
        Ok(Self { path: path.to_owned(), writer: Arc::new(writer), readers: Arc::new(readers) })
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}
