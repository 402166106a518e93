//! Who asks, and what they may do: every request passes here before it is handled, but for the health of the server.

mod book;
mod credential;
mod gate;
pub mod kubeconfig;
pub mod rights;
mod throttle;
mod trail;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rezus_core::access::{
    AccountStore, AccountStoreError, Directory, Identity, Role, TokenDigest, TokenFault, TokenId, TokenSecret,
};
use rezus_core::base::{Clock, TenantName};
use rezus_core::declared::backend::Caller;

use crate::config::{AuditConfig, AuthConfig};
use crate::error::ApiError;
use crate::peer::Peer;

pub use book::Book;
pub use credential::Credential;
pub use gate::authenticated;
pub use throttle::{FAILURES, Throttle, WINDOW};
pub use trail::{Ticket, Trail};

/// For how long a token that works no more is still listed.
const REMEMBERED: Duration = Duration::from_hours(24 * 30);

/// Recognises who asks, and keeps the trail of what was done.
#[derive(Clone, Debug)]
pub struct Auth {
    is_enabled: bool,
    audit: AuditConfig,
    book: Arc<Book>,
    trail: Arc<Trail>,
    throttle: Arc<Throttle>,
    clock: Arc<dyn Clock>,
}

/// Why nobody was recognised.
#[derive(Debug)]
pub enum Stranger {
    /// Nothing was shown.
    Unproved,
    /// What was shown opens nothing.
    Failed(&'static str),
    /// The accounts cannot be read.
    Store(AccountStoreError),
}

impl Auth {
    /// Makes it over the accounts of a store.
    pub fn new(
        config: &AuthConfig,
        audit: &AuditConfig,
        store: Arc<dyn AccountStore>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            is_enabled: config.enabled,
            audit: audit.clone(),
            book: Arc::new(Book::new(Arc::clone(&store))),
            trail: Arc::new(Trail::new(store, Arc::clone(&clock))),
            throttle: Arc::default(),
            clock,
        }
    }

    /// Returns whether callers must prove who they are.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Returns the accounts.
    pub fn book(&self) -> &Arc<Book> {
        &self.book
    }

    /// Returns the trail of what was done.
    pub fn trail(&self) -> &Arc<Trail> {
        &self.trail
    }

    /// Returns the time.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Recognises whoever is at the other end, by what they show.
    ///
    /// # Errors
    ///
    /// [`Stranger`].
    pub async fn identify(
        &self,
        peer: &Peer,
        shown: Result<Option<Credential>, &'static str>,
    ) -> Result<Identity, Stranger> {
        if matches!(peer, Peer::Socket) {
            return Ok(Identity::admin("admin"));
        }
        if !self.is_enabled {
            if !peer.is_local() {
                return Err(Stranger::Unproved);
            }
            // A run's program is known by its token all the same: what it does is told apart from what others do.
            if let Ok(Some(Credential::Token(token))) = &shown
                && let Ok(known) = self.by_token(token).await
                && known.access.backend_of().is_some()
            {
                return Ok(known);
            }
            return Ok(Identity::anonymous());
        }
        match shown.map_err(Stranger::Failed)? {
            Some(Credential::Token(token)) => self.by_token(&token).await,
            Some(Credential::Certificate { common_name, organizations }) => {
                let directory = self.book.directory().await.map_err(Stranger::Store)?;
                let identity = directory.by_certificate(&common_name, &organizations);
                identity.ok_or(Stranger::Failed("no such user"))
            }
            None => Err(Stranger::Unproved),
        }
    }

    async fn by_token(&self, token: &TokenSecret) -> Result<Identity, Stranger> {
        let now = self.clock.now();
        let directory = self.book.directory().await.map_err(Stranger::Store)?;
        match directory.by_token(&token.digest(), now) {
            Ok((identity, record)) => {
                self.trail.used(&record.id, record.last_used_at, now);
                Ok(identity)
            }
            Err(TokenFault::Unknown) => Err(Stranger::Failed("unknown token")),
            Err(TokenFault::Expired) => Err(Stranger::Failed("expired token")),
            Err(TokenFault::Revoked) => Err(Stranger::Failed("revoked token")),
        }
    }

