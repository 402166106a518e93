//! Where the runs are that are shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use rezus_core::base::TenantName;
use rezus_core::declared::store::StoreError;
use rezus_core::runs::RunRecord;
use rezus_core::runs::store::{RunStore, RunStoreError};
use rezus_core::runs::workspace::TenantSettings;

use crate::error::Chain;
use crate::kube::show::KnownRuns;
use crate::runs::Live;
use crate::workspaces::Workspaces;

/// Where the runs are that are shown.
#[derive(Clone, Debug)]
pub struct RunsShown {
    /// Those that are kept.
    pub store: Arc<dyn RunStore>,
    /// What is said of those that go on.
    pub live: Live,
    /// What is set of tenants.
    pub workspaces: Workspaces,
}

impl RunsShown {
    /// Tells whether a tenant's states can be decrypted: its key is named.
    pub(super) async fn decrypts(&self, tenant: &TenantName) -> bool {
        let settings = self.workspaces.of(tenant).await;
        settings.is_ok_and(|settings| settings.workspace.is_some_and(|workspace| workspace.encrypts()))
    }

    /// Returns what is known of a tenant's runs, and the labels that its operators gave it: nothing where that is damaged,
    /// which is no reason to show nothing of it.
    pub(super) async fn of(
        &self,
        tenant: &TenantName,
    ) -> Result<(KnownRuns, BTreeMap<String, String>), StoreError> {
        let read = async {
            let records = self.store.runs(Some(tenant)).await?;
            Ok((records, self.workspaces.of(tenant).await?))
        };
        let (mut records, settings): (Vec<RunRecord>, TenantSettings) = match read.await {
            Ok(found) => found,
            Err(RunStoreError::Unavailable { source }) => return Err(StoreError::Unavailable { source }),
            Err(error @ RunStoreError::Corrupt { .. }) => {
                tracing::error!(%tenant, cause = %Chain(&error), "what is kept of runs and settings is damaged: it is not shown");
                return Ok(Default::default());
            }
        };
        self.live.bring_up_to_date(&mut records);
        let is_configured = settings.workspace.is_some();
        Ok((KnownRuns { records, is_configured, skipped: self.live.skipped(tenant) }, settings.labels))
    }
}
