//! Which tenants a caller sees.

use std::collections::BTreeSet;
use std::sync::Arc;

use rezus_core::access::Identity;
use rezus_core::base::TenantName;

use super::item::Item;

/// Which tenants a caller sees: of lists over all of them, the objects of these.
#[derive(Clone, Debug)]
pub enum Sight {
    /// All.
    All,
    /// These.
    Some(Arc<BTreeSet<TenantName>>),
}

impl Sight {
    /// What somebody sees.
    pub fn of(identity: &Identity) -> Self {
        identity.access.tenants().map_or(Self::All, |tenants| Self::Some(Arc::new(tenants.clone())))
    }

    /// Tells whether a caller sees a tenant.
    pub fn sees_tenant(&self, tenant: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(tenants) => tenants.iter().any(|name| name.as_str() == tenant),
        }
    }

    /// Tells whether a caller sees an object: a tenant's, or what belongs to none.
    pub fn sees(&self, item: &Item) -> bool {
        match (self, item.kind().kind) {
            (Self::All, _) | (_, "Provider") => true,
            (_, "Tenant" | "Namespace") => self.sees_tenant(item.name()),
            _ => self.sees_tenant(item.namespace()),
        }
    }
}
