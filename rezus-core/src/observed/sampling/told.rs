//! The values that a reading comes to.

use std::collections::BTreeMap;
use std::time::Duration;

use super::metrics::{self, MetricInfo};
use crate::base::{TenantName, Timestamp};
use crate::observed::facts::{
    EtcdStatus, Facts, Filesystem, Holds, Kubernetes, Load, MachineMetrics, Memory, Node, NodeMetrics, Pods,
    Talos, TalosMachine, Usage,
};
use crate::observed::{Incarnation, Incarnations, Marks, Reading, Source};
use crate::series::Labels;

/// The conditions of nodes that are told: what others there are is up to whoever writes them.
const CONDITIONS: [&str; 4] = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];

/// By which label a series says which source it is of, of which of a tenant's clusters it is where that is not the first, and
/// what that cluster is known by.
const SOURCE: &str = "source";
const INCARNATION: &str = "incarnation";
const CLUSTER: &str = "cluster";
const AUTHORITY: &str = "authority";

/// The clusters that a tenant had, as the labels of those of its series say that [`super::cluster_series`] selects.
pub fn clusters<'l>(series: impl IntoIterator<Item = &'l Labels>) -> Incarnations {
    let mut known: BTreeMap<u32, Marks> = BTreeMap::new();
    for labels in series {
        let number = match labels.get(INCARNATION) {
            "" => 1,
            number => match number.parse() {
                Ok(number) => number,
                Err(_) => continue,
            },
        };
        let Some(source) = Source::ALL.into_iter().find(|source| source.as_str() == labels.get(SOURCE))
        else {
            continue;
        };
        let told = |name: &str| Some(labels.get(name).to_owned()).filter(|value| !value.is_empty());
        let marks = known.entry(number).or_default();
        match source {
            Source::Kubernetes => marks.cluster_uid = told(CLUSTER).or(marks.cluster_uid.take()),
            Source::Talos => marks.cluster_id = told(CLUSTER).or(marks.cluster_id.take()),
            Source::NodeMetrics => {}
        }
        marks.authorities.extend(told(AUTHORITY).map(|key| (source, key)));
    }
    Incarnations::of(known)
}

/// Values under their labels, as they are found.
#[derive(Debug)]
pub(super) struct Told<'t> {
    tenant: &'t TenantName,
    source: Source,
    incarnation: &'t Incarnation,
    /// As labels have it; none of the first one.
    number: String,
    pub(super) values: Vec<(Labels, f64)>,
}

impl<'t> Told<'t> {
    /// Nothing yet.
    pub(super) fn nothing(tenant: &'t TenantName, source: Source, incarnation: &'t Incarnation) -> Self {
        let number = if incarnation.number > 1 { incarnation.number.to_string() } else { String::new() };
        Self { tenant, source, incarnation, number, values: Vec::new() }
    }

    /// All that a reading tells, and how long the credential it was read with is valid.
    pub(super) fn all(&mut self, reading: &Reading, expires_at: Option<Timestamp>) {
        let Reading { started, finished, facts, failures } = reading;
        self.put(&metrics::SCRAPE_UP, &[], flag(facts.is_some()));
        self.put(&metrics::SCRAPE_DURATION, &[], finished.since(*started).as_secs_f64());
        self.put(&metrics::SCRAPE_FAILED_PARTS, &[], count(failures.len()));
        if let Some(expires_at) = expires_at {
            self.put(&metrics::CREDENTIAL_REMAINING, &[], seconds(expires_at) - seconds(*finished));
        }
        if facts.is_some() {
            self.cluster();
        }
        match facts {
            Some(Facts::Kubernetes(facts)) => self.kubernetes(facts),
            Some(Facts::Talos(facts)) => self.talos(facts),
            Some(Facts::NodeMetrics(NodeMetrics { machines })) => {
                for machine in machines {
                    self.exporter(machine);
                }
            }
            None => {}
        }
    }

    /// By what the cluster is known that this source tells of.
    fn cluster(&mut self) {
        let marks = &self.incarnation.marks;
        let cluster = match self.source {
            Source::Kubernetes => marks.cluster_uid.as_deref(),
            Source::Talos => marks.cluster_id.as_deref(),
            Source::NodeMetrics => None,
        };
        // It is of account where there is nothing better.
        let authority = marks.authorities.get(&self.source).filter(|_| cluster.is_none()).map(String::as_str);
        if cluster.or(authority).is_some() || self.incarnation.number > 1 {
            let labels = [(CLUSTER, cluster.unwrap_or_default()), (AUTHORITY, authority.unwrap_or_default())];
            self.put(&metrics::CLUSTER_INFO, &labels, 1.0);
        }
    }

    /// Whether each node is ready, and nothing else.
    pub(super) fn flags(&mut self, reading: &Reading) {
        if let Some(Facts::Kubernetes(Kubernetes { nodes: Some(nodes), .. })) = &reading.facts {
            for node in nodes {
                self.ready(node);
            }
        }
    }

