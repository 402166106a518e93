//! Takes a run through a stage: from its turn to what came of it.

use std::time::Duration;

use rezus_core::declared::VersionNumber;
use rezus_core::runs::executor::{Ending, Execution, Exit, Happening, RunId};
use rezus_core::runs::{
    Applying, Approval, Approved, Asked, Cause, Learns as _, Operation, Pending, PendingEnd, PlanEnd,
    Planning, Run, Stage, Tally, WaitEnd, judge_apply, judge_plan,
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::kit::{Kit, PLAN_STEP, apply_steps, plan_steps};
use super::plans::{drift_of, found};
use super::recover::AGAIN;
use super::token::RunToken;
use super::{Order, Runs, RunsError};
use crate::error::Chain;

/// How often it is said how far a run is.
const PROGRESS: Duration = Duration::from_secs(1);

impl Runs {
    /// Does what a run's turn is for.
    pub(super) async fn drive(&self, id: &RunId, mut orders: UnboundedReceiver<Order>) {
        let run = self.0.board.lock().await.runs.get(id).map(|entry| entry.run.clone());
        let outcome = match run {
            Some(Run::Pending(run)) => self.plan(id, run, &mut orders).await,
            Some(Run::Approved(run)) => self.apply_approved(id, run, &mut orders).await,
            _ => Ok(()),
        };
        if let Err(error) = outcome {
            tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "what became of a run cannot be kept now");
        }
    }

    async fn plan(
        &self,
        id: &RunId,
        run: Pending,
        orders: &mut UnboundedReceiver<Order>,
    ) -> Result<(), RunsError> {
        let fail = |run: Pending, cause: Cause| async move {
            let mut board = self.0.board.lock().await;
            // It may have been cancelled meanwhile.
            if board.runs.contains_key(id) {
                let ended = run.end(PendingEnd::Failed, cause, self.0.means.clock.now());
                self.end(&mut board, id, ended).await?;
            }
            Ok(())
        };
        let kit = match self.kit(id).await {
            Ok(kit) => kit,
            // It waits for the next server.
            Err(_) if self.asked(id).await.shutdown => return Ok(()),
            Err(cause) => return fail(run, cause).await,
        };
        if let Some(cause) = protected(run.facts(), &kit) {
            return fail(run, cause).await;
        }
        let token = match self.mint(id, kit.most(Stage::Plan)).await {
            Ok(token) => token,
            Err(error) => {
                let cause = Cause::new("StoreFailed", Chain(&error).to_string());
                return fail(run, cause).await;
            }
        };
        let before = match self.0.means.backend.current(&id.tenant).await {
            Ok(head) => head.map(|head| head.version),
            Err(error) => {
                self.revoke(token).await;
                let cause = Cause::new("StoreFailed", Chain(&error).to_string());
                return fail(run, cause).await;
            }
        };
        let planning = run.plan(self.0.means.clock.now(), before).learn(|facts| {
            facts.tool = Some(kit.tool.clone());
            facts.work_dir = Some(kit.prepared.work_dir.clone());
            facts.config_digest = Some(kit.prepared.digest.clone());
            facts.principals.push(token.principal.clone());
        });
        {
            let mut board = self.0.board.lock().await;
            if !board.runs.contains_key(id) {
                self.revoke(token).await;
                return Ok(());
            }
            self.keep(&mut board, id, Run::Planning(planning.clone())).await?;
        }
        let plan = self.executor().plan_path(id);
        let steps = plan_steps(planning.facts(), &kit, &plan);
        let (ending, tally) = self.execute(id, &kit, Stage::Plan, steps, &token, orders).await;
        self.settle_stage(id, planning.facts(), token).await;
        Box::pin(self.planned(id, planning, Some(kit), (ending, PLAN_STEP), tally, orders)).await
    }

    /// Judges a plan that was made, and goes on with it.
    pub(super) async fn planned(
        &self,
        id: &RunId,
        planning: Planning,
        kit: Option<Kit>,
        (ending, last_step): (Ending, usize),
        tally: Tally,
        orders: &mut UnboundedReceiver<Order>,
    ) -> Result<(), RunsError> {
        let operation = planning.facts().request.operation;
        let asked = self.asked(id).await;
        let planning = planning.learn(|facts| {
            facts.exit_code = code(ending.exit);
            facts.counts = tally.counts();
            (facts.changes, facts.changes_omitted) = tally.told_changes();
            facts.cancelled_by.clone_from(&asked.cancelled_by);
        });
        let judged = judge_plan(operation, ending, last_step, &tally, &asked);
        let (planning, kit) = match (judged, kit) {
            (Ok(()), Some(kit)) => (planning, kit),
            (Ok(()), None) => {
                let cause = Cause::new("ServerLost", "the server was gone when the plan was made");
                return self.end_planning(id, planning, PlanEnd::Interrupted, cause).await;
            }
            (Err(judgement), _) => {
                return self.end_planning(id, planning, judgement.end, judgement.cause).await;
            }
        };
        if operation == Operation::Drift {
            let drift = self.shown(id, &kit).await.map_or_else(|| drift_of(&tally), |plan| plan.drift());
            let planning = planning.learn(|facts| facts.drift = drift);
            let cause = found(planning.facts());
            return self.end_planning(id, planning, PlanEnd::Planned, cause).await;
        }
        if operation.changes()
            && let Some(by) = &asked.cancelled_by
        {
            let cause = Cause::new("Cancelled", format!("cancelled by {by}: nothing was changed"));
            return self.end_planning(id, planning, PlanEnd::Cancelled, cause).await;
        }
        let is_auto = operation.changes() && planning.facts().approval == Approval::Auto;
        if is_auto && asked.shutdown {
            let cause = Cause::new("ServerStopped", "the server was stopped: nothing was changed");
            return self.end_planning(id, planning, PlanEnd::Interrupted, cause).await;
        }
        if is_auto {
            return self.apply_at_once(id, planning, kit, &tally, orders).await;
        }
        let before = planning.facts().version_before;
        let (groups, values) = self.looked_into(id, &kit, before).await;
        let planning = planning.learn(|facts| facts.groups = groups);
        if operation == Operation::Plan {
            let cause = Cause::new("Changes", "the plan changes something");
            return self.end_planning(id, planning, PlanEnd::Planned, cause).await;
        }
        let digest = match self.put_aside(id, &planning, &kit, &tally, values).await {
            Ok(digest) => digest,
            Err(cause) => return self.end_planning(id, planning, PlanEnd::Failed, cause).await,
        };
        let waiting = planning.learn(|facts| facts.plan_digest = digest).await_approval();
        let head = self.0.means.backend.current(&id.tenant).await;
        let mut board = self.0.board.lock().await;
        self.keep(&mut board, id, Run::AwaitingApproval(waiting.clone())).await?;
        // What made it stale meanwhile did not find it waiting.
        let newer = board.queue.waiting(&id.tenant).find(|other| {
            let run = board.runs.get(other).map(|entry| &entry.run);
            matches!(run, Some(Run::Pending(it)) if it.facts().request.operation.changes())
        });
        let has_moved =
            head.is_ok_and(|head| head.map(|head| head.version.get()) != waiting.facts().version_before);
        let cause = match newer {
            Some(newer) => Cause::new("Superseded", format!("the run {} was asked for since", newer.run)),
            None if has_moved => Cause::new("StateMoved", "the state has a newer version than the plan"),
            None => return Ok(()),
        };
        let ended = waiting.end(WaitEnd::Stale, cause, self.0.means.clock.now());
        self.end(&mut board, id, ended).await
    }

    async fn end_planning(
        &self,
        id: &RunId,
        planning: Planning,
        how: PlanEnd,
        cause: Cause,
    ) -> Result<(), RunsError> {
        let mut board = self.0.board.lock().await;
        let ended = planning.end(how, cause, self.0.means.clock.now());
        self.end(&mut board, id, ended).await
    }

    /// Goes on without anybody's consent. What the plan changes by node group is found out meanwhile.
    async fn apply_at_once(
        &self,
        id: &RunId,
        planning: Planning,
        kit: Kit,
        tally: &Tally,
        orders: &mut UnboundedReceiver<Order>,
    ) -> Result<(), RunsError> {
        let counts = tally.counts();
        let applying = planning.learn(|facts| facts.counts = counts).apply();
        let before = applying.facts().version_before;
        let groups = async { self.looked_into(id, &kit, before).await.0 };
        Box::pin(self.apply(id, applying, &kit, orders, groups)).await
    }

    async fn apply_approved(
        &self,
        id: &RunId,
        run: Approved,
        orders: &mut UnboundedReceiver<Order>,
    ) -> Result<(), RunsError> {
        let end = |run: Approved, how: WaitEnd, cause: Cause| async move {
            let mut board = self.0.board.lock().await;
            let ended = run.end(how, cause, self.0.means.clock.now());
            self.end(&mut board, id, ended).await
        };
        let head = match self.0.means.backend.current(&id.tenant).await {
            Ok(head) => head.map(|head| head.version),
            Err(error) => {
                let cause = Cause::new("StoreFailed", Chain(&error).to_string());
                return end(run, WaitEnd::Failed, cause).await;
            }
        };
        if head.map(VersionNumber::get) != run.facts().version_before {
            let cause = Cause::new("StateMoved", "the state has a newer version than the plan");
            return end(run, WaitEnd::Stale, cause).await;
        }
        let kit = match self.kit(id).await {
            Ok(kit) => kit,
            Err(cause) => {
                let Asked { cancelled_by, shutdown } = self.asked(id).await;
                // It waits for the next server.
                if shutdown {
                    return Ok(());
                }
                let how = cancelled_by.as_ref().map_or(WaitEnd::Failed, |_| WaitEnd::Cancelled);
                return end(run.learn(|facts| facts.cancelled_by = cancelled_by), how, cause).await;
            }
        };
        if let Some(cause) = protected(run.facts(), &kit) {
            return end(run, WaitEnd::Failed, cause).await;
        }
        if run.facts().config_digest.as_ref() != Some(&kit.prepared.digest) {
            let cause =
                Cause::new("ConfigurationChanged", "the configuration is not the one that was planned");
            return end(run, WaitEnd::Stale, cause).await;
        }
        let mut run = run;
        if let Some(expected) = run.facts().plan_digest.clone() {
            let outcome;
            (run, outcome) = self.plan_again(id, run, &kit, &expected, orders).await;
            if let Err((how, cause)) = outcome {
                return end(run, how, cause).await;
            }
        }
        let asked = self.asked(id).await;
        if let Some(by) = asked.cancelled_by {
            let cause = Cause::new("Cancelled", format!("cancelled by {by}: nothing was changed"));
            let run = run.learn(|facts| facts.cancelled_by = Some(by));
            return end(run, WaitEnd::Cancelled, cause).await;
        }
        if asked.shutdown {
            // A plan that was kept waits for the next server.
            if run.facts().plan_digest.is_none() {
                return Ok(());
            }
            let cause = Cause::new("ServerStopped", "the server was stopped: nothing was changed");
            return end(run, WaitEnd::Failed, cause).await;
        }
        let applying = run.apply();
        Box::pin(self.apply(id, applying, &kit, orders, std::future::ready(Vec::new()))).await
    }

    async fn apply(
        &self,
        id: &RunId,
        applying: Applying,
        kit: &Kit,
        orders: &mut UnboundedReceiver<Order>,
        groups: impl Future<Output = Vec<rezus_core::runs::GroupCounts>>,
    ) -> Result<(), RunsError> {
        let token = match self.mint(id, kit.most(Stage::Apply)).await {
            Ok(token) => token,
            Err(error) => {
                let cause = Cause::new("StoreFailed", Chain(&error).to_string());
                let ended = applying.end(rezus_core::runs::ApplyEnd::Failed, cause, self.0.means.clock.now());
                let mut board = self.0.board.lock().await;
                return self.end(&mut board, id, ended).await;
            }
        };
        let applying = applying.learn(|facts| facts.principals.push(token.principal.clone()));
        {
            let mut board = self.0.board.lock().await;
            self.keep(&mut board, id, Run::Applying(applying.clone())).await?;
        }
        self.watch_saves(id, Some(&token.principal)).await;
        let steps = apply_steps(&self.executor().plan_path(id));
        let executed = self.execute(id, kit, Stage::Apply, steps, &token, orders);
        let ((ending, tally), groups) = tokio::join!(executed, groups);
        self.settle_stage(id, applying.facts(), token).await;
        let applying = applying.learn(|facts| {
            if !groups.is_empty() {
                facts.groups = groups;
            }
        });
        self.applied(id, applying, ending, tally).await
    }

    /// Judges what was done, and keeps the truth about it.
    pub(super) async fn applied(
        &self,
        id: &RunId,
        applying: Applying,
        ending: Ending,
        mut tally: Tally,
    ) -> Result<(), RunsError> {
        let asked = self.asked(id).await;
        // Of a plan that was saved, the tools do not say again what it changes.
        tally.total = tally.total.max(operations(applying.facts()));
        let tally = &tally;
        let left = self.settle_apply(id, applying.facts(), tally, ending.exit).await;
        let judgement = judge_apply(ending, tally, &asked, left.is_saved, left.is_kept_back);
        let mut cause = judgement.cause;
        for remark in left.remarks {
            cause.message = format!("{}; {remark}", cause.message);
        }
        let is_unread = left.unrecorded.is_unknown();
        let ended = applying
            .learn(|facts| {
                facts.exit_code = code(ending.exit);
                facts.cancelled_by.clone_from(&asked.cancelled_by);
                facts.version_after = left.version_after;
                facts.unrecorded = left.unrecorded.created;
                facts.unread = is_unread;
            })
            .end(judgement.end, cause, self.0.means.clock.now());
        let mut board = self.0.board.lock().await;
        self.end(&mut board, id, ended).await?;
        drop(board);
        if is_unread {
            self.recheck_unrecorded(&id.tenant).await;
        }
        Ok(())
    }

    /// Executes a stage and follows it to its end.
    pub(super) async fn execute(
        &self,
        id: &RunId,
        kit: &Kit,
        stage: Stage,
        steps: Vec<Vec<String>>,
        token: &RunToken,
        orders: &mut UnboundedReceiver<Order>,
    ) -> (Ending, Tally) {
        let job = kit.job(id, stage, steps, token, self.0.means.config.log_limit.0);
        match self.executor().start(job).await {
            Ok(execution) => self.follow(id, execution, orders).await,
            Err(error) => {
                tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "a run's program cannot be started");
                let mut tally = Tally::default();
                tally.errors.push(rezus_core::runs::stream::Diagnostic {
                    is_error: true,
                    summary: "the program cannot be started".to_owned(),
                    detail: Chain(&error).to_string(),
                    address: None,
                    place: None,
                });
                (Ending { exit: Exit::Code(1), step: 0, stopped: None, killed: false }, tally)
            }
        }
    }

    /// Follows a stage to its end.
    pub(super) async fn follow(
        &self,
        id: &RunId,
        mut execution: Box<dyn Execution>,
        orders: &mut UnboundedReceiver<Order>,
    ) -> (Ending, Tally) {
        let known = self.0.board.lock().await.runs.get(id).map_or(0, |entry| operations(entry.run.facts()));
        let mut tally = Tally::default();
        let mut ticks = tokio::time::interval(PROGRESS);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut said = 0;
        let log = self.0.board.lock().await.runs.get(id).map(|entry| entry.log.clone());
        let saves = self.saves(id).await;
        loop {
            tokio::select! {
                happening = execution.next() => match happening {
                    Ok(Happening::Event(event)) => {
                        tally.add(event);
                        if let Some(saves) = &saves {
                            saves.done(tally.completed);
                        }
                    }
                    Ok(Happening::Log(length)) => {
                        if let Some(log) = &log {
                            log.send_replace(length);
                        }
                    }
                    Ok(Happening::Ended(ending)) => return (ending, tally),
                    // It goes on all the same, and keeps its lock and its turn.
                    Err(error) => {
                        tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "a run's program cannot be followed now");
                        tokio::time::sleep(AGAIN).await;
                    }
                },
                Some(order) = orders.recv() => match order {
                    Order::Interrupt => execution.interrupt(),
                    Order::Kill => execution.kill(),
                    Order::Secrets(secrets) => execution.add_secrets(secrets),
                },
                _ = ticks.tick() => {
                    let total = tally.total.max(known);
                    if tally.completed != said && total > 0 {
                        said = tally.completed;
                        self.say_progress(id, tally.completed, total).await;
                    }
                }
            }
        }
    }

    pub(super) async fn asked(&self, id: &RunId) -> Asked {
        self.0.board.lock().await.runs.get(id).map(|entry| entry.asked.clone()).unwrap_or_default()
    }
}

const fn code(exit: Exit) -> Option<i32> {
    if let Exit::Code(code) = exit { Some(code) } else { None }
}

/// How many operations a plan takes.
fn operations(facts: &rezus_core::runs::RunFacts) -> u64 {
    facts.counts.map_or(0, |counts| counts.add + counts.change + counts.remove)
}

/// Why a run may not destroy, if it may not any more.
fn protected(facts: &rezus_core::runs::RunFacts, kit: &Kit) -> Option<Cause> {
    let destroys = facts.request.operation == Operation::Destroy;
    let message = "the tenant is protected from destroy since it was asked for";
    (destroys && kit.workspace.protect_destroy).then(|| Cause::new("Protected", message))
}
