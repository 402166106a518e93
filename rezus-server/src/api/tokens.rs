//! Tokens: lists that never show one, making one that is shown once, revoking.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use rezus_core::access::{Directory, PrincipalName, Role, TokenId, TokenKind, TokenRecord};
use rezus_core::base::{TenantName, Timestamp};
use serde::{Deserialize, Serialize};

use super::views::List;
use super::{Body, Path, Query, tenant};
use crate::auth::{Ticket, Who, leaves_no_admin, new_token};
use crate::compose::Plane;
use crate::error::ApiError;

/// The longest note on a token, in characters.
const LONGEST_NOTE: usize = 200;

/// What anybody may be told of a token.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenView {
    id: String,
    /// `api` or `backend`.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    /// `works`, `expired`, `revoked`.
    state: &'static str,
    created_at: String,
    created_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// To the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_used_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<String>,
    note: String,
    /// The token itself, once: in the answer to its making.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl TokenView {
    fn of(record: &TokenRecord, now: Timestamp) -> Self {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        let (kind, user, tenant) = match &record.kind {
            TokenKind::Api(user) => ("api", Some(user.to_string()), None),
            TokenKind::Backend(tenant) => ("backend", None, Some(tenant.to_string())),
        };
        let state = match (record.revoked_at, record.has_expired(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "expired",
            (None, false) => "works",
        };
        Self {
            id: record.id.to_string(),
            kind,
            user,
            tenant,
            state,
            created_at: record.created_at.to_string(),
            created_by: record.created_by.clone(),
            expires_at: time(record.expires_at),
            last_used_at: time(record.last_used_at),
            revoked_at: time(record.revoked_at),
            note: record.note.clone(),
            token: None,
        }
    }
}

/// Whether a caller may see and revoke a token: admins may, and whoever it belongs to.
fn is_of(who: &Who, record: &TokenRecord) -> bool {
    let is_own = who.0.token.as_ref() == Some(&record.id);
    let is_in_hand = match &record.kind {
        TokenKind::Api(user) => who.0.name == user.as_str(),
        TokenKind::Backend(tenant) => who.0.access.role_in(tenant) == Some(Role::Admin),
    };
    who.is_admin() || is_own || is_in_hand
}

pub(super) async fn list(State(plane): State<Plane>, who: Who) -> Result<Json<List<TokenView>>, ApiError> {
    let now = plane.clock.now();
    // Uses that are not written down yet count.
    plane.auth.trail().flush().await;
    let tokens = plane.auth.book().store().accounts().await?.tokens;
    let seen = tokens.iter().filter(|record| is_of(&who, record));
    Ok(Json(List { items: seen.map(|record| TokenView::of(record, now)).collect() }))
}

/// A token to be made: of a user, or for a tenant's state. The caller's own if it names neither.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct NewToken {
    user: Option<String>,
    tenant: Option<String>,
    /// Never expires if absent.
    expires_in_seconds: Option<u64>,
    #[serde(default)]
    note: String,
}

pub(super) async fn create(
    State(plane): State<Plane>,
    who: Who,
    ticket: Ticket,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<TokenView>), ApiError> {
    let now = plane.clock.now();
    if new.note.chars().count() > LONGEST_NOTE || new.note.chars().any(char::is_control) {
        let message = "a note has at most 200 characters, none of them a control character";
        return Err(ApiError::bad_request(message));
    }
    if new.note.contains("rezus_") {
        return Err(ApiError::bad_request("a note is shown in lists: it must hold no token"));
    }
    let expires_at = new.expires_in_seconds.map(|seconds| expiry(now, seconds)).transpose()?;
    let kind = match (new.user, new.tenant) {
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("a token is of a user or for a tenant's state, not both"));
        }
        (None, Some(name)) => backend(&plane, &who, &ticket, tenant(&name)?).await?,
        (user, None) => {
            let user = principal(user.as_deref().unwrap_or(&who.0.name))?;
            if !who.is_admin() {
                return Err(crate::auth::rights::needs(&who.0, Role::Admin, None));
            }
            TokenKind::Api(user)
        }
    };
    let (secret, digest, id) = new_token()?;
    ticket.object(id.as_str());
    let record = TokenRecord {
        id,
        digest,
        kind,
        created_at: now,
        created_by: who.0.name.clone(),
        expires_at,
        last_used_at: None,
        revoked_at: None,
        note: new.note,
    };
    let added = record.clone();
    let add = |store: std::sync::Arc<dyn rezus_core::access::AccountStore>| async move {
        if let TokenKind::Api(user) = &added.kind
            && Directory::new(store.accounts().await?).user(user).is_none()
        {
            return Err(super::users::no_user(user));
        }
        if store.add_token(added).await? {
            Ok(())
        } else {
            Err(ApiError::internal("a token that is not new"))
        }
    };
    plane.auth.book().change(add).await?;
    tracing::info!(token.id = %record.id, caller = who.0.name, "token made");
    let view = TokenView { token: Some(secret.reveal()), ..TokenView::of(&record, now) };
    Ok((StatusCode::CREATED, Json(view)))
}

async fn backend(
    plane: &Plane,
    who: &Who,
    ticket: &Ticket,
    tenant: TenantName,
) -> Result<TokenKind, ApiError> {
    ticket.tenant(&tenant);
    who.must_be(Role::Admin, &tenant)?;
    // The token could not create it, and a name that is mistyped would open another's state one day.
    super::tenants::record(plane, tenant.as_str()).await?;
    Ok(TokenKind::Backend(tenant))
}

fn expiry(now: Timestamp, seconds: u64) -> Result<Timestamp, ApiError> {
    let millis = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000));
    let at = millis.filter(|millis| *millis > 0).and_then(|millis| now.as_millis().checked_add(millis));
    at.map(Timestamp::from_millis)
        .ok_or_else(|| ApiError::bad_request("expiresInSeconds is a number of seconds, 1 or more"))
}

/// A user's or group's name.
pub(super) fn principal(name: &str) -> Result<PrincipalName, ApiError> {
    PrincipalName::parse(name).map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Whether what would leave no admin is done all the same.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Force {
    #[serde(default)]
    pub(super) force: bool,
}

pub(super) async fn revoke(
    State(plane): State<Plane>,
    who: Who,
    Path(id): Path<String>,
    Query(Force { force }): Query<Force>,
) -> Result<StatusCode, ApiError> {
    let id = TokenId::parse(&id).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let now = plane.clock.now();
    let name = who.0.name.clone();
    let revoked = id.clone();
    let revoke = move |store: std::sync::Arc<dyn rezus_core::access::AccountStore>| async move {
        let accounts = store.accounts().await?;
        let record = accounts.tokens.iter().find(|record| record.id == revoked);
        // Who may not see it is told no more than who asks for one that is none.
        let record = record.filter(|record| is_of(&who, record));
        let record = record.ok_or_else(|| ApiError::not_found(format!("there is no token {revoked}")))?;
        let without = leaves_no_admin(&accounts, now, |accounts| {
            accounts.tokens.retain(|token| token.id != record.id);
        });
        if without && !force {
            return Err(last_admin("revoked"));
        }
        store.revoke_token(&revoked, now).await?;
        Ok(())
    };
    plane.auth.book().change(revoke).await?;
    tracing::info!(token.id = %id, caller = name, "token revoked");
    Ok(StatusCode::NO_CONTENT)
}

/// What is done would leave nobody who could undo it over the network.
pub(super) fn last_admin(what: &str) -> ApiError {
    ApiError::conflict(format!(
        "no admin's token would be left if this were {what}: make another admin first, or force it; the next start of the server then makes a new admin.kubeconfig"
    ))
}
