//! The types that clients have of what the API shows: nothing that is shown is lost in them, and nothing is in them that
//! is never shown.

use std::collections::BTreeSet;

use rezus_core::client::{
    MachineSpec, MachineStatus, NodeGroupSpec, NodeGroupStatus, ProviderSpec, StateVersionSpec, TenantSpec,
    TenantStatus,
};
use rezus_testkit::fixture::{self, Accept};
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::in_process::InProcess;
use crate::projection::machines;

const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// An object as client libraries make them.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Object<P, U> {
    api_version: String,
    kind: String,
    metadata: Value,
    spec: P,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<U>,
}

/// What has no status.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct None {}

/// Reads and writes all objects of a kind, and returns the members of `spec` and `status` that were there.
pub(crate) async fn round_trip<P, U>(plane: &InProcess, plural: &str) -> BTreeSet<String>
where
    P: Serialize + DeserializeOwned,
    U: Serialize + DeserializeOwned,
{
    let mut seen = BTreeSet::new();
    for shown in plane.send("GET", &format!("{API}/{plural}"), "").await.expect(200, plural).items() {
        let read: Object<P, U> =
            serde_json::from_value(shown.clone()).unwrap_or_else(|error| panic!("{error}: {shown}"));
        assert_eq!(serde_json::to_value(read).unwrap(), shown);
        members("", &shown["spec"], &mut seen);
    }
    seen
}

/// Adds the paths of all members of a value.
pub(crate) fn members(path: &str, value: &Value, seen: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        members(&path, value, seen);
        seen.insert(path);
    }
    for value in value.as_array().into_iter().flatten() {
        members(path, value, seen);
    }
}

/// The paths of all members that a type has.
pub(crate) fn of_type<T: JsonSchema>() -> BTreeSet<String> {
    fn walk(path: &str, schema: &Value, root: &Value, all: &mut BTreeSet<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            walk(path, &root["$defs"][name.rsplit('/').next().unwrap()], root, all);
        }
        walk_each(path, &schema["anyOf"], root, all);
        if schema["items"].is_object() {
            walk(path, &schema["items"], root, all);
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            walk(&path, schema, root, all);
            all.insert(path);
        }
    }
    fn walk_each(path: &str, schemas: &Value, root: &Value, all: &mut BTreeSet<String>) {
        for schema in schemas.as_array().into_iter().flatten() {
            walk(path, schema, root, all);
        }
    }
    let root = schema_for!(T).to_value();
    let mut all = BTreeSet::new();
    walk("", &root, &root, &mut all);
    all
}

#[tokio::test]
async fn clients_read_all_that_is_shown_and_write_it_as_it_was() {
    let plane = InProcess::new();
    for fixture in fixture::states() {
        if matches!(fixture.expect.accept(), Accept::Project | Accept::StoreOnly) {
            let path = format!("/state/{}", fixture.name);
            plane.send("POST", &path, fixture.body).await.expect(200, &fixture.name);
        }
    }
    let odd = json!({ "name": "a", "cpus": "1e-7", "memoryMiB": 512, "role": "worker" });
    let whole = json!({ "name": "b", "cpus": 123_456_789_012_345_u64, "role": "king", "memoryMiB": "x" });
    let state = machines(1, &[("a", odd), ("b", whole)]);
    plane.send("POST", "/state/by-hand", state).await.expect(200, "by hand");
    let nameless = json!({ "name": "c" });
    let odd = machines(1, &[("c", nameless)]).replace("provider[", "purveyor[");
    plane.send("POST", "/state/odd", odd).await.expect(200, "an odd provider");
    plane.send("POST", "/state/gone", machines(1, &[])).await.expect(200, "gone");
    plane.send("DELETE", "/state/gone", "").await.expect(200, "deleted");

    assert_eq!(round_trip::<MachineSpec, MachineStatus>(&plane, "machines").await, of_type::<MachineSpec>());
    assert_eq!(
        round_trip::<NodeGroupSpec, NodeGroupStatus>(&plane, "nodegroups").await,
        of_type::<NodeGroupSpec>()
    );
    assert_eq!(round_trip::<TenantSpec, TenantStatus>(&plane, "tenants").await, of_type::<TenantSpec>());
    let of_versions = round_trip::<StateVersionSpec, None>(&plane, "stateversions").await;
    // No run wrote one, and none of these was rolled back to or written under a lock.
    let never = [".run", ".rollbackOf", ".lockOperation"].map(str::to_owned);
    assert_eq!(&of_versions | &BTreeSet::from(never), of_type::<StateVersionSpec>());
    assert_eq!(round_trip::<ProviderSpec, None>(&plane, "providers").await, of_type::<ProviderSpec>());
}

#[test]
fn what_a_later_server_adds_is_passed_over() {
    let later =
        json!({ "role": "router", "colour": "blue", "addresses": [{ "type": "X", "address": "1", "y": 1 }] });
    let spec: MachineSpec = serde_json::from_value(later).unwrap();
    assert_eq!((spec.role.as_deref(), spec.addresses[0].kind.as_str()), (Some("router"), "X"));
    assert_eq!(
        serde_json::to_string(&spec).unwrap(),
        r#"{"role":"router","addresses":[{"type":"X","address":"1"}]}"#
    );
}

#[test]
fn numbers_are_written_as_the_server_writes_them() {
    for (cpus, written) in [(2.0, "2"), (0.5, "0.5"), (123_456_789_012_345.0, "123456789012345")] {
        let spec = MachineSpec { cpus: Some(cpus), ..MachineSpec::default() };
        assert_eq!(serde_json::to_string(&spec).unwrap(), format!(r#"{{"cpus":{written}}}"#));
    }
}
