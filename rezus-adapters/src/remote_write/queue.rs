//! What waits to be sent: a SQLite file, so that it outlives the process, of which no more is kept than is allowed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

/// The form of the file.
const FORMAT: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE waiting (id INTEGER PRIMARY KEY AUTOINCREMENT, samples INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
    PRAGMA user_version = 1;
";

/// How long another connection may hold the file: a backup's.
const BUSY: Duration = Duration::from_secs(5);

/// Why the queue cannot be worked on.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The file cannot be read or written.
    #[error("the queue of samples {} cannot be used: move it away to begin a new one", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// A newer release wrote it.
    #[error("the queue of samples {} is of a newer release (format {format})", path.display())]
    Newer {
        /// Which one.
        path: PathBuf,
        /// Its format.
        format: i64,
    },
    /// The server ends.
    #[error("the queue of samples is closed")]
    Closed,
}

/// Some packed samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// How many.
    pub(super) samples: u64,
    pub(super) bytes: Vec<u8>,
}

/// Rows that are sent together, the oldest.
#[derive(Debug)]
pub(super) struct Batch {
    ids: Vec<i64>,
    /// How many samples they have together.
    pub(super) samples: u64,
    pub(super) rows: Vec<Row>,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) samples: u64,
    pub(super) bytes: u64,
}

/// The queue.
#[derive(Debug)]
pub(super) struct Queue {
    path: PathBuf,
    connection: Connection,
    limit: u64,
    waiting: Waiting,
}

