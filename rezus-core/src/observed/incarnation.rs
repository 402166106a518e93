//! Which cluster answers: the same one as before, or another that came in its place.
//!
//! A cluster is known by what it keeps for as long as it lives: the UID of the namespace `kube-system`, and the id that Talos
//! has for it. Where neither is told, the key of its authority and the members of its etcd stand for it; beside one of those
//! they do not, as an authority is exchanged, and an etcd restored from a snapshot, without the cluster's being another one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::facts::{Facts, Kubernetes, Talos};
use super::{Reading, Source};
use crate::base::Timestamp;

/// How many clusters of one tenant are remembered.
const KNOWN: usize = 256;

/// For how long another cluster must be told of, without the present one in between, until it is believed: several behind one
/// name, or an answer that comes late, are no change.
const BELIEVED_AFTER: Duration = Duration::from_mins(1);

/// What tells a cluster from another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The UID of the namespace `kube-system`.
    pub cluster_uid: Option<String>,
    /// `cluster_id` of Talos.
    pub cluster_id: Option<String>,
    /// Fingerprints of the keys by which servers' certificates are verified, by source.
    pub authorities: BTreeMap<Source, String>,
    /// The members of etcd.
    pub etcd_members: BTreeSet<u64>,
}

/// One of the clusters that a tenant had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Which one: the first that was seen is 1.
    pub number: u32,
    /// What it is known by, as far as it was told.
    pub marks: Marks,
}

/// The clusters that a tenant had, and which of them it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incarnations {
    /// By number; never empty.
    known: Vec<Incarnation>,
    /// Which of those it is.
    present: usize,
    /// Whether anything told so, rather than that it was the last one that is known.
    is_told: bool,
    /// Since when it is that one, where it was another one before.
    changed_at: Option<Timestamp>,
    /// By what another one was told of, and since when.
    doubts: BTreeMap<Source, (Told, Timestamp)>,
}

/// A mark that was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    ClusterUid(String),
    ClusterId(String),
    Authority(Source, String),
    EtcdMembers(BTreeSet<u64>),
}

/// What a reading says of the cluster that it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognized {
    /// It is the present one.
    Same,
    /// It is another one, which is the present one from now on.
    Other,
    /// It may be another one: the reading is of no account yet.
    Doubted,
}

impl Marks {
    /// Tells whether a mark is one of these; nothing where none of its kind is.
    fn has(&self, told: &Told) -> Option<bool> {
        match told {
            Told::ClusterUid(uid) => self.cluster_uid.as_ref().map(|own| own == uid),
            Told::ClusterId(id) => self.cluster_id.as_ref().map(|own| own == id),
            Told::Authority(source, key) => self.authorities.get(source).map(|own| own == key),
            Told::EtcdMembers(members) if self.etcd_members.is_empty() || members.is_empty() => None,
            Told::EtcdMembers(members) => Some(!self.etcd_members.is_disjoint(members)),
        }
    }

    fn set(&mut self, told: Told) {
        match told {
            Told::ClusterUid(uid) => self.cluster_uid = Some(uid),
            Told::ClusterId(id) => self.cluster_id = Some(id),
            Told::Authority(source, key) => drop(self.authorities.insert(source, key)),
            Told::EtcdMembers(members) if members.is_empty() => {}
            Told::EtcdMembers(members) => self.etcd_members = members,
        }
    }

    /// Tells whether there is one that alone decides.
    const fn decide(&self) -> bool {
        self.cluster_uid.is_some() || self.cluster_id.is_some()
    }
}

impl Default for Incarnations {
    /// The first one, of which nothing is known.
    fn default() -> Self {
        Self::of(BTreeMap::new())
    }
}

impl Incarnations {
    /// Those that were known once; it has the last of them, until its cluster says otherwise.
    pub fn of(known: BTreeMap<u32, Marks>) -> Self {
        let surplus = known.len().saturating_sub(KNOWN);
        let mut known: Vec<_> =
            known.into_iter().skip(surplus).map(|(number, marks)| Incarnation { number, marks }).collect();
        if known.is_empty() {
            known.push(Incarnation { number: 1, marks: Marks::default() });
        }
        Self { present: known.len() - 1, known, is_told: false, changed_at: None, doubts: BTreeMap::new() }
    }

    /// The one that the tenant has.
    pub fn present(&self) -> &Incarnation {
        &self.known[self.present]
    }

