//! The server, the program, or whoever watches it is killed in the middle of an apply, or the server is told to end.

use serde_json::Value;

use super::lab::{Lab, SLOW, UNDER_WAY, why};
use super::processes::Process;

/// What of a run was created and is in no version.
fn unrecorded(run: &Value) -> Vec<&str> {
    let list = run["status"]["unrecorded"].as_array();
    list.into_iter().flatten().map(|it| it["address"].as_str().unwrap()).collect()
}

fn tool(lab: &Lab, run: &str) -> Process {
    lab.processes(run).into_iter().find(Process::is_tool).expect("the program runs")
}

fn supervisor(lab: &Lab, run: &str) -> Process {
    lab.processes(run).into_iter().find(Process::is_supervisor).expect("the supervisor runs")
}

/// Fails unless nothing of a run is left, and the next one goes.
async fn is_over(lab: &Lab, run: &str) {
    lab.all_gone(run).await;
    assert_eq!(lab.locks().await, Vec::<Value>::new());
    let next = lab.apply(&["--var", "seconds=0"]).await;
    assert_eq!(why(&next).0, "Applied", "{next}");
    assert_eq!(lab.resources().await.len(), 3);
}

#[tokio::test]
async fn server_and_program_are_killed() {
    let Some(mut lab) = Lab::new("both", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    let tool = tool(&lab, &run);
    lab.server.kill().await;
    tool.kill();
    lab.all_gone(&run).await;
    lab.server.start_again().await;
    let shown = lab.ended(&run).await;
    assert_eq!(why(&shown).0, "Interrupted", "{shown}");
    // The program died without a word: nothing was saved, and what it had created is named.
    assert_eq!(unrecorded(&shown), ["terraform_data.first"]);
    assert_eq!(lab.versions().await.len(), 0);
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn the_server_is_killed_and_the_program_finds_nobody_to_save_with() {
    let Some(mut lab) = Lab::new("server", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    lab.server.kill().await;
    // It was interrupted by its supervisor, and has kept what it could not save.
    lab.all_gone(&run).await;
    lab.server.start_again().await;
    let shown = lab.ended(&run).await;
    assert_eq!((why(&shown).0, why(&shown).1), ("Interrupted", "ServerLost"), "{shown}");
    assert!(why(&shown).2.contains("was pushed as version 1"), "{shown}");
    assert_eq!(lab.resources().await, ["terraform_data.first", "terraform_data.slow"]);
    assert_eq!(unrecorded(&shown), Vec::<&str>::new());
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn the_server_is_killed_and_comes_back_before_the_program_has_ended() {
    let Some(mut lab) = Lab::new("back", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    lab.server.kill().await;
    lab.server.start_again().await;
    let shown = lab.ended(&run).await;
    assert_eq!((why(&shown).0, why(&shown).1), ("Interrupted", "ServerLost"), "{shown}");
    assert_eq!(lab.resources().await, ["terraform_data.first", "terraform_data.slow"]);
    assert_eq!(unrecorded(&shown), Vec::<&str>::new());
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn the_program_is_killed() {
    let Some(lab) = Lab::new("program", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    tool(&lab, &run).kill();
    let shown = lab.ended(&run).await;
    assert_eq!((why(&shown).0, why(&shown).1), ("Interrupted", "Killed"), "{shown}");
    assert_eq!(unrecorded(&shown), ["terraform_data.first"]);
    let condition = lab.condition("UnrecordedResources").await.expect("a condition");
    assert!(condition["message"].as_str().unwrap().contains("terraform_data.first"), "{condition}");
    lab.done(&["run", "dismiss", &lab.tenant, &run]).await;
    assert_eq!(unrecorded(&lab.show(&run).await), Vec::<&str>::new());
    let condition = lab.condition("UnrecordedResources").await;
    assert!(condition.as_ref().is_none_or(|it| it["status"] == "False"), "{condition:?}");
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn the_supervisor_is_killed() {
    let Some(lab) = Lab::new("watcher", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    supervisor(&lab, &run).kill();
    let shown = lab.ended(&run).await;
    assert_eq!((why(&shown).0, why(&shown).1), ("Interrupted", "SupervisorLost"), "{shown}");
    // Its output is read by nobody any more, so that it may have died of that before it saved.
    let is_saved = lab.resources().await.contains(&"terraform_data.first".to_owned());
    assert_eq!(unrecorded(&shown).is_empty(), is_saved, "{shown}");
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn the_lock_of_a_run_that_lives_is_broken_by_force_alone() {
    let Some(lab) = Lab::new("lock", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    let locks = lab.locks().await;
    assert_eq!((&locks[0]["holder"], &locks[0]["run"]), (&"alive".into(), &run.as_str().into()), "{locks:?}");
    let refused = lab.command(&["lock", "break", &lab.tenant]).await;
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains(&run) && refused.errors.contains("--force"), "{}", refused.errors);
    assert_eq!(lab.locks().await.len(), 1);
    lab.done(&["lock", "break", &lab.tenant, "--force"]).await;
    assert_eq!(lab.locks().await.len(), 0);
    let audit = lab.done(&["audit", "-o", "json"]).await;
    assert!(audit.contains("lock.break") || audit.contains("locks"), "{audit}");
    // What it does from now on is refused, but not lost.
    lab.done(&["run", "cancel", &lab.tenant, &run]).await;
    let shown = lab.ended(&run).await;
    assert_eq!(why(&shown).0, "Cancelled", "{shown}");
    assert!(why(&shown).2.contains("was pushed as version 1"), "{shown}");
    assert_eq!(lab.resources().await, ["terraform_data.first", "terraform_data.slow"]);
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn a_state_that_is_refused_stays_with_its_run() {
    let Some(lab) = Lab::new("refused", SLOW).await else { return };
    let run = lab.apply_until(&[], UNDER_WAY).await;
    lab.done(&["lock", "break", &lab.tenant, "--force"]).await;
    let state = format!("/state/{}", lab.tenant);
    let info = crate::lock::info("a-laptop", crate::lock::APPLY);
    lab.send("LOCK", &state, info.clone()).await.expect(200, "LOCK");
    lab.done(&["run", "cancel", &lab.tenant, &run]).await;
    let shown = lab.ended(&run).await;
    assert_eq!((why(&shown).0, why(&shown).1), ("Failed", "StateNotSaved"), "{shown}");
    assert_eq!(unrecorded(&shown), ["terraform_data.first"]);
    let kept = lab.server.data_dir().join("runs").join(&lab.tenant).join(&run).join("errored.tfstate");
    assert!(why(&shown).2.contains(kept.to_str().unwrap()), "{shown}");
    let locks = lab.locks().await;
    assert_eq!((locks.len(), &locks[0]["id"]), (1, &"a-laptop".into()), "it stays whose it is");
    lab.send("UNLOCK", &state, info).await.expect(200, "UNLOCK");
    // No later run takes it for its own.
    let next = lab.run("apply", &["--wait"]).await.run();
    assert_eq!(why(&lab.show(&next).await).0, "AwaitingApproval");
    assert_eq!(lab.versions().await.len(), 0);
    lab.done(&["state", "push", &lab.tenant, kept.to_str().unwrap()]).await;
    assert_eq!(lab.resources().await, ["terraform_data.first", "terraform_data.slow"]);
    let recorded = || async { unrecorded(&lab.show(&run).await).is_empty().then_some(()) };
    lab.until("nothing is unrecorded any more", recorded).await;
    is_over(&lab, &run).await;
}

#[tokio::test]
async fn a_server_that_is_told_to_end_lets_its_runs_save() {
    let Some(mut lab) = Lab::new("told", SLOW).await else { return };
    let run = lab.apply_until(&["--var", "seconds=60"], UNDER_WAY).await;
    let waiting = lab.run("plan", &[]).await.run();
    let began = std::time::Instant::now();
    assert!(lab.server.terminate().await.success(), "{}", lab.server.log());
    // Its grace is 30 seconds.
    assert!(began.elapsed() < std::time::Duration::from_secs(29), "{:?}", began.elapsed());
    assert_eq!(lab.processes(&run), []);
    lab.server.start_again().await;
    let shown = lab.ended(&run).await;
    assert_eq!((why(&shown).0, why(&shown).1), ("Interrupted", "ServerStopped"), "{shown}");
    let log = lab.log(&run).await.unwrap();
    assert_eq!(log.matches("Interrupt received").count(), 1, "{log}");
    assert!(!log.contains("Two interrupts"), "{log}");
    // What it saved last is the version that counts.
    let state: Value = serde_json::from_str(&lab.done(&["state", "get", &lab.tenant]).await).unwrap();
    let versions = lab.versions().await;
    assert_eq!(versions.last().unwrap()["serial"], state["serial"]);
    assert_eq!(lab.resources().await, ["terraform_data.first", "terraform_data.slow"]);
    assert_eq!(why(&lab.ended(&waiting).await).0, "Planned", "what waited goes on waiting, and has its turn");
    is_over(&lab, &run).await;
}
