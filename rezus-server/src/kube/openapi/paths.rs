//! Paths and operations: those that are served, and the one that is described so that clients can be refused it.

use serde_json::{Map, Value, json};

use super::core_v1;
use super::dialect::{component, reference};
use super::meta::{STATUS, group_version_kind};
use crate::kube::kinds::{KINDS, KindInfo, Subresource};

/// The parameters of lists and watches: name, type, what for.
const PARAMETERS: [(&str, &str, &str); 10] = [
    (
        "labelSelector",
        "string",
        "Only objects whose labels are so: k=v, k!=v, k in (a,b), k notin (a,b), k, !k; comma means and.",
    ),
    (
        "fieldSelector",
        "string",
        "Only objects whose fields are so: metadata.name, metadata.namespace and few others; =, !=; comma means and.",
    ),
    ("limit", "integer", "How many objects a page has at most."),
    ("continue", "string", "The next page, as metadata.continue of the page before names it."),
    ("resourceVersion", "string", "At least as new as this, or to watch from here."),
    ("resourceVersionMatch", "string", "How resourceVersion is meant: NotOlderThan or Exact."),
    ("watch", "boolean", "Not a list but what changes from now on, one event a line."),
    ("allowWatchBookmarks", "boolean", "Of a watch: say from time to time how far it is."),
    ("sendInitialEvents", "boolean", "Of a watch: begin with what there is, and say when that is over."),
    ("timeoutSeconds", "integer", "How long a watch lasts at most, in seconds."),
];

/// Returns the parameters that operations refer to, by name.
pub(super) fn parameters() -> Map<String, Value> {
    let parameters = PARAMETERS
        .iter()
        .map(|(name, kind, description)| ((*name).to_owned(), parameter(name, "query", kind, description)));
    parameters.collect()
}

fn parameter(name: &str, place: &str, kind: &str, description: &str) -> Value {
    let mut parameter =
        json!({ "name": name, "in": place, "description": description, "schema": { "type": kind } });
    if place == "path" {
        parameter["required"] = true.into();
    }
    parameter
}

/// Returns the paths of the core's `v1`, or of `rezuscloud.io/v1alpha1`.
pub(super) fn paths(of_core: bool) -> Map<String, Value> {
    let mut paths = Map::new();
    for info in KINDS.into_iter().filter(|info| info.is_core == of_core) {
        for (path, item) in kind_paths(info) {
            paths.insert(path, item);
        }
    }
    paths
}

fn kind_paths(info: &KindInfo) -> Vec<(String, Value)> {
    let base = if info.is_core { "/api/v1".to_owned() } else { format!("/apis/{}", info.api_version()) };
    let all = format!("{base}/{}", info.plural);
    let of_tenant = if info.namespaced {
        format!("{base}/namespaces/{{namespace}}/{}", info.plural)
    } else {
        all.clone()
    };
    let one = format!("{of_tenant}/{{name}}");
    let mut all_of_tenant = json!({ "get": list(info, info.namespaced), "parameters": place(info, false) });
    if info.is_made() {
        all_of_tenant["post"] = create(info);
    }
    let mut paths = vec![(of_tenant, all_of_tenant)];
    if info.namespaced {
        paths.push((all, json!({ "get": list(info, false) })));
    }
    let parameters = place(info, true);
    paths
        .push((one.clone(), json!({ "get": get(info, ""), "patch": patch(info), "parameters": parameters })));
    if info.is_made() {
        for subresource in info.subresources.iter().filter(|subresource| subresource.name != "status") {
            let operation = if subresource.verb == "create" { act(info, subresource) } else { log(info) };
            let method = if subresource.verb == "create" { "post" } else { "get" };
            let item = json!({ method: operation, "parameters": parameters });
            paths.push((format!("{one}/{}", subresource.name), item));
        }
    }
    if info.subresources.iter().any(|subresource| subresource.name == "metrics") {
        let item = json!({ "get": metrics(info), "parameters": parameters });
        paths.push((format!("{one}/metrics"), item));
    }
    if info.has_status() {
        paths
            .push((format!("{one}/status"), json!({ "get": get(info, "Status"), "parameters": parameters })));
    }
    paths
}

/// The parameters of a path.
fn place(info: &KindInfo, of_one: bool) -> Value {
    let namespace = info.namespaced.then(|| parameter("namespace", "path", "string", "The tenant's name."));
    let name = of_one.then(|| parameter("name", "path", "string", "The object's name."));
    namespace.into_iter().chain(name).collect()
}

fn component_of(info: &KindInfo, suffix: &str) -> String {
    let name = format!("{}{suffix}", info.kind);
    if info.is_core { core_v1::component(&name) } else { component(&name) }
}

/// `MachineOfRezuscloudIoV1alpha1`, as operations are told apart.
fn operation(verb: &str, info: &KindInfo, suffix: &str) -> String {
    let group = if info.is_core { "CoreV1" } else { "RezuscloudIoV1alpha1" };
    format!("{verb}{group}{}{suffix}", info.kind)
}

