//! Which tenants a caller sees.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

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

impl<S: Send + Sync> FromRequestParts<S> for Sight {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let identity = parts.extensions.get::<Identity>();
        Ok(match identity.map(|identity| identity.access.tenants().cloned()) {
            Some(None) => Self::All,
            Some(Some(tenants)) => Self::Some(Arc::new(tenants)),
            // Nobody.
            None => Self::Some(Arc::default()),
        })
    }
}

impl Sight {
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
