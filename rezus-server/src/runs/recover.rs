//! What an earlier server left: runs that wait go on waiting, and of those that were under way the truth is found out.

use std::collections::BTreeSet;

use rezus_core::runs::executor::{Ending, Exit, RunId};
use rezus_core::runs::{Cause, PendingEnd, Run, RunRecord, Stage, Tally, WaitEnd};

use super::kit::PLAN_STEP;
use super::{Entry, Runs, RunsError};
use crate::error::Chain;

/// How long after a failure something is tried again.
pub(super) const AGAIN: std::time::Duration = std::time::Duration::from_secs(1);

/// Where nobody can say how a program ended.
const UNKNOWN: Ending = Ending { exit: Exit::Unknown, step: 0, stopped: None, killed: false };

impl Runs {
    /// Takes up the runs that an earlier server left, once: before that, nothing is known of them.
    pub async fn take_over(&self) {
        self.0.taken_over.get_or_init(|| self.recover()).await;
    }

    /// Takes up the runs that have not ended.
    async fn recover(&self) {
        self.read_tenants().await;
        let unended = match self.store().unended().await {
            Ok(unended) => unended,
            Err(error) => {
                tracing::error!(cause = %Chain(&error), "the runs that an earlier server left cannot be read");
                return;
            }
        };
        let mut lost = Vec::new();
        {
            let mut again = Vec::new();
            for record in &unended {
                let id = RunId { tenant: record.tenant().clone(), run: record.facts().name.clone() };
                if matches!(self.executor().find(&id, Stage::PlanAgain).await, Ok(Some(_)) | Err(_)) {
                    again.push(id);
                }
            }
            let mut board = self.0.board.lock().await;
            let now = self.0.means.clock.now();
            for record in unended {
                let id = RunId { tenant: record.tenant().clone(), run: record.facts().name.clone() };
                let run = Run::from(record);
                match run {
                    // Its plan was being made again.
                    Run::Approved(_) if again.contains(&id) => lost.push(id.clone()),
                    Run::Pending(_) | Run::Approved(_) => board.queue.push(id.clone(), now),
                    Run::Planning(_) | Run::Applying(_) => lost.push(id.clone()),
                    Run::AwaitingApproval(_) | Run::Ended(_) => {}
                }
                board.runs.insert(id, Entry::new(run));
            }
            // Theirs is the turn until it is known what became of them.
            for id in &lost {
                board.queue.resume(id);
            }
        }
        for id in lost {
            let (orders, mut received) = tokio::sync::mpsc::unbounded_channel();
            let Some(run) = self.0.board.lock().await.runs.get_mut(&id).map(|entry| {
                entry.orders = Some(orders);
                entry.run.clone()
            }) else {
                continue;
            };
            self.0.busy.send_modify(|busy| *busy += 1);
            let runs = self.clone();
            tokio::spawn(async move {
                if let Err(error) = runs.take_up(&id, run, &mut received).await {
                    tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "what became of a run cannot be kept now");
                }
                runs.leave(&id).await;
            });
        }
        self.end_what_is_stale().await;
    }

    async fn take_up(
        &self,
        id: &RunId,
        run: Run,
        orders: &mut tokio::sync::mpsc::UnboundedReceiver<super::Order>,
    ) -> Result<(), RunsError> {
        let stage = match run {
            Run::Applying(_) => Stage::Apply,
            Run::Approved(_) => Stage::PlanAgain,
            _ => Stage::Plan,
        };
        if stage == Stage::Apply {
            self.watch_saves(id, run.facts().principals.last()).await;
        }
        let found = loop {
            match self.executor().find(id, stage).await {
                Ok(found) => break found,
                Err(error) => {
                    // What cannot be read may still live: it keeps its lock and its turn.
                    tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "what a run left cannot be read now");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };
        let (ending, tally) = match found {
            Some(execution) => self.follow(id, execution, orders).await,
            None => (UNKNOWN, Tally::default()),
        };
        tracing::warn!(tenant.name = %id.tenant, run = %id.run, ?ending, "a run was under way when the server ended");
        self.release_lock(id, run.facts(), &[]).await;
        self.revoke_all(run.facts()).await;
        match run {
            Run::Planning(planning) => {
                Box::pin(self.planned(id, planning, None, (ending, PLAN_STEP), tally, orders)).await
            }
            Run::Applying(applying) => self.applied(id, applying, ending, tally).await,
            Run::Approved(run) => {
                let cause = Cause::new("ServerLost", "the server was gone while the plan was made again");
                let ended = run.end(WaitEnd::Failed, cause, self.0.means.clock.now());
                let mut board = self.0.board.lock().await;
                self.end(&mut board, id, ended).await
            }
            _ => Ok(()),
        }
    }

    /// Reads what has to be known of tenants: which are stopped, and of which something is in no version.
    async fn read_tenants(&self) {
        match self.store().runs(None).await {
            Ok(records) => {
                let ended: Vec<RunId> = records
                    .iter()
                    .filter(|it| it.phase().is_end())
                    .map(|it| RunId { tenant: it.tenant().clone(), run: it.facts().name.clone() })
                    .collect();
                // What the end of the server kept from being put away.
                let runs = self.clone();
                tokio::spawn(async move {
                    for id in ended {
                        runs.seal(&id).await;
                    }
                });
                let open = records.iter().filter(|it| !it.facts().unrecorded.is_empty());
                let tenants: BTreeSet<_> = open.map(|it| it.tenant().clone()).collect();
                self.0.board.lock().await.unrecorded.extend(tenants.clone());
                // What was accepted or could be read just before the earlier server ended.
                let runs = self.clone();
                tokio::spawn(async move {
                    for tenant in tenants {
                        runs.recheck_unrecorded(&tenant).await;
                    }
                });
            }
            Err(error) => tracing::error!(cause = %Chain(&error), "runs cannot be read"),
        }
        match self.0.means.backend.store().tenants().await {
            Ok(records) => {
                let mut board = self.0.board.lock().await;
                for record in records {
                    if let Some(why) = super::frozen(&record) {
                        board.frozen.insert(record.name.clone(), why);
                    }
                }
            }
            Err(error) => tracing::error!(cause = %Chain(&error), "tenants cannot be read"),
        }
    }

    /// Ends runs whose plan waits and is of a version that is not the newest any more.
    async fn end_what_is_stale(&self) {
        let waiting: Vec<RunRecord> = {
            let board = self.0.board.lock().await;
            board
                .runs
                .values()
                .filter(|entry| matches!(entry.run, Run::AwaitingApproval(_)))
                .map(|entry| entry.run.record())
                .collect()
        };
        for record in waiting {
            let id = RunId { tenant: record.tenant().clone(), run: record.facts().name.clone() };
            let head = match self.0.means.backend.current(&id.tenant).await {
                Ok(head) => head.map(|head| head.version.get()),
                Err(_) => continue,
            };
            if head == record.facts().version_before {
                continue;
            }
            if let Run::AwaitingApproval(run) = Run::from(record) {
                let cause = Cause::new("StateMoved", "the state has a newer version than the plan");
                let ended = run.end(WaitEnd::Stale, cause, self.0.means.clock.now());
                let mut board = self.0.board.lock().await;
                if let Err(error) = self.end(&mut board, &id, ended).await {
                    tracing::warn!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "a run whose plan is stale cannot be ended now");
                }
            }
        }
    }

    /// Fails while a run of a tenant is under way.
    ///
    /// # Errors
    ///
    /// [`RunsError::UnderWay`].
    pub async fn must_be_idle(&self, tenant: &rezus_core::base::TenantName) -> Result<(), RunsError> {
        match self.0.board.lock().await.queue.active(tenant) {
            Some(active) => Err(RunsError::UnderWay(active.run.clone())),
            None => Ok(()),
        }
    }

    /// Ends and removes all runs of a tenant that is removed.
    ///
    /// # Errors
    ///
    /// [`RunsError::UnderWay`] while one of them is under way.
    pub async fn remove_tenant(&self, tenant: &rezus_core::base::TenantName) -> Result<(), RunsError> {
        let mut board = self.0.board.lock().await;
        if let Some(active) = board.queue.active(tenant) {
            return Err(RunsError::UnderWay(active.run.clone()));
        }
        let now = self.0.means.clock.now();
        let open: Vec<RunId> = board.runs.keys().filter(|id| id.tenant == *tenant).cloned().collect();
        for id in open {
            let cause = Cause::new("TenantRemoved", "the tenant was removed");
            let ended = match board.runs.get(&id).map(|entry| entry.run.clone()) {
                Some(Run::Pending(run)) => run.end(PendingEnd::Failed, cause, now),
                Some(Run::AwaitingApproval(run)) => run.end(WaitEnd::Failed, cause, now),
                Some(Run::Approved(run)) => run.end(WaitEnd::Failed, cause, now),
                _ => continue,
            };
            self.end(&mut board, &id, ended).await?;
        }
        board.frozen.remove(tenant);
        board.unrecorded.remove(tenant);
        for run in self.store().remove_tenant(tenant).await? {
            let id = RunId { tenant: tenant.clone(), run };
            if let Err(error) = self.executor().forget(&id).await {
                tracing::warn!(tenant.name = %tenant, run = %id.run, cause = %Chain(&error), "what a run left cannot be removed");
            }
        }
        Ok(())
    }
}
