//! What one machine tells of itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rezus_core::base::{Clock, Timestamp};
use rezus_core::observed::Failure;
use rezus_core::observed::facts::{
    EtcdAlarm, EtcdMember, Filesystem, Load, MachineKind, Memory, Service, Stage, TalosMachine,
    UnmetCondition,
};

use super::cluster::{MOST_ADDRESSES, address_of};
use super::etcd;
use super::fault::{Blame, Fault};
use super::peer::{Kind, Peer, UNARY};
use super::proto::machine::ServiceInfo;
use super::proto::{machine, specs};
use crate::text::{clean, some};

const STATUS: Kind = Kind("runtime", "MachineStatuses.runtime.talos.dev");
const NODE_NAME: Kind = Kind("k8s", "Nodenames.kubernetes.talos.dev");
const IDENTITY: Kind = Kind("cluster", "Identities.cluster.talos.dev");
const ADDRESSES: Kind = Kind("network", "NodeAddresses.net.talos.dev");
const SYSTEM: Kind = Kind("hardware", "SystemInformations.hardware.talos.dev");
const PLATFORM: Kind = Kind("runtime", "PlatformMetadatas.talos.dev");
const TIME: Kind = Kind("runtime", "TimeStatuses.v1alpha1.talos.dev");

/// How many services, conditions and file systems are read.
const MOST: usize = 128;

/// A part of what a machine tells: one call each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Services,
    EtcdStatus,
    EtcdLocal,
    EtcdMembers,
    EtcdAlarms,
    NodeName,
    Identity,
    Addresses,
    Version,
    System,
    Platform,
    TimeStatus,
    Boot,
    Memory,
    Load,
    Filesystems,
    Clock,
}

impl Part {
    /// In this order: what says most of a machine's health comes first.
    const ALL: [Self; 17] = [
        Self::Services,
        Self::EtcdStatus,
        Self::EtcdLocal,
        Self::EtcdMembers,
        Self::EtcdAlarms,
        Self::NodeName,
        Self::Identity,
        Self::Addresses,
        Self::Version,
        Self::System,
        Self::Platform,
        Self::TimeStatus,
        Self::Boot,
        Self::Memory,
        Self::Load,
        Self::Filesystems,
        Self::Clock,
    ];

    const fn is_etcd(self) -> bool {
        matches!(self, Self::EtcdStatus | Self::EtcdLocal | Self::EtcdMembers | Self::EtcdAlarms)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Services => "services",
            Self::EtcdStatus => "etcd status",
            Self::EtcdLocal => "etcd member id",
            Self::EtcdMembers => "etcd members",
            Self::EtcdAlarms => "etcd alarms",
            Self::NodeName => "node name",
            Self::Identity => "identity",
            Self::Addresses => "addresses",
            Self::Version => "version",
            Self::System => "system",
            Self::Platform => "platform",
            Self::TimeStatus => "time status",
            Self::Boot => "boot time",
            Self::Memory => "memory",
            Self::Load => "load",
            Self::Filesystems => "file systems",
            Self::Clock => "clock",
        }
    }
}

/// What came of asking one machine.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) machine: TalosMachine,
    /// The etcd members as this one lists them, and when it did.
    pub(super) listed: Option<(Timestamp, Vec<EtcdMember>)>,
    pub(super) alarms: Vec<EtcdAlarm>,
    /// What it did not tell: the part, and why.
    pub(super) failures: Vec<(&'static str, Failure)>,
}

/// Asks a machine for all it tells. `known` is what is known of it without asking.
///
/// The error is of a machine that does not answer at all.
pub(super) async fn read(
    peer: &Peer,
    known: TalosMachine,
    clock: &Arc<dyn Clock>,
    asks_its_clock: bool,
) -> Result<Told, Fault> {
    let told = Told { machine: known, listed: None, alarms: Vec::new(), failures: Vec::new() };
    let mut reader = Reader { peer, clock, told };
    match peer.get::<specs::MachineStatus>(STATUS, "machine").await {
        Ok(status) => reader.status(status.unwrap_or_default()),
        Err(fault) if fault.blame == Blame::Answer => reader.told.failures.push(("status", fault.failure)),
        Err(fault) => return Err(fault),
    }
    reader.told.machine.answered_at = Some(clock.now());
    for part in Part::ALL {
        let skipped = match part {
            Part::Clock => !asks_its_clock,
            // A proposal to etcd: only where its status says that something is wrong, and a list that it has a quorum.
            Part::EtcdAlarms => {
                let errors = reader.told.machine.etcd.as_ref().is_some_and(|etcd| !etcd.errors.is_empty());
                !errors || reader.told.listed.is_none()
            }
            part => part.is_etcd() && reader.told.machine.kind != MachineKind::ControlPlane,
        };
        if skipped {
            continue;
        }
        if let Err(fault) = reader.part(part).await {
            let goes_on = fault.blame == Blame::Answer || (part.is_etcd() && fault.blame == Blame::Silence);
            reader.told.failures.push((part.name(), fault.failure));
            if !goes_on || peer.is_late() {
                break;
            }
        }
    }
    Ok(reader.told)
}

