//! What is there and not declared, and what is declared and not there.

use rezus_core::base::Timestamp;
use rezus_core::client::{
    MachineSpec, MachineStatus, NodeGroupSpec, NodeGroupStatus, TenantSpec, TenantStatus,
};
use rezus_core::observed::facts::{Facts, Usage};
use rezus_server::config::CollectorConfig;
use rezus_testkit::fake::Turn;

use super::lab::{Access, INTERVAL, Lab, name, state};
use super::{facts, says};
use crate::client_types::round_trip;

#[tokio::test(start_paused = true)]
async fn e07_a_node_that_no_longer_is_declared_is_told_as_such_while_it_answers() {
    let lab = Lab::web(&["a", "b"], facts::nodes(&["a", "b"])).await;
    assert_eq!(lab.tenant().await["status"].get("undeclared"), None);
    lab.push("web", &state(2, &[("a", "worker")], Access::Kubernetes)).await;
    lab.pass(INTERVAL).await;
    let tenant = lab.tenant().await;
    assert_eq!(tenant["status"]["undeclared"], serde_json::json!(["b"]), "{tenant:#}");
    assert_eq!(tenant["status"]["machines"]["undeclared"], 1);
    // It is shown, and never made a machine.
    assert_eq!(lab.get("/namespaces/web/machines").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(says(&lab.machine("a").await, "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn e07_a_machine_whose_node_is_gone_is_missing_while_it_is_declared() {
    let lab = Lab::web(&["a", "b"], facts::nodes(&["a", "b"])).await;
    let before = lab.declared("web").await;
    lab.tells("web", facts::nodes(&["a"]));
    lab.pass(INTERVAL).await;
    assert_eq!(says(&lab.machine("b").await, "Ready"), ("False", "Missing"));
    let tenant = lab.tenant().await;
    assert_eq!(
        (says(&tenant, "Ready"), &tenant["status"]["machines"]["missing"]),
        (("False", "MachinesNotReady"), &1.into())
    );
    assert_eq!(lab.declared("web").await, before);
    lab.tells("web", facts::nodes(&["a", "b"]));
    lab.pass(INTERVAL).await;
    assert_eq!(says(&lab.machine("b").await, "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_observes_says_why_in_each_machine_and_group() {
    let lab = Lab::new();
    lab.push("web", &state(1, &[("a", "worker")], Access::Kubernetes)).await;
    let group = async || lab.get("/namespaces/web/nodegroups/worker").await;
    assert_eq!(says(&group().await, "Ready").0, "Unknown");
    lab.plane.send("PATCH", "/rezus/v1/tenants/web", r#"{"collect":false}"#).await.expect(200, "PATCH");
    lab.pass(INTERVAL).await;
    for object in [group().await, lab.machine("a").await, lab.tenant().await] {
        assert_eq!(says(&object, "Ready"), ("Unknown", "Disabled"), "{object:#}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_observes_nobody_says_so_and_asks_nobody() {
    let lab = Lab::of(CollectorConfig { enabled: false, ..CollectorConfig::default() });
    lab.tells("web", facts::nodes(&["a"]));
    lab.push("web", &state(1, &[("a", "worker")], Access::Kubernetes)).await;
    lab.pass(INTERVAL).await;
    for object in [lab.machine("a").await, lab.tenant().await] {
        assert_eq!(says(&object, "Ready"), ("Unknown", "Disabled"), "{object:#}");
    }
    assert_eq!(lab.kubernetes.turns(&name("web")), 0);
}

#[tokio::test(start_paused = true)]
async fn clients_read_all_that_is_observed_and_write_it_as_it_was() {
    let lab = Lab::new();
    let mut facts = facts::nodes(&["a", "undeclared"]);
    if let Facts::Kubernetes(kubernetes) = &mut facts {
        let usage = Usage {
            node: "a".to_owned(),
            at: Timestamp::from_millis(1_796_065_837_000),
            cpu_nanocores: 1_500_000_000,
            memory_bytes: 4 << 30,
        };
        kubernetes.usage = Some(vec![usage]);
    }
    lab.tells("web", facts);
    let machine = facts::control_plane("a", 1, Some((1, 1, false)));
    let members = facts::members(&[(1, "a", false)]);
    lab.talos.set(&name("web"), Turn::Tells(Box::new(facts::talos(vec![machine], Some(members)))));
    lab.push("web", &state(1, &[("a", "controlplane"), ("b", "worker")], Access::Both)).await;
    lab.pass(INTERVAL * 2).await;
    let machine = lab.machine("a").await;
    for part in ["node", "talos", "foundBy", "observedAt"] {
        assert!(!machine["status"][part].is_null(), "{part}: {machine:#}");
    }
    round_trip::<MachineSpec, MachineStatus>(&lab.plane, "machines").await;
    round_trip::<NodeGroupSpec, NodeGroupStatus>(&lab.plane, "nodegroups").await;
    round_trip::<TenantSpec, TenantStatus>(&lab.plane, "tenants").await;
}
