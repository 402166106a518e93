//! Lock infos and states as clients send them.

use serde_json::{Value, json};

/// The lock of an apply.
pub(crate) const APPLY: &str = "OperationTypeApply";

/// The lock of `state push`: the one that may force.
pub(crate) const PUSH: &str = "state-push";

/// Returns a lock ID that looks like the clients' own, random version bits included.
pub(crate) fn id(number: u16) -> String {
    format!("177fbbaf-774b-3a8b-0000-{number:012x}")
}

/// Returns the body of a LOCK or UNLOCK.
pub(crate) fn info(id: &str, operation: &str) -> String {
    json!({
        "ID": id,
        "Operation": operation,
        "Info": "",
        "Who": "root@vm",
        "Version": "1.12.6",
        "Created": "2026-11-30T16:54:37.540115051Z",
        "Path": "",
    })
    .to_string()
}

/// Returns a small state with one resource, which tells serials apart.
pub(crate) fn state(lineage: &str, serial: u64) -> String {
    state_with(lineage, serial, &format!("marker-{serial}"))
}

/// Returns a small state whose one resource holds `content`.
pub(crate) fn state_with(lineage: &str, serial: u64, content: &str) -> String {
    let mut state = json!({
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": [{
            "mode": "managed",
            "type": "terraform_data",
            "name": "one",
            "provider": "provider[\"terraform.io/builtin/terraform\"]",
            "instances": [{
                "schema_version": 0,
                "attributes": { "id": content, "input": null, "output": null, "triggers_replace": null },
                "sensitive_attributes": [],
            }],
        }],
        "check_results": null,
    });
    if lineage.is_empty() {
        state["lineage"] = Value::String(String::new());
    }
    state.to_string()
}

/// Returns a state in which nothing is left.
pub(crate) fn empty_state(lineage: &str, serial: u64) -> String {
    json!({
        "version": 4,
        "terraform_version": "1.12.6",
        "serial": serial,
        "lineage": lineage,
        "outputs": {},
        "resources": [],
        "check_results": null,
    })
    .to_string()
}
