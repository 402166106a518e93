//! A file of chunks: which series it has, and a chunk of each for each part of its time.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rezus_core::series::{Labels, Matcher, NAME, Rollup, Sample, Selection, TENANT};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Row, params};

use super::chunk::{self, Chunk, Times};
use super::error::FileError;

/// Marks a file as one of rezus: "rezu" in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x7265_7a75;

/// The format of files of chunks.
const FORMAT: i32 = 2;

// Series lie in the order in which they are asked for. Chunks lie in the order in which they come, part by part. Of rollups it is told
// which days they are of: a file that came in the place of a damaged one has not all that its span promises.
const SCHEMA: &str = "
    CREATE TABLE series (
        tenant TEXT NOT NULL, metric TEXT NOT NULL, labels BLOB NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (tenant, metric, labels)
    ) WITHOUT ROWID;
    CREATE TABLE times (id INTEGER PRIMARY KEY, block BLOB NOT NULL);
    CREATE TABLE chunks (key INTEGER PRIMARY KEY, times INTEGER NOT NULL, block BLOB NOT NULL);
    CREATE TABLE days (day INTEGER PRIMARY KEY);
";

/// How much of the write-ahead log stays on the disk, in bytes: it is moved into the file when it has grown to that.
pub(super) const LOG_BYTES: i64 = 4 << 20;

/// How many different columns of times are remembered while chunks are written.
const REMEMBERED: usize = 4_096;

/// How many are at hand while chunks are read: series are gone through metric by metric, and so machine by machine again and
/// again.
const AT_HAND: usize = 256;

/// A file of chunks that is open.
pub(super) struct ChunkFile {
    connection: Connection,
    next_id: i64,
    /// The ids of columns of times that were written.
    written: HashMap<Vec<u8>, i64>,
    /// Columns of times that were read.
    read: HashMap<i64, Arc<Times>>,
}

/// A chunk that was read: its times, and its values as they are written.
type Found = (Arc<Times>, Vec<u8>);

/// How a file that is written is kept from being half written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// By a write-ahead log: it is read meanwhile, and whole after each transaction.
    Log,
    /// By nothing: it has another name until it is whole.
    None,
}

