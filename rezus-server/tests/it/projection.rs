//! What states declare: over HTTP, over `project`, as of now and as of then.

mod cases;
mod faults;
mod fixtures;
mod freshness;
mod then;
mod uids;

use serde_json::{Value, json};

/// Where the API is.
const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// The lineage of states made here.
const LINEAGE: &str = "8c3d1c1e-3f0a-4b52-9f5e-0f6f1a2b3c4d";

/// A machine that no provider manages: a `terraform_data` by its convention.
fn by_hand(key: &str, input: &Value) -> Value {
    let mut value = input.clone();
    value["rezus_kind"] = "Machine".into();
    json!({
        "index_key": key,
        "schema_version": 0,
        "attributes": {
            "id": format!("id-{key}"),
            "input": { "value": value, "type": ["object", {}] },
            "output": { "value": value, "type": ["object", {}] },
            "triggers_replace": null,
        },
        "sensitive_attributes": [],
    })
}

/// A block of `terraform_data` with these instances.
fn block(name: &str, instances: &[Value]) -> Value {
    block_of("terraform_data", name, "provider[\"terraform.io/builtin/terraform\"]", instances)
}

/// A block of managed instances.
pub(crate) fn block_of(resource_type: &str, name: &str, provider: &str, instances: &[Value]) -> Value {
    json!({ "mode": "managed", "type": resource_type, "name": name, "provider": provider, "instances": instances })
}

/// A state of these blocks.
pub(crate) fn state_of(lineage: &str, serial: u64, blocks: &[Value]) -> String {
    json!({
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": blocks,
        "check_results": null,
    })
    .to_string()
}

/// A state of these machines, by their keys.
pub(crate) fn machines(serial: u64, machines: &[(&str, Value)]) -> String {
    let instances: Vec<Value> = machines.iter().map(|(key, input)| by_hand(key, input)).collect();
    state_of(LINEAGE, serial, &[block("edge", &instances)])
}

/// The names of objects.
fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

/// The condition of that type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}
