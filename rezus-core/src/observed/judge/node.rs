//! How a node of Kubernetes is.

use std::time::Duration;

use super::super::facts::{Holds, Node, NodeCondition};
use crate::base::Timestamp;

/// The worst that is to be said of a node, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeWord {
    /// It is being deleted.
    Deleting,
    /// The control plane hears nothing of it.
    Unreachable,
    /// It says itself that it is not ready, or never said anything.
    NotReady,
    /// It is short of memory, disk, process ids, or has no network.
    Pressure,
    /// It takes no new pods, by somebody's will.
    Cordoned,
    /// It works, but something is odd.
    Degraded,
    /// It works.
    Ready,
}

impl NodeWord {
    /// The word as a condition's reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Deleting => "Deleting",
            Self::Unreachable => "NodeUnreachable",
            Self::NotReady => "NodeNotReady",
            Self::Pressure => "Pressure",
            Self::Cordoned => "Cordoned",
            Self::Degraded => "Degraded",
            Self::Ready => "Ready",
        }
    }

    /// Whether pods run there.
    pub fn works(self) -> bool {
        self > Self::NotReady
    }
}

/// A verdict on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVerdict {
    /// The worst that is to be said.
    pub word: NodeWord,
    /// What that is, in a sentence; empty where nothing is.
    pub message: String,
    /// Since when, where the condition tells.
    pub since: Option<Timestamp>,
}

/// A lease is renewed every 10 s and holds for 40 s.
const STALE: Duration = Duration::from_secs(40);
const DEAD: Duration = Duration::from_mins(2);

/// What the leases of all nodes say together, by the server's own time: its clock and rezus' need not agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leases {
    /// They were not read, or the server did not tell its time.
    NotRead,
    /// One at least is renewed.
    Renewed {
        /// The server's time.
        now: Timestamp,
    },
    /// None is: not the nodes are at fault, but the control plane, or the copy of data that was read.
    AllStale {
        /// Since when the newest is not renewed.
        since: Timestamp,
        /// Whether none was renewed for 120 s.
        dead: bool,
    },
}

impl Leases {
    /// Looks at the leases of all nodes, read when it was `server_time` for the server.
    pub fn of(nodes: &[Node], server_time: Option<Timestamp>) -> Self {
        let newest = nodes.iter().filter_map(|node| node.lease_renewed_at).max();
        match (newest, server_time) {
            (Some(newest), Some(now)) if now.since(newest) > STALE => {
                Self::AllStale { since: newest, dead: now.since(newest) > DEAD }
            }
            (Some(_), Some(now)) => Self::Renewed { now },
            (None, _) | (_, None) => Self::NotRead,
        }
    }
}

/// Judges a node, given the leases of all and the API server's version.
pub fn node(node: &Node, leases: Leases, server_version: Option<&str>) -> NodeVerdict {
    let ready = node.conditions.iter().find(|condition| condition.kind == "Ready");
    // Where no lease is renewed, none tells anything of its node.
    let age = match (leases, node.lease_renewed_at) {
        (Leases::Renewed { now }, Some(lease)) => Some(now.since(lease)),
        (Leases::NotRead | Leases::AllStale { .. } | Leases::Renewed { .. }, _) => None,
    };
    let said = |condition: &NodeCondition| match (&*condition.reason, &*condition.message) {
        ("", message) => message.to_owned(),
        (reason, "") => reason.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    };
    let verdict = |word, message: String, since| NodeVerdict { word, message, since };
    if node.deleting {
        return verdict(NodeWord::Deleting, "the Node is being deleted".to_owned(), None);
    }
    if let Some(ready) = ready.filter(|ready| ready.status == Holds::Unknown) {
        return verdict(NodeWord::Unreachable, said(ready), ready.since);
    }
    if age.is_some_and(|age| age > DEAD) {
        let message = format!(
            "its lease was not renewed for more than {} s, though those of others are",
            DEAD.as_secs()
        );
        return verdict(NodeWord::Unreachable, message, node.lease_renewed_at);
    }
    let Some(ready) = ready else {
        return verdict(NodeWord::NotReady, "the kubelet never said whether it is ready".to_owned(), None);
    };
    if ready.status == Holds::False {
        return verdict(NodeWord::NotReady, said(ready), ready.since);
    }
    let pressure = node.conditions.iter().find(|condition| {
        let known = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
        known.contains(&&*condition.kind) && condition.status == Holds::True
    });
    if let Some(pressure) = pressure {
        return verdict(NodeWord::Pressure, format!("{}: {}", pressure.kind, said(pressure)), pressure.since);
    }
    if node.unschedulable {
        let who = if node.cordoned_by_talos { "Talos cordoned it" } else { "it is cordoned" };
        return verdict(NodeWord::Cordoned, who.to_owned(), None);
    }
    let odd = odd_taint(node)
        .or_else(|| skew(&node.info.kubelet_version, server_version?))
        .or_else(|| odd_lease(leases, age));
    match odd {
        Some(message) => verdict(NodeWord::Degraded, message, None),
        None => verdict(NodeWord::Ready, String::new(), ready.since),
    }
}

/// A taint that says that something is not as it should be; that of control planes, or a person's own, does not.
fn odd_taint(node: &Node) -> Option<String> {
    let odd = |key: &str| {
        key == "ToBeDeletedByClusterAutoscaler"
            || key.starts_with("node.kubernetes.io/")
            || key.starts_with("node.cloudprovider.kubernetes.io/")
    };
    node.taints.iter().find(|taint| odd(&taint.key)).map(|taint| format!("it is tainted {}", taint.key))
}

fn odd_lease(leases: Leases, age: Option<Duration>) -> Option<String> {
    match (leases, age) {
        (Leases::Renewed { .. }, None) => Some("it has no lease, though others do".to_owned()),
        (_, Some(age)) if age > STALE => {
            Some(format!("its lease was not renewed for more than {} s", STALE.as_secs()))
        }
        (_, _) => None,
    }
}

/// A kubelet may be up to three minor versions older than the API server, and never newer.
/// <https://kubernetes.io/releases/version-skew-policy/>
fn skew(kubelet: &str, server: &str) -> Option<String> {
    const OLDER: u32 = 3;
    let minor = |version: &str| {
        let (major, rest) = version.strip_prefix('v')?.split_once('.')?;
        let minor = rest.split(|character: char| !character.is_ascii_digit()).next()?;
        Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?))
    };
    let (kubelet_version, server_version) = (minor(kubelet)?, minor(server)?);
    let newer = kubelet_version > server_version;
    let older = kubelet_version.0 == server_version.0 && kubelet_version.1 + OLDER < server_version.1;
    (newer || older).then(|| format!("its kubelet {kubelet} does not go with the API server {server}"))
}
