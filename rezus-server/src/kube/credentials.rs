//! The configurations of `kubectl` and `talosctl` for a tenant's cluster, made from the secrets in its state: given to
//! whoever may have them, kept nowhere. And how long they are good.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::credentials::{self, ClientCertificate, Credentials, Opens, Rejected};
use rezus_core::declared::reader::{ReadError, StateReader};
use rezus_core::declared::resource::{AddressType, Machine, Role};
use x509_parser::pem::Pem;

use super::kinds::TENANT;
use super::list::not_found;
use crate::api::{self, Path};
use crate::auth::Ticket;
use crate::compose::Plane;
use crate::error::ApiError;

/// How long beforehand it is said that a certificate ends: the provider renews it in the last month, if it is applied.
const BEFOREHAND: Duration = Duration::from_hours(24 * 30);

/// How long one credential is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// What it opens.
    pub opens: Opens,
    /// The end of its client certificate, or why there is none that can be used.
    pub until: Result<Timestamp, String>,
}

/// Tells how long the credentials are good that a tenant's state holds.
///
/// # Errors
///
/// [`ReadError`] where they cannot be read now; what is no state in clear holds none.
pub async fn validity(reader: &StateReader, tenant: &TenantName) -> Result<Vec<Validity>, ReadError> {
    let objects = match reader.objects_of(tenant, &credentials::TYPES).await {
        Ok((_, objects)) => objects,
        Err(ReadError::NoState(_) | ReadError::Encrypted { .. } | ReadError::NoTenant(_)) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let Credentials { kubernetes, talos, rejected } = credentials::find(&objects);
    let mut found = Vec::new();
    let clients = [
        (Opens::Kubernetes, kubernetes.as_ref().map(|access| &access.client)),
        (Opens::Talos, talos.as_ref().map(|access| &access.client)),
    ];
    for (opens, client) in clients {
        if let Some(client) = client {
            found.push(Validity {
                opens,
                until: end(client).ok_or_else(|| "no certificate can be read in it".to_owned()),
            });
        }
    }
    for Rejected { opens, address, field, reason } in rejected {
        if clients.iter().any(|(name, client)| *name == opens && client.is_none()) {
            found.push(Validity { opens, until: Err(format!("{field} of {address}: {reason}")) });
        }
    }
    Ok(found)
}

/// When a client's certificate ends (RFC 5280, `notAfter`).
fn end(client: &ClientCertificate) -> Option<Timestamp> {
    let pem = client.certificate_pem();
    let pem = Pem::iter_from_buffer(&pem).next()?.ok()?;
    let seconds = pem.parse_x509().ok()?.validity().not_after.timestamp();
    Some(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

/// What is to be said of credentials at a moment: whether all are good and stay so for a while, why not in one word, and
/// until when. Nothing where there are none.
pub fn judged(validity: &[Validity], now: Timestamp) -> Option<(bool, &'static str, String)> {
    let worst = validity.iter().map(|one| match &one.until {
        Err(_) => (3, "CredentialRejected"),
        Ok(until) if *until <= now => (2, "CredentialExpired"),
        Ok(until) if until.minus(BEFOREHAND) <= now => (1, "CredentialExpiring"),
        Ok(_) => (0, "Valid"),
    });
    let (badness, reason) = worst.max()?;
    let told = validity.iter().map(|Validity { opens, until }| match until {
        Ok(until) => {
            format!("the {opens} client certificate is good until {}", super::object::seconds(*until))
        }
        Err(why) => format!("the {opens} credential cannot be used: {why}"),
    });
    let mut message = told.collect::<Vec<_>>().join("; ");
    if matches!(reason, "CredentialExpired" | "CredentialExpiring") {
        message.push_str(": apply the tenant's configuration to renew it");
    }
    Some((badness == 0, reason, message))
}

/// Reads what a tenant's state holds.
async fn held(plane: &Plane, name: &str) -> Result<(TenantName, Credentials), ApiError> {
    let tenant = api::tenant(name)?;
    match plane.reader.objects_of(&tenant, &credentials::TYPES).await {
        Ok((_, objects)) => Ok((tenant, credentials::find(&objects))),
        Err(ReadError::NoTenant(_)) => Err(not_found(&TENANT, name)),
        Err(error) => Err(error.into()),
    }
}

fn missing(rejected: &[Rejected], what: &str) -> ApiError {
    let why: Vec<String> = rejected
        .iter()
        .map(|Rejected { address, field, reason, .. }| format!("{field} of {address}: {reason}"))
        .collect();
    let why = if why.is_empty() { "none is in it".to_owned() } else { why.join("; ") };
    ApiError::not_found(format!("the state holds no credential that opens {what}: {why}"))
}

pub(super) async fn kubeconfig(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    ticket: Option<Extension<Ticket>>,
) -> Result<Response, ApiError> {
    note(ticket.as_deref(), "kubeconfig");
    let (tenant, Credentials { kubernetes, rejected, .. }) = held(&plane, &name).await?;
    let access = kubernetes.ok_or_else(|| missing(&rejected, "the cluster's Kubernetes API"))?;
    Ok(secret_yaml(access.kubeconfig(tenant.as_str())))
}

pub(super) async fn talosconfig(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    ticket: Option<Extension<Ticket>>,
) -> Result<Response, ApiError> {
    note(ticket.as_deref(), "talosconfig");
    let (tenant, Credentials { talos, rejected, .. }) = held(&plane, &name).await?;
    let mut access = talos.ok_or_else(|| missing(&rejected, "the cluster's Talos API"))?;
    if access.endpoints.is_empty() {
        let declared = plane.projector.current(&tenant).await?;
        access.endpoints = declared.projection.machines.iter().filter_map(endpoint).collect();
    }
    let name = access.cluster_name.clone().unwrap_or_else(|| tenant.to_string());
    Ok(secret_yaml(access.talosconfig(&name)))
}

/// Puts on record which of them it was.
fn note(ticket: Option<&Ticket>, what: &str) {
    if let Some(ticket) = ticket {
        ticket.object(what);
    }
}

/// Where a control plane machine answers from outside, if anywhere.
fn endpoint(machine: &Machine) -> Option<String> {
    if machine.role != Some(Role::ControlPlane) {
        return None;
    }
    let of = |kind: AddressType| machine.addresses.iter().find(|address| address.kind == kind);
    let found = of(AddressType::ExternalIp).or_else(|| of(AddressType::InternalIp))?;
    Some(found.address.clone())
}

/// Of use to its holder alone: no one else is to keep it.
fn secret_yaml(text: String) -> Response {
    ([(CONTENT_TYPE, "application/yaml"), (CACHE_CONTROL, "no-store")], text).into_response()
}
