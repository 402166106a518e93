//! What a plan says: what differs, which node groups it changes, and what tells it from another.

use std::sync::Arc;

use rezus_core::declared::VersionNumber;
use rezus_core::declared::projector::Declared;
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{Cause, Drifted, GroupCounts, PlanFile, PlannedValues, RunFacts, Tally};

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

    /// What a plan changes of the version `before` by node group, and what tells it from another. Nothing of either where the
    /// tool shows nothing. The plan may be under way already.
    pub(super) async fn looked_into(
        &self,
        id: &RunId,
        kit: &Kit,
        before: Option<u64>,
    ) -> (Vec<GroupCounts>, Option<PlannedValues>) {
        let Some(plan) = self.shown(id, kit).await else {
            return (Vec::new(), None);
        };
        let before = match before.and_then(VersionNumber::new) {
            Some(number) => self.declared(id, number).await,
            None => None,
        };
        let mappings = self.0.means.projector.mappings();
        let look = move || {
            let groups = plan.groups(before.as_ref().map(|declared| &declared.projection), &mappings);
            (groups, plan.values().ok())
        };
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }
}

impl Runs {
    /// What a version declares, where that can be read.
    async fn declared(&self, id: &RunId, number: VersionNumber) -> Option<Arc<Declared>> {
        let projector = &self.0.means.projector;
        let current = projector.current(&id.tenant).await.ok();
        match current.filter(|current| current.version.version == number) {
            Some(current) => Some(current),
            None => projector.as_of(&id.tenant, number).await.ok().map(Arc::new),
        }
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

/// What a drift check found.
pub(super) fn found(facts: &RunFacts) -> Cause {
    let (drifted, pending) = (facts.drift.len(), facts.pending());
    let drift = format!("{drifted} resources are not as the state has them");
    let configuration = format!("the configuration changes {pending} resources that are");
    match (drifted, pending) {
        // The program's exit code says that outputs differ, too.
        (0, 0) => Cause::new("NoChanges", "the resources are as the state has them; only outputs differ"),
        (0, _) => Cause::new("PendingChanges", configuration),
        (_, 0) => Cause::new("Drifted", drift),
        (_, _) => Cause::new("Drifted", format!("{drift}, and {configuration}")),
    }
}
