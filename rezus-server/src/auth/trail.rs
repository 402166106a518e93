//! The audit trail: rows are gathered here and written a little later, so that no answer waits for them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use rezus_core::access::{AccountStore, AuditRow, TokenId};
use rezus_core::base::{Clock, TenantName, Timestamp};
use tokio::sync::Notify;

use crate::error::{ApiError, Chain};

/// How long rows are gathered before they are written together.
const GATHERED: Duration = Duration::from_millis(200);

/// How many rows may wait. More only do where the store cannot be written, and then requests fail as well.
const MOST: usize = 20_000;

/// A token's use is noted once in so long.
const USE_NOTED: Duration = Duration::from_mins(1);

/// Answered to nobody: the client had gone (as nginx logs it).
const CLIENT_GONE: u16 = 499;

/// Rows that wait to be written, and the store that takes them.
#[derive(Debug)]
pub struct Trail {
    store: Arc<dyn AccountStore>,
    clock: Arc<dyn Clock>,
    waiting: Mutex<Waiting>,
    wake: Notify,
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Waiting {
    rows: Vec<AuditRow>,
    used: Vec<(TokenId, Timestamp)>,
    noted: HashMap<TokenId, Timestamp>,
    lost: u64,
}

impl Trail {
    /// Begins a trail in a store.
    pub fn new(store: Arc<dyn AccountStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            waiting: Mutex::default(),
            wake: Notify::new(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a row.
    pub fn add(&self, row: AuditRow) {
        let mut waiting = self.waiting();
        if waiting.rows.len() < MOST {
            waiting.rows.push(row);
        } else {
            waiting.lost += 1;
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Notes that a token was used.
    pub fn used(&self, id: &TokenId, last: Option<Timestamp>, now: Timestamp) {
        let mut waiting = self.waiting();
        let last = waiting.noted.get(id).copied().max(last);
        if last.is_some_and(|last| now.since(last) < USE_NOTED) {
            return;
        }
        waiting.noted.insert(id.clone(), now);
        waiting.used.push((id.clone(), now));
        drop(waiting);
        self.wake.notify_one();
    }

    /// Waits for rows, and writes them.
    pub async fn written(&self) {
        self.wake.notified().await;
        tokio::time::sleep(GATHERED).await;
        self.flush().await;
    }

    /// Writes all that waits. Rows that cannot be written wait on, and the log says so.
    pub async fn flush(&self) {
        let turn = self.writing.lock().await;
        let (rows, used, lost) = {
            let mut waiting = self.waiting();
            let lost = std::mem::take(&mut waiting.lost);
            (std::mem::take(&mut waiting.rows), std::mem::take(&mut waiting.used), lost)
        };
        if lost > 0 {
            tracing::error!(rows = lost, "rows of the audit trail were lost: too many waited to be written");
        }
        if !rows.is_empty()
            && let Err(error) = self.store.append_audit(rows.clone()).await
        {
            tracing::error!(rows = rows.len(), cause = %Chain(&error), "the audit trail cannot be written now");
            let mut waiting = self.waiting();
            let later = std::mem::replace(&mut waiting.rows, rows);
            waiting.rows.extend(later);
        }
        if !used.is_empty()
            && let Err(error) = self.store.touch_tokens(used).await
        {
            // The next use is noted again after a while.
            tracing::warn!(cause = %Chain(&error), "the use of tokens cannot be noted now");
        }
        drop(turn);
    }

    /// Begins a row whose outcome is not known yet.
    pub fn begin(self: &Arc<Self>, row: AuditRow) -> Ticket {
        Ticket(Arc::new(Draft { trail: Arc::clone(self), row: Mutex::new(Some(row)) }))
    }
}

/// A row whose outcome is not known yet. Its clones are the same row: whoever knows the outcome first closes it.
#[derive(Clone, Debug)]
pub struct Ticket(Arc<Draft>);

#[derive(Debug)]
struct Draft {
    trail: Arc<Trail>,
    row: Mutex<Option<AuditRow>>,
}

impl Ticket {
    fn change(&self, change: impl FnOnce(&mut AuditRow)) {
        if let Some(row) = self.0.row.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            change(row);
        }
    }

    /// Says which tenant it is about.
    pub fn tenant(&self, tenant: &TenantName) {
        self.change(|row| row.tenant = Some(tenant.clone()));
    }

    /// Says what else it is about: a name or number.
    pub fn object(&self, object: impl Into<String>) {
        self.change(|row| row.object = object.into());
    }

    /// Says what is really done.
    pub fn action(&self, action: &str) {
        self.change(|row| action.clone_into(&mut row.action));
    }

    /// Says how it went.
    pub fn close(&self, code: u16) {
        self.0.close(code);
    }
}

impl Draft {
    fn close(&self, code: u16) {
        let row = self.row.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(row) = row {
            self.trail.add(AuditRow { at: self.trail.clock.now(), code, ..row });
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.close(CLIENT_GONE);
    }
}

impl<S: Sync> FromRequestParts<S> for Ticket {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let ticket = parts.extensions.get::<Self>().cloned();
        ticket.ok_or_else(|| ApiError::internal("a route that has no name in the audit trail"))
    }
}
