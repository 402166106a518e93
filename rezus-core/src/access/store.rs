//! The port that keeps accounts and the audit trail.

use std::fmt;

use async_trait::async_trait;

use super::{
    Accounts, AuditFilter, AuditRow, PrincipalName, Role, Scope, Subject, TokenId, TokenRecord, User,
};
use crate::base::Timestamp;

/// Why a store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum AccountStoreError {
    /// What was read is not what was written.
    #[error("the accounts are damaged")]
    Corrupt {
        /// The adapter's own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The store cannot be used now. A write may or may not have taken effect: read before writing again.
    #[error("the store cannot be used")]
    Unavailable {
        /// The adapter's own error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Where users, grants, tokens and the audit trail are kept.
///
/// *Contract.* Each change is atomic and durable before it returns `Ok`, and seen by every read that begins afterwards.
/// Of a token only its digest is kept. [`AccountStore::accounts`] is of one moment. The audit trail is append-only but
/// for [`AccountStore::prune_audit`].
///
/// *Cancellation.* A dropped call has happened wholly or not at all.
///
/// The suite: `rezus_testkit::account_store_contract!`.
#[async_trait]
pub trait AccountStore: fmt::Debug + Send + Sync + 'static {
    /// Returns all accounts.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn accounts(&self) -> Result<Accounts, AccountStoreError>;

    /// Adds a user. Returns false, and changes nothing, if there is one of this name.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn add_user(&self, user: User) -> Result<bool, AccountStoreError>;

    /// Sets the groups of a user. Returns whether there is one of this name.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn set_groups(
        &self,
        user: &PrincipalName,
        groups: Vec<PrincipalName>,
    ) -> Result<bool, AccountStoreError>;

    /// Removes a user with all that is granted to it, and revokes its tokens as of `at`. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn remove_user(&self, user: &PrincipalName, at: Timestamp) -> Result<bool, AccountStoreError>;

    /// Replaces all that is granted to somebody. A role that is granted for all tenants takes in those that are named.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn set_grants(
        &self,
        subject: &Subject,
        grants: Vec<(Role, Scope)>,
    ) -> Result<(), AccountStoreError>;

    /// Adds a token. Returns false, and changes nothing, if there is one with its ID or digest.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn add_token(&self, token: TokenRecord) -> Result<bool, AccountStoreError>;

    /// Revokes a token as of `at`; one that was revoked before stays as it is. Returns whether there is one of this ID.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<bool, AccountStoreError>;

    /// Notes when tokens were last used; never an earlier time than is noted already. Unknown ones are passed over.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn touch_tokens(&self, used: Vec<(TokenId, Timestamp)>) -> Result<(), AccountStoreError>;

    /// Forgets tokens that were revoked, or expired, before `before`. Returns how many.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn prune_tokens(&self, before: Timestamp) -> Result<u64, AccountStoreError>;

    /// Appends rows to the audit trail, in this order.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn append_audit(&self, rows: Vec<AuditRow>) -> Result<(), AccountStoreError>;

    /// Returns rows of the audit trail, the last appended first.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, AccountStoreError>;

    /// Forgets rows from before `before`, and all but the last `keep`. Returns how many.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    async fn prune_audit(&self, before: Timestamp, keep: u64) -> Result<u64, AccountStoreError>;
}
