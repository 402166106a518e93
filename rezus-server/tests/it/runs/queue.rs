//! Whose turn it is, and how runs end with the server.

use std::collections::BTreeSet;
use std::time::Duration;

use rezus_core::runs::{Approval, Operation, Phase, Stage};
use rezus_testkit::fake::Script;

use super::lab::{Lab, created, plan_of, state_of};

#[tokio::test]
async fn a_run_that_does_the_same_as_one_that_waits_joins_it() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    lab.hold(Stage::Plan, Script::default(), "go", 0);
    let first = lab.run(&prod, Operation::Plan).await;
    lab.job(&first, Stage::Plan).await;
    let second = lab.run(&prod, Operation::Plan).await;
    let third = lab.run(&prod, Operation::Plan).await;
    let record = lab.ended(&prod, &third).await;
    assert_eq!(record.phase(), Phase::Coalesced);
    assert_eq!(record.facts().coalesced_into.as_ref(), Some(&second));
    let other = lab.run(&prod, Operation::Drift).await;
    lab.executor.open_gate("go");
    assert_eq!(lab.ended(&prod, &second).await.phase(), Phase::Planned);
    assert_eq!(lab.ended(&prod, &other).await.phase(), Phase::Planned);
    assert_eq!(lab.executor.jobs().len(), 3);
}

#[tokio::test]
async fn two_hundred_tenants_all_have_their_turn_with_four_places() {
    let lab = Lab::new();
    lab.hold(Stage::Plan, Script::default(), "go", 0);
    let mut runs = Vec::new();
    for i in 0..200 {
        let tenant = lab.tenant(&format!("t{i}")).await;
        let run = lab.run(&tenant, Operation::Plan).await;
        runs.push((tenant, run));
    }
    lab.job(&runs[3].1, Stage::Plan).await;
    assert_eq!(lab.executor.jobs().len(), 4, "no more than there are places");
    lab.executor.open_gate("go");
    for (tenant, run) in &runs {
        assert_eq!(lab.ended(tenant, run).await.phase(), Phase::Planned);
    }
    let order: Vec<String> = lab.executor.jobs().iter().map(|job| job.id.tenant.to_string()).collect();
    assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 200);
    // In the order in which they were asked for, but for those that are executed together.
    for (place, tenant) in order.iter().enumerate() {
        let asked: usize = tenant[1..].parse().unwrap();
        assert!(asked.abs_diff(place) <= 4, "{tenant} is {place}th");
    }
}

#[tokio::test]
async fn a_frozen_tenants_runs_wait_and_say_why() {
    let lab = Lab::new();
    let prod = lab.tenant("prod").await;
    let runs = &lab.plane.plane().runs;
    let freeze = r#"{"reason":"maintenance"}"#;
    lab.plane.send("PUT", "/rezus/v1/tenants/prod/freeze", freeze).await.expect(200, "a freeze");
    let run = lab.run(&prod, Operation::Plan).await;
    let found = async {
        loop {
            let shown = runs.of(&prod).await.unwrap();
            if shown[0].facts().reason.as_deref() == Some("Frozen") {
                return shown[0].facts().message.clone().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let message = tokio::time::timeout(Duration::from_secs(10), found).await.unwrap();
    assert!(message.contains("frozen: maintenance by"), "{message}");
    assert_eq!(lab.executor.jobs().len(), 0);
    lab.plane.send("DELETE", "/rezus/v1/tenants/prod/freeze", "").await.expect(200, "its end");
    assert_eq!(lab.ended(&prod, &run).await.phase(), Phase::Planned);
}

#[tokio::test]
async fn the_end_of_the_server_lets_runs_save_and_begins_none() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.approval = Approval::Auto).await;
    let idle = lab.tenant("idle").await;
    lab.executor.set_script(None, Stage::Plan, plan_of(2));
    lab.hold(Stage::Apply, Script::lines([created(0)]), "never", 0);
    let run = lab.run(&prod, Operation::Apply).await;
    let job = lab.job(&run, Stage::Apply).await;
    lab.lock_as_program(&job, "l").await;
    // What it has done so far is saved while the server ends.
    assert_eq!(lab.as_program(&job, "POST", "?ID=l", state_of(1, 1)).await, 200);
    lab.plane.plane().runs.close(Duration::from_secs(20)).await;
    let record = lab.ended(&prod, &run).await;
    assert_eq!(record.phase(), Phase::Interrupted);
    assert_eq!(record.facts().reason.as_deref(), Some("ServerStopped"));
    assert_eq!(record.facts().version_after, Some(1));
    assert_eq!(lab.plane.get("/rezus/v1/locks").await.items().len(), 0);
    let request = rezus_core::runs::RunRequest::new(Operation::Plan, "alice");
    let refused = lab.ask(&idle, request).await.unwrap_err();
    assert!(refused.to_string().contains("stopping"), "{refused}");
}
