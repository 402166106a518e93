//! How a run moves from phase to phase. Each phase is a type; what it can become is its methods, and nothing else.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Created, Phase, RunFacts, RunName};
use crate::base::{TenantName, Timestamp};
use crate::declared::VersionNumber;

/// Why a run is where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// In one word, for programs.
    pub reason: Cow<'static, str>,
    /// In words, for people. No secrets.
    pub message: String,
}

impl Cause {
    /// A cause.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason: Cow::Borrowed(reason), message: message.into() }
    }
}

/// A run as it is kept: its phase, and what is known of it. Only a [`Run`] makes one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    phase: Phase,
    facts: RunFacts,
}

impl RunRecord {
    /// How far the run is.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// What is known of it.
    pub const fn facts(&self) -> &RunFacts {
        &self.facts
    }

    /// The tenant.
    pub const fn tenant(&self) -> &TenantName {
        &self.facts.tenant.0
    }
}

macro_rules! phases {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(RunFacts);

        impl $name {
            /// What is known of the run.
            pub const fn facts(&self) -> &RunFacts {
                &self.0
            }
        }
    )*};
}

phases!(
    /// A run that waits for its turn.
    Pending,
    /// A run whose plan is being made.
    Planning,
    /// A run whose plan waits for somebody's consent. It holds neither a place nor the state's lock.
    AwaitingApproval,
    /// A run whose plan was approved, and that waits for its turn.
    Approved,
    /// A run that does what was planned.
    Applying
);

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    phase: EndPhase,
    facts: RunFacts,
}

/// How a run can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndPhase {
    /// [`Phase::Planned`]
    Planned,
    /// [`Phase::Applied`]
    Applied,
    /// [`Phase::Failed`]
    Failed,
    /// [`Phase::Cancelled`]
    Cancelled,
    /// [`Phase::Interrupted`]
    Interrupted,
    /// [`Phase::Stale`]
    Stale,
    /// [`Phase::Coalesced`]
    Coalesced,
}

/// A run, however far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// [`Pending`]
    Pending(Pending),
    /// [`Planning`]
    Planning(Planning),
    /// [`AwaitingApproval`]
    AwaitingApproval(AwaitingApproval),
    /// [`Approved`]
    Approved(Approved),
    /// [`Applying`]
    Applying(Applying),
    /// [`Ended`]
    Ended(Ended),
}

fn ended(mut facts: RunFacts, phase: EndPhase, cause: Cause, now: Timestamp) -> Ended {
    facts.reason = Some(cause.reason.into_owned());
    facts.message = Some(cause.message);
    facts.finished_at = Some(now.as_millis());
    Ended { phase, facts }
}

fn because(facts: &mut RunFacts, cause: Cause) {
    facts.reason = Some(cause.reason.into_owned());
    facts.message = Some(cause.message);
}

/// How a run can end before its plan was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PendingEnd {
    /// Another run, of this name, does its work.
    Coalesced(RunName),
    /// This one cancelled it.
    Cancelled(String),
    /// It cannot be begun.
    Failed,
    /// The server cannot tell what became of it.
    Interrupted,
}

impl Pending {
    /// A run that was asked for.
    pub fn new(facts: RunFacts) -> Self {
        Self(facts)
    }

    /// Its turn has come.
    pub fn plan(mut self, now: Timestamp, before: Option<VersionNumber>) -> Planning {
        self.0.started_at = Some(now.as_millis());
        self.0.version_before = before.map(VersionNumber::get);
        self.0.reason = None;
        self.0.message = None;
        Planning(self.0)
    }

    /// Says why it still waits.
    #[must_use]
    pub fn because(mut self, cause: Cause) -> Self {
        because(&mut self.0, cause);
        self
    }

    /// It ends.
    pub fn end(mut self, how: PendingEnd, cause: Cause, now: Timestamp) -> Ended {
        let phase = match how {
            PendingEnd::Coalesced(into) => {
                self.0.coalesced_into = Some(into);
                EndPhase::Coalesced
            }
            PendingEnd::Cancelled(by) => {
                self.0.cancelled_by = Some(by);
                EndPhase::Cancelled
            }
            PendingEnd::Failed => EndPhase::Failed,
            PendingEnd::Interrupted => EndPhase::Interrupted,
        };
        ended(self.0, phase, cause, now)
    }
}

/// How a run can end while its plan is made, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanEnd {
    /// The plan was all there was to do.
    Planned,
    /// There is nothing to do: it is done.
    NothingToDo,
    /// No plan could be made.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// It was ended by what nobody asked for.
    Interrupted,
}

/// Changes what is known of a run while it moves.
pub trait Learns: Sized {
    /// Lets `what` change it.
    #[must_use]
    fn learn(self, what: impl FnOnce(&mut RunFacts)) -> Self;
}

macro_rules! learns {
    ($($name:ident),*) => {$(
        impl Learns for $name {
            fn learn(mut self, what: impl FnOnce(&mut RunFacts)) -> Self {
                what(&mut self.0);
                self
            }
        }
    )*};
}

learns!(Pending, Planning, AwaitingApproval, Approved, Applying);

impl Planning {
    /// The plan is there, and somebody has to agree.
    pub fn await_approval(mut self) -> AwaitingApproval {
        because(&mut self.0, Cause::new("AwaitingApproval", "the plan waits for approval"));
        AwaitingApproval(self.0)
    }

    /// The plan is there, and nobody has to agree: it is done at once.
    pub fn apply(mut self) -> Applying {
        (self.0.reason, self.0.message) = (None, None);
        Applying(self.0)
    }

