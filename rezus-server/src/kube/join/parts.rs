//! What was observed, in the words of the API. Numbers that change with each turn are apart from what is news.

use rezus_core::base::Timestamp;
use rezus_core::client::{
    FilesystemStatus, KubernetesSummary, LoadStatus, MemoryStatus, MetricsStatus, NodeAddress, NodeResources,
    NodeStatus, NodeTaint, NodeUsage, PodTrouble, PodsSummary, ServiceStatus, SourceStatus, TalosStatus,
    UnmetStatus,
};
use rezus_core::observed::facts::{
    Filesystem, Load, MachineMetrics, Memory, Node, Pods, Quantities, TalosMachine, Usage,
};
use rezus_core::observed::{
    Failure, Freshness, KubernetesPicture, Observation, Pace, Picture, Source, Standing, TlsFault,
};

use crate::kube::object::seconds;

/// How many failures of a source are shown.
const SHOWN: usize = 3;

/// How many pods that give trouble a Tenant names.
const TROUBLES: usize = 10;

/// What is shown of a node, but for how it is.
pub(super) fn node(node: &Node, seen_at: Timestamp, freshness: Freshness) -> NodeStatus {
    let address = |it: &rezus_core::observed::facts::NodeAddress| NodeAddress {
        kind: it.kind.clone(),
        address: it.address.clone(),
    };
    NodeStatus {
        observed_at: seconds(seen_at),
        stale: freshness != Freshness::Fresh,
        name: node.name.clone(),
        kubelet_version: node.info.kubelet_version.clone(),
        os_image: node.info.os_image.clone(),
        kernel_version: node.info.kernel_version.clone(),
        container_runtime: node.info.container_runtime.clone(),
        architecture: node.info.architecture.clone(),
        addresses: node.addresses.iter().map(address).collect(),
        unschedulable: node.unschedulable,
        taints: node
            .taints
            .iter()
            .map(|taint| NodeTaint { key: taint.key.clone(), effect: taint.effect.clone() })
            .collect(),
        capacity: resources(&node.capacity),
        allocatable: resources(&node.allocatable),
        ..NodeStatus::default()
    }
}

fn resources(amounts: &Quantities) -> Option<NodeResources> {
    let resources = NodeResources {
        cpu_millicores: amounts.cpu_nanocores.map(millicores),
        memory_bytes: amounts.memory_bytes,
        ephemeral_storage_bytes: amounts.ephemeral_bytes,
        pods: amounts.pods,
    };
    (resources != NodeResources::default()).then_some(resources)
}

fn millicores(nanocores: u64) -> u64 {
    nanocores.div_ceil(1_000_000)
}

/// What a node uses.
pub(super) fn usage(usage: &Usage) -> NodeUsage {
    NodeUsage {
        measured_at: seconds(usage.at),
        cpu_millicores: millicores(usage.cpu_nanocores),
        memory_bytes: usage.memory_bytes,
    }
}

/// What is shown of a machine that Talos tells of, without numbers that change with each turn.
pub(super) fn talos(seen: &Observation<TalosMachine>, freshness: Freshness) -> TalosStatus {
    let machine = &seen.value;
    let is_fine = |state: &str, healthy: Option<bool>| {
        matches!(state, "Running" | "Finished" | "Skipped") && healthy != Some(false)
    };
    let services =
        machine.services.iter().flatten().filter(|service| !is_fine(&service.state, service.healthy));
    TalosStatus {
        observed_at: seconds(seen.observed_at),
        stale: freshness != Freshness::Fresh,
        asked: machine.asked.clone(),
        stage: machine.stage.map(|stage| stage.word().to_owned()),
        ready: machine.ready,
        unmet: machine
            .unmet
            .iter()
            .map(|unmet| UnmetStatus { name: unmet.name.clone(), reason: unmet.reason.clone() })
            .collect(),
        version: machine.version.clone(),
        booted_at: machine.booted_at.map(seconds),
        services: services
            .map(|service| ServiceStatus {
                id: service.id.clone(),
                state: service.state.clone(),
                message: service.message.clone(),
            })
            .collect(),
        time_synced: machine.time_synced,
        etcd_member_id: machine.etcd_member_id.map(|id| format!("{id:016x}")),
        ..TalosStatus::default()
    }
}

/// Adds the numbers that change with each turn.
pub(super) fn talos_numbers(status: &mut TalosStatus, machine: &TalosMachine) {
    status.clock_skew_millis = machine.skew_ms;
    status.memory = machine.memory.map(memory);
    status.load = machine.load.map(load);
    status.filesystems = machine.filesystems.iter().flatten().map(filesystem).collect();
}

/// What is shown of a machine that its `node_exporter` tells of, without numbers.
pub(super) fn metrics(seen: &Observation<MachineMetrics>, freshness: Freshness) -> MetricsStatus {
    MetricsStatus {
        observed_at: seconds(seen.observed_at),
        stale: freshness != Freshness::Fresh,
        asked: seen.value.asked.clone(),
        ..MetricsStatus::default()
    }
}

/// Adds the numbers.
pub(super) fn metrics_numbers(status: &mut MetricsStatus, machine: &MachineMetrics) {
    status.load = machine.load.map(load);
    status.memory = machine.memory.map(memory);
    status.filesystems = machine.filesystems.iter().map(filesystem).collect();
}

fn memory(memory: Memory) -> MemoryStatus {
    MemoryStatus { total_bytes: memory.total_bytes, available_bytes: memory.available_bytes }
}