    /// Its number; nothing as long as nothing was read of it by which it is known.
    pub fn told(&self) -> Option<u32> {
        self.is_told.then(|| self.present().number)
    }

    /// Looks whose news a reading is, which was taken from servers that this authority stands for.
    ///
    /// Another cluster is believed when it is told of for a minute; at once, where it is verified by another authority as well, as of
    /// a state that was refreshed, and the one before was there for a minute. So is the first one that is told of. A mark that was not told
    /// before is taken over, unless it is of another cluster that is known.
    pub fn take(&mut self, source: Source, reading: &Reading, authority: Option<&str>) -> Recognized {
        let (mark, etcd) = match &reading.facts {
            Some(Facts::Kubernetes(Kubernetes { cluster_uid, .. })) => {
                (cluster_uid.clone().filter(|uid| !uid.is_empty()).map(Told::ClusterUid), None)
            }
            Some(Facts::Talos(Talos { cluster_id, etcd, .. })) => {
                // Where members disagree, there are several.
                let etcd = etcd.as_ref().filter(|etcd| !etcd.lists_differ && !etcd.lists_disjoint);
                let members = etcd.map(|etcd| etcd.members.iter().map(|member| member.id).collect());
                let id = cluster_id.clone().filter(|id| !id.is_empty());
                (id.map(Told::ClusterId), members.map(Told::EtcdMembers))
            }
            Some(Facts::NodeMetrics(_)) | None => return Recognized::Same,
        };
        let authority = authority.map(|key| Told::Authority(source, key.to_owned()));
        let decides = mark.is_some() || self.present().marks.decide();
        let contradicts = |told: &&Told| self.present().marks.has(told) == Some(false);
        let weak = [&authority, &etcd].into_iter().flatten();
        let doubt = mark.iter().chain(weak.filter(|_| !decides)).find(contradicts).cloned();
        let Some(doubt) = doubt else {
            self.doubts.remove(&source);
            self.is_told |= mark.is_some() || authority.is_some();
            self.take_over([mark, authority, etcd]);
            return Recognized::Same;
        };
        let now = reading.finished;
        let since = match self.doubts.get(&source) {
            // A clock that was set back is no reason to wait for it.
            Some((told, since)) if *told == doubt && *since <= now => *since,
            _ => now,
        };
        let is_verified = mark.as_ref() == Some(&doubt)
            && authority.as_ref().is_some_and(|told| self.present().marks.has(told) == Some(false))
            && self.changed_at.is_none_or(|at| now.since(at) >= BELIEVED_AFTER);
        if self.is_told && !is_verified && now.since(since) < BELIEVED_AFTER {
            self.doubts.insert(source, (doubt, since));
            return Recognized::Doubted;
        }
        match self.known.iter().rposition(|one| one.marks.has(&doubt) == Some(true)) {
            Some(earlier) => self.present = earlier,
            None => self.begin(),
        }
        self.doubts.clear();
        (self.is_told, self.changed_at) = (true, Some(now));
        self.known[self.present].marks.set(doubt);
        self.take_over([mark, authority, etcd]);
        Recognized::Other
    }

    fn take_over(&mut self, told: [Option<Told>; 3]) {
        for told in told.into_iter().flatten() {
            let is_anothers = (0..self.known.len())
                .any(|at| at != self.present && self.known[at].marks.has(&told) == Some(true));
            let marks = &mut self.known[self.present].marks;
            if marks.has(&told).is_some() || !is_anothers {
                marks.set(told);
            }
        }
    }

