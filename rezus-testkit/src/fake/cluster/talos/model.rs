//! What a fake cluster of Talos machines is, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// A cluster. Tests change it while it is read.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `cluster_id`.
    pub id: String,
    /// `cluster_name`.
    pub name: String,
    /// Its machines: control planes first.
    pub machines: Vec<Machine>,
    /// Whether machines find each other.
    pub has_discovery: bool,
    /// Whether a majority of etcd's voters is up: without it members are not listed, and no alarms.
    pub has_quorum: bool,
    /// Alarms: whose, and 1 for `NOSPACE` or 2 for `CORRUPT`.
    pub alarms: Vec<(u64, i32)>,
    /// Calls that are refused by every machine, by their names (`Version`, or the type of a resource): the code and the
    /// text of gRPC.
    pub refused: BTreeMap<String, (i32, String)>,
    /// Types of resources whose specs are garbage.
    pub garbled: BTreeSet<String>,
    /// Calls that are answered with more than 4 MiB: `Version`, `Members.cluster.talos.dev`.
    pub bloated: BTreeSet<String>,
}

/// A machine.
#[expect(clippy::struct_excessive_bools, reason = "each can be so without the others")]
#[derive(Clone, Debug)]
pub struct Machine {
    /// Where it answers.
    pub address: IpAddr,
    /// Its node's name.
    pub name: String,
    /// `node_id`.
    pub node_id: String,
    /// Whether it is a control plane.
    pub is_control_plane: bool,
    /// Whether it is a member as discovery knows them.
    pub is_discovered: bool,
    /// Whether calls that are forwarded to it reach nobody.
    pub is_dead: bool,
    /// How long it takes to answer a call.
    pub delay: Duration,
    /// `stage`: 4 runs.
    pub stage: i32,
    /// `ready`.
    pub is_ready: bool,
    /// What it waits for: name and reason.
    pub unmet: Vec<(String, String)>,
    /// Its services: id, state, and whether the check passes.
    pub services: Vec<(String, String, Option<bool>)>,
    /// Its file systems: device, mount point, size and what is free, in bytes.
    pub mounts: Vec<(String, String, u64, u64)>,
    /// How far its clock is ahead, in milliseconds.
    pub ahead_ms: i64,
    /// Its etcd.
    pub etcd: Etcd,
    /// How its server treats connections.
    pub door: Door,
}

/// The etcd of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Etcd {
    /// A worker has none, and a control plane may not have joined yet.
    None,
    /// It is a member, and up.
    Up {
        /// Its id.
        id: u64,
        /// Whether it is a learner.
        is_learner: bool,
    },
    /// It is a member, and down: calls to it block.
    Down {
        /// Its id.
        id: u64,
    },
}

impl Etcd {
    /// Its id, where it is a member.
    pub const fn id(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Up { id, .. } | Self::Down { id } => Some(*id),
        }
    }
}

/// How the server of a machine treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// As Talos does.
    Open,
    /// Nobody accepts them.
    Closed,
    /// They are accepted, and then nothing comes.
    Silent,
    /// They are answered with a page of HTML.
    Html,
    /// A handshake, and then nothing comes.
    SilentHttp,
    /// They are closed once they are accepted.
    HangsUp,
    /// The server's certificate is of another authority of the same name.
    OtherAuthority,
    /// It is of an authority of another name.
    UnknownIssuer,
    /// It is no longer valid.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It is for another name.
    WrongName,
    /// It is one of a machine in maintenance.
    Maintenance,
    /// The server knows clients of another authority alone.
    KnowsNobody,
}

impl Cluster {
    /// A healthy cluster of so many machines, on addresses of the loopback network.
    ///
    /// # Panics
    ///
    /// Above 250 machines.
    pub fn new(control_planes: usize, workers: usize) -> Self {
        let machine = |n: usize| {
            let last = u8::try_from(n + 2).expect("few machines");
            Machine::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), n, n < control_planes)
        };
        Self {
            id: "cluster-id".to_owned(),
            name: "fake".to_owned(),
            machines: (0..control_planes + workers).map(machine).collect(),
            has_discovery: true,
            has_quorum: true,
            alarms: Vec::new(),
            refused: BTreeMap::new(),
            garbled: BTreeSet::new(),
            bloated: BTreeSet::new(),
        }
    }

    /// The member that leads etcd: the first one that is up.
    pub(super) fn leader(&self) -> u64 {
        let up = self.machines.iter().find_map(|machine| match machine.etcd {
            Etcd::Up { id, is_learner: false } => Some(id),
            _ => None,
        });
        up.filter(|_| self.has_quorum).unwrap_or(0)
    }
}

impl Machine {
    fn new(address: IpAddr, n: usize, is_control_plane: bool) -> Self {
        let running = |id: &str, healthy| (id.to_owned(), "Running".to_owned(), healthy);
        let mut services =
            vec![running("apid", Some(true)), running("kubelet", Some(true)), running("udevd", None)];
        if is_control_plane {
            services.push(running("etcd", Some(true)));
        }
        let mount = |device: &str, at: &str, size, free| (device.to_owned(), at.to_owned(), size, free);
        let id = u64::try_from(n).unwrap_or(0) + 0xa000_0000_0000_0001;
        Self {
            address,
            name: format!("{}-{n}", if is_control_plane { "cp" } else { "worker" }),
            node_id: format!("node-{n}"),
            is_control_plane,
            is_discovered: true,
            is_dead: false,
            delay: Duration::ZERO,
            stage: 4,
            is_ready: true,
            unmet: Vec::new(),
            services,
            mounts: vec![
                mount("/dev/loop0", "/", 50_000_000, 0),
                mount("/dev/sda6", "/var", 10_000_000_000, 4_000_000_000),
                mount("/dev/sda6", "/var/lib/kubelet/pods/1/volumes/a", 10_000_000_000, 4_000_000_000),
                mount("/dev/sdb", "/var/lib/kubelet/pods/1/volumes/b", 1_000_000_000, 0),
                mount("tmpfs", "/var/lib/kubelet/pods/1/volumes/c", 1_000, 0),
                mount("proc", "/proc", 0, 0),
            ],
            ahead_ms: 0,
            etcd: if is_control_plane { Etcd::Up { id, is_learner: false } } else { Etcd::None },
            door: Door::Open,
        }
    }
}
