//! Runs as Kubernetes objects: made, shown, watched, approved and cancelled.

use std::sync::Arc;

use rezus_core::client::{RunSpec, RunStatus, StateVersionSpec};
use rezus_core::runs::workspace::{ConfigurationSource, TenantSettings, Workspace};
use rezus_core::runs::{Approval, Operation, Phase, RunName, Stage};
use rezus_testkit::fake::{OnInterrupt, Script};
use serde_json::{Value, json};

use super::lab::{Lab, created, plan_of, state_of};
use crate::access::people::{Closed, FOREIGN, OWN};
use crate::answer::Answer;
use crate::client_types::{members, of_type};

pub(super) const API: &str = "/apis/rezuscloud.io/v1alpha1";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// A run to be made.
#[expect(clippy::needless_pass_by_value, reason = "made in place by whoever calls it")]
pub(super) fn manifest(metadata: Value, spec: Value) -> String {
    json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Run", "metadata": metadata, "spec": spec })
        .to_string()
}

async fn make(lab: &Lab, metadata: Value, spec: Value) -> Answer {
    lab.plane
        .send("POST", &format!("{API}/namespaces/prod/runs?fieldValidation=Strict"), manifest(metadata, spec))
        .await
}

async fn act(lab: &Lab, run: &str, act: &str) -> Answer {
    lab.plane.send("POST", &format!("{API}/namespaces/prod/runs/{run}/{act}"), "").await
}

async fn get(lab: &Lab, run: &str) -> Value {
    lab.plane.get(&format!("{API}/namespaces/prod/runs/{run}")).await.expect(200, run).json()
}

fn name(run: &Value) -> RunName {
    RunName::parse(run["metadata"]["name"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn a_run_is_made_watched_approved_and_shown_to_the_end() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let following = tokio::spawn(lab.plane.plane().catalogue.clone().run());
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    lab.hold(Stage::Apply, Script::lines([created(0), created(1)]), "saved", 0);
    let mut events =
        lab.plane.watch(&format!("{API}/namespaces/prod/runs?watch=true"), "application/json").await;
    let spec = json!({
        "operation": "apply", "variables": { "count": "2" }, "targets": ["terraform_data.it"],
        "replace": ["terraform_data.it[0]"], "reason": "more of them", "requestedBy": "somebody else",
    });
    let made = make(&lab, json!({ "generateName": "grow-", "labels": { "team": "ops" } }), spec)
        .await
        .expect(201, "made")
        .json();
    let run = name(&made);
    assert!(run.as_str().starts_with("grow-") && run.as_str().len() == 10, "{run}");
    let metadata = &made["metadata"];
    assert_eq!(
        metadata["labels"],
        json!({ "team": "ops", "rezuscloud.io/tenant": "prod", "rezuscloud.io/operation": "apply" })
    );
    assert_eq!((&metadata["namespace"], &metadata["generation"]), (&"prod".into(), &1.into()));
    assert!(metadata["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_ne!(made["spec"]["requestedBy"], "somebody else");
    assert_eq!(made["spec"]["approval"], "manual");

    let waiting = lab.until(&prod, &run, Phase::AwaitingApproval).await;
    assert_eq!(get(&lab, run.as_str()).await["metadata"]["uid"], *waiting.facts().uid);
    let approved = act(&lab, run.as_str(), "approve").await.expect(200, "approved").json();
    assert!(approved["status"]["approvedBy"].is_string(), "{approved}");
    act(&lab, run.as_str(), "approve").await.expect(200, "approved before");
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "its-lock").await;
    // Who holds the lock lives, and that is said.
    let lock = lab.plane.get("/rezus/v1/locks").await.items().remove(0);
    assert_eq!((&lock["holder"], &lock["run"]), (&"alive".into(), &run.as_str().into()));
    let locks = "/rezus/v1/tenants/prod/locks";
    let refused = lab.plane.send("DELETE", locks, "").await.expect(409, "it lives").message();
    assert!(refused.contains(run.as_str()) && refused.contains("force"), "{refused}");
    lab.plane.unlock("prod", "its-lock").await.expect(409, "nor by its ID");
    assert_eq!(lab.as_program(&job, "POST", "?ID=its-lock", state_of(1, 2)).await, 200);
    lab.executor.open_gate("saved");
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Applied, "{record:?}");

    // It is kept a moment before it is shown.
    let shown = loop {
        let shown = get(&lab, run.as_str()).await;
        if shown["status"]["phase"] == "Applied" {
            break shown;
        }
    };
    let status = &shown["status"];
    assert_eq!(status["summary"]["add"], 2);
    assert_eq!((&status["stateVersionAfter"], &status["tool"]), (&1.into(), &"tofu".into()));
    let phases = async {
        let mut phases = Vec::new();
        while phases.last().is_none_or(|last| last != "Applied") {
            let event = events.next().await;
            let phase = event["object"]["status"]["phase"].as_str().unwrap().to_owned();
            if phases.last() != Some(&phase) {
                phases.push(phase);
            }
        }
        phases
    };
    let phases = phases.await;
    assert!(phases.contains(&"AwaitingApproval".to_owned()), "{phases:?}");
    following.abort();

    let version = lab.plane.get(&format!("{API}/namespaces/prod/stateversions/v1")).await.json();
    let version: StateVersionSpec = serde_json::from_value(version["spec"].clone()).unwrap();
    assert_eq!(version.run.as_deref(), Some(run.as_str()));
    // Read into the types that clients have, and written again as it was.
    let spec: RunSpec = serde_json::from_value(shown["spec"].clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), shown["spec"]);
    let read: RunStatus = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), *status);
    let mut seen = std::collections::BTreeSet::new();
    members("", &shown["spec"], &mut seen);
    let variables: Vec<String> =
        seen.iter().filter(|path| path.starts_with(".variables.")).cloned().collect();
    for path in &variables {
        seen.remove(path);
    }
    assert_eq!(seen, of_type::<RunSpec>());
}

