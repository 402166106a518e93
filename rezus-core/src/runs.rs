//! Runs: tofu or terraform at work for a tenant. What was asked for, how far it is, and what really happened.
//!
//! A run belongs to neither plane. It reads what a state declares and makes tofu write a new one, through the same
//! backend as everybody; what tofu reports is told on the run itself, and never becomes part of a spec.

pub mod executor;
mod facts;
mod judge;
mod life;
mod name;
mod phase;
mod plan_file;
mod queue;
mod redact;
mod request;
mod secret;
pub mod store;
pub mod stream;
mod tally;
pub mod workspace;

pub use facts::{GroupCounts, RunFacts, TenantKey};
pub use judge::{Asked, Judgement, judge_apply, judge_plan};
pub use life::{
    ApplyEnd, Applying, Approved, AwaitingApproval, Cause, EndPhase, Ended, Learns, Pending, PendingEnd,
    PlanEnd, Planning, Run, RunRecord, WaitEnd,
};
pub use name::{RunName, RunNameError};
pub use phase::{Phase, Stage};
pub use plan_file::{Drifted, PlanFile, PlanFileError, PlannedValues};
pub use queue::Queue;
pub use redact::{MASK, Redactor};
pub use request::{Approval, Operation, RequestError, RunRequest, Target, VariableName};
pub use secret::SecretText;
pub use tally::{Counts, Created, Tally};
