//! `/apis/rezuscloud.io/v1alpha1`: list and get, of now and of then. Everything else is refused, with where the change
//! belongs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::WARNING;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use rezus_core::base::TenantName;
use rezus_core::declared::VersionNumber;
use rezus_core::declared::projection::{ResourceKind, diff};
use rezus_core::declared::projector::Declared;
use rezus_core::declared::reader::ReadError;
use rezus_core::declared::resource::{Cluster, Projection};
use rezus_core::declared::store::{Content, StoreError, TenantRecord};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{API_VERSION, DeclaredIn, Known, Object};
use crate::api::{self, Path, Query};
use crate::compose::Plane;
use crate::error::ApiError;

const TENANTS: &str = "/apis/rezuscloud.io/v1alpha1/tenants";
const TENANT: &str = "/apis/rezuscloud.io/v1alpha1/tenants/{tenant}";
const PROVIDERS: &str = "/apis/rezuscloud.io/v1alpha1/providers";
const PROVIDER: &str = "/apis/rezuscloud.io/v1alpha1/providers/{name}";
const ALL_MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/machines";
const ALL_NODE_GROUPS: &str = "/apis/rezuscloud.io/v1alpha1/nodegroups";
const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines";
const MACHINE: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines/{name}";
const PROVENANCE: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines/{name}/provenance";
const HISTORY: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines/{name}/history";
const NODE_GROUPS: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/nodegroups";
const NODE_GROUP: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/nodegroups/{name}";

/// Every path, for whoever must know all of them. Each takes GET alone.
pub const PATHS: [&str; 12] = [
    TENANTS,
    TENANT,
    PROVIDERS,
    PROVIDER,
    ALL_MACHINES,
    ALL_NODE_GROUPS,
    MACHINES,
    MACHINE,
    PROVENANCE,
    HISTORY,
    NODE_GROUPS,
    NODE_GROUP,
];

/// Returns the routes.
pub fn routes(plane: Plane) -> Router {
    let handlers: [MethodRouter<Plane>; 12] = [
        get(tenants),
        get(tenant),
        get(providers),
        get(provider),
        get(|plane: State<Plane>, as_of: Query<AsOf>| all(plane, as_of, ResourceKind::Machine)),
        get(|plane: State<Plane>, as_of: Query<AsOf>| all(plane, as_of, ResourceKind::NodeGroup)),
        get(|plane: State<Plane>, path: Path<String>, as_of: Query<AsOf>| {
            list(plane, path, as_of, ResourceKind::Machine)
        }),
        get(|plane: State<Plane>, path: Path<(String, String)>, as_of: Query<AsOf>| {
            one(plane, path, as_of, ResourceKind::Machine)
        }),
        get(provenance),
        get(history),
        get(|plane: State<Plane>, path: Path<String>, as_of: Query<AsOf>| {
            list(plane, path, as_of, ResourceKind::NodeGroup)
        }),
        get(|plane: State<Plane>, path: Path<(String, String)>, as_of: Query<AsOf>| {
            one(plane, path, as_of, ResourceKind::NodeGroup)
        }),
    ];
    let mut router = Router::new();
    for (path, handler) in PATHS.into_iter().zip(handlers) {
        router = router.route(path, handler.fallback(refuse_write));
    }
    router.with_state(plane)
}

/// Before body or object are looked at: a state is the one place where anything is declared.
async fn refuse_write(method: Method) -> ApiError {
    ApiError::method_not_allowed(format!(
        "{method} is refused: this API shows what the state declares. Change the tenant's configuration and apply it with tofu or terraform"
    ))
}

/// As of which version something is shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AsOf {
    /// A version's number; the newest if absent.
    version: Option<u64>,
}

/// A list of one kind, or of several.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    api_version: &'static str,
    kind: &'static str,
    metadata: ListMetadata,
    items: Vec<Object>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
}

fn list_of(kind: &'static str, newest: i64, items: Vec<Object>) -> Json<List> {
    let metadata = ListMetadata { resource_version: (newest * 1_000).to_string() };
    Json(List { api_version: API_VERSION, kind, metadata, items })
}

