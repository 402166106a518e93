//! How a run ended: what exit code, stream and accepted versions say, not what was asked for.

use super::executor::{Ending, Exit, Stopped};
use super::{ApplyEnd, Cause, Operation, PlanEnd, Tally};

/// Who asked for an end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Who cancelled the run.
    pub cancelled_by: Option<String>,
    /// Whether the server was about to end.
    pub shutdown: bool,
}

/// How a stage ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement<E> {
    /// How.
    pub end: E,
    /// Why.
    pub cause: Cause,
}

fn judged<E>(end: E, reason: &'static str, message: impl Into<String>) -> Judgement<E> {
    Judgement { end, cause: Cause::new(reason, message) }
}

/// What the tools say of a plan that is not of the state as it is now.
const STALE: &str = "Saved plan is stale";

/// What they say of a state that another has locked.
const LOCKED: &str = "Error acquiring the state lock";

/// The code with which a plan says that there are changes (`-detailed-exitcode`).
const CHANGES: i32 = 2;

/// Judges the making of a plan. `Ok` tells that there is a plan that changes something.
///
/// # Errors
///
/// How the run ends otherwise: that there is nothing to do, too.
pub fn judge_plan(
    operation: Operation,
    ending: Ending,
    last_step: usize,
    tally: &Tally,
    asked: &Asked,
) -> Result<(), Judgement<PlanEnd>> {
    let is_whole = ending.step == last_step;
    match ending.exit {
        Exit::Code(0) if is_whole => Err(match operation {
            Operation::Plan | Operation::Drift => judged(PlanEnd::Planned, "NoChanges", "nothing differs"),
            Operation::Apply | Operation::Destroy => {
                judged(PlanEnd::NothingToDo, "NoChanges", "there is nothing to change")
            }
        }),
        Exit::Code(CHANGES) if is_whole => Ok(()),
        _ => Err(ended_early(
            ending,
            tally,
            asked,
            [PlanEnd::Cancelled, PlanEnd::Interrupted, PlanEnd::Failed],
        )),
    }
}

/// Judges the execution of a plan. `saved` tells whether the state was written after the last operation, and
/// `kept_back` whether tofu left a state that it could not save.
pub fn judge_apply(
    ending: Ending,
    tally: &Tally,
    asked: &Asked,
    saved: bool,
    kept_back: bool,
) -> Judgement<ApplyEnd> {
    let is_done = tally.total > 0 && tally.completed >= tally.total && tally.failed == 0;
    match ending.exit {
        Exit::Code(0) => judged(ApplyEnd::Applied, "Completed", completed(tally)),
        Exit::Code(_) if tally.says(STALE) => judged(
            ApplyEnd::Stale,
            "StateMoved",
            "the state is not the one that was planned on: nothing was changed",
        ),
        _ if kept_back => judged(
            ApplyEnd::Failed,
            "StateNotSaved",
            format!(
                "what was done could not be saved: {}",
                tally.first_error().unwrap_or_else(|| "the state was refused".to_owned())
            ),
        ),
        // All was done and saved: only what came after that failed, letting go of the lock above all.
        _ if saved && (is_done || tally.done.is_some()) => {
            let what = tally.first_error().unwrap_or_else(|| "it was stopped after its last save".to_owned());
            judged(ApplyEnd::Applied, "CompletedWithError", format!("{}; then: {what}", completed(tally)))
        }
        _ => {
            ended_early(ending, tally, asked, [ApplyEnd::Cancelled, ApplyEnd::Interrupted, ApplyEnd::Failed])
        }
    }
}

fn completed(tally: &Tally) -> String {
    match &tally.done {
        Some(done) => format!("{} added, {} changed, {} destroyed", done.add, done.change, done.remove),
        None => format!("{} operations done", tally.completed),
    }
}

