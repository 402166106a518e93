//! The one place where what was observed is put beside what is declared, for output alone: what comes of it can only be
//! written out. Whatever differs between both is computed here, each time, and kept nowhere.

mod claims;
mod departed;
mod happened;
mod machine;
mod memory;
mod parts;
mod tenant;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rezus_core::base::Timestamp;
use rezus_core::client::{MachineSpec, NodeGroupSpec};
use rezus_core::observed::facts::{Node, Talos};
use rezus_core::observed::judge::{self, Health, Leases};
use rezus_core::observed::{Claim, Found, Freshness, Matches, Picture, matched};

use super::item::Piece;
use super::kinds::{KindInfo, MACHINE, NODE_GROUP, TENANT};
use super::observed;
use crate::collector::Paces;
use machine::Judged;
pub(super) use memory::{Memory, SampledAs, is_suspicious};

/// What a tenant declares, as far as it is put beside anything.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// The machines, by name.
    pub machines: Vec<(String, MachineSpec)>,
    /// The node groups, by name.
    pub groups: Vec<(String, NodeGroupSpec)>,
}

/// What is to be shown of it now, where that is another thing than before.
#[derive(Debug, Default)]
pub(super) struct Joined {
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
    pub reason: String,
    /// The same for people.
    pub message: String,
    /// When that was noticed.
    pub at: Timestamp,
}

/// Puts what was observed beside what is declared. Nothing was where there is no picture: the tenant is not observed.
pub(super) fn join(
    declared: &Declared,
    picture: Option<&Picture>,
    memory: &mut Memory,
    paces: Paces,
    now: Timestamp,
) -> Joined {
    let Some(picture) = picture else { return off(declared, now) };
    let seen = Seen::of(picture, paces, now);
    let mut joined = Joined { next_turn: seen.next_turn(), ..Joined::default() };
    let incarnation = picture.incarnations.told();
    let rebuilt = incarnation.filter(|number| memory.is_of_another(*number));
    let claims: Vec<_> =
        declared.machines.iter().map(|(name, machine)| claims::claim(name, machine)).collect();
    let matches = matched(&claims, seen.nodes, Some(&seen.talos), &memory.identities);
    let replaced = replaced(&claims, &matches);
    memory.remember(&claims, &matches);
    let mut went = Vec::new();
    if seen.tells_who_is_there() {
        went = memory.departed.look(&claims, &matches, now);
    }
    let departed = memory.departed.gone(now).clone();
    let next_turn = joined.next_turn.into_iter().chain(memory.departed.next_turn());
    joined.next_turn = next_turn.min();
    let is_control_plane = |machine: &MachineSpec| machine.role.as_deref() == Some("controlplane");
    let declared_ones = declared.machines.iter().filter(|(_, machine)| is_control_plane(machine)).count();
    let etcd = tenant::etcd(&seen, memory, tenant::control_planes(declared_ones, &seen));
    // What is shown from the beginning says that nothing was observed: it is not said twice in other words.
    let is_blank = seen.is_blank() && !memory.shows_machines();
    let mut judged: BTreeMap<&str, (Health, Option<Timestamp>)> = BTreeMap::new();
    for ((name, spec), found) in declared.machines.iter().zip(&matches.found) {
        let Judged { health, told, sampled_as } = machine::judge(spec, found, &matches, &seen);
        memory.sampled_as(name, sampled_as);
        judged.insert(name, (health, told.observed_at));
        if is_blank {
            continue;
        }
        let piece = memory.show(&MACHINE, name, told, now, &mut joined.events);
        joined.machines.extend(piece.map(|piece| (name.clone(), piece)));
    }
    for (name, group) in declared.groups.iter().filter(|_| !is_blank) {
        let of_group: Vec<_> =
            group.machines.iter().filter_map(|machine| judged.get(machine.as_str())).collect();
        let counts = judge::counts(of_group.iter().map(|(health, _)| health), 0);
        let told = tenant::group(&counts, &seen, of_group.iter().filter_map(|(_, at)| *at).max());
        let piece = memory.show(&NODE_GROUP, name, told, now, &mut joined.events);
        joined.groups.extend(piece.map(|piece| (name.clone(), piece)));
    }
    let undeclared = matches.unclaimed.len() + matches.stale.len();
    let counts = judge::counts(judged.values().map(|(health, _)| health), undeclared);
    let clocks = tenant::clocks(&seen, memory);
    let told = tenant::tenant(&counts, &matches, &departed, &seen, etcd.as_ref(), clocks.as_ref());
    joined.tenant = memory.show(&TENANT, "", told, now, &mut joined.events);
    // What changed of the objects comes first: of many machines that went at once not each is told.
    joined.events.extend(rebuilt.map(|incarnation| happened::rebuilt(incarnation, now)));
    joined.events.extend(happened::gone(&went, now));
    joined.events.extend(happened::replaced(&replaced, now));
    memory.keep_only(declared);
    joined
}

