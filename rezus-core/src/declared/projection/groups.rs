//! Node groups: the machines whose mappings name the same one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assemble::Assembled;
use super::names::{self, Wish};
use crate::declared::resource::{Machine, NodeGroup, Role};

/// What is known of a group before its machines have names: how often each rule named it.
#[derive(Debug, Default)]
pub(super) struct Rules(BTreeMap<String, u64>);

/// Finds the groups, and has each machine refer to its own. Returns them by the name of their object.
pub(super) fn assign(assembled: &mut [Assembled]) -> BTreeMap<String, Rules> {
    let values: BTreeSet<String> =
        assembled.iter().filter_map(|one| one.group.as_ref()).map(|found| found.value.clone()).collect();
    let wishes: Vec<_> = values
        .iter()
        .map(|value| Wish { name: Some(value), fallback: "group", identity: value.clone() })
        .collect();
    let names = names::assign(&wishes).into_iter().map(Arc::<str>::from);
    let names: BTreeMap<&str, Arc<str>> = values.iter().map(String::as_str).zip(names).collect();
    let mut groups: BTreeMap<String, Rules> = BTreeMap::new();
    for one in assembled {
        if let Some(found) = &one.group
            && let Some(name) = names.get(found.value.as_str())
        {
            let Rules(rules) = groups.entry(name.to_string()).or_default();
            *rules.entry(found.source.place.rule.to_string()).or_default() += 1;
            one.machine.node_group = Some(Arc::clone(name));
        }
    }
    groups
}

/// Makes the groups, sorted by object name. `machines` are sorted by object name.
pub(super) fn groups(machines: &[Machine], names: BTreeMap<String, Rules>) -> Vec<NodeGroup> {
    let mut members: BTreeMap<&str, Vec<&Machine>> = BTreeMap::new();
    for machine in machines {
        if let Some(group) = &machine.node_group {
            members.entry(group).or_default().push(machine);
        }
    }
    let group = |(object_name, rules): (String, Rules)| {
        let machines = members.remove(object_name.as_str()).unwrap_or_default();
        group(object_name, &rules, &machines)
    };
    names.into_iter().map(group).collect()
}

fn group(object_name: String, rules: &Rules, machines: &[&Machine]) -> NodeGroup {
    let distinct = |field: fn(&Machine) -> Option<&Arc<str>>| {
        let values: BTreeSet<&Arc<str>> = machines.iter().filter_map(|machine| field(machine)).collect();
        values.into_iter().map(ToString::to_string).collect()
    };
    let roles: BTreeSet<Option<Role>> = machines.iter().map(|machine| machine.role).collect();
    let providers: BTreeSet<&Arc<str>> = machines.iter().map(|machine| &machine.provider).collect();
    NodeGroup {
        object_name,
        role: only(roles).flatten(),
        provider: only(providers).map(ToString::to_string),
        count: u64::try_from(machines.len()).unwrap_or(u64::MAX),
        machines: machines.iter().map(|machine| machine.object_name.clone()).collect(),
        instance_types: distinct(|machine| machine.instance_type.as_ref()),
        regions: distinct(|machine| machine.region.as_ref()),
        source: rules.most_frequent(),
    }
}

fn only<T>(values: BTreeSet<T>) -> Option<T> {
    if values.len() == 1 { values.into_iter().next() } else { None }
}

impl Rules {
    /// Returns the rule by which most machines are in the group; of several the first in order.
    fn most_frequent(&self) -> String {
        let best = self.0.iter().reduce(|best, other| if other.1 > best.1 { other } else { best });
        best.map(|(rule, _)| rule.clone()).unwrap_or_default()
    }
}
