//! What becomes of readings over time: each is sampled, and what one no longer tells ends.
//!
//! Samples have the date of the reading, although what a source itself reads by turns, as Talos' workers, may be older by
//! as much as that takes. A series that the reading sampled before told and this one does not ends with
//! [`STALE`]: it is gone, or could not be read.

mod metrics;
mod told;

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Failure, Incarnation, Reading, Source};
use crate::base::{TenantName, Timestamp};
use crate::series::{Entry, Labels, Matcher, NAME, Operator, STALE, Sample, Selection};
pub use metrics::{MetricInfo, MetricKind, metrics};
use told::Told;
pub use told::clusters;

/// How much of a source's pace must have passed until it is sampled again: its turns begin a little earlier and later.
const JITTER: [u32; 2] = [9, 10];

/// How soon after one another flags that flip are sampled, which are no part of a usual turn.
const FLIPS: Duration = Duration::from_secs(1);

/// How many series are looked at that tell what clusters there were.
const CLUSTERS: usize = 100_000;

/// Makes samples of the readings of one tenant's cluster.
#[derive(Debug)]
pub struct Sampler {
    tenant: TenantName,
    /// Of which cluster the series are that have not ended.
    incarnation: u32,
    sources: BTreeMap<Source, Sampled>,
}

/// What was sampled of a source.
#[derive(Debug)]
struct Sampled {
    /// When the last time as a whole.
    at: Timestamp,
    /// When flags that flipped were, the last time.
    flipped_at: Option<Timestamp>,
    /// Whether it told anything.
    is_up: bool,
    /// The series that have not ended, and their last values.
    live: BTreeMap<Labels, f64>,
}

impl Sampler {
    /// One that has seen nothing yet.
    pub const fn new(tenant: TenantName) -> Self {
        Self { tenant, incarnation: 1, sources: BTreeMap::new() }
    }

    /// Samples a reading of a source that is read so often, and the end of the credential that it was read with. All series end
    /// where it is of another cluster than the one before.
    ///
    /// News may come many times in a pace: it is sampled once in each, and in between only nodes that became ready, or are
    /// it no more. A source that begins to tell, or ceases to, is sampled whatever the time; one that is not installed is none.
    pub fn take(
        &mut self,
        source: Source,
        reading: &Reading,
        incarnation: &Incarnation,
        expires_at: Option<Timestamp>,
        every: Duration,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        if incarnation.number != self.incarnation {
            self.incarnation = incarnation.number;
            entries = self.end(reading.finished);
        }
        entries.extend(self.sample(source, reading, incarnation, expires_at, every));
        entries
    }

    fn sample(
        &mut self,
        source: Source,
        reading: &Reading,
        incarnation: &Incarnation,
        expires_at: Option<Timestamp>,
        every: Duration,
    ) -> Vec<Entry> {
        let (at, is_up) = (reading.finished, reading.facts.is_some());
        if !is_up && matches!(&*reading.failures, [(_, Failure::NotInstalled { .. })]) {
            return self.sources.remove(&source).map(|sampled| ended(sampled.live, at)).unwrap_or_default();
        }
        let [part, whole] = JITTER;
        let mut told = Told::nothing(&self.tenant, source, incarnation);
        match self.sources.get_mut(&source) {
            // A clock that was set back is no reason to wait for it.
            Some(sampled)
                if sampled.is_up == is_up
                    && at >= sampled.at
                    && at.since(sampled.at) < every * part / whole =>
            {
                let is_soon = sampled.flipped_at.is_some_and(|flipped| at.since(flipped) < FLIPS);
                if at == sampled.at || is_soon {
                    return Vec::new();
                }
                told.flags(reading);
                sampled.flips(told.values, at)
            }
            before => {
                told.all(reading, expires_at);
                let mut live = before.map(|sampled| std::mem::take(&mut sampled.live)).unwrap_or_default();
                let (now, entries) = exchanged(&mut live, told.values, at);
                let sampled = Sampled { at, flipped_at: None, is_up, live: now };
                self.sources.insert(source, sampled);
                entries
            }
        }
    }

    /// Returns how many series have not ended.
    pub fn live(&self) -> usize {
        self.sources.values().map(|sampled| sampled.live.len()).sum()
    }

    /// Ends all series: the cluster is not read any more.
    pub fn end(&mut self, at: Timestamp) -> Vec<Entry> {
        let sources = std::mem::take(&mut self.sources);
        sources.into_values().flat_map(|sampled| ended(sampled.live, at)).collect()
    }
}

impl Sampled {
    /// The flags that are other than before.
    fn flips(&mut self, mut flags: Vec<(Labels, f64)>, at: Timestamp) -> Vec<Entry> {
        flags.sort_by(|(one, _), (other, _)| one.cmp(other));
        flags.dedup_by(|(other, _), (first, _)| other == first);
        let mut entries = Vec::new();
        for (labels, value) in flags {
            if let Some(known) = self.live.get_mut(&labels)
                && known.to_bits() != value.to_bits()
            {
                *known = value;
                entries.push(Entry { labels, sample: Sample { at, value } });
            }
        }
        if !entries.is_empty() {
            self.flipped_at = Some(at);
        }
        entries
    }
}

/// Tells which series there are now, of those that were live and those that are told, and the samples that say so.
fn exchanged(
    live: &mut BTreeMap<Labels, f64>,
    told: Vec<(Labels, f64)>,
    at: Timestamp,
) -> (BTreeMap<Labels, f64>, Vec<Entry>) {
    let mut now = BTreeMap::new();
    let mut entries = Vec::with_capacity(told.len());
    for (labels, value) in told {
        // Two machines that give themselves one name are one series: that of the first.
        if now.contains_key(&labels) {
            continue;
        }
        // The same set is the same memory.
        let labels = live.remove_entry(&labels).map_or(labels, |(known, _)| known);
        now.insert(labels.clone(), value);
        entries.push(Entry { labels, sample: Sample { at, value } });
    }
    entries.extend(ended(std::mem::take(live), at));
    (now, entries)
}

/// The samples that say that series ended.
fn ended(live: BTreeMap<Labels, f64>, at: Timestamp) -> Vec<Entry> {
    live.into_keys().map(|labels| Entry { labels, sample: Sample { at, value: STALE } }).collect()
}

/// Which series tell what clusters a tenant had: of whatever time, as the clock may have been ahead.
pub fn cluster_series(tenant: &TenantName) -> Selection {
    // The name is ours, and sound.
    let matcher = Matcher::new(NAME, Operator::Equal, metrics::CLUSTER_INFO.name).ok();
    Selection {
        tenants: Some([tenant.clone()].into()),
        matchers: matcher.into_iter().collect(),
        from: Timestamp::from_millis(0),
        to: Timestamp::from_millis(i64::MAX),
        width: Duration::ZERO,
        limit: CLUSTERS,
    }
}

#[cfg(test)]
mod tests;
