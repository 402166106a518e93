//! The HTTP backend of OpenTofu and Terraform, at `/state/{tenant}` and `/state?ID={tenant}`.

mod body;
mod buffer;
mod download;
mod pace;

use std::str::FromStr as _;

use axum::extract::rejection::PathRejection;
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use axum::{Extension, Router};
use rezus_core::base::TenantName;
use rezus_core::declared::backend::{BackendError, Caller, Refusal, Unlock, Written};
use rezus_core::declared::{LockId, LockInfo};

use crate::auth::rights::{self, StateUse};
use crate::auth::{self, Ticket, Who};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::peer::Peer;
use crate::runs::Save;

pub use body::Intake;
pub use download::download;
pub use pace::bounded;

/// The paths, for whoever must know all of them.
pub const PATHS: [&str; 3] = ["/state", "/state/{tenant}", "/state/{tenant}/lock"];

/// Returns the routes.
pub fn routes(plane: Plane) -> Router {
    let [query, path, lock] = PATHS;
    Router::new()
        .route(query, any(by_query))
        .route(path, any(by_path))
        .route(lock, any(lock_path))
        .with_state(plane)
}

/// Who asks, from where, and the row of the audit trail about it.
#[derive(axum::extract::FromRequestParts)]
struct Asked {
    who: Who,
    #[from_request(via(ConnectInfo))]
    peer: Peer,
    /// Absent for a method that is none.
    ticket: Option<Extension<Ticket>>,
}

impl Asked {
    fn ticket(&self) -> Result<&Ticket, ApiError> {
        let missing = || ApiError::internal("a route that has no name in the audit trail");
        self.ticket.as_ref().map(|Extension(ticket)| ticket).ok_or_else(missing)
    }
}

/// What a request asks for, whichever way the client spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Get,
    Post,
    Delete,
    Lock,
    Unlock,
}

impl Operation {
    /// LOCK and UNLOCK are methods of the clients' own (Terraform's HTTP backend, `lock_method`).
    fn of_state(method: &Method) -> Option<Self> {
        match method.as_str() {
            "GET" => Some(Self::Get),
            "POST" | "PUT" => Some(Self::Post),
            "DELETE" => Some(Self::Delete),
            "LOCK" => Some(Self::Lock),
            "UNLOCK" => Some(Self::Unlock),
            _ => None,
        }
    }

    /// For frameworks that cannot send those methods.
    fn of_lock(method: &Method) -> Option<Self> {
        match method.as_str() {
            "LOCK" | "POST" | "PUT" => Some(Self::Lock),
            "UNLOCK" | "DELETE" => Some(Self::Unlock),
            _ => None,
        }
    }

    fn right(self) -> StateUse {
        match self {
            Self::Get | Self::Post | Self::Lock | Self::Unlock => StateUse::Work,
            Self::Delete => StateUse::Delete,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
            Self::Lock => "LOCK",
            Self::Unlock => "UNLOCK",
        }
    }
}

async fn by_path(
    State(plane): State<Plane>,
    asked: Asked,
    tenant: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let operation = Operation::of_state(request.method());
    respond(&plane, &asked, operation, Address::Path(tenant), request).await
}

async fn lock_path(
    State(plane): State<Plane>,
    asked: Asked,
    tenant: Result<Path<String>, PathRejection>,
    request: Request,
) -> Response {
    let operation = Operation::of_lock(request.method());
    respond(&plane, &asked, operation, Address::Lock(tenant), request).await
}

async fn by_query(State(plane): State<Plane>, asked: Asked, request: Request) -> Response {
    let operation = Operation::of_state(request.method());
    respond(&plane, &asked, operation, Address::Query, request).await
}

/// Where a request names its tenant.
enum Address {
    Path(Result<Path<String>, PathRejection>),
    Lock(Result<Path<String>, PathRejection>),
    Query,
}

/// What is to be done, once its body is read.
enum Work {
    Post {
        lock_id: Option<LockId>,
        received: body::Received,
        save: Option<Save>,
    },
    Delete,
    Lock(LockInfo),
    Unlock(Unlock),
    /// To be kept and answered: no state or lock info could be read.
    Refuse(Refusal),
}

async fn respond(
    plane: &Plane,
    asked: &Asked,
    operation: Option<Operation>,
    address: Address,
    request: Request,
) -> Response {
    let Some(operation) = operation else {
        let allowed = match address {
            Address::Lock(_) => "LOCK, UNLOCK, POST, PUT, DELETE",
            Address::Path(_) | Address::Query => "GET, POST, PUT, DELETE, LOCK, UNLOCK",
        };
        let message = format!("{} is no method of this path: use {allowed}", request.method());
        let mut response = ApiError::method_not_allowed(message).into_response();
        response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static(allowed));
        return response;
    };
    match handle(plane, asked, operation, address, request).await {
        Ok(response) => response,
        Err(error) => error.into_response(),
    }
}

