//! What is known of encrypted states before and after they could be read: what runs left, and what is secret.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::runs::executor::{Answer, RunId};
use rezus_core::runs::workspace::SecretSource;
use rezus_core::runs::{Approval, MASK, Operation, Phase, RunName, RunRecord, SecretText, Stage};
use rezus_testkit::fake::Script;
use serde_json::Value;
use tempfile::TempDir;

use super::api::API;
use super::lab::{Lab, created, plan_of, state_of};

const SECRET: &str = "canary-of-an-encrypted-state";

/// An envelope; what it holds is what the key gives.
fn envelope(serial: u64) -> String {
    format!(
        r#"{{"serial":{serial},"lineage":"l","meta":{{"key_provider.pbkdf2.a":"e30="}},"encrypted_data":"c2VjcmV0","encryption_version":"v0"}}"#
    )
}

fn with_secret(state: &str) -> String {
    let output = format!(r#""outputs":{{"token":{{"value":"{SECRET}","type":"string","sensitive":true}}}}"#);
    state.replace(r#""outputs":{}"#, &output)
}

/// A plane, and what `state pull` gives: nothing where the key does not fit.
struct Vault {
    lab: Lab,
    plaintext: Arc<Mutex<Option<String>>>,
    keys: TempDir,
}

impl Vault {
    fn new(plaintext: Option<String>) -> Self {
        let lab = Lab::new();
        let plaintext = Arc::new(Mutex::new(plaintext));
        let held = Arc::clone(&plaintext);
        lab.executor.answer(move |query| {
            let plaintext = held.lock().unwrap().clone().filter(|_| query.arguments == ["state", "pull"]);
            let fails = plaintext.is_none() && query.arguments == ["state", "pull"];
            Ok(Answer {
                code: Some(i32::from(fails)),
                stdout: plaintext.unwrap_or_default().into_bytes().into(),
                stderr: SecretText::new("decryption failed for all provided methods".to_owned()),
            })
        });
        let keys = TempDir::new().unwrap();
        std::fs::write(keys.path().join("key"), "method \"aes_gcm\" \"m\" {}").unwrap();
        Self { lab, plaintext, keys }
    }

    /// What `state pull` gives from now on.
    fn holds(&self, plaintext: String) {
        *self.plaintext.lock().unwrap() = Some(plaintext);
    }

    /// A tenant whose key is here.
    async fn tenant(&self) -> TenantName {
        let source = SecretSource::File(self.keys.path().join("key"));
        let change = |it: &mut rezus_core::runs::workspace::Workspace| {
            it.approval = Approval::Auto;
            it.secret_environment.insert("TF_ENCRYPTION".to_owned(), source);
        };
        self.lab.tenant_with("prod", change).await
    }

    /// An apply that creates two resources, saves an envelope, and is killed.
    async fn killed_apply(&self, prod: &TenantName) -> RunName {
        self.lab.executor.set_script(None, Stage::Plan, plan_of(2));
        self.lab.hold(Stage::Apply, Script::lines([created(0), created(1)]), "never", 1);
        let run = self.lab.run(prod, Operation::Apply).await;
        let job = self.lab.job(&run, Stage::Apply).await;
        self.lab.lock_as_program(&job, "l").await;
        assert_eq!(self.lab.as_program(&job, "POST", "?ID=l", envelope(1)).await, 200);
        self.lab.executor.lose_supervisors();
        run
    }
}

/// The addresses that a run lists, once this is so.
async fn list_is(
    lab: &Lab,
    prod: &TenantName,
    run: &RunName,
    is_it: impl Fn(&RunRecord) -> bool,
) -> Vec<String> {
    let mut record = lab.ended(prod, run).await;
    let found = async {
        while !is_it(&record) {
            tokio::time::sleep(Duration::from_millis(2)).await;
            record = lab.ended(prod, run).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), found).await.expect("it is found out in time");
    record.facts().unrecorded.iter().map(|it| it.address.clone()).collect()
}

async fn condition(lab: &Lab) -> Option<(String, String, String)> {
    let tenant = lab.plane.get(&format!("{API}/tenants/prod")).await.expect(200, "the tenant").json();
    let conditions = tenant["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == "UnrecordedResources")?;
    let text = |member: &str| found[member].as_str().unwrap().to_owned();
    Some((text("status"), text("reason"), text("message")))
}

const BOTH: [&str; 2] = ["terraform_data.it[0]", "terraform_data.it[1]"];

#[tokio::test]
async fn what_an_envelope_may_lack_is_listed_until_it_was_read() {
    let vault = Vault::new(None);
    let (lab, prod) = (&vault.lab, vault.tenant().await);
    let run = vault.killed_apply(&prod).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Interrupted, "{record:?}");
    let message = record.facts().message.as_deref().unwrap();
    assert!(message.contains("the state could not be read when it ended"), "{message}");
    assert_eq!(list_is(lab, &prod, &run, |it| it.facts().unread).await, BOTH);
    let (status, reason, message) = condition(lab).await.expect("it is told");
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "StateNotRead"));
    assert!(message.contains(BOTH[0]) && !message.contains("import {"), "{message}");

    // The key is put right, and the state has one of them.
    vault.holds(state_of(1, 1));
    lab.plane.clock.advance(Duration::from_mins(11));
    lab.plane.lock("prod", "laptop", crate::lock::APPLY).await.expect(200, "a lock");
    lab.plane.unlock("prod", "laptop").await.expect(200, "its end");
    assert_eq!(list_is(lab, &prod, &run, |it| !it.facts().unread).await, BOTH[1..]);
    let (status, reason, message) = condition(lab).await.expect("it is told");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "NotInState"));
    assert!(message.contains("id = \"id-1\"") && !message.contains(BOTH[0]), "{message}");

    // Somebody else imports the other.
    vault.holds(state_of(2, 2));
    lab.plane.post("prod", envelope(2)).await.expect(200, "an import");
    assert!(list_is(lab, &prod, &run, |it| it.facts().unrecorded.is_empty()).await.is_empty());
    assert_eq!(condition(lab).await, None);
}