    /// It ends.
    pub fn end(self, how: PlanEnd, cause: Cause, now: Timestamp) -> Ended {
        let phase = match how {
            PlanEnd::Planned => EndPhase::Planned,
            PlanEnd::NothingToDo => EndPhase::Applied,
            PlanEnd::Failed => EndPhase::Failed,
            PlanEnd::Cancelled => EndPhase::Cancelled,
            PlanEnd::Interrupted => EndPhase::Interrupted,
        };
        ended(self.0, phase, cause, now)
    }
}

/// How a run can end whose plan is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitEnd {
    /// The plan is of what is no longer so.
    Stale,
    /// It was cancelled, and the plan discarded.
    Cancelled,
    /// The plan cannot be applied any more.
    Failed,
}

impl WaitEnd {
    const fn phase(self) -> EndPhase {
        match self {
            Self::Stale => EndPhase::Stale,
            Self::Cancelled => EndPhase::Cancelled,
            Self::Failed => EndPhase::Failed,
        }
    }
}

impl AwaitingApproval {
    /// Somebody agrees.
    pub fn approve(mut self, by: &str) -> Approved {
        self.0.approved_by = Some(by.to_owned());
        because(&mut self.0, Cause::new("Approved", format!("approved by {by}, waits for its turn")));
        Approved(self.0)
    }

    /// It ends.
    pub fn end(self, how: WaitEnd, cause: Cause, now: Timestamp) -> Ended {
        ended(self.0, how.phase(), cause, now)
    }
}

impl Approved {
    /// Its turn has come.
    pub fn apply(mut self) -> Applying {
        (self.0.reason, self.0.message) = (None, None);
        Applying(self.0)
    }

    /// It ends.
    pub fn end(self, how: WaitEnd, cause: Cause, now: Timestamp) -> Ended {
        ended(self.0, how.phase(), cause, now)
    }
}

/// How a run can end that does what was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApplyEnd {
    /// It is done.
    Applied,
    /// It failed.
    Failed,
    /// It was cancelled before it was done.
    Cancelled,
    /// It was ended by what nobody asked for.
    Interrupted,
    /// The plan was of what is no longer so: nothing was done.
    Stale,
}

impl Applying {
    /// It ends.
    pub fn end(self, how: ApplyEnd, cause: Cause, now: Timestamp) -> Ended {
        let phase = match how {
            ApplyEnd::Applied => EndPhase::Applied,
            ApplyEnd::Failed => EndPhase::Failed,
            ApplyEnd::Cancelled => EndPhase::Cancelled,
            ApplyEnd::Interrupted => EndPhase::Interrupted,
            ApplyEnd::Stale => EndPhase::Stale,
        };
        ended(self.0, phase, cause, now)
    }
}

impl Ended {
    /// How it ended.
    pub const fn phase(&self) -> EndPhase {
        self.phase
    }

    /// What is known of it.
    pub const fn facts(&self) -> &RunFacts {
        &self.facts
    }

    /// Says which of the resources that were created are still in no version: as far as is known, where the newest one is
    /// `unread`.
    #[must_use]
    pub fn unrecorded(mut self, still: Vec<Created>, unread: bool) -> Self {
        self.facts.unrecorded = still;
        self.facts.unread = unread;
        self
    }

    /// Says that somebody has taken care of what was created and not recorded.
    #[must_use]
    pub fn dismiss(mut self, by: &str) -> Self {
        self.facts.dismissed_by = Some(by.to_owned());
        self
    }
}

impl Run {
    /// How far it is.
    pub const fn phase(&self) -> Phase {
        match self {
            Self::Pending(_) => Phase::Pending,
            Self::Planning(_) => Phase::Planning,
            Self::AwaitingApproval(_) | Self::Approved(_) => Phase::AwaitingApproval,
            Self::Applying(_) => Phase::Applying,
            Self::Ended(ended) => match ended.phase {
                EndPhase::Planned => Phase::Planned,
                EndPhase::Applied => Phase::Applied,
                EndPhase::Failed => Phase::Failed,
                EndPhase::Cancelled => Phase::Cancelled,
                EndPhase::Interrupted => Phase::Interrupted,
                EndPhase::Stale => Phase::Stale,
                EndPhase::Coalesced => Phase::Coalesced,
            },
        }
    }

    /// What is known of it.
    pub const fn facts(&self) -> &RunFacts {
        match self {
            Self::Pending(run) => &run.0,
            Self::Planning(run) => &run.0,
            Self::AwaitingApproval(run) => &run.0,
            Self::Approved(run) => &run.0,
            Self::Applying(run) => &run.0,
            Self::Ended(run) => &run.facts,
        }
    }

    /// As it is kept.
    pub fn record(&self) -> RunRecord {
        RunRecord { phase: self.phase(), facts: self.facts().clone() }
    }
}

impl From<RunRecord> for Run {
    fn from(record: RunRecord) -> Self {
        let RunRecord { phase, facts } = record;
        let ended = |facts, phase| Self::Ended(Ended { phase, facts });
        match phase {
            Phase::Pending => Self::Pending(Pending(facts)),
            Phase::Planning => Self::Planning(Planning(facts)),
            Phase::AwaitingApproval if facts.approved_by.is_some() => Self::Approved(Approved(facts)),
            Phase::AwaitingApproval => Self::AwaitingApproval(AwaitingApproval(facts)),
            Phase::Applying => Self::Applying(Applying(facts)),
            Phase::Planned => ended(facts, EndPhase::Planned),
            Phase::Applied => ended(facts, EndPhase::Applied),
            Phase::Failed => ended(facts, EndPhase::Failed),
            Phase::Cancelled => ended(facts, EndPhase::Cancelled),
            Phase::Interrupted => ended(facts, EndPhase::Interrupted),
            Phase::Stale => ended(facts, EndPhase::Stale),
            Phase::Coalesced => ended(facts, EndPhase::Coalesced),
        }
    }
}
