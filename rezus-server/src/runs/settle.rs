//! Sees to what a stage left: its token, its lock, a state that could not be saved, and what was created and is in no
//! version of the state.

use std::collections::{BTreeMap, BTreeSet};

use rezus_core::access::AuditRow;
use rezus_core::base::TenantName;
use rezus_core::declared::backend::{Caller, Unlock, ingest};
use rezus_core::declared::store::{Content, VersionMeta};
use rezus_core::declared::{LockId, LockInfo, ResourceAddress};
use rezus_core::runs::executor::{Exit, RunId};
use rezus_core::runs::{Created, Run, RunFacts, RunRecord, Tally};

use super::token::RunToken;
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
    /// What was created and is in no version.
    pub(super) unrecorded: Vec<Created>,
    /// What else is to be said.
    pub(super) remarks: Vec<String>,
}

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
        let mut has_unseen =
            exit == Exit::Code(0) || tally.done.is_some() || self.has_unseen(id, facts, tally).await;
        if let Some(work_dir) = facts.work_dir.clone() {
            match self.executor().errored_state(work_dir.clone()).await {
                Ok(Some(state)) => {
                    left.is_kept_back = true;
                    match self.push(id, state).await {
                        Ok(version) => {
                            left.is_kept_back = false;
                            has_unseen = true;
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
        left.unrecorded = self.unrecorded(&id.tenant, tally.created.clone(), !own.is_empty()).await;
        let is_current = match self.0.means.backend.current(&id.tenant).await {
            Ok(head) => head.map(|head| head.version.get()) == left.version_after,
            Err(_) => false,
        };
        if !has_unseen && tally.completed > 0 && !left.is_kept_back {
            left.remarks.push(UNSEEN.to_owned());
        }
        left.is_saved = left.version_after.is_some()
            && is_current
            && has_unseen
            && left.unrecorded.is_empty()
            && self.is_without(&id.tenant, &tally.gone()).await;
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

    /// Returns those of what was created that are not in the newest version, by address and ID.
    ///
    /// An encrypted state cannot be looked into: there, what was created counts as recorded once the run wrote a version.
    async fn unrecorded(
        &self,
        tenant: &TenantName,
        created: Vec<Created>,
        has_written: bool,
    ) -> Vec<Created> {
        if created.is_empty() {
            return created;
        }
        let head = match self.0.means.backend.current(tenant).await {
            Ok(Some(head)) => head,
            Ok(None) => return created,
            Err(error) => {
                tracing::error!(tenant.name = %tenant, cause = %Chain(&error), "the state cannot be read to compare it with what was created");
                return created;
            }
        };
        if head.content == Content::Encrypted {
            return if has_written { Vec::new() } else { created };
        }
        let addresses = created.iter().map(|it| it.address.as_str());
        let recorded = match self.recorded(tenant, addresses).await {
            Ok(recorded) => recorded,
            Err(error) => {
                tracing::error!(tenant.name = %tenant, cause = %Chain(&error), "the state cannot be read to compare it with what was created");
                return created;
            }
        };
        let is_recorded = |it: &Created| {
            let known = ResourceAddress::parse(&it.address).ok().and_then(|address| recorded.get(&address));
            match (known, &it.id) {
                (Some(Some(known)), Some(id)) => known == id,
                // The tool told no ID, or the state holds none: the address has to do.
                (Some(_), _) => true,
                (None, _) => false,
            }
        };
        created.into_iter().filter(|it| !is_recorded(it)).collect()
    }

    /// Tells whether the newest version holds none of these: the last one that was written in the middle of an apply
    /// still has what was destroyed after it. An encrypted one cannot be looked into.
    async fn is_without(&self, tenant: &TenantName, gone: &BTreeSet<&str>) -> bool {
        if gone.is_empty() {
            return true;
        }
        match self.0.means.backend.current(tenant).await {
            Ok(Some(head)) if head.content == Content::Encrypted => true,
            Ok(_) => {
                let recorded = self.recorded(tenant, gone.iter().copied()).await;
                recorded.is_ok_and(|recorded| recorded.is_empty())
            }
            Err(_) => false,
        }
    }

    /// Which of these addresses the newest version holds, each with its `id` where it has one.
    async fn recorded(
        &self,
        tenant: &TenantName,
        addresses: impl Iterator<Item = &str>,
    ) -> Result<BTreeMap<ResourceAddress, Option<String>>, rezus_core::declared::reader::ReadError> {
        #[derive(serde::Deserialize)]
        struct Instance {
            #[serde(default)]
            attributes: Attributes,
        }
        #[derive(Default, serde::Deserialize)]
        #[serde(default)]
        struct Attributes {
            id: Option<serde_json::Value>,
        }
        let addresses = addresses.filter_map(|text| ResourceAddress::parse(text).ok()).collect();
        let objects = self.0.means.reader.objects_at(tenant, &addresses).await?;
        let recorded = objects.into_iter().map(|object| {
            let instance = serde_json::from_slice::<Instance>(&object.bytes).ok();
            let id = instance.and_then(|instance| instance.attributes.id).map(|id| match id {
                serde_json::Value::String(text) => text,
                other => other.to_string(),
            });
            (object.row.address, id)
        });
        Ok(recorded.collect())
    }

    /// Takes what a new version contains off the lists of what runs created and nothing recorded.
    pub(super) async fn recheck_unrecorded(&self, tenant: &TenantName) {
        let records = match self.store().runs(Some(tenant)).await {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(tenant.name = %tenant, cause = %Chain(&error), "runs cannot be read");
                return;
            }
        };
        let mut is_clear = true;
        let is_open = |it: &RunRecord| it.phase().is_end() && !it.facts().unrecorded.is_empty();
        for record in records.into_iter().filter(is_open) {
            let before = record.facts().unrecorded.clone();
            let still = self.unrecorded(tenant, before.clone(), false).await;
            is_clear &= still.is_empty();
            if still == before {
                continue;
            }
            // As it is now: somebody may have dismissed it meanwhile.
            let board = self.0.board.lock().await;
            let kept = self.kept(tenant, &record.facts().name).await;
            if let Ok(Run::Ended(ended)) = kept.map(Run::from) {
                let record = Run::Ended(ended.unrecorded(still)).record();
                if let Err(error) = self.store().put(&record).await {
                    tracing::warn!(tenant.name = %tenant, cause = %Chain(&error), "a run cannot be kept now");
                }
                self.0.means.catalogue.touch(tenant);
            }
            drop(board);
        }
        if is_clear {
            self.0.board.lock().await.unrecorded.remove(tenant);
        }
    }
}

/// A run itself, as the rules of the state backend see it.
fn own_caller(id: &RunId) -> Caller {
    Caller { name: format!("run:{}", id.run), may_break_locks: true, may_create_tenants: false }
}
