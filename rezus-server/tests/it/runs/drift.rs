//! Drift: looked for by the clock, without a lock, and told.

use std::time::Duration;

use rezus_core::runs::workspace::DriftMode;
use rezus_core::runs::{Operation, Phase, Stage};
use rezus_testkit::fake::Script;
use rezus_testkit::recording::Tool;

use super::api::API;
use super::lab::{Lab, changes_of, plan_of};

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

/// That two resources are not as the state has them, and what a plan of this many changes says.
fn drifted_and(creates: usize) -> Script {
    let drifts = (0..2).map(|i| {
        let resource = format!(r#"{{"addr":"terraform_data.it[{i}]","resource_type":"terraform_data"}}"#);
        format!(r#"{{"@message":"drift","change":{{"resource":{resource},"action":"delete"}},"type":"resource_drift"}}"#)
    });
    changes_of(creates).say_lines(drifts).exit(2)
}

#[tokio::test]
async fn a_full_check_tells_what_the_configuration_changes_too() {
    for tool in [Tool::OpenTofu, Tool::Terraform] {
        let lab = Lab::new();
        let prod = lab.tenant_with("prod", |it| it.drift_mode = DriftMode::Full).await;
        let recorded = Script::recorded(tool, "drift-full-plan-lock-false-json").exit(2);
        let cases = [
            // What only puts right what has drifted is nothing by itself.
            (recorded, "Drifted", "2 resources are not as the state has them", None),
            (drifted_and(2), "Drifted", "2 resources are not as the state has them", None),
            (
                drifted_and(3),
                "Drifted",
                "as the state has them, and the configuration changes 1",
                Some("it[2]"),
            ),
            (plan_of(2), "PendingChanges", "the configuration changes 2 resources", Some("it[1]")),
        ];
        for (script, reason, message, pending) in cases {
            lab.executor.set_script(None, Stage::Plan, script);
            let run = lab.run(&prod, Operation::Drift).await;
            let record = lab.ended(&prod, &run).await;
            let facts = record.facts();
            assert_eq!((record.phase(), facts.reason.as_deref()), (Phase::Planned, Some(reason)));
            assert!(facts.message.as_deref().unwrap().contains(message), "{facts:?}");
            let line = lab.job(&run, Stage::Plan).await.steps.last().unwrap().join(" ");
            assert!(!line.contains("-refresh-only") && line.contains("-lock=false"), "{line}");
            let tenant = lab.plane.get(&format!("{API}/tenants/prod")).await.json();
            let conditions = tenant["status"]["conditions"].as_array().unwrap();
            let told = conditions.iter().find(|it| it["type"] == "Drifted").unwrap();
            assert_eq!((told["status"].as_str(), told["reason"].as_str()), (Some("True"), Some(reason)));
            let text = told["message"].as_str().unwrap();
            assert_eq!(text.contains("the configuration changes"), pending.is_some(), "{text}");
            assert!(pending.is_none_or(|address| text.ends_with(&format!("{address} (create)"))), "{text}");
        }
        assert_eq!(lab.plane.versions("prod").await.len(), 0);
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
