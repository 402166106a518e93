//! Sees to what a stage left: its token, its lock, a state that could not be saved, and what was created and is in no
//! version of the state.

use rezus_core::access::AuditRow;
use rezus_core::declared::backend::{Caller, Unlock, ingest};
use rezus_core::declared::store::VersionMeta;
use rezus_core::declared::{LockId, LockInfo};
use rezus_core::runs::executor::{Exit, RunId};
use rezus_core::runs::{RunFacts, Tally};

use super::token::RunToken;
use super::unrecorded::Unrecorded;
use super::{Runs, RunsError};
use crate::error::Chain;

/// What an apply left.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Whether this run wrote the newest version, and that has all that was done.
    pub(super) is_saved: bool,
    /// Whether the tool kept back a state that could not be saved.
    pub(super) is_kept_back: bool,
    /// The newest version that the run wrote.
    pub(super) version_after: Option<u64>,
    /// What was created and is in no version, as far as that is known.
    pub(super) unrecorded: Unrecorded,
    /// What else is to be said.
    pub(super) remarks: Vec<String>,
}

/// What is said of an apply whose state cannot be looked into.
const UNREAD: &str = "the state could not be read when it ended: what it created is not known to be there";

/// What is said of an apply of which nobody saw that it saved all it did.
const UNSEEN: &str =
    "what it changed in place, imported or forgot may be in no version: a plan shows what is not";

impl Runs {
    /// Ends a stage's token, and lets go of a lock that it left: its holder has ended.
    pub(super) async fn settle_stage(&self, id: &RunId, facts: &RunFacts, token: RunToken) {
        let principal = token.principal.clone();
        self.revoke(token).await;
        self.release_lock(id, facts, &[principal]).await;
    }

