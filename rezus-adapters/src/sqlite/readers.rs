//! Connections that only read.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::error::{JobError, OpenError};
use super::schema;

/// How many reads run at a time.
const CONNECTIONS: usize = 4;

/// A pool of reading connections, each opened when first needed.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: Arc<Semaphore>,
}

impl Readers {
    /// Makes a pool and opens its first connection, so that a file that cannot be read shows at once.
    pub(super) fn new(path: &Path) -> Result<Self, OpenError> {
        let fail = |source| OpenError::Sqlite { path: path.to_owned(), source };
        let first = schema::open_for_reading(path).map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            idle: Mutex::new(vec![first]),
            places: Arc::new(Semaphore::new(CONNECTIONS)),
        })
    }

    /// Runs a read on a thread that may block.
    pub(super) async fn run<T: Send + 'static>(
        self: Arc<Self>,
        read: impl FnOnce(&Connection) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, JobError> {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| JobError::Closed)?;
        tokio::task::spawn_blocking(move || {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match idle {
                Some(connection) => connection,
                None => schema::open_for_reading(&self.path)?,
            };
            let result = read(&connection);
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            // Only now: whoever asked may have gone, and the connection is in use all the same.
            drop(place);
            result
        })
        .await
        .unwrap_or(Err(JobError::Closed))
    }
}
