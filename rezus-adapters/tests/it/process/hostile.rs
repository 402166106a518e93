//! Programs that do what no program should.

use std::time::Duration;

use rezus_core::runs::Stage as RunStage;
use rezus_core::runs::executor::{Ending, Exit, Happening, RunId, Stopped, TofuExecutor as _};
use rezus_testkit::contract::executor::{
    ExecutorFixture as _, execute, follow, job, next, read_log, run, secret, whole_log,
};
use rezus_testkit::fake::Script;

use super::fixture::Stage;

const GOOD: Ending = Ending { exit: Exit::Code(0), step: 0, stopped: None, killed: false };

/// Runs lines of shell to their end and returns how that was.
async fn shell(stage: &Stage, id: &RunId, lines: &str) -> Ending {
    let job = stage.shell(job(id.clone(), RunStage::Apply), lines);
    let mut execution = stage.process().start(job).await.unwrap();
    follow(execution.as_mut()).await.ending
}

/// The numbers that a program wrote into its log, one a line behind a word.
fn pids(log: &str, word: &str) -> Vec<i32> {
    log.lines().filter_map(|line| line.strip_prefix(word)?.trim().parse().ok()).collect()
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

#[tokio::test]
async fn what_a_program_leaves_running_is_ended_with_it() {
    let (stage, id) = (Stage::new(), run("orphans"));
    let lines = "trap '' HUP
/bin/sleep 1000 & echo pid $!
/usr/bin/setsid /bin/sh -c 'echo pid $$; trap \"\" INT TERM HUP; /bin/sleep 1000 & echo pid $!; wait' &
/usr/bin/setsid /usr/bin/env -i /bin/sh -c 'echo pid $$; exec /bin/sleep 1000' &
/bin/sleep 0.5";
    assert_eq!(shell(&stage, &id, lines).await, GOOD);
    let pids = pids(&whole_log(stage.process(), &id).await, "pid ");
    assert_eq!(pids.len(), 4);
    assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
}

#[tokio::test]
async fn what_ignores_every_signal_is_killed_with_all_it_began() {
    let (stage, id) = (Stage::new(), run("deaf"));
    let lines = "trap '' INT TERM HUP
/bin/sleep 1000 & echo pid $!
/usr/bin/setsid /bin/sleep 1000 & echo pid $!
echo ready
wait";
    let mut job = stage.shell(job(id.clone(), RunStage::Apply), lines);
    job.grace = Duration::from_millis(100);
    let mut execution = stage.process().start(job).await.unwrap();
    while !whole_log(stage.process(), &id).await.contains("ready") {
        next(execution.as_mut()).await;
    }
    execution.interrupt();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!(
        ending,
        Ending { exit: Exit::Signal(9), step: 0, stopped: Some(Stopped::Asked), killed: true }
    );
    let pids = pids(&whole_log(stage.process(), &id).await, "pid ");
    assert_eq!(pids.len(), 2);
    assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
}

/// The most memory the supervisor of a run has had, in KiB.
fn high_water(stage: &Stage, id: &RunId) -> u64 {
    let record = std::fs::read(stage.run_folder(id).join("apply.process")).unwrap();
    let record: serde_json::Value = serde_json::from_slice(&record).unwrap();
    let pid = &record["supervisor"]["pid"];
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_flood_is_taken_in_constant_memory() {
    let (stage, id) = (Stage::new(), run("flood"));
    let mib = if std::env::var("DRILLS").as_deref() == Ok("full") { 1024 } else { 64 };
    let event = r#"{"@message":"x","hook":{"resource":{"addr":"a.b","resource_type":"a"},"action":"create"},"type":"apply_progress"}"#;
    // Lines, one endless line, and events.
    let lines = format!(
        "/usr/bin/yes 'a line of a flood' | /usr/bin/head -c {half}
/usr/bin/head -c {half} /dev/zero
echo
/usr/bin/yes '{event}' | /usr/bin/head -c {half}
echo
echo done
{wait}",
        half = mib << 19,
        wait = stage.wait("measured"),
    );
    let limit = 8 << 20;
    let mut job = stage.shell(job(id.clone(), RunStage::Apply), &lines);
    job.log_limit = limit;
    job.timeout = Duration::from_hours(1);
    job.secrets = vec![secret("a secret that is looked for in all of it")];
    let mut execution = stage.process().start(job).await.unwrap();
    // The first events come when most of it is over; the rest is waited for by the gate below.
    let mut events = 0_u64;
    while events < 1000 {
        if matches!(next_slowly(execution.as_mut()).await, Happening::Event(_)) {
            events += 1;
        }
    }
    let memory = high_water(&stage, &id);

    assert!(memory < 12 << 10, "the supervisor had {memory} KiB");
    stage.open_gate("measured").await;
    loop {
        match next_slowly(execution.as_mut()).await {
            Happening::Event(_) => events += 1,
            Happening::Log(_) => {}
            Happening::Ended(ending) => {
                assert_eq!(ending, GOOD);
                break;
            }
        }
    }
    let written = (mib << 19) / (u64::try_from(event.len()).unwrap() + 1);
    assert_eq!(events, written.min(200_000));
    let log = read_log(stage.process(), &id, 0, 1 << 20).await.unwrap();
    let log_length = u64::try_from(log.len()).unwrap();
    assert!(log_length > limit && log_length < limit + 200, "{log_length}");
    let note = String::from_utf8_lossy(&log[usize::try_from(limit).unwrap()..]).into_owned();
    assert!(note.contains("more bytes were written than this log may hold"), "{note}");
}

/// Of a program that is at work for minutes.
async fn next_slowly(execution: &mut dyn rezus_core::runs::executor::Execution) -> Happening {
    tokio::time::timeout(Duration::from_mins(10), execution.next()).await.unwrap().unwrap()
}

#[tokio::test]
async fn odd_output_is_kept_byte_for_byte() {
    let (stage, id) = (Stage::new(), run("odd"));
    let lines = "printf 'a\\303'; /bin/sleep 0.1; printf '\\244b\\n'
printf '\\377\\376 no UTF-8 \\200\\n'
printf '\\033[31mred\\033[0m 10%%\\r20%%\\r30%%\\n'
/usr/bin/head -c 5000000 /dev/zero | /usr/bin/tr '\\0' x; echo
/usr/bin/seq 200000
printf '{\"@message\": \"cut'; printf ' in two\", \"type\": \"log\"}\\n'
printf 'no end'";
    assert_eq!(shell(&stage, &id, lines).await, GOOD);
    let mut expected = b"a\xc3\xa4b\n\xff\xfe no UTF-8 \x80\n\x1b[31mred\x1b[0m 10%\r20%\r30%\n".to_vec();
    expected.extend(std::iter::repeat_n(b'x', 5_000_000));
    expected.push(b'\n');
    for number in 1..=200_000 {
        expected.extend(format!("{number}\n").bytes());
    }
    expected.extend(b"cut in two\nno end\n");
    let log = read_log(stage.process(), &id, 0, 1 << 20).await.unwrap();
    assert_eq!(log.len(), expected.len());
    assert!(log == expected, "the log is not what was written");
    stage.process().seal(&id).await.unwrap();
    assert!(read_log(stage.process(), &id, 0, 777_777).await.unwrap() == expected);
}

#[tokio::test]
async fn a_secret_in_an_endless_line_is_taken_out_wherever_it_stands() {
    let (stage, id) = (Stage::new(), run("endless-line"));
    // At the place where the line becomes too long to be held, and far beyond.
    let script = Script::default();
    let lines = "/usr/bin/head -c 1048570 /dev/zero | /usr/bin/tr '\\0' x; printf top; /bin/sleep 0.1; printf 'secret1'
/usr/bin/head -c 3000000 /dev/zero | /usr/bin/tr '\\0' x; printf 'topsec'; /bin/sleep 0.1; printf 'ret1\\n'
printf '{\"@message\":\"tops'; printf 'ecret1\",\"type\":\"diagnostic\",\"diagnostic\":{\"summary\":\"topsecret1\"}}\\n'";
    let mut job = stage.shell(stage.play(job(id.clone(), RunStage::Apply), &script), lines);
    job.secrets = vec![secret("topsecret1")];
    let mut execution = stage.process().start(job).await.unwrap();
    let told = follow(execution.as_mut()).await;
    assert_eq!((told.ending, told.events.len()), (GOOD, 1));
    let log = whole_log(stage.process(), &id).await;
    let rest = log.trim_start_matches('x').strip_prefix("(sensitive value)").unwrap();
    assert_eq!(rest.trim_start_matches('x'), "(sensitive value)\n(sensitive value)\n");
    for file in std::fs::read_dir(stage.run_folder(&id)).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(10).any(|it| it == b"topsecret1"), "{}", path.display());
    }
}

