//! What is made of what was read: pure functions of facts, their age, and the time.
//!
//! Nothing here remembers a verdict. A scrape that failed brings no facts, so it changes nothing: the last facts are judged
//! on, with their age, and a brief blip leaves every verdict as it was. Only [`Freshness::Unknown`](super::Freshness), ten
//! intervals without news, takes a verdict away; and it is Unknown then, never the last one that was good.

mod clocks;
mod etcd;
mod machine;
mod node;
mod tenant;

use serde::{Deserialize, Serialize};

pub use clocks::{ClockSeen, clocks};
pub use etcd::{EtcdHealth, EtcdSeen, EtcdVerdict, Finding, Membership, Witness, etcd, membership};
pub use machine::{MachineSeen, machine};
pub use node::{Leases, NodeVerdict, NodeWord, node};
pub use tenant::{Counts, counts, tenant};

use super::facts::Holds;
use crate::base::Timestamp;

/// How something is, as a condition says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Whether it is ready.
    pub holds: Holds,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence; empty where the word says all.
    pub message: String,
    /// Since when, where a source tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<Timestamp>,
}

impl Health {
    fn new(holds: Holds, reason: &str, message: impl Into<String>) -> Self {
        Self { holds, reason: reason.to_owned(), message: message.into(), since: None }
    }
}
