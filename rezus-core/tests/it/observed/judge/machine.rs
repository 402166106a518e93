//! How machines are, and the cluster that they make up.

use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{Holds, Service, Stage, TalosMachine, UnmetCondition};
use rezus_core::observed::judge::{
    Counts, EtcdHealth, EtcdVerdict, Finding, Health, MachineSeen, Membership, NodeVerdict, NodeWord, counts,
    machine, tenant,
};
use rezus_core::observed::{Found, Freshness, Rule};

const FRESH: Option<Freshness> = Some(Freshness::Fresh);
const STALE: Option<Freshness> = Some(Freshness::Stale);
const OLD: Option<Freshness> = Some(Freshness::Unknown);

fn found() -> Found {
    Found::Matched { seen: 0, rule: Rule::Address, evidence: "10.0.0.1".to_owned(), replaced: None }
}

fn word(word: NodeWord) -> NodeVerdict {
    NodeVerdict { word, message: "said".to_owned(), since: Some(Timestamp::from_millis(7)) }
}

fn running() -> TalosMachine {
    TalosMachine {
        answered_at: Some(Timestamp::from_millis(1)),
        stage: Some(Stage::Running),
        ready: Some(true),
        ..TalosMachine::default()
    }
}

#[test]
fn a_machine_is_ready_where_nothing_known_speaks_against_it() {
    use Holds::{False, True, Unknown};
    let booting = TalosMachine { stage: Some(Stage::Booting), ready: Some(false), ..running() };
    let unmet = TalosMachine {
        ready: Some(false),
        unmet: vec![UnmetCondition { name: "time".to_owned(), reason: "not synced".to_owned() }],
        ..running()
    };
    let silent = TalosMachine { answered_at: None, ..booting.clone() };
    let sick = Service {
        id: "kubelet".to_owned(),
        state: "Running".to_owned(),
        healthy: Some(false),
        message: "refused".to_owned(),
    };
    let services = TalosMachine { services: Some(vec![sick]), ..running() };
    let (ready, away) = (word(NodeWord::Ready), word(NodeWord::Unreachable));
    let (cordoned, well, matched) = (word(NodeWord::Cordoned), running(), found());
    let ambiguous = Found::Ambiguous { candidates: vec!["a".to_owned(), "b".to_owned()] };
    let all = MachineSeen {
        found: &matched,
        kubernetes: FRESH,
        talos: FRESH,
        node: Some(&ready),
        machine: Some(&well),
        etcd: Some(Membership::Member),
    };
    for (what, seen, holds, reason) in [
        ("all well", all, True, "Ready"),
        ("a worker", MachineSeen { etcd: None, ..all }, True, "Ready"),
        ("stale is not unknown", MachineSeen { kubernetes: STALE, talos: STALE, ..all }, True, "Ready"),
        ("cordoned", MachineSeen { node: Some(&cordoned), ..all }, True, "Cordoned"),
        ("unreachable", MachineSeen { node: Some(&away), ..all }, False, "NodeUnreachable"),
        (
            "booting explains it",
            MachineSeen { node: Some(&away), machine: Some(&booting), ..all },
            False,
            "Booting",
        ),
        ("what it told before does not", MachineSeen { machine: Some(&silent), ..all }, True, "Ready"),
        ("etcd never joined", MachineSeen { etcd: Some(Membership::Absent), ..all }, False, "EtcdNotJoined"),
        ("etcd not known", MachineSeen { etcd: Some(Membership::Unknown), ..all }, True, "Ready"),
        (
            "etcd of long ago",
            MachineSeen { etcd: Some(Membership::Absent), talos: OLD, ..all },
            True,
            "Ready",
        ),
        ("it waits", MachineSeen { machine: Some(&unmet), ..all }, False, "MachineNotReady"),
        ("a service is sick", MachineSeen { machine: Some(&services), ..all }, False, "ServiceNotHealthy"),
        ("no Node", MachineSeen { node: None, ..all }, False, "NotJoined"),
        ("Kubernetes is too old", MachineSeen { kubernetes: OLD, ..all }, Unknown, "KubernetesUnknown"),
        (
            "Kubernetes was never read",
            MachineSeen { kubernetes: None, node: None, ..all },
            Unknown,
            "KubernetesUnknown",
        ),
        (
            "old, and Talos knows more",
            MachineSeen { kubernetes: OLD, machine: Some(&unmet), ..all },
            False,
            "MachineNotReady",
        ),
        ("Talos is too old", MachineSeen { talos: OLD, machine: Some(&unmet), ..all }, True, "Ready"),
        ("Talos was never read", MachineSeen { talos: None, machine: None, ..all }, True, "Ready"),
        ("both are too old", MachineSeen { kubernetes: OLD, talos: OLD, ..all }, Unknown, "Stale"),
        (
            "nothing was ever read",
            MachineSeen { kubernetes: None, talos: None, ..all },
            Unknown,
            "NotObserved",
        ),
        (
            "missing",
            MachineSeen { found: &Found::Missing, node: None, machine: None, ..all },
            False,
            "Missing",
        ),
        (
            "missing, of long ago",
            MachineSeen { found: &Found::Missing, kubernetes: OLD, talos: None, ..all },
            Unknown,
            "Stale",
        ),
        (
            "ambiguous",
            MachineSeen { found: &ambiguous, node: None, machine: None, ..all },
            Unknown,
            "Ambiguous",
        ),
    ] {
        let health = machine(&seen);
        assert_eq!((health.holds, &*health.reason), (holds, reason), "{what}: {health:?}");
    }
    assert_eq!(machine(&MachineSeen { machine: Some(&unmet), ..all }).message, "time: not synced");
    assert_eq!(machine(&all).since, Some(Timestamp::from_millis(7)));
}

