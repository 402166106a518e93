//! Encrypted states: their plaintext is had into memory, and nowhere else.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::runs::executor::Answer as Told;
use rezus_core::runs::workspace::{SecretSource, Workspace};
use rezus_core::runs::{Operation, Phase, SecretText, Stage};
use rezus_testkit::fake::Script;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::lab::{Lab, plan_of};

/// The commands that a real tofu was given, and what it said.
fn recorded() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rezus-testkit/recordings/opentofu-1.12.6/encryption-commands.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A command of those.
pub(crate) fn step(name: &str) -> Value {
    recorded().into_iter().find(|it| it["step"] == name).unwrap_or_else(|| panic!("{name} was recorded"))
}

/// Recorded pulls, and the status, reason and part of the message of `SpecAvailable` that each gives.
pub(crate) const PULLS: [(&str, &str, &str, &str); 11] = [
    ("state pull", "True", "Projected", ""),
    ("state pull without TF_ENCRYPTION", "False", "Encrypted", "its key is not here"),
    ("state pull with the wrong passphrase", "False", "DecryptFailed", "the key does not fit"),
    ("state pull with a malformed TF_ENCRYPTION", "False", "DecryptFailed", "exit code 1"),
    ("state pull with a short passphrase", "False", "DecryptFailed", "a key that cannot be used"),
    ("state pull with the old key only", "False", "DecryptFailed", "the key does not fit"),
    ("state pull with the new key", "True", "Projected", ""),
    ("outer serial raised by hand: state pull", "False", "DecryptFailed", "serial or lineage was changed"),
    ("outer lineage changed by hand: state pull", "False", "DecryptFailed", "serial or lineage was changed"),
    ("outer serial and lineage removed: state pull", "True", "Projected", ""),
    ("one bit of the ciphertext flipped: state pull", "False", "DecryptFailed", "was tampered with"),
];

/// Has `state pull` say what it said then.
fn answer_as(lab: &Lab, step: &Value) {
    let (key, text) = (step["TF_ENCRYPTION"].as_str().map(|key| key.trim_end().to_owned()), step.clone());
    lab.executor.answer(move |query| {
        let given = query.environment.get("TF_ENCRYPTION").map(SecretText::reveal);
        assert_eq!(given, key.as_deref(), "the key goes by environment");
        assert!(query.arguments.iter().all(|word| !word.contains("passphrase")));
        let is_pull = query.arguments == ["state", "pull"];
        let said = |member: &str| if is_pull { text[member].as_str().unwrap_or_default() } else { "" };
        Ok(Told {
            code: Some(if is_pull { i32::try_from(text["exit"].as_i64().unwrap()).unwrap() } else { 0 }),
            stdout: said("stdout").as_bytes().to_vec().into(),
            stderr: SecretText::new(said("stderr").to_owned()),
        })
    });
}