    /// Lets go of a tenant's lock if one of a run's programs holds it, all of which have ended.
    pub(super) async fn release_lock(&self, id: &RunId, facts: &RunFacts, further: &[String]) {
        let means = &self.0.means;
        let Ok(Some((record, _))) = means.backend.store().tenant(&id.tenant).await else {
            return;
        };
        let Some(lock) = record.lock else {
            return;
        };
        if !facts.principals.iter().chain(further).any(|own| *own == lock.acquired_by) {
            return;
        }
        let caller = own_caller(id);
        let outcome = means.backend.unlock(&id.tenant, &Unlock::Break(lock.info.id.clone()), &caller).await;
        let code = if outcome.is_ok() { 200 } else { 500 };
        means.auth.trail().add(AuditRow {
            at: means.clock.now(),
            who: caller.name,
            groups: Vec::new(),
            token: None,
            from: "rezus".to_owned(),
            action: "lock.release".to_owned(),
            tenant: Some(id.tenant.clone()),
            object: lock.info.id.to_string(),
            code,
        });
        means.catalogue.touch(&id.tenant);
        match outcome {
            Ok(()) => {
                tracing::warn!(tenant.name = %id.tenant, run = %id.run, lock.id = %lock.info.id, "a lock was released whose holder has ended");
            }
            Err(error) => {
                tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "a lock whose holder has ended cannot be released");
            }
        }
    }

    /// Sees to what an apply left.
    pub(super) async fn settle_apply(&self, id: &RunId, facts: &RunFacts, tally: &Tally, exit: Exit) -> Left {
        let mut left = Left::default();
        // The last word comes after the last save.
        let mut has_all = exit == Exit::Code(0) || tally.done.is_some() || self.has_all(id, tally).await;
        if let Some(work_dir) = facts.work_dir.clone() {
            match self.executor().errored_state(work_dir.clone()).await {
                Ok(Some(state)) => {
                    left.is_kept_back = true;
                    match self.push(id, state).await {
                        Ok(version) => {
                            left.is_kept_back = false;
                            has_all = true;
                            left.remarks.push(format!(
                                "the state that could not be saved was pushed as version {version}"
                            ));
                            if let Err(error) = self.executor().remove_errored_state(work_dir).await {
                                tracing::warn!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "errored.tfstate cannot be removed");
                            }
                        }
                        Err(error) => {
                            let why = Chain(&error).to_string();
                            let kept = self.executor().keep_errored_state(id, work_dir.clone()).await;
                            let place = kept.unwrap_or_else(|_| work_dir.join("errored.tfstate"));
                            left.remarks.push(format!(
                                "the state that could not be saved is kept in {}, since it was refused: {why}",
                                place.display(),
                            ));
                        }
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    left.is_kept_back = true;
                    left.remarks.push(format!(
                        "the state that could not be saved is left in {}: {}",
                        work_dir.display(),
                        Chain(&error)
                    ));
                    tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "errored.tfstate cannot be read");
                }
            }
        }
        let own = self.own_versions(id, facts).await;
        left.version_after = own.last().map(|version| version.version.get());
        let is_current = match self.0.means.backend.current(&id.tenant).await {
            Ok(head) => head.map(|head| head.version.get()) == left.version_after,
            Err(_) => false,
        };
        let is_current = is_current && left.version_after.is_some();
        let created = tally.created.clone();
        left.unrecorded = match self.unrecorded(&id.tenant, created).await {
            // It cannot be looked into, but all that the program had to save is in it.
            unknown if unknown.is_unknown() && is_current && has_all => Unrecorded::default(),
            found => found,
        };
        if left.unrecorded.is_unknown() {
            left.remarks.push(UNREAD.to_owned());
        }
        let has_unseen = has_all || self.has_unseen(id, facts, tally).await;
        if !has_unseen && tally.completed > 0 && !left.is_kept_back {
            left.remarks.push(UNSEEN.to_owned());
        }
        left.is_saved = is_current
            && has_unseen
            && left.unrecorded.is_empty()
            && self.is_without(&id.tenant, &tally.gone(), has_all).await;
        left
    }

    /// The versions that a run wrote, oldest first.
    async fn own_versions(&self, id: &RunId, facts: &RunFacts) -> Vec<VersionMeta> {
        let own = format!("run:{}", id.run);
        match self.0.means.backend.store().versions(&id.tenant).await {
            Ok(versions) => versions
                .into_iter()
                .filter(|it| it.written_by == own || facts.principals.contains(&it.written_by))
                .collect(),
            Err(error) => {
                tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %Chain(&error), "versions cannot be read");
                Vec::new()
            }
        }
    }

    /// Makes a state that the tool could not save the newest version.
    async fn push(&self, id: &RunId, state: bytes::Bytes) -> Result<u64, RunsError> {
        let means = &self.0.means;
        let mappings = means.projector.mappings();
        let ingested = tokio::task::spawn_blocking(move || ingest(state, None, &mappings));
        let ingested = ingested.await.map_err(|error| RunsError::Random(error.to_string()))?;
        let ingested = ingested.map_err(|refusal| RunsError::Backend(refusal.into()))?;
        let caller = own_caller(id);
        let lock = LockInfo {
            id: LockId::parse(&uuid::Uuid::new_v4().to_string())
                .map_err(|error| RunsError::Random(error.to_string()))?,
            operation: "errored.tfstate".to_owned(),
            info: format!("what run {} could not save", id.run),
            who: caller.name.clone(),
            version: String::new(),
            created: means.clock.now().to_string(),
            path: String::new(),
        };
        means.backend.lock(&id.tenant, &lock, &caller).await?;
        let written = means.backend.post(&id.tenant, Some(&lock.id), &ingested, &caller).await;
        let unlocked = means.backend.unlock(&id.tenant, &Unlock::Id(lock.id), &caller).await;
        written?;
        unlocked?;
        means.catalogue.touch(&id.tenant);
        // What earlier runs created may be in it. Boxed: it may lead back here.
        Box::pin(self.accepted(&id.tenant)).await;
        Ok(means.backend.current(&id.tenant).await?.map_or(0, |head| head.version.get()))
    }
}

/// A run itself, as the rules of the state backend see it.
fn own_caller(id: &RunId) -> Caller {
    Caller { name: format!("run:{}", id.run), may_break_locks: true, may_create_tenants: false }
}
