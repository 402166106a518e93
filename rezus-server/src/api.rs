//! What is no Kubernetes resource, as JSON under `/rezus/v1`: tenants, versions, locks, refusals, resource instances,
//! users, tokens, the audit trail.

mod audit;
mod readings;
mod resources;
mod settings;
mod tenants;
mod tokens;
mod users;
mod versions;
pub mod views;

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Json, Router};
use rezus_core::base::TenantName;
use rezus_core::declared::VersionNumber;
use rezus_core::declared::backend::BackendError;
use serde::de::DeserializeOwned;

use crate::compose::Plane;
use crate::error::ApiError;

/// Every path and the methods it takes, for whoever must know all of them.
pub const PATHS: [(&str, &[&str]); 23] = [
    ("/rezus/v1/server", &["GET"]),
    ("/rezus/v1/prune", &["POST"]),
    ("/rezus/v1/locks", &["GET"]),
    ("/rezus/v1/tenants", &["GET", "POST"]),
    ("/rezus/v1/tenants/{tenant}", &["GET", "PATCH", "DELETE"]),
    ("/rezus/v1/tenants/{tenant}/configuration", &["PUT"]),
    ("/rezus/v1/tenants/{tenant}/freeze", &["PUT", "DELETE"]),
    ("/rezus/v1/tenants/{tenant}/locks", &["GET", "DELETE"]),
    ("/rezus/v1/tenants/{tenant}/refusals", &["GET"]),
    ("/rezus/v1/tenants/{tenant}/versions", &["GET"]),
    ("/rezus/v1/tenants/{tenant}/versions/{version}", &["GET", "PATCH"]),
    ("/rezus/v1/tenants/{tenant}/versions/{version}/body", &["GET"]),
    ("/rezus/v1/tenants/{tenant}/rollback", &["POST"]),
    ("/rezus/v1/tenants/{tenant}/diff", &["GET"]),
    ("/rezus/v1/tenants/{tenant}/resources", &["GET"]),
    ("/rezus/v1/tenants/{tenant}/index", &["POST"]),
    ("/rezus/v1/tenants/{tenant}/readings", &["GET"]),
    ("/rezus/v1/tokens", &["GET", "POST"]),
    ("/rezus/v1/tokens/{id}", &["DELETE"]),
    ("/rezus/v1/users", &["GET", "POST"]),
    ("/rezus/v1/users/{name}", &["GET", "PATCH", "DELETE"]),
    ("/rezus/v1/grants", &["GET", "PUT"]),
    ("/rezus/v1/audit", &["GET"]),
];

/// Returns the routes.
pub fn routes(plane: Plane) -> Router {
    let handlers: [MethodRouter<Plane>; 23] = [
        get(server),
        post(tenants::prune),
        get(tenants::all_locks),
        get(tenants::list).post(tenants::create),
        get(tenants::show).patch(settings::configure).delete(tenants::remove),
        put(settings::upload),
        put(settings::freeze).delete(settings::unfreeze),
        get(tenants::locks).delete(tenants::break_lock),
        get(tenants::refusals),
        get(versions::list),
        get(versions::show).patch(versions::pin),
        get(versions::body),
        post(versions::rollback),
        get(versions::diff),
        get(resources::list_or_show),
        post(resources::rebuild_index),
        get(readings::follow),
        get(tokens::list).post(tokens::create),
        delete(tokens::revoke),
        get(users::list).post(users::create),
        get(users::show).patch(users::change).delete(users::remove),
        get(users::groups).put(users::grant_to_group),
        get(audit::list),
    ];
    let mut router = Router::new();
    for ((path, methods), handler) in PATHS.iter().zip(handlers) {
        let refuse = move |method: Method| async move {
            ApiError::method_not_allowed(format!(
                "{method} is no method of {path}: use {}",
                methods.join(" or ")
            ))
        };
        router = router.route(path, handler.fallback(refuse));
    }
    router.layer(middleware::from_fn_with_state(plane.clone(), tell_what_changed)).with_state(plane)
}

/// Has what is shown brought up to date after a request that may have changed it, before the client is answered.
async fn tell_what_changed(State(plane): State<Plane>, request: Request, next: Next) -> Response {
    if request.method() == Method::GET {
        return next.run(request).await;
    }
    let named =
        request.uri().path().strip_prefix("/rezus/v1/tenants/").and_then(|rest| rest.split('/').next());
    let tenant = named.and_then(|name| name.parse::<TenantName>().ok());
    let response = next.run(request).await;
    match tenant {
        Some(tenant) => plane.catalogue.touch(&tenant),
        None => plane.catalogue.look(),
    }
    response
}

/// What this server is, for the command line.
async fn server(State(plane): State<Plane>) -> Json<views::ServerView> {
    Json(views::ServerView {
        version: crate::telemetry::VERSION,
        listeners: plane.listeners.get().cloned().unwrap_or_default(),
    })
}

/// The answer to every path that is none.
pub async fn unknown_path(method: Method, uri: Uri) -> ApiError {
    // Only the path, and of that a readable piece: a query may hold anything.
    let path: String = uri.path().chars().take(200).collect();
    ApiError::not_found(format!("there is nothing at {method} {path}"))
}

/// The answer to a method that a path does not take, where the path has no words of its own for that.
pub async fn unknown_method(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::method_not_allowed(format!("{method} is no method of {path}"))
}

/// A tenant's name from a path.
pub(crate) fn tenant(name: &str) -> Result<TenantName, ApiError> {
    name.parse().map_err(|error: rezus_core::base::NameError| ApiError::bad_request(error.to_string()))
}

/// A version's number from a path or query.
fn version(number: u64) -> Result<VersionNumber, ApiError> {
    VersionNumber::new(number).ok_or_else(|| ApiError::bad_request("a version's number is 1 or more"))
}

/// Counts a refusal, where it is one that is kept.
fn counted<T>(plane: &Plane, operation: &str, outcome: Result<T, BackendError>) -> Result<T, BackendError> {
    if let Err(BackendError::Refused(refusal)) = &outcome {
        plane.metrics.refused(operation, refusal.status());
    }
    outcome
}

/// A JSON object as the body, refused with a `Status`.
struct Body<T>(T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(req: Request, state: &S) -> Result<Self, ApiError> {
        // Through a map: a struct would also be read from an array.
        let Json(object) =
            Json::<serde_json::Map<String, serde_json::Value>>::from_request(req, state).await?;
        let strange =
            |_| ApiError::bad_request("the body is a JSON object, but not the one that this path takes");
        serde_json::from_value(object.into()).map(Self).map_err(strange)
    }
}

/// Query parameters, refused with a `Status`.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Query), rejection(ApiError))]
pub(crate) struct Query<T>(pub(crate) T);

/// Path parameters, refused with a `Status`.
#[derive(FromRequestParts)]
#[from_request(via(axum::extract::Path), rejection(ApiError))]
pub(crate) struct Path<T>(pub(crate) T);

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        // The rejection's own text may quote the body.
        let message = match rejection {
            JsonRejection::MissingJsonContentType(_) => "send the body as content-type: application/json",
            JsonRejection::JsonSyntaxError(_) => "the body is not JSON",
            JsonRejection::JsonDataError(_) => "the body is JSON, but no object",
            _ => "the body cannot be read: it may be too long",
        };
        Self::bad_request(message)
    }
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl From<axum::extract::rejection::PathRejection> for ApiError {
    fn from(rejection: axum::extract::rejection::PathRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}