struct Reader<'a> {
    peer: &'a Peer,
    clock: &'a Arc<dyn Clock>,
    told: Told,
}

impl Reader<'_> {
    fn status(&mut self, status: specs::MachineStatus) {
        use specs::machine_status::Stage as Told;
        let machine = &mut self.told.machine;
        machine.stage = Some(match status.stage() {
            Told::Unknown => Stage::Unknown,
            Told::Booting => Stage::Booting,
            Told::Installing => Stage::Installing,
            Told::Maintenance => Stage::Maintenance,
            Told::Running => Stage::Running,
            Told::Rebooting => Stage::Rebooting,
            Told::ShuttingDown => Stage::ShuttingDown,
            Told::Resetting => Stage::Resetting,
            Told::Upgrading => Stage::Upgrading,
        });
        let Some(status) = status.status else { return };
        machine.ready = Some(status.ready);
        let unmet = status.unmet_conditions.into_iter().take(MOST);
        let unmet =
            unmet.map(|unmet| UnmetCondition { name: clean(&unmet.name), reason: clean(&unmet.reason) });
        machine.unmet = unmet.collect();
    }

    async fn part(&mut self, part: Part) -> Result<(), Fault> {
        let peer = self.peer;
        let told = &mut self.told;
        let machine = &mut told.machine;
        let mut client = peer.machines();
        let name = part.name();
        match part {
            Part::Services => {
                let send = |request| async move { client.service_list(request).await };
                let answer = peer.call(name, UNARY, (), send).await?;
                let services = answer.messages.into_iter().flat_map(|message| message.services);
                let services: Vec<Service> = services.take(MOST).map(service).collect();
                // Discovery tells a machine's role; where it is off, its services do.
                if machine.kind == MachineKind::Unknown {
                    let is_control_plane = services.iter().any(|service| service.id == "etcd");
                    machine.kind =
                        if is_control_plane { MachineKind::ControlPlane } else { MachineKind::Worker };
                }
                machine.services = Some(services);
            }
            Part::EtcdStatus => machine.etcd = etcd::status(peer).await?,
            Part::EtcdLocal => machine.etcd_member_id = etcd::local(peer).await?,
            Part::EtcdMembers => told.listed = Some((self.clock.now(), etcd::members(peer).await?)),
            Part::EtcdAlarms => told.alarms = etcd::alarms(peer).await?,
            Part::NodeName => {
                let spec = peer.get::<specs::Nodename>(NODE_NAME, "nodename").await?.unwrap_or_default();
                machine.node_name = some(&spec.nodename).or_else(|| machine.node_name.take());
            }
            Part::Identity => {
                let spec = peer.get::<specs::Identity>(IDENTITY, "local").await?.unwrap_or_default();
                machine.node_id = some(&spec.node_id).or_else(|| machine.node_id.take());
            }
            Part::Addresses => {
                let spec = peer.get::<specs::NodeAddress>(ADDRESSES, "current").await?.unwrap_or_default();
                let listed = spec.addresses.iter().take(MOST_ADDRESSES);
                machine.addresses = listed.filter_map(|address| address_of(&address.ip)).collect();
            }
            Part::Version => {
                let send = |request| async move { client.version(request).await };
                let answer = peer.call(name, UNARY, (), send).await?;
                let version = answer.messages.into_iter().find_map(|message| message.version);
                machine.version = version.and_then(|version| some(&version.tag));
            }
            Part::System => {
                let spec = peer.get::<specs::SystemInformation>(SYSTEM, "systeminformation").await?;
                machine.system_uuid = spec.and_then(|spec| some(&spec.uuid));
            }
            Part::Platform => {
                let spec = peer.get::<specs::PlatformMetadata>(PLATFORM, "platformmetadata").await?;
                let spec = spec.unwrap_or_default();
                machine.provider_id = some(&spec.provider_id).or_else(|| some(&spec.instance_id));
            }
            Part::TimeStatus => {
                machine.time_synced =
                    peer.get::<specs::TimeStatus>(TIME, "node").await?.map(|spec| spec.synced);
            }
            Part::Boot => {
                let send = |request| async move { client.system_stat(request).await };
                let answer = peer.call(name, UNARY, (), send).await?;
                let seconds = answer.messages.first().and_then(|stat| i64::try_from(stat.boot_time).ok());
                let seconds = seconds.filter(|seconds| *seconds > 0);
                machine.booted_at = seconds.map(|at| Timestamp::from_millis(at.saturating_mul(1_000)));
            }
            Part::Memory => {
                let send = |request| async move { client.memory(request).await };
                let answer = peer.call(name, UNARY, (), send).await?;
                let memory = answer.messages.into_iter().find_map(|message| message.meminfo);
                machine.memory = memory.map(|memory| Memory {
                    total_bytes: memory.memtotal.saturating_mul(1_024),
                    available_bytes: memory.memavailable.saturating_mul(1_024),
                });
            }
            Part::Load => {
                let send = |request| async move { client.load_avg(request).await };
                let answer = peer.call(name, UNARY, (), send).await?;
                let load = answer.messages.first();
                let load =
                    load.map(|load| Load { load1: load.load1, load5: load.load5, load15: load.load15 });
                machine.load = load.filter(|load| {
                    [load.load1, load.load5, load.load15].iter().all(|load| load.is_finite() && *load >= 0.0)
                });
            }
            Part::Filesystems => {
                let send = |request| async move { client.mounts(request).await };
                let answer = peer.call(name, UNARY, (), send).await?;
                let stats = answer.messages.into_iter().flat_map(|message| message.stats);
                machine.filesystems = Some(filesystems(stats));
            }
            Part::Clock => {
                let mut client = peer.clocks();
                let send = |request| async move { client.time(request).await };
                let sent = self.clock.now().as_millis();
                let answer = peer.call(name, UNARY, (), send).await?;
                let received = self.clock.now().as_millis();
                let local = answer.messages.into_iter().find_map(|message| message.localtime);
                machine.skew_ms = local.map(|local| {
                    let local = local
                        .seconds
                        .saturating_mul(1_000)
                        .saturating_add(i64::from(local.nanos) / 1_000_000);
                    local.saturating_sub(sent.midpoint(received))
                });
            }
        }
        Ok(())
    }
}

