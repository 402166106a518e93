//! What a plan changes, one by one, as the run tells it.

use rezus_core::runs::{Operation, Phase, Stage};
use rezus_testkit::fake::Script;
use rezus_testkit::recording::Tool;
use serde_json::{Value, json};

use super::api::API;
use super::lab::{Lab, plan_of, state_of};

async fn status(lab: &Lab, run: &str) -> Value {
    let path = format!("{API}/namespaces/prod/runs/{run}");
    lab.plane.get(&path).await.expect(200, "the run").json()["status"].clone()
}

#[tokio::test]
async fn each_change_is_told_with_its_reason() {
    for tool in [Tool::OpenTofu, Tool::Terraform] {
        let lab = Lab::new();
        let prod = lab.tenant("prod").await;
        let script = Script::recorded(tool, "plan-json-replace-and-add").exit(2);
        lab.executor.set_script(None, Stage::Plan, script);
        let run = lab.run(&prod, Operation::Apply).await;
        lab.until(&prod, &run, Phase::AwaitingApproval).await;
        let status = status(&lab, run.as_str()).await;
        let why = "replace_because_cannot_update";
        let expected = json!([
            { "address": "local_file.inventory", "action": "replace", "reason": why },
            { "address": "terraform_data.worker[\"w-0\"]", "action": "replace", "reason": why },
            { "address": "terraform_data.worker[\"w-1\"]", "action": "replace", "reason": why },
            { "address": "terraform_data.worker[\"w-2\"]", "action": "create" },
        ]);
        assert_eq!((&status["changes"], status.get("changesOmitted")), (&expected, None), "{tool:?}");
    }
}

#[tokio::test]
async fn a_long_list_is_cut_and_says_so() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(203));
    let run = lab.run(&prod, Operation::Plan).await;
    lab.ended(&prod, &run).await;
    let status = status(&lab, run.as_str()).await;
    assert_eq!(status["changes"].as_array().unwrap().len(), 200);
    assert_eq!((&status["changesOmitted"], &status["summary"]["add"]), (&json!(3), &json!(203)));
}

#[tokio::test]
async fn a_secret_in_an_address_is_not_told() {
    const SECRET: &str = "canary-in-an-address-77";
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let outputs = format!(r#""outputs":{{"token":{{"value":"{SECRET}","type":"string","sensitive":true}}}}"#);
    lab.plane.post("prod", state_of(1, 1).replace(r#""outputs":{}"#, &outputs)).await.expect(200, "a state");
    let resource = json!({ "addr": format!("a.b[\"{SECRET}\"]"), "resource_type": "a" });
    let change = json!({ "resource": resource, "action": "replace", "reason": "tainted" });
    let event = json!({ "@level": "info", "@message": "x", "type": "planned_change", "change": change });
    lab.executor.set_script(None, Stage::Plan, Script::lines([event.to_string()]).exit(2));
    let run = lab.run(&prod, Operation::Plan).await;
    lab.ended(&prod, &run).await;
    let expected = json!([{
        "address": "a.b[\"(sensitive value)\"]", "action": "replace", "reason": "replace_because_tainted",
    }]);
    assert_eq!(status(&lab, run.as_str()).await["changes"], expected);
}