#[tokio::test]
async fn tables_say_how_far_runs_are_and_what_they_change() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    let planned =
        make(&lab, json!({ "name": "a" }), json!({ "operation": "plan" })).await.expect(201, "a").json();
    lab.ended(&prod, &name(&planned)).await;
    lab.hold(Stage::Plan, Script::default(), "never", 0);
    let busy =
        make(&lab, json!({ "name": "b" }), json!({ "operation": "drift" })).await.expect(201, "b").json();
    lab.until(&prod, &name(&busy), Phase::Planning).await;
    lab.plane.clock.advance(std::time::Duration::from_secs(90));
    let table = async |target: String| {
        let peer = crate::in_process::local();
        lab.plane.send_as(peer, "GET", &target, &[("accept", TABLE)], "").await.expect(200, "table").json()
    };
    let runs = table(format!("{API}/namespaces/prod/runs")).await;
    let cells: Vec<&Value> = runs["rows"].as_array().unwrap().iter().map(|row| &row["cells"]).collect();
    let by = &planned["spec"]["requestedBy"];
    assert_eq!(
        cells,
        [
            &json!(["a", "plan", "Planned", "+2 ~0 -0", "90s", "90s", "0s", "<none>", by]),
            &json!(["b", "drift", "Planning", "<unknown>", "90s", "90s", "90s", "<none>", by]),
        ]
    );
    let planning = lab.plane.get(&format!("{API}/runs?fieldSelector=status.phase%3DPlanning")).await.items();
    assert_eq!(planning.len(), 1);
    let tenants = table(format!("{API}/tenants/prod")).await;
    let columns = tenants["columnDefinitions"].as_array().unwrap().clone();
    let cell = |column: &str| {
        let place = columns.iter().position(|one| one["name"] == column).unwrap();
        tenants["rows"][0]["cells"][place].clone()
    };
    assert_eq!((cell("Runs"), cell("Last-Run")), (2.into(), "Planned".into()));
    lab.executor.open_gate("never");
}

#[tokio::test]
async fn a_run_that_moves_projects_nothing() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.plane.post("prod", state_of(1, 3)).await.expect(200, "a state");
    lab.plane.get(&format!("{API}/machines")).await.expect(200, "machines");
    let projections = || async {
        let metrics = lab.plane.get("/metrics").await.expect(200, "metrics");
        let text = String::from_utf8(metrics.body.to_vec()).unwrap();
        text.lines().find_map(|line| line.strip_prefix("rezus_projections_total ")).map(str::to_owned)
    };
    let before = projections().await;
    let run = make(&lab, json!({}), json!({ "operation": "drift" })).await.expect(201, "made").json();
    lab.ended(&prod, &name(&run)).await;
    let shown = get(&lab, name(&run).as_str()).await;
    assert_eq!(shown["status"]["phase"], "Planned");
    lab.plane.get(&format!("{API}/machines")).await.expect(200, "machines");
    assert_eq!(projections().await, before);
}

