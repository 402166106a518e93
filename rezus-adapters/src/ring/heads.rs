//! The heads of all series, and what becomes of samples there.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use rezus_core::base::Timestamp;
use rezus_core::series::{Entry, Labels, NAME, Sample, Selection, Series, SeriesError, TENANT, Window};

use super::SeriesCaps;
use super::directory::Directory;
use super::head::Head;

/// How many locks the heads are spread over.
const SHARDS: usize = 64;

type Shard = HashMap<Labels, Box<Head>>;

/// What becomes of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Kept,
    Repeated,
    Late,
    Early,
    OverLimit,
}

/// What becomes of a sample that is announced; of one that is kept, the id of its series.
#[cfg(feature = "history")]
#[derive(Clone, Copy, Debug)]
pub(crate) enum Judged {
    Kept(u32),
    Refused(Judgement),
}

/// The heads of all series.
#[derive(Debug)]
pub(crate) struct Heads {
    shards: Box<[RwLock<Shard>]>,
    /// Locked after a shard, where both are.
    directory: RwLock<Directory>,
    caps: SeriesCaps,
    next_id: AtomicU32,
    /// Packs that end before it may be dropped.
    floor: AtomicI64,
}

impl Heads {
    /// Makes heads of no series.
    pub(crate) fn new(caps: SeriesCaps) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            directory: RwLock::default(),
            caps,
            next_id: AtomicU32::new(0),
            floor: AtomicI64::new(i64::MIN),
        }
    }

    /// Returns how many series there are.
    pub(crate) fn count(&self) -> usize {
        self.directory().count()
    }

    /// Takes a sample, if it may be.
    pub(crate) fn append(&self, entry: &Entry, now: Timestamp, window: Window) -> Judgement {
        if let Some(refused) = refuse(entry.sample.at, now, window) {
            return refused;
        }
        let floor = self.floor();
        match self.with_head(&entry.labels, self.caps, |head| {
            if head.newest == Some(entry.sample.at) {
                return Judgement::Repeated;
            }
            head.push(entry.sample, floor);
            Judgement::Kept
        }) {
            Some(judgement) => judgement,
            None => Judgement::OverLimit,
        }
    }

    /// Says what will become of a sample, and remembers that it is to come by [`Heads::insert`].
    #[cfg(feature = "history")]
    pub(crate) fn announce(&self, entry: &Entry, now: Timestamp, window: Window) -> Judged {
        if let Some(refused) = refuse(entry.sample.at, now, window) {
            return Judged::Refused(refused);
        }
        self.with_head(&entry.labels, self.caps, |head| {
            if head.newest == Some(entry.sample.at) {
                return Judged::Refused(Judgement::Repeated);
            }
            head.newest = head.newest.max(Some(entry.sample.at));
            Judged::Kept(head.id)
        })
        .unwrap_or(Judged::Refused(Judgement::OverLimit))
    }

    /// Takes a sample that was announced, or was there before.
    #[cfg(feature = "history")]
    pub(crate) fn insert(&self, labels: &Labels, sample: Sample) {
        let floor = self.floor();
        let no_caps = SeriesCaps { per_tenant: usize::MAX, total: usize::MAX };
        self.with_head(labels, no_caps, |head| head.push(sample, floor));
    }

    /// Forgets what was announced of a series and did not come.
    #[cfg(feature = "history")]
    pub(crate) fn settle(&self, labels: &Labels) {
        if let Some(head) = self.shard_to_change(labels).get_mut(labels) {
            head.settle();
        }
    }

    /// Returns the samples of a series between two times, both included.
    pub(crate) fn read(&self, labels: &Labels, from: Timestamp, to: Timestamp) -> Vec<Sample> {
        self.shard(labels).get(labels).map(|head| head.read(from, to)).unwrap_or_default()
    }

    /// Gives the series that are meant, with their samples, sorted.
    pub(crate) fn select(&self, selection: &Selection) -> Result<Vec<Series>, SeriesError> {
        let mut left = selection.limit;
        let mut found = Vec::new();
        for labels in self.meant(selection) {
            let samples = self.read(&labels, selection.from, selection.to);
            left = left.checked_sub(samples.len()).ok_or(SeriesError::TooMany { limit: selection.limit })?;
            if !samples.is_empty() {
                found.push(Series { labels, rolled: Vec::new(), samples });
            }
        }
        Ok(found)
    }

    /// Gives the labels of the series that are meant, sorted.
    pub(crate) fn list(&self, selection: &Selection) -> Vec<Labels> {
        let has = |labels: &Labels| {
            let shard = self.shard(labels);
            shard.get(labels).is_some_and(|head| head.has(selection.from, selection.to))
        };
        let mut found = self.meant(selection);
        found.retain(has);
        found
    }

    /// Returns the labels of all series, sorted.
    #[cfg(feature = "history")]
    pub(crate) fn all(&self) -> Vec<Labels> {
        let families = self.directory().all();
        let mut labels: Vec<Labels> = families.iter().flat_map(|family| family.iter().cloned()).collect();
        labels.sort_unstable();
        labels
    }

    /// Lets packs that end before `floor` be dropped, and no others.
    pub(crate) fn set_floor(&self, floor: Timestamp) {
        self.floor.store(floor.as_millis(), Ordering::SeqCst);
    }

    /// Lets no pack be dropped that ends at this time or later.
    #[cfg(feature = "history")]
    pub(crate) fn lower_floor(&self, floor: Timestamp) {
        self.floor.fetch_min(floor.as_millis(), Ordering::SeqCst);
    }

    /// Drops the packs that end before the floor, and the series of which nothing is left.
    pub(crate) fn sweep(&self) {
        for shard in &self.shards {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            // Only now: where it was lowered for a sample that is in this shard already, that sample is safe.
            let floor = self.floor();
            let mut gone = Vec::new();
            shard.retain(|labels, head| {
                let stays = head.forget(floor);
                if !stays {
                    gone.push(labels.clone());
                }
                stays
            });
            if shard.capacity() > 4 * shard.len() + 64 {
                shard.shrink_to_fit();
            }
            if !gone.is_empty() {
                let mut directory = self.directory_to_change();
                for labels in &gone {
                    directory.remove(labels);
                }
            }
        }
    }

    /// The series that are meant, sorted, whatever samples they have.
    fn meant(&self, selection: &Selection) -> Vec<Labels> {
        let families = self.directory().families(selection);
        // Tenant and metric are those of the family.
        let others: Vec<_> =
            selection.matchers.iter().filter(|m| m.name() != NAME && m.name() != TENANT).collect();
        let mut labels: Vec<Labels> = families
            .iter()
            .flat_map(|family| family.iter())
            .filter(|labels| others.iter().all(|matcher| matcher.matches(labels)))
            .cloned()
            .collect();
        labels.sort_unstable();
        labels
    }

    /// Does something with a series' head, which is made where there is none; nothing where there may be no more.
    fn with_head<T>(&self, labels: &Labels, caps: SeriesCaps, act: impl FnOnce(&mut Head) -> T) -> Option<T> {
        let mut shard = self.shard_to_change(labels);
        if let Some(head) = shard.get_mut(labels) {
            return Some(act(head));
        }
        if !self.directory_to_change().add(labels, caps) {
            return None;
        }
        match shard.entry(labels.clone()) {
            Slot::Occupied(mut head) => Some(act(head.get_mut())),
            Slot::Vacant(place) => {
                let id = self.next_id.fetch_add(1, Ordering::Relaxed);
                Some(act(place.insert(Box::new(Head::new(id)))))
            }
        }
    }

    fn floor(&self) -> Timestamp {
        Timestamp::from_millis(self.floor.load(Ordering::SeqCst))
    }

    fn lock_of(&self, labels: &Labels) -> &RwLock<Shard> {
        let hash = usize::try_from(crc32fast::hash(labels.as_bytes())).unwrap_or(0);
        &self.shards[hash % SHARDS]
    }

    fn shard(&self, labels: &Labels) -> RwLockReadGuard<'_, Shard> {
        self.lock_of(labels).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard_to_change(&self, labels: &Labels) -> RwLockWriteGuard<'_, Shard> {
        self.lock_of(labels).write().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory(&self) -> RwLockReadGuard<'_, Directory> {
        self.directory.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn directory_to_change(&self) -> RwLockWriteGuard<'_, Directory> {
        self.directory.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a time is refused for.
fn refuse(at: Timestamp, now: Timestamp, window: Window) -> Option<Judgement> {
    if at < now.minus(window.late) {
        Some(Judgement::Late)
    } else if at > now.after(window.early) {
        Some(Judgement::Early)
    } else {
        None
    }
}
