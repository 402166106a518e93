//! Which tenants a caller sees.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use rezus_core::access::Identity;
use rezus_core::base::TenantName;

use super::item::Item;

/// A caller, and which tenants they see: of lists over all tenants, the objects of these.
#[derive(Clone, Debug)]
pub struct Sight(Option<Arc<Identity>>);

impl<S: Send + Sync> FromRequestParts<S> for Sight {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get::<Identity>().cloned().map(Arc::new)))
    }
}

impl From<Identity> for Sight {
    fn from(identity: Identity) -> Self {
        Self(Some(Arc::new(identity)))
    }
}

impl Sight {
    /// Returns whose it is; nobody's shows nothing.
    pub fn of(&self) -> Option<&Identity> {
        self.0.as_deref()
    }

    /// The tenants that are seen; `None` for all.
    fn tenants(&self) -> Option<&BTreeSet<TenantName>> {
        static NONE: BTreeSet<TenantName> = BTreeSet::new();
        self.of().map_or(Some(&NONE), |identity| identity.access.tenants())
    }

    /// Tells whether a caller sees a tenant.
    pub fn sees_tenant(&self, tenant: &str) -> bool {
        self.tenants().is_none_or(|tenants| tenants.iter().any(|name| name.as_str() == tenant))
    }

    /// Tells whether a caller sees an object: a tenant's, or what belongs to none.
    pub fn sees(&self, item: &Item) -> bool {
        match item.kind().kind {
            "Provider" => true,
            "Tenant" | "Namespace" => self.sees_tenant(item.name()),
            _ => self.sees_tenant(item.namespace()),
        }
    }
}
