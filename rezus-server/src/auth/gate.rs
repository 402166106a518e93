//! The way in: every request is recognised, its right looked up, and what it does put on record.

use std::net::IpAddr;

use axum::Router;
use axum::extract::{ConnectInfo, FromRequestParts as _, MatchedPath, RawPathParams, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use rezus_core::access::{AuditRow, Identity, PrincipalName, TokenId};
use rezus_core::base::TenantName;

use super::rights::{self, Rule};
use super::{Auth, Credential, Stranger};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::peer::Peer;

/// What anybody may ask: whether the server lives, and what it is (`kubectl` asks that before it shows a token).
const OPEN: [&str; 4] = ["/healthz", "/livez", "/readyz", "/version"];

/// Lets nobody in who is not recognised, and to nothing that they may not do.
///
/// A program that has this router in its own process may say who asks, by an [`Identity`] among the request's extensions;
/// no request from outside has one.
pub fn authenticated(routes: Router, plane: &Plane) -> Router {
    routes.layer(middleware::from_fn_with_state(plane.auth.clone(), enter))
}

async fn enter(State(auth): State<Auth>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str).to_owned();
    if OPEN.contains(&route.as_str()) {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let named = named(&mut parts).await;
    match admit(&auth, &parts, &route, named).await {
        Ok((identity, ticket)) => {
            parts.extensions.insert(identity);
            if let Some(ticket) = &ticket {
                parts.extensions.insert(ticket.clone());
            }
            let response = next.run(Request::from_parts(parts, body)).await;
            if let Some(ticket) = ticket {
                ticket.close(response.status().as_u16());
            }
            response
        }
        Err(error) => error.into_response(),
    }
}

/// What the path names: a tenant as it stands there, and a harmless name of what else is meant.
#[derive(Debug, Default)]
struct Named {
    tenant: Option<String>,
    object: String,
}

async fn named(parts: &mut Parts) -> Named {
    let mut named = Named { tenant: rights::tenant_in(parts.uri.path()), object: String::new() };
    // Of a path that is none, there are none.
    let Ok(params) = RawPathParams::from_request_parts(parts, &()).await else {
        return named;
    };
    for (name, value) in &params {
        let is_harmless = match name {
            "tenant" => {
                named.tenant = Some(value.to_owned());
                false
            }
            "version" => value.parse::<u64>().is_ok(),
            "id" => TokenId::parse(value).is_ok(),
            "name" => PrincipalName::parse(value).is_ok(),
            _ => false,
        };
        if is_harmless {
            value.clone_into(&mut named.object);
        }
    }
    named
}

async fn admit(
    auth: &Auth,
    parts: &Parts,
    route: &str,
    named: Named,
) -> Result<(Identity, Option<super::Ticket>), ApiError> {
    let peer = parts.extensions.get::<ConnectInfo<Peer>>().map(|ConnectInfo(peer)| peer.clone());
    let peer = peer.ok_or_else(|| ApiError::internal("a connection whose other end is unknown"))?;
    let identity = if let Some(identity) = parts.extensions.get::<Identity>() {
        identity.clone()
    } else {
        let shown = Credential::of(&parts.headers, &peer);
        auth.identify(&peer, shown).await.map_err(|stranger| turn_away(auth, &peer, route, stranger))?
    };
    let rule = rights::of(parts.method.as_str(), route, parts.uri.path());
    let ticket = rule.action.map(|action| {
        auth.trail().begin(AuditRow {
            at: auth.clock().now(),
            who: identity.name.clone(),
            groups: identity.groups.clone(),
            token: identity.token.clone(),
            from: peer.from(),
            action: action.to_owned(),
            tenant: named.tenant.as_deref().and_then(|name| TenantName::parse(name).ok()),
            object: named.object,
            code: 0,
        })
    });
    match judge(&identity, &parts.headers, parts, &rule, named.tenant.as_deref()) {
        Ok(()) => Ok((identity, ticket)),
        Err(error) => {
            tracing::warn!(caller = identity.name, action = rule.action, "forbidden");
            if let Some(ticket) = ticket {
                ticket.close(error.code().as_u16());
            }
            Err(error)
        }
    }
}

fn judge(
    identity: &Identity,
    headers: &HeaderMap,
    parts: &Parts,
    rule: &Rule,
    tenant: Option<&str>,
) -> Result<(), ApiError> {
    // Passing these over would answer `kubectl --as` with the caller's own rights.
    if headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Err(ApiError::forbidden("nobody is impersonated here: ask with a token of that user's own"));
    }
    rights::check(identity, rule.right, tenant).map_err(|needs| {
        rights::refusal_of_kind(identity, parts.method.as_str(), parts.uri.path())
            .unwrap_or_else(|| rights::needs(identity, needs, tenant))
    })
}

/// Answers whoever was not recognised. Failures that are told to wait leave no trace: there may be any number of them.
fn turn_away(auth: &Auth, peer: &Peer, route: &str, stranger: Stranger) -> ApiError {
    // Clients of the state backend know nothing else.
    let challenge =
        if route.starts_with("/state") { "Basic realm=\"rezus\"" } else { "Bearer realm=\"rezus\"" };
    let reason = match stranger {
        Stranger::Unproved => return ApiError::unauthorized(challenge),
        Stranger::Store(error) => return error.into(),
        Stranger::Failed(reason) => reason,
    };
    let now = auth.clock().now();
    let address: Option<IpAddr> = peer.address().map(|address| address.ip());
    if let Some(Err(wait)) = address.map(|address| auth.throttle.failed(address, now)) {
        return ApiError::too_many("too many failed logins from this address", wait);
    }
    tracing::warn!(from = peer.from(), reason, "login failed");
    auth.trail().add(AuditRow {
        at: now,
        who: String::new(),
        groups: Vec::new(),
        token: None,
        from: peer.from(),
        action: "login".to_owned(),
        tenant: None,
        object: reason.to_owned(),
        code: 401,
    });
    ApiError::unauthorized(challenge)
}
