//! One machine as it was seen, joined from what Kubernetes and what Talos tell of it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::super::facts::{Member, Node, Talos, TalosMachine};
use super::super::machine_id;
use super::keys::{self, Key};
use super::{Rule, pairs};

/// A machine that was seen. At least one of the three is there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen<'a> {
    /// As a Node of Kubernetes.
    pub node: Option<&'a Node>,
    /// As a member that Talos' discovery knows.
    pub member: Option<&'a Member>,
    /// As what the machine told itself.
    pub machine: Option<&'a TalosMachine>,
}

/// Which machine something was: what stays, and what does not, over reboots and new installations. Empty where unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `machineID`: of one installation.
    pub machine_id: String,
    /// `systemUUID`: of the hardware.
    pub system_uuid: String,
    /// `bootID`: another one after each boot.
    pub boot_id: String,
    /// The Node's UID.
    pub node_uid: String,
}

impl Identity {
    /// Tells whether that is another machine, or another installation of it; never by what either does not know.
    pub(super) fn is_other(&self, now: &Self) -> bool {
        let differ = |before: &str, now: &str| !before.is_empty() && !now.is_empty() && before != now;
        let is_unknown = |before: &str, now: &str| before.is_empty() || now.is_empty();
        // Where neither id is known of both, a Node that was made anew for another boot is another machine.
        let is_anew = is_unknown(&self.machine_id, &now.machine_id)
            && is_unknown(&self.system_uuid, &now.system_uuid)
            && differ(&self.boot_id, &now.boot_id)
            && differ(&self.node_uid, &now.node_uid);
        is_anew
            || differ(&self.machine_id, &now.machine_id)
            || differ(&self.system_uuid.to_lowercase(), &now.system_uuid.to_lowercase())
    }

    pub(super) fn keys(&self) -> Vec<Key> {
        let id = self.machine_id.to_lowercase();
        if id.is_empty() { Vec::new() } else { vec![Key::Text(id)] }
    }
}

