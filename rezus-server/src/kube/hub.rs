//! What is shown now, what changed lately, and the one counter of resource versions.
//!
//! It knows nothing of states or observations: whoever shows something hands over the objects as they are to be read.
//! Lists are immutable snapshots. Changes are kept in one log that all watchers read at their own pace: a watcher has
//! no buffer, and one that falls behind the log has to begin anew.

mod merge;

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::item::{Draft, Item, Piece};
use super::kinds::{KINDS, KindInfo};
use merge::Merged;

/// How many changes are kept, and of objects of how many bytes in all.
const KEPT_CHANGES: usize = 16_384;
const KEPT_BYTES: usize = 64 << 20;

/// How long the list that a `continue` token names is kept, how many such lists, and how many objects they may have
/// together: none of them need be shown any more.
const KEPT_LIST: Duration = Duration::from_mins(5);
const KEPT_LISTS: usize = 64;
const KEPT_OBJECTS: usize = 100_000;

/// All objects of a kind at one resource version, sorted by namespace, then name.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The resource version.
    pub version: u64,
    /// The objects.
    pub items: Arc<[Arc<Item>]>,
}

/// A change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resource version it made.
    pub version: u64,
    /// The object before; `None` if it came.
    pub before: Option<Arc<Item>>,
    /// The object after; `None` if it went.
    pub after: Option<Arc<Item>>,
}

/// Changes that follow a resource version.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The changes, oldest first.
    pub changes: Vec<Change>,
    /// Up to which resource version there are no others.
    pub complete_to: u64,
}

/// A resource version whose changes are no longer known, or not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfWindow {
    /// The oldest resource version whose later changes are all known.
    pub oldest: u64,
    /// The newest one.
    pub newest: u64,
}

