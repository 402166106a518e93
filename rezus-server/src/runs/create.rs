//! Makes runs.

use std::collections::BTreeMap;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::runs::executor::RunId;
use rezus_core::runs::workspace::Workspace;
use rezus_core::runs::{
    Approval, Cause, Operation, Pending, PendingEnd, Run, RunFacts, RunName, RunRecord, RunRequest, TenantKey,
};

use super::{Entry, Runs, RunsError, later};

/// A run to be made.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Its name, or what a name is made of.
    pub name: Name,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What is asked for.
    pub request: RunRequest,
}

/// How a new run is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// Like this.
    Given(RunName),
    /// With this at the beginning.
    Prefix(String),
}

impl Runs {
    /// Makes a run, and has it wait for its turn. Where one waits already that does the same, the new one ends at once
    /// and says so.
    ///
    /// # Errors
    ///
    /// [`RunsError`].
    pub async fn create(&self, tenant: &TenantName, new: NewRun) -> Result<RunRecord, RunsError> {
        let inner = &self.0;
        let workspace = self.admit(tenant, &new).await?;
        let mut board = inner.board.lock().await;
        let now = inner.means.clock.now();
        let facts = |name| facts(tenant, name, &new, &workspace, now);
        let twin = board.queue.waiting(tenant).find(|id| {
            let waiting = board.runs.get(id).map(|entry| &entry.run);
            matches!(waiting, Some(Run::Pending(it)) if it.facts().request.is_same_work(&new.request))
        });
        if let Some(twin) = twin.map(|id| id.run.clone()) {
            let cause = Cause::new("Coalesced", format!("the run {twin} waits already and does the same"));
            let coalesce = |facts| {
                Run::Ended(Pending::new(facts).end(PendingEnd::Coalesced(twin.clone()), cause.clone(), now))
            };
            let run = self.add(&new.name, |name| coalesce(facts(name))).await?;
            drop(board);
            self.0.means.catalogue.touch(tenant);
            return Ok(run.record());
        }
        let run = self.add(&new.name, |name| Run::Pending(Pending::new(facts(name)))).await?;
        let id = RunId { tenant: tenant.clone(), run: run.facts().name.clone() };
        if new.request.operation.changes() {
            let cause = Cause::new("Superseded", format!("the run {} was asked for since", id.run));
            if let Err(error) = self.make_stale(&mut board, tenant, &cause).await {
                tracing::warn!(tenant.name = %tenant, cause = %crate::error::Chain(&error), "a run that was superseded cannot be ended now");
            }
        }
        let record = run.record();
        board.queue.push(id.clone(), later(now, inner.means.config.debounce.0));
        board.runs.insert(id, Entry::new(run));
        drop(board);
        inner.wake.notify_one();
        inner.means.catalogue.touch(tenant);
        Ok(record)
    }

    /// Keeps a new run under a name that nobody has.
    async fn add(&self, name: &Name, make: impl Fn(RunName) -> Run) -> Result<Run, RunsError> {
        match name {
            Name::Given(name) => {
                let run = make(name.clone());
                if self.store().add(&run.record()).await? {
                    Ok(run)
                } else {
                    Err(RunsError::Exists(name.clone()))
                }
            }
            Name::Prefix(prefix) => loop {
                let mut random = [0; 5];
                getrandom::fill(&mut random).map_err(|error| RunsError::Random(error.to_string()))?;
                let run = make(RunName::generate(prefix, random)?);
                if self.store().add(&run.record()).await? {
                    return Ok(run);
                }
            },
        }
    }
}

pub(super) fn facts(
    tenant: &TenantName,
    name: RunName,
    new: &NewRun,
    workspace: &Workspace,
    now: Timestamp,
) -> RunFacts {
    let approval = match new.request.operation {
        Operation::Plan | Operation::Drift => Approval::Manual,
        Operation::Apply | Operation::Destroy => new.request.approval.unwrap_or(workspace.approval),
    };
    RunFacts {
        labels: new.labels.clone(),
        config_revision: workspace.revision.clone(),
        ..RunFacts::new(
            TenantKey(tenant.clone()),
            name,
            uuid::Uuid::new_v4().to_string(),
            new.request.clone(),
            approval,
            now,
        )
    }
}
