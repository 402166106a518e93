//! What is asked before a run is made, and how it would be made.

use std::sync::atomic::Ordering;

use rezus_core::base::TenantName;
use rezus_core::runs::workspace::Workspace;
use rezus_core::runs::{Operation, Pending, Run, RunName, RunRecord};

use super::create::facts;
use super::{Name, NewRun, Runs, RunsError};

impl Runs {
    /// Returns what a tenant's run is made with, if it may be made now.
    pub(super) async fn admit(&self, tenant: &TenantName, new: &NewRun) -> Result<Workspace, RunsError> {
        let means = &self.0.means;
        if self.0.closed.load(Ordering::SeqCst) {
            return Err(RunsError::Closed);
        }
        self.are_allowed()?;
        new.request.check()?;
        if means.backend.store().tenant(tenant).await?.is_none() {
            return Err(RunsError::NoTenant(tenant.clone()));
        }
        let workspace = self.workspace(tenant).await?;
        if new.request.operation == Operation::Destroy && workspace.protect_destroy {
            return Err(RunsError::Protected(tenant.clone()));
        }
        Ok(workspace)
    }

    /// Fails where there are no runs.
    pub(super) fn are_allowed(&self) -> Result<(), RunsError> {
        let means = &self.0.means;
        if !means.config.enabled {
            return Err(RunsError::Disabled);
        }
        if !means.auth.is_enabled() && !means.config.allow_without_auth {
            return Err(RunsError::NoAuthentication);
        }
        Ok(())
    }

    /// Returns the run that [`create`](Self::create) would make, and makes none.
    ///
    /// # Errors
    ///
    /// [`RunsError`], as `create` would say.
    pub async fn rehearse(&self, tenant: &TenantName, new: &NewRun) -> Result<RunRecord, RunsError> {
        let workspace = self.admit(tenant, new).await?;
        let name = match &new.name {
            Name::Given(name) if self.store().run(tenant, name).await?.is_some() => {
                return Err(RunsError::Exists(name.clone()));
            }
            Name::Given(name) => name.clone(),
            Name::Prefix(prefix) => RunName::generate(prefix, [0; 5])?,
        };
        let facts = facts(tenant, name, new, &workspace, self.0.means.clock.now());
        Ok(Run::Pending(Pending::new(facts)).record())
    }
}