#[tokio::test]
async fn an_envelope_is_read_for_what_a_run_left_after_a_restart() {
    let vault = Vault::new(None);
    let prod = vault.tenant().await;
    let run = vault.killed_apply(&prod).await;
    assert_eq!(list_is(&vault.lab, &prod, &run, |it| it.facts().unread).await, BOTH);
    vault.holds(state_of(1, 2));
    let lab = vault.lab.killed().await;
    assert!(list_is(&lab, &prod, &run, |it| it.facts().unrecorded.is_empty()).await.is_empty());
    assert_eq!(condition(&lab).await, None);
}

#[tokio::test]
async fn an_apply_that_came_to_its_end_has_saved_what_it_created() {
    let vault = Vault::new(None);
    let (lab, prod) = (&vault.lab, vault.tenant().await);
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    lab.hold(Stage::Apply, Script::lines([created(0), created(1)]), "end", 0);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "l").await;
    assert_eq!(lab.as_program(&job, "POST", "?ID=l", envelope(1)).await, 200);
    lab.executor.open_gate("end");
    let record = lab.ended(&prod, &run).await;
    assert_eq!((record.phase(), record.facts().unrecorded.len()), (Phase::Applied, 0), "{record:?}");
    assert_eq!(condition(lab).await, None);
}

async fn log(lab: &Lab, run: &RunName) -> String {
    let path = format!("{API}/namespaces/prod/runs/{run}/log");
    String::from_utf8(lab.plane.get(&path).await.expect(200, "the log").body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_run_begins_once_it_is_known_what_its_encrypted_state_holds_secret() {
    let vault = Vault::new(Some(with_secret(&state_of(1, 1))));
    let (lab, prod) = (&vault.lab, vault.tenant().await);
    lab.plane.post("prod", envelope(1)).await.expect(200, "an envelope");
    // A lock keeps nobody from reading, and a drift check does not wait for it.
    lab.plane.lock("prod", "laptop", crate::lock::APPLY).await.expect(200, "a lock");
    lab.executor.set_script(None, Stage::Plan, Script::lines([format!("it says {SECRET}")]).exit(0));
    let run = lab.run(&prod, Operation::Drift).await;
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Planned);
    assert_eq!(log(lab, &run).await, format!("it says {MASK}\n"));
}

#[tokio::test]
async fn a_run_whose_state_cannot_be_decrypted_is_not_begun_until_the_key_fits() {
    let vault = Vault::new(None);
    let (lab, prod) = (&vault.lab, vault.tenant().await);
    lab.plane.post("prod", envelope(1)).await.expect(200, "an envelope");
    let run = lab.run(&prod, Operation::Plan).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(
        (record.phase(), record.facts().reason.as_deref()),
        (Phase::Failed, Some("DecryptFailed")),
        "{record:?}"
    );
    assert!(record.facts().message.as_deref().unwrap().contains("the key does not fit"), "{record:?}");
    assert!(lab.executor.jobs().is_empty());
    // At once: whoever asks has put it right.
    vault.holds(state_of(1, 1));
    let run = lab.run(&prod, Operation::Plan).await;
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Planned);
}

#[tokio::test]
async fn where_the_configuration_has_the_key_a_run_is_begun() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.plane.post("prod", envelope(1)).await.expect(200, "an envelope");
    let run = lab.run(&prod, Operation::Plan).await;
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Planned);
    assert!(lab.executor.queries().is_empty());
}

#[tokio::test]
async fn what_becomes_secret_during_a_run_is_kept_out_of_its_log_from_then_on() {
    let vault = Vault::new(Some(with_secret(&state_of(1, 1))));
    let (lab, prod) = (&vault.lab, vault.tenant().await);
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    let script = Script::lines([created(0)]).wait("saved").say_lines([format!("it says {SECRET}")]).exit(0);
    lab.executor.set_script(None, Stage::Apply, script);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "l").await;
    assert_eq!(lab.as_program(&job, "POST", "?ID=l", envelope(1)).await, 200);
    let id = RunId { tenant: prod.clone(), run: run.clone() };
    let known = async {
        while !lab.executor.secrets(&id, Stage::Apply).iter().any(|it| it.reveal() == SECRET) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), known).await.expect("it is known in time");
    lab.executor.open_gate("saved");
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Applied);
    let log = log(lab, &run).await;
    assert!(log.contains(&format!("it says {MASK}")) && !log.contains(SECRET), "{log}");
    let shown: Value = lab.plane.get(&format!("{API}/namespaces/prod/runs/{run}")).await.json();
    assert!(!shown.to_string().contains(SECRET), "{shown}");
}
