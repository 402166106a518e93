//! Lets versions go that retention no longer keeps.

use std::sync::Arc;
use std::time::Duration;

use rezus_core::base::{Clock, TenantName};
use rezus_core::declared::VersionNumber;
use rezus_core::declared::backend::Retention;
use rezus_core::declared::store::{StateStore, StoreError, VersionMeta};

/// The sweep of one store.
#[derive(Clone, Debug)]
pub struct Sweep {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    policy: Retention,
}

/// What a sweep does in one tenant.
#[derive(Clone, Debug)]
pub struct Expired {
    /// Which tenant.
    pub tenant: TenantName,
    /// The versions that go, oldest first.
    pub versions: Vec<VersionMeta>,
}

impl Sweep {
    /// Makes a sweep by a policy.
    pub fn new(store: Arc<dyn StateStore>, clock: Arc<dyn Clock>, policy: Retention) -> Self {
        Self { store, clock, policy }
    }

    /// Returns what would go now, tenant by tenant.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn plan(&self) -> Result<Vec<Expired>, StoreError> {
        let now = self.clock.now();
        let mut plan = Vec::new();
        for record in self.store.tenants().await? {
            let versions = self.store.versions(&record.name).await?;
            let expired = self.policy.expired(&versions, now);
            if !expired.is_empty() {
                let versions = versions.into_iter().filter(|meta| expired.contains(&meta.version)).collect();
                plan.push(Expired { tenant: record.name, versions });
            }
        }
        Ok(plan)
    }

    /// Lets go what a plan names, and gives its space back. Returns how many versions went.
    ///
    /// # Errors
    ///
    /// [`StoreError`]; what went until then stays gone.
    pub async fn carry_out(&self, plan: &[Expired]) -> Result<u64, StoreError> {
        let mut removed = 0;
        for expired in plan {
            let numbers: Vec<VersionNumber> = expired.versions.iter().map(|meta| meta.version).collect();
            removed += self.store.remove_versions(&expired.tenant, &numbers).await?;
        }
        Ok(removed)
    }

    /// Gives free space back.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn tidy(&self) -> Result<(), StoreError> {
        self.store.tidy(self.clock.now()).await
    }

    /// Sweeps every `interval` until the task is ended.
    pub async fn run(self, interval: Duration) {
        let mut ticks = tokio::time::interval(interval.max(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match self.once().await {
                Ok(0) => {}
                Ok(removed) => {
                    tracing::info!(versions = removed, "versions past their retention were removed");
                }
                Err(error) => {
                    tracing::warn!(cause = %crate::error::Chain(&error), "a sweep of old versions failed");
                }
            }
        }
    }

    async fn once(&self) -> Result<u64, StoreError> {
        let removed = self.carry_out(&self.plan().await?).await?;
        self.tidy().await?;
        Ok(removed)
    }
}
