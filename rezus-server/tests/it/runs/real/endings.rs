//! Ends other than the planned one.

use super::lab::{Lab, MACHINES, SLOW, UNDER_WAY, why};

#[tokio::test]
async fn a_cancelled_apply_saves_what_it_did_and_leaves_nothing_behind() {
    let Some(lab) = Lab::new("cancelled", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    assert_eq!(lab.locks().await.len(), 1);
    let sleeps = || async { lab.processes(&run).iter().any(|it| it.line.contains("sleep")).then_some(()) };
    lab.until("the provisioner runs", sleeps).await;
    let other = lab.run("plan", &[]).await.run();
    lab.done(&["run", "cancel", &lab.tenant, &run]).await;
    let shown = lab.ended(&run).await;
    assert_eq!(why(&shown), ("Cancelled", "Cancelled", "cancelled by admin: interrupted"), "{shown}");
    // What failed half way is there as tainted; what came after it was never begun.
    assert_eq!(lab.resources().await, ["terraform_data.first", "terraform_data.slow"]);
    assert_eq!(shown["status"]["unrecorded"].as_array().map_or(0, Vec::len), 0, "{shown}");
    lab.all_gone(&run).await;
    // The next one has its turn.
    assert_eq!(why(&lab.ended(&other).await).0, "Planned");
    assert_eq!(lab.locks().await.len(), 0);
    let shown = lab.apply(&["--var", "seconds=0"]).await;
    assert_eq!(why(&shown).0, "Applied", "{shown}");
    assert_eq!(lab.resources().await.len(), 3);
}

#[tokio::test]
async fn what_waits_for_approval_is_cancelled_at_once() {
    let Some(lab) = Lab::new("waits", MACHINES).await else { return };
    let run = lab.run("apply", &["--wait"]).await.run();
    lab.done(&["run", "cancel", &lab.tenant, &run]).await;
    assert_eq!(why(&lab.show(&run).await).0, "Cancelled");
    let plans = lab.server.data_dir().join("runs").join(&lab.tenant).join(&run).join("plan");
    assert!(!plans.exists(), "the plan is discarded");
    let refused = lab.command(&["run", "approve", &lab.tenant, &run]).await;
    assert!(refused.code == 1 && refused.errors.contains("is Cancelled"), "{refused:?}");
}

#[tokio::test]
async fn whoever_fails_says_why() {
    let broken = "resource \"terraform_data\" \"ok\" {}\n\
        resource \"terraform_data\" \"broken\" {\n  depends_on = [terraform_data.ok]\n  \
        provisioner \"local-exec\" {\n    command = \"echo no disk >&2; exit 3\"\n  }\n}\n";
    let Some(lab) = Lab::new("fails", broken).await else { return };
    let failed = lab.apply(&[]).await;
    assert_eq!((why(&failed).0, why(&failed).1), ("Failed", "ToolFailed"), "{failed}");
    assert!(why(&failed).2.contains("local-exec provisioner error"), "{failed}");
    assert!(why(&failed).2.contains("terraform_data.broken"), "{failed}");
    let log = lab.log(failed["metadata"]["name"].as_str().unwrap()).await.unwrap();
    assert!(log.contains("no disk"), "{log}");
    assert_eq!(lab.resources().await, ["terraform_data.broken", "terraform_data.ok"]);
    assert_eq!(lab.locks().await.len(), 0);

    // Nothing of what follows gets as far as a change.
    for (configuration, reason, pieces) in [
        ("resource \"terraform_data\" {", "ToolFailed", ["main.tf line 1", "Unclosed"]),
        (
            "resource \"terraform_data\" \"a\" {\n  input = var.none\n}\n",
            "ToolFailed",
            ["main.tf line 2", "none"],
        ),
        (
            "terraform {\n  backend \"local\" {}\n}\n",
            "ConfigurationInvalid",
            ["main.tf", "backend \"local\""],
        ),
        ("terraform {\n  backend \"s3\" {}\n}\n", "ConfigurationInvalid", ["main.tf", "backend \"s3\""]),
        ("resource \"no_such_thing\" \"a\" {}\n", "ToolFailed", ["hashicorp/no", "provider"]),
    ] {
        let (before, current) = (lab.versions().await.len(), lab.resources().await);
        lab.rewrite(configuration).await;
        let shown = lab.apply(&[]).await;
        assert_eq!((why(&shown).0, why(&shown).1), ("Failed", reason), "{shown}");
        for piece in pieces {
            assert!(why(&shown).2.contains(piece), "{piece} is not in {shown}");
        }
        assert_eq!((lab.versions().await.len(), lab.resources().await), (before, current));
        assert_eq!(lab.locks().await.len(), 0);
    }
}