async fn record(plane: &Plane, name: &str) -> Result<(TenantName, TenantRecord), ApiError> {
    let name = api::tenant(name)?;
    let found = plane.backend.store().tenant(&name).await?;
    let (record, _) =
        found.ok_or_else(|| ApiError::not_found(format!("tenants.rezuscloud.io \"{name}\" not found")))?;
    Ok((name, record))
}

/// What a tenant's state declares; nothing where there is none, or it is encrypted.
async fn current(plane: &Plane, tenant: &TenantName) -> Result<Option<Arc<Declared>>, ReadError> {
    match plane.projector.current(tenant).await {
        Ok(declared) => Ok(Some(declared)),
        Err(ReadError::NoState(_) | ReadError::Encrypted { .. } | ReadError::NoTenant(_)) => Ok(None),
        Err(error) => {
            if is_damage(&error) {
                tracing::error!(%tenant, "the state is damaged: roll back to a version that is not, or restore a backup");
            }
            Err(error)
        }
    }
}

/// What stays as it is however often one asks.
fn is_damage(error: &ReadError) -> bool {
    matches!(error, ReadError::Store(StoreError::Corrupt { .. }))
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
            Ok(Some(Arc::new(plane.projector.as_of(tenant, version).await?)))
        }
        None => Ok(current(plane, tenant).await?),
    }
}

/// Refuses a version where what is shown is of no one version.
fn only_now(as_of: &AsOf) -> Result<(), ApiError> {
    match as_of.version {
        Some(_) => Err(ApiError::bad_request(
            "?version= is of one tenant's machines or node groups: ask under /namespaces/{tenant}/",
        )),
        None => Ok(()),
    }
}

async fn shown_tenant(plane: &Plane, record: &TenantRecord) -> Result<Object, ApiError> {
    let declared = match current(plane, &record.name).await {
        Err(error) if is_damage(&error) => {
            return Ok(super::tenant(record, Known::Damaged));
        }
        declared => declared?,
    };
    let is_encrypted = record.head.as_ref().is_some_and(|head| head.content == Content::Encrypted);
    let known = match &declared {
        Some(declared) => Known::All(&declared.projection),
        None if is_encrypted => Known::Encrypted,
        None => Known::Nothing,
    };
    let lifetime =
        declared.as_ref().and_then(|declared| declared.objects.get(&(ResourceKind::Cluster, String::new())));
    Ok(super::tenant(record, known).over_time(lifetime))
}

async fn tenants(State(plane): State<Plane>, Query(as_of): Query<AsOf>) -> Result<Json<List>, ApiError> {
    only_now(&as_of)?;
    let records = plane.backend.store().tenants().await?;
    let newest = records.iter().filter_map(|record| Some(record.head.as_ref()?.written_at.as_millis())).max();
    let mut items = Vec::new();
    for record in &records {
        items.push(shown_tenant(&plane, record).await?);
    }
    Ok(list_of("TenantList", newest.unwrap_or(0), items))
}

async fn tenant(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(as_of): Query<AsOf>,
) -> Result<Json<Object>, ApiError> {
    only_now(&as_of)?;
    let (_, record) = record(&plane, &name).await?;
    Ok(Json(shown_tenant(&plane, &record).await?))
}

async fn providers(State(plane): State<Plane>, Query(as_of): Query<AsOf>) -> Result<Json<List>, ApiError> {
    only_now(&as_of)?;
    let mappings = plane.projector.mappings();
    Ok(list_of("ProviderList", 0, mappings.providers().iter().map(super::provider).collect()))
}

async fn provider(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(as_of): Query<AsOf>,
) -> Result<Json<Object>, ApiError> {
    only_now(&as_of)?;
    let mappings = plane.projector.mappings();
    let found = mappings.providers().iter().find(|provider| provider.name == name);
    let not_found = || ApiError::not_found("providers.rezuscloud.io: there is none of this name");
    Ok(Json(super::provider(found.ok_or_else(not_found)?)))
}

