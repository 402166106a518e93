//! What the Talos API of a cluster's machines tells.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::base::Timestamp;

/// A cluster as the Talos API of its machines tells it. A part that was not read is `None`, never empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Talos {
    /// A fingerprint of `cluster_id` (Infos.cluster.talos.dev): that itself stands among the cluster's secrets.
    pub cluster_id: Option<String>,
    /// `cluster_name`.
    pub cluster_name: Option<String>,
    /// The members as discovery knows them (Members.cluster.talos.dev), sorted by node name. One that died stays for up to
    /// 30 minutes.
    pub members: Option<Vec<Member>>,
    /// The machines that answered, or should have, sorted by address.
    pub machines: Vec<TalosMachine>,
    /// The etcd members as the newest list has them; the list needs a quorum.
    pub etcd: Option<Etcd>,
}

/// What role a machine has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachineKind {
    /// Not told.
    #[default]
    Unknown,
    /// A control plane (`init` too).
    ControlPlane,
    /// A worker.
    Worker,
}

/// A member of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Member {
    /// The resource's id: the node's name.
    pub node_name: String,
    /// `node_id`: which machine it is, until its state is wiped.
    pub node_id: String,
    /// `addresses`.
    pub addresses: Vec<IpAddr>,
    /// `hostname`: an FQDN.
    pub hostname: String,
    /// `machine_type`.
    pub kind: MachineKind,
    /// `operating_system`: `Talos (v1.13.9)`.
    pub operating_system: String,
}

/// What one machine told. Parts it could not tell are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TalosMachine {
    /// By which address it was asked.
    pub asked: String,
    /// When it answered last; `None` where it did not in this reading.
    pub answered_at: Option<Timestamp>,
    /// Its node's name (Nodenames, or the member with its address).
    pub node_name: Option<String>,
    /// `node_id` (Identities).
    pub node_id: Option<String>,
    /// `uuid` of the system (`SystemInformations`).
    pub system_uuid: Option<String>,
    /// What the cloud says: `provider_id`, or `instance_id` (`PlatformMetadatas`).
    pub provider_id: Option<String>,
    /// Its addresses (`NodeAddresses`, `current`).
    pub addresses: Vec<IpAddr>,
    /// What role it has.
    pub kind: MachineKind,
    /// `version.tag`: `v1.13.9`.
    pub version: Option<String>,
    /// `stage` (`MachineStatuses`).
    pub stage: Option<Stage>,
    /// `status.ready`: of account while it boots or runs.
    pub ready: Option<bool>,
    /// What it waits for.
    pub unmet: Vec<UnmetCondition>,
    /// Its services.
    pub services: Option<Vec<Service>>,
    /// When it booted.
    pub booted_at: Option<Timestamp>,
    /// Its memory.
    pub memory: Option<Memory>,
    /// How busy it is.
    pub load: Option<Load>,
    /// Its file systems of account: no mounts of pods.
    pub filesystems: Option<Vec<Filesystem>>,
    /// Whether its clock follows another one.
    pub time_synced: Option<bool>,
    /// How far its clock is from rezus' own, in milliseconds; positive where it is ahead.
    pub skew_ms: Option<i64>,
    /// What its etcd says of itself, of a control plane.
    pub etcd: Option<EtcdStatus>,
    /// Which member of etcd it is (`EtcdMembers`): of a control plane that has joined, told even while its etcd is down.
    pub etcd_member_id: Option<u64>,
}

/// How far a machine is (`MachineStatuses.runtime.talos.dev`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// 0.
    Unknown,
    /// 1.
    Booting,
    /// 2.
    Installing,
    /// 3.
    Maintenance,
    /// 4.
    Running,
    /// 5.
    Rebooting,
    /// 6.
    ShuttingDown,
    /// 7.
    Resetting,
    /// 8.
    Upgrading,
}

impl Stage {
    /// Its name in lower case: `shutting-down`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Booting => "booting",
            Self::Installing => "installing",
            Self::Maintenance => "maintenance",
            Self::Running => "running",
            Self::Rebooting => "rebooting",
            Self::ShuttingDown => "shutting-down",
            Self::Resetting => "resetting",
            Self::Upgrading => "upgrading",
        }
    }
}

/// Something that a machine waits for before it is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmetCondition {
    /// `name`: `time`, `network`, `services`, `staticPods`, `nodeReady`.
    pub name: String,
    /// `reason`.
    pub reason: String,
}

/// A service of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Its id: `apid`, `etcd`, `kubelet` ...
    pub id: String,
    /// `Initialized`, `Preparing`, `Waiting`, `Running`, `Stopping`, `Finished`, `Failed`, `Skipped`, `Starting`.
    pub state: String,
    /// Whether its check passes; `None` where it has none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub healthy: Option<bool>,
    /// What its check said last, where it does not pass.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub message: String,
}

/// A machine's memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Memory {
    /// All of it.
    pub total_bytes: u64,
    /// What new work could have.
    pub available_bytes: u64,
}

/// Load averages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Over one minute.
    pub load1: f64,
    /// Over five.
    pub load5: f64,
    /// Over fifteen.
    pub load15: f64,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// Where it is mounted.
    pub mounted_on: String,
    /// How large it is, in bytes.
    pub size_bytes: u64,
    /// What is free, in bytes.
    pub available_bytes: u64,
}

/// What one member's etcd says of itself: it needs no quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EtcdStatus {
    /// `member_id`.
    pub member_id: u64,
    /// `leader`: 0 where it sees none.
    pub leader: u64,
    /// `raft_term`.
    pub raft_term: u64,
    /// `raft_index`: what is committed.
    pub raft_index: u64,
    /// `raft_applied_index`.
    pub raft_applied_index: u64,
    /// `db_size`, in bytes.
    pub db_size: u64,
    /// `db_size_in_use`, in bytes.
    pub db_size_in_use: u64,
    /// `is_learner`.
    pub is_learner: bool,
    /// `errors`: alarms stand here too.
    pub errors: Vec<String>,
}

/// Who belongs to etcd. That the list could be read proves a quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Etcd {
    /// The members, sorted by id.
    pub members: Vec<EtcdMember>,
    /// When the list was read.
    pub listed_at: Option<Timestamp>,
    /// Whether the members that were asked gave different lists.
    pub lists_differ: bool,
    /// Whether one of them has no member in common with the newest: there is more than one etcd.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lists_disjoint: bool,
    /// The alarms that are raised.
    pub alarms: Vec<EtcdAlarm>,
}

/// A member of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EtcdMember {
    /// `id`.
    pub id: u64,
    /// `hostname`; empty where it never started.
    pub hostname: String,
    /// `peer_urls`.
    pub peer_urls: Vec<String>,
    /// `is_learner`: it never votes.
    pub is_learner: bool,
}

/// An alarm of etcd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EtcdAlarm {
    /// Whose.
    pub member_id: u64,
    /// `NOSPACE` or `CORRUPT`.
    pub alarm: String,
}
