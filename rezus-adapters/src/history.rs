//! Samples of months, in SQLite files of one directory, and those of the last hours in memory as well.
//!
//! What comes in is put into the heads of the [ring](crate::ring) and committed to a tail (`tail`), from which the heads are
//! made anew after a start. Every two hours a tail is sealed (`seal`): it becomes a chunk of each series in the day's file. When a
//! day has ended it is compacted (`compact`): one chunk of each series, and rollups in two coarser tiers. A file is of one tier
//! and one span of time, which its name tells (`name`), so that what is too old is a file to be removed; a clock that jumps does
//! not make it so at once (`retention`).
//!
//! Reads plan by names which files they need, and by the days that files of rollups have (`plan`): one that came in the place of a
//! damaged one has few, until they are compacted again, or filled in of the finer tier (`fill`). The one thing that must be called
//! is [`History::tend`].

mod chunk;
mod column;
mod compact;
mod error;
mod file;
mod files;
mod fill;
mod name;
mod plan;
mod read;
mod retention;
mod seal;
mod tail;
mod upkeep;
mod varint;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::series::{
    Appended, Entry, Labels, Selection, Series, SeriesError, TimeSeries, TimeSeriesSink,
};

use crate::ring::{Heads, Judged, Judgement, RingSettings, count};
use error::FileError;
use file::ChunkFile;
use files::Files;
use name::{Name, SLOT};
use retention::KeptRetention;
use tail::{Log, Tick, slot_of};
use upkeep::Upkeep;

pub use error::{HistoryError, SetAside};

/// When what was taken is safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// From the death of the process at once; from a loss of power after some moments (SQLite's `synchronous=NORMAL`).
    #[default]
    Process,
    /// From a loss of power at once (`synchronous=FULL`): each call waits for the disk.
    Power,
}

impl Sync {
    fn pragma(self) -> &'static str {
        match self {
            Self::Process => "NORMAL",
            Self::Power => "FULL",
        }
    }
}

/// What a [`History`] keeps.
///
/// How old samples are is told by a time that follows the clock, but at no more than four times the pace at which time passes: what
/// becomes too old because the clock jumped, or while nothing ran, goes over days.
#[derive(Clone, Copy, Debug)]
pub struct HistorySettings {
    /// What is kept in memory, and what is let in.
    pub ring: RingSettings,
    /// For how long samples are kept as they were taken, in days' files.
    pub raw: Duration,
    /// For how long rollups of five minutes are kept, in weeks' files; not less than `raw`.
    pub fine: Duration,
    /// For how long rollups of an hour are kept, in files of thirteen weeks; not less than `fine`.
    pub coarse: Duration,
    /// How many bytes the files may have; what was set aside goes first, and then the oldest of the finest tier, but before what
    /// there are no coarser rollups of comes what there are. What is of today stays whatever its size.
    pub max_bytes: Option<u64>,
    /// When what was taken is safe.
    pub sync: Sync,
}

impl Default for HistorySettings {
    /// A week, 60 days, two years, of any size.
    fn default() -> Self {
        Self {
            ring: RingSettings::default(),
            raw: Duration::from_hours(7 * 24),
            fine: Duration::from_hours(60 * 24),
            coarse: Duration::from_hours(730 * 24),
            max_bytes: None,
            sync: Sync::default(),
        }
    }
}

/// What a call of [`History::tend`] came to.
#[derive(Debug)]
pub struct Tended {
    /// Whether there may be more to do at once.
    pub more: bool,
    /// Files that were found to be damaged since the last call, by whomever.
    pub set_aside: Vec<SetAside>,
}

/// A [`TimeSeries`] in files of a directory. A clone is another handle of the same one.
///
/// A call whose future is dropped goes on to its end all the same.
#[derive(Clone)]
pub struct History {
    inner: Arc<Inner>,
}

