//! What is to be said of how things are where nothing was observed.

use std::borrow::Cow;

use rezus_core::base::Timestamp;

use super::item::{Piece, Row};
use super::object::{Condition, seconds};

/// A condition that is made from what was observed alone.
pub(super) fn of_collector(
    kind: &'static str,
    holds: &'static str,
    reason: impl Into<Cow<'static, str>>,
    message: String,
    since: Timestamp,
) -> Condition {
    Condition {
        kind,
        holds,
        reason: reason.into(),
        message,
        last_transition_time: seconds(since),
        source: "collector",
    }
}

/// Of a machine that no scrape has seen. It holds since the machine is declared.
pub(super) fn machine_not_observed(since: Timestamp) -> Piece {
    let message = "the machine was not observed yet".to_owned();
    let ready = of_collector("Ready", "Unknown", "NotObserved", message, since);
    Piece::new(&[ready]).cells([Row::default().text(Some("Unknown")), Row::default().unknown()])
}

/// Of a node group none of whose machines was seen. It holds since the group is declared.
pub(super) fn group_not_observed(since: Timestamp) -> Piece {
    let message = "none of its machines was observed yet".to_owned();
    let ready = of_collector("Ready", "Unknown", "NotObserved", message, since);
    Piece::new(&[ready]).cells([Row::default().unknown(), Row::default().unknown()])
}

/// Of a tenant whose cluster was not observed.
pub(super) fn tenant_not_observed() -> Piece {
    Piece::new(&[]).cells([Row::default().unknown(), Row::default().unknown()])
}

/// Of a machine of a cluster that is not observed.
pub(super) fn machine_disabled(now: Timestamp) -> Piece {
    let ready = of_collector("Ready", "Unknown", "Disabled", DISABLED.to_owned(), now);
    Piece::new(&[ready]).cells([Row::default().text(Some("Unknown")), Row::default().unknown()])
}

/// Of a node group of a cluster that is not observed.
pub(super) fn group_disabled(now: Timestamp) -> Piece {
    let ready = of_collector("Ready", "Unknown", "Disabled", DISABLED.to_owned(), now);
    Piece::new(&[ready]).cells([Row::default().unknown(), Row::default().unknown()])
}

/// Of a tenant whose cluster is not observed.
pub(super) fn tenant_disabled(now: Timestamp) -> Piece {
    let ready = of_collector("Ready", "Unknown", "Disabled", DISABLED.to_owned(), now);
    Piece::new(&[ready]).cells([Row::default().unknown(), Row::default().unknown()])
}

const DISABLED: &str =
    "the cluster is not observed: see `tenant configure --collect` and the server's settings";