impl<'a> Seen<'a> {
    /// The node's name, or, where that is not known, by which address it was asked.
    pub fn name(&self) -> &'a str {
        let of_machine = self.machine.map(|machine| machine.node_name.as_deref().unwrap_or(&machine.asked));
        self.node
            .map(|node| node.name.as_str())
            .or_else(|| self.member.map(|member| member.node_name.as_str()))
            .or(of_machine)
            .unwrap_or_default()
    }

    /// Which machine it is.
    pub fn identity(&self) -> Identity {
        let info = self.node.map(|node| &node.info);
        let of_info = |text: &String| (!text.is_empty()).then(|| text.to_lowercase());
        Identity {
            machine_id: self.machine_id().unwrap_or_default(),
            system_uuid: info
                .and_then(|info| of_info(&info.system_uuid))
                .or_else(|| self.machine?.system_uuid.clone())
                .unwrap_or_default(),
            boot_id: info.map(|info| info.boot_id.clone()).unwrap_or_default(),
            node_uid: self.node.map(|node| node.uid.clone()).unwrap_or_default(),
        }
    }

    fn machine_id(&self) -> Option<String> {
        let told = self.node.map(|node| node.info.machine_id.to_lowercase()).filter(|id| !id.is_empty());
        told.or_else(|| machine_id(&self.member?.node_id))
            .or_else(|| machine_id(self.machine?.node_id.as_deref()?))
    }

    /// Its system's UUIDs, in either order of bytes.
    pub(super) fn uuids(&self) -> BTreeSet<u128> {
        let of_node = self.node.map(|node| node.info.system_uuid.as_str());
        let of_machine = self.machine.and_then(|machine| machine.system_uuid.as_deref());
        let plain = [of_node, of_machine].into_iter().flatten().filter_map(keys::uuid);
        plain.flat_map(|uuid| [uuid, keys::mixed_endian(uuid)]).collect()
    }

    pub(super) fn keys(&self, rule: Rule) -> Vec<Key> {
        let mut keys = match rule {
            Rule::ProviderId => {
                let of_node = self.node.and_then(|node| node.provider_id.as_deref());
                let of_machine = self.machine.and_then(|machine| machine.provider_id.as_deref());
                [of_node, of_machine].into_iter().flatten().flat_map(keys::provider_id).collect()
            }
            Rule::SystemUuid => self.uuids().into_iter().map(Key::Uuid).collect(),
            Rule::Address => self.addresses(),
            Rule::Earlier => self.machine_id().map(Key::Text).into_iter().collect(),
            Rule::Hostname => self.names().filter_map(keys::hostname).collect::<Vec<_>>(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn addresses(&self) -> Vec<Key> {
        let node = self.node.iter().flat_map(|node| &node.addresses);
        let node = node.filter(|address| matches!(&*address.kind, "InternalIP" | "ExternalIP"));
        let told = self.member.iter().flat_map(|member| &member.addresses);
        let told = told.chain(self.machine.iter().flat_map(|machine| &machine.addresses));
        node.filter_map(|address| keys::address(&address.address))
            .chain(told.filter_map(|address| keys::ip(*address)))
            .chain(self.machine.and_then(|machine| keys::address(&machine.asked)))
            .collect()
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        let node = self.node.map(|node| node.name.as_str());
        let member = self.member.map(|member| member.node_name.as_str());
        let machine = self.machine.and_then(|machine| machine.node_name.as_deref());
        [node, member, machine].into_iter().flatten()
    }

    /// By what it is known when Kubernetes and Talos are joined: the machine ID, the UUID, addresses, the name.
    fn joining(&self, turn: Turn) -> Vec<Key> {
        match turn {
            Turn::MachineId => self.keys(Rule::Earlier),
            Turn::Uuid => self.keys(Rule::SystemUuid),
            Turn::Address => self.keys(Rule::Address),
            Turn::Name => {
                let mut keys = self.names().map(|name| Key::Text(name.to_lowercase())).collect::<Vec<_>>();
                keys.dedup();
                keys
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Turn {
    MachineId,
    Uuid,
    Address,
    Name,
}

/// Joins what was told of each machine; gives the machines, sorted by name, and nodes that were left behind.
pub(super) fn joined<'a>(nodes: &'a [Node], talos: Option<&'a Talos>) -> (Vec<Seen<'a>>, Vec<&'a Node>) {
    let (nodes, stale) = left_behind(nodes);
    let nodes = nodes.into_iter().map(|node| Seen { node: Some(node), ..Seen::default() });
    let members = talos.and_then(|talos| talos.members.as_deref()).unwrap_or_default();
    let members = members.iter().map(|member| Seen { member: Some(member), ..Seen::default() });
    let machines = talos.map(|talos| talos.machines.as_slice()).unwrap_or_default();
    let machines = machines.iter().map(|machine| Seen { machine: Some(machine), ..Seen::default() });
    let mut seen = join(join(members.collect(), machines.collect()), nodes.collect());
    // By more than the name: what is found must not hang on the order in which it came.
    let rest = |seen: &Seen<'_>| {
        let identity = seen.identity();
        (identity.node_uid, identity.machine_id, seen.addresses())
    };
    seen.sort_by(|one, other| one.name().cmp(other.name()).then_with(|| rest(one).cmp(&rest(other))));
    (seen, stale)
}

fn join<'a>(mut left: Vec<Seen<'a>>, right: Vec<Seen<'a>>) -> Vec<Seen<'a>> {
    let mut free_left = vec![true; left.len()];
    let mut free_right = vec![true; right.len()];
    for turn in [Turn::MachineId, Turn::Uuid, Turn::Address, Turn::Name] {
        let of = |side: &[Seen<'a>]| side.iter().map(|seen| seen.joining(turn)).collect::<Vec<_>>();
        let (left_keys, right_keys) = (of(&left), of(&right));
        let round = pairs::round(&left_keys, &right_keys, |from, at| free_left[from] && free_right[at]);
        for (from, at, _) in round.decided {
            let (one, other) = (&mut left[from], &right[at]);
            *one = Seen {
                node: one.node.or(other.node),
                member: one.member.or(other.member),
                machine: one.machine.or(other.machine),
            };
            free_left[from] = false;
            free_right[at] = false;
        }
    }
    left.extend(right.into_iter().zip(free_right).filter_map(|(seen, free)| free.then_some(seen)));
    left
}

/// How much later than of its twin a lease must have been renewed for the twin to be dead.
const DEAD: Duration = Duration::from_mins(2);

/// Tells nodes that are there from those that a machine left behind when it got another name: two Nodes of one machine ID,
/// the older of which does not renew its lease.
fn left_behind(nodes: &[Node]) -> (Vec<&Node>, Vec<&Node>) {
    let mut newest: HashMap<&str, &Node> = HashMap::new();
    let age = |node: &Node| (node.created_at, node.lease_renewed_at, node.name.clone());
    for node in nodes.iter().filter(|node| !node.info.machine_id.is_empty()) {
        let known = newest.entry(&node.info.machine_id).or_insert(node);
        if age(known) < age(node) {
            *known = node;
        }
    }
    let stale = |node: &&Node| {
        newest.get(node.info.machine_id.as_str()).is_some_and(|newest| {
            let dead = match (newest.lease_renewed_at, node.lease_renewed_at) {
                (Some(newest), Some(lease)) => newest.since(lease) > DEAD,
                (Some(_), None) => true,
                (None, _) => false,
            };
            newest.name != node.name && dead
        })
    };
    let (mut stale, there): (Vec<_>, Vec<_>) = nodes.iter().partition(stale);
    stale.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    (there, stale)
}
