//! Which cluster answers: the same one as before, or another that came in its place.
//!
//! A cluster is known by what it keeps for as long as it lives: the UID of the namespace `kube-system`, and the id that Talos
//! has for it. Where neither is told, the key of its authority and the members of its etcd stand for it; alone they do not,
//! as an authority is exchanged, and an etcd restored from a snapshot, without the cluster's being another one.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{Facts, Kubernetes, Talos};
use super::{Reading, Source};

/// How many clusters of one tenant are remembered.
const KNOWN: usize = 256;

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
}

/// A mark that alone decides.
#[derive(Clone, Copy, Debug)]
enum Deciding {
    ClusterUid,
    ClusterId,
}

impl Marks {
    fn get(&self, mark: Deciding) -> Option<&str> {
        match mark {
            Deciding::ClusterUid => self.cluster_uid.as_deref(),
            Deciding::ClusterId => self.cluster_id.as_deref(),
        }
    }

    fn set(&mut self, mark: Deciding, value: &str) {
        let own = match mark {
            Deciding::ClusterUid => &mut self.cluster_uid,
            Deciding::ClusterId => &mut self.cluster_id,
        };
        *own = Some(value.to_owned());
    }
}

impl Default for Incarnations {
    /// The first one, of which nothing is known.
    fn default() -> Self {
        Self { known: vec![Incarnation { number: 1, marks: Marks::default() }], present: 0 }
    }
}

impl Incarnations {
    /// Those that were known once; it has the last of them, until its cluster says otherwise.
    pub fn of(known: BTreeMap<u32, Marks>) -> Self {
        let known: Vec<_> = known.into_iter().map(|(number, marks)| Incarnation { number, marks }).collect();
        match known.len().checked_sub(1) {
            Some(present) => Self { known, present },
            None => Self::default(),
        }
    }

    /// The one that the tenant has.
    pub fn present(&self) -> &Incarnation {
        &self.known[self.present]
    }

    fn marks(&mut self) -> &mut Marks {
        &mut self.known[self.present].marks
    }

    /// Looks whose news a reading is, which was taken from servers that this authority stands for. Tells whether it is another
    /// cluster's than the one before: one that is not known yet, or one of earlier that is back.
    ///
    /// A mark that was not told before is taken over.
    pub fn take(&mut self, source: Source, reading: &Reading, authority: Option<&str>) -> bool {
        let (decides, is_other) = match &reading.facts {
            Some(Facts::Kubernetes(Kubernetes { cluster_uid, .. })) => {
                let mark = Deciding::ClusterUid;
                (mark, cluster_uid.as_deref().is_some_and(|uid| self.decide(mark, uid)))
            }
            Some(Facts::Talos(Talos { cluster_id, .. })) => {
                let mark = Deciding::ClusterId;
                (mark, cluster_id.as_deref().is_some_and(|id| self.decide(mark, id)))
            }
            Some(Facts::NodeMetrics(_)) | None => return false,
        };
        let is_new = authority.is_some_and(|authority| self.verified_by(source, authority, decides));
        let etcd = match &reading.facts {
            Some(Facts::Talos(Talos { etcd: Some(etcd), .. })) => {
                etcd.members.iter().map(|member| member.id).collect()
            }
            _ => BTreeSet::new(),
        };
        self.joined(etcd) || is_new || is_other
    }

    fn decide(&mut self, mark: Deciding, value: &str) -> bool {
        match self.present().marks.get(mark) {
            Some(known) if known == value => return false,
            None => {
                self.marks().set(mark, value);
                return false;
            }
            Some(_) => {}
        }
        match self.known.iter().rposition(|one| one.marks.get(mark) == Some(value)) {
            Some(earlier) => self.present = earlier,
            None => self.begin().set(mark, value),
        }
        true
    }

    fn verified_by(&mut self, source: Source, authority: &str, decides: Deciding) -> bool {
        let marks = &self.present().marks;
        let before = marks.authorities.get(&source);
        if before.is_some_and(|before| before == authority) {
            return false;
        }
        let is_other = before.is_some() && marks.get(decides).is_none();
        let marks = if is_other { self.begin() } else { self.marks() };
        marks.authorities.insert(source, authority.to_owned());
        is_other
    }

    fn joined(&mut self, members: BTreeSet<u64>) -> bool {
        let marks = &self.present().marks;
        if members.is_empty() || marks.etcd_members == members {
            return false;
        }
        let is_other = !marks.etcd_members.is_empty()
            && marks.etcd_members.is_disjoint(&members)
            && marks.cluster_uid.is_none();
        let marks = if is_other { self.begin() } else { self.marks() };
        marks.etcd_members = members;
        is_other
    }

