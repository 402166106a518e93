//! A long log: written, followed and read again, each in constant memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rezus_benches::{Client, Outcome, Promise, Row, children, size, vm_kib};

use crate::{memory, stand_in, start};

/// How long it is, in bytes.
const LENGTH: u64 = 500_000_000;

/// How much memory it may take beside what there was, in MB.
const MOST: f64 = 32.0;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(5);

const LINE: &str =
    "module.site[\"eu-1\"].local_exec: still at it, and here is another line of what it has to say";

/// Has a program write a long log, and somebody read it while it grows.
pub(crate) async fn long(binary: &Path) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let length = size(LENGTH, 1_000_000);
    let configuration = directory.path().join("configuration");
    std::fs::create_dir(&configuration)?;
    std::fs::write(configuration.join("main.tf"), "")?;
    let plan = format!("yes '{LINE}' | head -c {length}");
    let tool = stand_in(directory.path(), ":", &plan)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let server = start(binary, &directory.path().join("data"), &tool, &[("PATH", &path)]).await?;
    let client = server.client()?;
    client.configure("long", &configuration).await?;
    client.send("GET", "/apis/rezuscloud.io/v1alpha1/tenants", "").await?;

    let before = server.vm_kib("VmRSS")?;
    let supervisors = Supervisors::of(server.id()?);
    let start = Instant::now();
    let run = client.ask_run("long", "plan").await?;
    let log = format!("/apis/rezuscloud.io/v1alpha1/namespaces/long/runs/{}/log", run.name);
    let followed = read(&client, &format!("{log}?follow=true")).await?;
    let took = start.elapsed();
    let ended = client.watch_runs(Some("long"), &run.version, 1).await?;
    if ended.values().any(|status| status["phase"] != "Planned") {
        return Err(format!("the run has not ended as it should: {ended:?}").into());
    }
    let supervisor = supervisors.end();
    let again = Instant::now();
    let kept = read(&client, &log).await?;
    let again = again.elapsed();
    let grown = server.vm_kib("VmHWM")?.saturating_sub(before);

    let rate = |bytes: u64, took: Duration| Outcome::Ok(mega(bytes)? / took.as_secs_f64());
    let differ =
        mega(followed.abs_diff(kept) + kept.saturating_sub(length + 1) + length.saturating_sub(kept))?;
    let what = format!("a log of {:.0} MB", mega(length)?);
    let read = |what: &str, bytes, took: Duration| {
        let figure = format!("{:.2} s", took.as_secs_f64());
        Outcome::Ok(Row::alone(what, figure, (rate(bytes, took)?, " MB/s"), Promise::Nothing))
    };
    Ok(vec![
        read(&format!("{what}, from asking for the run to its last byte followed"), followed, took)?,
        read("all of it read again, as it is kept", kept, again)?,
        Row::alone(
            "bytes that one saw and the other did not",
            format!("{followed} and {kept}"),
            (differ * 1e6, " bytes"),
            Promise::AtMost(0.0),
        ),
        memory("memory of the server beyond what it had before", grown, Promise::AtMost(MOST))?,
        memory("most memory of the supervisor", supervisor, Promise::AtMost(MOST))?,
    ])
}

/// Reads an answer to its end, and returns its length.
async fn read(client: &Client, target: &str) -> Outcome<u64> {
    let mut answer = client.open("GET", target, "").await?;
    let mut length = 0;
    while let Some(piece) = answer.chunk().await? {
        length += u64::try_from(piece.len())?;
    }
    Ok(length)
}

fn mega(bytes: u64) -> Outcome<f64> {
    Ok(f64::from(u32::try_from(bytes)?) / 1e6)
}

/// Whoever looks at the memory of a server's supervisors.
struct Supervisors {
    most: Arc<AtomicU64>,
    looking: tokio::task::JoinHandle<()>,
}

impl Supervisors {
    fn of(server: u32) -> Self {
        let most = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&most);
        let looking = tokio::spawn(async move {
            loop {
                for supervisor in children(server, "supervise").unwrap_or_default() {
                    // One that has ended meanwhile has none.
                    seen.fetch_max(vm_kib(supervisor, "VmHWM").unwrap_or(0), Ordering::Relaxed);
                }
                tokio::time::sleep(LOOK).await;
            }
        });
        Self { most, looking }
    }

    /// The most that one had, in KiB.
    fn end(self) -> u64 {
        self.looking.abort();
        self.most.load(Ordering::Relaxed)
    }
}
