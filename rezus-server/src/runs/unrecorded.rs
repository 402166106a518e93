//! What runs created and no version of the state has.
//!
//! It is found by looking into the newest version. One that is encrypted can be looked into once its plaintext was had:
//! until then, what a run created is on its list as not known to be there.

use std::collections::{BTreeMap, BTreeSet};

use rezus_core::base::TenantName;
use rezus_core::declared::ResourceAddress;
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::store::Content;
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{Created, Run, RunRecord};

use super::{Runs, RunsError};
use crate::error::Chain;

/// What was created and is in no version, as far as that is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unrecorded {
    pub(super) created: Vec<Created>,
    /// Whether the newest version could not be looked into.
    pub(super) is_unread: bool,
}

impl Unrecorded {
    /// Tells whether there is something, and it may be in the newest version all the same.
    pub(super) fn is_unknown(&self) -> bool {
        self.is_unread && !self.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.created.is_empty()
    }
}

impl Runs {
    /// Returns those of what was created that are not in the newest version, by address and ID.
    pub(super) async fn unrecorded(&self, tenant: &TenantName, created: Vec<Created>) -> Unrecorded {
        if created.is_empty() {
            return Unrecorded::default();
        }
        let recorded = match self.recorded(tenant, created.iter().map(|it| it.address.as_str())).await {
            Ok(recorded) => recorded,
            Err(ReadError::NoState(_) | ReadError::NoTenant(_)) => BTreeMap::new(),
            Err(ReadError::Encrypted { .. }) => return Unrecorded { created, is_unread: true },
            Err(error) => {
                tracing::error!(tenant.name = %tenant, cause = %Chain(&error), "the state cannot be read to compare it with what was created");
                return Unrecorded { created, is_unread: true };
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
        let created = created.into_iter().filter(|it| !is_recorded(it)).collect();
        Unrecorded { created, is_unread: false }
    }

    /// Tells whether the newest version holds none of these: the last one that was written in the middle of an apply
    /// still has what was destroyed after it. Of one that cannot be looked into, `otherwise` is told.
    pub(super) async fn is_without(
        &self,
        tenant: &TenantName,
        gone: &BTreeSet<&str>,
        otherwise: bool,
    ) -> bool {
        if gone.is_empty() {
            return true;
        }
        match self.recorded(tenant, gone.iter().copied()).await {
            Ok(recorded) => recorded.is_empty(),
            Err(ReadError::NoState(_)) => true,
            Err(ReadError::Encrypted { .. }) => otherwise,
            Err(_) => false,
        }
    }

    /// Which of these addresses the newest version holds, each with its `id` where it has one.
    async fn recorded(
        &self,
        tenant: &TenantName,
        addresses: impl Iterator<Item = &str>,
    ) -> Result<BTreeMap<ResourceAddress, Option<String>>, ReadError> {
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

    /// Takes what the newest version contains, whoever wrote it, off the lists of what runs created and nothing
    /// recorded. Where it is encrypted, its plaintext is asked for, and this is done again when that is there.
    pub(super) async fn recheck_unrecorded(&self, tenant: &TenantName) {
        // One after the other: the last one reads the newest version.
        let _turn = self.0.rechecks.lock().await;
        if !self.0.board.lock().await.unrecorded.remove(tenant) {
            return;
        }
        let records = match self.store().runs(Some(tenant)).await {
            Ok(records) => records,
            Err(error) => {
                tracing::warn!(tenant.name = %tenant, cause = %Chain(&error), "runs cannot be read");
                self.0.board.lock().await.unrecorded.insert(tenant.clone());
                return;
            }
        };
        let (mut is_clear, mut is_unread) = (true, false);
        let is_open = |it: &RunRecord| it.phase().is_end() && !it.facts().unrecorded.is_empty();
        for record in records.into_iter().filter(is_open) {
            let facts = record.facts();
            let found = self.unrecorded(tenant, facts.unrecorded.clone()).await;
            is_clear &= found.is_empty();
            is_unread |= found.is_unread;
            // That it was not in an earlier version says nothing of one that cannot be looked into.
            if found.created == facts.unrecorded && found.is_unread == facts.unread {
                continue;
            }
            let id = RunId { tenant: tenant.clone(), run: facts.name.clone() };
            if let Err(error) = self.keep_unrecorded(&id, found).await {
                is_clear = false;
                tracing::warn!(tenant.name = %tenant, run = %id.run, cause = %Chain(&error), "a run cannot be kept now");
            }
        }
        if !is_clear {
            self.0.board.lock().await.unrecorded.insert(tenant.clone());
        }
        if is_unread {
            self.ask_for_plaintext(tenant).await;
        }
    }

    async fn keep_unrecorded(&self, id: &RunId, found: Unrecorded) -> Result<(), RunsError> {
        // As it is now: somebody may have dismissed it meanwhile.
        let _board = self.0.board.lock().await;
        if let Run::Ended(ended) = Run::from(self.kept(&id.tenant, &id.run).await?) {
            let record = Run::Ended(ended.unrecorded(found.created, found.is_unread)).record();
            self.store().put(&record).await?;
            self.0.means.catalogue.touch(&id.tenant);
        }
        Ok(())
    }

    /// Has the plaintext of a tenant's newest version had, before others that nobody waits for.
    async fn ask_for_plaintext(&self, tenant: &TenantName) {
        let means = &self.0.means;
        let Ok(Some(head)) = means.backend.current(tenant).await else {
            return;
        };
        if head.content == Content::Encrypted {
            means.desk.ask(tenant, head.version, means.clock.now());
            means.desk.hurry(tenant);
        }
    }

    /// Says that a tenant's state is not locked any more.
    pub async fn unlocked(&self, tenant: &TenantName) {
        // Plaintext is not had while it is locked.
        self.recheck_unrecorded(tenant).await;
    }
}
