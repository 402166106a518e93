//! From the first plan to the end of all.

use serde_json::{Value, json};

use super::lab::{Lab, MACHINES, why};

async fn machines(lab: &Lab) -> Vec<String> {
    let list = lab.kube("/machines").await.expect(200, "machines").items();
    list.iter().map(|it| it["spec"]["name"].as_str().unwrap().to_owned()).collect()
}

fn counts(run: &Value) -> (u64, u64, u64, u64) {
    let count = |member: &str| run["status"]["summary"][member].as_u64().unwrap();
    (count("add"), count("change"), count("remove"), count("replace"))
}

#[tokio::test]
async fn machines_come_and_grow_and_are_replaced_and_go() {
    let Some(lab) = Lab::new("life", MACHINES).await else { return };
    let plan = lab.run("plan", &["--wait"]).await;
    assert_eq!(plan.code, 2, "{plan:?}");
    let plan = lab.show(&plan.run()).await;
    assert_eq!((why(&plan).0, counts(&plan)), ("Planned", (2, 0, 0, 0)));
    let group = json!([{ "name": "pool", "add": 2, "remove": 0, "replace": 0 }]);
    assert_eq!(plan["status"]["summary"]["nodeGroups"], group);
    assert_eq!((lab.versions().await.len(), lab.locks().await.len()), (0, 0), "a plan changes nothing");

    let apply = lab.run("apply", &["--wait", "--reason", "first machines"]).await;
    assert_eq!(apply.code, 2, "it waits for approval: {apply:?}");
    let run = apply.run();
    assert_eq!(why(&lab.show(&run).await).0, "AwaitingApproval");
    assert_eq!(lab.locks().await, Vec::<Value>::new(), "what waits holds no lock");
    lab.done(&["run", "approve", &lab.tenant, &run, "--wait"]).await;
    // At once: what is applied is shown.
    assert_eq!(machines(&lab).await, ["w-0", "w-1"]);
    let applied = lab.show(&run).await;
    assert_eq!(why(&applied), ("Applied", "Completed", "2 added, 0 changed, 0 destroyed"));
    assert_eq!(applied["status"]["approvedBy"], "admin");
    assert_eq!(applied["status"]["stateVersionAfter"], 1);
    assert_eq!((lab.versions().await.len(), lab.locks().await.len()), (1, 0));
    let version: Value = lab.kube("/stateversions/v1").await.expect(200, "the version").json();
    assert_eq!(version["spec"]["run"], run.as_str());

    lab.done(&["tenant", "configure", &lab.tenant, "--var", "workers=4"]).await;
    let grown = lab.apply(&[]).await;
    assert_eq!((why(&grown).0, counts(&grown)), ("Applied", (2, 0, 0, 0)));
    assert_eq!(machines(&lab).await, ["w-0", "w-1", "w-2", "w-3"]);

    let plan = lab.run("plan", &["--wait", "--var", "image=v2"]).await.run();
    let replaced = lab.show(&plan).await;
    assert_eq!(counts(&replaced), (4, 0, 4, 4));
    assert_eq!(replaced["status"]["summary"]["nodeGroups"][0]["replace"], 4, "{replaced}");
    let log = lab.log(&plan).await.unwrap();
    assert!(log.contains("terraform_data.worker[3]: Plan to replace (reason: cannot update)"), "{log}");

    let none = lab.run("apply", &["--wait"]).await;
    assert_eq!((none.code, why(&lab.show(&none.run()).await).1), (0, "NoChanges"));

    lab.done(&["tenant", "configure", &lab.tenant, "--protect", "destroy"]).await;
    let refused = lab.run("destroy", &[]).await;
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("--protect none"), "{}", refused.errors);
    lab.done(&["tenant", "configure", &lab.tenant, "--protect", "none"]).await;
    let destroyed = lab.run("destroy", &["--auto-approve", "--wait"]).await;
    assert_eq!(destroyed.code, 0, "{destroyed:?}");
    let destroyed = lab.show(&destroyed.run()).await;
    assert_eq!((why(&destroyed).0, counts(&destroyed)), ("Applied", (0, 0, 4, 0)));
    assert_eq!((machines(&lab).await, lab.resources().await), (Vec::new(), Vec::new()));
    assert_eq!(lab.locks().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_policy_of_auto_asks_nobody() {
    let Some(lab) = Lab::with("auto", MACHINES, &[], &["--approval", "auto"]).await else { return };
    let apply = lab.run("apply", &["--wait"]).await;
    assert_eq!(apply.code, 0, "{apply:?}");
    let shown = lab.show(&apply.run()).await;
    assert_eq!((why(&shown).0, &shown["status"]["approvedBy"]), ("Applied", &Value::Null));
    let group = json!([{ "name": "pool", "add": 2, "remove": 0, "replace": 0 }]);
    assert_eq!(shown["status"]["summary"]["nodeGroups"], group);
}

/// No built-in resource drifts: `terraform_data` is where its state says. So this is what is in sync, and what looks
/// like drift to the program's exit code and is none.
#[tokio::test]
async fn a_drift_check_takes_no_lock_and_leaves_no_version() {
    let Some(lab) = Lab::with("drift", MACHINES, &[], &["--approval", "auto"]).await else { return };
    assert_eq!(lab.run("apply", &["--wait"]).await.code, 0);
    let drifted = || async { lab.condition("Drifted").await.unwrap() };
    // Whoever holds the lock is in no way of it.
    let state = format!("/state/{}", lab.tenant);
    let info = crate::lock::info("a-laptop", crate::lock::APPLY);
    lab.send("LOCK", &state, info.clone()).await.expect(200, "LOCK");
    let check = lab.run("drift", &["--wait"]).await;
    assert_eq!((check.code, why(&lab.show(&check.run()).await).1), (0, "NoChanges"), "{check:?}");
    lab.send("UNLOCK", &state, info).await.expect(200, "UNLOCK");
    assert_eq!((drifted().await["reason"].as_str(), lab.versions().await.len()), (Some("InSync"), 1));

    // An output that was changed by hand: the program exits with 2, but nothing has drifted.
    let mut changed: Value = serde_json::from_str(&lab.done(&["state", "get", &lab.tenant]).await).unwrap();
    changed["serial"] = json!(changed["serial"].as_u64().unwrap() + 1);
    changed["outputs"]["image"]["value"] = json!("by hand");
    let file = lab.server.scratch().join("changed.tfstate");
    std::fs::write(&file, changed.to_string()).unwrap();
    lab.done(&["state", "push", &lab.tenant, file.to_str().unwrap()]).await;
    let check = lab.run("drift", &["--wait"]).await;
    let shown = lab.show(&check.run()).await;
    assert_eq!((shown["status"]["exitCode"].as_i64(), why(&shown).1), (Some(2), "NoChanges"), "{shown}");
    assert!(why(&shown).2.contains("outputs"), "{shown}");
    assert_eq!((check.code, drifted().await["reason"].as_str()), (0, Some("InSync")));
    assert_eq!(lab.versions().await.len(), 2, "a drift check leaves no version");

    // What the configuration would change counts only where that is asked for; no lock is taken for that either.
    lab.done(&["tenant", "configure", &lab.tenant, "--var", "workers=3"]).await;
    assert_eq!(lab.run("drift", &["--wait"]).await.code, 0);
    lab.done(&["tenant", "configure", &lab.tenant, "--drift-mode", "full"]).await;
    let info = crate::lock::info("a-laptop", crate::lock::APPLY);
    lab.send("LOCK", &state, info.clone()).await.expect(200, "LOCK");
    let check = lab.run("drift", &["--wait"]).await;
    lab.send("UNLOCK", &state, info).await.expect(200, "UNLOCK");
    let shown = lab.show(&check.run()).await;
    assert_eq!((check.code, why(&shown).1), (2, "PendingChanges"), "{shown}");
    let created = json!([{ "address": "terraform_data.worker[2]", "action": "create" }]);
    assert_eq!(shown["status"]["changes"], created);
    let told = drifted().await;
    assert_eq!((told["status"].as_str(), told["reason"].as_str()), (Some("True"), Some("PendingChanges")));
    assert!(told["message"].as_str().unwrap().ends_with("terraform_data.worker[2] (create)"), "{told}");
    assert_eq!(lab.versions().await.len(), 2, "nor does a full one");
}

#[tokio::test]
async fn who_may_edit_may_run_and_approve_but_not_destroy() {
    let Some(lab) = Lab::new("roles", MACHINES).await else { return };
    lab.done(&["user", "create", "ana", "--role", "edit", "--tenant", &lab.tenant]).await;
    let made = lab.done(&["token", "create", "--user", "ana", "--expires", "1d", "--note", "test"]).await;
    let token = made.lines().next().unwrap();
    let runs = format!("/apis/rezuscloud.io/v1alpha1/namespaces/{}/runs", lab.tenant);
    let make = |name: &str, spec: Value| {
        let (kind, metadata) = ("Run", json!({ "name": name }));
        let run = json!({
            "apiVersion": "rezuscloud.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
        });
        lab.send_as(token, "POST", &runs, run.to_string())
    };
    make("ours", json!({ "operation": "apply" })).await.expect(201, "an apply");
    lab.until("it waits", || async { (why(&lab.show("ours").await).0 == "AwaitingApproval").then_some(()) })
        .await;
    lab.send_as(token, "POST", &format!("{runs}/ours/approve"), "").await.expect(200, "consent");
    let applied = lab.ended("ours").await;
    assert_eq!((why(&applied).0, &applied["status"]["approvedBy"]), ("Applied", &json!("ana")));
    for spec in [json!({ "operation": "destroy" }), json!({ "operation": "apply", "approval": "auto" })] {
        let refused = make("not-ours", spec.clone()).await;
        assert_eq!(refused.code, 403, "{spec}");
        let message = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(message.contains("admin"), "{message}");
    }
    assert_eq!(machines(&lab).await.len(), 2);
    assert_eq!(lab.kube("/runs").await.items().len(), 1, "what is refused is no run");
}
