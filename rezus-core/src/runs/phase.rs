//! How far a run is, and what of it a program is executed for.

use serde::{Deserialize, Serialize};

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It waits for its turn.
    Pending,
    /// The plan is being made.
    Planning,
    /// The plan is there and waits for somebody's consent, or for its turn after that.
    AwaitingApproval,
    /// What was planned is being done.
    Applying,
    /// The plan is there, and that was all.
    Planned,
    /// It is done.
    Applied,
    /// It failed.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// It was ended by what nobody asked for.
    Interrupted,
    /// What it was decided on is no longer so.
    Stale,
    /// Another run does its work.
    Coalesced,
}

/// What of a run a program is executed for: each at most once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Making the plan.
    Plan,
    /// Making it again, where it was not kept.
    PlanAgain,
    /// Doing what it says.
    Apply,
}

impl Phase {
    /// As the API has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Planning => "Planning",
            Self::AwaitingApproval => "AwaitingApproval",
            Self::Applying => "Applying",
            Self::Planned => "Planned",
            Self::Applied => "Applied",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Interrupted => "Interrupted",
            Self::Stale => "Stale",
            Self::Coalesced => "Coalesced",
        }
    }

    /// Tells whether nothing more will happen.
    pub const fn is_end(self) -> bool {
        !matches!(self, Self::Pending | Self::Planning | Self::AwaitingApproval | Self::Applying)
    }
}

impl Stage {
    /// All of them, in their order.
    pub const ALL: [Self; 3] = [Self::Plan, Self::PlanAgain, Self::Apply];

    /// In lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::PlanAgain => "plan-again",
            Self::Apply => "apply",
        }
    }
}
