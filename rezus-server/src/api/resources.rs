//! Instance objects of a tenant's current state, with what is secret masked.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use rezus_core::declared::{ResourceAddress, Serial, masked};
use serde::{Deserialize, Serialize};

use super::views::{ObjectView, ResourceView, ResourcesView};
use super::{Path, Query, tenant};
use crate::compose::Plane;
use crate::error::ApiError;

/// Which object is meant; all of them without an address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// As OpenTofu spells it.
    address: Option<String>,
    /// The key of an old generation.
    deposed: Option<String>,
}

pub(super) async fn list_or_show(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(which): Query<Which>,
) -> Result<Response, ApiError> {
    let tenant = tenant(&name)?;
    let Some(address) = which.address else {
        let listing = plane.reader.list(&tenant).await?;
        return Ok(Json(ResourcesView {
            version: listing.version.version.get(),
            serial: listing.version.serial.map(Serial::get),
            items: listing.rows.iter().map(ResourceView::of).collect(),
        })
        .into_response());
    };
    let address =
        ResourceAddress::parse(&address).map_err(|error| ApiError::bad_request(error.to_string()))?;
    let object = plane.reader.object(&tenant, &address, which.deposed.as_deref()).await?;
    let shown = masked::show(&object.bytes, &object.row.masked).map_err(ApiError::internal)?;
    Ok(Json(ObjectView {
        version: object.version.get(),
        resource: ResourceView::of(&object.row),
        object: serde_json::value::RawValue::from_string(shown).map_err(ApiError::internal)?,
    })
    .into_response())
}

/// What a rebuild found.
#[derive(Debug, Serialize)]
pub(super) struct Rebuilt {
    rows: u64,
}

pub(super) async fn rebuild_index(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Json<Rebuilt>, ApiError> {
    let tenant = tenant(&name)?;
    let rows = plane.reader.rebuild(&tenant).await?;
    tracing::info!(tenant.name = %tenant, rows, "index rebuilt");
    Ok(Json(Rebuilt { rows }))
}