async fn handle(
    plane: &Plane,
    asked: &Asked,
    operation: Operation,
    address: Address,
    request: Request,
) -> Result<Response, ApiError> {
    let id = id_parameter(request.uri())?;
    let (tenant, lock_id) = match address {
        Address::Path(name) | Address::Lock(name) => {
            let Path(name) = name?;
            let tenant =
                TenantName::from_str(&name).map_err(|error| ApiError::bad_request(error.to_string()))?;
            (tenant, id)
        }
        Address::Query => by_id(plane, operation, id).await?,
    };
    asked.ticket()?.tenant(&tenant);
    rights::state(&asked.who.0, &tenant, operation.right())?;
    let work = match operation {
        Operation::Get => return download_current(plane, &tenant).await,
        Operation::Delete => Work::Delete,
        Operation::Post => receive_state(plane, &tenant, lock_id.as_deref(), request).await?,
        Operation::Lock => {
            body::lock_info(request, plane.clock.now()).await.map_or_else(Work::Refuse, Work::Lock)
        }
        Operation::Unlock => {
            let lock_id = parse_lock_id(lock_id.as_deref())?;
            let which = body::unlock(request, lock_id, plane.clock.now()).await;
            which.map_or_else(Work::Refuse, Work::Unlock)
        }
    };
    // From here on a client that goes away stops nothing half-way: what is begun is finished, kept and logged.
    let caller = auth::caller(&asked.who.0, &asked.peer, &tenant, plane.limits.create_on_write);
    let (plane_of_work, ticket) = (plane.clone(), asked.ticket()?.clone());
    let work = async move {
        let outcome = carry_out(plane_of_work, caller, tenant, operation, work, &ticket).await;
        ticket.close(outcome.as_ref().err().map_or(StatusCode::OK, ApiError::code).as_u16());
        outcome
    };
    plane.intake.to_its_end(work).await??;
    Ok(StatusCode::OK.into_response())
}

/// Reads the `ID` parameter. Naming it more than once is refused: it could not be told which one is meant.
fn id_parameter(uri: &Uri) -> Result<Option<String>, ApiError> {
    #[derive(serde::Deserialize)]
    struct Parameters {
        #[serde(rename = "ID")]
        id: Option<String>,
    }
    let parameters = axum::extract::Query::<Parameters>::try_from_uri(uri)
        .map_err(|_| ApiError::bad_request("the query cannot be read: expected ID=... at most once"))?;
    Ok(parameters.0.id.filter(|id| !id.is_empty()))
}

fn parse_lock_id(id: Option<&str>) -> Result<Option<LockId>, ApiError> {
    id.map(LockId::parse).transpose().map_err(|error| ApiError::bad_request(error.to_string()))
}

/// Finds tenant and lock of `/state?ID=...`: the tenant's name, or in its place the ID of a lock.
async fn by_id(
    plane: &Plane,
    operation: Operation,
    id: Option<String>,
) -> Result<(TenantName, Option<String>), ApiError> {
    let Some(id) = id else {
        let message = "name the tenant: /state/TENANT, or /state?ID=TENANT";
        return Err(ApiError::bad_request(message));
    };
    let tenant = plane.backend.resolve(&id).await?;
    match (tenant, TenantName::from_str(&id)) {
        (Some(tenant), _) if tenant.as_str() == id => Ok((tenant, None)),
        (Some(tenant), _) => Ok((tenant, Some(id))),
        (None, Ok(tenant)) => Ok((tenant, None)),
        (None, Err(no_name)) => match (operation, LockId::parse(&id)) {
            (Operation::Post, Ok(id)) => Err(Refusal::LockNotHeld { id }.into()),
            (Operation::Get, Ok(_)) => Err(ApiError::not_found("no lock with this ID is known")),
            _ => Err(ApiError::bad_request(no_name.to_string())),
        },
    }
}

/// Why an operation was not done: by the backend's rules, or before it got to them.
enum Failure {
    Backend(BackendError),
    Answer(ApiError),
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::Backend(error)
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Answer(error)
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Backend(error) => error.into(),
            Failure::Answer(error) => error,
        }
    }
}

async fn download_current(plane: &Plane, tenant: &TenantName) -> Result<Response, ApiError> {
    match plane.backend.current(tenant).await? {
        Some(version) => download(plane, tenant, &version).await,
        None => Err(ApiError::not_found(format!("the tenant {tenant} has no state"))),
    }
}

