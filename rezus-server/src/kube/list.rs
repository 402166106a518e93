//! Lists and single objects.

use std::sync::Arc;

use axum::http::header::WARNING;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use rezus_core::base::TenantName;
use rezus_core::declared::VersionNumber;
use serde_json::json;

use super::accept::{Form, negotiate};
use super::catalogue::{Trouble, drafts};
use super::form::{ListMetadata, Usage, Writer};
use super::hub::{Hub, Snapshot};
use super::item::{Draft, Item, Packer};
use super::kinds::{KindInfo, MACHINE, NODE_GROUP, PROVIDER};
use super::query::{Ask, At, Cursor, Options, RowObject};
use super::sight::Sight;
use super::{compressed, watch};
use crate::api;
use crate::compose::Plane;
use crate::error::ApiError;
use crate::pulls::Standing;

/// How many warnings an answer carries.
const WARNINGS: usize = 5;

/// Which objects are asked for, by whom.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Their kind.
    pub(super) kind: &'static KindInfo,
    /// The namespace that was named.
    pub(super) namespace: Option<String>,
    /// Which tenants the caller sees.
    pub(super) sight: Sight,
}

impl Place {
    /// Tells whether an object is of this place.
    pub(super) fn holds(&self, item: &Item) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| *item.namespace() == *namespace)
            && self.sight.sees(item)
    }
}

/// Answers a request for several objects: a list or a watch.
pub(super) async fn several(
    plane: &Plane,
    place: Place,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let options = Options::parse(query, place.kind)?;
    let offered = match options.ask {
        Ask::List { .. } => [Form::Json, Form::Table, Form::PartialObjectMetadataList],
        Ask::Watch { .. } => [Form::Json, Form::Table, Form::PartialObjectMetadata],
    };
    let form = negotiate(headers, &offered)?;
    if let Some(version) = options.version {
        return then(plane, &place, &options, version, form, headers).await;
    }
    let troubles = bring_up_to_date(plane, &place).await?;
    let hub = plane.catalogue.hub().await?;
    let writer = writer(hub, &place, &options, form);
    let mut response = match options.ask {
        Ask::Watch { from, bookmarks, timeout } => {
            watch::answer(plane, place, options, watch::Terms { from, bookmarks, timeout }, writer).await?
        }
        Ask::List { limit, ref at } => {
            let list = find(hub, &place, at)?;
            let page = page(hub, &place, &options, &list, limit, at);
            compressed::list(writer.list(page.items, page.metadata, plane.clock.now()), headers).await
        }
    };
    warn(response.headers_mut(), &troubles);
    Ok(response)
}

/// Answers a request for one object.
pub(super) async fn one(
    plane: &Plane,
    place: Place,
    name: &str,
    query: &str,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    // A watch of one object is asked for by a field selector; here the flag means nothing.
    let options = Options::parse_for_one(query, place.kind)?;
    let form = negotiate(headers, &[Form::Json, Form::Table, Form::PartialObjectMetadata])?;
    let namespace = place.namespace.clone().unwrap_or_default();
    if let Some(version) = options.version {
        let items = items_then(plane, &place, version).await?;
        let item = items.iter().find(|item| *item.name() == *name);
        let item = item.ok_or_else(|| not_found(place.kind, name))?;
        let writer = Writer::new(place.kind, form, options.rows, Usage::new());
        return Ok(compressed::json(writer.one(item, plane.clock.now(), true), headers).await);
    }
    bring_up_to_date(plane, &place).await?;
    let hub = plane.catalogue.hub().await?;
    let Snapshot { items, .. } = hub.snapshot(place.kind);
    let found = items.binary_search_by(|item| item.key().cmp(&(&*namespace, name)));
    let found = found.ok().and_then(|at| items.get(at)).filter(|item| place.holds(item));
    let item = found.ok_or_else(|| not_found(place.kind, name))?;
    let writer = writer(hub, &place, &options, form);
    Ok(compressed::json(writer.one(item, plane.clock.now(), true), headers).await)
}

/// Answers with an object that is not there, and would be.
pub(super) async fn not_yet(plane: &Plane, draft: Draft, headers: &HeaderMap) -> Result<Response, ApiError> {
    let form = negotiate(headers, &[Form::Json, Form::Table, Form::PartialObjectMetadata])?;
    let item = Packer::default().item(draft, plane.catalogue.hub().await?.newest(), None);
    let writer = Writer::new(item.kind(), form, RowObject::default(), Usage::new());
    Ok(compressed::json(writer.one(&item, plane.clock.now(), true), headers).await)
}

