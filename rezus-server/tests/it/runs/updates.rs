//! Changes in place: no version shows whether it has them, so that only the order of things tells.

use std::collections::BTreeMap;
use std::time::Duration;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::runs::executor::{Job, RunId, TofuExecutor as _};
use rezus_core::runs::{
    Approval, Counts, Operation, Pending, Phase, Run, RunFacts, RunName, RunRecord, RunRequest, Stage,
    TenantKey,
};
use rezus_testkit::fake::{OnInterrupt, Script};

use super::lab::{Lab, created, plan_of, state_of};

/// That a resource was changed in place.
fn updated(i: usize) -> String {
    created(i).replace("\"create\"", "\"update\"").replace("Creation", "Modifications")
}

/// A tenant with a state of two resources, and an apply that does this to them and then fails or is ended.
async fn applying(lab: &Lab, script: Script) -> (TenantName, RunName, Job) {
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.plane.post("prod", state_of(1, 2)).await.expect(200, "a state");
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    let dies = OnInterrupt::Exit { says: Vec::new(), code: 1 };
    lab.executor.set_script(None, Stage::Apply, script.on_interrupt(dies));
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "l").await;
    (prod, run, job)
}

async fn save(lab: &Lab, job: &Job, serial: u64) {
    assert_eq!(lab.as_program(job, "POST", "?ID=l", state_of(serial, 2)).await, 200);
}

/// Waits until the server has seen that so many operations were done.
async fn seen(lab: &Lab, tenant: &TenantName, done: u64) {
    let words = format!("{done} of 2 operations done");
    let seen = async {
        while lab.plane.plane().runs.of(tenant).await.unwrap()[0].facts().message.as_ref() != Some(&words) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), seen).await.expect("it is seen in time");
}

fn why(record: &RunRecord) -> (Phase, &str, bool) {
    let message = record.facts().message.as_deref().unwrap();
    (record.phase(), record.facts().reason.as_deref().unwrap(), message.contains("may be in no version"))
}

#[tokio::test]
async fn an_update_after_the_last_save_is_not_taken_for_saved() {
    let lab = Lab::new();
    let script = Script::lines([updated(0)]).wait("saved").say_lines([updated(1)]).wait("never");
    let (prod, run, job) = applying(&lab, script).await;
    save(&lab, &job, 2).await;
    lab.executor.open_gate("saved");
    seen(&lab, &prod, 2).await;
    lab.executor.lose_supervisors();
    let record = lab.ended(&prod, &run).await;
    assert_eq!(why(&record), (Phase::Interrupted, "SupervisorLost", true), "{record:?}");
    assert_eq!(record.facts().version_after, Some(2));
}

#[tokio::test]
async fn a_save_that_begins_after_the_last_update_has_it() {
    let lab = Lab::new();
    let (prod, run, job) = applying(&lab, Script::lines([updated(0), updated(1)]).wait("never")).await;
    seen(&lab, &prod, 2).await;
    save(&lab, &job, 2).await;
    lab.executor.lose_supervisors();
    let record = lab.ended(&prod, &run).await;
    assert_eq!(why(&record), (Phase::Applied, "CompletedWithError", false), "{record:?}");
}

#[tokio::test]
async fn a_save_by_somebody_else_proves_nothing() {
    let lab = Lab::new();
    let script = Script::lines([updated(0)]).wait("saved").say_lines([updated(1)]).wait("never");
    let (prod, run, job) = applying(&lab, script).await;
    save(&lab, &job, 2).await;
    lab.executor.open_gate("saved");
    seen(&lab, &prod, 2).await;
    lab.plane.post_under("prod", "l", state_of(3, 2)).await;
    lab.executor.lose_supervisors();
    let record = lab.ended(&prod, &run).await;
    assert_eq!(why(&record), (Phase::Interrupted, "SupervisorLost", true), "{record:?}");
}

#[tokio::test]
async fn a_program_that_lets_go_of_its_lock_has_saved() {
    let lab = Lab::new();
    let (prod, run, job) = applying(&lab, Script::lines([updated(0), updated(1)]).wait("end").exit(1)).await;
    save(&lab, &job, 2).await;
    assert_eq!(lab.as_program(&job, "UNLOCK", "", crate::lock::info("l", crate::lock::APPLY)).await, 200);
    lab.executor.open_gate("end");
    let record = lab.ended(&prod, &run).await;
    assert_eq!(why(&record), (Phase::Applied, "CompletedWithError", false), "{record:?}");
}

#[tokio::test]
async fn after_a_killed_server_nobody_knows_what_order_things_had() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.plane.post("prod", state_of(1, 2)).await.expect(200, "what it saved");
    // What the server kept before it was killed, and the program that goes on.
    let plane = lab.plane.plane();
    let run = RunName::parse("apply-left").unwrap();
    let request = RunRequest::new(Operation::Apply, "alice");
    let (key, now) = (TenantKey(prod.clone()), Timestamp::from_millis(0));
    let mut facts = RunFacts::new(key, run.clone(), "uid".to_owned(), request, Approval::Auto, now);
    facts.counts = Some(Counts { change: 2, ..Counts::default() });
    let versions = plane.backend.store().versions(&prod).await.unwrap();
    facts.principals = vec![versions[0].written_by.clone()];
    let record = Run::Applying(Pending::new(facts).plan(now, None).apply()).record();
    assert!(plane.run_store.add(&record).await.unwrap());
    let dies = OnInterrupt::Exit { says: Vec::new(), code: 1 };
    let script = Script::lines([updated(0), updated(1)]).wait("never").on_interrupt(dies);
    lab.executor.set_script(None, Stage::Apply, script);
    let job = Job {
        id: RunId { tenant: prod.clone(), run: run.clone() },
        stage: Stage::Apply,
        tool: lab.executor.tool(None).await.unwrap(),
        work_dir: "/tenants/prod".into(),
        steps: vec![vec!["apply".to_owned()]],
        environment: BTreeMap::new(),
        secrets: Vec::new(),
        timeout: Duration::from_mins(1),
        grace: Duration::from_mins(1),
        log_limit: 1 << 20,
    };
    lab.executor.start(job).await.unwrap();
    let lab = lab.killed().await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(why(&record), (Phase::Interrupted, "ServerLost", true), "{record:?}");
    assert_eq!(record.facts().version_after, Some(1));
}

#[tokio::test]
async fn the_programs_own_last_word_is_enough() {
    let lab = Lab::new();
    let summary = r#"{"@level":"info","@message":"Apply complete! Resources: 0 added, 2 changed, 0 destroyed.","changes":{"add":0,"change":2,"import":0,"remove":0,"operation":"apply"},"type":"change_summary"}"#;
    let script = Script::lines([updated(0), updated(1), summary.to_owned()]).wait("end").exit(1);
    let (prod, run, job) = applying(&lab, script).await;
    save(&lab, &job, 2).await;
    lab.executor.open_gate("end");
    let record = lab.ended(&prod, &run).await;
    assert_eq!(why(&record), (Phase::Applied, "CompletedWithError", false), "{record:?}");
}