/// Which objects of a kind a publication replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'p> {
    /// All.
    Whole,
    /// Those of a namespace.
    Namespace(&'p str),
    /// The one of this name, of a kind without namespaces.
    Name(&'p str),
}

/// The hub.
#[derive(Debug)]
pub struct Hub {
    inner: RwLock<Inner>,
    newest: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    /// The newest resource version.
    newest: u64,
    /// Changes after this one are all in the log.
    floor: u64,
    shelves: [Arc<[Arc<Item>]>; KINDS.len()],
    /// When each kind last changed.
    changed: [u64; KINDS.len()],
    log: VecDeque<Change>,
    /// The bytes of the objects in the log.
    logged: usize,
    lists: VecDeque<(usize, Snapshot, Instant)>,
}

/// The place of a kind in the table of kinds.
fn place(kind: &KindInfo) -> usize {
    KINDS.iter().position(|known| std::ptr::eq(*known, kind)).unwrap_or_default()
}

impl Hub {
    /// A hub that shows nothing yet, at resource version `start`: no earlier server may have used a greater one.
    pub fn new(start: u64) -> Self {
        let inner = Inner {
            newest: start,
            floor: start,
            shelves: std::array::from_fn(|_| Arc::from([])),
            changed: [start; KINDS.len()],
            log: VecDeque::new(),
            logged: 0,
            lists: VecDeque::new(),
        };
        Self { inner: RwLock::new(inner), newest: watch::Sender::new(start) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest resource version.
    pub fn newest(&self) -> u64 {
        self.read().newest
    }

    /// Tells when a newer resource version is [announced](Self::announce).
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// All objects of a kind, now.
    pub fn snapshot(&self, kind: &KindInfo) -> Snapshot {
        let inner = self.read();
        Snapshot { version: inner.newest, items: Arc::clone(&inner.shelves[place(kind)]) }
    }

    /// All objects of a kind as they were at a resource version, where that is known.
    pub fn snapshot_at(&self, kind: &KindInfo, version: u64) -> Option<Snapshot> {
        let (inner, place) = (self.read(), place(kind));
        if inner.changed[place] <= version && version <= inner.newest {
            return Some(Snapshot { version, items: Arc::clone(&inner.shelves[place]) });
        }
        let kept = inner
            .lists
            .iter()
            .find(|(of, list, since)| *of == place && list.version == version && since.elapsed() < KEPT_LIST);
        kept.map(|(_, list, _)| list.clone())
    }

    /// Keeps a list for a while, so that the rest of it can be asked for.
    pub fn keep(&self, kind: &KindInfo, list: &Snapshot) {
        let (mut inner, place) = (self.write(), place(kind));
        let is_fresh = |(of, kept, since): &(usize, Snapshot, Instant)| {
            since.elapsed() < KEPT_LIST && (*of, kept.version) != (place, list.version)
        };
        inner.lists.retain(is_fresh);
        inner.lists.push_back((place, list.clone(), Instant::now()));
        let mut objects: usize = inner.lists.iter().map(|(_, list, _)| list.items.len()).sum();
        while inner.lists.len() > KEPT_LISTS || (objects > KEPT_OBJECTS && inner.lists.len() > 1) {
            objects -= inner.lists.pop_front().map_or(0, |(_, list, _)| list.items.len());
        }
    }

    /// Shows `drafts` in place of a part of a kind's objects. What is shown as before stays as it is. New resource versions
    /// follow the newest one and are no less than `now`, which counts microseconds since 1970.
    ///
    /// One publication at a time: whoever calls it sees to that. Lists show it at once; those who watch are woken by
    /// [`announce`](Self::announce). Returns how many objects changed.
    pub fn publish(&self, kind: &'static KindInfo, part: Part<'_>, drafts: Vec<Draft>, now: u64) -> usize {
        let Snapshot { version, items } = self.snapshot(kind);
        let merged = merge::merge(&items, part, drafts, version.saturating_add(1).max(now));
        self.show(kind, merged)
    }

    fn show(&self, kind: &'static KindInfo, merged: Merged) -> usize {
        let count = merged.changes.len();
        let Some(newest) = merged.changes.last().map(|change| change.version) else {
            return 0;
        };
        let mut inner = self.write();
        inner.newest = newest;
        inner.changed[place(kind)] = newest;
        inner.shelves[place(kind)] = merged.items;
        inner.logged += merged.changes.iter().map(Change::size).sum::<usize>();
        inner.log.extend(merged.changes);
        while inner.log.len() > KEPT_CHANGES || inner.logged > KEPT_BYTES {
            let Some(oldest) = inner.log.pop_front() else { break };
            inner.logged -= oldest.size();
            inner.floor = oldest.version;
        }
        count
    }

    /// Shows what was observed of objects of a kind, and leaves what is declared of them as it is: objects that are not there
    /// are passed over, and what is said already makes no change. As [`publish`](Self::publish) otherwise.
    pub fn observe(
        &self,
        kind: &'static KindInfo,
        namespace: &str,
        pieces: &[(&str, Piece)],
        now: u64,
    ) -> usize {
        let Snapshot { version, items } = self.snapshot(kind);
        let next = version.saturating_add(1).max(now);
        let Some(merged) = merge::observe(&items, namespace, pieces, next) else { return 0 };
        self.show(kind, merged)
    }

    /// Adds objects of a kind to those that are there: one of the same name is replaced. As [`publish`](Self::publish)
    /// otherwise.
    pub fn add(&self, kind: &'static KindInfo, drafts: Vec<Draft>, now: u64) -> usize {
        let Snapshot { version, items } = self.snapshot(kind);
        let merged = merge::add(&items, drafts, version.saturating_add(1).max(now));
        self.show(kind, merged)
    }

    /// Wakes those who watch, if anything was published since: once for all that belongs together, since waking many of
    /// them takes longer than publishing.
    pub fn announce(&self) {
        let newest = self.newest();
        self.newest.send_if_modified(|announced| std::mem::replace(announced, newest) != newest);
    }

    /// The changes of a kind that follow a resource version, of no more than `at_most` changes of all kinds.
    ///
    /// # Errors
    ///
    /// [`OutOfWindow`] where some of them are no longer known, or the version is none yet.
    pub fn after(&self, kind: &KindInfo, version: u64, at_most: usize) -> Result<Batch, OutOfWindow> {
        let inner = self.read();
        if version < inner.floor || version > inner.newest {
            return Err(OutOfWindow { oldest: inner.floor, newest: inner.newest });
        }
        let first = inner.log.partition_point(|change| change.version <= version);
        let mut batch = Batch { changes: Vec::new(), complete_to: inner.newest };
        for (count, change) in inner.log.range(first..).enumerate() {
            if count == at_most {
                break;
            }
            batch.complete_to = change.version;
            if change.is_of(kind) {
                batch.changes.push(change.clone());
            }
        }
        if inner.log.len() - first <= at_most {
            batch.complete_to = inner.newest;
        }
        Ok(batch)
    }
}

impl Change {
    /// How many bytes it keeps in memory, at most: objects are shared with what is shown and with other changes.
    fn size(&self) -> usize {
        let size = |item: &Option<Arc<Item>>| item.as_ref().map_or(0, |item| item.size());
        size(&self.before) + size(&self.after)
    }

    fn is_of(&self, kind: &KindInfo) -> bool {
        let item = self.after.as_ref().or(self.before.as_ref());
        item.is_some_and(|item| std::ptr::eq(item.kind(), kind))
    }
}

#[cfg(test)]
mod tests;
