//! Runs, the one kind that can be made: asked for, approved, cancelled, and their logs read.

mod log;
mod manifest;
mod sse;

use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, WARNING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use rezus_core::access::{Identity, Role};
use rezus_core::base::TenantName;
use rezus_core::runs::{Approval, Operation, RunName, RunRecord};

use super::accept::{Form, negotiate};
use super::kinds::{GROUP, RUN};
use super::list::{self, Place};
use super::sight::Sight;
use crate::api::{self, Path};
use crate::auth::{self, Ticket, Who};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::peer::Peer;
use crate::runs::{Name, NewRun, RunsError};
use manifest::{Manifest, Terms};

pub use log::follows;
pub(super) use log::log;

/// How long a body may be, in bytes: runs are small.
const LIMIT: usize = 256 << 10;

/// The forms that a run is given in.
const FORMS: [Form; 3] = [Form::Json, Form::Table, Form::PartialObjectMetadata];

/// Makes a run.
#[expect(clippy::too_many_arguments, reason = "each is a part of the request")]
pub(super) async fn create(
    State(plane): State<Plane>,
    Path(namespace): Path<String>,
    RawQuery(query): RawQuery,
    who: Who,
    ConnectInfo(peer): ConnectInfo<Peer>,
    ticket: Ticket,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    negotiate(&headers, &FORMS)?;
    let tenant = api::tenant(&namespace)?;
    let terms = Terms::parse(query.as_deref().unwrap_or_default())?;
    is_json(&headers)?;
    let body = axum::body::to_bytes(body, LIMIT).await.map_err(|_| {
        ApiError::too_large(format!("the body did not come whole, or has more than {LIMIT} bytes"))
    })?;
    let caller = auth::caller(&who.0, &peer, &tenant, false).name;
    let Manifest { new, warnings } = Manifest::read(&body, &tenant, &caller, terms.validation)?;
    if let Name::Given(name) = &new.name {
        ticket.object(name.as_str());
    }
    may_make(&plane, &who, &tenant, &new).await?;
    let sight = Sight::from(who.0.clone());
    let mut response = if terms.is_rehearsal {
        let record = plane.runs.rehearse(&tenant, &new).await.map_err(|error| refused(error, &new))?;
        list::not_yet(&plane, super::show::run(&record, &[]), &headers).await?
    } else {
        let record = plane.runs.create(&tenant, new.clone()).await.map_err(|error| refused(error, &new))?;
        ticket.object(record.facts().name.as_str());
        show(&plane, &record, sight, &headers).await?
    };
    *response.status_mut() = StatusCode::CREATED;
    for warning in warnings {
        // Names of the client's own, escaped; what is none of a header's text is left out.
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(WARNING, value);
        }
    }
    Ok(response)
}

/// Somebody who does something with a run that there is.
pub(super) struct Act {
    plane: Plane,
    tenant: TenantName,
    run: RunName,
    who: Who,
    by: String,
    headers: HeaderMap,
}

impl FromRequestParts<Plane> for Act {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &Plane) -> Result<Self, ApiError> {
        let Path((namespace, name)) = Path::<(String, String)>::from_request_parts(parts, state).await?;
        let who = Who::from_request_parts(parts, state).await?;
        let ConnectInfo(peer) = ConnectInfo::<Peer>::from_request_parts(parts, state)
            .await
            .map_err(|_| ApiError::internal("a connection of nobody"))?;
        let (tenant, run) = named(&parts.headers, &namespace, &name)?;
        let by = auth::caller(&who.0, &peer, &tenant, false).name;
        Ok(Self { plane: state.clone(), tenant, run, who, by, headers: parts.headers.clone() })
    }
}

impl Act {
    async fn shown(&self, done: Result<RunRecord, RunsError>) -> Result<Response, ApiError> {
        let record = done.map_err(|error| not_done(error, &self.run))?;
        show(&self.plane, &record, Sight::from(self.who.0.clone()), &self.headers).await
    }
}

