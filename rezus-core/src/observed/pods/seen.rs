//! A pod as it comes in: of the API's Pod, what is judged by.

use super::super::facts::Holds;
use crate::base::Timestamp;

/// A Pod (`v1`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodSeen {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
    /// `spec.nodeName`.
    pub node: Option<String>,
    /// `metadata.creationTimestamp`.
    pub created_at: Option<Timestamp>,
    /// `metadata.deletionTimestamp`: when its time to end is over.
    pub gone_by: Option<Timestamp>,
    /// `status.phase`.
    pub phase: PodPhase,
    /// `status.reason`: `Evicted`, `NodeLost` ...
    pub reason: Option<String>,
    /// The condition `Ready`.
    pub ready: Option<PodCondition>,
    /// The condition `PodScheduled`.
    pub scheduled: Option<PodCondition>,
    /// `status.initContainerStatuses`, `status.containerStatuses` and `status.ephemeralContainerStatuses`.
    pub containers: Vec<ContainerSeen>,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// Not all containers have been started.
    Pending,
    /// Bound to a node, and one container at least runs or is restarted.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, and one of them did not end well.
    Failed,
    /// The node does not tell.
    Unknown,
}

/// A condition of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCondition {
    /// `status`.
    pub status: Holds,
    /// `reason`: `Unschedulable` ...
    pub reason: Option<String>,
    /// `lastTransitionTime`.
    pub since: Option<Timestamp>,
}

/// What a container is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// It runs to its end before the others: one of `initContainers`. That it ended well is as it should be.
    Init,
    /// One of `initContainers` with the `restartPolicy` `Always`: it runs beside the others.
    Sidecar,
    /// One of `containers`.
    App,
    /// One of `ephemeralContainers`.
    Ephemeral,
}

/// The status of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSeen {
    /// `name`.
    pub name: String,
    /// What it is for.
    pub kind: ContainerKind,
    /// `restartCount`.
    pub restarts: u32,
    /// `state.waiting.reason`.
    pub waiting: Option<String>,
    /// `state.terminated`.
    pub ended: Option<Ended>,
    /// `lastState.terminated`.
    pub ended_before: Option<Ended>,
}

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// `reason`: `Completed`, `Error`, `OOMKilled` ...
    pub reason: Option<String>,
    /// `exitCode`.
    pub exit_code: i32,
    /// `finishedAt`.
    pub at: Option<Timestamp>,
}
