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
use rezus_core::runs::workspace::TenantSettings;
use serde::{Deserialize, Serialize};

use super::views::{List, LockView, RefusalView, TenantView};
use super::{Body, Path, Query, counted, tenant};
use crate::auth::{self, Ticket, Who};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::peer::Peer;

async fn view(
    plane: &Plane,
    record: &TenantRecord,
    settings: &TenantSettings,
) -> Result<TenantView, ApiError> {
    let refusals = plane.backend.store().refusals(&record.name).await?;
    let holder = plane.runs.holder(record).await?;
    let encryption = plane.backend.encryption().of(record);
    let view = TenantView::of(record, encryption, refusals.first(), &holder, plane.clock.now());
    Ok(view.with(settings, plane.workspaces.is_fixed(&record.name)))
}

/// Shows one tenant, or answers 404.
pub(super) async fn shown(plane: &Plane, name: &str) -> Result<Json<TenantView>, ApiError> {
    let record = record(plane, name).await?;
    let settings = plane.workspaces.of(&record.name).await?;
    Ok(Json(view(plane, &record, &settings).await?))
}

/// A tenant's record, or 404.
pub(super) async fn record(plane: &Plane, name: &str) -> Result<TenantRecord, ApiError> {
    let name = tenant(name)?;
    let found = plane.backend.store().tenant(&name).await?;
    Ok(found.ok_or(Refusal::UnknownTenant { tenant: name })?.0)
}

pub(super) async fn list(State(plane): State<Plane>, who: Who) -> Result<Json<List<TenantView>>, ApiError> {
    let mut items = Vec::new();
    let settings = plane.workspaces.all().await?;
    for record in plane.backend.store().tenants().await?.into_iter().filter(|record| who.sees(&record.name)) {
        let settings = settings.get(&record.name).cloned().unwrap_or_default();
        items.push(view(&plane, &record, &settings).await?);
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
    Ok((StatusCode::CREATED, shown(&plane, name.as_str()).await?))
}

pub(super) async fn show(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Json<TenantView>, ApiError> {
    shown(&plane, &name).await
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
    plane.runs.must_be_idle(&name).await?;
    plane.backend.delete_tenant(&name, removal.force).await?;
    plane.secrets.forget(&name);
    revoke_tokens(&plane, &name).await?;
    plane.runs.remove_tenant(&name).await?;
    plane.reader.plaintexts().forget(&name);
    plane.desk.forget(&name);
    plane.collector.look();
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
    let mut items = Vec::new();
    for record in plane.backend.store().tenants().await?.iter().filter(|record| who.sees(&record.name)) {
        items.extend(LockView::all(record, &plane.runs.holder(record).await?, plane.clock.now()));
    }
    Ok(Json(List { items }))
}

pub(super) async fn locks(
    State(plane): State<Plane>,
    Path(name): Path<String>,
) -> Result<Json<List<LockView>>, ApiError> {
    let record = record(&plane, &name).await?;
    let holder = plane.runs.holder(&record).await?;
    Ok(Json(List { items: LockView::all(&record, &holder, plane.clock.now()) }))
}

/// Which lock is to be broken.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WhichLock {
    /// Only this one; whichever is held if absent.
    id: Option<String>,
    /// Also while the run that holds it is under way.
    #[serde(default)]
    force: bool,
}

pub(super) async fn break_lock(
    State(plane): State<Plane>,
    who: Who,
    ConnectInfo(peer): ConnectInfo<Peer>,
    Path(name): Path<String>,
    Query(which): Query<WhichLock>,
) -> Result<Json<List<LockView>>, ApiError> {
    let caller = auth::caller(&who.0, &peer, &tenant(&name)?, plane.limits.create_on_write);
    let held = record(&plane, &name).await?;
    let holder = plane.runs.holder(&held).await?;
    let view = |lock| LockView::of(&name, lock, &holder, plane.clock.now());
    let broken = held.lock.iter().map(view).collect();
    let force = which.force;
    let which = match which.id {
        Some(id) => {
            Unlock::Break(LockId::parse(&id).map_err(|error| ApiError::bad_request(error.to_string()))?)
        }
        None => Unlock::Any,
    };
    let name = tenant(&name)?;
    if !force {
        plane.runs.may_release(&name, &caller.name).await?;
    }
    counted(&plane, "UNLOCK", plane.backend.unlock(&name, &which, &caller).await)?;
    tracing::warn!(tenant.name = %name, caller = caller.name, "lock broken by an operator");
    Ok(Json(List { items: broken }))
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