fn etcd(health: EtcdHealth) -> EtcdVerdict {
    EtcdVerdict {
        quorum: Holds::Unknown,
        health,
        voters: 3,
        assumed: false,
        needed: 2,
        up: 2,
        tolerance: None,
        leader: None,
        findings: vec![Finding { reason: "x", message: "said".to_owned() }],
        behind: std::collections::BTreeSet::new(),
    }
}

#[test]
fn a_cluster_is_ready_where_all_its_machines_are() {
    use Holds::{False, True, Unknown};
    let of = |ready, not_ready, missing, unknown| Counts {
        claimed: ready + not_ready + missing + unknown,
        ready,
        not_ready,
        missing,
        unknown,
        unclaimed: 1,
    };
    for (what, counts, health, api, holds, reason) in [
        ("all ready", of(3, 0, 0, 0), Some(EtcdHealth::Ok), FRESH, True, "Ready"),
        ("a blip", of(3, 0, 0, 0), Some(EtcdHealth::Ok), STALE, True, "Ready"),
        ("no word of etcd", of(3, 0, 0, 0), None, FRESH, True, "Ready"),
        ("etcd is not known", of(3, 0, 0, 0), Some(EtcdHealth::Unknown), FRESH, True, "Ready"),
        ("at risk", of(3, 0, 0, 0), Some(EtcdHealth::AtRisk), FRESH, True, "EtcdAtRisk"),
        ("one node only", of(1, 0, 0, 0), Some(EtcdHealth::NoRedundancy), FRESH, True, "Ready"),
        ("quorum lost", of(3, 0, 0, 0), Some(EtcdHealth::QuorumLost), OLD, False, "EtcdQuorumLost"),
        ("read only", of(3, 0, 0, 0), Some(EtcdHealth::ReadOnly), FRESH, False, "EtcdReadOnly"),
        ("one is not", of(2, 1, 0, 0), None, FRESH, False, "MachinesNotReady"),
        ("one is missing", of(2, 0, 1, 0), None, FRESH, False, "MachinesNotReady"),
        ("one is not, others unknown", of(0, 1, 0, 2), None, OLD, False, "MachinesNotReady"),
        ("one is unknown", of(2, 0, 0, 1), None, FRESH, Unknown, "MachinesUnknown"),
        ("the API is silent", of(0, 0, 0, 3), None, OLD, Unknown, "Unreachable"),
        ("it never answered", of(0, 0, 0, 3), None, None, Unknown, "NotObserved"),
        ("no machines", of(0, 0, 0, 0), None, FRESH, Unknown, "NoMachines"),
    ] {
        let health = tenant(&counts, health.map(etcd).as_ref(), api);
        assert_eq!((health.holds, &*health.reason), (holds, reason), "{what}: {health:?}");
    }
}

proptest! {
    #[test]
    fn every_machine_is_counted_once(
        drawn in prop::collection::vec((
            prop::sample::select(vec![Holds::True, Holds::False, Holds::Unknown]),
            prop::sample::select(vec!["Missing", "Ready", "Booting"]),
        ), 0..20),
        unclaimed in 0_usize..5,
    ) {
        let machines = drawn.iter().map(|(holds, reason)| Health {
            holds: *holds,
            reason: (*reason).to_owned(),
            message: String::new(),
            since: None,
        }).collect::<Vec<_>>();
        let counts = counts(&machines, unclaimed);
        prop_assert_eq!(counts.claimed, machines.len());
        prop_assert_eq!(counts.ready + counts.not_ready + counts.missing + counts.unknown, counts.claimed);
        prop_assert_eq!(counts.unclaimed, unclaimed);
        // A cluster is ready only where every machine is.
        if tenant(&counts, None, FRESH).holds == Holds::True {
            prop_assert!(machines.iter().all(|health| health.holds == Holds::True));
        }
    }
}