/// Machines that are others than before, under the same names.
fn replaced(claims: &[Claim], matches: &Matches<'_>) -> Vec<String> {
    let is_replaced = |found: &Found| matches!(found, Found::Matched { replaced: Some(_), .. });
    let those = claims.iter().zip(&matches.found).filter(|(_, found)| is_replaced(found));
    those.map(|(claim, _)| claim.name.clone()).collect()
}

/// Says of everything that nobody looks.
fn off(declared: &Declared, now: Timestamp) -> Joined {
    let machines = declared.machines.iter().map(|(name, _)| (name.clone(), observed::machine_disabled(now)));
    let groups = declared.groups.iter().map(|(name, _)| (name.clone(), observed::group_disabled(now)));
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
    nodes: &'p [Node],
    /// How new the nodes are.
    of_nodes: Freshness,
    /// How new what they say of themselves is: where no lease is renewed any more, nobody can write it.
    of_node_status: Freshness,
    /// What their leases say together.
    leases: Leases,
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
        let members =
            members.filter(|seen| paces.talos.freshness(seen.observed_at, now) != Freshness::Unknown);
        let machines = picture.talos.machines.values().filter(|seen| {
            paces.of_machine(&seen.value).freshness(seen.observed_at, now) != Freshness::Unknown
        });
        let talos = Talos {
            members: members.map(|members| members.value.clone()),
            machines: machines.map(|seen| seen.value.clone()).collect(),
            ..Talos::default()
        };
        let nodes: &[Node] = known.map_or(&[], |nodes| &nodes.value);
        let leases = Leases::of(nodes, picture.kubernetes.server_time);
        let is_frozen = matches!(leases, Leases::AllStale { dead: true, .. });
        let of_node_status = if is_frozen { of_nodes.max(Freshness::Stale) } else { of_nodes };
        Self { picture, nodes, of_nodes, of_node_status, leases, talos, paces, now }
    }

    /// Tells whether the nodes were told of lately, and by Talos its members, unless that fell silent long ago: what is not told of
    /// is not there.
    fn tells_who_is_there(&self) -> bool {
        let members = self.picture.talos.members.as_ref();
        let of_members = members.map(|seen| self.paces.talos.freshness(seen.observed_at, self.now));
        self.of_nodes == Freshness::Fresh && of_members != Some(Freshness::Stale)
    }

    /// Tells whether the first turn of any source has not come to an end.
    fn is_warming(&self) -> bool {
        !self.picture.awaited.is_empty()
    }

    /// Tells whether nothing was ever told of any machine.
    fn is_blank(&self) -> bool {
        let Picture { kubernetes, talos, metrics, .. } = self.picture;
        kubernetes.nodes.is_none()
            && talos.members.is_none()
            && talos.machines.is_empty()
            && metrics.is_empty()
    }

    /// The API server's version.
    fn version(&self) -> Option<&str> {
        self.picture.kubernetes.version.as_ref().map(|version| version.value.as_str())
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
        let machines = machines.map(|seen| (self.paces.of_machine(&seen.value), seen.observed_at));
        let metrics = picture.metrics.values().map(|seen| (node_metrics, seen.observed_at));
        let turns = of_kubernetes.chain(of_talos).chain(machines).chain(metrics);
        turns.filter_map(|(pace, at)| pace.next_turn(at, self.now)).min()
    }
}