/// The tenant's condition of this type, once it is not being found out any more.
async fn spec_available(lab: &Lab, tenant: &str) -> (String, String, String) {
    let path = format!("/apis/rezuscloud.io/v1alpha1/tenants/{tenant}");
    let settled = async {
        loop {
            let object = lab.plane.get(&path).await.expect(200, "the tenant").json();
            let conditions = object["status"]["conditions"].as_array().unwrap().clone();
            let found = conditions.iter().find(|it| it["type"] == "SpecAvailable").unwrap();
            if found["reason"] != "Decrypting" {
                let text = |member: &str| found[member].as_str().unwrap_or_default().to_owned();
                return (text("status"), text("reason"), text("message"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), settled).await.expect("it is found out in time")
}

#[tokio::test]
async fn each_recorded_envelope_has_its_own_condition() {
    let lab = Lab::new();
    let keys = TempDir::new().unwrap();
    for (place, (name, status, reason, message)) in PULLS.into_iter().enumerate() {
        let step = step(name);
        let tenant = format!("t{place}");
        let key = step["TF_ENCRYPTION"].as_str().map(|key| {
            let path = keys.path().join(&tenant);
            std::fs::write(&path, key).unwrap();
            path
        });
        lab.tenant_with(&tenant, |it| {
            let source = key.map(|path| ("TF_ENCRYPTION".to_owned(), SecretSource::File(path)));
            it.secret_environment.extend(source);
        })
        .await;
        answer_as(&lab, &step);
        let envelope = step["state in the backend afterwards"].as_str().unwrap().to_owned();
        lab.plane.post(&tenant, envelope).await.expect(200, "an envelope");
        let found = spec_available(&lab, &tenant).await;
        assert_eq!((found.0.as_str(), found.1.as_str()), (status, reason), "{name}: {found:?}");
        assert!(found.2.contains(message), "{name}: {found:?}");
        let object = lab.plane.get(&format!("/apis/rezuscloud.io/v1alpha1/tenants/{tenant}")).await.json();
        let kinds: Vec<_> =
            object["status"]["conditions"].as_array().unwrap().iter().map(|it| it["type"].clone()).collect();
        assert!(
            kinds.contains(&Value::from("StateEncrypted"))
                && !kinds.contains(&Value::from("StateUnencrypted"))
        );
        if status == "True" {
            let listed = lab.plane.get(&format!("/rezus/v1/tenants/{tenant}/resources")).await;
            let plain: Value = serde_json::from_str(step["stdout"].as_str().unwrap()).unwrap();
            let instances = plain["resources"][0]["instances"].as_array().unwrap();
            assert_eq!(listed.expect(200, "its resources").items().len(), instances.len());
            nowhere_on_disk(&lab, instances);
        }
    }
}

/// Looks for the values of instances in all files of the data.
fn nowhere_on_disk(lab: &Lab, instances: &[Value]) {
    let ids: Vec<&str> = instances.iter().map(|it| it["attributes"]["id"].as_str().unwrap()).collect();
    assert!(!ids.is_empty());
    for file in std::fs::read_dir(lab.plane.directory()).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for id in &ids {
            let is_in = bytes.windows(id.len()).any(|window| window == id.as_bytes());
            assert!(!is_in, "{} holds plaintext", path.display());
        }
    }
}

#[tokio::test]
async fn back_to_plain_is_plain() {
    let lab = Lab::new();
    let state = step("apply, encrypted back to plain")["state in the backend afterwards"]
        .as_str()
        .unwrap()
        .to_owned();
    lab.plane.post("prod", state).await.expect(200, "a state in clear");
    let object = lab.plane.get("/apis/rezuscloud.io/v1alpha1/tenants/prod").await.json();
    let conditions = object["status"]["conditions"].to_string();
    assert!(
        conditions.contains("StateUnencrypted") && !conditions.contains("StateEncrypted"),
        "{conditions}"
    );
}

#[tokio::test]
async fn a_snapshot_of_an_operation_under_way_is_not_decrypted() {
    let lab = Lab::new();
    let keys = TempDir::new().unwrap();
    let step = step("state pull");
    std::fs::write(keys.path().join("key"), step["TF_ENCRYPTION"].as_str().unwrap()).unwrap();
    let source = SecretSource::File(keys.path().join("key"));
    lab.tenant_with("prod", |it| {
        it.secret_environment.insert("TF_ENCRYPTION".to_owned(), source);
    })
    .await;
    answer_as(&lab, &step);
    let envelope = step["state in the backend afterwards"].as_str().unwrap().to_owned();
    lab.plane.lock("prod", "apply", crate::lock::APPLY).await.expect(200, "a lock");
    lab.plane.post_under("prod", "apply", envelope).await.expect(200, "a snapshot");
    for _ in 0..20 {
        lab.plane.get("/apis/rezuscloud.io/v1alpha1/tenants/prod").await.expect(200, "the tenant");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(lab.executor.queries().len(), 0);
    lab.plane.unlock("prod", "apply").await.expect(200, "the end");
    assert_eq!(spec_available(&lab, "prod").await.1, "Projected");
}

/// Creates a tenant whose state is encrypted, and its plans are not.
async fn encrypted_tenant(lab: &Lab, keys: &TempDir) -> TenantName {
    std::fs::write(keys.path().join("key"), "method \"aes_gcm\" \"m\" {}").unwrap();
    let source = SecretSource::File(keys.path().join("key"));
    let encrypts = |it: &mut Workspace| {
        it.secret_environment.insert("TF_ENCRYPTION".to_owned(), source);
    };
    lab.tenant_with("prod", encrypts).await
}

#[tokio::test]
async fn a_plan_in_clear_of_an_encrypted_state_is_not_kept_but_made_again() {
    let lab = Lab::new();
    let keys = TempDir::new().unwrap();
    let prod = encrypted_tenant(&lab, &keys).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    let cases = [
        (plan_of(2), Some("1"), Phase::Applied, "Completed", ""),
        (plan_of(3), Some("1"), Phase::Stale, "PlanChanged", "changes something else"),
        (plan_of(2), Some("2"), Phase::Stale, "PlanChanged", "to other values"),
        (plan_of(2), None, Phase::Failed, "PlanUnreadable", "does not show"),
    ];
    for (again, value, phase, reason, message) in cases {
        show_value(&lab, Some("1"));
        let run = lab.run(&prod, Operation::Apply).await;
        let waiting = lab.until(&prod, &run, Phase::AwaitingApproval).await;
        assert!(waiting.facts().plan_digest.is_some());
        lab.executor.set_script(None, Stage::PlanAgain, again);
        lab.executor.set_script(None, Stage::Apply, Script::default());
        show_value(&lab, value);
        let applies = || lab.executor.jobs().iter().filter(|job| job.stage == Stage::Apply).count();
        let before = applies();
        lab.plane.plane().runs.approve(&prod, &run, "bob").await.unwrap();
        let ended = lab.ended(&prod, &run).await;
        assert_eq!((ended.phase(), ended.facts().reason.as_deref()), (phase, Some(reason)));
        assert!(ended.facts().message.as_deref().unwrap().contains(message), "{ended:?}");
        assert_eq!(applies() > before, phase == Phase::Applied);
        assert!(!serde_json::to_string(&ended).unwrap().contains("hunter"));
    }
}

/// Has the program show a plan with this value, made at another time each time; or nothing.
fn show_value(lab: &Lab, value: Option<&str>) {
    let (value, times) = (value.map(str::to_owned), AtomicU64::new(0));
    lab.executor.answer(move |query| {
        let shown = value.as_ref().filter(|_| query.arguments[0] == "show").map(|value| {
            let after = json!({ "password": format!("hunter{value}") });
            let change = json!({ "actions": ["create"], "before": null, "after": after });
            let at = times.fetch_add(1, Ordering::Relaxed);
            json!({
                "timestamp": format!("at {at}"),
                "resource_changes": [{ "address": "terraform_data.it[0]", "change": change }],
            })
            .to_string()
        });
        let stdout = shown.unwrap_or_default().into_bytes().into();
        Ok(Told { code: Some(0), stdout, stderr: SecretText::new(String::new()) })
    });
}

#[tokio::test]
async fn a_plan_that_cannot_be_compared_later_does_not_wait() {
    let lab = Lab::new();
    let keys = TempDir::new().unwrap();
    let prod = encrypted_tenant(&lab, &keys).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    show_value(&lab, None);
    let run = lab.run(&prod, Operation::Apply).await;
    let ended = lab.ended(&prod, &run).await;
    assert_eq!((ended.phase(), ended.facts().reason.as_deref()), (Phase::Failed, Some("PlanUnreadable")));
}

#[tokio::test]
async fn what_a_plan_changes_does_not_outlive_the_server() {
    let lab = Lab::new();
    let keys = TempDir::new().unwrap();
    let prod = encrypted_tenant(&lab, &keys).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    show_value(&lab, Some("1"));
    let run = lab.run(&prod, Operation::Apply).await;
    lab.until(&prod, &run, Phase::AwaitingApproval).await;
    let lab = lab.killed().await;
    lab.plane.plane().runs.take_over().await;
    lab.plane.plane().runs.approve(&prod, &run, "bob").await.unwrap();
    let ended = lab.ended(&prod, &run).await;
    assert_eq!((ended.phase(), ended.facts().reason.as_deref()), (Phase::Stale, Some("PlanForgotten")));
    assert!(lab.executor.jobs().iter().all(|job| job.stage == Stage::Plan));
}