async fn receive_state(
    plane: &Plane,
    tenant: &TenantName,
    lock_id: Option<&str>,
    request: Request,
) -> Result<Work, ApiError> {
    let lock_id = parse_lock_id(lock_id)?;
    let save = plane.runs.save_begins(tenant).await;
    let (parts, body) = request.into_parts();
    match plane.intake.receive(&parts.headers, body).await {
        Ok(received) => Ok(Work::Post { lock_id, received, save }),
        Err(body::NotReceived::Refused(refusal)) => Ok(Work::Refuse(refusal)),
        Err(body::NotReceived::Busy) => {
            Err(ApiError::busy("too many states are being written at once: try again"))
        }
    }
}

async fn carry_out(
    plane: Plane,
    caller: Caller,
    tenant: TenantName,
    operation: Operation,
    work: Work,
    ticket: &Ticket,
) -> Result<(), ApiError> {
    let outcome = match work {
        Work::Post { lock_id, received, save } => {
            let outcome = post(&plane, &caller, &tenant, lock_id.as_ref(), received).await;
            if let (Ok(()), Some(save)) = (&outcome, save) {
                save.accepted(&caller.name);
            }
            outcome
        }
        Work::Delete => delete(&plane, &caller, &tenant).await,
        Work::Lock(info) => lock(&plane, &caller, &tenant, &info).await,
        Work::Unlock(which) => {
            if which == Unlock::Any {
                ticket.action("lock.break");
            }
            plane.runs.may_release(&tenant, &caller.name).await?;
            plane.runs.lets_go(&tenant, &caller.name).await;
            let outcome = unlock(&plane, &caller, &tenant, &which).await;
            // What it may have to read is no part of every request's own memory.
            Box::pin(plane.runs.unlocked(&tenant)).await;
            outcome
        }
        Work::Refuse(refusal) => {
            plane.backend.refuse(&tenant, operation.name(), &caller, refusal).await.map_err(Failure::from)
        }
    };
    if let Err(Failure::Backend(BackendError::Refused(refusal))) = &outcome {
        plane.metrics.refused(operation.name(), refusal.status());
        tracing::warn!(
            tenant.name = %tenant,
            operation = operation.name(),
            code = refusal.status(),
            caller = caller.name,
            // As a field: it may quote the client, and fields are escaped.
            reason = refusal.to_string(),
            "refused"
        );
    }
    // Before the client is answered: whoever asks after that sees it.
    plane.catalogue.touch(&tenant);
    Ok(outcome?)
}

async fn post(
    plane: &Plane,
    caller: &Caller,
    tenant: &TenantName,
    lock_id: Option<&LockId>,
    received: body::Received,
) -> Result<(), Failure> {
    let admitted = match plane.intake.ingest(received, plane.projector.mappings()).await? {
        Ok(admitted) => admitted,
        Err(refusal) => return Ok(plane.backend.refuse(tenant, "POST", caller, refusal).await?),
    };
    let written = plane.backend.post(tenant, lock_id, admitted.state(), caller).await?;
    // What follows reads the state as well, and would wait for the place that this one has.
    drop(admitted);
    if let Written::Version(version) = written {
        plane.secrets.forget(tenant);
        plane.metrics.accepted(version.size_bytes);
        tracing::info!(
            tenant.name = %tenant,
            state.version = version.version.get(),
            state.serial = version.serial.map(rezus_core::declared::Serial::get),
            size_bytes = version.size_bytes,
            forced = version.forced,
            unlocked = version.unlocked,
            caller = caller.name,
            "state written"
        );
        Box::pin(plane.runs.accepted(tenant)).await;
    }
    Ok(())
}

async fn delete(plane: &Plane, caller: &Caller, tenant: &TenantName) -> Result<(), Failure> {
    plane.backend.delete(tenant, caller).await?;
    Box::pin(plane.runs.accepted(tenant)).await;
    plane.secrets.forget(tenant);
    tracing::info!(tenant.name = %tenant, caller = caller.name, "state deleted");
    Ok(())
}

async fn lock(plane: &Plane, caller: &Caller, tenant: &TenantName, info: &LockInfo) -> Result<(), Failure> {
    plane.backend.lock(tenant, info, caller).await?;
    tracing::info!(tenant.name = %tenant, lock.id = info.id.as_str(), lock.who = info.who, "lock taken");
    Ok(())
}

async fn unlock(plane: &Plane, caller: &Caller, tenant: &TenantName, which: &Unlock) -> Result<(), Failure> {
    plane.backend.unlock(tenant, which, caller).await?;
    match which {
        Unlock::Id(id) => tracing::info!(tenant.name = %tenant, lock.id = id.as_str(), "lock released"),
        Unlock::Break(_) | Unlock::Any => {
            tracing::warn!(tenant.name = %tenant, caller = caller.name, "lock broken");
        }
    }
    Ok(())
}
