//! The account store's port over the file.

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::access::{
    AccountStore, AccountStoreError, Accounts, AuditFilter, AuditRow, PrincipalName, Role, Scope, Subject,
    TokenId, TokenRecord, User,
};
use rezus_core::base::Timestamp;
use rusqlite::Connection;

use super::error::JobError;
use super::writer::Verdict;
use super::{SqliteStore, accounts, audit};

impl SqliteStore {
    /// Runs a change of accounts, which is kept whatever it answers.
    async fn change<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> Result<T, JobError> + Send + 'static,
    ) -> Result<T, AccountStoreError> {
        Ok(self.writer.run(move |connection| Ok(Verdict::Keep(job(connection)?))).await?)
    }
}

#[async_trait]
impl AccountStore for SqliteStore {
    async fn accounts(&self) -> Result<Accounts, AccountStoreError> {
        Ok(Arc::clone(&self.readers).run(accounts::read).await?)
    }

    async fn add_user(&self, user: User) -> Result<bool, AccountStoreError> {
        self.change(move |connection| accounts::add_user(connection, &user)).await
    }

    async fn set_groups(
        &self,
        user: &PrincipalName,
        groups: Vec<PrincipalName>,
    ) -> Result<bool, AccountStoreError> {
        let user = user.clone();
        self.change(move |connection| accounts::set_groups(connection, &user, &groups)).await
    }

    async fn remove_user(&self, user: &PrincipalName, at: Timestamp) -> Result<bool, AccountStoreError> {
        let user = user.clone();
        self.change(move |connection| accounts::remove_user(connection, &user, at)).await
    }

    async fn set_grants(
        &self,
        subject: &Subject,
        grants: Vec<(Role, Scope)>,
    ) -> Result<(), AccountStoreError> {
        let subject = subject.clone();
        self.change(move |connection| accounts::set_grants(connection, &subject, &grants)).await
    }

    async fn add_token(&self, token: TokenRecord) -> Result<bool, AccountStoreError> {
        self.change(move |connection| accounts::add_token(connection, &token)).await
    }

    async fn revoke_token(&self, id: &TokenId, at: Timestamp) -> Result<bool, AccountStoreError> {
        let id = id.clone();
        let revoke = move |connection: &Connection| {
            let changed = connection
                .prepare_cached("UPDATE tokens SET revoked_at = coalesce(revoked_at, ?2) WHERE id = ?1")?
                .execute((id.as_str(), at.as_millis()))?;
            Ok(changed > 0)
        };
        self.change(revoke).await
    }

    async fn touch_tokens(&self, used: Vec<(TokenId, Timestamp)>) -> Result<(), AccountStoreError> {
        let touch = move |connection: &Connection| {
            let mut update = connection.prepare_cached(
                "UPDATE tokens SET last_used_at = max(coalesce(last_used_at, ?2), ?2) WHERE id = ?1",
            )?;
            for (id, at) in used {
                update.execute((id.as_str(), at.as_millis()))?;
            }
            Ok(())
        };
        self.change(touch).await
    }

    async fn prune_tokens(&self, before: Timestamp) -> Result<u64, AccountStoreError> {
        let prune = move |connection: &Connection| {
            let removed = connection.execute(
                "DELETE FROM tokens WHERE revoked_at < ?1 OR expires_at < ?1",
                [before.as_millis()],
            )?;
            Ok(u64::try_from(removed).unwrap_or(u64::MAX))
        };
        self.change(prune).await
    }

    async fn append_audit(&self, rows: Vec<AuditRow>) -> Result<(), AccountStoreError> {
        self.change(move |connection| audit::append(connection, &rows)).await
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditRow>, AccountStoreError> {
        let filter = filter.clone();
        Ok(Arc::clone(&self.readers).run(move |connection| audit::list(connection, &filter)).await?)
    }

    async fn prune_audit(&self, before: Timestamp, keep: u64) -> Result<u64, AccountStoreError> {
        // Row by row in batches: other writers come in between.
        let mut removed = 0;
        loop {
            let batch = self.change(move |connection| audit::prune(connection, before, keep)).await?;
            removed += batch;
            if batch == 0 {
                return Ok(removed);
            }
        }
    }
}
