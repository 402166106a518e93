//! What is set of a tenant: with what its runs are made, its labels, its freeze.

mod changes;
pub(super) mod views;

use std::path::PathBuf;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, header};
use rezus_core::base::TenantName;
use rezus_core::declared::credentials::Rejected;
use rezus_core::declared::{Encryption, Fingerprint, Freeze};
use rezus_core::runs::workspace::{ConfigurationSource, TenantSettings, Workspace};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::tenants::{record, shown};
use super::views::TenantView;
use super::{Body, Path, Query, tenant};
use crate::auth::{self, Who};
use crate::compose::Plane;
use crate::config::TenantConfig;
use crate::error::{ApiError, Chain};
use crate::peer::Peer;
use crate::secrets;
use crate::workspaces::archive;
use changes::{Changes, Wanted};

/// How an archive is announced (IANA has no name for tar).
const TAR: &str = "application/x-tar";

pub(super) async fn configure(
    State(plane): State<Plane>,
    who: Who,
    Path(name): Path<String>,
    Body(object): Body<Map<String, Value>>,
) -> Result<Json<TenantView>, ApiError> {
    let tenant = record(&plane, &name).await?.name;
    let changes = Changes::of(object)?;
    if changes.names_the_servers && !who.is_admin() {
        return Err(ApiError::forbidden(format!(
            "User \"{}\" needs the role admin in all tenants: dir, files, binary, environment and secrets name what is the server's",
            who.0.name
        )));
    }
    if changes.is_of_workspace() {
        not_fixed(&plane, &tenant)?;
    }
    if let Some(dir) = changes.dir() {
        let is_dir = tokio::fs::metadata(dir).await.is_ok_and(|dir| dir.is_dir());
        if !is_dir {
            return Err(ApiError::invalid("dir is no directory of the server's machine that it can see"));
        }
    }
    if let Some(Wanted(encryption)) = changes.encryption {
        may_ask(&plane, &who, &tenant, encryption)?;
    }
    files_not_fixed(&plane, &tenant, &changes)?;
    let named = |file: &Option<Wanted<PathBuf>>| file.as_ref().and_then(|Wanted(file)| file.clone());
    let files = (named(&changes.kubeconfig_file), named(&changes.talosconfig_file));
    check_files(files).await?;
    let (require_locks, encryption) = (changes.require_locks, changes.encryption);
    if changes.is_of_settings() {
        plane.workspaces.change(&tenant, None, |settings| changes.make(settings)).await?;
        // With what it is decrypted may have changed.
        plane.desk.forget(&tenant);
        plane.collector.look();
        plane.catalogue.touch(&tenant);
    }
    if let Some(require) = require_locks {
        plane.backend.require_locks(&tenant, require).await?;
    }
    if let Some(Wanted(encryption)) = encryption {
        plane.backend.set_encryption(&tenant, encryption).await?;
    }
    shown(&plane, &name).await
}

/// Refuses to set what is asked of states where the configuration file says it, and to ask for less than the server does
/// by others than its admins.
fn may_ask(
    plane: &Plane,
    who: &Who,
    tenant: &TenantName,
    encryption: Option<Encryption>,
) -> Result<(), ApiError> {
    let policy = plane.backend.encryption();
    if policy.fixed.contains_key(tenant) {
        return Err(fixed(tenant, "what is asked of its states"));
    }
    let is_less = policy.default == Encryption::Required && encryption == Some(Encryption::Optional);
    if is_less && !who.is_admin() {
        return Err(ApiError::forbidden(format!(
            "User \"{}\" needs the role admin in all tenants: the server requires encrypted states",
            who.0.name
        )));
    }
    Ok(())
}

/// Refuses to name files where the configuration file names them.
fn files_not_fixed(plane: &Plane, tenant: &TenantName, changes: &Changes) -> Result<(), ApiError> {
    let of_file = plane.workspaces.fixed(tenant);
    let is_fixed = |named: fn(&TenantConfig) -> bool| of_file.is_some_and(named);
    if (changes.kubeconfig_file.is_some() && is_fixed(|set| set.kubeconfig_file.is_some()))
        || (changes.talosconfig_file.is_some() && is_fixed(|set| set.talosconfig_file.is_some()))
    {
        return Err(fixed(tenant, "where its credentials are read"));
    }
    Ok(())
}

