//! All accounts as they are at one time, and who is recognised by them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    Access, Grant, Identity, PrincipalName, Role, Scope, Subject, TokenDigest, TokenKind, TokenRecord,
};
use crate::base::Timestamp;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// What they are called.
    pub name: PrincipalName,
    /// The groups they are in.
    pub groups: BTreeSet<PrincipalName>,
    /// When the account was made.
    pub created_at: Timestamp,
    /// Who made it.
    pub created_by: String,
}

/// All accounts: what a store holds at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Sorted by name.
    pub users: Vec<User>,
    /// Sorted; one for each subject and role.
    pub grants: Vec<Grant>,
    /// Sorted by time of making, then by ID. Also those that work no more.
    pub tokens: Vec<TokenRecord>,
}

/// Why a token opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// There is none like it, or its user is gone.
    #[error("unknown")]
    Unknown,
    /// Its time is over.
    #[error("expired")]
    Expired,
    /// It was revoked.
    #[error("revoked")]
    Revoked,
}

/// All accounts, found by what is shown to prove one.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    users: BTreeMap<PrincipalName, User>,
    grants: BTreeMap<Subject, Vec<(Role, Scope)>>,
    tokens: Vec<TokenRecord>,
    /// Places in `tokens`.
    by_prefix: HashMap<[u8; 8], Vec<usize>>,
}

impl Directory {
    /// Makes a directory of accounts.
    pub fn new(accounts: Accounts) -> Self {
        let mut directory = Self {
            users: accounts.users.into_iter().map(|user| (user.name.clone(), user)).collect(),
            tokens: accounts.tokens,
            ..Self::default()
        };
        for Grant { subject, role, scope } in accounts.grants {
            directory.grants.entry(subject).or_default().push((role, scope));
        }
        for (place, token) in directory.tokens.iter().enumerate() {
            directory.by_prefix.entry(token.digest.prefix()).or_default().push(place);
        }
        directory
    }

    /// Returns all users, sorted by name.
    pub fn users(&self) -> impl Iterator<Item = &User> {
        self.users.values()
    }

    /// Returns a user.
    pub fn user(&self, name: &PrincipalName) -> Option<&User> {
        self.users.get(name)
    }

    /// Returns all tokens, also those that work no more.
    pub fn tokens(&self) -> &[TokenRecord] {
        &self.tokens
    }

    /// Returns what is granted to somebody, but not through a group.
    pub fn grants(&self, subject: &Subject) -> &[(Role, Scope)] {
        self.grants.get(subject).map_or(&[], Vec::as_slice)
    }

    /// Returns the groups to which something is granted, sorted.
    pub fn granted_groups(&self) -> impl Iterator<Item = &PrincipalName> {
        self.grants.keys().filter_map(|subject| match subject {
            Subject::Group(name) => Some(name),
            Subject::User(_) => None,
        })
    }

    /// Recognises a token, and whom it belongs to. Records are compared in a time that tells nothing.
    ///
    /// # Errors
    ///
    /// [`TokenFault`].
    pub fn by_token(
        &self,
        digest: &TokenDigest,
        now: Timestamp,
    ) -> Result<(Identity, &TokenRecord), TokenFault> {
        let places = self.by_prefix.get(&digest.prefix()).map_or(&[][..], Vec::as_slice);
        let found = places.iter().map(|place| &self.tokens[*place]).find(|token| token.digest == *digest);
        let token = found.ok_or(TokenFault::Unknown)?;
        if token.revoked_at.is_some() {
            return Err(TokenFault::Revoked);
        }
        if token.has_expired(now) {
            return Err(TokenFault::Expired);
        }
        Ok((self.owner(token).ok_or(TokenFault::Unknown)?, token))
    }

    /// Whom a token belongs to.
    fn owner(&self, token: &TokenRecord) -> Option<Identity> {
        let identity = match &token.kind {
            TokenKind::Backend(tenant) => Identity {
                name: format!("backend:{tenant}:{}", token.id),
                groups: Vec::new(),
                access: Access::backend(tenant.clone()),
                token: None,
            },
            TokenKind::Api(name) => self.by_user(name)?,
        };
        Some(Identity { token: Some(token.id.clone()), ..identity })
    }

    /// Recognises a user by name.
    pub fn by_user(&self, name: &PrincipalName) -> Option<Identity> {
        let user = self.users.get(name)?;
        Some(self.identity(name.as_str(), Some(name), &user.groups))
    }

    /// Recognises the subject of a certificate that was checked already: its common name is a user, its organisations
    /// are groups. It counts if there is such a user, or one of the groups has a grant.
    pub fn by_certificate(&self, common_name: &str, organizations: &[String]) -> Option<Identity> {
        let name = PrincipalName::parse(common_name).ok()?;
        let user = self.users.get(&name);
        let mut groups: BTreeSet<PrincipalName> =
            organizations.iter().filter_map(|group| PrincipalName::parse(group).ok()).collect();
        let is_known = user.is_some()
            || groups.iter().any(|group| !self.grants(&Subject::Group(group.clone())).is_empty());
        groups.extend(user.into_iter().flat_map(|user| user.groups.iter().cloned()));
        is_known.then(|| self.identity(common_name, user.map(|user| &user.name), &groups))
    }

    fn identity(
        &self,
        name: &str,
        user: Option<&PrincipalName>,
        groups: &BTreeSet<PrincipalName>,
    ) -> Identity {
        let subjects = user.cloned().map(Subject::User).into_iter();
        let subjects = subjects.chain(groups.iter().cloned().map(Subject::Group));
        let grants: Vec<&(Role, Scope)> =
            subjects.flat_map(|subject| self.grants.get(&subject).into_iter().flatten()).collect();
        Identity {
            name: name.to_owned(),
            groups: groups.iter().map(ToString::to_string).collect(),
            access: Access::of(grants.into_iter().map(|(role, scope)| (*role, scope))),
            token: None,
        }
    }

    /// Tells whether a token works with which everything may be done: whether anybody but the machine's own
    /// administrator can get in and help.
    pub fn has_admin(&self, now: Timestamp) -> bool {
        self.tokens.iter().any(|token| match &token.kind {
            TokenKind::Api(name) if token.works(now) => self.is_admin(name),
            TokenKind::Api(_) | TokenKind::Backend(_) => false,
        })
    }

    /// Tells whether a user may do everything.
    pub fn is_admin(&self, name: &PrincipalName) -> bool {
        let identity = self.by_user(name);
        identity.is_some_and(|identity| identity.access.role_everywhere() == Some(Role::Admin))
    }
}

#[cfg(test)]
mod tests;
