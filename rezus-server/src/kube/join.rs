//! The one place where what was observed is put beside what is declared, for output alone: what comes of it can only be
//! written out. Whatever differs between both is computed here, each time, and kept nowhere.

mod claims;
mod machine;
mod memory;
mod parts;
mod tenant;

use std::collections::BTreeMap;

use rezus_core::base::Timestamp;
use rezus_core::client::{MachineSpec, NodeGroupSpec};
use rezus_core::observed::facts::Talos;
use rezus_core::observed::matching::{Matches, matched};
use rezus_core::observed::{Freshness, Picture};

use super::item::Piece;
use super::kinds::KindInfo;
use super::observed;
use crate::collector::{pace_of_machine, Paces};
use machine::Judged;
pub use memory::Memory;

/// What a tenant declares, as far as it is put beside anything.
#[derive(Debug, Default)]
pub struct Declared {
    /// The machines, by name.
    pub machines: Vec<(String, MachineSpec)>,
    /// The node groups, by name.
    pub groups: Vec<(String, NodeGroupSpec)>,
}

/// What is to be shown of it now, where that is another thing than before.
#[derive(Debug, Default)]
pub struct Joined {
    /// Of machines, by name.
    pub machines: Vec<(String, Piece)>,
    /// Of node groups, by name.
    pub groups: Vec<(String, Piece)>,
    /// Of the tenant.
    pub tenant: Option<Piece>,
    /// What happened.
    pub events: Vec<Transition>,
    /// When any of it becomes old without any news.
    pub next_turn: Option<Timestamp>,
}

/// A condition of an object that changed.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The kind of object.
    pub kind: &'static KindInfo,
    /// Its name.
    pub name: String,
    /// Whether it is a warning.
    pub is_warning: bool,
    /// What it is now, in one word.
    pub reason: &'static str,
    /// The same for people.
    pub message: String,
    /// When that was noticed.
    pub at: Timestamp,
}

/// Puts what was observed beside what is declared. Nothing was where there is no picture: the tenant is not observed.
pub fn join(
    declared: &Declared,
    picture: Option<&Picture>,
    memory: &mut Memory,
    paces: Paces,
    now: Timestamp,
) -> Joined {
    let Some(picture) = picture else { return off(declared, now) };
    let seen = Seen::of(picture, paces, now);
    let claims: Vec<_> = declared.machines.iter().map(|(name, machine)| claims::claim(name, machine)).collect();
    let matches = matched(&claims, seen.nodes, Some(&seen.talos), &memory.identities);
    memory.remember(&claims, &matches);
    let mut joined = Joined { next_turn: seen.next_turn(), ..Joined::default() };
    let etcd = tenant::etcd(&seen, memory);
    let mut judged: BTreeMap<&str, Judged> = BTreeMap::new();
    for ((name, spec), found) in declared.machines.iter().zip(&matches.found) {
        let one = machine::judge(spec, found, &matches, &seen, &etcd);
        memory.machine(name, &one, &seen, &mut joined);
        judged.insert(name, one);
    }
    for (name, group) in &declared.groups {
        let of_group = group.machines.iter().filter_map(|machine| judged.get(machine.as_str()));
        memory.group(name, tenant::counts(of_group, 0), now, &mut joined);
    }
    tenant::tenant(&judged, &matches, &seen, &etcd, memory, &mut joined);
    memory.keep_only(declared);
    joined
}

/// Says of everything that nobody looks.
fn off(declared: &Declared, now: Timestamp) -> Joined {
    let machines = declared.machines.iter().map(|(name, _)| (name.clone(), observed::machine_disabled(now)));
    let groups = declared.groups.iter().map(|(name, _)| (name.clone(), observed::group_not_observed()));
    Joined {
        machines: machines.collect(),
        groups: groups.collect(),
        tenant: Some(observed::tenant_disabled(now)),
        ..Joined::default()
    }
}

/// A picture as it is to be taken now: without what is too old to be said.
struct Seen<'p> {
    picture: &'p Picture,
    /// Empty where they are unknown.
    nodes: &'p [rezus_core::observed::facts::Node],
    /// How new the nodes are.
    of_nodes: Freshness,
    /// Members and machines that are known.
    talos: Talos,
    paces: Paces,
    now: Timestamp,
}

impl<'p> Seen<'p> {
    fn of(picture: &'p Picture, paces: Paces, now: Timestamp) -> Self {
        let nodes = picture.kubernetes.nodes.as_ref();
        let of_nodes =
            nodes.map_or(Freshness::Unknown, |nodes| paces.kubernetes.freshness(nodes.observed_at, now));
        let known = nodes.filter(|_| of_nodes != Freshness::Unknown);
        let members = picture.talos.members.as_ref();
        let members = members.filter(|seen| paces.talos.freshness(seen.observed_at, now) != Freshness::Unknown);
        let machines = picture.talos.machines.values().filter(|seen| {
            pace_of_machine(paces, &seen.value).freshness(seen.observed_at, now) != Freshness::Unknown
        });
        let talos = Talos {
            members: members.map(|members| members.value.clone()),
            machines: machines.map(|seen| seen.value.clone()).collect(),
            ..Talos::default()
        };
        Self { picture, nodes: known.map_or(&[], |nodes| &nodes.value), of_nodes, talos, paces, now }
    }

    /// When any part becomes stale or unknown without any news.
    fn next_turn(&self) -> Option<Timestamp> {
        let Paces { kubernetes, talos, node_metrics } = self.paces;
        let picture = self.picture;
        let of_kubernetes = [
            picture.kubernetes.nodes.as_ref().map(|seen| seen.observed_at),
            picture.kubernetes.failed_checks.as_ref().map(|seen| seen.observed_at),
            picture.kubernetes.pods.as_ref().map(|seen| seen.observed_at),
        ];
        let of_kubernetes = of_kubernetes.into_iter().flatten().map(|at| (kubernetes, at));
        let of_talos = [
            picture.talos.members.as_ref().map(|seen| seen.observed_at),
            picture.talos.etcd.as_ref().map(|seen| seen.observed_at),
        ];
        let of_talos = of_talos.into_iter().flatten().map(|at| (talos, at));
        let machines = picture.talos.machines.values();
        let machines = machines.map(|seen| (pace_of_machine(self.paces, &seen.value), seen.observed_at));
        let metrics = picture.metrics.values().map(|seen| (node_metrics, seen.observed_at));
        let turns = of_kubernetes.chain(of_talos).chain(machines).chain(metrics);
        turns.filter_map(|(pace, at)| pace.next_turn(at, self.now)).min()
    }
}
