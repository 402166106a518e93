//! The configurations of `kubectl` and `talosctl` for a tenant's cluster, made from the secrets in its state or in the
//! files that are named for it: given to whoever may have them, kept nowhere. And how long they are good.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::credentials::{Credentials, Opens, Rejected};
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::resource::{AddressType, Machine, Role};
use zeroize::Zeroizing;

use super::kinds::TENANT;
use super::list::not_found;
use crate::api::{self, Path};
use crate::auth::Ticket;
use crate::compose::Plane;
use crate::error::ApiError;
use crate::secrets::Secrets;
use crate::tls::ends;

/// How long beforehand it is said that a certificate ends: the provider renews it in the last month, if it is applied.
const BEFOREHAND: Duration = Duration::from_hours(24 * 30);

/// How long one credential is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// What it opens.
    pub opens: Opens,
    /// The end of its client certificate, or why there is none that can be used.
    pub until: Result<Timestamp, Unusable>,
}

/// Why there is no credential that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There is none.
    Missing,
    /// It is not as it should be, for this reason.
    Rejected(String),
}

/// Tells how long the credentials are good with which a tenant's cluster is reached, and which are missing: those that were
/// kept out of the state, and both where there is neither and `is_talos` says that it declares a cluster of Talos.
///
/// # Errors
///
/// [`ReadError`] where they cannot be read now; what is no state in clear holds none.
pub async fn validity(
    secrets: &Secrets,
    tenant: &TenantName,
    is_talos: bool,
) -> Result<Vec<Validity>, ReadError> {
    let found = match secrets.of(tenant).await {
        Ok(found) => found,
        Err(ReadError::NoState(_) | ReadError::Encrypted { .. } | ReadError::NoTenant(_)) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let Credentials { kubernetes, talos, rejected, withheld } = &*found;
    let nothing = kubernetes.is_none() && talos.is_none() && rejected.is_empty();
    let clients = [
        (Opens::Kubernetes, kubernetes.as_ref().map(|access| &access.client)),
        (Opens::Talos, talos.as_ref().map(|access| &access.client)),
    ];
    let mut all = Vec::new();
    for (opens, client) in clients {
        if let Some(client) = client {
            let unreadable = || Unusable::Rejected("no certificate can be read in it".to_owned());
            all.push(Validity { opens, until: ends(&client.certificate_pem()).ok_or_else(unreadable) });
            continue;
        }
        let mut rejected = rejected.iter().filter(|rejected| rejected.opens == opens).peekable();
        if rejected.peek().is_none() && (withheld.contains(&opens) || (nothing && is_talos)) {
            all.push(Validity { opens, until: Err(Unusable::Missing) });
        }
        all.extend(rejected.map(|Rejected { origin, field, reason, .. }| Validity {
            opens,
            until: Err(Unusable::Rejected(format!("{field} of {origin}: {reason}"))),
        }));
    }
    Ok(all)
}

/// What is to be said of credentials at a moment: whether all are good and stay so for a while, why not in one word, and
/// until when. Nothing where there are none.
pub fn judged(validity: &[Validity], now: Timestamp) -> Option<(bool, &'static str, String)> {
    let worst = validity.iter().map(|one| match &one.until {
        Err(Unusable::Rejected(_)) => (4, "CredentialRejected"),
        Ok(until) if *until <= now => (3, "CredentialExpired"),
        Ok(until) if until.minus(BEFOREHAND) <= now => (2, "CredentialExpiring"),
        Err(Unusable::Missing) => (1, "CredentialMissing"),
        Ok(_) => (0, "Valid"),
    });
    let (badness, reason) = worst.max()?;
    let told = validity.iter().map(|Validity { opens, until }| match until {
        Ok(until) => {
            format!("the {opens} client certificate is good until {}", super::object::seconds(*until))
        }
        Err(Unusable::Missing) => format!("the state holds no {opens} credential"),
        Err(Unusable::Rejected(why)) => format!("the {opens} credential cannot be used: {why}"),
    });
    let mut message = told.collect::<Vec<_>>().join("; ");
    match reason {
        "CredentialExpired" | "CredentialExpiring" => {
            message.push_str(": apply the tenant's configuration, or replace the file, to renew it");
        }
        "CredentialMissing" => {
            message.push_str(
                ": name a file that does, with `rezus-server tenant configure --kubeconfig-file` or `--talosconfig-file`",
            );
        }
        _ => {}
    }
    Some((badness == 0, reason, message))
}

/// Finds with what a tenant's cluster is reached.
async fn held(plane: &Plane, name: &str) -> Result<(TenantName, Arc<Credentials>), ApiError> {
    let tenant = api::tenant(name)?;
    match plane.secrets.of(&tenant).await {
        Ok(found) => Ok((tenant, found)),
        Err(ReadError::NoTenant(_)) => Err(not_found(&TENANT, name)),
        Err(error) => Err(error.into()),
    }
}

fn missing(found: &Credentials, opens: Opens) -> ApiError {
    let rejected = found.rejected.iter().filter(|rejected| rejected.opens == opens);
    let why: Vec<String> = rejected
        .map(|Rejected { origin, field, reason, .. }| format!("{field} of {origin}: {reason}"))
        .collect();
    let why = if why.is_empty() {
        "none is in the state, as far as it can be read, and no file that holds one is named".to_owned()
    } else {
        why.join("; ")
    };
    ApiError::not_found(format!("there is no credential that opens the cluster's {opens} API: {why}"))
}

pub(super) async fn kubeconfig(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    ticket: Option<Extension<Ticket>>,
) -> Result<Response, ApiError> {
    note(ticket.as_deref(), "kubeconfig");
    let (tenant, found) = held(&plane, &name).await?;
    let access = found.kubernetes.as_ref().ok_or_else(|| missing(&found, Opens::Kubernetes))?;
    Ok(secret_yaml(access.kubeconfig(tenant.as_str())))
}

pub(super) async fn talosconfig(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    ticket: Option<Extension<Ticket>>,
) -> Result<Response, ApiError> {
    note(ticket.as_deref(), "talosconfig");
    let (tenant, found) = held(&plane, &name).await?;
    let mut access = found.talos.clone().ok_or_else(|| missing(&found, Opens::Talos))?;
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
fn secret_yaml(mut text: Zeroizing<String>) -> Response {
    let text = Zeroizing::new(std::mem::take(&mut *text).into_bytes());
    let headers = [(CONTENT_TYPE, "application/yaml"), (CACHE_CONTROL, "no-store")];
    (headers, Bytes::from_owner(text)).into_response()
}