struct Inner {
    settings: HistorySettings,
    clock: Arc<dyn Clock>,
    heads: Heads,
    /// Held while samples are taken, from when they are judged until they are in memory.
    log: Mutex<Log>,
    files: Files,
    upkeep: Mutex<Upkeep>,
    /// Whether something could not be written for want of room, and nothing was removed since.
    lacks_room: AtomicBool,
    /// Since when all there is is in memory, in milliseconds since 1970. It only rises.
    hot_from: AtomicI64,
}

impl History {
    /// Opens a directory, or makes it. Tails are read; of the rest hardly more than names, however
    /// much there is.
    ///
    /// One process at a time may have it open: that is the caller's to see to. What is damaged is set aside, as the first
    /// [`History::tend`] tells.
    ///
    /// # Errors
    ///
    /// [`HistoryError`].
    pub fn open(
        directory: &Path,
        settings: HistorySettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, HistoryError> {
        if settings.raw > settings.fine || settings.fine > settings.coarse {
            return Err(HistoryError::Order);
        }
        let files = Files::scan(directory)
            .map_err(|source| HistoryError::Directory { path: directory.to_owned(), source })?;
        let heads = Heads::new(settings.ring.caps);
        let run = files.list().into_iter().filter_map(|name| match name {
            Name::Tail { run, .. } => Some(run),
            _ => None,
        });
        let log = Log::new(directory, settings.sync, run.max().unwrap_or(0) + 1);
        let mut retention = KeptRetention::open(&files, &*clock);
        // Where it cannot be written now, for want of room maybe, it is when something is done next.
        drop(retention.keep());
        // Nothing of what is taken from now on is in a file alone.
        let after_now = clock.now().after(settings.ring.window.early).as_millis() + 1;
        let hot_from = after_now.max(sealed_until(&files, after_now));
        let inner = Inner {
            settings,
            clock,
            heads,
            log: Mutex::new(log),
            files,
            upkeep: Mutex::new(Upkeep::new(retention)),
            lacks_room: AtomicBool::new(false),
            hot_from: AtomicI64::new(hot_from),
        };
        inner.replay()?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns how many series are in memory.
    pub fn series(&self) -> usize {
        self.inner.heads.count()
    }

    /// Returns how many bytes the files have.
    pub fn bytes(&self) -> u64 {
        self.inner.files.total()
    }

    /// Returns how many bytes the files of each kind have: `tail` and `sealed` of what is not compacted, `raw` of days of samples,
    /// `fine` and `coarse` of rollups, `damaged` of what was set aside.
    pub fn bytes_by_kind(&self) -> BTreeMap<&'static str, u64> {
        self.inner.files.bytes()
    }

    /// Does a step of what there is to do besides: seals, compacts, removes what is too old or too much. To be called every few
    /// seconds, and again soon while there is more. It takes a fraction of a second, on a thread that may block; nobody who
    /// appends or selects waits for it.
    ///
    /// # Errors
    ///
    /// [`SeriesError::Unavailable`] where a file cannot be written; the next call tries again.
    pub async fn tend(&self) -> Result<Tended, SeriesError> {
        let inner = Arc::clone(&self.inner);
        blocking("kept", move || {
            let mut upkeep = inner.upkeep.lock().unwrap_or_else(PoisonError::into_inner);
            upkeep::tend(&inner, &mut upkeep)
        })
        .await
    }
}

/// Until when files may have samples, where that is after `now`: then the clock was set back since they were sealed.
fn sealed_until(files: &Files, now: i64) -> i64 {
    let last = files.list().into_iter().map(|name| match name {
        Name::Raw { .. } => name.span().end,
        // One that cannot be read is found out when it is needed.
        Name::Sealed { from } => ChunkFile::read(&files.path(name))
            .and_then(|file| file.last_part())
            .map_or(now, |part| from + (i64::from(part) + 1) * SLOT),
        Name::Tail { .. } | Name::Fine { .. } | Name::Coarse { .. } => now,
    });
    last.max().unwrap_or(now).max(now)
}

impl Inner {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that there is room the next time, where that was what was missing.
    fn notice(&self, error: &FileError) {
        if error.is_lack_of_room() {
            self.lacks_room.store(true, Ordering::SeqCst);
        }
    }