/// What is asked for is not there.
pub(super) fn not_found(kind: &KindInfo, name: &str) -> ApiError {
    let name: String = name.chars().take(253).collect();
    let mut details = json!({ "name": name, "kind": kind.plural });
    if !kind.is_core {
        details["group"] = kind.group().into();
    }
    ApiError::not_found(format!("{} \"{name}\" not found", kind.qualified())).with_details(details)
}

/// Sees to it that what is shown is no older than what was acknowledged, and tells of which tenants it is not known.
async fn bring_up_to_date(plane: &Plane, place: &Place) -> Result<Vec<(TenantName, Trouble)>, ApiError> {
    let Some(namespace) = &place.namespace else {
        // Of others not even that they cannot be read.
        let troubles = plane.catalogue.all(|tenant| place.sight.sees_tenant(tenant.as_str())).await?;
        return Ok(if is_declared(place.kind) { troubles } else { Vec::new() });
    };
    // What is no name of a tenant is a namespace without anything in it.
    let Ok(tenant) = namespace.parse::<TenantName>() else {
        return Ok(Vec::new());
    };
    if place.kind.plural == "stateversions" {
        plane.catalogue.touch(&tenant);
    }
    let trouble = plane.catalogue.tenant(&tenant).await?;
    if trouble == Some(Trouble::Damaged) && is_declared(place.kind) {
        // As of now: the error says what to do.
        plane.projector.current(&tenant).await?;
    }
    Ok(trouble.map(|trouble| (tenant, trouble)).into_iter().collect())
}

/// Tells whether objects of a kind are what states declare.
fn is_declared(kind: &KindInfo) -> bool {
    kind.is(&MACHINE) || kind.is(&NODE_GROUP)
}

fn writer(hub: &Hub, place: &Place, options: &Options, form: Form) -> Writer {
    let usage = if place.kind.is(&PROVIDER) { usage(hub, &place.sight) } else { Usage::new() };
    Writer::new(place.kind, form, options.rows, usage)
}

/// Who uses which mapping, as far as the caller sees.
fn usage(hub: &Hub, sight: &Sight) -> Usage {
    let (mut usage, mut last) = (Usage::new(), std::collections::BTreeMap::<String, String>::new());
    for machine in hub.snapshot(&MACHINE).items.iter().filter(|machine| sight.sees(machine)) {
        let Some(provider) = machine.field("spec.provider") else {
            continue;
        };
        let (tenants, machines) = usage.entry(provider.to_owned()).or_default();
        *machines += 1;
        // Machines are sorted by tenant.
        if last.insert(provider.to_owned(), machine.namespace().to_owned())
            != Some(machine.namespace().to_owned())
        {
            *tenants += 1;
        }
    }
    usage
}

/// Finds the list that is asked for.
fn find(hub: &Hub, place: &Place, at: &At) -> Result<Snapshot, ApiError> {
    match at {
        At::Newest => Ok(hub.snapshot(place.kind)),
        At::NotBefore(version) => {
            let list = hub.snapshot(place.kind);
            if *version > list.version { Err(too_large(*version, list.version)) } else { Ok(list) }
        }
        At::Exact(version) => {
            let newest = hub.newest();
            if *version > newest {
                return Err(too_large(*version, newest));
            }
            hub.snapshot_at(place.kind, *version).ok_or_else(|| {
                ApiError::expired(format!("The resourceVersion for the provided list is too old: {version}."))
            })
        }
        At::Rest(cursor) => {
            if cursor.kind != place.kind.plural || cursor.namespace != place.namespace {
                return Err(ApiError::bad_request("continue: the token is of another list"));
            }
            hub.snapshot_at(place.kind, cursor.version).ok_or_else(|| {
                ApiError::expired(
                    "The provided continue parameter is too old to display a consistent list result. Begin the list anew without it.",
                )
            })
        }
    }
}

fn too_large(wanted: u64, newest: u64) -> ApiError {
    let message = format!("Too large resource version: {wanted}, current: {newest}");
    ApiError::timeout(message).with_details(json!({
        "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
        "retryAfterSeconds": 1,
    }))
}

/// A page of a list.
struct Page {
    items: Vec<Arc<Item>>,
    metadata: ListMetadata,
}