fn list(info: &KindInfo, of_tenant: bool) -> Value {
    let suffix = if info.namespaced && !of_tenant { "ForAllNamespaces" } else { "" };
    let references =
        PARAMETERS.iter().map(|(name, ..)| json!({ "$ref": format!("#/components/parameters/{name}") }));
    let schema = json!({ "schema": reference(&component_of(info, "List")) });
    json!({
        "description": format!("List or watch {}.", info.plural),
        "operationId": operation("list", info, suffix),
        "parameters": references.collect::<Vec<_>>(),
        "responses": {
            "200": {
                "description": "The list, or with watch=true the events.",
                "content": { "application/json": schema, "application/json;stream=watch": schema },
            },
            "default": failure(),
        },
        "x-kubernetes-action": "list",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

fn get(info: &KindInfo, suffix: &str) -> Value {
    let schema = json!({ "schema": reference(&component_of(info, "")) });
    json!({
        "description": format!("Read a {}.", info.singular),
        "operationId": operation("read", info, suffix),
        "responses": {
            "200": { "description": "The object.", "content": { "application/json": schema } },
            "default": failure(),
        },
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

fn create(info: &KindInfo) -> Value {
    let schema = json!({ "schema": reference(&component_of(info, "")) });
    let parameters = [
        ("dryRun", "string", "All: nothing is made, and the answer is what would be."),
        ("fieldManager", "string", "Passed over."),
        (
            "fieldValidation",
            "string",
            "What becomes of unknown fields: Ignore, Warn (the default) or Strict.",
        ),
    ]
    .map(|(name, kind, description)| parameter(name, "query", kind, description));
    json!({
        "description": format!("Make a {}.", info.singular),
        "operationId": operation("create", info, ""),
        "parameters": parameters,
        "requestBody": { "required": true, "content": { "application/json": schema } },
        "responses": {
            "201": { "description": "The object as it is kept.", "content": { "application/json": schema } },
            "default": failure(),
        },
        "x-kubernetes-action": "post",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

/// What is done with one object by POST, without a body.
fn act(info: &KindInfo, subresource: &Subresource) -> Value {
    let schema = json!({ "schema": reference(&component_of(info, "")) });
    let mut suffix = subresource.name.to_owned();
    suffix[..1].make_ascii_uppercase();
    let description = match subresource.name {
        "approve" => "Agree to what a run has planned.",
        "cancel" => {
            "End a run: at once where it waits; one that is under way is interrupted, and killed where it was cancelled before."
        }
        _ => "Say that what a run created and no version of the state has is taken care of.",
    };
    json!({
        "description": description,
        "operationId": operation("create", info, &suffix),
        "responses": {
            "200": { "description": "The object as it is then.", "content": { "application/json": schema } },
            "default": failure(),
        },
        "x-kubernetes-action": "post",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

fn log(info: &KindInfo) -> Value {
    let parameters = [
        ("follow", "boolean", "Go on until the run ends. As events it does so unless this is false."),
        ("offset", "integer", "From this byte on. As events, the header Last-Event-ID says the same."),
    ]
    .map(|(name, kind, description)| parameter(name, "query", kind, description));
    let text = json!({ "schema": { "type": "string" } });
    json!({
        "description": "Read the log of a run. As text/event-stream each event's id is the offset behind it, and its data a JSON \
                        string of its piece of the log, in which a byte that is no UTF-8 is the lone surrogate U+DC00 and that \
                        byte; a comment is sent every 15 seconds. As text nothing is sent while nothing happens.",
        "operationId": operation("read", info, "Log"),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The log, without secrets.",
                "content": { "text/plain": text, "text/event-stream": text },
            },
            "default": failure(),
        },
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

fn metrics(info: &KindInfo) -> Value {
    let parameters = [
        (
            "name",
            "string",
            "Of this metric alone; of all if absent. Of a tenant all are those that are of no machine.",
        ),
        ("from", "string", "Since this date and time of RFC 3339."),
        ("to", "string", "Until this date and time; until now if absent."),
        ("range", "string", "How long, in place of one of both: 90m, 6h, 7d. An hour where nothing is said."),
        ("step", "string", "How far points are apart; chosen so that there are up to 120 if absent."),
    ]
    .map(|(name, kind, description)| parameter(name, "query", kind, description));
    json!({
        "description": "Read what was sampled over time. Each of `series` has `name`, `type`, `unit`, `help`, `labels` and `points`: \
                        the time at which a step begins, the average in it, the least and the greatest value; of a counter the time \
                        and by how much it rose in a second. Where there is nothing, `reason` says why.",
        "operationId": operation("read", info, "Metrics"),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The series.",
                "content": { "application/json": { "schema": { "type": "object" } } },
            },
            "default": failure(),
        },
        "x-kubernetes-action": "get",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

/// kubectl asks for OpenAPI v2, and fails, where it finds no such operation with a `fieldValidation`: it never comes to
/// the refusal that says where a change belongs.
fn patch(info: &KindInfo) -> Value {
    let parameters = [
        ("dryRun", "string", "Refused too."),
        ("fieldManager", "string", "Passed over."),
        ("fieldValidation", "string", "Passed over."),
        ("force", "boolean", "Passed over."),
    ]
    .map(|(name, kind, description)| parameter(name, "query", kind, description));
    let bodies =
        ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"];
    let bodies = bodies.map(|media| (media.to_owned(), json!({ "schema": { "type": "object" } })));
    json!({
        "description": "Always refused with 405 MethodNotAllowed: change the tenant's configuration and apply it with tofu \
                        or terraform.",
        "operationId": operation("patch", info, ""),
        "parameters": parameters,
        "requestBody": { "content": Map::from_iter(bodies) },
        "responses": { "405": failure() },
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": group_version_kind(info, info.kind),
    })
}

fn failure() -> Value {
    let schema = json!({ "schema": reference(STATUS) });
    json!({ "description": "Why not.", "content": { "application/json": schema } })
}
