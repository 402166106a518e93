//! The trail of what was done, by whom, and with what outcome.

use super::TokenId;
use crate::base::{TenantName, Timestamp};

/// One thing that was done or refused. It holds names and numbers only, never what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// When its outcome was known.
    pub at: Timestamp,
    /// Who did it: a user, a backend token; empty where nobody could be told.
    pub who: String,
    /// The groups the user was in.
    pub groups: Vec<String>,
    /// By which token.
    pub token: Option<TokenId>,
    /// From where: an IP address, or `socket`.
    pub from: String,
    /// What was done, such as `lock`, `state.write`, `token.create`.
    pub action: String,
    /// In which tenant.
    pub tenant: Option<TenantName>,
    /// On what in it, or besides: a version's number, a user's name, a token's ID; empty if there is nothing to add.
    pub object: String,
    /// How it was answered: an HTTP status; 499 where the client went away before.
    pub code: u16,
}

/// Which rows are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Those of this tenant.
    pub tenant: Option<TenantName>,
    /// Those of this user or token's name.
    pub who: Option<String>,
    /// How many, the newest.
    pub limit: usize,
}

impl AuditFilter {
    /// Tells whether a row is one of those, whatever the limit.
    pub fn takes(&self, row: &AuditRow) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| row.tenant.as_ref() == Some(tenant))
            && self.who.as_ref().is_none_or(|who| row.who == *who)
    }
}