#[tokio::test]
async fn what_is_not_made_says_why_and_makes_nothing() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.hold(Stage::Plan, Script::default(), "go", 0);
    let plan = json!({ "operation": "plan" });
    let target = format!("{API}/namespaces/prod/runs?dryRun=All");
    let dry = lab.plane.send("POST", &target, manifest(json!({ "name": "dry" }), plan.clone()));
    let dry = dry.await.expect(201, "a rehearsal").json();
    assert_eq!((&dry["metadata"]["name"], &dry["status"]["phase"]), (&"dry".into(), &"Pending".into()));
    assert_eq!(lab.plane.get(&format!("{API}/runs")).await.items().len(), 0);

    make(&lab, json!({ "name": "taken" }), plan.clone()).await.expect(201, "made");
    let taken = make(&lab, json!({ "name": "taken" }), plan.clone()).await.expect(409, "taken").json();
    assert_eq!(taken["reason"], "AlreadyExists");
    assert_eq!(taken["message"], "runs.rezuscloud.io \"taken\" already exists");
    let strict = make(&lab, json!({ "name": "x" }), json!({ "operation": "plan", "aproval": 1 })).await;
    assert!(strict.expect(400, "strict").message().contains("unknown field \"spec.aproval\""));
    let path = format!("{API}/namespaces/prod/runs");
    let warned = lab.plane.send(
        "POST",
        &path,
        manifest(json!({ "name": "w" }), json!({ "operation": "plan", "aproval": 1 })),
    );
    let warned = warned.await.expect(201, "warned");
    assert_eq!(warned.header("warning"), Some("299 - \"unknown field \\\"spec.aproval\\\"\""));
    let invalid =
        make(&lab, json!({ "name": "x" }), json!({ "operation": "fly" })).await.expect(422, "invalid").json();
    assert_eq!(invalid["details"]["causes"][0]["field"], "spec.operation");
    let peer = crate::in_process::local;
    let yaml =
        lab.plane.send_as(peer(), "POST", &path, &[("content-type", "application/yaml")], "kind: Run").await;
    yaml.expect(415, "YAML").message();
    lab.plane.send("POST", &path, vec![b' '; 300_000]).await.expect(413, "too long").message();
    let elsewhere = lab
        .plane
        .send("POST", &format!("{API}/namespaces/nobody/runs"), manifest(json!({}), plan.clone()))
        .await;
    elsewhere.expect(404, "no tenant").message();
    lab.plane
        .send("POST", &format!("{API}/runs"), manifest(json!({}), plan))
        .await
        .expect(405, "of no tenant")
        .message();
    lab.executor.open_gate("go");
    assert_eq!(lab.plane.plane().runs.of(&prod).await.unwrap().len(), 2);
}

#[tokio::test]
async fn runs_are_cancelled_and_neither_changed_nor_deleted() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let dies = OnInterrupt::Exit { says: Vec::new(), code: 1 };
    lab.executor.set_script(None, Stage::Plan, Script::default().wait("never").on_interrupt(dies));
    let run =
        make(&lab, json!({ "name": "r" }), json!({ "operation": "plan" })).await.expect(201, "made").json();
    lab.job(&name(&run), Stage::Plan).await;
    act(&lab, "r", "approve").await.expect(409, "it waits for nobody").message();
    act(&lab, "r", "dismiss").await.expect(409, "it has not ended").message();
    act(&lab, "r", "cancel").await.expect(200, "cancelled");
    assert_eq!(lab.ended(&prod, &name(&run)).await.phase(), Phase::Cancelled);
    let again = act(&lab, "r", "cancel").await.expect(200, "it has ended").json();
    assert_eq!(again["status"]["phase"], "Cancelled");
    act(&lab, "nobody", "cancel").await.expect(404, "no run").message();
    let one = format!("{API}/namespaces/prod/runs/r");
    for (method, target, allowed) in [
        ("GET", format!("{one}/approve"), "POST"),
        ("GET", format!("{one}/cancel"), "POST"),
        ("POST", format!("{one}/log"), "GET, HEAD"),
        ("DELETE", one.clone(), "GET, HEAD"),
        ("PATCH", one.clone(), "GET, HEAD"),
        ("PUT", format!("{one}/status"), "GET, HEAD"),
        ("DELETE", format!("{API}/namespaces/prod/runs"), "GET, HEAD, POST"),
    ] {
        let refused = lab.plane.send(method, &target, "{}").await.expect(405, &target);
        assert_eq!(refused.header("allow"), Some(allowed), "{method} {target}");
        refused.message();
    }
}

