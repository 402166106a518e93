//! What Kubernetes has no form for: where each field of a machine comes from, and what became of it from version to
//! version.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rezus_core::base::TenantName;
use rezus_core::declared::VersionNumber;
use rezus_core::declared::projection::{ResourceKind, diff};
use rezus_core::declared::projector::Declared;
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::resource::{Cluster, Projection};
use serde::Deserialize;
use serde_json::{Value, json};

use super::kinds::{MACHINE, TENANT};
use super::list::not_found;
use crate::api::{self, Path, Query};
use crate::compose::Plane;
use crate::error::ApiError;

/// As of which version something is shown.
#[derive(Debug, Deserialize)]
pub(super) struct AsOf {
    /// A version's number; the newest if absent.
    version: Option<u64>,
}

pub(super) async fn existing(plane: &Plane, name: &str) -> Result<TenantName, ApiError> {
    let name = api::tenant(name)?;
    match plane.backend.store().tenant(&name).await? {
        Some(_) => Ok(name),
        None => Err(not_found(&TENANT, name.as_str())),
    }
}

async fn declared(
    plane: &Plane,
    tenant: &TenantName,
    as_of: &AsOf,
) -> Result<Option<Arc<Declared>>, ApiError> {
    match as_of.version {
        Some(number) => {
            let version = VersionNumber::new(number)
                .ok_or_else(|| ApiError::bad_request("a version's number is 1 or more"))?;
            Ok(Some(plane.past.as_of(tenant, version).await?))
        }
        None => match plane.projector.current(tenant).await {
            Ok(declared) => Ok(Some(declared)),
            Err(ReadError::NoState(_) | ReadError::Encrypted { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        },
    }
}

pub(super) async fn provenance(
    State(plane): State<Plane>,
    Path((tenant, name)): Path<(String, String)>,
    Query(as_of): Query<AsOf>,
) -> Result<Json<Value>, ApiError> {
    let tenant = existing(&plane, &tenant).await?;
    let missing = || not_found(&MACHINE, &name);
    let declared = declared(&plane, &tenant, &as_of).await?.ok_or_else(missing)?;
    let machine = declared.projection.machines.iter().find(|machine| machine.object_name == name);
    let version = declared.version.version.get();
    let fields: serde_json::Map<String, Value> = machine
        .ok_or_else(missing)?
        .provenance
        .iter()
        .map(|(field, source)| {
            let mut shown = json!({
                "stateVersion": version,
                "address": source.address.to_string(),
                "path": source.path,
                "rule": source.rule,
            });
            if let Some(deposed) = source.deposed {
                shown["deposed"] = deposed.into();
            }
            (field.to_owned(), shown)
        })
        .collect();
    Ok(Json(json!({ "machine": name, "stateVersion": version, "fields": fields })))
}

/// In which kept versions a machine came, changed and went, oldest first.
pub(super) async fn history(
    State(plane): State<Plane>,
    Path((tenant, name)): Path<(String, String)>,
    Query(as_of): Query<AsOf>,
) -> Result<Json<Value>, ApiError> {
    if as_of.version.is_some() {
        return Err(ApiError::bad_request("version: a history is of all versions: leave it out"));
    }
    let tenant = existing(&plane, &tenant).await?;
    let mut items = Vec::new();
    let mut before: Option<Projection> = None;
    for meta in plane.backend.store().versions(&tenant).await? {
        let now = match plane.projector.projection(&tenant, meta.version).await {
            Ok(projection) => Some(projection),
            // Encrypted, or removed meanwhile: nothing is known of it.
            Err(ReadError::Encrypted { .. } | ReadError::NoVersion { .. }) => continue,
            // Deleted: it declares nothing.
            Err(ReadError::NoState(_)) => None,
            Err(error) => return Err(error.into()),
        };
        let empty = Projection {
            version: meta.version,
            cluster: Cluster::default(),
            machines: Vec::new(),
            node_groups: Vec::new(),
        };
        let (old, new) = (before.as_ref().unwrap_or(&empty), now.as_ref().unwrap_or(&empty));
        let change = diff(old, new)
            .into_iter()
            .find(|change| change.kind == ResourceKind::Machine && change.name == name);
        if let Some(change) = change {
            let mut item = super::change(&change.change);
            item["version"] = meta.version.get().into();
            item["writtenAt"] = meta.written_at.to_string().into();
            item["writtenBy"] = meta.written_by.clone().into();
            items.push(item);
        }
        before = now;
    }
    if items.is_empty() { Err(not_found(&MACHINE, &name)) } else { Ok(Json(json!({ "items": items }))) }
}
