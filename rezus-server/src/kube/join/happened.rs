//! What happened to a cluster as a whole, or to many of its machines at once.

use rezus_core::base::Timestamp;

use super::Transition;
use crate::kube::kinds::{KindInfo, MACHINE, TENANT};

/// How many are named of those that went, or were replaced, at the same time.
const EACH: usize = 10;

fn transition(
    kind: &'static KindInfo,
    name: &str,
    reason: &str,
    message: String,
    at: Timestamp,
) -> Transition {
    let (name, reason) = (name.to_owned(), reason.to_owned());
    Transition { kind, name, is_warning: false, reason, message, at }
}

/// Another cluster, in the place of the one before.
pub(super) fn rebuilt(incarnation: u32, at: Timestamp) -> Transition {
    let message = format!("another cluster answers in its place now: its incarnation is {incarnation}");
    transition(&TENANT, "", "Rebuilt", message, at)
}

/// Nodes that are not there any more, nor declared.
pub(super) fn gone(nodes: &[String], at: Timestamp) -> Option<Transition> {
    let named = nodes.iter().take(EACH).map(String::as_str).collect::<Vec<_>>().join(", ");
    let message = match nodes.len().saturating_sub(EACH) {
        0 if nodes.is_empty() => return None,
        0 => format!("not there any more, and declared by no machine: {named}"),
        rest => format!("not there any more, and declared by no machine: {named} and {rest} more"),
    };
    Some(transition(&TENANT, "", "Gone", message, at))
}

/// Machines that are others than before, under the same names.
pub(super) fn replaced(machines: &[String], at: Timestamp) -> Vec<Transition> {
    let one = |machine: &String| {
        let message = "another machine, or another installation of it, answers in its place now";
        transition(&MACHINE, machine, "Replaced", message.to_owned(), at)
    };
    let mut events: Vec<_> = machines.iter().take(EACH).map(one).collect();
    if let Some(rest) = machines.len().checked_sub(EACH).filter(|rest| *rest > 0) {
        let message = format!("of {rest} more machines others answer in their places now");
        events.push(transition(&TENANT, "", "Replaced", message, at));
    }
    events
}
