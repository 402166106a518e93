//! What runs say of a tenant: drift, and what was created and is in no version.

use std::time::Duration;

use rezus_core::runs::{Approval, Operation, Phase, Stage};
use rezus_testkit::fake::Script;
use rezus_testkit::recording::Tool;
use serde_json::Value;

use super::api::API;
use super::lab::{Lab, created, plan_of, state_of};

/// The tenant's condition of a type.
async fn condition(lab: &Lab, kind: &str) -> Option<Value> {
    let tenant = lab.plane.get(&format!("{API}/tenants/prod")).await.expect(200, "the tenant").json();
    let conditions = tenant["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == kind)?;
    assert_eq!(found["source"], "run");
    Some(found.clone())
}

async fn drifted(lab: &Lab) -> (String, String, String) {
    let found = condition(lab, "Drifted").await.expect("the tenant has something to run");
    let text = |member: &str| found[member].as_str().unwrap().to_owned();
    (text("status"), text("reason"), text("message"))
}

#[tokio::test]
async fn a_tenant_says_whether_it_has_drifted_and_when_that_is_not_known() {
    let lab = Lab::new();
    lab.plane.post("plain", state_of(1, 1)).await.expect(200, "a tenant with nothing to run");
    let plain = lab.plane.get(&format!("{API}/tenants/plain")).await.json();
    assert!(!plain["status"]["conditions"].to_string().contains("Drifted"), "{plain}");

    let prod = lab.tenant_with("prod", |it| it.drift_every = Some(Duration::from_hours(1))).await;
    lab.plane.post("prod", state_of(1, 1)).await.expect(200, "a state");
    let (status, reason, message) = drifted(&lab).await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "NotEvaluated"));
    assert!(message.starts_with("never evaluated"), "{message}");

    let run = lab.run(&prod, Operation::Drift).await;
    lab.ended(&prod, &run).await;
    let (status, reason, message) = drifted(&lab).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "InSync"), "{message}");

    let script = Script::recorded(Tool::OpenTofu, "drift-plan-refresh-only-lock-false-json").exit(2);
    lab.executor.set_script(None, Stage::Plan, script);
    let run = lab.run(&prod, Operation::Drift).await;
    let record = lab.ended(&prod, &run).await;
    let (status, reason, message) = drifted(&lab).await;
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Drifted"));
    let drift = &record.facts().drift;
    assert!(message.starts_with(&format!("{} resource", drift.len())), "{message}");
    assert!(message.contains(&drift[0].address) && message.contains(run.as_str()), "{message}");

    lab.plane.post("prod", state_of(2, 1)).await.expect(200, "another state");
    let (status, _, message) = drifted(&lab).await;
    assert!(status == "Unknown" && message.contains("the state has changed"), "{message}");

    lab.executor.set_script(None, Stage::Plan, Script::default().exit(1));
    let run = lab.run(&prod, Operation::Drift).await;
    lab.ended(&prod, &run).await;
    let (status, _, message) = drifted(&lab).await;
    assert!(status == "Unknown" && message.contains(&format!("{run} is Failed")), "{message}");

    lab.hold(Stage::Plan, Script::default(), "go", 0);
    let busy = lab.run(&prod, Operation::Plan).await;
    lab.job(&busy, Stage::Plan).await;
    lab.plane.clock.advance(Duration::from_hours(2));
    lab.plane.plane().runs.look_for_drift().await.unwrap();
    let (status, reason, message) = drifted(&lab).await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "NotEvaluated"));
    assert!(message.contains(&format!("the run {busy} is under way")), "{message}");
    lab.executor.open_gate("go");
}

#[tokio::test]
async fn what_was_created_and_not_recorded_is_told_until_it_is_seen_to() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    lab.executor.set_script(None, Stage::Apply, Script::lines([created(0), created(1)]).exit(1));
    let run = lab.run(&prod, Operation::Apply).await;
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Failed);
    let block = "import {\n  to = terraform_data.it[0]\n  id = \"id-0\"\n}";
    let found = condition(&lab, "UnrecordedResources").await.expect("it is told");
    assert_eq!((&found["status"], &found["reason"]), (&"True".into(), &"NotInState".into()));
    let message = found["message"].as_str().unwrap();
    assert!(message.contains(block) && message.contains(run.as_str()), "{message}");
    let path = format!("{API}/namespaces/prod/runs/{run}");
    let shown = lab.plane.get(&path).await.json();
    assert_eq!(shown["status"]["unrecorded"][1]["id"], "id-1");
    assert_eq!(shown["status"]["conditions"][0]["type"], "UnrecordedResources");
    assert!(shown["status"]["conditions"][0]["message"].as_str().unwrap().contains(block));

    // One of them is in the state now.
    lab.plane.post("prod", state_of(1, 1)).await.expect(200, "a state");
    lab.plane.plane().runs.accepted(&prod).await;
    let found = condition(&lab, "UnrecordedResources").await.expect("the other is not");
    assert!(!found["message"].as_str().unwrap().contains(block), "{found}");
    let dismissed =
        lab.plane.send("POST", &format!("{path}/dismiss"), "").await.expect(200, "dismissed").json();
    assert_eq!(dismissed["status"].get("unrecorded"), None);
    assert_eq!(condition(&lab, "UnrecordedResources").await, None);
}
