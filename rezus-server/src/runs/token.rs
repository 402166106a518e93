//! The token with which a run's program works on its tenant's state: for that state and that stage alone.

use std::time::Duration;

use rezus_core::access::{TokenId, TokenKind, TokenRecord};
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{RunFacts, SecretText};

use super::{Runs, RunsError};
use crate::auth::new_token;
use crate::error::ApiError;

/// A token that works.
#[derive(Debug)]
pub(super) struct RunToken {
    pub(super) secret: SecretText,
    id: TokenId,
    /// Under which name its holder works on the state.
    pub(super) principal: String,
}

impl Runs {
    /// Makes a token for a stage of a run that takes no longer than `most`.
    pub(super) async fn mint(&self, id: &RunId, most: Duration) -> Result<RunToken, RunsError> {
        let (secret, digest, token) = new_token().map_err(|error| refused(&error))?;
        let now = self.0.means.clock.now();
        let record = TokenRecord {
            id: token.clone(),
            digest,
            kind: TokenKind::Backend(id.tenant.clone()),
            created_at: now,
            created_by: format!("run:{}", id.run),
            expires_at: Some(super::later(now, most)),
            last_used_at: None,
            revoked_at: None,
            note: format!("run {}", id.run),
        };
        let add = |store: std::sync::Arc<dyn rezus_core::access::AccountStore>| async move {
            if store.add_token(record).await? {
                Ok(())
            } else {
                Err(ApiError::internal("a token that is not new"))
            }
        };
        self.0.means.auth.book().change_of_programs(add).await.map_err(|error| refused(&error))?;
        let principal = format!("backend:{}:{token}", id.tenant);
        Ok(RunToken { secret: SecretText::new(secret.reveal()), id: token, principal })
    }

    /// Ends the tokens that a run's programs had.
    pub(super) async fn revoke_all(&self, facts: &RunFacts) {
        let ids = facts.principals.iter().filter_map(|name| TokenId::parse(name.rsplit(':').next()?).ok());
        for id in ids {
            self.revoke_id(id).await;
        }
    }

    /// Ends a token.
    pub(super) async fn revoke(&self, token: RunToken) {
        self.revoke_id(token.id).await;
    }

    async fn revoke_id(&self, id: TokenId) {
        let now = self.0.means.clock.now();
        let shown = id.clone();
        let revoke = move |store: std::sync::Arc<dyn rezus_core::access::AccountStore>| async move {
            store.revoke_token(&id, now).await?;
            Ok(())
        };
        if let Err(error) = self.0.means.auth.book().change_of_programs(revoke).await {
            // It ends by itself.
            tracing::warn!(token.id = %shown, cause = error.message(), "a run's token cannot be revoked now");
        }
    }
}

fn refused(error: &ApiError) -> RunsError {
    RunsError::Token(error.message().to_owned())
}
