//! Who watches is lost: the supervisor, the server, or both.

use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rezus_core::runs::Stage as RunStage;
use rezus_core::runs::executor::{Ending, Execution, Exit, Job, RunId, Stopped, TofuExecutor as _};
use rezus_testkit::contract::executor::{follow, job, next, run, whole_log};
use serde_json::Value;

use super::fixture::Stage;

/// The file that says which processes there are.
fn record(stage: &Stage, id: &RunId) -> Value {
    let bytes = std::fs::read(stage.run_folder(id).join("apply.process")).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn pid(record: &Value, whose: &str) -> Pid {
    Pid::from_raw(i32::try_from(record[whose]["pid"].as_i64().unwrap()).unwrap())
}

fn lives(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

async fn until_ready(stage: &Stage, execution: &mut dyn Execution, id: &RunId) {
    while !whole_log(stage.process(), id).await.contains("ready") {
        next(execution).await;
    }
}

/// A program that notes its end in a file, as its output may have nowhere to go.
fn saving(stage: &Stage, id: &RunId) -> Job {
    let saved = stage.path().join("saved");
    let lines = format!(
        "trap 'echo saved > {}; exit 5' INT
/usr/bin/setsid /bin/sleep 1000 & echo $! > {}
echo ready
while :; do /bin/sleep 0.02; done",
        saved.display(),
        stage.path().join("elsewhere").display(),
    );
    stage.shell(job(id.clone(), RunStage::Apply), &lines)
}

fn elsewhere(stage: &Stage) -> Pid {
    let text = std::fs::read_to_string(stage.path().join("elsewhere")).unwrap();
    Pid::from_raw(text.trim().parse().unwrap())
}

#[tokio::test]
async fn when_the_supervisor_is_killed_its_program_is_interrupted() {
    let (stage, id) = (Stage::new(), run("orphan"));
    let mut execution = stage.process().start(saving(&stage, &id)).await.unwrap();
    until_ready(&stage, execution.as_mut(), &id).await;
    let record = record(&stage, &id);
    kill(pid(&record, "supervisor"), Signal::SIGKILL).unwrap();
    // What it leaves running hears no interrupt, and is not waited for.
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!(ending, Ending { exit: Exit::Unknown, step: 0, stopped: None, killed: false });
    assert_eq!(std::fs::read_to_string(stage.path().join("saved")).unwrap(), "saved\n");
    assert!(!lives(pid(&record, "child")) && !lives(elsewhere(&stage)));
    // It is known from then on.
    let mut found = stage.reopened().find(&id, RunStage::Apply).await.unwrap().unwrap();
    assert_eq!(follow(found.as_mut()).await.ending, ending);
}

#[tokio::test]
async fn what_a_killed_supervisor_left_is_killed_after_its_grace() {
    let (stage, id) = (Stage::new(), run("deaf-orphan"));
    let lines = "trap '' INT TERM HUP
/usr/bin/setsid /bin/sleep 1000 & echo pid $!
echo ready
while :; do /bin/sleep 0.02; done";
    let mut job = stage.shell(job(id.clone(), RunStage::Apply), lines);
    job.grace = Duration::from_millis(200);
    let mut execution = stage.process().start(job).await.unwrap();
    until_ready(&stage, execution.as_mut(), &id).await;
    let record = record(&stage, &id);
    kill(pid(&record, "supervisor"), Signal::SIGKILL).unwrap();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!(ending, Ending { exit: Exit::Unknown, step: 0, stopped: None, killed: true });
    assert!(!lives(pid(&record, "child")));
    let log = whole_log(stage.process(), &id).await;
    let other = log.lines().find_map(|line| line.strip_prefix("pid ")).unwrap().parse().unwrap();
    assert!(!lives(Pid::from_raw(other)));
}

/// A server in a runtime of its own, which ends as that of a killed one does: without a word.
fn lose_server(stage: &Stage, job: Job) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (executor, id) = (stage.reopened(), job.id.clone());
    std::thread::scope(|scope| {
        scope
            .spawn(|| {
                runtime.block_on(async {
                    let mut execution = executor.start(job).await.unwrap();
                    until_ready(stage, execution.as_mut(), &id).await;
                });
                runtime.shutdown_background();
            })
            .join()
            .unwrap();
    });
}

#[tokio::test]
async fn when_the_server_is_lost_the_program_is_interrupted_and_found_again() {
    let (stage, id) = (Stage::new(), run("lost"));
    lose_server(&stage, saving(&stage, &id));
    let mut found = stage.process().find(&id, RunStage::Apply).await.unwrap().unwrap();
    let ending = follow(found.as_mut()).await.ending;
    let expected = Ending { exit: Exit::Code(5), step: 0, stopped: Some(Stopped::ServerLost), killed: false };
    assert_eq!(ending, expected);
    assert_eq!(std::fs::read_to_string(stage.path().join("saved")).unwrap(), "saved\n");
    assert!(!lives(elsewhere(&stage)));
    assert_eq!(whole_log(stage.process(), &id).await, "ready\n");
}

#[tokio::test]
async fn a_job_of_a_lost_server_can_be_killed() {
    let (stage, id) = (Stage::new(), run("lost-deaf"));
    let lines = "trap '' INT
echo ready
while :; do /bin/sleep 0.02; done";
    lose_server(&stage, stage.shell(job(id.clone(), RunStage::Apply), lines));
    let mut found = stage.process().find(&id, RunStage::Apply).await.unwrap().unwrap();
    found.kill();
    let ending = follow(found.as_mut()).await.ending;
    // Whether its supervisor had seen before that the server was lost is a matter of luck.
    assert_eq!(ending.exit, Exit::Signal(9));
}

#[tokio::test]
async fn when_both_are_lost_the_program_is_ended_when_it_is_found() {
    let (stage, id) = (Stage::new(), run("both-lost"));
    // It hears no interrupt, so the supervisor waits for its grace.
    let lines = "trap '' INT
echo ready
while :; do /bin/sleep 0.02; done";
    lose_server(&stage, stage.shell(job(id.clone(), RunStage::Apply), lines));
    let mut record = record(&stage, &id);
    kill(pid(&record, "supervisor"), Signal::SIGKILL).unwrap();
    while lives(pid(&record, "supervisor")) {
        tokio::task::yield_now().await;
    }
    let child = pid(&record, "child");
    assert!(lives(child));
    record["graceMillis"] = 100.into();
    std::fs::write(stage.run_folder(&id).join("apply.process"), record.to_string()).unwrap();
    let mut found = stage.process().find(&id, RunStage::Apply).await.unwrap().unwrap();
    let ending = follow(found.as_mut()).await.ending;
    let expected = Ending { exit: Exit::Unknown, step: 0, stopped: Some(Stopped::ServerLost), killed: true };
    assert_eq!(ending, expected);
    assert!(!lives(child));
}

#[tokio::test]
async fn a_process_that_only_has_the_number_is_left_alone() {
    for change in ["start", "boot"] {
        let (stage, id) = (Stage::new(), run("reused"));
        let mut bystander = tokio::process::Command::new("/bin/sleep")
            .arg("1000")
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let number = bystander.id().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap();
        let start: u64 =
            stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let (boot, start) = match change {
            "start" => (boot.trim().to_owned(), start + 1),
            _ => ("00000000-0000-0000-0000-000000000000".to_owned(), start),
        };
        let process = serde_json::json!({"pid": number, "start": start});
        let record = serde_json::json!({
            "bootId": boot, "supervisor": process, "child": process, "step": 1,
            "workDir": "/none", "graceMillis": 100,
        });
        std::fs::create_dir_all(stage.run_folder(&id)).unwrap();
        std::fs::write(stage.run_folder(&id).join("apply.process"), record.to_string()).unwrap();
        let mut found = stage.process().find(&id, RunStage::Apply).await.unwrap().unwrap();
        let ending = follow(found.as_mut()).await.ending;
        let expected =
            Ending { exit: Exit::Unknown, step: 1, stopped: Some(Stopped::ServerLost), killed: false };
        assert_eq!(ending, expected);
        assert_eq!(bystander.try_wait().unwrap(), None, "it was signalled: {change}");
        bystander.kill().await.unwrap();
    }
}

#[tokio::test]
async fn signals_for_the_server_reach_neither_supervisor_nor_program() {
    let (stage, id) = (Stage::new(), run("apart"));
    let gate = stage.wait("on");
    let job = stage.shell(job(id.clone(), RunStage::Apply), &format!("echo ready\n{gate}\necho after"));
    let mut execution = stage.process().start(job).await.unwrap();
    until_ready(&stage, execution.as_mut(), &id).await;
    let record = record(&stage, &id);
    let (supervisor, child) = (pid(&record, "supervisor"), pid(&record, "child"));
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        kill(supervisor, signal).unwrap();
    }
    let session = |pid| nix::unistd::getsid(Some(pid)).unwrap();
    assert_eq!(session(supervisor), supervisor);
    assert_eq!(session(child), supervisor);
    assert_eq!(nix::unistd::getpgid(Some(child)).unwrap(), child);
    rezus_testkit::contract::executor::ExecutorFixture::open_gate(&stage, "on").await;
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!(ending, Ending { exit: Exit::Code(0), step: 0, stopped: None, killed: false });
    assert_eq!(whole_log(stage.process(), &id).await, "ready\nafter\n");
}
