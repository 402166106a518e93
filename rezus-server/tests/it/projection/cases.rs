//! What broke other readers of states, as trials: section "projection" of the cases.

use std::collections::BTreeSet;

use rezus_testkit::fixture;
use serde_json::{Value, json};

use super::{API, block, by_hand, condition, names, state_of};
use crate::in_process::InProcess;

const HCLOUD: &str = "provider[\"registry.opentofu.org/hetznercloud/hcloud\"]";

/// A server of hcloud's.
fn server(key: &Value, attributes: &Value) -> Value {
    let mut instance = json!({ "schema_version": 0, "attributes": attributes, "sensitive_attributes": [] });
    if !key.is_null() {
        instance["index_key"] = key.clone();
    }
    instance
}

fn servers(name: &str, instances: &[Value]) -> Value {
    json!({ "mode": "managed", "type": "hcloud_server", "name": name, "provider": HCLOUD, "instances": instances })
}

/// Posts a state and lists the machines that it declares.
async fn listed(plane: &InProcess, state: impl Into<bytes::Bytes>) -> Vec<Value> {
    plane.post("web", state).await.expect(200, "POST");
    plane.get(&format!("{API}/namespaces/web/machines")).await.expect(200, "list").items()
}

fn addresses(machines: &[Value]) -> BTreeSet<&str> {
    machines.iter().map(|machine| machine["spec"]["address"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn c01_count_and_for_each_and_single_instances_are_all_listed() {
    let attributes = |name: &str| json!({ "id": name, "name": name });
    let blocks = [
        servers("counted", &[server(&json!(0), &attributes("c-0")), server(&json!(1), &attributes("c-1"))]),
        servers(
            "each",
            &[server(&json!("0"), &attributes("e-0")), server(&json!("a/b"), &attributes("e-1"))],
        ),
        servers("single", &[server(&Value::Null, &attributes("s"))]),
    ];
    let found = listed(&InProcess::new(), state_of("l", 1, &blocks)).await;
    let expected = [
        "hcloud_server.counted[0]",
        "hcloud_server.counted[1]",
        "hcloud_server.each[\"0\"]",
        "hcloud_server.each[\"a/b\"]",
        "hcloud_server.single",
    ];
    assert_eq!(addresses(&found), BTreeSet::from(expected));
    assert_eq!(names(&found), ["c-0", "c-1", "e-0", "e-1", "s"]);
}

#[tokio::test]
async fn c02_instances_that_share_a_name_are_machines_with_names_of_their_own() {
    let plane = InProcess::new();
    let same = json!({ "name": "node", "id": null });
    let instances = [0, 1, 2].map(|key| server(&json!(key), &same));
    let found = listed(&plane, state_of("l", 1, &[servers("node", &instances)])).await;
    assert_eq!(addresses(&found).len(), 3);
    let unique: BTreeSet<String> = names(&found).into_iter().map(str::to_owned).collect();
    assert_eq!(unique.len(), 3, "{unique:?}");
    for name in &unique {
        let is_label = name.len() <= 63
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        assert!(is_label && name.starts_with("node"), "{name}");
        let path = format!("{API}/namespaces/web/machines/{name}");
        assert_eq!(plane.get(&path).await.expect(200, name).json()["metadata"]["name"], **name);
    }
    // Which is which does not depend on the order in the file.
    let turned: Vec<Value> = instances.iter().rev().cloned().collect();
    let again = listed(&plane, state_of("l", 2, &[servers("node", &turned)])).await;
    let pairs = |machines: &[Value]| -> BTreeSet<(String, String)> {
        machines
            .iter()
            .map(|it| (it["metadata"]["name"].to_string(), it["spec"]["address"].to_string()))
            .collect()
    };
    assert_eq!(pairs(&found), pairs(&again));
}

#[tokio::test]
async fn c07_odd_attributes_cost_their_fields_and_a_condition_but_no_object() {
    let plane = InProcess::new();
    let odd = json!({
        "id": { "a": 1 },
        "name": ["not", "a", "name"],
        "server_type": null,
        "status": { "unknown": true },
        "labels": "a text",
        "network": { "ip": [[["10.0.0.1"]]] },
        "ipv4_address": 17,
        "location": [],
        "future_attribute": { "any": ["thing", null] },
    });
    let blocks = [
        servers("odd", &[server(&Value::Null, &odd)]),
        servers("bare", &[server(&Value::Null, &json!({}))]),
        servers("none", &[json!({ "schema_version": 0, "attributes": null })]),
        servers(
            "good",
            &[server(&Value::Null, &json!({ "id": "7", "name": "good", "server_type": "cx32" }))],
        ),
        block("edge", &[by_hand("m", &json!({ "name": "by-hand", "memory_mib": "much" }))]),
    ];
    let found = listed(&plane, state_of("l", 1, &blocks)).await;
    let expected = [
        "hcloud_server.bare",
        "hcloud_server.good",
        "hcloud_server.none",
        "hcloud_server.odd",
        "terraform_data.edge[\"m\"]",
    ];
    assert_eq!(addresses(&found), BTreeSet::from(expected));
    let at = |address: &str| found.iter().find(|machine| machine["spec"]["address"] == address).unwrap();
    let odd = at("hcloud_server.odd");
    let incomplete = condition(odd, "MappingComplete").unwrap();
    assert_eq!((&incomplete["status"], &incomplete["source"]), (&"False".into(), &"state".into()));
    for field in ["name", "providerID"] {
        assert!(incomplete["message"].as_str().unwrap().contains(field), "{incomplete}");
        assert!(odd["spec"].get(field).is_none(), "{odd}");
        let problems = odd["spec"]["problems"].as_array().unwrap();
        let problem = problems.iter().find(|problem| problem["field"] == field).unwrap();
        assert!(!problem["reason"].as_str().unwrap().is_empty());
    }
    assert!(condition(at("terraform_data.edge[\"m\"]"), "MappingComplete").is_some());
    let good = at("hcloud_server.good");
    assert_eq!((&good["spec"]["providerID"], &good["spec"]["instanceType"]), (&"7".into(), &"cx32".into()));
    assert!(condition(good, "MappingComplete").is_none() && good["spec"].get("problems").is_none(), "{good}");
    let tenant = plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
    assert_eq!((&tenant["spec"]["machines"], &tenant["spec"]["state"]["resources"]), (&json!(5), &json!(5)));
}

#[tokio::test]
async fn c09_providers_of_instances_are_listed_with_source_alias_and_key() {
    let plane = InProcess::new();
    let of = |key: &str, provider: &str| {
        let mut instance = server(&json!(key), &json!({ "id": key, "name": key }));
        instance["provider"] = format!("{HCLOUD}{provider}").into();
        instance
    };
    let mut block = servers("node", &[of("a", ".by_region[\"eu-1\"]"), of("b", ".by_region[\"us-\\\"1\"]")]);
    block.as_object_mut().unwrap().remove("provider");
    let blocks = [block, servers("plain", &[server(&Value::Null, &json!({ "id": "p", "name": "p" }))])];
    let found = listed(&plane, state_of("l", 1, &blocks)).await;
    assert_eq!(names(&found), ["a", "b", "p"]);
    let source = "registry.opentofu.org/hetznercloud/hcloud";
    assert!(found.iter().all(|machine| machine["spec"]["providerSource"] == source));
    let tenant = plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
    let providers = tenant["spec"]["providers"].as_array().unwrap();
    let expected = [
        json!({ "source": source }),
        json!({ "source": source, "alias": "by_region", "key": "eu-1" }),
        json!({ "source": source, "alias": "by_region", "key": "us-\"1" }),
    ];
    assert_eq!(providers.len(), expected.len(), "{providers:?}");
    assert!(expected.iter().all(|provider| providers.contains(provider)), "{providers:?}");
}

/// What is left of machines where only credentials changed.
fn specs(machines: &[Value]) -> Vec<Value> {
    machines.iter().map(|machine| machine["spec"].clone()).collect()
}

/// Changes every object of these types in a state; where nothing is left of one, it goes.
fn change(state: &[u8], serial: u64, types: &[&str], change: impl Fn(&mut Value) -> bool) -> String {
    let mut state: Value = serde_json::from_slice(state).unwrap();
    state["serial"] = serial.into();
    let blocks = state["resources"].as_array_mut().unwrap();
    let before = blocks.len();
    blocks.retain_mut(|block| {
        if !types.contains(&block["type"].as_str().unwrap()) {
            return true;
        }
        block["instances"].as_array_mut().unwrap().iter_mut().all(&change)
    });
    assert!(serial.is_multiple_of(2) || blocks.len() < before, "nothing was removed");
    state.to_string()
}

const CREDENTIALS: [&str; 3] =
    ["talos_machine_secrets", "talos_cluster_kubeconfig", "talos_client_configuration"];

#[tokio::test]
async fn c13_certificates_that_cannot_be_used_take_nothing_from_the_projection() {
    let plane = InProcess::new();
    let fixture = fixture::state("hcloud-talos");
    let before = listed(&plane, fixture.body.clone()).await;
    assert_eq!(before.len(), 5);
    // Expired, cut, of the wrong kind: the projection reads none of them.
    for (number, junk) in
        [json!("not a certificate"), json!(""), json!(17), json!({ "a": [] })].into_iter().enumerate()
    {
        let serial = 1_000 + 2 * u64::try_from(number).unwrap();
        let state = change(&fixture.body, serial, &CREDENTIALS, |instance| {
            for holder in ["client_configuration", "kubernetes_client_configuration"] {
                let configuration = &mut instance["attributes"][holder];
                if configuration.is_object() {
                    for name in ["ca_certificate", "client_certificate", "client_key"] {
                        configuration[name] = junk.clone();
                    }
                }
            }
            true
        });
        assert_eq!(specs(&listed(&plane, state).await), specs(&before), "{junk}");
    }
}

#[tokio::test]
async fn c14_without_credentials_in_the_state_the_projection_is_complete() {
    let plane = InProcess::new();
    let fixture = fixture::state("hcloud-talos");
    let before = listed(&plane, fixture.body.clone()).await;
    let absent = change(&fixture.body, 1_001, &CREDENTIALS, |_| false);
    let null = change(&fixture.body, 1_002, &CREDENTIALS, |instance| {
        for name in
            ["client_configuration", "kubernetes_client_configuration", "kubeconfig_raw", "talos_config"]
        {
            if let Some(held) = instance["attributes"].get_mut(name) {
                *held = Value::Null;
            }
        }
        true
    });
    for (state, what) in [(absent, "absent"), (null, "null")] {
        assert_eq!(specs(&listed(&plane, state).await), specs(&before), "{what}");
        let tenant = plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
        assert_eq!(condition(&tenant, "SpecAvailable").unwrap()["status"], "True", "{what}");
        assert_eq!(condition(&tenant, "MappingComplete").unwrap()["status"], "True", "{what}");
        assert_eq!(tenant["spec"]["machines"], 5);
        let credentials = condition(&tenant, "CredentialsCurrent").unwrap();
        assert_eq!(
            (&credentials["status"], &credentials["reason"]),
            (&"False".into(), &"CredentialMissing".into())
        );
        let message = credentials["message"].as_str().unwrap();
        assert!(
            message.contains("no Kubernetes credential") && message.contains("no Talos credential"),
            "{what}: {message}"
        );
    }
}
