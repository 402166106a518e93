//! What was read, as the sources tell it: nothing is judged here. Texts of peers are sanitized by whoever reads them: no
//! control characters, no more than 512 bytes each.

mod kubernetes;
mod node_metrics;
mod talos;

use serde::{Deserialize, Serialize};

pub use kubernetes::{
    ApiCheck, Holds, Kubernetes, Node, NodeAddress, NodeCondition, NodeInfo, Offender, Pods, Quantities,
    Taint, Usage,
};
pub use node_metrics::{MachineMetrics, NodeMetrics};
pub use talos::{
    Etcd, EtcdAlarm, EtcdMember, EtcdStatus, Filesystem, Load, MachineKind, Member, Memory, Service, Stage,
    Talos, TalosMachine, UnmetCondition,
};

/// What one source told of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Facts {
    /// The Kubernetes API.
    Kubernetes(Kubernetes),
    /// The Talos API.
    Talos(Talos),
    /// `node_exporter`.
    NodeMetrics(NodeMetrics),
}