    /// Tells whether somebody who was let in by a token may now do what they could then, no more and no less. Of whoever was
    /// let in by something else it is not known.
    pub async fn is_as_before(&self, identity: &Identity) -> bool {
        if !self.is_enabled {
            return true;
        }
        let (Some(id), Ok(directory)) = (&identity.token, self.book.directory().await) else {
            return false;
        };
        let token = directory.tokens().iter().find(|token| token.id == *id);
        let now = token.and_then(|token| directory.by_token(&token.digest, self.clock.now()).ok());
        now.is_some_and(|(now, _)| now.access == identity.access)
    }

    /// Writes down what is waiting to be, and forgets what is too old, every `interval` until the task is ended.
    pub async fn upkeep(self, interval: Duration) {
        let mut ticks = tokio::time::interval(interval.max(Duration::from_secs(1)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.trail.written() => {}
                _ = ticks.tick() => {
                    // Those that were being gathered when the time came.
                    self.trail.flush().await;
                    if let Err(error) = self.prune().await {
                        tracing::warn!(cause = %crate::error::Chain(&error), "a sweep of old audit rows failed");
                    }
                }
            }
        }
    }

    /// Forgets audit rows and tokens that are past their retention.
    ///
    /// # Errors
    ///
    /// [`AccountStoreError`].
    pub async fn prune(&self) -> Result<(), AccountStoreError> {
        let now = self.clock.now();
        let before = now.minus(Duration::from_hours(24) * self.audit.keep_days);
        let store = self.book.store();
        store.prune_audit(before, self.audit.keep_rows).await?;
        if store.prune_tokens(now.minus(REMEMBERED)).await? > 0 {
            self.book.forget();
        }
        Ok(())
    }
}

/// A token with what is kept of it.
///
/// # Errors
///
/// [`ApiError`] where the machine gives no random bytes.
pub fn new_token() -> Result<(TokenSecret, TokenDigest, TokenId), ApiError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| ApiError::internal(error.to_string()))?;
    let secret = TokenSecret::from_random(bytes);
    let digest = secret.digest();
    // Of other random bytes than the secret's.
    let id = uuid::Uuid::new_v4().simple().to_string();
    let id = TokenId::parse(&id[..10]).map_err(ApiError::internal)?;
    Ok((secret, digest, id))
}

/// Returns whoever asks as the rules of the state backend see them in a tenant.
pub fn caller(identity: &Identity, peer: &Peer, tenant: &TenantName, create_on_write: bool) -> Caller {
    let role = identity.access.role_in(tenant);
    Caller {
        // Without authentication the address is all that is known.
        name: if identity.is_anonymous() { peer.from() } else { identity.name.clone() },
        may_break_locks: role >= Some(Role::Edit),
        may_create_tenants: role >= Some(Role::Admin) && create_on_write,
    }
}

/// Whoever asks, in a handler.
#[derive(Clone, Debug)]
pub struct Who(pub Identity);

impl<S: Sync> FromRequestParts<S> for Who {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let identity = parts.extensions.get::<Identity>().cloned();
        identity.map(Self).ok_or_else(|| ApiError::internal("a route that nobody was let in to"))
    }
}

impl Who {
    /// Fails unless they have at least this role in a tenant.
    ///
    /// # Errors
    ///
    /// [`ApiError`] 403.
    pub fn must_be(&self, role: Role, tenant: &TenantName) -> Result<(), ApiError> {
        if self.0.access.role_in(tenant) >= Some(role) {
            Ok(())
        } else {
            Err(rights::needs(&self.0, role, Some(tenant.as_str())))
        }
    }

    /// Tells whether they may do everything.
    pub fn is_admin(&self) -> bool {
        self.0.access.role_everywhere() == Some(Role::Admin)
    }

    /// Tells whether a list may show a tenant to them.
    pub fn sees(&self, tenant: &TenantName) -> bool {
        self.0.access.role_in(tenant).is_some()
    }
}

/// Tells whether a change of all accounts would leave nobody who can get in and may do everything.
pub fn leaves_no_admin(
    accounts: &rezus_core::access::Accounts,
    now: rezus_core::base::Timestamp,
    change: impl FnOnce(&mut rezus_core::access::Accounts),
) -> bool {
    let mut changed = accounts.clone();
    change(&mut changed);
    Directory::new(accounts.clone()).has_admin(now) && !Directory::new(changed).has_admin(now)
}
