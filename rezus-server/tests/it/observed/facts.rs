//! What scripted scrapers tell.

use std::net::IpAddr;

use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{
    Etcd, EtcdMember, EtcdStatus, Facts, Holds, Kubernetes, MachineKind, Node, NodeCondition, NodeInfo, Pods,
    Stage, Talos, TalosMachine,
};

/// A version of Kubernetes.
const VERSION: &str = "v1.35.1";

/// When it is for all API servers here.
const AT: Timestamp = Timestamp::from_millis(1_796_065_837_000);

/// A node that is ready, and renews its lease.
pub(super) fn node(name: &str) -> Node {
    let ready = NodeCondition {
        kind: "Ready".to_owned(),
        status: Holds::True,
        reason: "KubeletReady".to_owned(),
        message: String::new(),
        since: None,
    };
    Node {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        provider_id: Some(format!("fake:///{name}")),
        conditions: vec![ready],
        info: NodeInfo { kubelet_version: VERSION.to_owned(), ..NodeInfo::default() },
        lease_renewed_at: Some(AT),
        ..Node::default()
    }
}

/// The same, but the kubelet says that it is not ready.
pub(super) fn ailing(name: &str) -> Node {
    let mut node = node(name);
    node.conditions[0].status = Holds::False;
    "KubeletNotReady".clone_into(&mut node.conditions[0].reason);
    node
}

/// A cluster of these nodes.
pub(super) fn kubernetes(nodes: Vec<Node>) -> Facts {
    Facts::Kubernetes(Kubernetes {
        version: Some(VERSION.to_owned()),
        cluster_uid: Some("one".to_owned()),
        server_time: Some(AT),
        skew_ms: None,
        failed_checks: Some(Vec::new()),
        nodes: Some(nodes),
        pods: Some(Pods::default()),
        usage: None,
    })
}

/// The same, none of whose leases was renewed for so many seconds.
pub(super) fn silent(nodes: Vec<Node>, seconds: u64) -> Facts {
    let server_time = Some(AT.after(std::time::Duration::from_secs(seconds)));
    match kubernetes(nodes) {
        Facts::Kubernetes(facts) => Facts::Kubernetes(Kubernetes { server_time, ..facts }),
        other => other,
    }
}

/// The nodes that are ready by these names.
pub(super) fn nodes(names: &[&str]) -> Facts {
    kubernetes(names.iter().map(|name| node(name)).collect())
}

/// A control plane that runs; what its etcd says, where that answers: its id, whom it follows, and whether it learns.
pub(super) fn control_plane(name: &str, number: u8, etcd: Option<(u64, u64, bool)>) -> TalosMachine {
    let address = IpAddr::from([10, 0, 0, number]);
    TalosMachine {
        asked: address.to_string(),
        answered_at: Some(AT),
        node_name: Some(name.to_owned()),
        provider_id: Some(format!("fake:///{name}")),
        addresses: vec![address],
        kind: MachineKind::ControlPlane,
        stage: Some(Stage::Running),
        ready: Some(true),
        etcd: etcd.map(|(member_id, leader, is_learner)| EtcdStatus {
            member_id,
            leader,
            is_learner,
            raft_term: 7,
            raft_index: 1_000,
            raft_applied_index: 1_000,
            ..EtcdStatus::default()
        }),
        etcd_member_id: etcd.map(|(id, ..)| id),
        ..TalosMachine::default()
    }
}

/// A list of members: id, node, and whether it learns.
pub(super) fn members(members: &[(u64, &str, bool)]) -> Etcd {
    let member = |(id, name, is_learner): &(u64, &str, bool)| EtcdMember {
        id: *id,
        hostname: (*name).to_owned(),
        peer_urls: Vec::new(),
        is_learner: *is_learner,
    };
    Etcd { members: members.iter().map(member).collect(), listed_at: Some(AT), ..Etcd::default() }
}

/// What Talos tells of these.
pub(super) fn talos(machines: Vec<TalosMachine>, etcd: Option<Etcd>) -> Facts {
    Facts::Talos(Talos { cluster_id: Some("one".to_owned()), machines, etcd, ..Talos::default() })
}
