//! How runs come to their ends.

use rezus_core::runs::{Approval, Operation, Phase, RunRequest, Stage};
use rezus_server::runs::RunsError;
use rezus_testkit::fake::{OnInterrupt, Script};

use super::lab::{Lab, changes_of, created, plan_of, state_of};

#[tokio::test]
async fn a_plan_ends_with_what_it_would_change() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    let run = lab.run(&prod, Operation::Plan).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Planned);
    assert_eq!(record.facts().counts.unwrap().add, 2);
    assert_eq!(record.facts().exit_code, Some(2));
    assert_eq!(record.facts().reason.as_deref(), Some("Changes"));
    let line = lab.job(&run, Stage::Plan).await.steps.last().unwrap().join(" ");
    assert!(line.starts_with("plan -json -input=false"), "{line}");
}

#[tokio::test]
async fn an_apply_waits_for_approval_and_then_does_what_was_planned() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    lab.hold(Stage::Apply, Script::lines([created(0)]), "saved", 0);
    let run = lab.run(&prod, Operation::Apply).await;
    lab.until(&prod, &run, Phase::AwaitingApproval).await;
    // It holds nothing: another run of the tenant has its turn.
    let other = lab.run(&prod, Operation::Plan).await;
    lab.ended(&prod, &other).await;

    lab.plane.plane().runs.approve(&prod, &run, "bob").await.unwrap();
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "of-the-run").await;
    assert_eq!(lab.as_program(&job, "POST", "?ID=of-the-run", state_of(1, 1)).await, 200);
    lab.executor.open_gate("saved");
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Applied);
    assert_eq!(record.facts().approved_by.as_deref(), Some("bob"));
    assert_eq!(record.facts().version_after, Some(1));
    assert_eq!(record.facts().unrecorded, []);
    // The program let go of nothing, but its end did.
    assert_eq!(lab.plane.get("/rezus/v1/locks").await.items().len(), 0);
    // Its token opens nothing any more: who shows it is nobody in particular.
    assert_eq!(
        lab.plane
            .plane()
            .auth
            .book()
            .directory()
            .await
            .unwrap()
            .tokens()
            .iter()
            .filter(|it| it.revoked_at.is_none())
            .count(),
        0
    );
    let again = lab.plane.plane().runs.approve(&prod, &run, "bob").await;
    assert!(matches!(again, Err(RunsError::NotWaiting { phase: Phase::Applied, .. })), "{again:?}");
}

#[tokio::test]
async fn where_nothing_is_to_be_done_an_apply_is_done() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    for operation in [Operation::Apply, Operation::Destroy] {
        let run = lab.run(&prod, operation).await;
        let record = lab.ended(&prod, &run).await;
        assert_eq!((record.phase(), record.facts().reason.as_deref()), (Phase::Applied, Some("NoChanges")));
    }
}

#[tokio::test]
async fn an_apply_that_needs_no_consent_goes_on_by_itself() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    lab.hold(Stage::Apply, Script::lines([created(0)]), "saved", 0);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "l").await;
    assert_eq!(lab.as_program(&job, "POST", "?ID=l", state_of(1, 1)).await, 200);
    assert_eq!(lab.as_program(&job, "UNLOCK", "", crate::lock::info("l", crate::lock::APPLY)).await, 200);
    lab.executor.open_gate("saved");
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Applied);
}

#[tokio::test]
async fn a_program_that_fails_says_why() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let error = r#"{"@level":"error","@message":"Error: no such type","diagnostic":{"severity":"error","summary":"no such type","detail":"really"},"type":"diagnostic"}"#;
    lab.executor.set_script(None, Stage::Plan, Script::lines([error]).exit(1));
    let run = lab.run(&prod, Operation::Plan).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Failed);
    assert_eq!(record.facts().message.as_deref(), Some("no such type: really"));
    lab.executor.refuse_configurations(Some("main.tf has a backend \"s3\""));
    let run = lab.run(&prod, Operation::Plan).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.facts().reason.as_deref(), Some("ConfigurationInvalid"));
    assert!(record.facts().message.as_deref().unwrap().contains("s3"));
}

#[tokio::test]
async fn a_newer_apply_and_a_newer_state_make_a_plan_that_waits_stale() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    let first = lab.run(&prod, Operation::Apply).await;
    lab.until(&prod, &first, Phase::AwaitingApproval).await;
    let second = lab.run(&prod, Operation::Apply).await;
    let record = lab.ended(&prod, &first).await;
    assert_eq!((record.phase(), record.facts().reason.as_deref()), (Phase::Stale, Some("Superseded")));
    lab.until(&prod, &second, Phase::AwaitingApproval).await;
    // Plans change nothing, so they make nothing stale.
    let plan = lab.run(&prod, Operation::Plan).await;
    lab.ended(&prod, &plan).await;
    lab.until(&prod, &second, Phase::AwaitingApproval).await;
    lab.plane.post("prod", state_of(1, 0)).await.expect(200, "a write by others");
    let record = lab.ended(&prod, &second).await;
    assert_eq!((record.phase(), record.facts().reason.as_deref()), (Phase::Stale, Some("StateMoved")));
    let late = lab.plane.plane().runs.approve(&prod, &second, "bob").await;
    assert!(matches!(late, Err(RunsError::NotWaiting { phase: Phase::Stale, .. })), "{late:?}");
}

