//! The documents: sound in themselves, and true to the table of kinds.

use std::collections::BTreeSet;

use super::*;
use crate::kube::kinds::{KINDS, KindInfo};

fn document(info: &KindInfo) -> Value {
    if info.is_core { Which::Core.make() } else { Which::Group.make() }
}

/// Calls `look` with each value that is below, and where it is.
fn each(path: &str, value: &Value, look: &mut dyn FnMut(&str, &Value)) {
    look(path, value);
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                each(&format!("{path}/{name}"), value, look);
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                each(&format!("{path}/{place}"), value, look);
            }
        }
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere_and_every_component_is_referred_to() {
    for which in Which::ALL {
        let document = which.make();
        let mut used = BTreeSet::new();
        each("", &document, &mut |path, value| {
            if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
                let target = document.pointer(reference.strip_prefix('#').unwrap());
                assert!(target.is_some(), "{path}: {reference}");
                assert_eq!(value.as_object().unwrap().len(), 1, "{path}: what is beside $ref does not count");
                used.insert(reference.to_owned());
            }
        });
        for name in document["components"]["schemas"].as_object().unwrap().keys() {
            assert!(used.contains(&format!("#/components/schemas/{name}")), "{name}");
        }
    }
}

#[test]
fn schemas_are_in_the_dialect_of_openapi_3_0_and_say_what_each_field_is() {
    for which in Which::ALL {
        each("", &which.make()["components"]["schemas"], &mut |path, value| {
            let Some(schema) = value.as_object() else { return };
            if path.ends_with("/properties") {
                for (name, property) in schema {
                    let description = property["description"].as_str().unwrap_or_default();
                    assert!(!description.is_empty(), "{path}/{name}");
                    assert!(!description.contains(['\n', '`']), "{path}/{name}: {description}");
                }
                return;
            }
            for foreign in ["$defs", "$schema", "anyOf", "oneOf", "const", "default"] {
                assert!(!schema.contains_key(foreign), "{path}: {foreign}");
            }
            if let Some(kind) = schema.get("type") {
                assert!(kind.is_string(), "{path}: {kind}");
            }
            if let Some(format) = schema.get("format") {
                let known = ["int32", "int64", "double", "date-time"];
                assert!(known.iter().any(|known| format == known), "{path}: {format}");
            }
        });
    }
}

#[test]
fn each_kind_has_a_schema_and_what_can_be_done_with_it() {
    for info in KINDS {
        let document = document(info);
        let identity = meta::group_version_kind(info, info.kind);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let of_kind = |identity: &Value| {
            let key = "x-kubernetes-group-version-kind";
            let mut found = schemas.values().filter(|schema| schema[key] == json!([identity]));
            let one = found.next().unwrap_or_else(|| panic!("{identity}")).clone();
            assert!(found.next().is_none(), "{identity}");
            one
        };
        let schema = of_kind(&identity);
        let members = schema["properties"].as_object().unwrap();
        assert_eq!(members.contains_key("status"), info.has_status(), "{}", info.kind);
        for member in ["apiVersion", "kind", "metadata"] {
            assert!(members.contains_key(member), "{}.{member}", info.kind);
        }
        of_kind(&meta::group_version_kind(info, &format!("{}List", info.kind)));

        let base = if info.is_core { "/api/v1" } else { "/apis/rezuscloud.io/v1alpha1" };
        let place = if info.namespaced { "/namespaces/{namespace}" } else { "" };
        let plural = info.plural;
        let mut operations = vec![
            (format!("{base}{place}/{plural}"), "get", "list"),
            (format!("{base}/{plural}"), "get", "list"),
            (format!("{base}{place}/{plural}/{{name}}"), "get", "get"),
            (format!("{base}{place}/{plural}/{{name}}"), "patch", "patch"),
        ];
        if info.has_status() {
            operations.push((format!("{base}{place}/{plural}/{{name}}/status"), "get", "get"));
        }
        if info.is_made() {
            operations.push((format!("{base}{place}/{plural}"), "post", "post"));
        }
        for subresource in info.subresources.iter().filter(|_| info.is_made()) {
            let (method, action) =
                if subresource.verb == "create" { ("post", "post") } else { ("get", "get") };
            operations.push((
                format!("{base}{place}/{plural}/{{name}}/{}", subresource.name),
                method,
                action,
            ));
        }
        for (path, method, action) in operations {
            let operation = &document["paths"][&path][method];
            assert_eq!(operation["x-kubernetes-action"], action, "{method} {path}");
            assert_eq!(operation["x-kubernetes-group-version-kind"], identity, "{method} {path}");
            if method == "patch" {
                let parameters = operation["parameters"].as_array().unwrap();
                let validation = parameters.iter().find(|one| one["name"] == "fieldValidation").unwrap();
                assert_eq!(validation["in"], "query");
            }
        }
    }
}

#[test]
fn operations_are_told_apart_and_their_places_are_parameters() {
    let mut names = BTreeSet::new();
    for which in Which::ALL {
        let document = which.make();
        for (path, item) in document["paths"].as_object().unwrap() {
            let places: BTreeSet<&str> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            let named = item["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
            let named: BTreeSet<&str> = named.iter().map(|one| one["name"].as_str().unwrap()).collect();
            assert_eq!(named, places, "{path}");
            for method in ["get", "post", "patch"] {
                if let Some(name) = item[method]["operationId"].as_str() {
                    assert!(names.insert(name.to_owned()), "{name}");
                }
            }
        }
    }
    assert!(names.contains("listRezuscloudIoV1alpha1MachineForAllNamespaces"), "{names:?}");
}

#[test]
fn fields_are_described_as_their_types_say() {
    let document = Which::Group.make();
    let schema = |name: &str| &document["components"]["schemas"][format!("io.rezuscloud.v1alpha1.{name}")];
    let machine = &schema("MachineSpec")["properties"];
    assert_eq!(
        machine["memoryMiB"],
        json!({
            "description": "Memory in MiB, as the provider's resource declares it.",
            "type": "integer",
            "format": "int64",
            "minimum": 0,
        })
    );
    assert_eq!(
        machine["addresses"]["items"],
        json!({ "$ref": "#/components/schemas/io.rezuscloud.v1alpha1.NodeAddress" })
    );
    assert_eq!(schema("NodeAddress")["required"], json!(["type", "address"]));
    assert_eq!(
        schema("TenantSpec")["properties"]["state"],
        json!({
            "description": "The state that is in force; absent while none was written, and after it was deleted.",
            "allOf": [{ "$ref": "#/components/schemas/io.rezuscloud.v1alpha1.TenantState" }],
        })
    );
    assert_eq!(schema("TenantState")["required"], json!(["version", "encrypted", "sizeBytes", "writtenAt"]));
    assert_eq!(
        schema("RunSpec")["properties"]["variables"]["additionalProperties"],
        json!({ "type": "string" })
    );
}
