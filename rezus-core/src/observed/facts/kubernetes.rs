//! What the Kubernetes API of a cluster tells.

use serde::{Deserialize, Serialize};

use crate::base::Timestamp;

/// A cluster as its Kubernetes API tells it. A part that was not read is `None`, never empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Kubernetes {
    /// `gitVersion` of the API server: `v1.33.1`.
    pub version: Option<String>,
    /// The UID of the namespace `kube-system`: which cluster it is.
    pub cluster_uid: Option<String>,
    /// The API server's own time when it answered (`Date` of the response).
    pub server_time: Option<Timestamp>,
    /// How far its clock is from rezus' own, in milliseconds; positive where it is ahead. `Date` tells whole seconds, so it may
    /// be up to one more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew_ms: Option<i64>,
    /// Checks of `/readyz?verbose` that failed, `Some(empty)` where all passed.
    pub failed_checks: Option<Vec<ApiCheck>>,
    /// The nodes, sorted by name.
    pub nodes: Option<Vec<Node>>,
    /// What is to be said of pods.
    pub pods: Option<Pods>,
    /// What `metrics.k8s.io` tells of nodes, sorted by name.
    pub usage: Option<Vec<Usage>>,
}

/// A check of the API server that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiCheck {
    /// Its name: `etcd`, `poststarthook/...`.
    pub name: String,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody knows.
    Unknown,
}

/// A Node (`v1`). `metadata.lastHeartbeatTime` is left out: it moves without news.
#[expect(clippy::struct_excessive_bools, reason = "these are what a Node has, each by itself")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Node {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.creationTimestamp`.
    pub created_at: Option<Timestamp>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// Whether the annotation `talos.dev/cordoned` is set.
    pub cordoned_by_talos: bool,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// `spec.providerID`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Whether the label `node-role.kubernetes.io/control-plane` is set.
    pub control_plane: bool,
    /// `spec.taints`.
    pub taints: Vec<Taint>,
    /// `status.conditions`, by type.
    pub conditions: Vec<NodeCondition>,
    /// `status.addresses`.
    pub addresses: Vec<NodeAddress>,
    /// `status.nodeInfo`.
    pub info: NodeInfo,
    /// `status.capacity`.
    pub capacity: Quantities,
    /// `status.allocatable`.
    pub allocatable: Quantities,
    /// `spec.renewTime` of its lease in `kube-node-lease`; `None` where there is no lease, or leases were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_renewed_at: Option<Timestamp>,
}

/// One of `spec.taints`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// `key`.
    pub key: String,
    /// `effect`: `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// One of `status.conditions` of a Node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCondition {
    /// `type`: `Ready`, `MemoryPressure`, `DiskPressure`, `PIDPressure`, `NetworkUnavailable`, or another one.
    #[serde(rename = "type")]
    pub kind: String,
    /// `status`.
    pub status: Holds,
    /// `reason`.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `lastTransitionTime`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<Timestamp>,
}

/// One of `status.addresses`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAddress {
    /// `type`: `InternalIP`, `ExternalIP`, `Hostname`, `InternalDNS` or `ExternalDNS`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `address`.
    pub address: String,
}

/// `status.nodeInfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    /// `machineID`.
    pub machine_id: String,
    /// `systemUUID`.
    pub system_uuid: String,
    /// `bootID`: another one after each boot.
    pub boot_id: String,
    /// `kubeletVersion`.
    pub kubelet_version: String,
    /// `osImage`.
    pub os_image: String,
    /// `kernelVersion`.
    pub kernel_version: String,
    /// `containerRuntimeVersion`.
    pub container_runtime: String,
    /// `architecture`.
    pub architecture: String,
}

/// Amounts of what a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Quantities {
    /// `cpu`, in billionths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_nanocores: Option<u64>,
    /// `memory`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// `ephemeral-storage`, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral_bytes: Option<u64>,
    /// `pods`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u64>,
}

/// What `metrics.k8s.io` tells of one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The node.
    pub node: String,
    /// When it was measured.
    pub at: Timestamp,
    /// Processor time in use, in billionths of a core.
    pub cpu_nanocores: u64,
    /// Memory in use, in bytes.
    pub memory_bytes: u64,
}

/// What is to be said of a cluster's pods: sums, and those that give trouble.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pods {
    /// How many there are.
    pub total: u64,
    /// Of the phase `Running`.
    pub running: u64,
    /// Of the phase `Pending`.
    pub pending: u64,
    /// Of the phase `Failed`.
    pub failed: u64,
    /// Of the phase `Succeeded`.
    pub succeeded: u64,
    /// With a container that loops: it waits as `CrashLoopBackOff` or did so in the last ten minutes, or it was
    /// restarted three times in ten minutes.
    pub crash_looping: u64,
    /// With a container that was ended for want of memory in the last hour.
    pub oom_killed: u64,
    /// Running for five minutes and not ready.
    pub unready: u64,
    /// Restarts of all containers, as the pods that are there count them.
    pub restarts: u64,
    /// The worst, no more than 50.
    pub offenders: Vec<Offender>,
}

/// A pod that gives trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offender {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// The container, where it is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub container: Option<String>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub node: Option<String>,
    /// What: `CrashLoopBackOff`, `OOMKilled`, `ImagePullBackOff`, `Unschedulable`, `Restarting`, `NotReady`, `Evicted` ...
    pub reason: String,
    /// How often the container was restarted.
    pub restarts: u64,
    /// Since when, where that is told.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<Timestamp>,
}
