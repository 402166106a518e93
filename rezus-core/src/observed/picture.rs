//! All that is known of one cluster: the newest news of each part, each with its own date.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::facts::{
    ApiCheck, Etcd, Facts, Kubernetes, MachineMetrics, Member, Node, NodeMetrics, Pods, Talos, TalosMachine,
    Usage,
};
use super::{Failure, Incarnation, Incarnations, Observation, Reading, Recognized, Source};
use crate::base::Timestamp;

/// What is known of one cluster. A part that a reading did not bring stays as it was, with its date: what cannot be read any
/// more grows old, and does not vanish.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// What Kubernetes told.
    pub kubernetes: KubernetesPicture,
    /// What Talos told.
    pub talos: TalosPicture,
    /// What each `node_exporter` told, by the host that was asked.
    pub metrics: BTreeMap<String, Observation<MachineMetrics>>,
    /// How reading each source goes; a source that was never tried is not in it.
    pub standings: BTreeMap<Source, Standing>,
    /// The clusters that the tenant had; all else is of the present one.
    pub incarnations: Incarnations,
    /// Sources of which the first turn has not come to an end: what is made of the others may be another thing then.
    pub awaited: BTreeSet<Source>,
}

/// What Kubernetes told, part by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KubernetesPicture {
    /// The API server's version.
    pub version: Option<Observation<String>>,
    /// Which cluster it is.
    pub cluster_uid: Option<Observation<String>>,
    /// Checks of the API server that failed.
    pub failed_checks: Option<Observation<Vec<ApiCheck>>>,
    /// The nodes.
    pub nodes: Option<Observation<Arc<[Node]>>>,
    /// The API server's time when it told of the nodes: leases are judged by it.
    pub server_time: Option<Timestamp>,
    /// How far its clock is ahead of rezus' own, in milliseconds.
    pub skew_ms: Option<Observation<i64>>,
    /// The pods.
    pub pods: Option<Observation<Pods>>,
    /// What nodes use.
    pub usage: Option<Observation<Arc<[Usage]>>>,
}

/// What Talos told, part by part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TalosPicture {
    /// Which cluster it is.
    pub cluster_id: Option<Observation<String>>,
    /// The members.
    pub members: Option<Observation<Vec<Member>>>,
    /// The machines, by the address that was asked. Of one that never answered nothing is here.
    pub machines: BTreeMap<String, Observation<TalosMachine>>,
    /// Who belongs to etcd.
    pub etcd: Option<Observation<Etcd>>,
}

/// How reading one source goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// When it was tried last.
    pub tried_at: Timestamp,
    /// When it last told anything.
    pub answered_at: Option<Timestamp>,
    /// Since when it tells nothing; absent while it does.
    pub silent_since: Option<Timestamp>,
    /// How many times it told nothing, one after the other.
    pub silent_times: u32,
    /// What could not be read the last time, part by part.
    pub failures: Vec<(String, Failure)>,
    /// How long the last turn took.
    pub took: std::time::Duration,
    /// How many things it told of: nodes, machines.
    pub items: usize,
}

impl Standing {
    /// Why it tells nothing; nothing while it tells anything.
    pub fn silence(&self) -> Option<&Failure> {
        self.silent_since.and_then(|_| self.failures.first().map(|(_, failure)| failure))
    }
}

fn renew<T>(part: &mut Option<Observation<T>>, news: Option<T>, observed_at: Timestamp, source: Source) {
    if let Some(value) = news {
        *part = Some(Observation { value, observed_at, source });
    }
}

impl Picture {
    /// Looks whose news a reading is, which was taken from servers that this authority stands for. Of another cluster than
    /// before nothing is known yet; what may be another one's is made [`Failure::AnotherCluster`].
    pub fn recognize(
        &mut self,
        source: Source,
        reading: &mut Reading,
        authority: Option<&str>,
    ) -> &Incarnation {
        match self.incarnations.take(source, reading, authority) {
            Recognized::Same => {}
            Recognized::Other => {
                self.kubernetes = KubernetesPicture::default();
                self.talos = TalosPicture::default();
                self.metrics.clear();
                // What the others tell of this one is waited for, of those that tell anything.
                let telling = self.standings.iter().filter(|(_, standing)| standing.silent_since.is_none());
                self.awaited.extend(telling.map(|(other, _)| *other).filter(|other| *other != source));
            }
            Recognized::Doubted => {
                reading.facts = None;
                reading.failures = vec![("all".to_owned(), Failure::AnotherCluster)];
            }
        }
        self.incarnations.present()
    }