    fn hot_from(&self) -> Timestamp {
        Timestamp::from_millis(self.hot_from.load(Ordering::SeqCst))
    }

    /// Makes the heads anew of the tails. What could be read of a damaged one is written again.
    fn replay(&self) -> Result<(), HistoryError> {
        for name in self.files.list() {
            let Name::Tail { slot, .. } = name else { continue };
            let path = self.files.path(name);
            let fail =
                |source: FileError| HistoryError::Tail { path: path.clone(), source: Box::new(source) };
            match tail::replay(&path, |labels, sample| self.heads.insert(labels, sample)) {
                Ok(()) => {}
                Err(error) if error.is_damage() => {
                    // In this order: a kill in between leaves both, and what is there twice is read once.
                    self.write_again(slot).map_err(fail)?;
                    self.files.set_aside(name, error).map_err(fail)?;
                }
                Err(error) => return Err(fail(error)),
            }
        }
        Ok(())
    }

    /// Writes what is in memory of a slot to a tail of this run.
    fn write_again(&self, slot: i64) -> Result<(), FileError> {
        let (from, to) = (Timestamp::from_millis(slot), Timestamp::from_millis(slot + SLOT - 1));
        let all: Vec<(u32, Labels)> = (0..).zip(self.heads.all()).collect();
        let mut log = self.log();
        for some in all.chunks(1_000) {
            let ticks = some.iter().flat_map(|(id, labels)| {
                let samples = self.heads.read(labels, from, to);
                samples.into_iter().map(|sample| Tick { id: *id, labels, sample })
            });
            log.write(&ticks.collect::<Vec<_>>(), |name| self.files.add(name))?;
        }
        // Another one for what comes: its series have ids of their own.
        drop(log.end(slot));
        Ok(())
    }

    fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError> {
        let mut log = self.log();
        let now = self.clock.now();
        let mut appended = Appended::default();
        let mut slots: BTreeMap<i64, Vec<Tick<'_>>> = BTreeMap::new();
        for entry in entries {
            let Entry { labels, sample } = entry;
            let judgement = match self.heads.announce(entry, now, self.settings.ring.window) {
                Judged::Kept(id) => {
                    slots.entry(slot_of(sample.at)).or_default().push(Tick { id, labels, sample: *sample });
                    Judgement::Kept
                }
                Judged::Refused(judgement) => judgement,
            };
            count(&mut appended, judgement);
        }
        let mut slots = slots.into_iter();
        while let Some((slot, ticks)) = slots.next() {
            let written = log.write(&ticks, |name| {
                self.files.add(name);
                self.heads.lower_floor(Timestamp::from_millis(slot));
            });
            if let Err(error) = written {
                self.notice(&error);
                // Who tries again is told that those of an earlier slot are repeated, as they are.
                let lost = std::iter::once(ticks).chain(slots.map(|(_, ticks)| ticks)).flatten();
                for tick in lost {
                    self.heads.settle(tick.labels);
                }
                return Err(error.while_being("kept"));
            }
            for tick in ticks {
                self.heads.insert(tick.labels, tick.sample);
            }
        }
        Ok(appended)
    }
}

#[async_trait]
impl TimeSeriesSink for History {
    async fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError> {
        let (inner, entries) = (Arc::clone(&self.inner), entries.to_vec());
        blocking("kept", move || inner.append(&entries)).await
    }
}

#[async_trait]
impl TimeSeries for History {
    async fn select(&self, selection: &Selection) -> Result<Vec<Series>, SeriesError> {
        let (inner, selection) = (Arc::clone(&self.inner), selection.clone());
        blocking("read", move || read::select(&inner, &selection)).await
    }

    async fn list(&self, selection: &Selection) -> Result<Vec<Labels>, SeriesError> {
        let (inner, selection) = (Arc::clone(&self.inner), selection.clone());
        blocking("read", move || read::list(&inner, &selection)).await
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("directory", &self.inner.files.directory()).finish_non_exhaustive()
    }
}

/// Does something on a thread that may block.
async fn blocking<T: Send + 'static>(
    doing: &'static str,
    act: impl FnOnce() -> Result<T, SeriesError> + Send + 'static,
) -> Result<T, SeriesError> {
    tokio::task::spawn_blocking(act)
        .await
        .unwrap_or_else(|error| Err(SeriesError::Unavailable { doing, source: Box::new(error) }))
}