fn service(told: ServiceInfo) -> Service {
    // `unknown` is of a service without a check, not of one that is sick.
    let health = told.health.filter(|health| !health.unknown);
    let sick = health.as_ref().filter(|health| !health.healthy);
    let message = sick.map(|health| clean(&health.last_message)).unwrap_or_default();
    let healthy = health.map(|health| health.healthy);
    Service { id: clean(&told.id), state: clean(&told.state), healthy, message }
}

/// Only what is on a device of its own, once: not what pods and containers mount, nor what is mounted a second time
/// elsewhere, nor images, which are always full.
fn filesystems(stats: impl Iterator<Item = machine::MountStat>) -> Vec<Filesystem> {
    let mut devices: BTreeMap<String, Filesystem> = BTreeMap::new();
    for stat in stats {
        let of_pods = ["/var/lib/kubelet/", "/var/lib/containerd/", "/run/"];
        let of_account = stat.size > 0
            && stat.filesystem.starts_with("/dev/")
            && !stat.filesystem.starts_with("/dev/loop")
            && !of_pods.iter().any(|start| stat.mounted_on.starts_with(start));
        if !of_account || (devices.len() >= MOST && !devices.contains_key(&stat.filesystem)) {
            continue;
        }
        let found = Filesystem {
            mounted_on: clean(&stat.mounted_on),
            size_bytes: stat.size,
            available_bytes: stat.available.min(stat.size),
        };
        let kept = devices.entry(stat.filesystem).or_insert_with(|| found.clone());
        if found.mounted_on.len() < kept.mounted_on.len() {
            *kept = found;
        }
    }
    let mut found: Vec<Filesystem> = devices.into_values().collect();
    found.sort_by(|a, b| a.mounted_on.cmp(&b.mounted_on));
    found
}

/// How often a machine's clock is asked at most: it asks its time server then.
pub(super) const CLOCK_EVERY: Duration = Duration::from_mins(10);