/// Judges what did not come to its end: cancelled, interrupted or failed.
fn ended_early<E>(
    ending: Ending,
    tally: &Tally,
    asked: &Asked,
    [cancelled, interrupted, failed]: [E; 3],
) -> Judgement<E> {
    let how = if ending.killed { "killed after the grace" } else { "interrupted" };
    if let Some(by) = &asked.cancelled_by {
        return judged(cancelled, "Cancelled", format!("cancelled by {by}: {how}"));
    }
    match (ending.stopped, ending.exit) {
        (Some(Stopped::TimedOut), _) => {
            judged(failed, "TimedOut", format!("it took longer than is allowed, and was {how}"))
        }
        (Some(Stopped::ServerLost), _) => {
            judged(interrupted, "ServerLost", format!("the server was gone, and it was {how}"))
        }
        (Some(Stopped::Asked), _) if asked.shutdown => {
            judged(interrupted, "ServerStopped", format!("the server was stopped, and it was {how}"))
        }
        (_, Exit::Signal(signal)) => {
            judged(interrupted, "Killed", format!("the program was ended by signal {signal}"))
        }
        (_, Exit::Unknown) => {
            judged(interrupted, "SupervisorLost", "whoever watched the program was killed, and it was ended")
        }
        (_, Exit::Code(_)) if tally.says(LOCKED) => judged(
            failed,
            "StateLocked",
            tally.first_error().unwrap_or_else(|| "another holds the state's lock".to_owned()),
        ),
        (_, Exit::Code(code)) => judged(
            failed,
            "ToolFailed",
            tally.first_error().unwrap_or_else(|| format!("the program ended with code {code}")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::stream::{Diagnostic, Summary};

    fn ending(exit: Exit) -> Ending {
        Ending { exit, step: 1, stopped: None, killed: false }
    }

    fn tally(total: u64, completed: u64, error: Option<&str>) -> Tally {
        let errors = error.into_iter().map(|summary| Diagnostic {
            is_error: true,
            summary: summary.to_owned(),
            detail: String::new(),
            address: None,
            place: None,
        });
        Tally { total, completed, errors: errors.collect(), ..Tally::default() }
    }

    #[test]
    fn a_plan_is_what_its_last_step_says() {
        let asked = Asked::default();
        let plan = |operation, exit, step| {
            judge_plan(operation, Ending { step, ..ending(exit) }, 1, &tally(0, 0, None), &asked)
                .map_err(|judged| (judged.end, judged.cause.reason.into_owned()))
        };
        assert_eq!(plan(Operation::Apply, Exit::Code(2), 1), Ok(()));
        let of = |end, reason: &str| Err((end, reason.to_owned()));
        assert_eq!(plan(Operation::Apply, Exit::Code(0), 1), of(PlanEnd::NothingToDo, "NoChanges"));
        assert_eq!(plan(Operation::Drift, Exit::Code(0), 1), of(PlanEnd::Planned, "NoChanges"));
        assert_eq!(plan(Operation::Plan, Exit::Code(1), 0), of(PlanEnd::Failed, "ToolFailed"));
        assert_eq!(plan(Operation::Plan, Exit::Code(0), 0), of(PlanEnd::Failed, "ToolFailed"));
        assert_eq!(plan(Operation::Plan, Exit::Signal(9), 1), of(PlanEnd::Interrupted, "Killed"));
        assert_eq!(plan(Operation::Plan, Exit::Unknown, 0), of(PlanEnd::Interrupted, "SupervisorLost"));
    }

    #[test]
    fn an_apply_is_what_happened_and_not_what_was_asked_for() {
        let cancel = Asked { cancelled_by: Some("alice".to_owned()), shutdown: false };
        let nobody = Asked::default();
        let stopped = Ending { stopped: Some(Stopped::Asked), ..ending(Exit::Code(1)) };
        let cases = [
            // Asked to end in its last save: it was applied all the same.
            (judge_apply(ending(Exit::Code(0)), &tally(3, 3, None), &cancel, true, false), "Completed"),
            (judge_apply(stopped, &tally(3, 3, None), &cancel, true, false), "CompletedWithError"),
            (judge_apply(stopped, &tally(3, 3, None), &cancel, false, false), "Cancelled"),
            (judge_apply(stopped, &tally(3, 1, None), &cancel, true, false), "Cancelled"),
            (
                judge_apply(ending(Exit::Code(1)), &tally(3, 3, Some("x")), &nobody, true, false),
                "CompletedWithError",
            ),
            (
                judge_apply(ending(Exit::Code(1)), &tally(3, 3, Some("x")), &nobody, false, true),
                "StateNotSaved",
            ),
            (judge_apply(ending(Exit::Code(1)), &tally(3, 2, Some("x")), &nobody, true, false), "ToolFailed"),
            (
                judge_apply(ending(Exit::Code(1)), &tally(0, 0, Some(STALE)), &nobody, false, false),
                "StateMoved",
            ),
            (
                judge_apply(ending(Exit::Code(1)), &tally(0, 0, Some(LOCKED)), &nobody, false, false),
                "StateLocked",
            ),
            (judge_apply(ending(Exit::Signal(9)), &tally(3, 1, None), &nobody, false, false), "Killed"),
        ];
        for (judged, reason) in cases {
            assert_eq!(judged.cause.reason, reason, "{judged:?}");
        }
        let done = Tally {
            done: Some(Summary { operation: "apply".to_owned(), add: 3, ..Summary::default() }),
            ..tally(3, 3, Some("Error releasing the state lock"))
        };
        let judged = judge_apply(ending(Exit::Code(1)), &done, &nobody, true, false);
        assert_eq!(judged.end, ApplyEnd::Applied);
        assert_eq!(
            judged.cause.message,
            "3 added, 0 changed, 0 destroyed; then: Error releasing the state lock"
        );
    }
}
