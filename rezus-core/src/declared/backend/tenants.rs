//! What operators do to tenants: creating, removing, settings that the rules go by.

use super::{BackendError, Refusal, StateBackend, known, rules};
use crate::base::TenantName;
use crate::declared::store::{Content, TenantRecord};
use crate::declared::{Encryption, Freeze};

impl StateBackend {
    /// Creates a tenant that has no state yet.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] if it exists, or its name is a lock's ID.
    pub async fn create_tenant(&self, tenant: &TenantName) -> Result<(), BackendError> {
        self.change(tenant, |record| {
            if record.is_some_and(|record| record.permanent) {
                return Err(Refusal::TenantExists { tenant: tenant.clone() });
            }
            let record = record.cloned().unwrap_or_else(|| rules::new_tenant(tenant, self.clock.now()));
            let record = TenantRecord { permanent: true, ..record };
            Ok(Some((rules::Next::settings(Some(record)), None)))
        })
        .await?;
        Ok(())
    }

    /// Forgets a tenant with all its versions. `forget_declared` also where its state still declares something.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] while a lock is held, or while the state declares something.
    pub async fn delete_tenant(
        &self,
        tenant: &TenantName,
        forget_declared: bool,
    ) -> Result<(), BackendError> {
        self.change(tenant, |record| {
            let record = known(record, tenant)?;
            if let Some(held) = &record.lock {
                return Err(Refusal::Locked { holder: Box::new(held.info.clone()) });
            }
            let objects = match record.head.as_ref().map(|head| head.content) {
                Some(Content::Plain { objects, .. }) => objects,
                Some(Content::Encrypted) => 1,
                Some(Content::Tombstone) | None => 0,
            };
            if objects > 0 && !forget_declared {
                return Err(Refusal::StillDeclared { tenant: tenant.clone(), objects });
            }
            Ok(Some((rules::Next::settings(None), None)))
        })
        .await?;
        Ok(())
    }

    /// Sets whether writes without the lock are refused.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] if there is no such tenant.
    pub async fn require_locks(&self, tenant: &TenantName, require: bool) -> Result<(), BackendError> {
        self.set(tenant, |record| record.require_locks = require).await
    }

    /// Sets what is asked of a tenant's states; `None` for what the server asks of all.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] if there is no such tenant.
    pub async fn set_encryption(
        &self,
        tenant: &TenantName,
        encryption: Option<Encryption>,
    ) -> Result<(), BackendError> {
        self.set(tenant, |record| record.encryption = encryption).await
    }

    /// Freezes a tenant, or lets it go. A tenant that is frozen stays, whoever lets its lock go.
    ///
    /// # Errors
    ///
    /// [`BackendError::Refused`] if there is no such tenant.
    pub async fn set_freeze(&self, tenant: &TenantName, freeze: Option<Freeze>) -> Result<(), BackendError> {
        let set = |record: &mut TenantRecord| {
            record.permanent |= freeze.is_some();
            record.freeze.clone_from(&freeze);
        };
        self.set(tenant, set).await
    }

    async fn set(
        &self,
        tenant: &TenantName,
        set: impl Fn(&mut TenantRecord) + Send + Sync,
    ) -> Result<(), BackendError> {
        self.change(tenant, |record| {
            let mut record = known(record, tenant)?.clone();
            set(&mut record);
            Ok(Some((rules::Next::settings(Some(record)), None)))
        })
        .await?;
        Ok(())
    }
}