    /// Takes in what a turn of reading gave.
    pub fn take(&mut self, source: Source, mut reading: Reading) {
        self.recognize(source, &mut reading, None);
        self.awaited.remove(&source);
        let Reading { started, finished, facts, failures } = reading;
        let before = self.standings.get(&source);
        let told = facts.is_some();
        let items = match facts {
            None => before.map_or(0, |standing| standing.items),
            Some(Facts::Kubernetes(facts)) => self.kubernetes.take(facts, finished),
            Some(Facts::Talos(facts)) => self.talos.take(facts, finished),
            Some(Facts::NodeMetrics(facts)) => self.take_metrics(facts, finished),
        };
        let before = self.standings.get(&source);
        let standing = Standing {
            tried_at: finished,
            answered_at: if told { Some(finished) } else { before.and_then(|standing| standing.answered_at) },
            silent_since: match (told, before.and_then(|standing| standing.silent_since)) {
                (true, _) => None,
                (false, Some(since)) => Some(since),
                (false, None) => Some(started),
            },
            silent_times: if told {
                0
            } else {
                before.map_or(0, |standing| standing.silent_times).saturating_add(1)
            },
            failures,
            took: finished.since(started),
            items,
        };
        self.standings.insert(source, standing);
    }

    fn take_metrics(&mut self, facts: NodeMetrics, at: Timestamp) -> usize {
        let count = facts.machines.len();
        for value in facts.machines {
            let observed_at = value.at.unwrap_or(at);
            let seen = Observation { observed_at, source: Source::NodeMetrics, value };
            self.metrics.insert(seen.value.asked.clone(), seen);
        }
        count
    }

    /// Lets go of machines that told nothing since `before`: they are unknown, and their numbers of no account.
    pub fn forget(&mut self, before: Timestamp) {
        self.metrics.retain(|_, seen| seen.observed_at >= before);
        self.talos.machines.retain(|_, seen| seen.observed_at >= before);
    }
}

impl KubernetesPicture {
    fn take(&mut self, facts: Kubernetes, at: Timestamp) -> usize {
        let source = Source::Kubernetes;
        let Kubernetes { version, cluster_uid, server_time, skew_ms, failed_checks, nodes, pods, usage } =
            facts;
        let is_other = |uid: &String| self.cluster_uid.as_ref().is_some_and(|known| known.value != *uid);
        if cluster_uid.as_ref().is_some_and(is_other) {
            // The old one went on answering when the new one was known already by what Talos told.
            *self = Self::default();
        }
        renew(&mut self.skew_ms, skew_ms, at, source);
        renew(&mut self.version, version, at, source);
        renew(&mut self.cluster_uid, cluster_uid, at, source);
        renew(&mut self.failed_checks, failed_checks, at, source);
        if nodes.is_some() {
            self.server_time = server_time;
        }
        renew(&mut self.nodes, nodes.map(Arc::from), at, source);
        renew(&mut self.pods, pods, at, source);
        renew(&mut self.usage, usage.map(Arc::from), at, source);
        self.nodes.as_ref().map_or(0, |nodes| nodes.value.len())
    }
}

