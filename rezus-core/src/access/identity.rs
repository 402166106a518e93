//! Who asks, and what is granted to them.

use std::collections::{BTreeMap, BTreeSet};

use super::{Role, Scope, TokenId};
use crate::base::TenantName;

/// The name of whoever asks a server that runs without authentication.
pub const ANONYMOUS: &str = "anonymous";

/// Who asks, as the server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name; of a token for a tenant's state `backend:TENANT:ID`.
    pub name: String,
    /// The groups that the user is in.
    pub groups: Vec<String>,
    /// What is granted to the user and these groups.
    pub access: Access,
    /// By which token it was proved, if by one.
    pub token: Option<TokenId>,
}

impl Identity {
    /// Somebody who may do everything.
    pub fn admin(name: &str) -> Self {
        let access = Access::of([(Role::Admin, &Scope::All)]);
        Self { name: name.to_owned(), groups: Vec::new(), access, token: None }
    }

    /// Whoever asks a server that runs without authentication: it may do everything.
    pub fn anonymous() -> Self {
        Self::admin(ANONYMOUS)
    }

    /// Tells whether nothing is known but that it may do everything.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }
}

/// What somebody may do where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    everywhere: Option<Role>,
    named: BTreeMap<TenantName, Role>,
    /// Those of `named`.
    tenants: BTreeSet<TenantName>,
    backend: Option<TenantName>,
}

impl Access {
    /// Adds grants up: of several in a tenant the greatest counts.
    pub fn of<'a>(grants: impl IntoIterator<Item = (Role, &'a Scope)>) -> Self {
        let mut access = Self::default();
        for (role, scope) in grants {
            match scope {
                Scope::All => access.everywhere = access.everywhere.max(Some(role)),
                Scope::Tenants(tenants) => {
                    for tenant in tenants {
                        let held = access.named.entry(tenant.clone()).or_insert(role);
                        *held = role.max(*held);
                    }
                }
            }
        }
        access.tenants = access.named.keys().cloned().collect();
        access
    }

    /// What a token for one tenant's state opens.
    pub fn backend(tenant: TenantName) -> Self {
        Self { backend: Some(tenant), ..Self::default() }
    }

    /// Returns the role in a tenant.
    pub fn role_in(&self, tenant: &TenantName) -> Option<Role> {
        self.everywhere.max(self.named.get(tenant).copied())
    }

    /// Returns the role in all tenants, present and future.
    pub fn role_everywhere(&self) -> Option<Role> {
        self.everywhere
    }

    /// Returns the greatest role there is in any tenant.
    pub fn role_somewhere(&self) -> Option<Role> {
        self.everywhere.max(self.named.values().copied().max())
    }

    /// Returns the tenant whose state a backend token opens.
    pub fn backend_of(&self) -> Option<&TenantName> {
        self.backend.as_ref()
    }

    /// Returns the tenants that a list may show; `None` for all of them.
    pub fn tenants(&self) -> Option<&BTreeSet<TenantName>> {
        if self.everywhere.is_some() { None } else { Some(&self.tenants) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantName {
        TenantName::parse(name).unwrap()
    }

    fn named(names: &[&str]) -> Scope {
        Scope::Tenants(names.iter().map(|name| tenant(name)).collect())
    }

    #[test]
    fn the_greatest_of_all_grants_counts() {
        let (all, ab, b) = (Scope::All, named(&["a", "b"]), named(&["b"]));
        let access = Access::of([(Role::View, &all), (Role::Edit, &ab), (Role::Admin, &b), (Role::View, &b)]);
        let roles = ["a", "b", "c"].map(|name| access.role_in(&tenant(name)));
        assert_eq!(roles, [Some(Role::Edit), Some(Role::Admin), Some(Role::View)]);
        assert_eq!(access.role_everywhere(), Some(Role::View));
        assert_eq!(access.role_somewhere(), Some(Role::Admin));
        assert_eq!(access.tenants(), None);
    }

    #[test]
    fn who_is_bound_to_tenants_is_nobody_elsewhere() {
        let ab = named(&["a", "b"]);
        let access = Access::of([(Role::Admin, &ab)]);
        assert_eq!(access.role_in(&tenant("c")), None);
        assert_eq!(access.role_everywhere(), None);
        assert_eq!(access.tenants(), Some(&BTreeSet::from([tenant("a"), tenant("b")])));
    }

    #[test]
    fn a_backend_token_has_no_role_at_all() {
        let access = Access::backend(tenant("a"));
        assert_eq!(access.backend_of(), Some(&tenant("a")));
        assert_eq!((access.role_in(&tenant("a")), access.role_somewhere()), (None, None));
        assert_eq!(access.tenants(), Some(&BTreeSet::new()));
    }
}