    /// Has one that nobody saw before.
    fn begin(&mut self) {
        let last = self.known.last().map_or(0, |last| last.number);
        if self.known.len() >= KNOWN {
            self.known.remove(0);
        }
        self.known.push(Incarnation { number: last.saturating_add(1), marks: Marks::default() });
        self.present = self.known.len() - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Recognized::{Doubted, Other, Same};
    use super::*;
    use crate::observed::facts::{Etcd, EtcdMember, NodeMetrics};

    /// Clusters, and what is told of them, half a minute after the last time.
    struct World {
        clusters: Incarnations,
        now: i64,
    }

    impl World {
        fn new(clusters: Incarnations) -> Self {
            Self { clusters, now: 0 }
        }

        fn take(&mut self, source: Source, facts: Facts, authority: Option<&str>) -> (Recognized, u32) {
            self.now += 30_000;
            let at = Timestamp::from_millis(self.now);
            let reading = Reading { started: at, finished: at, facts: Some(facts), failures: Vec::new() };
            let recognized = self.clusters.take(source, &reading, authority);
            (recognized, self.clusters.present().number)
        }

        /// What Kubernetes tells: its cluster's UID, if anything; and the authority that it is verified by.
        fn kubernetes(&mut self, uid: Option<&str>, authority: &str) -> (Recognized, u32) {
            let facts = Kubernetes { cluster_uid: uid.map(ToOwned::to_owned), ..Kubernetes::default() };
            self.take(Source::Kubernetes, Facts::Kubernetes(facts), Some(authority))
        }

        /// What Talos tells: its cluster's id, if anything, and the members of etcd.
        fn talos(&mut self, id: Option<&str>, etcd: &[u64]) -> (Recognized, u32) {
            let members = etcd.iter().map(|id| EtcdMember { id: *id, ..EtcdMember::default() }).collect();
            let etcd = Some(Etcd { members, ..Etcd::default() });
            let facts = Talos { cluster_id: id.map(ToOwned::to_owned), etcd, ..Talos::default() };
            self.take(Source::Talos, Facts::Talos(facts), Some("talos"))
        }

        /// What both tell of the first cluster.
        fn first() -> Self {
            let mut world = Self::new(Incarnations::default());
            assert_eq!(world.clusters.told(), None);
            assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Same, 1));
            assert_eq!(world.talos(Some("x"), &[1, 2, 3]), (Same, 1));
            assert_eq!(world.clusters.told(), Some(1));
            world
        }
    }

    #[test]
    fn a_cluster_that_is_built_anew_is_one_other_whoever_tells_first() {
        let mut world = World::first();
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Other, 2));
        // That its Talos is another one too is no third cluster.
        assert_eq!(world.talos(Some("y"), &[7, 8, 9]), (Same, 2));
        assert_eq!(world.kubernetes(Some("b"), "ca-2"), (Same, 2));

        let mut other = World::first();
        for expected in [(Doubted, 1), (Doubted, 1), (Other, 2)] {
            assert_eq!(other.talos(Some("y"), &[7, 8, 9]), expected);
        }
        // The old one still answers for a while: it is not taken for the new one.
        assert_eq!(other.kubernetes(Some("a"), "ca-1"), (Same, 2));
        assert_eq!(other.kubernetes(Some("b"), "ca-2"), (Same, 2));
        assert_eq!(world.clusters.present().number, other.clusters.present().number);
        // Both are told of at the same time.
        let mut both = World::first();
        for expected in [(Doubted, 1), (Other, 2), (Same, 2)] {
            assert_eq!(both.kubernetes(Some("b"), "ca-1"), expected);
            both.talos(Some("y"), &[7, 8, 9]);
        }
        assert_eq!(both.clusters.present().number, other.clusters.present().number);
    }

    #[test]
    fn what_another_authority_vouches_for_is_believed_at_once() {
        let mut world = World::first();
        assert_eq!(world.kubernetes(Some("b"), "ca-2"), (Other, 2));
        // But not what comes late of the one before, nor ever more often than once in a minute.
        assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Doubted, 2));
        assert_eq!(world.kubernetes(Some("b"), "ca-2"), (Same, 2));
        assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Other, 1));
        // An authority alone is exchanged, and says nothing.
        world.now += 60_000;
        assert_eq!(world.kubernetes(None, "ca-2"), (Same, 1));
    }

    #[test]
    fn one_that_is_back_has_the_number_it_had() {
        let mut world = World::first();
        for expected in [(Doubted, 1), (Doubted, 1), (Other, 2)] {
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), expected);
        }
        for expected in [(Doubted, 2), (Doubted, 2), (Other, 1)] {
            assert_eq!(world.kubernetes(Some("a"), "ca-1"), expected);
        }
        assert_eq!(world.talos(Some("x"), &[1]), (Same, 1));
    }

    #[test]
    fn two_behind_one_name_are_no_change() {
        let mut world = World::first();
        for _ in 0..100 {
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
            assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Same, 1));
        }
        for number in 0..100 {
            assert_eq!(world.kubernetes(Some(&format!("uid-{number}")), "ca-1"), (Doubted, 1));
        }
    }

    #[test]
    fn an_authority_or_an_etcd_beside_a_better_mark_makes_no_other_cluster() {
        let mut world = World::first();
        // The authority was exchanged; members came and went; etcd was restored from a snapshot; a right was withdrawn.
        for _ in 0..4 {
            assert_eq!(world.kubernetes(Some("a"), "ca-2"), (Same, 1));
            assert_eq!(world.kubernetes(None, "ca-3"), (Same, 1));
            assert_eq!(world.kubernetes(Some(""), "ca-3"), (Same, 1));
            assert_eq!(world.talos(Some("x"), &[2, 3, 4]), (Same, 1));
            assert_eq!(world.talos(None, &[7, 8, 9]), (Same, 1));
            assert_eq!(world.talos(None, &[]), (Same, 1));
        }
        // Of a cluster that Talos alone names, Kubernetes' authority says nothing, nor does its etcd.
        let mut world = World::new(Incarnations::default());
        for number in 0..6_u64 {
            assert_eq!(world.talos(Some("x"), &[number]), (Same, 1));
            assert_eq!(world.kubernetes(None, &format!("ca-{number}")), (Same, 1));
        }
    }

    #[test]
    fn where_nothing_better_is_told_they_decide() {
        let mut world = World::new(Incarnations::default());
        assert_eq!(world.kubernetes(None, "ca-1"), (Same, 1));
        for expected in [(Doubted, 1), (Doubted, 1), (Other, 2)] {
            assert_eq!(world.kubernetes(None, "ca-2"), expected);
        }
        for expected in [(Doubted, 2), (Doubted, 2), (Other, 1)] {
            assert_eq!(world.kubernetes(None, "ca-1"), expected);
        }
        let mut world = World::new(Incarnations::default());
        assert_eq!(world.talos(None, &[1, 2]), (Same, 1));
        assert_eq!(world.talos(None, &[3, 2]), (Same, 1));
        for expected in [(Doubted, 1), (Doubted, 1), (Other, 2)] {
            assert_eq!(world.talos(None, &[8, 9]), expected);
        }
        // Where members do not agree who they are, nothing is decided by that.
        let lists_disjoint = Etcd {
            members: vec![EtcdMember { id: 1, ..EtcdMember::default() }],
            lists_disjoint: true,
            ..Etcd::default()
        };
        for _ in 0..4 {
            let facts = Talos { etcd: Some(lists_disjoint.clone()), ..Talos::default() };
            assert_eq!(world.take(Source::Talos, Facts::Talos(facts), None), (Same, 2));
        }
        let metrics = Facts::NodeMetrics(NodeMetrics { machines: Vec::new() });
        assert_eq!(world.take(Source::NodeMetrics, metrics, Some("other")), (Same, 2));
    }

    #[test]
    fn those_that_were_known_once_are_recognised_at_once() {
        let of = |uid: &str| Marks { cluster_uid: Some(uid.to_owned()), ..Marks::default() };
        let known = Incarnations::of([(1, of("a")), (4, of("b"))].into());
        assert_eq!((known.present().number, known.told()), (4, None));
        for (uid, expected) in [("b", (Same, 4)), ("a", (Other, 1)), ("c", (Other, 5))] {
            let mut world = World::new(known.clone());
            assert_eq!(world.kubernetes(Some(uid), "ca"), expected, "{uid}");
            assert_eq!(world.clusters.told(), Some(expected.1));
        }
        assert_eq!(Incarnations::of(BTreeMap::new()), Incarnations::default());
    }

    #[test]
    fn no_more_are_remembered_than_a_few() {
        let mut world = World::first();
        for number in 0..999 {
            for _ in 0..3 {
                world.kubernetes(Some(&format!("uid-{number}")), "ca-1");
            }
        }
        assert_eq!((world.clusters.known.len(), world.clusters.present().number), (KNOWN, 1_000));
        let many = (1..=1_000).map(|number| (number, Marks::default())).collect();
        let many = Incarnations::of(many);
        assert_eq!((many.known.len(), many.present().number), (KNOWN, 1_000));
    }

    #[test]
    fn a_clock_that_was_set_back_delays_it_by_no_more_than_it_takes() {
        let mut world = World::first();
        world.now = 10_000_000_000;
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
        world.now = 0;
        for expected in [(Doubted, 1), (Doubted, 1), (Other, 2)] {
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), expected);
        }
    }
}