fn page(hub: &Hub, place: &Place, options: &Options, list: &Snapshot, limit: Option<usize>, at: &At) -> Page {
    let items: &[Arc<Item>] = &list.items;
    let begin = match at {
        At::Rest(Cursor { behind: (namespace, name), .. }) => {
            items.partition_point(|item| item.key() <= (namespace.as_str(), name.as_str()))
        }
        _ => match place.namespace.as_deref() {
            Some(namespace) => items.partition_point(|item| *item.namespace() < *namespace),
            None => 0,
        },
    };
    let end = match place.namespace.as_deref() {
        Some(namespace) => items.partition_point(|item| *item.namespace() <= *namespace),
        None => items.len(),
    };
    let candidates = items.get(begin..end).unwrap_or_default();
    let is_selected = |item: &Item| place.holds(item) && selects(options, item);
    let mut found = candidates.iter().filter(|item| is_selected(item));
    let mut metadata = ListMetadata { version: list.version, ..ListMetadata::default() };
    let page: Vec<Arc<Item>> = match limit {
        None => found.cloned().collect(),
        Some(limit) => {
            let page: Vec<Arc<Item>> = found.by_ref().take(limit).cloned().collect();
            if found.next().is_some() {
                if let Some(last) = page.last() {
                    let namespace = place.namespace.as_deref();
                    let cursor = Cursor::new(list.version, place.kind.plural, namespace, last.key());
                    metadata.rest = Some(cursor.token());
                    hub.keep(place.kind, list);
                }
                // With a selector, only looking at all of them would tell.
                metadata.remaining = options.selects_all().then(|| found.count() + 1);
            }
            page
        }
    };
    Page { items: page, metadata }
}

/// Tells whether an object is selected.
pub(super) fn selects(options: &Options, item: &Item) -> bool {
    (options.fields.is_empty() || options.fields.matches(|field| item.field(field)))
        && (options.labels.is_empty() || options.labels.matches(|key| item.label(key)))
}

/// Answers as of a version of a tenant's state.
async fn then(
    plane: &Plane,
    place: &Place,
    options: &Options,
    version: u64,
    form: Form,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let items = items_then(plane, place, version).await?;
    let newest = items.iter().map(Item::version).max().unwrap_or(0);
    let shown = items.into_iter().filter(|item| selects(options, item)).map(Arc::new).collect();
    let metadata = ListMetadata { version: newest, ..ListMetadata::default() };
    let writer = Writer::new(place.kind, form, options.rows, Usage::new());
    Ok(compressed::list(writer.list(shown, metadata, plane.clock.now()), headers).await)
}

/// The objects that a version of a tenant's state declared, as the mappings in force read it.
async fn items_then(plane: &Plane, place: &Place, version: u64) -> Result<Vec<Item>, ApiError> {
    let Some(namespace) = place.namespace.as_ref().filter(|_| is_declared(place.kind)) else {
        return Err(ApiError::bad_request(
            "version: it is of one tenant's machines or node groups: ask under /namespaces/{tenant}/",
        ));
    };
    let number = VersionNumber::new(version)
        .ok_or_else(|| ApiError::bad_request("a version's number is 1 or more"))?;
    let tenant = api::tenant(namespace)?;
    let declared = plane.past.as_of(&tenant, number).await?;
    let at = |millis: i64| u64::try_from(millis).unwrap_or(0).saturating_mul(1_000);
    let written = at(declared.version.written_at.as_millis());
    let drafts = drafts(namespace, &declared, place.kind).into_iter();
    let mut packer = Packer::default();
    let mut items: Vec<Item> = drafts.map(|draft| packer.item(draft, written, None)).collect();
    items.sort_by(|a, b| a.key().cmp(&b.key()));
    Ok(items)
}

/// Says of which tenants objects are missing (RFC 7234, section 5.5); kubectl prints it.
fn warn(headers: &mut HeaderMap, troubles: &[(TenantName, Trouble)]) {
    let mut texts: Vec<String> = troubles
        .iter()
        .take(WARNINGS)
        .map(|(tenant, trouble)| match trouble {
            Trouble::Encrypted(standing) => {
                let why = match standing {
                    Standing::NoKey => "and its key is not here",
                    Standing::Waiting => "and is being decrypted",
                    Standing::Failed(_) => "and cannot be decrypted",
                };
                format!("the state of tenant {tenant} is encrypted {why}: what it declares is not known, objects are those last known")
            }
            Trouble::Damaged => format!("the state of tenant {tenant} cannot be read: it is damaged"),
        })
        .collect();
    if let Some(more) = troubles.len().checked_sub(WARNINGS).filter(|more| *more > 0) {
        texts.push(format!("the states of {more} further tenants cannot be read"));
    }
    for text in texts {
        if let Ok(warning) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
            headers.append(WARNING, warning);
        }
    }
}