    /// Has one that nobody saw before.
    fn begin(&mut self) -> &mut Marks {
        let last = self.known.last().map_or(0, |last| last.number);
        if self.known.len() >= KNOWN {
            self.known.remove(0);
        }
        self.known.push(Incarnation { number: last.saturating_add(1), marks: Marks::default() });
        self.present = self.known.len() - 1;
        self.marks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;
    use crate::observed::facts::{Etcd, EtcdMember, NodeMetrics};

    fn reading(facts: Facts) -> Reading {
        let at = Timestamp::from_millis(0);
        Reading { started: at, finished: at, facts: Some(facts), failures: Vec::new() }
    }

    /// What Kubernetes tells: its cluster's UID, if anything; and the authority that it is verified by.
    fn kubernetes(clusters: &mut Incarnations, uid: Option<&str>, authority: &str) -> (bool, u32) {
        let facts = Kubernetes { cluster_uid: uid.map(ToOwned::to_owned), ..Kubernetes::default() };
        let is_other = clusters.take(Source::Kubernetes, &reading(Facts::Kubernetes(facts)), Some(authority));
        (is_other, clusters.present().number)
    }

    /// What Talos tells: its cluster's id, if anything, and the members of etcd.
    fn talos(clusters: &mut Incarnations, id: Option<&str>, etcd: &[u64]) -> (bool, u32) {
        let members = etcd.iter().map(|id| EtcdMember { id: *id, ..EtcdMember::default() }).collect();
        let etcd = Some(Etcd { members, ..Etcd::default() });
        let facts = Talos { cluster_id: id.map(ToOwned::to_owned), etcd, ..Talos::default() };
        let is_other = clusters.take(Source::Talos, &reading(Facts::Talos(facts)), Some("talos"));
        (is_other, clusters.present().number)
    }

    #[test]
    fn a_cluster_that_is_built_anew_is_another_whoever_tells_first() {
        let mut clusters = Incarnations::default();
        assert_eq!(kubernetes(&mut clusters, Some("a"), "ca-1"), (false, 1));
        assert_eq!(talos(&mut clusters, Some("x"), &[1, 2, 3]), (false, 1));
        let mut other = clusters.clone();
        assert_eq!(kubernetes(&mut clusters, Some("b"), "ca-2"), (true, 2));
        // That its Talos is another one too is no third cluster.
        assert_eq!(talos(&mut clusters, Some("y"), &[7, 8, 9]), (false, 2));
        assert_eq!(kubernetes(&mut clusters, Some("b"), "ca-2"), (false, 2));
        assert_eq!(talos(&mut other, Some("y"), &[7, 8, 9]), (true, 2));
        assert_eq!(kubernetes(&mut other, Some("b"), "ca-2"), (false, 2));
        assert_eq!(clusters.present(), other.present());
    }

    #[test]
    fn one_that_is_back_has_the_number_it_had() {
        let mut clusters = Incarnations::default();
        kubernetes(&mut clusters, Some("a"), "ca-1");
        talos(&mut clusters, Some("x"), &[1]);
        kubernetes(&mut clusters, Some("b"), "ca-2");
        talos(&mut clusters, Some("y"), &[2]);
        // Two clusters behind one name make two, however often they take turns.
        for _ in 0..3 {
            assert_eq!(kubernetes(&mut clusters, Some("a"), "ca-1"), (true, 1));
            assert_eq!(talos(&mut clusters, Some("x"), &[1]), (false, 1));
            assert_eq!(talos(&mut clusters, Some("y"), &[2]), (true, 2));
            assert_eq!(kubernetes(&mut clusters, Some("b"), "ca-2"), (false, 2));
        }
    }

    #[test]
    fn an_authority_or_an_etcd_alone_makes_no_other_cluster() {
        let mut clusters = Incarnations::default();
        kubernetes(&mut clusters, Some("a"), "ca-1");
        talos(&mut clusters, Some("x"), &[1, 2, 3]);
        // The authority was exchanged; members came and went; etcd was restored from a snapshot.
        assert_eq!(kubernetes(&mut clusters, Some("a"), "ca-2"), (false, 1));
        assert_eq!(kubernetes(&mut clusters, None, "ca-3"), (false, 1));
        assert_eq!(talos(&mut clusters, Some("x"), &[2, 3, 4]), (false, 1));
        assert_eq!(talos(&mut clusters, None, &[7, 8, 9]), (false, 1));
        assert_eq!(talos(&mut clusters, None, &[]), (false, 1));
    }

    #[test]
    fn where_nothing_better_is_told_they_decide() {
        let mut clusters = Incarnations::default();
        assert_eq!(kubernetes(&mut clusters, None, "ca-1"), (false, 1));
        assert_eq!(kubernetes(&mut clusters, None, "ca-1"), (false, 1));
        assert_eq!(kubernetes(&mut clusters, None, "ca-2"), (true, 2));
        let mut clusters = Incarnations::default();
        assert_eq!(talos(&mut clusters, Some("x"), &[1, 2]), (false, 1));
        assert_eq!(talos(&mut clusters, Some("x"), &[3, 2]), (false, 1));
        assert_eq!(talos(&mut clusters, Some("x"), &[8, 9]), (true, 2));
        let metrics = Facts::NodeMetrics(NodeMetrics { machines: Vec::new() });
        assert!(!clusters.take(Source::NodeMetrics, &reading(metrics), Some("other")));
    }

    #[test]
    fn those_that_were_known_once_are_recognised() {
        let of = |uid: &str| Marks { cluster_uid: Some(uid.to_owned()), ..Marks::default() };
        let mut clusters = Incarnations::of([(1, of("a")), (4, of("b"))].into());
        assert_eq!(clusters.present().number, 4);
        assert_eq!(kubernetes(&mut clusters, Some("b"), "ca"), (false, 4));
        assert_eq!(kubernetes(&mut clusters, Some("a"), "ca"), (true, 1));
        assert_eq!(kubernetes(&mut clusters, Some("c"), "ca"), (true, 5));
        assert_eq!(Incarnations::of(BTreeMap::new()), Incarnations::default());
    }

    #[test]
    fn no_more_are_remembered_than_a_few() {
        let mut clusters = Incarnations::default();
        for number in 0..1_000 {
            kubernetes(&mut clusters, Some(&format!("uid-{number}")), "ca");
        }
        assert_eq!((clusters.known.len(), clusters.present().number), (KNOWN, 1_000));
    }
}
