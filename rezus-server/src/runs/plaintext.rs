//! What is secret in a state is kept out of a run's log: of an encrypted one it is known once its plaintext was had.

use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::declared::reader::ReadError;
use rezus_core::runs::executor::RunId;
use rezus_core::runs::workspace::Workspace;
use rezus_core::runs::{Cause, SecretText};

use super::{Order, Runs};
use crate::error::Chain;
use crate::pulls::Standing;

/// How long a run waits for the plaintext of its state.
const PATIENCE: Duration = Duration::from_mins(5);

/// How often it is looked whether it still does.
const LOOK: Duration = Duration::from_secs(1);

impl Runs {
    /// The strings that a tenant's newest state holds secret, for a run that is about to begin. An encrypted one is
    /// decrypted first, with the key that the run's programs get.
    ///
    /// Where that key is part of the configuration, or there is none, nobody can know them, and there are none.
    ///
    /// # Errors
    ///
    /// Why they cannot be known: the run would fail for the same reason, or could show them.
    pub(super) async fn secrets_for(
        &self,
        id: &RunId,
        workspace: &Workspace,
    ) -> Result<Vec<SecretText>, Cause> {
        tokio::time::timeout(PATIENCE, self.wait_for_secrets(id, workspace)).await.unwrap_or_else(|_| {
            let message = "its encrypted state could not be read in five minutes, so that what is secret in it could \
                           not be kept out of the log";
            Err(Cause::new("DecryptTimedOut", message))
        })
    }

    async fn wait_for_secrets(&self, id: &RunId, workspace: &Workspace) -> Result<Vec<SecretText>, Cause> {
        let (means, tenant) = (&self.0.means, &id.tenant);
        let mut moves = means.desk.moves();
        let mut has_asked = false;
        loop {
            moves.mark_unchanged();
            let version = match self.state_secrets(tenant).await {
                Ok(secrets) => return Ok(secrets),
                Err(ReadError::Encrypted { .. }) if !workspace.encrypts() => return Ok(Vec::new()),
                Err(ReadError::Encrypted { version, .. }) => version,
                // What is secret in it could not be kept out of the log.
                Err(error) => return Err(Cause::new("StateUnreadable", Chain(&error).to_string())),
            };
            let ask = || means.desk.insist(tenant, version, means.clock.now());
            let mut standing = ask();
            // What failed before is tried again for whoever waits: the key may have been put right.
            if !has_asked && standing != Standing::Waiting {
                means.desk.forget(tenant);
                standing = ask();
            }
            has_asked = true;
            match standing {
                Standing::Waiting => {}
                Standing::NoKey => return Ok(Vec::new()),
                Standing::Failed(why) => {
                    return Err(Cause::new("DecryptFailed", format!("its state cannot be decrypted: {why}")));
                }
            }
            if let Some(cause) = self.is_called_off(id).await {
                return Err(cause);
            }
            drop(tokio::time::timeout(LOOK, moves.changed()).await);
        }
    }

    /// Why a run is not to begin any more, if it is not.
    async fn is_called_off(&self, id: &RunId) -> Option<Cause> {
        let board = self.0.board.lock().await;
        let Some(asked) = board.runs.get(id).map(|entry| entry.asked.clone()) else {
            return Some(Cause::new("Cancelled", "cancelled: nothing was changed"));
        };
        drop(board);
        if asked.shutdown {
            return Some(Cause::new("ServerStopped", "the server was stopped: nothing was changed"));
        }
        let by = asked.cancelled_by?;
        Some(Cause::new("Cancelled", format!("cancelled by {by}: nothing was changed")))
    }

    /// Has what is secret in a tenant's newest state kept out of the log of a run under way, from now on. Where it is
    /// encrypted, as soon as it is decrypted.
    pub(super) async fn tell_secrets(&self, tenant: &TenantName) {
        let Some(id) = self.0.board.lock().await.queue.active(tenant).cloned() else {
            return;
        };
        match self.state_secrets(tenant).await {
            Ok(secrets) => {
                if let Some(entry) = self.0.board.lock().await.runs.get(&id) {
                    entry.order(Order::Secrets(secrets));
                }
            }
            Err(ReadError::Encrypted { version, .. }) => {
                let means = &self.0.means;
                means.desk.insist(tenant, version, means.clock.now());
            }
            // Where it cannot be read now, no run of it goes on for long either.
            Err(_) => {}
        }
    }

    /// Says that a tenant's newest version, which is encrypted, can be looked into now.
    pub async fn is_readable(&self, tenant: &TenantName) {
        self.tell_secrets(tenant).await;
        self.recheck_unrecorded(tenant).await;
    }
}