#[tokio::test]
async fn steps_follow_each_other_until_one_fails() {
    let (stage, id) = (Stage::new(), run("steps"));
    let mut job = stage.shell(job(id.clone(), RunStage::Plan), "echo \"$@\"; exit $2");
    job.steps = vec![vec!["init", "0"], vec!["plan; echo $0 *", "3"], vec!["never", "0"]]
        .into_iter()
        .map(|step| step.into_iter().map(str::to_owned).collect())
        .collect();
    let mut execution = stage.process().start(job).await.unwrap();
    let ending = follow(execution.as_mut()).await.ending;
    assert_eq!(ending, Ending { exit: Exit::Code(3), step: 1, ..GOOD });
    assert_eq!(whole_log(stage.process(), &id).await, "init 0\nplan; echo $0 * 3\n");
}

#[tokio::test]
async fn what_cannot_be_started_has_left_nothing() {
    let (stage, id) = (Stage::new(), run("nothing"));
    let mut job = stage.shell(job(id.clone(), RunStage::Plan), "");
    job.tool.path = stage.path().join("no-such-program");
    let error = stage.process().start(job).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("cannot start the program: No such file or directory"), "{error}: {cause}");
    assert!(stage.process().find(&id, RunStage::Plan).await.unwrap().is_none());
    // It is not there for good.
    assert_eq!(execute(&stage, &id, &Script::lines(["x"])).await.ending, GOOD);
}
