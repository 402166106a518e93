//! From JSON Schema (2020-12, as schemars writes it) to the schemas of OpenAPI 3.0 as Kubernetes has them.

use serde_json::{Map, Value, json};

/// Returns the name of a component of this API.
pub(super) fn component(name: &str) -> String {
    format!("io.rezuscloud.v1alpha1.{name}")
}

/// Returns a reference to a component.
pub(super) fn reference(component: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{component}") })
}

/// Returns a reference that has a description of its own: beside `$ref` nothing counts.
pub(super) fn described(component: &str, description: &str) -> Value {
    json!({ "description": description, "allOf": [reference(component)] })
}

/// Translates a schema: what may be absent is so by not being required, never by being null; references are to
/// components; numbers are of the formats that Kubernetes knows.
pub(super) fn convert(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return schema.clone() };
    let mut converted = Map::new();
    for (keyword, value) in schema {
        let value = match keyword.as_str() {
            // What is absent is unknown: there are no defaults.
            "default" | "title" | "$schema" | "$defs" => continue,
            "$ref" => {
                let name = value.as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
                converted.insert("allOf".to_owned(), json!([reference(&component(name))]));
                continue;
            }
            "anyOf" | "oneOf" => {
                absorb(value, &mut converted);
                continue;
            }
            "description" => value.as_str().map_or_else(|| value.clone(), |text| prose(text).into()),
            "type" => only_type(value),
            "format" => format(value),
            "properties" => properties(value),
            "items" | "additionalProperties" => convert(value),
            _ => value.clone(),
        };
        converted.insert(keyword.clone(), value);
    }
    match converted.get("allOf") {
        Some(Value::Array(references)) if converted.len() == 1 && references.len() == 1 => {
            references[0].clone()
        }
        _ => Value::Object(converted),
    }
}

/// A type that may be null: the other of the two is put in.
fn absorb(alternatives: &Value, into: &mut Map<String, Value>) {
    let alternatives = alternatives.as_array().map(Vec::as_slice).unwrap_or_default();
    for alternative in alternatives.iter().filter(|alternative| alternative["type"] != "null") {
        match convert(alternative) {
            Value::Object(schema) if schema.contains_key("$ref") => {
                into.insert("allOf".to_owned(), json!([schema]));
            }
            Value::Object(schema) => into.extend(schema),
            _ => {}
        }
    }
}

fn properties(properties: &Value) -> Value {
    let properties = properties.as_object().into_iter().flatten();
    Value::Object(properties.map(|(name, schema)| (name.clone(), convert(schema))).collect())
}

fn only_type(types: &Value) -> Value {
    let other = |types: &Vec<Value>| types.iter().find(|name| *name != "null").cloned();
    types.as_array().and_then(other).unwrap_or_else(|| types.clone())
}

/// OpenAPI 3.0 has signed numbers alone.
fn format(format: &Value) -> Value {
    match format.as_str() {
        Some("uint64") => "int64".into(),
        _ => format.clone(),
    }
}

/// A documentation comment as running text: without line breaks and code marks.
fn prose(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('`', "")
}
