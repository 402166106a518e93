//! What is believed of a machine that several objects describe.

use std::collections::BTreeSet;

use rezus_core::declared::resource::{AddressType, Role};

use super::MachineModel;

/// What one object says. Each value with how much it is to be believed: the greatest wins, of equals the first.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) address: String,
    pub(super) provider: &'static str,
    pub(super) is_talos: bool,
    /// The instance key, if it is a text.
    pub(super) key: Option<String>,
    pub(super) name: Option<(String, i32)>,
    pub(super) hostname: Option<(String, i32)>,
    pub(super) role: Option<(Role, i32)>,
    pub(super) group: Option<(String, i32)>,
    pub(super) provider_id: Option<String>,
    pub(super) cpus: Option<String>,
    pub(super) tainted: bool,
    pub(super) addresses: BTreeSet<(AddressType, String)>,
    pub(super) problems: BTreeSet<&'static str>,
    pub(super) described_by: BTreeSet<String>,
}

/// Puts together what is said of a machine: by its own object, and by Talos resources, which have no addresses that it
/// has not.
pub(super) fn machine(main: &Said, mut others: Vec<Said>) -> MachineModel {
    others.sort_by(|a, b| a.address.cmp(&b.address));
    let all: Vec<&Said> = std::iter::once(main).chain(&others).collect();
    let mut problems: BTreeSet<&'static str> = all.iter().flat_map(|said| &said.problems).copied().collect();
    let role = best(all.iter().filter_map(|said| said.role));
    if all.iter().filter_map(|said| said.role).any(|(other, _)| Some(other) != role) {
        problems.insert("role");
    }
    let name = best(all.iter().filter_map(|said| said.name.clone()));
    let key = main.key.clone().filter(|_| main.is_talos);
    MachineModel {
        address: main.address.clone(),
        provider: main.provider,
        name: name.or(key),
        hostname: best(all.iter().filter_map(|said| said.hostname.clone())),
        role,
        group: best(all.iter().filter_map(|said| said.group.clone())),
        provider_id: main.provider_id.clone(),
        addresses: main.addresses.clone(),
        cpus: main.cpus.clone(),
        tainted: main.tainted,
        also_known_as: others.iter().map(|said| said.address.clone()).collect(),
        problems,
        described_by: all.iter().flat_map(|said| &said.described_by).cloned().collect(),
    }
}

fn best<T>(said: impl Iterator<Item = (T, i32)>) -> Option<T> {
    let best = said.reduce(|best, other| if other.1 > best.1 { other } else { best });
    best.map(|(value, _)| value)
}
