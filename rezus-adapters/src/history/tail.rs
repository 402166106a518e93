//! What came in and is not sealed yet, as it came: one row for each call, committed before the call returns.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use rezus_core::base::Timestamp;
use rezus_core::series::{Labels, Sample};
use rusqlite::{Connection, OpenFlags, Row, params};

use super::error::FileError;
use super::file::{self, APPLICATION_ID};
use super::name::{Name, SLOT, begin};
use super::{Sync, varint};

/// The format of tails.
const FORMAT: i32 = 2;

const SCHEMA: &str = "
    CREATE TABLE series (id INTEGER PRIMARY KEY, labels BLOB NOT NULL);
    CREATE TABLE ticks (id INTEGER PRIMARY KEY, block BLOB NOT NULL);
";

/// How many samples a row holds at most.
const SAMPLES_A_ROW: usize = 8_192;

/// A sample that was announced, and its series' id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick<'a> {
    pub(super) id: u32,
    pub(super) labels: &'a Labels,
    pub(super) sample: Sample,
}

/// The tails that are being written: one for each slot that samples come for. A start writes to none of an earlier one.
#[derive(Debug)]
pub(super) struct Log {
    directory: PathBuf,
    sync: Sync,
    run: u32,
    tails: BTreeMap<i64, Tail>,
}

/// A tail that is being written.
#[derive(Debug)]
pub(super) struct Tail {
    connection: Connection,
    /// The series that are known to it.
    known: HashSet<u32>,
}

impl Log {
    /// Makes a log that writes tails of this run.
    pub(super) fn new(directory: &Path, sync: Sync, run: u32) -> Self {
        Self { directory: directory.to_owned(), sync, run, tails: BTreeMap::new() }
    }

    /// Commits ticks, all of one slot. `made` is told of a file before it is made.
    pub(super) fn write(&mut self, ticks: &[Tick<'_>], made: impl FnOnce(Name)) -> Result<(), FileError> {
        let Some(first) = ticks.first() else { return Ok(()) };
        let slot = slot_of(first.sample.at);
        let (sync, path, run) = (self.sync, &self.directory, self.run);
        let tail = match self.tails.entry(slot) {
            std::collections::btree_map::Entry::Occupied(tail) => tail.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let name = Name::Tail { slot, run };
                made(name);
                place.insert(Tail::make(&path.join(name.to_string()), sync)?)
            }
        };
        let written = tail.write(ticks);
        if written.is_err() {
            // What it knows may have been undone: it is opened anew.
            self.tails.remove(&slot);
        }
        written
    }

    /// Writes no more to the tail of this slot: what comes for it goes to another one from now on. Returns the tail, which takes
    /// a moment to close.
    pub(super) fn end(&mut self, slot: i64) -> Option<Tail> {
        self.run += 1;
        self.tails.remove(&slot)
    }
}

/// The slot that a time is in.
pub(super) fn slot_of(at: Timestamp) -> i64 {
    begin(at.as_millis(), SLOT)
}

#[cfg(test)]
impl Log {
    /// Lets the tails that are open take no more pages: what is written to them next finds no room.
    pub(super) fn fill_up(&self) {
        for tail in self.tails.values() {
            tail.connection.pragma_update(None, "max_page_count", 1).unwrap();
        }
    }
}

impl Tail {
    fn make(path: &Path, sync: Sync) -> Result<Self, FileError> {
        let connection = Connection::open(path)?;
        file::tune(&connection, sync.pragma())?;
        connection.pragma_update(None, "cache_size", -1_024)?;
        file::make(&connection, FORMAT, SCHEMA)?;
        Ok(Self { connection, known: HashSet::new() })
    }

    fn write(&mut self, ticks: &[Tick<'_>]) -> Result<(), FileError> {
        let transaction = self.connection.unchecked_transaction()?;
        {
            let mut define =
                transaction.prepare_cached("INSERT OR IGNORE INTO series (id, labels) VALUES (?1, ?2)")?;
            for tick in ticks {
                if self.known.insert(tick.id) {
                    define.execute(params![tick.id, file::seal(tick.labels.as_bytes())])?;
                }
            }
            let mut insert = transaction.prepare_cached("INSERT INTO ticks (block) VALUES (?1)")?;
            for ticks in ticks.chunks(SAMPLES_A_ROW) {
                insert.execute([file::seal(&pack(ticks))])?;
            }
        }
        Ok(transaction.commit()?)
    }
}

/// Writes ticks: of each, how its id and its time differ from those of the one before, and its value.
fn pack(ticks: &[Tick<'_>]) -> Vec<u8> {
    let mut block = Vec::with_capacity(ticks.len() * 11);
    let (mut id, mut at) = (0, 0);
    for tick in ticks {
        let next = (i64::from(tick.id), tick.sample.at.as_millis());
        varint::put_signed(&mut block, next.0 - id);
        varint::put_signed(&mut block, next.1.wrapping_sub(at));
        block.extend(tick.sample.value.to_bits().to_le_bytes());
        (id, at) = next;
    }
    block
}

/// Reads a tail of an earlier run; gives each sample with its series, in the order in which they came. A row that is damaged is
/// passed over, and told in the end: what was given is as good as without that error.
pub(super) fn replay(path: &Path, mut give: impl FnMut(&Labels, Sample)) -> Result<(), FileError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let is_empty: bool =
        connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0))?;
    let mark: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if is_empty && mark != APPLICATION_ID {
        // It was made and nothing was committed to it.
        return Ok(());
    }
    file::check(&connection, FORMAT)?;
    let mut is_whole = true;
    let mut series: HashMap<i64, Labels> = HashMap::new();
    let mut statement = connection.prepare("SELECT id, labels FROM series")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        match block(row, 1).ok().as_deref().and_then(Labels::from_bytes) {
            Some(labels) => drop(series.insert(row.get(0)?, labels)),
            None => is_whole = false,
        }
    }
    let mut statement = connection.prepare("SELECT block FROM ticks ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let read = block(row, 0).and_then(|block| unpack(&block));
        is_whole &= read.is_ok();
        for (id, sample) in read.unwrap_or_default() {
            match series.get(&id) {
                Some(labels) => give(labels, sample),
                None => is_whole = false,
            }
        }
    }
    if is_whole { Ok(()) } else { Err(DAMAGED) }
}

const DAMAGED: FileError = FileError::Damaged("a row of a tail");

/// Reads a column that was sealed.
fn block(row: &Row<'_>, column: usize) -> Result<Vec<u8>, FileError> {
    let mut block = row.get_ref(column)?.as_blob().map_err(|_| DAMAGED)?.to_vec();
    file::unseal(&mut block)?;
    Ok(block)
}

/// Reads ticks: of each the id of its series, and its sample.
fn unpack(mut block: &[u8]) -> Result<Vec<(i64, Sample)>, FileError> {
    let mut ticks = Vec::new();
    let (mut id, mut at) = (0_i64, 0_i64);
    while !block.is_empty() {
        let next = (varint::take_signed(&mut block), varint::take_signed(&mut block));
        let (Some(id_step), Some(time_step)) = next else { return Err(DAMAGED) };
        (id, at) = (id.wrapping_add(id_step), at.wrapping_add(time_step));
        let (value, rest) = block.split_first_chunk::<8>().ok_or(DAMAGED)?;
        block = rest;
        let value = f64::from_bits(u64::from_le_bytes(*value));
        ticks.push((id, Sample { at: Timestamp::from_millis(at), value }));
    }
    Ok(ticks)
}