#[tokio::test]
async fn a_lock_whose_run_has_ended_is_said_to_be_so() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    lab.hold(Stage::Apply, Script::default(), "go", 0);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "held").await;
    let forced =
        lab.plane.send("DELETE", "/rezus/v1/tenants/prod/locks?force=true", "").await.expect(200, "by force");
    assert_eq!(forced.items()[0]["holder"], "alive");
    lab.plane.lock("prod", "somebodys", crate::lock::APPLY).await.expect(200, "a client's");
    let lock = lab.plane.get("/rezus/v1/tenants/prod/locks").await.items().remove(0);
    assert_eq!((&lock["holder"], &lock["run"]), (&"unknown".into(), &Value::Null));
    lab.plane.send("DELETE", "/rezus/v1/tenants/prod/locks", "").await.expect(200, "a client's lock");
    lab.executor.open_gate("go");
    lab.ended(&prod, &run).await;
}

/// Gives both tenants something to run, the policy of which is this.
async fn with_policy(approval: Approval) -> Closed {
    let closed = Closed::new().await;
    for tenant in [OWN, FOREIGN] {
        let mut workspace = Workspace::of(ConfigurationSource::Directory("/nowhere".into()));
        workspace.approval = approval;
        let settings = TenantSettings { workspace: Some(workspace), ..TenantSettings::default() };
        closed.plane.plane().run_store.set_settings(&tenant.parse().unwrap(), &settings, None).await.unwrap();
    }
    closed
}

#[tokio::test]
async fn to_destroy_and_to_pass_a_policy_by_takes_an_admin() {
    let path = format!("{API}/namespaces/{OWN}/runs");
    let destroy = json!({ "operation": "destroy" });
    let auto = json!({ "operation": "apply", "approval": "auto" });
    for (who, policy, spec, code) in [
        ("edit-own", Approval::Manual, json!({ "operation": "apply" }), 201),
        ("edit-own", Approval::Manual, destroy.clone(), 403),
        ("edit-all", Approval::Auto, destroy.clone(), 403),
        ("admin-own", Approval::Manual, destroy, 201),
        ("edit-own", Approval::Manual, auto.clone(), 403),
        ("edit-own", Approval::Auto, auto.clone(), 201),
        ("admin-own", Approval::Manual, auto, 201),
    ] {
        let closed = with_policy(policy).await;
        let answer = closed.ask(who, "POST", &path, manifest(json!({ "name": "r" }), spec.clone())).await;
        let answer = answer.expect(code, &format!("{who}: {spec}")).json();
        if code == 403 {
            let message = answer["message"].as_str().unwrap();
            let words =
                format!("runs.rezuscloud.io is forbidden: User \"{who}\" cannot create resource \"runs\"");
            assert!(message.starts_with(&words), "{message}");
            continue;
        }
        assert_eq!(answer["spec"]["requestedBy"], who);
        let is_destroy = spec["operation"] == "destroy";
        let approve = closed.ask("edit-own", "POST", &format!("{path}/r/approve"), "").await;
        assert_eq!(approve.code, if is_destroy { 403 } else { 409 }, "{spec}");
        closed
            .ask("edit-own", "POST", &format!("{path}/r/cancel"), "")
            .await
            .expect(200, "an editor cancels");
        closed.plane.plane().auth.trail().flush().await;
        let filter = rezus_core::access::AuditFilter { limit: 10, ..Default::default() };
        let rows = rezus_core::access::AccountStore::audit(&closed.accounts, &filter).await.unwrap();
        let actions: Vec<_> = rows.iter().map(|row| (row.action.as_str(), row.object.as_str())).collect();
        for action in ["run.create", "run.approve", "run.cancel"] {
            assert!(actions.contains(&(action, "r")), "{actions:?}");
        }
    }
    let closed = Arc::new(with_policy(Approval::Manual).await);
    let listed = closed.ask("view-own", "GET", &format!("{API}/runs"), "").await.expect(200, "runs");
    assert!(listed.items().is_empty());
}