/// The objects of one kind, sorted by name; only the one of a name, if one is given.
fn objects(declared: &Declared, tenant: &TenantName, kind: ResourceKind, only: Option<&str>) -> Vec<Object> {
    let is_shown = |name: &str| only.is_none_or(|only| only == name);
    let place = DeclaredIn { tenant: tenant.as_str(), version: &declared.version };
    let lifetime = |name: &str| declared.objects.get(&(kind, name.to_owned()));
    match kind {
        ResourceKind::Cluster => Vec::new(),
        ResourceKind::NodeGroup => declared
            .projection
            .node_groups
            .iter()
            .filter(|group| is_shown(&group.object_name))
            .map(|group| super::node_group(group).declared_in(place).over_time(lifetime(&group.object_name)))
            .collect(),
        ResourceKind::Machine => declared
            .projection
            .machines
            .iter()
            .filter(|machine| is_shown(&machine.object_name))
            .map(|machine| {
                let mut object =
                    super::machine(machine).declared_in(place).over_time(lifetime(&machine.object_name));
                super::machine_conditions(&mut object, machine, place);
                object
            })
            .collect(),
    }
}

fn list_kind(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::Cluster => "TenantList",
        ResourceKind::NodeGroup => "NodeGroupList",
        ResourceKind::Machine => "MachineList",
    }
}

/// All of a kind. What is damaged in one tenant does not hide the others: the answer warns of it, its Tenant says so.
async fn all(
    State(plane): State<Plane>,
    Query(as_of): Query<AsOf>,
    kind: ResourceKind,
) -> Result<(HeaderMap, Json<List>), ApiError> {
    only_now(&as_of)?;
    let (mut items, mut newest, mut warnings) = (Vec::new(), 0, HeaderMap::new());
    for record in plane.backend.store().tenants().await? {
        match current(&plane, &record.name).await {
            Err(error) if is_damage(&error) => {
                // RFC 7234, section 5.5; kubectl prints it.
                let warning =
                    format!("299 - \"the state of tenant {} cannot be read: it is damaged\"", record.name);
                if let Ok(warning) = HeaderValue::from_str(&warning) {
                    warnings.append(WARNING, warning);
                }
            }
            declared => {
                if let Some(declared) = declared? {
                    newest = newest.max(declared.version.written_at.as_millis());
                    items.extend(objects(&declared, &record.name, kind, None));
                }
            }
        }
    }
    Ok((warnings, list_of(list_kind(kind), newest, items)))
}

async fn list(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    Query(as_of): Query<AsOf>,
    kind: ResourceKind,
) -> Result<Json<List>, ApiError> {
    let (tenant, _) = record(&plane, &name).await?;
    let declared = declared(&plane, &tenant, &as_of).await?;
    let items = declared.as_ref().map(|declared| objects(declared, &tenant, kind, None)).unwrap_or_default();
    let newest = declared.map_or(0, |declared| declared.version.written_at.as_millis());
    Ok(list_of(list_kind(kind), newest, items))
}

fn not_found(kind: ResourceKind, name: &str) -> ApiError {
    let plural = match kind {
        ResourceKind::Cluster => "tenants",
        ResourceKind::NodeGroup => "nodegroups",
        ResourceKind::Machine => "machines",
    };
    let name: String = name.chars().take(253).collect();
    ApiError::not_found(format!("{plural}.rezuscloud.io \"{name}\" not found"))
}

async fn one(
    State(plane): State<Plane>,
    Path((tenant, name)): Path<(String, String)>,
    Query(as_of): Query<AsOf>,
    kind: ResourceKind,
) -> Result<Json<Object>, ApiError> {
    let (tenant, _) = record(&plane, &tenant).await?;
    let declared = declared(&plane, &tenant, &as_of).await?;
    let found = declared.and_then(|declared| objects(&declared, &tenant, kind, Some(&name)).pop());
    Ok(Json(found.ok_or_else(|| not_found(kind, &name))?))
}

async fn provenance(
    State(plane): State<Plane>,
    Path((tenant, name)): Path<(String, String)>,
    Query(as_of): Query<AsOf>,
) -> Result<Json<Value>, ApiError> {
    let (tenant, _) = record(&plane, &tenant).await?;
    let missing = || not_found(ResourceKind::Machine, &name);
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
async fn history(
    State(plane): State<Plane>,
    Path((tenant, name)): Path<(String, String)>,
    Query(as_of): Query<AsOf>,
) -> Result<Json<Value>, ApiError> {
    only_now(&as_of)?;
    let (tenant, _) = record(&plane, &tenant).await?;
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
    if items.is_empty() {
        Err(not_found(ResourceKind::Machine, &name))
    } else {
        Ok(Json(json!({ "items": items })))
    }
}
