//! How one machine is.

use super::super::facts::{Holds, Service, Stage, TalosMachine};
use super::super::{Found, Freshness};
use super::{Health, Membership, NodeVerdict};

/// What was seen of one machine, and how old each source's news is; `None` where a source never told anything.
#[derive(Clone, Copy, Debug)]
pub struct MachineSeen<'a> {
    /// What it was matched to.
    pub found: &'a Found,
    /// How old the list of nodes is.
    pub kubernetes: Option<Freshness>,
    /// How old what Talos told is: this machine itself, or, where it is missing, the list of members.
    pub talos: Option<Freshness>,
    /// The verdict on its Node, where it has one.
    pub node: Option<&'a NodeVerdict>,
    /// What it told itself.
    pub machine: Option<&'a TalosMachine>,
    /// Whether it belongs to etcd, where it is a control plane.
    pub etcd: Option<Membership>,
}

/// Judges a machine.
///
/// It is ready where nothing that is known speaks against it and Kubernetes says that its Node is, not too long ago. A Node
/// that is [`Unreachable`](super::NodeWord::Unreachable) makes it not ready: its control plane is there and hears nothing.
pub fn machine(seen: &MachineSeen<'_>) -> Health {
    let known =
        |freshness: Option<Freshness>| freshness.is_some_and(|freshness| freshness < Freshness::Unknown);
    let (kubernetes, talos) = (known(seen.kubernetes), known(seen.talos));
    if seen.kubernetes.is_none() && seen.talos.is_none() {
        return Health::new(Holds::Unknown, "NotObserved", "nothing was ever observed of this cluster");
    }
    if !kubernetes && !talos {
        return Health::new(Holds::Unknown, "Stale", "what was observed last is too old");
    }
    match seen.found {
        Found::Missing => {
            return Health::new(Holds::False, "Missing", "neither Kubernetes nor Talos shows such a machine");
        }
        Found::Ambiguous { candidates } => {
            let message = format!("it may be any of these: {}", candidates.join(", "));
            return Health::new(Holds::Unknown, "Ambiguous", message);
        }
        Found::Matched { .. } => {}
    }
    let machine = seen.machine.filter(|machine| talos && machine.answered_at.is_some());
    let node = seen.node.filter(|_| kubernetes);
    // What the machine itself does explains best why its Node is not ready.
    if let Some((reason, message)) = machine.and_then(busy) {
        return Health::new(Holds::False, reason, message);
    }
    if let Some(node) = node.filter(|node| !node.word.works()) {
        let since = node.since;
        return Health { since, ..Health::new(Holds::False, node.word.reason(), node.message.clone()) };
    }
    if talos && seen.etcd == Some(Membership::Absent) {
        let message = "it is a control plane, but no started member of etcd";
        return Health::new(Holds::False, "EtcdNotJoined", message);
    }
    if let Some((reason, message)) = machine.and_then(unmet) {
        return Health::new(Holds::False, reason, message);
    }
    match (node, kubernetes) {
        (Some(node), _) => {
            let (since, reason) = (node.since, node.word.reason());
            Health { since, ..Health::new(Holds::True, reason, node.message.clone()) }
        }
        (None, true) => Health::new(Holds::False, "NotJoined", "Kubernetes has no Node of it"),
        (None, false) => {
            let when = if seen.kubernetes.is_some() { "is too old" } else { "was never read" };
            let message = format!("what Kubernetes says of it {when}; Talos has nothing against it");
            Health::new(Holds::Unknown, "KubernetesUnknown", message)
        }
    }
}

/// What a machine does instead of running.
fn busy(machine: &TalosMachine) -> Option<(&'static str, String)> {
    let (reason, doing) = match machine.stage? {
        Stage::Booting => ("Booting", "it boots"),
        Stage::Installing => ("Installing", "Talos is being installed"),
        Stage::Maintenance => ("Maintenance", "it waits for its configuration"),
        Stage::Rebooting => ("Rebooting", "it reboots"),
        Stage::ShuttingDown => ("ShuttingDown", "it shuts down"),
        Stage::Resetting => ("Resetting", "it is being reset"),
        Stage::Upgrading => ("Upgrading", "Talos is being upgraded"),
        Stage::Running | Stage::Unknown => return None,
    };
    Some((reason, doing.to_owned()))
}

/// What a running machine waits for, or which of its services do not work.
fn unmet(machine: &TalosMachine) -> Option<(&'static str, String)> {
    if machine.ready == Some(false) {
        let unmet = machine.unmet.iter().map(|unmet| format!("{}: {}", unmet.name, unmet.reason));
        return Some(("MachineNotReady", unmet.collect::<Vec<_>>().join("; ")));
    }
    let sick = |service: &&Service| service.state == "Failed" || service.healthy == Some(false);
    let services = machine.services.iter().flatten().filter(sick);
    let services = services.map(|service| match &*service.message {
        "" => format!("{} is {}", service.id, service.state),
        message => format!("{} is {}: {message}", service.id, service.state),
    });
    let services = services.collect::<Vec<_>>();
    (!services.is_empty()).then(|| ("ServiceNotHealthy", services.join("; ")))
}