    fn put(&mut self, metric: &MetricInfo, others: &[(&str, &str)], value: f64) {
        let mut others = others.to_vec();
        others.push((SOURCE, self.source.as_str()));
        if !self.number.is_empty() {
            others.push((INCARNATION, &self.number));
        }
        // The names are ours, and sound.
        if let Ok(labels) = Labels::of_series(self.tenant, metric.name, others) {
            self.values.push((labels, value));
        }
    }

    fn put_some(&mut self, metric: &MetricInfo, node: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.put(metric, &[("node", node)], value);
        }
    }

    fn kubernetes(&mut self, facts: &Kubernetes) {
        let Kubernetes {
            failed_checks,
            nodes,
            pods,
            usage,
            skew_ms,
            version: _,
            cluster_uid: _,
            server_time: _,
        } = facts;
        if let Some(skew) = skew_ms {
            self.put(&metrics::API_CLOCK_SKEW, &[], seconds(Timestamp::from_millis(*skew)));
        }
        if let Some(failed) = failed_checks {
            self.put(&metrics::API_FAILED_CHECKS, &[], count(failed.len()));
        }
        for node in nodes.iter().flatten() {
            self.node(node);
        }
        if let Some(pods) = pods {
            self.pods(pods);
        }
        for Usage { node, at: _, cpu_nanocores, memory_bytes } in usage.iter().flatten() {
            self.put_some(&metrics::NODE_CPU_USAGE, node, Some(cores(*cpu_nanocores)));
            self.put_some(&metrics::NODE_MEMORY_USAGE, node, Some(number(*memory_bytes)));
        }
    }

    fn ready(&mut self, node: &Node) {
        let ready = node.conditions.iter().find(|condition| condition.kind == "Ready");
        let ready = ready.is_some_and(|condition| condition.status == Holds::True);
        self.put(&metrics::NODE_READY, &[("node", &node.name)], flag(ready));
    }

    fn node(&mut self, node: &Node) {
        self.ready(node);
        let name = node.name.as_str();
        self.put_some(&metrics::NODE_UNSCHEDULABLE, name, Some(flag(node.unschedulable)));
        let told = node.conditions.iter().filter(|condition| CONDITIONS.contains(&condition.kind.as_str()));
        for condition in told {
            let labels = [("node", name), ("condition", condition.kind.as_str())];
            self.put(&metrics::NODE_CONDITION, &labels, flag(condition.status == Holds::True));
        }
        let has = node.allocatable;
        self.put_some(&metrics::NODE_ALLOCATABLE_CPU, name, has.cpu_nanocores.map(cores));
        self.put_some(&metrics::NODE_ALLOCATABLE_MEMORY, name, has.memory_bytes.map(number));
    }

    fn pods(&mut self, pods: &Pods) {
        let Pods {
            running,
            pending,
            failed,
            succeeded,
            crash_looping,
            oom_killed,
            unready,
            restarts,
            total: _,
            offenders: _,
        } = pods;
        let phases =
            [("Running", running), ("Pending", pending), ("Failed", failed), ("Succeeded", succeeded)];
        for (phase, pods) in phases {
            self.put(&metrics::PODS, &[("phase", phase)], number(*pods));
        }
        self.put(&metrics::PODS_LOOPING, &[], number(*crash_looping));
        self.put(&metrics::PODS_OOM, &[], number(*oom_killed));
        self.put(&metrics::PODS_UNREADY, &[], number(*unready));
        self.put(&metrics::POD_RESTARTS, &[], number(*restarts));
    }

    fn talos(&mut self, facts: &Talos) {
        let statuses = facts.machines.iter().filter_map(|machine| machine.etcd.as_ref());
        let newest = statuses.map(|status| status.raft_index).max().unwrap_or(0);
        for machine in &facts.machines {
            let name = machine.node_name.as_deref().unwrap_or(&machine.asked);
            self.machine(name, machine);
            if let Some(status) = &machine.etcd {
                self.etcd(name, status, newest);
            }
        }
        if let Some(etcd) = &facts.etcd {
            self.put(&metrics::ETCD_MEMBERS, &[], count(etcd.members.len()));
            self.put(&metrics::ETCD_ALARMS, &[], count(etcd.alarms.len()));
        }
    }

    fn machine(&mut self, name: &str, machine: &TalosMachine) {
        self.put_some(&metrics::MACHINE_UP, name, Some(flag(machine.answered_at.is_some())));
        self.put_some(&metrics::MACHINE_READY, name, machine.ready.map(flag));
        if let Some(stage) = machine.stage {
            self.put(&metrics::MACHINE_STAGE, &[("node", name), ("stage", stage.word())], 1.0);
        }
        let unhealthy = machine.services.as_ref().map(|services| {
            let is_unhealthy = services.iter().filter(|it| it.state == "Failed" || it.healthy == Some(false));
            count(is_unhealthy.count())
        });
        self.put_some(&metrics::MACHINE_UNHEALTHY, name, unhealthy);
        self.put_some(&metrics::NODE_BOOTED, name, machine.booted_at.map(seconds));
        self.memory(name, machine.memory);
        self.load(name, machine.load);
        self.filesystems(name, machine.filesystems.as_deref().unwrap_or_default());
        self.put_some(&metrics::NODE_CLOCK_SYNCED, name, machine.time_synced.map(flag));
        let skew = machine.skew_ms.map(|millis| seconds(Timestamp::from_millis(millis)));
        self.put_some(&metrics::NODE_CLOCK_SKEW, name, skew);
    }

    fn etcd(&mut self, name: &str, status: &EtcdStatus, newest: u64) {
        let lag = newest.saturating_sub(status.raft_applied_index);
        for (metric, value) in [
            (&metrics::ETCD_HAS_LEADER, flag(status.leader != 0)),
            (&metrics::ETCD_IS_LEARNER, flag(status.is_learner)),
            (&metrics::ETCD_SIZE, number(status.db_size)),
            (&metrics::ETCD_IN_USE, number(status.db_size_in_use)),
            (&metrics::ETCD_RAFT_LAG, number(lag)),
        ] {
            self.put(metric, &[("node", name)], value);
        }
    }

    fn exporter(&mut self, machine: &MachineMetrics) {
        let name = machine.node_name.as_deref().unwrap_or(&machine.asked);
        self.put_some(&metrics::NODE_BOOTED, name, machine.booted_at.map(seconds));
        self.memory(name, machine.memory);
        self.load(name, machine.load);
        self.filesystems(name, &machine.filesystems);
        for (metric, value) in [
            (&metrics::NODE_CPU, machine.cpu_seconds),
            (&metrics::NODE_CPU_BUSY, machine.cpu_busy_seconds),
            (&metrics::NODE_RECEIVED, machine.received_bytes),
            (&metrics::NODE_SENT, machine.sent_bytes),
            (&metrics::NODE_CLOCK_SYNCED, machine.time_synced.map(flag)),
            (&metrics::NODE_CLOCK_OFFSET, machine.time_offset_seconds),
        ] {
            self.put_some(metric, name, value);
        }
    }

    fn memory(&mut self, name: &str, memory: Option<Memory>) {
        let Some(Memory { total_bytes, available_bytes }) = memory else { return };
        self.put_some(&metrics::NODE_MEMORY, name, Some(number(total_bytes)));
        self.put_some(&metrics::NODE_MEMORY_AVAILABLE, name, Some(number(available_bytes)));
    }

    fn load(&mut self, name: &str, load: Option<Load>) {
        let Some(Load { load1, load5, load15 }) = load else { return };
        self.put_some(&metrics::NODE_LOAD1, name, Some(load1));
        self.put_some(&metrics::NODE_LOAD5, name, Some(load5));
        self.put_some(&metrics::NODE_LOAD15, name, Some(load15));
    }

    fn filesystems(&mut self, name: &str, filesystems: &[Filesystem]) {
        for Filesystem { mounted_on, size_bytes, available_bytes } in filesystems {
            let labels = [("node", name), ("mount", mounted_on.as_str())];
            self.put(&metrics::NODE_DISK_SIZE, &labels, number(*size_bytes));
            self.put(&metrics::NODE_DISK_AVAILABLE, &labels, number(*available_bytes));
        }
    }
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// The nearest number that a sample can have.
fn number(value: u64) -> f64 {
    let [high, low] = [value >> 32, value & u64::from(u32::MAX)].map(|half| u32::try_from(half).unwrap_or(0));
    f64::from(high) * (f64::from(u32::MAX) + 1.0) + f64::from(low)
}

fn count(count: usize) -> f64 {
    number(u64::try_from(count).unwrap_or(u64::MAX))
}

fn cores(nanocores: u64) -> f64 {
    number(nanocores) / 1e9
}

/// Since 1970; below zero before.
fn seconds(at: Timestamp) -> f64 {
    let millis = at.as_millis();
    let seconds = Duration::from_millis(millis.unsigned_abs()).as_secs_f64();
    if millis < 0 { -seconds } else { seconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_nearest_there_are() {
        for (value, expected) in
            [(0, 0.0), (1 << 40, 1_099_511_627_776.0), (u64::MAX, 18_446_744_073_709_551_616.0)]
        {
            assert_eq!(number(value).to_bits(), f64::to_bits(expected));
        }
        assert_eq!(seconds(Timestamp::from_millis(-1_500)).to_bits(), f64::to_bits(-1.5));
        assert_eq!(cores(250_000_000).to_bits(), f64::to_bits(0.25));
    }
}
