//! What all kinds have: `apiVersion`, `kind` and `metadata`; and the `Status` of an error.

use serde_json::{Map, Value, json};

use super::dialect::described;
use crate::kube::kinds::KindInfo;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The component of errors.
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// Returns group, version and kind as extensions name them.
pub(super) fn group_version_kind(info: &KindInfo, kind: &str) -> Value {
    let version = info.api_version().rsplit('/').next().unwrap_or_default();
    json!({ "group": info.group(), "version": version, "kind": kind })
}

/// Returns the schema of a kind. `parts` are its members beside `metadata`: name, component, description.
pub(super) fn kind(info: &KindInfo, description: &str, parts: &[(&str, String, String)]) -> Value {
    let mut properties = type_meta(info.kind, info);
    properties.insert("metadata".to_owned(), described(OBJECT_META, "Who the object is, and since when."));
    for (name, component, description) in parts {
        properties.insert((*name).to_owned(), described(component, description));
    }
    json!({
        "description": description,
        "type": "object",
        "properties": properties,
        "x-kubernetes-group-version-kind": [group_version_kind(info, info.kind)],
    })
}

/// Returns the schema of a list of a kind whose component is `items`.
pub(super) fn list(info: &KindInfo, items: &str) -> Value {
    let kind = format!("{}List", info.kind);
    let mut properties = type_meta(&kind, info);
    properties.insert(
        "metadata".to_owned(),
        described(LIST_META, "Of which moment the list is, and what follows it."),
    );
    let described = json!({
        "description": "The objects, sorted by namespace and name.",
        "type": "array",
        "items": super::dialect::reference(items),
    });
    properties.insert("items".to_owned(), described);
    json!({
        "description": format!("A list of {}.", info.plural),
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [group_version_kind(info, &kind)],
    })
}

fn type_meta(kind: &str, info: &KindInfo) -> Map<String, Value> {
    let version = format!("The API's group and version: {}.", info.api_version());
    let members = [("apiVersion", version), ("kind", format!("The kind of the object: {kind}."))];
    let member = |(name, description): (&str, String)| (name.to_owned(), text(&description));
    members.into_iter().map(member).collect()
}

pub(super) fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

pub(super) fn time(description: &str) -> Value {
    json!({ "description": description, "type": "string", "format": "date-time" })
}

pub(super) fn number(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "format": "int64" })
}

fn texts(description: &str) -> Value {
    json!({ "description": description, "type": "object", "additionalProperties": { "type": "string" } })
}

/// Returns the components of metadata and of errors, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let object = json!({
        "description": "Metadata as Kubernetes has it of all objects, as far as it is known here.",
        "type": "object",
        "properties": {
            "name": text("The object's name, unique among its kind in its namespace. Of what a state declares: made from \
                          the address there, and the same as long as that is."),
            "generateName": text("Of an object to be made that says no name: what its name is to begin with."),
            "namespace": text("The tenant that the object belongs to."),
            "uid": text("What tells the object from any other, over all time: one that went and came again has another."),
            "resourceVersion": text("When the object changed last, as the server counts. For comparison with later reads, \
                                     and to watch from."),
            "generation": number("The version of the tenant's state in which the spec changed last. It never moves with \
                                  the status."),
            "creationTimestamp": time("When the version of the state was written in which the object appeared, in RFC 3339."),
            "labels": texts("What objects are selected by: rezuscloud.io/tenant, /role, /node-group and /provider; of a Tenant also what its operators gave it."),
            "annotations": texts("What else is said of the object: rezuscloud.io/address is the address of the resource \
                                  instance that declares it, rezuscloud.io/state-version the version of the state that it is \
                                  shown from."),
        },
    });
    let list = json!({
        "description": "Metadata as Kubernetes has it of all lists.",
        "type": "object",
        "properties": {
            "resourceVersion": text("The moment that the list is of, as the server counts: to watch from."),
            "continue": text("What to ask the next page with; absent on the last."),
            "remainingItemCount": number("How many objects follow this page; absent on the last, and where a selector is \
                                          given."),
        },
    });
    let cause = json!({
        "description": "What is wrong with one field or parameter.",
        "type": "object",
        "properties": {
            "reason": text("Why, in one word for programs."),
            "message": text("Why, in words for people."),
            "field": text("Which field or parameter."),
        },
    });
    let details = json!({
        "description": "What the error is about.",
        "type": "object",
        "properties": {
            "name": text("The name of the object."),
            "group": text("Its group."),
            "kind": text("The plural of its kind."),
            "retryAfterSeconds": number("When to ask again, in seconds."),
            "causes": { "description": "What is wrong, one by one.", "type": "array", "items": cause },
        },
    });
    let status = json!({
        "description": "What became of a request that failed.",
        "type": "object",
        "properties": {
            "apiVersion": text("v1"),
            "kind": text("Status"),
            "metadata": described(LIST_META, "Empty."),
            "status": text("Failure"),
            "message": text("Why, in words for people."),
            "reason": text("Why, in one word for programs."),
            "details": details,
            "code": number("The code of the HTTP answer."),
        },
        "x-kubernetes-group-version-kind": [{ "group": "", "version": "v1", "kind": "Status" }],
    });
    let components = [(OBJECT_META, object), (LIST_META, list), (STATUS, status)];
    components.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}
