//! Drift: looked for by the clock, without a lock, and told.

use std::time::Duration;

use rezus_core::runs::{Operation, Phase, Stage};
use rezus_testkit::fake::Script;
use rezus_testkit::recording::Tool;

use super::lab::Lab;

#[tokio::test]
async fn what_real_tools_report_is_told() {
    for tool in [Tool::OpenTofu, Tool::Terraform] {
        let lab = Lab::new();
        let prod = lab.tenant("prod").await;
        let script = Script::recorded(tool, "drift-plan-refresh-only-lock-false-json").exit(2);
        lab.executor.set_script(None, Stage::Plan, script);
        let run = lab.run(&prod, Operation::Drift).await;
        let record = lab.ended(&prod, &run).await;
        assert_eq!((record.phase(), record.facts().reason.as_deref()), (Phase::Planned, Some("Drifted")));
        assert!(!record.facts().drift.is_empty(), "{tool:?}");
        let line = lab.job(&run, Stage::Plan).await.steps.last().unwrap().join(" ");
        assert!(line.contains("-refresh-only") && line.contains("-lock=false"), "{line}");
    }
}

#[tokio::test]
async fn drift_is_looked_for_when_it_is_due_and_not_while_a_run_is_under_way() {
    let lab = Lab::new();
    let prod = lab.tenant_with("prod", |it| it.drift_every = Some(Duration::from_hours(1))).await;
    let runs = lab.plane.plane().runs.clone();
    lab.hold(Stage::Plan, Script::default(), "go", 0);
    let busy = lab.run(&prod, Operation::Plan).await;
    lab.job(&busy, Stage::Plan).await;
    runs.look_for_drift().await.unwrap();
    let (_, why) = runs.skipped_drift(&prod).unwrap();
    assert!(why.contains(busy.as_str()), "{why}");
    assert_eq!(runs.of(&prod).await.unwrap().len(), 1);
    lab.executor.open_gate("go");
    lab.ended(&prod, &busy).await;
    // The program's end is known a moment before its place is free.
    let looked = async {
        while runs.of(&prod).await.unwrap().len() < 2 {
            runs.look_for_drift().await.unwrap();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), looked).await.unwrap();
    assert_eq!(runs.skipped_drift(&prod), None);
    let drift = runs.of(&prod).await.unwrap()[1].facts().name.clone();
    assert_eq!(lab.ended(&prod, &drift).await.facts().reason.as_deref(), Some("NoChanges"));
    runs.look_for_drift().await.unwrap();
    assert_eq!(runs.of(&prod).await.unwrap().len(), 2, "not before it is due again");
    lab.plane.clock.advance(Duration::from_mins(67));
    runs.look_for_drift().await.unwrap();
    assert_eq!(runs.of(&prod).await.unwrap().len(), 3);
}