/// Agrees to what a run has planned.
pub(super) async fn approve(act: Act) -> Result<Response, ApiError> {
    let Act { plane, tenant, run, who, by, .. } = &act;
    let kept = plane.runs.kept(tenant, run).await.map_err(|error| not_done(error, run))?;
    if kept.facts().request.operation == Operation::Destroy {
        must_be_admin(&who.0, tenant, "approving a destroy")?;
    }
    act.shown(plane.runs.approve(tenant, run, by).await).await
}

/// Ends a run.
pub(super) async fn cancel(act: Act) -> Result<Response, ApiError> {
    act.shown(act.plane.runs.cancel(&act.tenant, &act.run, &act.by).await).await
}

/// Says that what a run created and no version has is taken care of.
pub(super) async fn dismiss(act: Act) -> Result<Response, ApiError> {
    act.shown(act.plane.runs.dismiss(&act.tenant, &act.run, &act.by).await).await
}

/// Shows a run as it is now.
async fn show(
    plane: &Plane,
    record: &RunRecord,
    sight: Sight,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let place = Place { kind: &RUN, namespace: Some(record.tenant().to_string()), sight };
    list::one(plane, place, record.facts().name.as_str(), "", headers).await
}

/// Which run is meant, by a request whose answer can be given.
fn named(headers: &HeaderMap, namespace: &str, name: &str) -> Result<(TenantName, RunName), ApiError> {
    negotiate(headers, &FORMS)?;
    run_of(namespace, name)
}

/// Which run a path names: of names that are none there is none.
fn run_of(namespace: &str, name: &str) -> Result<(TenantName, RunName), ApiError> {
    let run = RunName::parse(name).map_err(|_| list::not_found(&RUN, name))?;
    let tenant = namespace.parse().map_err(|_| list::not_found(&RUN, name))?;
    Ok((tenant, run))
}

fn is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let media = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let media = media.as_deref().unwrap_or("application/json").split(';').next().unwrap_or_default();
    if media.trim().eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(ApiError::unsupported_media_type("the body's Content-Type is application/json"))
    }
}

/// Fails unless somebody may make this run: editors may, but not what destroys, nor what passes a policy by.
async fn may_make(plane: &Plane, who: &Who, tenant: &TenantName, new: &NewRun) -> Result<(), ApiError> {
    if new.request.operation == Operation::Destroy {
        must_be_admin(&who.0, tenant, "operation destroy")?;
    }
    if new.request.approval == Some(Approval::Auto) {
        match plane.runs.workspace(tenant).await {
            Ok(workspace) if workspace.approval == Approval::Manual => {
                must_be_admin(&who.0, tenant, "approval auto, where the tenant's policy is manual,")?;
            }
            // Where there is nothing to run, that is said below.
            Ok(_) | Err(RunsError::NoWorkspace(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Refuses in the words of a kube-apiserver.
fn must_be_admin(who: &Identity, tenant: &TenantName, what: &str) -> Result<(), ApiError> {
    if who.access.role_in(tenant) >= Some(Role::Admin) {
        return Ok(());
    }
    Err(ApiError::forbidden(format!(
        "{} is forbidden: User \"{}\" cannot create resource \"{}\" in API group \"{GROUP}\" in the namespace \"{tenant}\": {what} \
         needs the role admin",
        RUN.qualified(),
        who.name,
        RUN.plural,
    )))
}

/// Why a run is not made.
fn refused(error: RunsError, new: &NewRun) -> ApiError {
    match error {
        RunsError::Exists(name) => {
            let message = format!("{} \"{name}\" already exists", RUN.qualified());
            ApiError::already_exists(message).with_details(details(name.as_str()))
        }
        RunsError::Request(error) => manifest::mismatch(&error, new),
        error => error.into(),
    }
}

/// Why nothing is done with a run.
fn not_done(error: RunsError, run: &RunName) -> ApiError {
    match error {
        RunsError::NoRun { run, .. } => list::not_found(&RUN, run.as_str()),
        error => ApiError::from(error).with_details(details(run.as_str())),
    }
}

fn details(name: &str) -> serde_json::Value {
    serde_json::json!({ "name": name, "group": GROUP, "kind": RUN.plural })
}