impl ChunkFile {
    /// Opens a file, or makes it.
    pub(super) fn write(path: &Path, care: Care) -> Result<Self, FileError> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        match care {
            Care::Log => tune(&connection, "NORMAL")?,
            Care::None => {
                connection.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")?;
            }
        }
        connection.pragma_update(None, "cache_size", -8_192)?;
        make(&connection, FORMAT, SCHEMA)?;
        let last: i64 =
            connection.query_row("SELECT ifnull(max(id), 0) FROM series", [], |row| row.get(0))?;
        Ok(Self { connection, next_id: last + 1, written: HashMap::new(), read: HashMap::new() })
    }

    /// Opens a file that is there.
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.pragma_update(None, "cache_size", -2_048)?;
        check(&connection, FORMAT)?;
        Ok(Self { connection, next_id: i64::MAX, written: HashMap::new(), read: HashMap::new() })
    }

    /// Begins a transaction. Where it is not committed, because something failed, it ends with the file's being closed.
    pub(super) fn begin(&self) -> Result<(), FileError> {
        Ok(self.connection.execute_batch("BEGIN")?)
    }

    /// Ends a transaction.
    pub(super) fn commit(&self) -> Result<(), FileError> {
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    /// Moves the log into the file and syncs it: what is in it survives even a power loss. Tells whether it could be: readers that
    /// began before the last change are waited for, but not for long.
    pub(super) fn settle(&self) -> Result<bool, FileError> {
        let is_busy: i64 =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        Ok(is_busy == 0)
    }

    /// Closes the file.
    pub(super) fn close(self) -> Result<(), FileError> {
        self.connection.close().map_err(|(_, error)| error.into())
    }

    /// Returns the last part there is a chunk of; the first one where there is none.
    pub(super) fn last_part(&self) -> Result<u32, FileError> {
        let key: i64 =
            self.connection.query_row("SELECT ifnull(max(key), 0) FROM chunks", [], |row| row.get(0))?;
        u32::try_from(key >> 32).map_err(|_| FileError::Damaged("a chunk's key"))
    }

    /// Returns the days that rollups are of: when each begins, in milliseconds since 1970.
    pub(super) fn days(&self) -> Result<BTreeSet<i64>, FileError> {
        let mut statement = self.connection.prepare("SELECT day FROM days")?;
        Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Says that there are all rollups of a day now.
    pub(super) fn add_day(&self, day: i64) -> Result<(), FileError> {
        self.connection.execute("INSERT OR IGNORE INTO days (day) VALUES (?1)", [day])?;
        Ok(())
    }

    /// Returns a series' id, where it has one.
    pub(super) fn find(&self, labels: &Labels) -> Result<Option<i64>, FileError> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT id FROM series WHERE tenant = ?1 AND metric = ?2 AND labels = ?3")?;
        let key = params![labels.get(TENANT), labels.get(NAME), labels.as_bytes()];
        Ok(statement.query_row(key, |row| row.get(0)).optional()?)
    }

    /// Returns a series' id; it is given one where it has none.
    pub(super) fn find_or_add(&mut self, labels: &Labels) -> Result<i64, FileError> {
        if let Some(id) = self.find(labels)? {
            return Ok(id);
        }
        let id = self.next_id;
        self.next_id += 1;
        self.connection
            .prepare_cached("INSERT INTO series (tenant, metric, labels, id) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![labels.get(TENANT), labels.get(NAME), labels.as_bytes(), id])?;
        Ok(id)
    }

    /// Returns the series that follow one, or the first ones: at most `count`, by tenant and metric.
    pub(super) fn page(&self, after: Option<&Labels>, count: i64) -> Result<Vec<(Labels, i64)>, FileError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT labels, id FROM series WHERE (tenant, metric, labels) > (?1, ?2, ?3)
                ORDER BY tenant, metric, labels LIMIT ?4",
        )?;
        // Nothing is before an empty name but what has none, and no labels at all.
        let (tenant, metric, bytes) = after.map_or(("", "", [].as_slice()), |labels| {
            (labels.get(TENANT), labels.get(NAME), labels.as_bytes())
        });
        let mut rows = statement.query(params![tenant, metric, bytes, count])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(series(row)?);
        }
        Ok(found)
    }

    /// Returns the series that are meant, by tenant and metric.
    pub(super) fn meant(&self, selection: &Selection) -> Result<Vec<(Labels, i64)>, FileError> {
        let matchers = selection.matchers.as_slice();
        let fits = |label: &str, value: &str| {
            matchers.iter().filter(|m| m.name() == label).all(|m| m.matches_value(value))
        };
        let others: Vec<&Matcher> =
            matchers.iter().filter(|m| m.name() != NAME && m.name() != TENANT).collect();
        let only = matchers.iter().filter(|m| m.name() == NAME).find_map(Matcher::only);
        let tenants = match &selection.tenants {
            Some(tenants) => tenants.iter().map(|tenant| tenant.as_str().to_owned()).collect(),
            None => self.tenants()?,
        };
        let mut statement = self.connection.prepare_cached(
            "SELECT labels, id, metric FROM series WHERE tenant = ?1 AND metric >= ?2 AND (?3 IS NULL OR metric <= ?3)
                ORDER BY metric, labels",
        )?;
        let mut found = Vec::new();
        for tenant in tenants.iter().filter(|tenant| fits(TENANT, tenant)) {
            let mut rows = statement.query(params![tenant, only.unwrap_or(""), only])?;
            while let Some(row) = rows.next()? {
                if !fits(NAME, row.get_ref(2)?.as_str().map_err(|_| FileError::Damaged("a metric's name"))?) {
                    continue;
                }
                let (labels, id) = series(row)?;
                if others.iter().all(|matcher| matcher.matches(&labels)) {
                    found.push((labels, id));
                }
            }
        }
        Ok(found)
    }

    fn tenants(&self) -> Result<Vec<String>, FileError> {
        let mut next = self.connection.prepare_cached("SELECT min(tenant) FROM series WHERE tenant > ?1")?;
        let mut none = self.connection.prepare_cached("SELECT min(tenant) FROM series WHERE tenant = ''")?;
        let mut found: Vec<String> =
            none.query_row([], |row| row.get::<_, Option<String>>(0))?.into_iter().collect();
        while let Some(tenant) = {
            let last = found.last().map_or("", String::as_str);
            next.query_row([last], |row| row.get::<_, Option<String>>(0))?
        } {
            found.push(tenant);
        }
        Ok(found)
    }

    /// Puts the chunk of a series and a part, in place of the one there is.
    pub(super) fn put(&mut self, part: u32, id: i64, chunk: Chunk) -> Result<(), FileError> {
        let times = if let Some(times) = self.written.get(&chunk.times) {
            *times
        } else {
            let sealed = seal(&chunk.times);
            self.connection.prepare_cached("INSERT INTO times (block) VALUES (?1)")?.execute([sealed])?;
            let times = self.connection.last_insert_rowid();
            if self.written.len() >= REMEMBERED {
                self.written.clear();
            }
            self.written.insert(chunk.times, times);
            times
        };
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO chunks (key, times, block) VALUES (?1, ?2, ?3)")?
            .execute(params![key(part, id), times, seal(&chunk.values)])?;
        Ok(())
    }

    /// Returns the samples of a series and a part.
    pub(super) fn samples(&mut self, part: u32, id: i64) -> Result<Vec<Sample>, FileError> {
        match self.get(part, id)? {
            Some((times, values)) => chunk::samples(&times, &values),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the rollups of a series and a part, which are of this width.
    pub(super) fn rollups(&mut self, part: u32, id: i64, width: Duration) -> Result<Vec<Rollup>, FileError> {
        match self.get(part, id)? {
            Some((times, values)) => chunk::rollups(&times, &values, width),
            None => Ok(Vec::new()),
        }
    }

    fn get(&mut self, part: u32, id: i64) -> Result<Option<Found>, FileError> {
        let mut statement =
            self.connection.prepare_cached("SELECT times, block FROM chunks WHERE key = ?1")?;
        let found: Option<(i64, Vec<u8>)> =
            statement.query_row([key(part, id)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((times, mut values)) = found else { return Ok(None) };
        unseal(&mut values)?;
        if let Some(columns) = self.read.get(&times) {
            return Ok(Some((Arc::clone(columns), values)));
        }
        let mut statement = self.connection.prepare_cached("SELECT block FROM times WHERE id = ?1")?;
        let block: Option<Vec<u8>> = statement.query_row([times], |row| row.get(0)).optional()?;
        let mut block = block.ok_or(FileError::Damaged("a column of times"))?;
        unseal(&mut block)?;
        let columns = Arc::new(chunk::times(&block)?);
        if self.read.len() >= AT_HAND {
            self.read.clear();
        }
        self.read.insert(times, Arc::clone(&columns));
        Ok(Some((columns, values)))
    }
}

fn key(part: u32, id: i64) -> i64 {
    (i64::from(part) << 32) | id
}

fn series(row: &Row<'_>) -> Result<(Labels, i64), FileError> {
    let bytes = row.get_ref(0)?.as_blob().map_err(|_| FileError::Damaged("a series"))?;
    Ok((Labels::from_bytes(bytes).ok_or(FileError::Damaged("a series"))?, row.get(1)?))
}

/// Adds a checksum: a bit that turned is found before it is taken for a number.
pub(super) fn seal(block: &[u8]) -> Vec<u8> {
    let mut sealed = block.to_vec();
    sealed.extend(crc32fast::hash(block).to_le_bytes());
    sealed
}

/// Takes the checksum off.
pub(super) fn unseal(block: &mut Vec<u8>) -> Result<(), FileError> {
    let (whole, sum) = block.split_last_chunk::<4>().ok_or(FileError::Damaged("a block"))?;
    if crc32fast::hash(whole).to_le_bytes() != *sum {
        return Err(FileError::Damaged("a block"));
    }
    block.truncate(block.len() - 4);
    Ok(())
}

/// Sets up a connection that writes to a file that is read meanwhile.
pub(super) fn tune(connection: &Connection, synchronous: &str) -> Result<(), FileError> {
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous={synchronous}; PRAGMA journal_size_limit={LOG_BYTES};
         PRAGMA wal_autocheckpoint=1000; PRAGMA temp_store=MEMORY"
    ))?;
    Ok(())
}

/// Makes tables and marks where there are none, and looks at the marks where there are.
pub(super) fn make(connection: &Connection, format: i32, schema: &str) -> Result<(), FileError> {
    let is_empty: bool =
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    if is_empty {
        connection.execute_batch(&format!(
            "BEGIN; {schema}; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={format}; COMMIT"
        ))?;
    }
    check(connection, format)
}

/// Looks at a file's marks.
pub(super) fn check(connection: &Connection, format: i32) -> Result<(), FileError> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    match (pragma("application_id")?, pragma("user_version")?) {
        (APPLICATION_ID, found) if found == format => Ok(()),
        (APPLICATION_ID, found) => Err(FileError::Format(found)),
        _ => Err(FileError::Damaged("whose file it is")),
    }
}
