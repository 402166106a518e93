//! Which cluster answers: the same one as before, or another that came in its place.
//!
//! One mark decides, the best that was ever told of the tenant's clusters: the UID of the namespace `kube-system`; where nobody may
//! read that, the id that Talos has for the cluster; where neither is told, the key of its authority. What else changes,
//! as an authority that is exchanged, or members of an etcd that is restored from a snapshot, makes no other cluster. As one source
//! alone decides, two that contradict each other are no change.

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts::{Facts, Kubernetes, Talos};
use super::{Reading, Source};
use crate::base::Timestamp;

/// How many clusters of one tenant are remembered.
const KNOWN: usize = 256;

/// For how long, and how many times in a row, another cluster must be told of until it is believed: several behind one name, or
/// an answer that comes late, are no change.
const BELIEVED_AFTER: Duration = Duration::from_mins(1);
const BELIEVED_AT: u32 = 3;

/// For how long the known one is waited for while several others are told of by turns.
const GIVEN_UP_AFTER: Duration = Duration::from_mins(10);

/// After how long without an answer what was doubted is doubted anew.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(5);

/// What tells a cluster from another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The UID of the namespace `kube-system`.
    pub cluster_uid: Option<String>,
    /// The fingerprint of `cluster_id` of Talos.
    pub cluster_id: Option<String>,
    /// Fingerprints of the keys by which servers' certificates are verified, by source.
    pub authorities: BTreeMap<Source, String>,
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
    doubt: Option<Doubt>,
}

/// That another one was told of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Doubt {
    mark: Mark,
    /// Since when the known one is not told of, and when another one was last.
    since: Timestamp,
    last: Timestamp,
    /// How many times in a row it was this one.
    times: u32,
}

