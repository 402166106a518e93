//! What happens by the clock: drift checks, and the removal of old runs.

use std::collections::HashMap;
use std::time::Duration;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{Cause, Operation, Run, RunRecord, RunRequest, WaitEnd};

use super::{Name, NewRun, Runs, RunsError};
use crate::error::Chain;

/// How often it is looked at what is due.
const LOOK: Duration = Duration::from_secs(5);

/// How often old runs are looked for.
const PRUNED: Duration = Duration::from_mins(10);

/// How long a plan waits for approval.
const EXPIRES: Duration = Duration::from_hours(7 * 24);

/// Who asks for what is due.
const SCHEDULE: &str = "schedule";

impl Runs {
    /// Looks for drift where it is due, and removes old runs, until the task is ended.
    pub async fn keep_schedule(self) {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut pruned = None;
        loop {
            ticks.tick().await;
            if let Err(error) = self.look_for_drift().await {
                tracing::warn!(cause = %Chain(&error), "drift cannot be looked for now");
            }
            let now = self.0.means.clock.now();
            if pruned.is_some_and(|at| now.since(at) < PRUNED) {
                continue;
            }
            pruned = Some(now);
            if let Err(error) = self.expire().await {
                tracing::warn!(cause = %Chain(&error), "runs that wait for too long cannot be ended now");
            }
            if let Err(error) = self.prune().await {
                tracing::warn!(cause = %Chain(&error), "old runs cannot be removed now");
            }
        }
    }

    /// Begins drift checks that are due.
    ///
    /// # Errors
    ///
    /// [`RunsError`].
    pub async fn look_for_drift(&self) -> Result<(), RunsError> {
        let now = self.0.means.clock.now();
        for (tenant, every) in self.scheduled().await? {
            let records = self.store().runs(Some(&tenant)).await?;
            let last = records
                .iter()
                .filter(|it| it.facts().request.operation == Operation::Drift)
                .map(|it| Timestamp::from_millis(it.facts().queued_at))
                .max();
            if last.is_some_and(|last| now.since(last) < every + jitter(&tenant, every)) {
                continue;
            }
            if let Some(busy) = self.is_busy(&tenant).await {
                self.skip(&tenant, now, &format!("the run {busy} is under way"));
                continue;
            }
            let new = NewRun {
                name: Name::Prefix("drift-".to_owned()),
                labels: std::collections::BTreeMap::new(),
                request: RunRequest::new(Operation::Drift, SCHEDULE),
            };
            match self.create(&tenant, new).await {
                Ok(_) => self.0.means.live.looked(&tenant),
                Err(RunsError::Closed) => return Ok(()),
                Err(error) => {
                    let why = Chain(&error).to_string();
                    self.skip(&tenant, now, &why);
                }
            }
        }
        Ok(())
    }

    /// The tenants that are looked at for drift, and how often.
    async fn scheduled(&self) -> Result<Vec<(TenantName, Duration)>, RunsError> {
        let all = self.0.means.workspaces.all().await?.into_iter();
        let due = all.filter_map(|(tenant, settings)| Some((tenant, settings.workspace?.drift_every?)));
        Ok(due.collect())
    }

    /// The run of a tenant that is under way, or waits for its turn.
    async fn is_busy(&self, tenant: &TenantName) -> Option<String> {
        let board = self.0.board.lock().await;
        let active = board.queue.active(tenant).or_else(|| board.queue.waiting(tenant).next());
        active.map(|id| id.run.to_string())
    }

    fn skip(&self, tenant: &TenantName, now: Timestamp, why: &str) {
        if self.0.means.live.skip(tenant, now, why) {
            tracing::info!(tenant.name = %tenant, reason = why, "drift was not looked for");
            self.0.means.catalogue.touch(tenant);
        }
    }

    /// Tells when and why drift was last not looked for, where it has not been since.
    pub fn skipped_drift(&self, tenant: &TenantName) -> Option<(Timestamp, String)> {
        self.0.means.live.skipped(tenant)
    }

    /// Ends runs whose plan nobody approved for long: it lies there with all that is secret in it.
    async fn expire(&self) -> Result<(), RunsError> {
        let now = self.0.means.clock.now();
        let mut board = self.0.board.lock().await;
        let old: Vec<_> = board
            .runs
            .iter()
            .filter_map(|(id, entry)| match &entry.run {
                Run::AwaitingApproval(run) => Some((id.clone(), run.clone())),
                _ => None,
            })
            .filter(|(_, run)| now.since(Timestamp::from_millis(run.facts().queued_at)) > EXPIRES)
            .collect();
        for (id, run) in old {
            let cause = Cause::new("Expired", "nobody approved the plan in seven days");
            let ended = run.end(WaitEnd::Stale, cause, now);
            self.end(&mut board, &id, ended).await?;
        }
        Ok(())
    }

    /// Removes runs that are past their retention: all but the last so many of a tenant, and those that ended long ago. What
    /// says that something exists and is in no state stays until it is seen to.
    async fn prune(&self) -> Result<(), RunsError> {
        let config = &self.0.means.config;
        let now = self.0.means.clock.now();
        let before = now.minus(Duration::from_hours(24) * config.keep_days);
        let mut ended: HashMap<TenantName, Vec<RunRecord>> = HashMap::new();
        for record in self.store().runs(None).await? {
            let is_open = !record.facts().unrecorded.is_empty() && record.facts().dismissed_by.is_none();
            if record.phase().is_end() && !is_open {
                ended.entry(record.tenant().clone()).or_default().push(record);
            }
        }
        for (tenant, records) in ended {
            let surplus = records.len().saturating_sub(config.keep_last);
            for (place, record) in records.iter().enumerate() {
                let at =
                    Timestamp::from_millis(record.facts().finished_at.unwrap_or(record.facts().queued_at));
                if place >= surplus && at >= before {
                    continue;
                }
                let id = RunId { tenant: tenant.clone(), run: record.facts().name.clone() };
                if let Err(error) = self.executor().forget(&id).await {
                    tracing::warn!(tenant.name = %tenant, run = %id.run, cause = %Chain(&error), "what an old run left cannot be removed now");
                    continue;
                }
                self.store().remove(&tenant, &id.run).await?;
                self.0.means.catalogue.touch(&tenant);
            }
        }
        Ok(())
    }
}

/// So that tenants that were configured together are not all looked at together: up to a tenth more, by name.
fn jitter(tenant: &TenantName, every: Duration) -> Duration {
    let digest = rezus_core::declared::Fingerprint::of(tenant.as_str().as_bytes()).sha256;
    (every / 10).saturating_mul(u32::from(digest[0])) / 255
}
