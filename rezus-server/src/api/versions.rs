//! Versions of a tenant's state: lists, bytes, pins, comparison, rollback.

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse as _, Response};
use rezus_core::base::TenantName;
use rezus_core::declared::backend::Refusal;
use rezus_core::declared::diff::{self, ObjectChange, Side};
use rezus_core::declared::document::{self, Document, DocumentError};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::store::{Content, VersionMeta};
use serde::Deserialize;

use super::views::{DiffView, List, VersionView};
use super::{Body, Path, Query, counted, tenant, tenants, version};
use crate::auth::{self, Ticket, Who};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::peer::Peer;
use crate::state_backend::download;

/// Which versions are listed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Also snapshots of operations under way.
    #[serde(default)]
    intermediate: bool,
}

pub(super) async fn list(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(which): Query<Which>,
) -> Result<Json<List<VersionView>>, ApiError> {
    let record = tenants::record(&plane, &name).await?;
    let versions = plane.backend.store().versions(&record.name).await?;
    let shown = versions.iter().filter(|meta| which.intermediate || !meta.intermediate);
    Ok(Json(List { items: shown.map(VersionView::of).collect() }))
}

async fn find(plane: &Plane, tenant: &TenantName, number: u64) -> Result<VersionMeta, ApiError> {
    let version = version(number)?;
    let found = plane.backend.store().version(tenant, version).await?;
    Ok(found.ok_or_else(|| Refusal::NoSuchVersion { tenant: tenant.clone(), version })?)
}

pub(super) async fn show(
    State(plane): State<Plane>,
    Path((name, number)): Path<(String, u64)>,
) -> Result<Json<VersionView>, ApiError> {
    Ok(Json(VersionView::of(&find(&plane, &tenant(&name)?, number).await?)))
}

/// What can be set of a version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pin {
    pinned: bool,
}

pub(super) async fn pin(
    State(plane): State<Plane>,
    Path((name, number)): Path<(String, u64)>,
    Body(pin): Body<Pin>,
) -> Result<Json<VersionView>, ApiError> {
    let tenant = tenant(&name)?;
    let version = version(number)?;
    if !plane.backend.store().set_pinned(&tenant, version, pin.pinned).await? {
        return Err(Refusal::NoSuchVersion { tenant, version }.into());
    }
    show(State(plane), Path((name, number))).await
}

/// A version's bytes as they were posted: like the state endpoint, not masked.
pub(super) async fn body(
    State(plane): State<Plane>,
    Path((name, number)): Path<(String, u64)>,
) -> Result<Response, ApiError> {
    let tenant = tenant(&name)?;
    let meta = find(&plane, &tenant, number).await?;
    if meta.content == Content::Tombstone {
        return Err(Refusal::NoStateInVersion { version: meta.version }.into());
    }
    download(&plane, &tenant, &meta).await
}

/// Where to go back to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rollback {
    version: u64,
}

pub(super) async fn rollback(
    State(plane): State<Plane>,
    who: Who,
    ConnectInfo(peer): ConnectInfo<Peer>,
    ticket: Ticket,
    Path(name): Path<String>,
    Body(rollback): Body<Rollback>,
) -> Result<Json<VersionView>, ApiError> {
    let (tenant, version) = (tenant(&name)?, version(rollback.version)?);
    ticket.object(version.get().to_string());
    let caller = auth::caller(&who.0, &peer, &tenant, plane.limits.create_on_write);
    let written = plane.backend.rollback(&tenant, version, &caller).await;
    let written = counted(&plane, "rollback", written)?;
    plane.secrets.forget(&tenant);
    Box::pin(plane.runs.accepted(&tenant)).await;
    tracing::info!(tenant.name = %tenant, to = version.get(), state.version = written.version.get(), "state rolled back");
    Ok(Json(VersionView::of(&written)))
}

/// Which versions are compared, and as what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compared {
    from: u64,
    to: u64,
    #[serde(default, rename = "as")]
    terms: Terms,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Terms {
    /// Instance objects and their attributes.
    #[default]
    Objects,
    /// Machines, node groups and the cluster, and their fields.
    Resources,
}

pub(super) async fn diff(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(compared): Query<Compared>,
) -> Result<Response, ApiError> {
    let tenant = tenant(&name)?;
    let from = readable(&plane, &tenant, compared.from).await?;
    let to = readable(&plane, &tenant, compared.to).await?;
    if compared.terms == Terms::Resources {
        let old = plane.projector.projection(&tenant, from.version).await?;
        let new = plane.projector.projection(&tenant, to.version).await?;
        let items = crate::kube::changes(&tenant, &old, &new);
        let diff = serde_json::json!({ "from": compared.from, "to": compared.to, "items": items });
        return Ok(Json(diff).into_response());
    }
    // Two bodies, their rows and secrets, and what differs.
    let bytes = (from.size_bytes + to.size_bytes).saturating_mul(2);
    let (from, to) = (from.version, to.version);
    let compared = async {
        let (old, new) = (plane.backend.body(&tenant, from).await?, plane.backend.body(&tenant, to).await?);
        // Both were accepted, so both can be read.
        let mappings = plane.projector.mappings();
        plane.intake.on_a_core(move || compare(&old, &new, &mappings)).await?.map_err(ApiError::internal)
    };
    let changes = plane.intake.with_room(bytes, compared).await??;
    Ok(Json(DiffView::of(from, to, changes)).into_response())
}

fn compare(old: &[u8], new: &[u8], mappings: &Mappings) -> Result<Vec<ObjectChange>, DocumentError> {
    let rules = |resource_type: &str| mappings.secret_rules(resource_type);
    let rows = |body| {
        document::read_with(body, &rules).map(|document| match document {
            Document::Plain(state) => state.rows,
            Document::Encrypted(_) => Vec::new(),
        })
    };
    let (old_rows, new_rows) = (rows(old)?, rows(new)?);
    let side = |body, rows| Side { body, rows };
    diff::diff(side(old, &old_rows), side(new, &new_rows), &rules)
}

/// A version that holds a state in clear.
async fn readable(plane: &Plane, tenant: &TenantName, number: u64) -> Result<VersionMeta, ApiError> {
    let meta = find(plane, tenant, number).await?;
    match meta.content {
        Content::Plain { .. } => Ok(meta),
        Content::Encrypted => {
            Err(ReadError::Encrypted { tenant: tenant.clone(), version: meta.version }.into())
        }
        Content::Tombstone => Err(Refusal::NoStateInVersion { version: meta.version }.into()),
    }
}