/// Refuses files that give no credential: better now than when one is needed.
async fn check_files((kubeconfig, talosconfig): (Option<PathBuf>, Option<PathBuf>)) -> Result<(), ApiError> {
    let check = move || {
        let invalid = |key: &str, Rejected { field, reason, .. }: Rejected| {
            ApiError::invalid(format!("{key}: {field}: {reason}"))
        };
        if let Some(path) = kubeconfig {
            secrets::kubernetes(&path).map_err(|rejected| invalid("kubeconfigFile", rejected))?;
        }
        if let Some(path) = talosconfig {
            secrets::talos(&path).map_err(|rejected| invalid("talosconfigFile", rejected))?;
        }
        Ok(())
    };
    tokio::task::spawn_blocking(check).await.map_err(ApiError::internal)?
}

fn fixed(tenant: &TenantName, what: &str) -> ApiError {
    ApiError::conflict(format!(
        "the server's configuration file says {what}: change [tenants.{tenant}] there"
    ))
}

/// Refuses to change what the configuration file says.
fn not_fixed(plane: &Plane, tenant: &TenantName) -> Result<(), ApiError> {
    if plane.workspaces.is_fixed(tenant) {
        return Err(fixed(tenant, "with what its runs are made"));
    }
    Ok(())
}

/// What goes with an archive.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upload {
    /// What its owner calls it; nothing if absent.
    revision: Option<String>,
}

pub(super) async fn upload(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(upload): Query<Upload>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<TenantView>, ApiError> {
    let tenant = record(&plane, &name).await?.name;
    not_fixed(&plane, &tenant)?;
    if headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != TAR) {
        return Err(ApiError::unsupported_media_type(format!(
            "send a tar archive of the configuration as content-type: {TAR}"
        )));
    }
    if upload.revision.as_ref().is_some_and(|text| text.len() > 256 || text.chars().any(char::is_control)) {
        return Err(ApiError::invalid("revision is a text of up to 256 bytes on one line"));
    }
    let checked = body.clone();
    let digest = tokio::task::spawn_blocking(move || {
        archive::check(&checked).map(|()| Fingerprint::of(&checked).sha256_hex())
    });
    let digest = digest.await.map_err(ApiError::internal)?;
    let digest = digest.map_err(|error| ApiError::invalid(Chain(&error).to_string()))?;
    let source = ConfigurationSource::Archive(digest.clone());
    let keep = |settings: &mut TenantSettings| {
        let workspace = settings.workspace.get_or_insert_with(|| Workspace::of(source.clone()));
        (workspace.source, workspace.revision) = (source, upload.revision);
        Ok::<_, ApiError>(())
    };
    plane.workspaces.change(&tenant, Some((digest.clone(), body)), keep).await?;
    tracing::info!(tenant.name = %tenant, configuration.digest = digest, "configuration uploaded");
    shown(&plane, &name).await
}

/// A freeze to set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewFreeze {
    reason: String,
    /// Whether locks and writes of clients are refused as well.
    #[serde(default)]
    clients: bool,
}

pub(super) async fn freeze(
    State(plane): State<Plane>,
    who: Who,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(name): Path<String>,
    Body(new): Body<NewFreeze>,
) -> Result<Json<TenantView>, ApiError> {
    let tenant = tenant(&name)?;
    let reason = new.reason.trim();
    if reason.is_empty() || reason.len() > 1_000 || reason.chars().any(char::is_control) {
        return Err(ApiError::invalid("reason is a text of 1 to 1000 bytes on one line"));
    }
    let freeze = Freeze {
        by: auth::caller(&who.0, &peer, &tenant, false).name,
        reason: reason.to_owned(),
        at: plane.clock.now(),
        clients: new.clients,
    };
    let by = freeze.by.clone();
    plane.backend.set_freeze(&tenant, Some(freeze)).await?;
    plane.runs.look_at_freeze(&tenant).await?;
    tracing::warn!(tenant.name = %tenant, caller = by, reason, clients = new.clients, "tenant frozen");
    shown(&plane, &name).await
}

pub(super) async fn unfreeze(
    State(plane): State<Plane>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<TenantView>, ApiError> {
    let tenant = tenant(&name)?;
    plane.backend.set_freeze(&tenant, None).await?;
    plane.runs.look_at_freeze(&tenant).await?;
    tracing::warn!(tenant.name = %tenant, caller = who.0.name, "tenant no longer frozen");
    shown(&plane, &name).await
}
