//! How one machine is, and what is shown of it.

use std::collections::BTreeSet;

use rezus_core::client::{FoundBy, MachineSpec, MachineStatus};
use rezus_core::observed::facts::{Holds, MachineMetrics, TalosMachine};
use rezus_core::observed::judge::{self, Health, MachineSeen, Membership};
use rezus_core::observed::{Found, Freshness, Matches, Observation, Rule};

use super::memory::{Said, Told};
use super::{Seen, parts};
use crate::kube::item::Row;
use crate::kube::object::seconds;

/// How a machine is, and all that is to be shown of it.
pub(super) struct Judged {
    pub(super) health: Health,
    pub(super) told: Told<MachineStatus>,
    /// By what names samples of it are known; none where it was not seen.
    pub(super) sampled_as: BTreeSet<String>,
}

/// Judges a machine by what it was matched to.
pub(super) fn judge(spec: &MachineSpec, found: &Found, matches: &Matches<'_>, seen: &Seen<'_>) -> Judged {
    let matched = match found {
        Found::Matched { seen: at, rule, evidence, .. } => {
            matches.seen.get(*at).map(|one| (one, *rule, evidence))
        }
        Found::Ambiguous { .. } | Found::Missing => None,
    };
    let node = matched.and_then(|(one, ..)| one.node);
    let verdict = node.map(|node| judge::node(node, seen.leases, seen.version()));
    let machine = matched.and_then(|(one, ..)| one.machine);
    let observation = machine.and_then(|machine| seen.picture.talos.machines.get(&machine.asked));
    let of_machine = observation.map(|seen_at| freshness(seen, seen_at));
    let members = seen.picture.talos.members.as_ref();
    let of_members = members.map(|members| seen.paces.talos.freshness(members.observed_at, seen.now));
    let is_control_plane = spec.role.as_deref() == Some("controlplane");
    let etcd = is_control_plane.then(|| membership(seen, machine, node.map(|node| node.name.as_str())));
    let health = judge::machine(&MachineSeen {
        found,
        kubernetes: seen.picture.kubernetes.nodes.as_ref().map(|_| seen.of_nodes),
        talos: if observation.is_some() { of_machine } else { of_members },
        node: verdict.as_ref(),
        machine,
        etcd,
    });
    let mut news = MachineStatus {
        health: Some(health.reason.clone()),
        warming: seen.is_warming(),
        found_by: matched
            .map(|(_, rule, evidence)| FoundBy { rule: word(rule).to_owned(), evidence: evidence.clone() }),
        ..MachineStatus::default()
    };
    let nodes_at = seen.picture.kubernetes.nodes.as_ref().map(|nodes| nodes.observed_at);
    if let (Some(node), Some(verdict), Some(at)) = (node, &verdict, nodes_at) {
        let mut status = parts::node(node, at, seen.of_node_status);
        verdict.word.reason().clone_into(&mut status.health);
        status.message.clone_from(&verdict.message);
        news.node = Some(status);
    }
    news.talos = observation.map(|one| parts::talos(one, freshness(seen, one)));
    let metrics = metrics(spec, node.map(|node| node.name.as_str()), seen);
    news.metrics = metrics.map(|(one, age)| parts::metrics(one, age));
    let times =
        [node.and(nodes_at), observation.map(|one| one.observed_at), metrics.map(|(one, _)| one.observed_at)];
    // Of a machine that is not there it is known since when that was looked at.
    let observed_at = times.into_iter().flatten().max().or(nodes_at.filter(|_| *found == Found::Missing));
    let mut status = news.clone();
    status.observed_at = observed_at.map(seconds);
    if let (Some(shown), Some(node)) = (&mut status.node, node) {
        let usage = seen.picture.kubernetes.usage.iter().flat_map(|usage| usage.value.iter());
        shown.usage = usage.into_iter().find(|usage| usage.node == node.name).map(parts::usage);
    }
    if let (Some(shown), Some(machine)) = (&mut status.talos, machine) {
        parts::talos_numbers(shown, machine);
    }
    if let (Some(shown), Some((one, _))) = (&mut status.metrics, metrics) {
        parts::metrics_numbers(shown, &one.value);
    }
    undated(&mut news);
    let cells = vec![
        Row::default().text(Some(holds(health.holds))),
        observed_at.map_or_else(|| Row::default().unknown(), |at| Row::default().age(at)),
    ];
    let ready = Said::new("Ready", holds(health.holds), &health.reason, health.message.clone());
    let of_node = node.map(|node| &node.name);
    let of_talos = machine.map(|machine| machine.node_name.as_ref().unwrap_or(&machine.asked));
    let of_metrics = metrics.map(|(one, _)| one.value.node_name.as_ref().unwrap_or(&one.value.asked));
    let sampled_as = [of_node, of_talos, of_metrics].into_iter().flatten().cloned().collect();
    let told = Told { conditions: vec![ready], news, status, cells, observed_at };
    Judged { health, told, sampled_as }
}

/// Takes the dates out of what is compared: a later one alone is no news.
fn undated(news: &mut MachineStatus) {
    if let Some(node) = &mut news.node {
        node.observed_at.clear();
    }
    if let Some(talos) = &mut news.talos {
        talos.observed_at.clear();
    }
    if let Some(metrics) = &mut news.metrics {
        metrics.observed_at.clear();
    }
}

fn freshness(seen: &Seen<'_>, one: &Observation<TalosMachine>) -> Freshness {
    seen.paces.of_machine(&one.value).freshness(one.observed_at, seen.now)
}

fn membership(seen: &Seen<'_>, machine: Option<&TalosMachine>, node: Option<&str>) -> Membership {
    let list = seen.picture.talos.etcd.as_ref();
    let known =
        list.filter(|list| seen.paces.talos.freshness(list.observed_at, seen.now) != Freshness::Unknown);
    judge::membership(known.map(|list| &list.value), machine, node)
}

/// What the machine's `node_exporter` told: the one at one of its addresses, or of its node's name.
fn metrics<'p>(
    spec: &MachineSpec,
    node: Option<&str>,
    seen: &Seen<'p>,
) -> Option<(&'p Observation<MachineMetrics>, Freshness)> {
    let is_it = |one: &&Observation<MachineMetrics>| {
        let asked = one.value.asked.as_str();
        spec.addresses.iter().any(|address| address.address == asked)
            || (node.is_some() && one.value.node_name.as_deref() == node)
    };
    let one = seen.picture.metrics.values().find(is_it)?;
    let age = seen.paces.node_metrics.freshness(one.observed_at, seen.now);
    (age != Freshness::Unknown).then_some((one, age))
}

/// The word that a condition has for it.
pub(super) const fn holds(holds: Holds) -> &'static str {
    match holds {
        Holds::True => "True",
        Holds::False => "False",
        Holds::Unknown => "Unknown",
    }
}

const fn word(rule: Rule) -> &'static str {
    match rule {
        Rule::ProviderId => "ProviderID",
        Rule::SystemUuid => "SystemUUID",
        Rule::Address => "Address",
        Rule::Earlier => "Earlier",
        Rule::Hostname => "Hostname",
    }
}
