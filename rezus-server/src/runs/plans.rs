//! What a plan says: what differs, which node groups it changes, and what tells it from another.

use rezus_core::declared::Fingerprint;
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{Drifted, GroupCounts, PlanFile, RunFacts, Tally};

use super::Runs;
use super::kit::Kit;
use crate::error::Chain;

impl Runs {
    /// Reads what the tool shows of a run's plan. `None` where it shows nothing: the run goes on without.
    pub(super) async fn shown(&self, id: &RunId, kit: &Kit) -> Option<PlanFile> {
        let answer = match self.executor().query(kit.show(&self.executor().plan_path(id))).await {
            Ok(answer) if answer.code == Some(0) => answer,
            Ok(_) => return None,
            Err(error) => {
                tracing::warn!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "a plan cannot be shown");
                return None;
            }
        };
        let read = tokio::task::spawn_blocking(move || PlanFile::read(&answer.stdout));
        match read.await {
            Ok(Ok(plan)) => Some(plan),
            Ok(Err(error)) => {
                tracing::warn!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "a plan cannot be read");
                None
            }
            Err(_) => None,
        }
    }

    /// What a plan changes by node group.
    pub(super) async fn groups(&self, id: &RunId, kit: &Kit) -> Vec<GroupCounts> {
        let Some(plan) = self.shown(id, kit).await else {
            return Vec::new();
        };
        let before = self.0.means.projector.current(&id.tenant).await.ok();
        let mappings = self.0.means.projector.mappings();
        let count = move || plan.groups(before.as_ref().map(|declared| &declared.projection), &mappings);
        tokio::task::spawn_blocking(count).await.unwrap_or_default()
    }
}

/// What differs, as far as the stream says.
pub(super) fn drift_of(tally: &Tally) -> Vec<Drifted> {
    let drifted = tally.drift.iter().map(|change| Drifted {
        address: change.address.clone(),
        action: change.action.clone(),
        attributes: Vec::new(),
    });
    drifted.collect()
}

/// What tells two plans apart: what they change and why, and the variables they were made with.
pub(super) fn plan_digest(tally: &Tally, facts: &RunFacts, kit: &Kit) -> String {
    let changes = tally.planned.iter().map(|it| format!("{:?} {} {:?}", it.address, it.action, it.reason));
    let mut lines: Vec<String> = changes.collect();
    lines.sort();
    lines.push(format!("{:?} {:?} {:?}", tally.plan, kit.workspace.variables, facts.request.variables));
    Fingerprint::of(lines.join("\n").as_bytes()).sha256_hex()
}
