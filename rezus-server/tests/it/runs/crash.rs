//! What is known after a server, a program, or whoever watches it was killed.

use rezus_core::runs::{Approval, Operation, Phase, Stage};
use rezus_testkit::fake::Script;

use super::lab::{Lab, changes_of, created, plan_of, state_of};

#[tokio::test]
async fn after_a_killed_server_runs_are_interrupted_and_what_exists_is_named() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(3));
    lab.hold(Stage::Apply, Script::lines([created(0), created(1)]), "never", 0);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "mine").await;
    assert_eq!(lab.as_program(&job, "POST", "?ID=mine", state_of(1, 1)).await, 200);
    lab.until(&prod, &run, Phase::Applying).await;

    let lab = lab.killed().await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Interrupted);
    assert_eq!(record.facts().reason.as_deref(), Some("ServerLost"));
    let unrecorded: Vec<_> = record.facts().unrecorded.iter().map(|it| it.address.as_str()).collect();
    assert_eq!(unrecorded, ["terraform_data.it[1]"]);
    assert_eq!(record.facts().unrecorded[0].id.as_deref(), Some("id-1"));
    // Its lock was its own, and its holder is gone.
    assert_eq!(lab.plane.get("/rezus/v1/locks").await.items().len(), 0);
    let next = lab.run(&prod, Operation::Plan).await;
    assert_eq!(lab.ended(&prod, &next).await.phase(), Phase::Planned);
    // Somebody says that it is taken care of.
    let record = lab.plane.plane().runs.dismiss(&prod, &run, "olga").await.unwrap();
    assert_eq!(record.facts().dismissed_by.as_deref(), Some("olga"));
}

#[tokio::test]
async fn the_lock_of_somebody_else_stays() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.hold(Stage::Plan, changes_of(1), "never", 2);
    let run = lab.run(&prod, Operation::Apply).await;
    lab.job(&run, Stage::Plan).await;
    lab.plane.lock("prod", "laptop", crate::lock::APPLY).await.expect(200, "a laptop's lock");
    let lab = lab.killed().await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Interrupted);
    let locks = lab.plane.get("/rezus/v1/locks").await.items();
    assert_eq!(locks[0]["id"], "laptop");
}

#[tokio::test]
async fn runs_that_wait_go_on_waiting_after_a_restart() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let free = lab.tenant("free").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    let approval = lab.run(&prod, Operation::Apply).await;
    lab.until(&prod, &approval, Phase::AwaitingApproval).await;
    lab.hold(Stage::Plan, changes_of(1), "go", 2);
    let held = lab.run(&free, Operation::Plan).await;
    lab.job(&held, Stage::Plan).await;
    let waiting = lab.run(&free, Operation::Drift).await;
    let lab = lab.killed().await;
    lab.executor.open_gate("go");
    assert_eq!(lab.ended(&free, &held).await.phase(), Phase::Interrupted);
    assert_eq!(lab.ended(&free, &waiting).await.phase(), Phase::Planned);
    assert_eq!(lab.until(&prod, &approval, Phase::AwaitingApproval).await.phase(), Phase::AwaitingApproval);
    lab.plane.plane().runs.approve(&prod, &approval, "bob").await.unwrap();
    assert_eq!(lab.ended(&prod, &approval).await.phase(), Phase::Applied);
}

#[tokio::test]
async fn a_plan_of_a_state_that_moved_while_no_server_ran_is_stale() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    let run = lab.run(&prod, Operation::Apply).await;
    lab.until(&prod, &run, Phase::AwaitingApproval).await;
    // As a command does that opens the data directory by itself.
    let plane = lab.plane.plane();
    let mappings = plane.projector.mappings();
    let state = rezus_core::declared::backend::ingest(state_of(1, 0).into(), None, &mappings).unwrap();
    let caller = rezus_core::declared::backend::Caller {
        name: "offline".to_owned(),
        may_break_locks: true,
        may_create_tenants: true,
    };
    plane.backend.post(&prod, None, &state, &caller).await.unwrap();
    let lab = lab.killed().await;
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Stale);
}

#[tokio::test]
async fn a_state_that_could_not_be_saved_becomes_the_next_version() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    lab.executor.set_script(None, Stage::Apply, Script::lines([created(0)]).exit(1));
    lab.executor.leave_errored_state(state_of(1, 1).into());
    let run = lab.run(&prod, Operation::Apply).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Applied, "{record:?}");
    assert!(record.facts().message.as_deref().unwrap().contains("pushed as version 1"), "{record:?}");
    assert_eq!(lab.plane.current("prod").await.unwrap(), state_of(1, 1));
    assert_eq!(record.facts().version_after, Some(1));
}

#[tokio::test]
async fn a_snapshot_that_still_has_what_was_destroyed_after_it_is_not_the_end() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.plane.post("prod", state_of(1, 2)).await.expect(200, "a state");
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    let destroyed = |i| created(i).replace("\"create\"", "\"delete\"").replace("Creation", "Destruction");
    for (serial, left, end) in [(2, 1, Phase::Failed), (3, 0, Phase::Applied)] {
        let gate = format!("saved-{left}");
        lab.hold(Stage::Apply, Script::lines([destroyed(0), destroyed(1)]), &gate, 1);
        let run = lab.run(&prod, Operation::Destroy).await;
        let job = lab.job(&run, Stage::Apply).await;
        lab.lock_as_program(&job, "l").await;
        assert_eq!(lab.as_program(&job, "POST", "?ID=l", state_of(serial, left)).await, 200);
        lab.executor.open_gate(&gate);
        let record = lab.ended(&prod, &run).await;
        assert_eq!((record.phase(), record.facts().version_after), (end, Some(serial)), "{record:?}");
    }
}

#[tokio::test]
async fn one_that_is_refused_is_kept_and_said() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.plane.post("prod", state_of(7, 0)).await.expect(200, "a state");
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    lab.executor.set_script(None, Stage::Apply, Script::lines([created(0)]).exit(1));
    let other = state_of(8, 1).replace("\"lineage\":\"l\"", "\"lineage\":\"another\"");
    // The state that is there holds something, so that another lineage is refused.
    lab.plane.post("prod", state_of(8, 2)).await.expect(200, "a state");
    lab.executor.leave_errored_state(other.into());
    let run = lab.run(&prod, Operation::Apply).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!((record.phase(), record.facts().reason.as_deref()), (Phase::Failed, Some("StateNotSaved")));
    assert!(record.facts().message.as_deref().unwrap().contains("errored.tfstate"), "{record:?}");
    assert_eq!(lab.plane.current("prod").await.unwrap(), state_of(8, 2));
    assert_eq!(lab.plane.get("/rezus/v1/locks").await.items().len(), 0);
}
