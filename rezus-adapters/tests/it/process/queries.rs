//! Commands whose output is wanted whole.

use std::time::Duration;

use rezus_core::runs::Stage as RunStage;
use rezus_core::runs::executor::{ExecutorError, Query, TofuExecutor as _};
use rezus_testkit::contract::executor::{job, run, secret};

use super::fixture::Stage;

fn query(stage: &Stage, lines: &str) -> Query {
    let job = stage.shell(job(run("query"), RunStage::Plan), lines);
    Query {
        tool: job.tool,
        work_dir: job.work_dir,
        arguments: vec!["state".to_owned(), "pull it".to_owned()],
        environment: [("TF_ENCRYPTION".to_owned(), secret("key"))].into(),
        timeout: Duration::from_mins(1),
        limit: 1 << 20,
    }
}

#[tokio::test]
async fn a_query_gives_both_outputs_and_the_code() {
    let stage = Stage::new();
    let lines = "printf '%s|' \"$@\"; /usr/bin/tr '\\0' '|' < /proc/$$/environ; /usr/bin/yes | /usr/bin/head -c 100000 >&2; exit 4";
    let answer = stage.process().query(query(&stage, lines)).await.unwrap();
    let text = String::from_utf8(answer.stdout.to_vec()).unwrap();
    let mut words: Vec<&str> = text.split_terminator('|').collect();
    words.sort_unstable();
    assert_eq!(
        words,
        ["CHECKPOINT_DISABLE=1", "TF_ENCRYPTION=key", "TF_INPUT=0", "TF_IN_AUTOMATION=1", "pull it", "state"]
    );
    assert_eq!((answer.code, answer.stderr.reveal().len()), (Some(4), 64 << 10));
    assert!(!format!("{answer:?}").contains("pull"));
    let killed = stage.process().query(query(&stage, "kill -9 $$")).await.unwrap();
    assert_eq!(killed.code, None);
}

/// Tells when all that has a file open is gone: a lock on it can be had.
async fn is_free(path: &std::path::Path) {
    let mut waiting = tokio::process::Command::new("flock").arg(path).arg("true").spawn().unwrap();
    let status = tokio::time::timeout(Duration::from_mins(1), waiting.wait()).await;
    assert!(status.expect("all processes are gone").unwrap().success());
}

#[tokio::test]
async fn a_query_that_is_too_long_or_too_slow_or_dropped_leaves_nothing_running() {
    let stage = Stage::new();
    let lock = stage.path().join("lock");
    let begun = stage.path().join("begun");
    let script = |rest: &str| {
        format!(
            "exec 9> {lock}\n/usr/bin/flock 9\n/bin/sleep 1000 &\n: > {begun}\n{rest}\nwait",
            lock = lock.display(),
            begun = begun.display(),
        )
    };
    let mut long = query(&stage, &script("/usr/bin/yes"));
    long.limit = 100_000;
    assert!(matches!(stage.process().query(long).await, Err(ExecutorError::TooLong(100_000))));
    is_free(&lock).await;

    let mut slow = query(&stage, &script(""));
    slow.timeout = Duration::from_millis(300);
    assert!(matches!(stage.process().query(slow).await, Err(ExecutorError::TimedOut)));
    is_free(&lock).await;

    std::fs::remove_file(&begun).unwrap();
    let executor = stage.process().clone();
    let dropped = query(&stage, &script(""));
    let task = tokio::spawn(async move { executor.query(dropped).await.map(drop) });
    while !begun.exists() {
        tokio::task::yield_now().await;
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    is_free(&lock).await;
}