/// A mark that was told, the best kind last.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Authority(Source, String),
    ClusterId(String),
    ClusterUid(String),
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
    fn has(&self, mark: &Mark) -> Option<bool> {
        match mark {
            Mark::ClusterUid(uid) => self.cluster_uid.as_ref().map(|own| own == uid),
            Mark::ClusterId(id) => self.cluster_id.as_ref().map(|own| own == id),
            Mark::Authority(source, key) => self.authorities.get(source).map(|own| own == key),
        }
    }

    fn set(&mut self, mark: Mark) {
        match mark {
            Mark::ClusterUid(uid) => self.cluster_uid = Some(uid),
            Mark::ClusterId(id) => self.cluster_id = Some(id),
            Mark::Authority(source, key) => drop(self.authorities.insert(source, key)),
        }
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
        Self { present: known.len() - 1, known, is_told: false, changed_at: None, doubt: None }
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
    /// Another cluster is believed when it is told of for a minute, three times in a row; at once, where it is verified by another
    /// authority as well, as of a state that was refreshed, and the one before was there for a minute. So is the first one that is
    /// told of.
    pub fn take(&mut self, source: Source, reading: &Reading, authority: Option<&str>) -> Recognized {
        let mark = match &reading.facts {
            Some(Facts::Kubernetes(Kubernetes { cluster_uid, .. })) => {
                cluster_uid.clone().map(Mark::ClusterUid)
            }
            Some(Facts::Talos(Talos { cluster_id, .. })) => cluster_id.clone().map(Mark::ClusterId),
            Some(Facts::NodeMetrics(_)) | None => return Recognized::Same,
        };
        let mark =
            mark.filter(|mark| !matches!(mark, Mark::ClusterUid(id) | Mark::ClusterId(id) if id.is_empty()));
        let authority = authority.map(|key| Mark::Authority(source, key.to_owned()));
        let Some(deciding) =
            [&mark, &authority].into_iter().flatten().find(|mark| self.decides(mark)).cloned()
        else {
            // It cannot be said whose it is; where others were told of by this source, it may be theirs.
            return if self.doubt.as_ref().is_some_and(|doubt| doubt.mark.source() == source) {
                Recognized::Doubted
            } else {
                self.take_over([mark, authority]);
                Recognized::Same
            };
        };
        if self.present().marks.has(&deciding) != Some(false) {
            (self.doubt, self.is_told) = (None, true);
            self.take_over([mark, authority]);
            return Recognized::Same;
        }
        let now = reading.finished;
        let is_verified = mark.as_ref() == Some(&deciding)
            && authority.as_ref().is_some_and(|key| self.present().marks.has(key) == Some(false))
            && self.changed_at.is_none_or(|at| now.since(at) >= BELIEVED_AFTER);
        let doubt = Doubt::after(self.doubt.take(), deciding.clone(), now);
        if self.is_told && !is_verified && !doubt.is_over(now) {
            self.doubt = Some(doubt);
            return Recognized::Doubted;
        }
        match self.known.iter().rposition(|one| one.marks.has(&deciding) == Some(true)) {
            Some(earlier) => self.present = earlier,
            None => self.begin(),
        }
        (self.is_told, self.changed_at) = (true, Some(now));
        self.take_over([mark, authority]);
        Recognized::Other
    }

    /// Tells whether no better mark was ever told of any of the clusters.
    fn decides(&self, mark: &Mark) -> bool {
        let none = |is_known: fn(&Marks) -> bool| !self.known.iter().any(|one| is_known(&one.marks));
        match mark {
            Mark::ClusterUid(_) => true,
            Mark::ClusterId(_) => none(|marks| marks.cluster_uid.is_some()),
            Mark::Authority(..) => none(|marks| marks.cluster_uid.is_some() || marks.cluster_id.is_some()),
        }
    }

    fn take_over(&mut self, told: [Option<Mark>; 2]) {
        let marks = &mut self.known[self.present].marks;
        told.into_iter().flatten().for_each(|mark| marks.set(mark));
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

impl Mark {
    /// Which source tells it.
    const fn source(&self) -> Source {
        match self {
            Self::ClusterUid(_) => Source::Kubernetes,
            Self::ClusterId(_) => Source::Talos,
            Self::Authority(source, _) => *source,
        }
    }
}

impl Doubt {
    /// Another one is told of, after this.
    fn after(before: Option<Self>, mark: Mark, now: Timestamp) -> Self {
        // A clock that was set back is no reason to wait for it.
        let is_of_now = |before: &Self| before.last <= now && now.since(before.last) < FORGOTTEN_AFTER;
        match before.filter(is_of_now) {
            Some(before) => {
                let times = if before.mark == mark { before.times.saturating_add(1) } else { 1 };
                Self { mark, since: before.since, last: now, times }
            }
            None => Self { mark, since: now, last: now, times: 1 },
        }
    }

    /// Tells whether it is one no more.
    fn is_over(&self, now: Timestamp) -> bool {
        let waited = now.since(self.since);
        waited >= GIVEN_UP_AFTER || (waited >= BELIEVED_AFTER && self.times >= BELIEVED_AT)
    }
}

#[cfg(test)]
mod tests {
    use super::Recognized::{Doubted, Other, Same};
    use super::*;
    use crate::observed::facts::NodeMetrics;

    /// Clusters, and what is told of them, half a minute after the last time.
    struct World {
        clusters: Incarnations,
        now: i64,
    }

    impl World {
        fn new(clusters: Incarnations) -> Self {
            Self { clusters, now: 0 }
        }

        fn take(
            &mut self,
            source: Source,
            facts: Option<Facts>,
            authority: Option<&str>,
        ) -> (Recognized, u32) {
            self.now += 30_000;
            let at = Timestamp::from_millis(self.now);
            let reading = Reading { started: at, finished: at, facts, failures: Vec::new() };
            let recognized = self.clusters.take(source, &reading, authority);
            (recognized, self.clusters.present().number)
        }

        /// What Kubernetes tells: its cluster's UID, if anything; and the authority that it is verified by.
        fn kubernetes(&mut self, uid: Option<&str>, authority: &str) -> (Recognized, u32) {
            let facts = Kubernetes { cluster_uid: uid.map(ToOwned::to_owned), ..Kubernetes::default() };
            self.take(Source::Kubernetes, Some(Facts::Kubernetes(facts)), Some(authority))
        }

        /// What Talos tells: its cluster's id, if anything.
        fn talos(&mut self, id: Option<&str>, authority: &str) -> (Recognized, u32) {
            let facts = Talos { cluster_id: id.map(ToOwned::to_owned), ..Talos::default() };
            self.take(Source::Talos, Some(Facts::Talos(facts)), Some(authority))
        }

        /// What both tell of the first cluster.
        fn first() -> Self {
            let mut world = Self::new(Incarnations::default());
            assert_eq!(world.clusters.told(), None);
            assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Same, 1));
            assert_eq!(world.talos(Some("x"), "talos-1"), (Same, 1));
            assert_eq!(world.clusters.told(), Some(1));
            world
        }

        /// Kubernetes tells so of another cluster until it is believed.
        fn believes(&mut self, uid: &str, number: u32) {
            let before = self.clusters.present().number;
            for _ in 0..2 {
                assert_eq!(self.kubernetes(Some(uid), "ca-1"), (Doubted, before));
            }
            assert_eq!(self.kubernetes(Some(uid), "ca-1"), (Other, number));
        }
    }

    #[test]
    fn a_cluster_that_is_built_anew_is_one_other_whoever_tells_first() {
        let mut world = World::first();
        world.believes("b", 2);
        assert_eq!(world.talos(Some("y"), "talos-2"), (Same, 2));
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Same, 2));
        let mut other = World::first();
        for _ in 0..5 {
            assert_eq!(other.talos(Some("y"), "talos-2"), (Same, 1));
        }
        assert_eq!(other.kubernetes(Some("a"), "ca-1"), (Same, 1));
        other.believes("b", 2);
        assert_eq!(other.talos(Some("y"), "talos-2"), (Same, 2));
        assert_eq!(world.clusters.present(), other.clusters.present());
    }

    #[test]
    fn what_another_authority_vouches_for_is_believed_at_once() {
        let mut world = World::first();
        assert_eq!(world.kubernetes(Some("b"), "ca-2"), (Other, 2));
        // But not what comes late of the one before, nor ever more often than once in a minute.
        assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Doubted, 2));
        assert_eq!(world.kubernetes(Some("b"), "ca-2"), (Same, 2));
        assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Other, 1));
    }

    #[test]
    fn one_that_is_back_has_the_number_it_had() {
        let mut world = World::first();
        world.believes("b", 2);
        world.believes("a", 1);
        world.believes("c", 3);
        assert_eq!(world.talos(Some("x"), "talos-1"), (Same, 3));
    }

    #[test]
    fn sources_that_contradict_each_other_are_no_change() {
        // An etcd of the first one was restored on the second one: what Kubernetes says counts, for good.
        let mut world = World::first();
        world.believes("b", 2);
        assert_eq!(world.talos(Some("y"), "talos-2"), (Same, 2));
        world.believes("a", 1);
        for _ in 0..10 {
            assert_eq!(world.talos(Some("y"), "talos-2"), (Same, 1));
            assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Same, 1));
        }
    }

    #[test]
    fn several_behind_one_name_are_no_change_as_long_as_the_known_one_is_among_them() {
        let mut world = World::first();
        for _ in 0..100 {
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
            assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Same, 1));
        }
        // What does not say whose it is may be the other one's.
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
        assert_eq!(world.kubernetes(None, "ca-1"), (Doubted, 1));
        assert_eq!(world.talos(None, "talos-1"), (Same, 1));
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
        assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Other, 2));
        // Two that are both new are told of by turns, and the known one never again.
        let told: Vec<_> =
            (0..30).map(|turn| world.kubernetes(Some(["c", "d"][turn % 2]), "ca-1").0).collect();
        assert_eq!(told.iter().filter(|one| **one == Other).count(), 1, "{told:?}");
    }

    #[test]
    fn what_was_doubted_long_ago_is_doubted_anew() {
        let mut world = World::first();
        for _ in 0..2 {
            assert_eq!(world.kubernetes(Some("b"), "ca-1"), (Doubted, 1));
        }
        world.now += 3_600_000;
        assert_eq!(world.take(Source::Kubernetes, None, None), (Same, 1));
        world.believes("b", 2);
        // Nor is a clock that was set back waited for.
        world.now = 10_000_000_000;
        assert_eq!(world.kubernetes(Some("c"), "ca-1"), (Doubted, 2));
        world.now = 0;
        world.believes("c", 3);
    }

    #[test]
    fn an_authority_or_an_id_beside_a_better_mark_makes_no_other_cluster() {
        let mut world = World::first();
        for number in 0..6 {
            let authority = format!("ca-{number}");
            assert_eq!(world.kubernetes(Some("a"), &authority), (Same, 1));
            assert_eq!(world.kubernetes(None, &authority), (Same, 1));
            assert_eq!(world.kubernetes(Some(""), &authority), (Same, 1));
            assert_eq!(world.talos(Some(&format!("id-{number}")), &authority), (Same, 1));
        }
        let mut world = World::new(Incarnations::default());
        for number in 0..6 {
            assert_eq!(world.talos(Some("x"), &format!("ca-{number}")), (Same, 1));
            assert_eq!(world.kubernetes(None, &format!("ca-{number}")), (Same, 1));
        }
    }

    #[test]
    fn where_nothing_better_is_told_they_decide() {
        let mut world = World::new(Incarnations::default());
        assert_eq!(world.kubernetes(None, "ca-1"), (Same, 1));
        for expected in [(Doubted, 1), (Doubted, 1), (Other, 2), (Same, 2)] {
            assert_eq!(world.kubernetes(None, "ca-2"), expected);
        }
        for expected in [(Doubted, 2), (Doubted, 2), (Other, 1)] {
            assert_eq!(world.kubernetes(None, "ca-1"), expected);
        }
        let mut world = World::new(Incarnations::default());
        assert_eq!(world.talos(Some("x"), "talos-1"), (Same, 1));
        assert_eq!(world.talos(Some("y"), "talos-2"), (Other, 2));
        let metrics = Facts::NodeMetrics(NodeMetrics { machines: Vec::new() });
        assert_eq!(world.take(Source::NodeMetrics, Some(metrics), Some("other")), (Same, 2));
        // It is the same one, which tells more of itself.
        assert_eq!(world.kubernetes(Some("a"), "ca-1"), (Same, 2));
        assert_eq!(world.talos(Some("z"), "talos-2"), (Same, 2));
    }

    #[test]
    fn those_that_were_known_once_are_recognised_at_once() {
        let of = |uid: &str| Marks { cluster_uid: Some(uid.to_owned()), ..Marks::default() };
        let known = Incarnations::of([(1, of("a")), (4, of("b"))].into());
        assert_eq!((known.present().number, known.told()), (4, None));
        for (uid, expected) in [("b", (Same, 4)), ("a", (Other, 1)), ("c", (Other, 5))] {
            let mut world = World::new(known.clone());
            // What does not say whose it is decides nothing.
            assert_eq!(world.kubernetes(None, "ca"), (Same, 4));
            assert_eq!(world.talos(Some("x"), "talos"), (Same, 4));
            assert_eq!(world.clusters.told(), None);
            assert_eq!(world.kubernetes(Some(uid), "ca"), expected, "{uid}");
            assert_eq!(world.clusters.told(), Some(expected.1));
        }
        assert_eq!(Incarnations::of(BTreeMap::new()), Incarnations::default());
    }

    #[test]
    fn no_more_are_remembered_than_a_few() {
        let mut world = World::first();
        for number in 0..999 {
            world.believes(&format!("uid-{number}"), number + 2);
        }
        assert_eq!((world.clusters.known.len(), world.clusters.present().number), (KNOWN, 1_000));
        let many = (1..=1_000).map(|number| (number, Marks::default())).collect();
        let many = Incarnations::of(many);
        assert_eq!((many.known.len(), many.present().number), (KNOWN, 1_000));
    }
}
