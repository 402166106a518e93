//! What is there and not declared, and what is declared and not there.

use super::lab::{Access, INTERVAL, Lab, state};
use super::{facts, says};

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
