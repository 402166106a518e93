//! The projection: a state and mappings in, declared machines, node groups and the cluster out.
//!
//! Pure and total: an odd attribute costs its field and adds a problem, never an object. The order of blocks and
//! instances in the state does not matter; where something has to come first, it is the smaller address.
//!
//! How machines are put together from what the mappings found:
//!
//! - each current, managed object of kind Machine is one; so is each group of Talos resources that share an address
//!   and have none of a machine; a group that has an address (or the host name) of exactly one machine is merged into
//!   it, of several machines into none, which is a problem of all of them
//! - of a field that several objects name, the greatest precedence wins, then the machine before Talos resources,
//!   then the smaller address
//! - an IP address that is the cluster's is dropped from machines that have another one: what a mapping calls
//!   shared, and the host of the endpoint where no Talos resource is applied to it and either several machines have
//!   it, or there are several control planes and its holder has another address of the same kind and IP version
//! - the name of an object is the provider's name or group's value where that is a DNS-1123 label and no other object
//!   of the kind wishes it; else a slug of it, or of the address, and a hash of what the object is (`names.rs`)

mod assemble;
mod changes;
mod cluster;
mod groups;
mod history;
mod matching;
mod names;
mod parts;
mod providers;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

pub use changes::{
    Change, FieldChange, Identified, ResourceChange, ResourceKind, SpecFields, diff, identified, spec_digest,
};
pub use history::{History, Lifetime, Subject, uid};

use crate::declared::cores;
use crate::declared::index::IndexRow;
use crate::declared::mapping::extract::{self, Extract, Known};
use crate::declared::mapping::{self, Mappings};
use crate::declared::resource::{Machine, MachineKey, Problem, Projection, identity};
use crate::declared::{ResourceAddress, VersionNumber};
use assemble::{Assembled, Common, Members};
use parts::Part;
use shared::Shared;

/// The format of a projection. Raised with every change of what the same state and mappings are made into, so that
/// one kept by another release is never believed.
pub const PROJECTION_FORMAT: u32 = 1;

/// Projects a state. `rows` and `body` are of one document.
pub fn project(mappings: &Mappings, version: VersionNumber, body: &[u8], rows: &[IndexRow]) -> Projection {
    let extracts = extract::extract(mappings, body, rows);
    from_extracts(version, rows, &extracts, |row| known(mappings, row))
}

/// Projects one machine from the objects that feed it ([`Machine::fed_by`]) and what is known of it
/// ([`Machine::key`]): the same as in the projection of the whole state. `None` where the machine's own object is not
/// among them, or is none.
pub fn project_machine<B: AsRef<[u8]>>(
    mappings: &Mappings,
    key: &MachineKey,
    objects: &[(IndexRow, B)],
) -> Option<Machine> {
    let at_hand: Vec<_> = objects.iter().map(|(row, bytes)| (row, bytes.as_ref())).collect();
    let extracts = mapping::run_some(mappings, &at_hand);
    let rows: Vec<_> = objects.iter().map(|(row, _)| row.clone()).collect();
    machine_from_extracts(&rows, &extracts, key)
}

/// Tells whether a managed object's type is known.
fn known(mappings: &Mappings, row: &IndexRow) -> Known {
    let source = providers::source(&row.provider).unwrap_or_default();
    mappings.known(&row.resource_type, &source)
}

fn from_extracts(
    version: VersionNumber,
    rows: &[IndexRow],
    extracts: &[Extract],
    known: impl Fn(&IndexRow) -> Known,
) -> Projection {
    let parts = parts::sorted(rows, extracts);
    let shared = Shared::of(&parts);
    let members = matching::machines(&parts, &shared);
    let mut assembled = cores::spread(members.len(), |range| {
        let mut common = Common::default();
        let members = members.get(range).unwrap_or_default();
        members.iter().map(|members| assemble::machine(members, rows, &mut common)).collect()
    });
    report_equal_ids(&mut assembled, &members);
    let node_groups = groups::assign(&mut assembled);
    let mut machines: Vec<_> = assembled.into_iter().map(|assembled| assembled.machine).collect();
    // They are kept for long.
    machines.shrink_to_fit();
    name(&mut machines);
    machines.sort_by(|a, b| a.object_name.cmp(&b.object_name));
    let node_groups = groups::groups(&machines, node_groups);
    Projection { version, cluster: cluster::cluster(&parts, rows, known), machines, node_groups }
}

fn machine_from_extracts(rows: &[IndexRow], extracts: &[Extract], key: &MachineKey) -> Option<Machine> {
    let parts = parts::sorted(rows, extracts);
    let is_at = |part: &Part<'_>, address: &ResourceAddress, element: &Option<String>| {
        part.row.address == *address && part.extract.element == *element
    };
    let main = parts.iter().find(|part| part.is_machine() && is_at(part, &key.address, &key.element))?;
    let is_merged = |part: &&Part<'_>| {
        part.is_talos() && key.context.merged.iter().any(|(address, element)| is_at(part, address, element))
    };
    let members = Members {
        main: *main,
        merged: parts.iter().filter(is_merged).copied().collect(),
        dropped: key.context.dropped.clone(),
        problems: key.context.problems.clone(),
    };
    let Assembled { mut machine, group } = assemble::machine(&members, rows, &mut Common::default());
    machine.object_name.clone_from(&key.object_name);
    machine.node_group = group.and_then(|_| key.node_group.clone());
    Some(machine)
}

/// Two machines cannot have one ID: both get a problem that names the other, the smallest of several. IDs are told
/// apart by provider configuration, since some are unique within one installation only.
fn report_equal_ids(assembled: &mut [Assembled], members: &[Members<'_>]) {
    let mut holders: HashMap<(Arc<str>, &str, String), Vec<usize>> = HashMap::new();
    for (place, (one, members)) in assembled.iter().zip(members).enumerate() {
        if let Some(id) = &one.machine.provider_id {
            let key = (Arc::clone(&one.machine.provider), &*members.main.row.provider, id.clone());
            holders.entry(key).or_default().push(place);
        }
    }
    let shown = |machine: &Machine| match &machine.element {
        Some(element) => format!("{} (element {element})", machine.address),
        None => machine.address.to_string(),
    };
    let mut found = Vec::new();
    for places in holders.into_values().filter(|places| places.len() > 1) {
        let names: Vec<_> =
            places.iter().filter_map(|place| assembled.get(*place)).map(|one| shown(&one.machine)).collect();
        for place in 0..places.len() {
            let other = names.get(usize::from(place == 0));
            if let (Some(place), Some(other)) = (places.get(place), other) {
                found.push((*place, format!("{other} has the same one")));
            }
        }
    }
    for (place, reason) in found {
        if let Some(one) = assembled.get_mut(place) {
            one.add_outside(&Problem { field: "providerID".to_owned(), reason });
        }
    }
}

fn name(machines: &mut [Machine]) {
    let wishes: Vec<_> = machines
        .iter()
        .map(|machine| names::Wish {
            name: machine.name.as_deref(),
            fallback: machine.address.as_str(),
            identity: identity(&machine.address, machine.element.as_deref()),
        })
        .collect();
    let names = names::assign(&wishes);
    for (machine, mut name) in machines.iter_mut().zip(names) {
        name.shrink_to_fit();
        machine.object_name = name;
    }
}
