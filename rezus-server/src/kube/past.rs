//! What was declared as of a version: made one at a time, and kept for whoever asks for the same next.

use std::sync::Arc;

use rezus_core::base::TenantName;
use rezus_core::declared::VersionNumber;
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projector::{Declared, Projector};
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::store::StateStore;
use tokio::sync::Mutex;

/// Up to how many objects what was made last is kept.
const KEPT: usize = 20_000;

/// Reads the past. A whole state is in memory while that is done, and is there once.
#[derive(Clone, Debug)]
pub struct Past {
    states: Arc<dyn StateStore>,
    projector: Projector,
    last: Arc<Mutex<Option<Made>>>,
}

/// What was made last, and by which mappings.
#[derive(Debug)]
struct Made {
    tenant: TenantName,
    declared: Arc<Declared>,
    mappings: Mappings,
}

impl Past {
    /// A past of a store's tenants.
    pub fn new(states: Arc<dyn StateStore>, projector: Projector) -> Self {
        Self { states, projector, last: Arc::default() }
    }

    /// Returns one version as it was then.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where that version is none, or no state in clear.
    pub async fn as_of(
        &self,
        tenant: &TenantName,
        number: VersionNumber,
    ) -> Result<Arc<Declared>, ReadError> {
        let mut last = self.last.lock().await;
        let mappings = self.projector.mappings();
        let meta = self.states.version(tenant, number).await?;
        let is_it = |made: &&Made| {
            made.tenant == *tenant
                && made.mappings.is_same(&mappings)
                && meta.as_ref().is_some_and(|meta| meta.is_same_write(&made.declared.version))
        };
        if let Some(made) = last.as_ref().filter(is_it) {
            return Ok(Arc::clone(&made.declared));
        }
        // First, so that there are never two.
        *last = None;
        let declared = Arc::new(self.projector.as_of(tenant, number).await?);
        if declared.objects.len() <= KEPT {
            *last = Some(Made { tenant: tenant.clone(), declared: Arc::clone(&declared), mappings });
        }
        Ok(declared)
    }
}
