//! The metrics that samples are of: their names, and what each says.

/// How a metric's values behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// They only rise, but for beginning anew at zero.
    Counter,
    /// They rise and fall.
    Gauge,
}

impl MetricKind {
    /// Its name, as Prometheus has it: `counter` or `gauge`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// What there is to say of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// Its name.
    pub name: &'static str,
    /// How its values behave.
    pub kind: MetricKind,
    /// In what it is measured, as its name ends: `bytes`, `seconds`, `cores`; empty for what is counted, and for 0 and 1.
    pub unit: &'static str,
    /// What it says, in a sentence.
    pub help: &'static str,
}

/// One constant for each metric, and all of them together.
macro_rules! metrics {
    ($($constant:ident: $kind:ident, $name:literal, $unit:literal, $help:literal;)*) => {
        $(pub(super) const $constant: MetricInfo =
            MetricInfo { name: $name, kind: MetricKind::$kind, unit: $unit, help: $help };)*
        const METRICS: &[MetricInfo] = &[$($constant),*];
    };
}

metrics! {
    API_CLOCK_SKEW: Gauge, "rezus_apiserver_clock_skew_seconds", "seconds",
        "How far the API server's clock is ahead of rezus' own.";
    API_FAILED_CHECKS: Gauge, "rezus_apiserver_failed_checks", "",
        "Checks of the API server's readiness that fail.";
    CLUSTER_INFO: Gauge, "rezus_cluster_info", "",
        "1 for the cluster that a source tells of: its id, or else its authority's fingerprint, and of an incarnation after the first its number.";
    CREDENTIAL_REMAINING: Gauge, "rezus_credential_remaining_seconds", "seconds",
        "How long the client certificate is still valid that a cluster's source is read with; below zero once it is not.";
    ETCD_ALARMS: Gauge, "rezus_etcd_alarms", "",
        "Alarms of etcd that are raised.";
    ETCD_IN_USE: Gauge, "rezus_etcd_database_in_use_bytes", "bytes",
        "How much of an etcd member's database is in use.";
    ETCD_SIZE: Gauge, "rezus_etcd_database_size_bytes", "bytes",
        "How large an etcd member's database is.";
    ETCD_HAS_LEADER: Gauge, "rezus_etcd_has_leader", "",
        "Whether an etcd member sees a leader.";
    ETCD_IS_LEARNER: Gauge, "rezus_etcd_is_learner", "",
        "Whether an etcd member is a learner, which never votes.";
    ETCD_MEMBERS: Gauge, "rezus_etcd_members", "",
        "Members on the newest list of etcd.";
    ETCD_RAFT_LAG: Gauge, "rezus_etcd_raft_lag", "",
        "Entries of the log that some member had and this one had not applied when they were asked, one after the other.";
    MACHINE_READY: Gauge, "rezus_machine_ready", "",
        "Whether a machine says that it is ready.";
    MACHINE_STAGE: Gauge, "rezus_machine_stage", "",
        "1 for the stage that a machine says it is in.";
    MACHINE_UNHEALTHY: Gauge, "rezus_machine_unhealthy_services", "",
        "Services of a machine that failed, or whose check does not pass.";
    MACHINE_UP: Gauge, "rezus_machine_up", "",
        "Whether a machine's Talos API answered when it was last asked.";
    NODE_ALLOCATABLE_CPU: Gauge, "rezus_node_allocatable_cpu_cores", "cores",
        "Processor time that a node has for pods.";
    NODE_ALLOCATABLE_MEMORY: Gauge, "rezus_node_allocatable_memory_bytes", "bytes",
        "Memory that a node has for pods.";
    NODE_BOOTED: Gauge, "rezus_node_boot_time_seconds", "seconds",
        "When a node booted, since 1970.";
    NODE_CLOCK_OFFSET: Gauge, "rezus_node_clock_offset_seconds", "seconds",
        "How far a node's clock is off, as it says itself.";
    NODE_CLOCK_SKEW: Gauge, "rezus_node_clock_skew_seconds", "seconds",
        "How far a node's clock is ahead of the server's.";
    NODE_CLOCK_SYNCED: Gauge, "rezus_node_clock_synced", "",
        "Whether a node's clock follows another one.";
    NODE_CONDITION: Gauge, "rezus_node_condition", "",
        "Whether a node is short of something, or has no network: 1 for what holds.";
    NODE_CPU_BUSY: Counter, "rezus_node_cpu_busy_seconds_total", "seconds",
        "Processor time that was not idle, over all cores.";
    NODE_CPU: Counter, "rezus_node_cpu_seconds_total", "seconds",
        "Processor time, idle or not, over all cores.";
    NODE_CPU_USAGE: Gauge, "rezus_node_cpu_usage_cores", "cores",
        "Processor time in use.";
    NODE_DISK_AVAILABLE: Gauge, "rezus_node_filesystem_available_bytes", "bytes",
        "What is free of a file system.";
    NODE_DISK_SIZE: Gauge, "rezus_node_filesystem_size_bytes", "bytes",
        "How large a file system is.";
    NODE_LOAD1: Gauge, "rezus_node_load1", "",
        "How many tasks ran or waited, over one minute.";
    NODE_LOAD5: Gauge, "rezus_node_load5", "",
        "How many tasks ran or waited, over five minutes.";
    NODE_LOAD15: Gauge, "rezus_node_load15", "",
        "How many tasks ran or waited, over fifteen minutes.";
    NODE_MEMORY_AVAILABLE: Gauge, "rezus_node_memory_available_bytes", "bytes",
        "Memory that new work could have.";
    NODE_MEMORY: Gauge, "rezus_node_memory_bytes", "bytes",
        "Memory of a node.";
    NODE_MEMORY_USAGE: Gauge, "rezus_node_memory_usage_bytes", "bytes",
        "Memory in use.";
    NODE_RECEIVED: Counter, "rezus_node_network_receive_bytes_total", "bytes",
        "Bytes received, over all devices but the loopback.";
    NODE_SENT: Counter, "rezus_node_network_transmit_bytes_total", "bytes",
        "Bytes sent, over all devices but the loopback.";
    NODE_READY: Gauge, "rezus_node_ready", "",
        "Whether a node's condition Ready is True.";
    NODE_UNSCHEDULABLE: Gauge, "rezus_node_unschedulable", "",
        "Whether a node takes no new pods.";
    POD_RESTARTS: Gauge, "rezus_pod_restarts", "",
        "Restarts of all containers, as the pods that are there count them: it falls when one goes.";
    PODS: Gauge, "rezus_pods", "",
        "Pods of a phase.";
    PODS_LOOPING: Gauge, "rezus_pods_crash_looping", "",
        "Pods with a container that loops.";
    PODS_OOM: Gauge, "rezus_pods_oom_killed", "",
        "Pods with a container that was ended for want of memory in the last hour.";
    PODS_UNREADY: Gauge, "rezus_pods_unready", "",
        "Pods that run for five minutes and are not ready.";
    SCRAPE_DURATION: Gauge, "rezus_scrape_duration_seconds", "seconds",
        "How long a turn of reading a cluster's source took.";
    SCRAPE_FAILED_PARTS: Gauge, "rezus_scrape_failed_parts", "",
        "Parts of a cluster's source that could not be read.";
    SCRAPE_UP: Gauge, "rezus_scrape_up", "",
        "Whether a turn of reading a cluster's source told anything.";
}

/// All metrics that samples are of, by name.
pub const fn metrics() -> &'static [MetricInfo] {
    METRICS
}