fn load(load: Load) -> LoadStatus {
    LoadStatus { load1: load.load1, load5: load.load5, load15: load.load15 }
}

fn filesystem(it: &Filesystem) -> FilesystemStatus {
    FilesystemStatus {
        mounted_on: it.mounted_on.clone(),
        size_bytes: it.size_bytes,
        available_bytes: it.available_bytes,
    }
}

/// What is shown of a cluster that Kubernetes tells of, as fresh as its nodes are; nothing where what it told is too old.
pub(super) fn kubernetes(
    picture: &KubernetesPicture,
    freshness: Freshness,
    pace: Pace,
    now: Timestamp,
) -> Option<KubernetesSummary> {
    let nodes = picture.nodes.as_ref()?;
    if freshness == Freshness::Unknown {
        return None;
    }
    let known = |at: Timestamp| pace.freshness(at, now) != Freshness::Unknown;
    let checks = picture.failed_checks.as_ref().filter(|checks| known(checks.observed_at));
    Some(KubernetesSummary {
        observed_at: seconds(nodes.observed_at),
        stale: freshness == Freshness::Stale,
        version: picture.version.as_ref().map(|version| version.value.clone()),
        cluster_uid: picture.cluster_uid.as_ref().map(|uid| uid.value.clone()),
        nodes: u64::try_from(nodes.value.len()).unwrap_or(u64::MAX),
        clock_skew_millis: picture
            .skew_ms
            .as_ref()
            .filter(|skew| known(skew.observed_at))
            .map(|skew| skew.value),
        failed_checks: checks
            .iter()
            .flat_map(|checks| &checks.value)
            .map(|check| check.name.clone())
            .collect(),
        pods: picture.pods.as_ref().filter(|pods| known(pods.observed_at)).map(|seen| pods(&seen.value)),
    })
}

fn pods(pods: &Pods) -> PodsSummary {
    let troubles = pods.offenders.iter().take(TROUBLES).map(|offender| PodTrouble {
        namespace: offender.namespace.clone(),
        pod: offender.pod.clone(),
        container: offender.container.clone(),
        node: offender.node.clone(),
        reason: offender.reason.clone(),
    });
    PodsSummary {
        total: pods.total,
        running: pods.running,
        pending: pods.pending,
        failed: pods.failed,
        crash_looping: pods.crash_looping,
        oom_killed: pods.oom_killed,
        troubles: troubles.collect(),
    }
}

/// What of a failure is news: how long something took, or how much of it was done, is another number each time.
pub(super) fn gist(failure: &Failure) -> String {
    match failure {
        Failure::Timeout { .. } | Failure::Partial { .. } | Failure::RateLimited { .. } => {
            failure.reason().to_owned()
        }
        // The library says by how many seconds.
        Failure::TlsRejected { fault, .. } => format!("{}: {fault:?}", failure.reason()),
        other => other.to_string(),
    }
}

/// The same of the failures of a source that are shown.
pub(super) fn gists(picture: &Picture, source: &str) -> String {
    let standing = picture.standings.iter().find(|(one, _)| one.as_str() == source);
    let failures = standing.into_iter().flat_map(|(_, standing)| standing.failures.iter().take(SHOWN));
    failures.map(|(part, failure)| format!("{part}: {}", gist(failure))).collect::<Vec<_>>().join("; ")
}

/// Tells whether what was told is from an old copy, or of a cluster that nobody can write to any more.
fn is_old_copy(standing: &Standing) -> bool {
    standing.failures.iter().any(|(_, failure)| *failure == Failure::StaleCache)
}

/// How reading each source goes. Where clocks are off, a certificate that seems to be too old or too new may be neither.
pub(super) fn sources(
    picture: &Picture,
    pace: impl Fn(Source) -> Pace,
    now: Timestamp,
    has_skew: bool,
) -> Vec<SourceStatus> {
    let of = |(source, standing): (&Source, &Standing)| {
        let freshness = standing.answered_at.map(|at| pace(*source).freshness(at, now));
        let first = standing.failures.first().map(|(_, failure)| failure);
        let state = match (standing.silence(), freshness) {
            (Some(failure), _) => failure.reason(),
            (None, Some(Freshness::Fresh)) if is_old_copy(standing) => "Stale",
            (None, Some(Freshness::Fresh)) if first.is_some() => "Partial",
            (None, Some(Freshness::Fresh)) => "Ok",
            (None, _) => "Stale",
        };
        let hint = |failure: &Failure| match failure {
            Failure::TlsRejected { fault: TlsFault::Expired | TlsFault::NotYetValid, .. }
            | Failure::CredentialExpired { .. }
                if has_skew =>
            {
                " (clocks are off, which may be why: see the condition ClockSkew)"
            }
            _ => "",
        };
        let told = standing.failures.iter().take(SHOWN);
        let told = told.map(|(part, failure)| format!("{part}: {failure}{}", hint(failure)));
        SourceStatus {
            source: source.as_str().to_owned(),
            state: state.to_owned(),
            message: told.collect::<Vec<_>>().join("; "),
            answered_at: standing.answered_at.map(seconds),
        }
    };
    // What a cluster never had is nothing to be told.
    let is_nothing = |standing: &Standing| {
        standing.answered_at.is_none() && matches!(standing.silence(), Some(Failure::NotInstalled { .. }))
    };
    picture.standings.iter().filter(|(_, standing)| !is_nothing(standing)).map(of).collect()
}