impl TalosPicture {
    fn take(&mut self, facts: Talos, at: Timestamp) -> usize {
        let source = Source::Talos;
        let Talos { cluster_id, cluster_name: _, members, machines, etcd } = facts;
        let is_other = |id: &String| self.cluster_id.as_ref().is_some_and(|known| known.value != *id);
        if cluster_id.as_ref().is_some_and(is_other) {
            *self = Self::default();
        }
        renew(&mut self.cluster_id, cluster_id, at, source);
        renew(&mut self.members, members, at, source);
        let listed_at = etcd.as_ref().and_then(|etcd| etcd.listed_at).unwrap_or(at);
        renew(&mut self.etcd, etcd, listed_at, source);
        for value in machines {
            // One that did not answer keeps what it said before, and its date.
            if let Some(observed_at) = value.answered_at {
                self.machines.insert(value.asked.clone(), Observation { value, observed_at, source });
            }
        }
        self.machines.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::observed::Phase;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn reading(second: i64, facts: Option<Facts>, failures: &[&str]) -> Reading {
        let failure = Failure::Unreachable { phase: Phase::Tcp, detail: String::new() };
        let failures = failures.iter().map(|part| ((*part).to_owned(), failure.clone())).collect();
        Reading { started: at(second - 1), finished: at(second), facts, failures }
    }

    fn kubernetes(version: Option<&str>, uid: &str, nodes: Option<usize>) -> Facts {
        let node = |number| Node { name: format!("n{number}"), ..Node::default() };
        Facts::Kubernetes(Kubernetes {
            version: version.map(ToOwned::to_owned),
            cluster_uid: Some(uid.to_owned()),
            nodes: nodes.map(|count| (0..count).map(node).collect()),
            ..Kubernetes::default()
        })
    }

    #[test]
    fn what_is_not_told_again_keeps_its_date() {
        let mut picture = Picture::default();
        picture.take(Source::Kubernetes, reading(10, Some(kubernetes(Some("v1"), "a", Some(2))), &[]));
        picture.take(Source::Kubernetes, reading(20, Some(kubernetes(Some("v2"), "a", None)), &["nodes"]));
        picture.take(Source::Kubernetes, reading(30, None, &["all"]));
        let seen = &picture.kubernetes;
        assert_eq!(seen.version.as_ref().map(|it| (it.value.as_str(), it.observed_at)), Some(("v2", at(20))));
        assert_eq!(seen.nodes.as_ref().map(|it| (it.value.len(), it.observed_at)), Some((2, at(10))));
        let standing = &picture.standings[&Source::Kubernetes];
        assert_eq!((standing.answered_at, standing.silent_since), (Some(at(20)), Some(at(29))));
        assert_eq!((standing.items, standing.took), (2, Duration::from_secs(1)));
        assert_eq!(standing.silence().map(Failure::reason), Some("Unreachable"));
        picture.take(Source::Kubernetes, reading(40, None, &["all"]));
        assert_eq!(picture.standings[&Source::Kubernetes].silent_since, Some(at(29)));
        assert_eq!(picture.standings[&Source::Kubernetes].silent_times, 2);
    }

    #[test]
    fn another_cluster_takes_nothing_over() {
        let mut picture = Picture::default();
        picture.take(Source::Kubernetes, reading(10, Some(kubernetes(Some("v1"), "a", Some(2))), &[]));
        let talos = Talos { members: Some(vec![Member::default()]), ..Talos::default() };
        picture.take(Source::Talos, reading(11, Some(Facts::Talos(talos)), &[]));
        let machine = MachineMetrics { asked: "10.0.0.1".to_owned(), ..MachineMetrics::default() };
        let metrics = NodeMetrics { machines: vec![machine] };
        picture.take(Source::NodeMetrics, reading(12, Some(Facts::NodeMetrics(metrics)), &[]));
        let first = picture.clone();
        picture.take(Source::Kubernetes, reading(20, Some(kubernetes(None, "b", None)), &[]));
        // It is not believed at once: till then it told nothing.
        assert_eq!((&picture.kubernetes, &picture.talos), (&first.kubernetes, &first.talos));
        let silence = picture.standings[&Source::Kubernetes].silence();
        assert_eq!(silence.map(Failure::reason), Some("AnotherCluster"));
        for second in [50, 80] {
            picture.take(Source::Kubernetes, reading(second, Some(kubernetes(None, "b", None)), &[]));
        }
        assert_eq!((picture.kubernetes.version.as_ref(), picture.kubernetes.nodes.as_ref()), (None, None));
        assert_eq!((picture.incarnations.present().number, picture.metrics.len()), (2, 0));
        assert_eq!(picture.talos, TalosPicture::default());
        // How reading goes is not of the cluster; what the others tell of this one is waited for.
        assert_eq!(picture.standings[&Source::Kubernetes].answered_at, Some(at(80)));
        assert_eq!(picture.awaited, [Source::Talos, Source::NodeMetrics].into());
    }

    #[test]
    fn a_source_is_awaited_until_its_first_turn_came_to_an_end_whatever_it_gave() {
        let awaited = BTreeSet::from([Source::Kubernetes, Source::Talos]);
        let mut picture = Picture { awaited, ..Picture::default() };
        picture.take(Source::Kubernetes, reading(10, Some(kubernetes(Some("v1"), "a", Some(2))), &[]));
        assert_eq!(picture.awaited, [Source::Talos].into());
        picture.take(Source::Talos, reading(20, None, &["all"]));
        assert!(picture.awaited.is_empty());
    }

    #[test]
    fn a_machine_that_is_silent_keeps_what_it_said() {
        let machine = |answered: Option<i64>, version: &str| TalosMachine {
            asked: "10.0.0.1".to_owned(),
            answered_at: answered.map(at),
            version: Some(version.to_owned()),
            ..TalosMachine::default()
        };
        let facts = |machine| Some(Facts::Talos(Talos { machines: vec![machine], ..Talos::default() }));
        let mut picture = Picture::default();
        picture.take(Source::Talos, reading(10, facts(machine(Some(9), "v1")), &[]));
        picture.take(Source::Talos, reading(20, facts(machine(None, "v2")), &["10.0.0.1"]));
        let seen = &picture.talos.machines["10.0.0.1"];
        assert_eq!((seen.value.version.as_deref(), seen.observed_at), (Some("v1"), at(9)));
        picture.forget(at(10));
        assert_eq!(picture.talos.machines.len(), 0);
    }
}
