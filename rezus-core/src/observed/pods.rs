//! What is to be said of a cluster's pods, kept up to date one pod at a time.
//!
//! A looping container runs part of the time, and its ended state is there for moments only. So one look does not tell: the
//! book remembers how restarts went up, and what waited to be tried again until it has run for ten minutes, as long as a
//! kubelet takes to forget a back-off.

mod seen;
mod trouble;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use seen::{ContainerKind, ContainerSeen, Ended, PodCondition, PodPhase, PodSeen};
use trouble::{Kind, Past, Trouble};

use super::facts::{Offender, Pods};
use crate::base::Timestamp;

/// How many offenders are told at most.
const OFFENDERS: usize = 50;

/// The pods of one cluster. It holds about 200 bytes of each, and texts only of those that give trouble or may soon.
#[derive(Debug, Default)]
pub struct PodBook {
    pods: HashMap<Box<str>, Entry>,
    /// Which list a pod was seen in last, or since.
    list: u32,
    /// When the last news came: from then on until a new list, restarts went unseen.
    heard_at: Option<Timestamp>,
    /// While a new list comes in: when the last news before it came.
    silent_since: Option<Timestamp>,
    texts: Texts,
}

#[derive(Debug)]
struct Entry {
    phase: PodPhase,
    list: u32,
    restarts: u64,
    /// Of the containers that were restarted, or are waiting to be.
    pasts: Box<[Past]>,
    kept: Option<Box<Kept>>,
}

/// What is told of a pod that gives trouble.
#[derive(Debug)]
struct Kept {
    namespace: Arc<str>,
    name: Box<str>,
    node: Option<Arc<str>>,
    troubles: Box<[Trouble]>,
}

impl PodBook {
    /// Takes note of a pod as it is at `at`.
    pub fn apply(&mut self, pod: &PodSeen, at: Timestamp) {
        let before = self.pods.get(&*pod.uid);
        // Restarts that came while nobody looked for long may have come hours ago.
        let unseen = self.silent_since.is_some_and(|since| at.since(since) > trouble::WINDOW);
        let watched = before.is_some() && !unseen;
        let pasts =
            trouble::pasts(pod, before.map_or(&[], |entry| &entry.pasts), watched, at, &mut self.texts);
        let troubles = trouble::of(pod, &pasts, at, &mut self.texts);
        let kept = (!troubles.is_empty()).then(|| {
            Box::new(Kept {
                namespace: self.texts.get(&pod.namespace),
                name: pod.name.as_str().into(),
                node: pod.node.as_deref().map(|node| self.texts.get(node)),
                troubles: troubles.into_boxed_slice(),
            })
        });
        let restarts = pod.containers.iter().map(|container| u64::from(container.restarts)).sum();
        let entry = Entry { phase: pod.phase, list: self.list, restarts, pasts, kept };
        self.pods.insert(pod.uid.as_str().into(), entry);
        self.heard_at = self.heard_at.max(Some(at));
    }

    /// Forgets a pod that was deleted.
    pub fn remove(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// Begins a new list: what is there stays until [`Self::settled`].
    pub fn restart(&mut self) {
        self.list = self.list.wrapping_add(1);
        self.silent_since = self.silent_since.or(self.heard_at);
    }

    /// Ends the list: what was not in it is gone.
    pub fn settled(&mut self) {
        self.pods.retain(|_, entry| entry.list == self.list);
        self.silent_since = None;
        self.texts.forget_unused();
    }

    /// Sums up what gives trouble at `now`.
    pub fn summary(&self, now: Timestamp) -> Pods {
        let mut pods = Pods::default();
        let mut offenders = Vec::new();
        for entry in self.pods.values() {
            pods.total += 1;
            pods.restarts += entry.restarts;
            match entry.phase {
                PodPhase::Running => pods.running += 1,
                PodPhase::Pending => pods.pending += 1,
                PodPhase::Failed => pods.failed += 1,
                PodPhase::Succeeded => pods.succeeded += 1,
                PodPhase::Unknown => {}
            }
            let Some(kept) = &entry.kept else { continue };
            let present = |kind| kept.troubles.iter().any(|trouble| trouble.kind == kind && trouble.at(now));
            pods.crash_looping += u64::from(present(Kind::Looping));
            pods.oom_killed += u64::from(present(Kind::OutOfMemory));
            pods.unready += u64::from(present(Kind::NotReady));
            let worst =
                kept.troubles.iter().filter(|trouble| trouble.at(now)).min_by_key(|trouble| trouble.rank());
            offenders.extend(worst.map(|trouble| (kept.as_ref(), trouble)));
        }
        offenders.sort_unstable_by(|(pod, trouble), (other_pod, other)| {
            let names = |pod: &Kept| (Arc::clone(&pod.namespace), pod.name.clone());
            trouble.rank().cmp(&other.rank()).then_with(|| names(pod).cmp(&names(other_pod)))
        });
        offenders.truncate(OFFENDERS);
        pods.offenders = offenders.into_iter().map(|(pod, trouble)| offender(pod, trouble)).collect();
        pods
    }
}

fn offender(pod: &Kept, trouble: &Trouble) -> Offender {
    Offender {
        namespace: pod.namespace.as_ref().to_owned(),
        pod: pod.name.as_ref().to_owned(),
        container: trouble.container.as_deref().map(str::to_owned),
        node: pod.node.as_deref().map(str::to_owned),
        reason: trouble.reason.as_ref().to_owned(),
        restarts: u64::from(trouble.restarts),
        since: trouble.since,
    }
}

/// Texts that many pods have in common, each held once.
#[derive(Debug, Default)]
struct Texts(HashSet<Arc<str>>);

impl Texts {
    fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(held) = self.0.get(text) {
            return Arc::clone(held);
        }
        let held = Arc::<str>::from(text);
        self.0.insert(Arc::clone(&held));
        held
    }

    fn forget_unused(&mut self) {
        self.0.retain(|text| Arc::strong_count(text) > 1);
    }
}
