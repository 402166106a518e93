//! A run is killed again and again, at every moment of its life; the truth is told every time.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::lab::{Lab, why};
use super::processes::Process;
use crate::durability::Random;
use crate::tools;

/// One resource after the other, all replaced in every round. Each is under way for a moment.
const CHAIN: &str = r#"
variable "round" {
  default = 0
}

resource "terraform_data" "one" {
  triggers_replace = var.round
  provisioner "local-exec" {
    command = "sleep 0.2"
  }
}

resource "terraform_data" "two" {
  triggers_replace = [terraform_data.one.id, var.round]
  provisioner "local-exec" {
    command = "sleep 0.2"
  }
}

resource "terraform_data" "three" {
  triggers_replace = [terraform_data.two.id, var.round]
}
"#;

const RESOURCES: usize = 3;

/// How often it is looked whether a moment has come.
const LOOK: Duration = Duration::from_millis(1);

/// When something is killed.
const MOMENTS: [&str; 5] = ["planning", "creating", "created", "saving", "unlocking"];

/// What is killed.
const TARGETS: [&str; 3] = ["server", "program", "both"];

/// What a log says was created, by address and ID.
fn created(log: &str) -> Vec<(String, String)> {
    let created = log.lines().filter_map(|line| {
        let (address, rest) = line.split_once(": Creation complete after ")?;
        let id = rest.split_once("[id=")?.1.strip_suffix(']')?;
        Some((address.to_owned(), id.to_owned()))
    });
    created.collect()
}

/// What the newest version of a state has, by address and ID.
async fn recorded(lab: &Lab) -> Vec<(String, String)> {
    if lab.versions().await.is_empty() {
        return Vec::new();
    }
    let state: Value = serde_json::from_str(&lab.done(&["state", "get", &lab.tenant]).await).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let each = |resource: &Value| {
        let address = format!("terraform_data.{}", text(&resource["name"]));
        let ids: Vec<_> = resource["instances"].as_array().unwrap().clone();
        ids.into_iter().map(|it| (address.clone(), text(&it["attributes"]["id"]))).collect::<Vec<_>>()
    };
    state["resources"].as_array().unwrap().iter().flat_map(each).collect()
}

fn unrecorded(run: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = run["status"]["unrecorded"].as_array();
    list.into_iter().flatten().map(|it| (text(&it["address"]), text(&it["id"]))).collect()
}

/// Waits for a moment in the life of a run.
async fn comes(lab: &Lab, run: &str, moment: &str, versions: usize) {
    let log = lab.server.data_dir().join("runs").join(&lab.tenant).join(run).join("log");
    let says = |what: &'static str, times: usize| {
        let log = log.clone();
        async move {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            (text.matches(what).count() >= times).then_some(())
        }
    };
    let is_planned =
        || async { lab.processes(run).iter().any(|it| it.line.contains(" plan ")).then_some(()) };
    let is_saved = || async { (lab.versions().await.len() > versions).then_some(()) };
    match moment {
        "planning" => lab.until_often(LOOK, moment, is_planned).await,
        "creating" => lab.until_often(LOOK, moment, || says(": Creating...", 1)).await,
        "created" => lab.until_often(LOOK, moment, || says(": Creation complete", 1)).await,
        "saving" => lab.until_often(LOOK, moment, || says(": Creation complete", RESOURCES)).await,
        _ => lab.until_often(LOOK, moment, is_saved).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_at_whatever_moment_the_truth_is_told() {
    let rounds = if tools::drills_are_full() { 50 } else { 5 };
    let mut random = Random(0x6b69_6c6c);
    let Some(mut lab) = Lab::new("kills", CHAIN).await else { return };
    let mut ends: BTreeMap<(usize, usize, String), usize> = BTreeMap::new();
    let mut named = 0;
    for round in 0..rounds {
        let (moment, target) =
            (round % MOMENTS.len(), (round % MOMENTS.len() + round / MOMENTS.len()) % TARGETS.len());
        let here = format!("round {round}, {} killed while {}", TARGETS[target], MOMENTS[moment]);
        let variable = format!("round={round}");
        let versions = lab.versions().await.len();
        let run = lab.run("apply", &["--auto-approve", "--var", &variable]).await.run();
        comes(&lab, &run, MOMENTS[moment], versions).await;
        // Anywhere in what is done next: a save takes a few milliseconds.
        let most = if ["saving", "unlocking"].contains(&MOMENTS[moment]) { 5_000 } else { 30_000 };
        tokio::time::sleep(Duration::from_micros(random.below(most))).await;
        let tools: Vec<Process> = lab.processes(&run).into_iter().filter(Process::is_tool).collect();
        if TARGETS[target] != "program" {
            lab.server.kill().await;
        }
        if TARGETS[target] != "server" {
            tools.iter().for_each(Process::kill);
        }
        if TARGETS[target] != "program" {
            // Now it comes back while the program still tries to save, and now when that has given up.
            if random.below(2) == 0 {
                lab.all_gone(&run).await;
            }
            lab.server.start_again().await;
        }

        let shown = lab.ended(&run).await;
        lab.all_gone(&run).await;
        let (phase, reason, message) = why(&shown);
        assert!(["Interrupted", "Applied"].contains(&phase), "{here}: {shown}");
        for other in lab.kube("/runs").await.expect(200, "runs").items() {
            let phase = why(&other).0;
            assert!(!["Pending", "Planning", "Applying"].contains(&phase), "{here}: {other}");
        }
        assert_eq!(lab.locks().await, Vec::<Value>::new(), "{here}");
        let log = lab.log(&run).await.unwrap_or_default();
        let (recorded, unrecorded) = (recorded(&lab).await, unrecorded(&shown));
        for it in created(&log) {
            let is_told = recorded.contains(&it) != unrecorded.contains(&it);
            assert!(is_told, "{here}: {it:?} is in the state or named, and not both: {shown}\n{log}");
        }
        if phase == "Applied" {
            assert_eq!((recorded.len(), unrecorded.len()), (RESOURCES, 0), "{here}: {shown}");
        }
        assert!(!reason.is_empty() && !message.is_empty(), "{here}: {shown}");
        *ends.entry((moment, target, format!("{phase} {reason}"))).or_default() += 1;
        if !unrecorded.is_empty() {
            named += 1;
            lab.done(&["run", "dismiss", &lab.tenant, &run]).await;
        }
        let next = lab.apply(&["--var", &variable]).await;
        assert_eq!(why(&next).0, "Applied", "{here}: the next one: {next}");
        assert_eq!(lab.resources().await.len(), RESOURCES, "{here}");
    }
    for ((moment, target, end), times) in &ends {
        tools::say(&format!("{} killed while {}: {end}, {times} times", TARGETS[*target], MOMENTS[*moment]));
    }
    tools::say(&format!(
        "killed {rounds} times: the truth was told every time, {named} times of what was created and not saved"
    ));
}
