//! What is to be said of how things are: nothing is observed yet, and that is what is said.

use super::object::Condition;

/// The condition of a machine that no scrape has seen. It holds since the machine is declared.
pub(super) fn not_observed(since: String) -> Condition {
    Condition {
        kind: "Ready",
        holds: "Unknown",
        reason: "NotObserved",
        message: "the machine was not observed yet".to_owned(),
        last_transition_time: since,
        source: "collector",
    }
}
