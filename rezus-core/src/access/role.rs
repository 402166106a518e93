//! Roles, and to whom they are granted where.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::PrincipalName;
use crate::base::TenantName;

/// What somebody may do in a tenant. Each role may do what the ones before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// See what is declared and observed, and never a secret: no state body, no credential.
    View,
    /// Read and write states, break locks, roll back, pin versions.
    Edit,
    /// Create, configure and remove tenants; all accounts, where it is granted for all tenants.
    Admin,
}

/// The text is no role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a role is view, edit or admin")]
pub struct RoleError;

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 3] = [Self::View, Self::Edit, Self::Admin];

    /// Returns the role's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(RoleError)
    }
}

/// Where a role is granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In every tenant, present and future.
    All,
    /// In these, whether they exist yet or not.
    Tenants(BTreeSet<TenantName>),
}

impl Scope {
    /// Tells whether a tenant is in it.
    pub fn covers(&self, tenant: &TenantName) -> bool {
        match self {
            Self::All => true,
            Self::Tenants(tenants) => tenants.contains(tenant),
        }
    }
}

/// To whom a role is granted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A user.
    User(PrincipalName),
    /// All members of a group.
    Group(PrincipalName),
}

/// A role in a scope for somebody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    /// To whom.
    pub subject: Subject,
    /// What.
    pub role: Role,
    /// Where.
    pub scope: Scope,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_ordered_and_read_as_they_are_written() {
        assert!(Role::View < Role::Edit && Role::Edit < Role::Admin);
        for role in Role::ALL {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert_eq!("root".parse::<Role>(), Err(RoleError));
    }
}