#[tokio::test]
async fn a_run_is_cancelled_wherever_it_is_and_as_often_as_one_likes() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let runs = &lab.plane.plane().runs;
    lab.hold(Stage::Plan, changes_of(1), "planned", 2);
    // Planning, and one that waits behind it.
    let planning = lab.run(&prod, Operation::Apply).await;
    lab.job(&planning, Stage::Plan).await;
    let waiting = lab.run(&prod, Operation::Plan).await;
    let record = runs.cancel(&prod, &waiting, "carol").await.unwrap();
    assert_eq!(record.phase(), Phase::Cancelled);
    let (first, second) =
        tokio::join!(runs.cancel(&prod, &planning, "carol"), runs.cancel(&prod, &planning, "dave"));
    first.unwrap();
    second.unwrap();
    let record = lab.ended(&prod, &planning).await;
    assert_eq!(record.phase(), Phase::Cancelled);
    assert_eq!(record.facts().cancelled_by.as_deref(), Some("carol"));
    // Waiting for approval: its plan is discarded.
    lab.executor.open_gate("planned");
    let approval = lab.run(&prod, Operation::Apply).await;
    lab.until(&prod, &approval, Phase::AwaitingApproval).await;
    assert_eq!(runs.cancel(&prod, &approval, "carol").await.unwrap().phase(), Phase::Cancelled);
    // Ended: nothing changes.
    let again = runs.cancel(&prod, &approval, "dave").await.unwrap();
    assert_eq!(again.facts().cancelled_by.as_deref(), Some("carol"));
    assert_eq!(lab.ended(&prod, &approval).await.phase(), Phase::Cancelled);
}

#[tokio::test]
async fn a_second_cancel_does_not_wait_for_the_grace() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    let deaf = Script::lines([created(0)]).wait("never").on_interrupt(OnInterrupt::Ignore);
    lab.executor.set_script(None, Stage::Apply, deaf);
    let run = lab.run(&prod, Operation::Apply).await;
    lab.job(&run, Stage::Apply).await;
    let runs = &lab.plane.plane().runs;
    assert_eq!(runs.cancel(&prod, &run, "carol").await.unwrap().phase(), Phase::Applying);
    runs.cancel(&prod, &run, "carol").await.unwrap();
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Cancelled);
    // It created something, and saved nothing: nobody else would say so.
    let unrecorded: Vec<_> = record.facts().unrecorded.iter().map(|it| it.address.as_str()).collect();
    assert_eq!(unrecorded, ["terraform_data.it[0]"]);
    // Until a version has it.
    lab.plane.post("prod", state_of(1, 1)).await.expect(200, "an import");
    assert_eq!(lab.ended(&prod, &run).await.facts().unrecorded, []);
}

#[tokio::test]
async fn what_was_done_and_saved_is_applied_even_if_it_was_cancelled() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    lab.executor.set_script(None, Stage::Plan, plan_of(1));
    let late = OnInterrupt::Exit { says: Vec::new(), code: 1 };
    let script = Script::lines([created(0)]).wait("never").on_interrupt(late);
    lab.executor.set_script(None, Stage::Apply, script);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "l").await;
    assert_eq!(lab.as_program(&job, "POST", "?ID=l", state_of(1, 1)).await, 200);
    lab.plane.plane().runs.cancel(&prod, &run, "carol").await.unwrap();
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Applied, "{record:?}");
    assert_eq!(record.facts().cancelled_by.as_deref(), Some("carol"));
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_with_what_to_do() {
    let lab = Lab::new();
    let bare = super::lab::tenant("bare");
    let ask = |operation| RunRequest::new(operation, "alice");
    let error = lab.ask(&bare, ask(Operation::Plan)).await.unwrap_err();
    assert!(matches!(error, RunsError::NoTenant(_)), "{error:?}");
    lab.plane.plane().backend.create_tenant(&bare).await.unwrap();
    let error = lab.ask(&bare, ask(Operation::Plan)).await.unwrap_err();
    assert!(error.to_string().contains("tenant configure bare --dir"), "{error}");
    let prod = lab.tenant_with("prod", |it| it.protect_destroy = true).await;
    let error = lab.ask(&prod, ask(Operation::Destroy)).await.unwrap_err();
    assert!(error.to_string().contains("--protect none"), "{error}");
    assert!(lab.plane.plane().runs.of(&prod).await.unwrap().is_empty());

    let closed = Lab::with(rezus_server::config::RunsConfig::default());
    let prod = closed.tenant("prod").await;
    let error = closed.ask(&prod, ask(Operation::Plan)).await.unwrap_err();
    assert!(error.to_string().contains("runs.allow_without_auth"), "{error}");
}