#[cfg(test)]
mod tests {
    use rezus_core::series::{NAME, Sample, TENANT};
    use rezus_testkit::clock::ManualClock;

    use super::*;

    /// What is taken fails for want of room: what goes first is removed by who tends next, one file each time, and then there is.
    #[tokio::test]
    async fn where_there_is_no_room_for_what_comes_what_goes_first_is_removed() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let now = clock.now();
        let history =
            History::open(directory.path(), HistorySettings::default(), Arc::new(clock.clone())).unwrap();
        let files = &history.inner.files;
        let older = [1, 2].map(|days| Name::raw_at(now.minus(Duration::from_hours(24 * days)).as_millis()));
        for name in older {
            std::fs::write(files.path(name), "").unwrap();
            files.add(name);
        }
        files.set_aside(older[0], FileError::Damaged("it")).unwrap();
        files.add(older[0]);
        let entries = |machines: std::ops::Range<u32>| -> Vec<Entry> {
            let labels = |machine: u32| {
                Labels::new([(NAME, "up"), (TENANT, "prod"), ("machine", &machine.to_string())]).unwrap()
            };
            machines
                .map(|machine| Entry { labels: labels(machine), sample: Sample { at: now, value: 1.0 } })
                .collect()
        };
        history.append(&entries(0..1)).await.unwrap();
        let left =
            || (files.damaged().len(), files.list().iter().filter(|name| name.kind() == "raw").count());
        for (nth, expected) in (0..).zip([(0, 2), (0, 1), (0, 0)]) {
            history.inner.log().fill_up();
            let error = history.append(&entries(1..2_000)).await.unwrap_err();
            assert!(matches!(error, SeriesError::Unavailable { .. }), "{error:?}");
            // Once, and for ten minutes no more, whether or not there is room then.
            for passed in [0, 9 * 60 + 59] {
                clock.advance(Duration::from_secs(passed));
                history.inner.notice(&FileError::Io(std::io::ErrorKind::StorageFull.into()));
                let mut upkeep = history.inner.upkeep.lock().unwrap();
                assert!(!upkeep::remove(&history.inner, &mut upkeep, now).unwrap());
                assert_eq!(left(), expected);
            }
            clock.advance(Duration::from_secs(1));
            clock.jump(now);
            // Opened anew it takes more.
            assert_eq!(history.append(&entries(5_000 + nth..5_001 + nth)).await.unwrap().kept, 1);
        }
    }

    /// However old it is, and however much there is: what came later would be all there is of its day.
    #[test]
    fn a_day_that_something_came_for_stays_until_it_is_compacted_again() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let settings = HistorySettings { max_bytes: Some(0), ..HistorySettings::default() };
        let history = History::open(directory.path(), settings, Arc::new(clock.clone())).unwrap();
        let (inner, day) = (&history.inner, clock.now().as_millis());
        let raw = Name::raw_at(day);
        let remove = || {
            inner.notice(&FileError::Io(std::io::ErrorKind::StorageFull.into()));
            let mut upkeep = inner.upkeep.lock().unwrap();
            upkeep::remove(inner, &mut upkeep, clock.now()).unwrap();
        };
        for later in [Name::sealed_at(day), Name::Tail { slot: slot_of(clock.now()), run: 1 }] {
            for name in [raw, later] {
                std::fs::write(inner.files.path(name), "some").unwrap();
                inner.files.add(name);
            }
            clock.advance(Duration::from_hours(30 * 24));
            remove();
            assert!(inner.files.has(raw), "{later}");
            inner.files.remove(later).unwrap();
            remove();
            assert!(!inner.files.has(raw), "{later}");
            clock.jump(Timestamp::from_millis(day));
        }
    }
}
