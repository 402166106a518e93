//! Plans that are not kept until they are approved: what is encrypted in a state is not left lying about in clear. Such a
//! plan is made again once it is approved, and has to change the same.

use rezus_core::declared::Fingerprint;
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{
    Approved, Cause, Learns as _, PlanEnd, PlannedValues, Planning, Run, RunFacts, Stage, Tally, WaitEnd,
    judge_plan,
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::kit::{Kit, PLAN_STEP, plan_steps};
use super::{Order, Runs, RunsError};
use crate::error::Chain;

impl Runs {
    /// Removes a plan that is not to be kept, and returns what is kept in its place: a digest without its values, which
    /// stay in memory. `None` for a plan that is kept.
    ///
    /// # Errors
    ///
    /// Why the run ends.
    pub(super) async fn put_aside(
        &self,
        id: &RunId,
        planning: &Planning,
        kit: &Kit,
        tally: &Tally,
        values: Option<PlannedValues>,
    ) -> Result<Option<String>, Cause> {
        if !kit.workspace.encrypts() || !self.executor().is_plan_clear(id).await.unwrap_or(true) {
            return Ok(None);
        }
        let discarded = self.executor().discard_plan(id).await;
        discarded.map_err(|error| Cause::new("PlanNotDiscarded", Chain(&error).to_string()))?;
        let values = values.ok_or_else(unreadable)?;
        if let Some(entry) = self.0.board.lock().await.runs.get_mut(id) {
            entry.values = Some(values);
        }
        Ok(Some(digest(tally, planning.facts(), kit)))
    }

    /// Makes a plan once more that was not kept, and compares it with the one that was approved.
    pub(super) async fn plan_again(
        &self,
        id: &RunId,
        run: Approved,
        kit: &Kit,
        expected: &str,
        orders: &mut UnboundedReceiver<Order>,
    ) -> (Approved, Result<(), (WaitEnd, Cause)>) {
        let values = self.0.board.lock().await.runs.get(id).and_then(|entry| entry.values.clone());
        let Some(values) = values else {
            let message = "the server was started again since the plan was made, and what it changes was in memory \
                           only: it cannot be compared with what would be done now. Ask for the run again";
            return (run, Err((WaitEnd::Stale, Cause::new("PlanForgotten", message))));
        };
        let failed =
            |error: RunsError| Err((WaitEnd::Failed, Cause::new("StoreFailed", Chain(&error).to_string())));
        let token = match self.mint(id, kit.most(Stage::PlanAgain)).await {
            Ok(token) => token,
            Err(error) => return (run, failed(error)),
        };
        let run = run.learn(|facts| facts.principals.push(token.principal.clone()));
        {
            let mut board = self.0.board.lock().await;
            if let Err(error) = self.keep(&mut board, id, Run::Approved(run.clone())).await {
                drop(board);
                self.revoke(token).await;
                return (run, failed(error));
            }
        }
        let steps = plan_steps(run.facts(), kit, &self.executor().plan_path(id));
        let (ending, tally) = self.execute(id, kit, Stage::PlanAgain, steps, &token, orders).await;
        self.settle_stage(id, run.facts(), token).await;
        let asked = self.asked(id).await;
        let outcome = match judge_plan(run.facts().request.operation, ending, PLAN_STEP, &tally, &asked) {
            Ok(()) if digest(&tally, run.facts(), kit) != expected => Err(changed("something else")),
            Ok(()) => match self.looked_into(id, kit, run.facts().version_before).await.1 {
                None => Err((WaitEnd::Failed, unreadable())),
                Some(again) if again != values => {
                    Err(changed("the same resources or outputs to other values"))
                }
                Some(_) => Ok(()),
            },
            Err(judgement) => {
                let how = match judgement.end {
                    PlanEnd::Cancelled => WaitEnd::Cancelled,
                    PlanEnd::NothingToDo | PlanEnd::Planned => WaitEnd::Stale,
                    PlanEnd::Failed | PlanEnd::Interrupted => WaitEnd::Failed,
                };
                Err((how, judgement.cause))
            }
        };
        (run, outcome)
    }
}

fn changed(what: &str) -> (WaitEnd, Cause) {
    let message = format!(
        "the plan that was made again changes {what} than the one that was approved: nothing was changed"
    );
    (WaitEnd::Stale, Cause::new("PlanChanged", message))
}

fn unreadable() -> Cause {
    let message = "the tool does not show what the plan changes, so it cannot be compared with the one that is made again";
    Cause::new("PlanUnreadable", message)
}

/// What tells two plans apart, values aside: what they change and why, and the variables they were made with.
fn digest(tally: &Tally, facts: &RunFacts, kit: &Kit) -> String {
    let changes = tally.planned.iter().map(|it| format!("{:?} {} {:?}", it.address, it.action, it.reason));
    let mut lines: Vec<String> = changes.collect();
    lines.sort();
    lines.push(format!("{:?} {:?} {:?}", tally.plan, kit.workspace.variables, facts.request.variables));
    Fingerprint::of(lines.join("\n").as_bytes()).sha256_hex()
}
