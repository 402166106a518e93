//! What was observed: parts of the status of tenants, node groups and machines. Each says when; none is ever declared.

use serde::{Deserialize, Serialize};

use super::NodeAddress;

/// How it is known which node and which Talos machine a Machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FoundBy {
    /// The rule that told them: `ProviderID`, `SystemUUID`, Address or Hostname, the first that is decisive.
    pub rule: String,
    /// What is the same on both sides.
    pub evidence: String,
}

/// A node, as the Kubernetes API tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// When this was observed, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub observed_at: String,
    /// Whether it is older than three intervals of reading: it may no longer be so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// The node's name.
    pub name: String,
    /// How it is, in one word: Ready, Degraded, Cordoned, Pressure, `NotReady`, Unreachable or Deleting.
    pub health: String,
    /// Why, in words for people; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The version of its kubelet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kubelet_version: String,
    /// Its operating system.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os_image: String,
    /// The version of its kernel.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kernel_version: String,
    /// What runs its containers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub container_runtime: String,
    /// Its processor's architecture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub architecture: String,
    /// Its addresses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// Whether no new pods are placed on it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unschedulable: bool,
    /// What keeps pods away from it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<NodeTaint>,
    /// What it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<NodeResources>,
    /// What of that pods can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocatable: Option<NodeResources>,
    /// What it uses, as `metrics.k8s.io` tells it. New numbers alone make no new version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<NodeUsage>,
}

/// What keeps pods away from a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeTaint {
    /// The taint's key.
    pub key: String,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`.
    pub effect: String,
}

/// Amounts of what a node has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeResources {
    /// Thousandths of a core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_millicores: Option<u64>,
    /// Memory in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Local storage that does not outlive a pod, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral_storage_bytes: Option<u64>,
    /// How many pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<u64>,
}

/// What a node uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeUsage {
    /// When it was measured, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub measured_at: String,
    /// Thousandths of a core.
    pub cpu_millicores: u64,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

/// A machine, as its Talos API tells it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TalosStatus {
    /// When this was observed, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub observed_at: String,
    /// Whether it is older than three intervals of reading: it may no longer be so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// By which address it was asked.
    pub asked: String,
    /// How far it is: booting, installing, maintenance, running, rebooting, shutting-down, resetting or upgrading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Whether Talos itself holds it for ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// What it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<UnmetStatus>,
    /// The version of Talos.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// When it was booted, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub booted_at: Option<String>,
    /// Those of its services that do not run, or whose check does not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceStatus>,
    /// Its memory. New numbers alone make no new version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStatus>,
    /// How busy it is. New numbers alone make no new version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadStatus>,
    /// Its file systems. New numbers alone make no new version of the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<FilesystemStatus>,
    /// Whether its clock follows another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_synced: Option<bool>,
    /// How far its clock is ahead of rezus' own, in milliseconds. A new number alone makes no new version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_skew_millis: Option<i64>,
    /// The id of its etcd member, in hexadecimal.
    #[serde(rename = "etcdMemberID", skip_serializing_if = "Option::is_none")]
    pub etcd_member_id: Option<String>,
}

/// Something that a machine waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct UnmetStatus {
    /// What.
    pub name: String,
    /// Why it is not so.
    pub reason: String,
}

/// A service of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceStatus {
    /// Its name.
    pub id: String,
    /// What it does: Running, Failed, Waiting ...
    pub state: String,
    /// What its check said last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A machine's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct MemoryStatus {
    /// All of it, in bytes.
    pub total_bytes: u64,
    /// What new work could have, in bytes.
    pub available_bytes: u64,
}

/// How busy a machine is: averages of how many tasks run or wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LoadStatus {
    /// Over one minute.
    pub load1: f64,
    /// Over five minutes.
    pub load5: f64,
    /// Over fifteen minutes.
    pub load15: f64,
}

/// A file system of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct FilesystemStatus {
    /// Where it is mounted.
    pub mounted_on: String,
    /// How large it is, in bytes.
    pub size_bytes: u64,
    /// What is free, in bytes.
    pub available_bytes: u64,
}

/// A machine, as its `node_exporter` tells it. New numbers alone make no new version of the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct MetricsStatus {
    /// When this was observed, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub observed_at: String,
    /// Whether it is older than three intervals of reading: it may no longer be so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// By which address it was asked.
    pub asked: String,
    /// How busy it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadStatus>,
    /// Its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStatus>,
    /// Its file systems.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<FilesystemStatus>,
}

/// How many machines are how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct MachineCounts {
    /// Declared by the state. All but the last of those that follow are of these.
    pub declared: u64,
    /// Observed ready.
    pub ready: u64,
    /// Observed, and not ready.
    pub not_ready: u64,
    /// Declared, and not there.
    pub missing: u64,
    /// Not known to be either.
    pub unknown: u64,
    /// There, and not declared.
    pub undeclared: u64,
}

/// A cluster, as its Kubernetes API tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct KubernetesSummary {
    /// When its nodes were observed, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub observed_at: String,
    /// Whether that is longer ago than three intervals of reading: it may no longer be so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// The version of its API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The UID of its namespace kube-system: another one is another cluster.
    #[serde(rename = "clusterUID", skip_serializing_if = "Option::is_none")]
    pub cluster_uid: Option<String>,
    /// How many nodes it has.
    pub nodes: u64,
    /// How far its API server's clock is ahead of rezus' own, in milliseconds. A new number alone makes no new version of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_skew_millis: Option<i64>,
    /// Checks of the API server that fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_checks: Vec<String>,
    /// Its pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pods: Option<PodsSummary>,
}

/// What is to be said of a cluster's pods. New sums alone make no new version of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodsSummary {
    /// How many there are.
    pub total: u64,
    /// Of the phase Running.
    pub running: u64,
    /// Of the phase Pending.
    pub pending: u64,
    /// Of the phase Failed.
    pub failed: u64,
    /// With a container that is restarted again and again.
    pub crash_looping: u64,
    /// With a container that was last ended for want of memory.
    pub oom_killed: u64,
    /// The worst ones, no more than ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<PodTrouble>,
}

/// A pod that gives trouble.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PodTrouble {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub pod: String,
    /// The container, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The node that it runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What is wrong, in one word.
    pub reason: String,
}

/// A cluster's etcd, as its members tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct EtcdSummary {
    /// How it is, in one word: Ok, `NoRedundancy`, Degraded, `AtRisk`, `ReadOnly`, Critical, `QuorumLost` or Unknown.
    pub health: String,
    /// Why, in words for people; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Whether a majority of the voters agrees: Yes, No or Unknown.
    pub quorum: String,
    /// How many members vote.
    pub voters: u64,
    /// How many of them answered and see a leader.
    pub voters_up: u64,
}

/// How reading one source of a cluster goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SourceStatus {
    /// Which one: kubernetes, talos or node-metrics.
    pub source: String,
    /// How it goes, in one word: Ok, Partial, Stale, or why nothing can be read, such as Unreachable or
    /// `CredentialMissing`.
    pub state: String,
    /// What cannot be read and why, in words for people; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it last told anything, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub answered_at: Option<String>,
}