impl Queue {
    /// Opens a file, or makes it.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, QueueError> {
        let fail = |source| QueueError::File { path: path.to_owned(), source };
        let connection = Connection::open(path).map_err(fail)?;
        let made = || -> rusqlite::Result<(i64, Waiting)> {
            connection.busy_timeout(BUSY)?;
            // A pragma that answers with what it set.
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -256;")?;
            let format = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if format == 0 {
                connection.execute_batch(SCHEMA)?;
            }
            let sums = "SELECT coalesce(sum(samples), 0), coalesce(sum(length(bytes)), 0) FROM waiting";
            let sum = |row: &rusqlite::Row<'_>| Ok(Waiting { samples: row.get(0)?, bytes: row.get(1)? });
            Ok((format, connection.query_row(sums, [], sum)?))
        };
        let (format, waiting) = made().map_err(fail)?;
        if format > FORMAT {
            return Err(QueueError::Newer { path: path.to_owned(), format });
        }
        Ok(Self { path: path.to_owned(), connection, limit, waiting })
    }

    pub(super) const fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// Puts rows in, and takes the oldest out where there is no room. Tells how many samples those had.
    pub(super) fn put(&mut self, rows: &[Row]) -> Result<u64, QueueError> {
        let (limit, mut waiting, mut dropped) = (self.limit, self.waiting, 0);
        let mut put = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut insert =
                transaction.prepare_cached("INSERT INTO waiting (samples, bytes) VALUES (?1, ?2)")?;
            for Row { samples, bytes } in rows {
                insert.execute((samples, bytes))?;
                waiting.samples += samples;
                waiting.bytes += length(bytes);
            }
            drop(insert);
            let mut oldest = transaction
                .prepare_cached("SELECT id, samples, length(bytes) FROM waiting ORDER BY id LIMIT 1")?;
            while waiting.bytes > limit {
                let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
                let Some((id, samples, bytes)): Option<(i64, u64, u64)> =
                    oldest.query_row([], row).optional()?
                else {
                    break;
                };
                transaction.execute("DELETE FROM waiting WHERE id = ?1", [id])?;
                waiting.samples = waiting.samples.saturating_sub(samples);
                waiting.bytes = waiting.bytes.saturating_sub(bytes);
                dropped += samples;
            }
            drop(oldest);
            transaction.commit()
        };
        put(&mut self.connection).map_err(|source| QueueError::File { path: self.path.clone(), source })?;
        self.waiting = waiting;
        Ok(dropped)
    }

    /// Returns the oldest rows: so many, and so many samples, but one row at least. Nothing where nothing waits.
    pub(super) fn first(&mut self, rows: usize, samples: usize) -> Result<Option<Batch>, QueueError> {
        let most = u64::try_from(samples).unwrap_or(u64::MAX);
        let mut batch = Batch { ids: Vec::new(), samples: 0, rows: Vec::new() };
        let mut read = || -> rusqlite::Result<()> {
            let mut select = self
                .connection
                .prepare_cached("SELECT id, samples, bytes FROM waiting ORDER BY id LIMIT ?1")?;
            // Each row has a sample at least.
            let mut found = select.query([i64::try_from(rows.clamp(1, samples)).unwrap_or(i64::MAX)])?;
            while let Some(row) = found.next()? {
                let (id, samples, bytes) = (row.get(0)?, row.get(1)?, row.get(2)?);
                if !batch.ids.is_empty() && batch.samples + samples > most {
                    break;
                }
                batch.ids.push(id);
                batch.samples += samples;
                batch.rows.push(Row { samples, bytes });
            }
            Ok(())
        };
        read().map_err(|source| QueueError::File { path: self.path.clone(), source })?;
        Ok((!batch.ids.is_empty()).then_some(batch))
    }

    /// Takes rows out that need not be sent again. Some of them may have been dropped meanwhile.
    pub(super) fn done(&mut self, batch: &Batch) -> Result<(), QueueError> {
        let mut waiting = self.waiting;
        let mut take = |connection: &mut Connection| -> rusqlite::Result<()> {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut delete = transaction.prepare_cached("DELETE FROM waiting WHERE id = ?1")?;
            for (id, row) in batch.ids.iter().zip(&batch.rows) {
                if delete.execute([id])? > 0 {
                    waiting.samples = waiting.samples.saturating_sub(row.samples);
                    waiting.bytes = waiting.bytes.saturating_sub(length(&row.bytes));
                }
            }
            drop(delete);
            transaction.commit()
        };
        take(&mut self.connection).map_err(|source| QueueError::File { path: self.path.clone(), source })?;
        self.waiting = waiting;
        Ok(())
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(samples: u64, length: usize) -> Row {
        Row { samples, bytes: vec![7; length] }
    }

    fn samples(queue: &mut Queue) -> Vec<u64> {
        let batch = queue.first(usize::MAX, usize::MAX).unwrap();
        batch.map(|batch| batch.rows.iter().map(|row| row.samples).collect()).unwrap_or_default()
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("queue.db");
        let mut queue = Queue::open(&path, 100).unwrap();
        assert_eq!(queue.put(&[row(1, 40), row(2, 40)]).unwrap(), 0);
        assert_eq!(queue.put(&[row(3, 40)]).unwrap(), 1);
        assert_eq!(samples(&mut queue), [2, 3]);
        assert_eq!(queue.waiting(), Waiting { samples: 5, bytes: 80 });
        // One that is larger than all that is allowed leaves nothing.
        assert_eq!(queue.put(&[row(9, 101)]).unwrap(), 14);
        assert_eq!((samples(&mut queue), queue.waiting()), (Vec::new(), Waiting::default()));
    }

    #[test]
    fn what_is_taken_out_is_gone_and_the_rest_is_there_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("queue.db");
        let mut queue = Queue::open(&path, 1_000).unwrap();
        queue.put(&[row(1, 10), row(2, 20), row(3, 30)]).unwrap();
        let batch = queue.first(2, 2_000).unwrap().unwrap();
        assert_eq!((batch.rows.len(), batch.samples), (2, 3));
        // Dropped while it was on its way.
        queue.limit = 50;
        queue.put(&[row(4, 10)]).unwrap();
        queue.done(&batch).unwrap();
        assert_eq!(queue.waiting(), Waiting { samples: 7, bytes: 40 });
        drop(queue);
        let mut queue = Queue::open(&path, 1_000).unwrap();
        assert_eq!((samples(&mut queue), queue.waiting().bytes), (vec![3, 4], 40));
        let few = queue.first(usize::MAX, 3).unwrap().unwrap();
        assert_eq!(few.rows.len(), 1);
    }

    #[test]
    fn a_file_that_is_none_is_told_with_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("queue.db");
        std::fs::write(&path, vec![1; 5_000]).unwrap();
        let error = Queue::open(&path, 1_000).unwrap_err();
        assert!(matches!(&error, QueueError::File { path: named, .. } if *named == path), "{error:?}");
    }
}
