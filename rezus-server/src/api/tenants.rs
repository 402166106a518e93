//! Tenants, their locks, their refusals, and the sweep of their versions.

use std::sync::Arc;

use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use rezus_core::access::{AccountStore, Role, TokenKind};
use rezus_core::base::TenantName;
use rezus_core::declared::LockId;
use rezus_core::declared::backend::{Refusal, Unlock};
use rezus_core::declared::store::TenantRecord;
use serde::{Deserialize, Serialize};

use super::views::{List, LockView, RefusalView, TenantView};
use super::{Body, Path, Query, counted, tenant};
use crate::auth::{self, Ticket, Who};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::peer::Peer;

async fn view(plane: &Plane, record: &TenantRecord) -> Result<TenantView, ApiError> {
    let refusals = plane.backend.store().refusals(&record.name).await?;
    Ok(TenantView::of(record, refusals.first(), plane.clock.now()))
}

/// A tenant's record, or 404.
pub(super) async fn record(plane: &Plane, name: &str) -> Result<TenantRecord, ApiError> {
    let name = tenant(name)?;
    let found = plane.backend.store().tenant(&name).await?;
    Ok(found.ok_or(Refusal::UnknownTenant { tenant: name })?.0)
}

pub(super) async fn list(State(plane): State<Plane>, who: Who) -> Result<Json<List<TenantView>>, ApiError> {
    let mut items = Vec::new();
    for record in plane.backend.store().tenants().await?.into_iter().filter(|record| who.sees(&record.name)) {
        items.push(view(&plane, &record).await?);
    }
    Ok(Json(List { items }))
}

/// A tenant to create.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTenant {
    name: String,
}

pub(super) async fn create(
    State(plane): State<Plane>,
    who: Who,
    ticket: Ticket,
    Body(new): Body<NewTenant>,
) -> Result<(StatusCode, Json<TenantView>), ApiError> {
    let name = tenant(&new.name)?;
    ticket.tenant(&name);
    who.must_be(Role::Admin, &name)?;
    plane.backend.create_tenant(&name).await?;
    let record = record(&plane, name.as_str()).await?;
    Ok((StatusCode::CREATED, Json(view(&plane, &record).await?)))
}

pub(super) async fn show(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Json<TenantView>, ApiError> {
    let record = record(&plane, &name).await?;
    Ok(Json(view(&plane, &record).await?))
}

/// What can be set of a tenant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TenantSettings {
    require_locks: bool,
}

pub(super) async fn configure(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Body(settings): Body<TenantSettings>,
) -> Result<Json<TenantView>, ApiError> {
    plane.backend.require_locks(&tenant(&name)?, settings.require_locks).await?;
    show(State(plane), Path(name)).await
}

/// How a tenant is removed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Removal {
    /// Also while its state declares something.
    #[serde(default)]
    force: bool,
}

pub(super) async fn remove(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(removal): Query<Removal>,
) -> Result<StatusCode, ApiError> {
    let name = tenant(&name)?;
    plane.backend.delete_tenant(&name, removal.force).await?;
    revoke_tokens(&plane, &name).await?;
    tracing::info!(tenant.name = %name, forced = removal.force, "tenant deleted with its history");
    Ok(StatusCode::NO_CONTENT)
}

/// Revokes the tokens for a removed tenant's state: who comes under its name is not the one they were made for.
async fn revoke_tokens(plane: &Plane, tenant: &TenantName) -> Result<(), ApiError> {
    let (kind, now) = (TokenKind::Backend(tenant.clone()), plane.clock.now());
    let revoke = move |store: Arc<dyn AccountStore>| async move {
        for token in store.accounts().await?.tokens.iter().filter(|token| token.kind == kind) {
            store.revoke_token(&token.id, now).await?;
        }
        Ok(())
    };
    plane.auth.book().change(revoke).await
}

pub(super) async fn all_locks(
    State(plane): State<Plane>,
    who: Who,
) -> Result<Json<List<LockView>>, ApiError> {
    let now = plane.clock.now();
    let tenants = plane.backend.store().tenants().await?;
    let lock = |record: &TenantRecord| {
        record.lock.as_ref().map(|lock| LockView::of(record.name.as_str(), lock, now))
    };
    let seen = tenants.iter().filter(|record| who.sees(&record.name));
    Ok(Json(List { items: seen.filter_map(lock).collect() }))
}

pub(super) async fn locks(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Json<List<LockView>>, ApiError> {
    let record = record(&plane, &name).await?;
    let lock = record.lock.as_ref().map(|lock| LockView::of(record.name.as_str(), lock, plane.clock.now()));
    Ok(Json(List { items: lock.into_iter().collect() }))
}

/// Which lock is to be broken.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WhichLock {
    /// Only this one; whichever is held if absent.
    id: Option<String>,
}

pub(super) async fn break_lock(
    State(plane): State<Plane>,
    who: Who,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(name): Path<String>,
    Query(which): Query<WhichLock>,
) -> Result<Json<List<LockView>>, ApiError> {
    let caller = auth::caller(&who.0, &peer, &tenant(&name)?, plane.limits.create_on_write);
    let broken = locks(State(plane.clone()), Path(name.clone())).await?;
    let which = match which.id {
        Some(id) => {
            Unlock::Break(LockId::parse(&id).map_err(|error| ApiError::bad_request(error.to_string()))?)
        }
        None => Unlock::Any,
    };
    let name = tenant(&name)?;
    counted(&plane, "UNLOCK", plane.backend.unlock(&name, &which, &caller).await)?;
    tracing::warn!(tenant.name = %name, caller = caller.name, "lock broken by an operator");
    Ok(broken)
}

pub(super) async fn refusals(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Json<List<RefusalView>>, ApiError> {
    // Also of a name that is no tenant yet: its first write may be what was refused.
    let refusals = plane.backend.store().refusals(&tenant(&name)?).await?;
    Ok(Json(List { items: refusals.iter().map(RefusalView::of).collect() }))
}

/// What a sweep is to do.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Prune {
    dry_run: bool,
}

/// What a sweep did, or would do.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pruned {
    dry_run: bool,
    items: Vec<PrunedTenant>,
    /// Length of the database, in bytes.
    file_bytes: u64,
    /// What of it holds nothing, in bytes.
    free_bytes: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PrunedTenant {
    tenant: String,
    versions: Vec<u64>,
    size_bytes: u64,
}

pub(super) async fn prune(
    State(plane): State<Plane>,
    Body(prune): Body<Prune>,
) -> Result<Json<Pruned>, ApiError> {
    let plan = plane.sweep.plan().await?;
    if !prune.dry_run {
        plane.sweep.carry_out(&plan).await?;
        plane.sweep.tidy().await?;
    }
    let space = plane.backend.store().space().await?;
    let items = plan.iter().map(|expired| PrunedTenant {
        tenant: expired.tenant.to_string(),
        versions: expired.versions.iter().map(|meta| meta.version.get()).collect(),
        size_bytes: expired.versions.iter().map(|meta| meta.size_bytes).sum(),
    });
    Ok(Json(Pruned {
        dry_run: prune.dry_run,
        items: items.collect(),
        file_bytes: space.total_bytes,
        free_bytes: space.free_bytes,
    }))
}
