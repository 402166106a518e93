//! Components of the core's `v1`: tenants as namespaces, and events.

use serde_json::{Map, Value, json};

use super::dialect::{described, reference};
use super::meta::{kind, list, number, text, time};
use crate::kube::kinds::{EVENT, KindInfo, NAMESPACE};

/// Returns the name of a component of the core.
pub(super) fn component(name: &str) -> String {
    format!("io.k8s.api.core.v1.{name}")
}

/// Returns the components, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let phase = json!({
        "description": "Whether the tenant is there: Active.",
        "type": "string",
        "enum": ["Active"],
    });
    let status = json!({
        "description": "Whether the tenant is there.",
        "type": "object",
        "properties": { "phase": phase },
    });
    let involved = json!({
        "description": "Which object it is about.",
        "type": "object",
        "properties": {
            "apiVersion": text("Its group and version."),
            "kind": text("Its kind."),
            "namespace": text("Its namespace: the tenant it belongs to."),
            "name": text("Its name."),
            "uid": text("Its uid."),
            "resourceVersion": text("Its resourceVersion then."),
            "fieldPath": text("Which part of it."),
        },
    });
    let source = json!({
        "description": "Who says so.",
        "type": "object",
        "properties": {
            "component": text("Which part of the server."),
            "host": text("On which host."),
        },
    });
    let mut event = kind(
        &EVENT,
        "Something that happened to an object, such as a refused write of a tenant's state.",
        &[],
    );
    for (name, schema) in [
        ("involvedObject", described(&component("ObjectReference"), "Which object it is about.")),
        ("reason", text("Why it happened, in one word for programs.")),
        ("message", text("What happened, in words for people.")),
        ("type", text("Normal, or Warning.")),
        ("count", number("How often it happened.")),
        ("firstTimestamp", time("When it happened first, in RFC 3339.")),
        ("lastTimestamp", time("When it happened last, in RFC 3339.")),
        ("eventTime", time("When it happened, in RFC 3339.")),
        ("source", described(&component("EventSource"), "Who says so.")),
        ("action", text("What was done to the object.")),
        ("reportingComponent", text("Which program says so.")),
        ("reportingInstance", text("Which instance of that program.")),
    ] {
        event["properties"][name] = schema;
    }
    let parts = [("status", component("NamespaceStatus"), "Whether the tenant is there.".to_owned())];
    let namespace = kind(&NAMESPACE, "A tenant, as Kubernetes clients look for it.", &parts);
    let mut components = Map::new();
    for (name, schema) in [
        ("Namespace", namespace),
        ("NamespaceStatus", status),
        ("NamespaceList", list_of(&NAMESPACE)),
        ("Event", event),
        ("EventList", list_of(&EVENT)),
        ("EventSource", source),
        ("ObjectReference", involved),
    ] {
        components.insert(component(name), schema);
    }
    components
}

fn list_of(info: &KindInfo) -> Value {
    let mut list = list(info, &component(info.kind));
    list["properties"]["items"]["items"] = reference(&component(info.kind));
    list
}
