//! What is so of runs for a moment and is kept nowhere: how far they are, and why drift was not looked for. Whoever shows
//! runs reads it beside what is kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::runs::RunRecord;
use rezus_core::runs::executor::RunId;

/// What is so now. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Runs that say more of themselves than what is kept of them.
    runs: HashMap<RunId, RunRecord>,
    /// When and why drift was last not looked for.
    skipped: HashMap<TenantName, (Timestamp, String)>,
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says how far a run is.
    pub(super) fn say(&self, id: &RunId, record: RunRecord) {
        self.lock().runs.insert(id.clone(), record);
    }

    /// Says that a run is as it is kept.
    pub(super) fn is_kept(&self, id: &RunId) {
        self.lock().runs.remove(id);
    }

    /// Puts what is said of a tenant's runs in place of what is kept of them.
    pub fn bring_up_to_date(&self, records: &mut [RunRecord]) {
        let inner = self.lock();
        if inner.runs.is_empty() {
            return;
        }
        for record in records {
            let id = RunId { tenant: record.tenant().clone(), run: record.facts().name.clone() };
            // A run that has moved since is as it is kept.
            if let Some(said) = inner.runs.get(&id).filter(|said| said.phase() == record.phase()) {
                record.clone_from(said);
            }
        }
    }

    /// Says that drift was not looked for. Returns whether that is news.
    pub(super) fn skip(&self, tenant: &TenantName, at: Timestamp, why: &str) -> bool {
        let before = self.lock().skipped.insert(tenant.clone(), (at, why.to_owned()));
        before.is_none_or(|(_, before)| before != why)
    }

    /// Says that drift is looked for.
    pub(super) fn looked(&self, tenant: &TenantName) {
        self.lock().skipped.remove(tenant);
    }

    /// Tells when and why drift was last not looked for, where it has not been since.
    pub fn skipped(&self, tenant: &TenantName) -> Option<(Timestamp, String)> {
        self.lock().skipped.get(tenant).cloned()
    }
}
