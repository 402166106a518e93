//! What was acknowledged is there after the power is cut, and was on the disk before it was acknowledged.

use std::collections::BTreeMap;
use std::process::Stdio;

use rezus_core::declared::Fingerprint;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use crate::lock::{APPLY, id, info, state_with};
use crate::server::Server;
use crate::tools;

/// A generator of its own, so that a failure can be run again by its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// One writer's tenant: what it sent, and how much of that it was told is kept.
#[derive(Clone, Debug, Default)]
struct Ledger {
    /// Bodies in the order they were sent.
    sent: Vec<String>,
    /// How many of them were acknowledged.
    acknowledged: usize,
    /// Whether a LOCK was acknowledged and its UNLOCK not even sent.
    locked: bool,
}

const LINEAGE: &str = "0b0e5f04-6c4c-4a6e-9a3b-5a1d4b7c9e21";

/// Locks, writes and unlocks one state after another until the server is gone.
async fn write_until_cut(
    http: reqwest::Client,
    url: String,
    tenant: String,
    mut ledger: Ledger,
    mut random: Random,
    acknowledged: tokio::sync::mpsc::UnboundedSender<()>,
) -> Ledger {
    let send = |method: &'static str, query: String, body: String| {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = http.request(method, format!("{url}/state/{tenant}{query}")).body(body);
        async move { request.send().await.is_ok_and(|answer| answer.status().as_u16() == 200) }
    };
    loop {
        let number = ledger.sent.len();
        let lock = id(u16::try_from(number % 60_000).unwrap());
        if !send("LOCK", String::new(), info(&lock, APPLY)).await {
            return ledger;
        }
        ledger.locked = true;
        // From a few hundred bytes to some hundred kilobytes: one page of the log, and many.
        let magnitude = random.below(16);
        let content = "filler ".repeat(usize::try_from(random.below(1 << magnitude)).unwrap());
        let body = state_with(LINEAGE, u64::try_from(number).unwrap() + 1, &format!("{content}{number}"));
        ledger.sent.push(body.clone());
        if !send("POST", format!("?ID={lock}"), body).await {
            return ledger;
        }
        ledger.acknowledged = ledger.sent.len();
        // From here on the lock may be held or not.
        ledger.locked = false;
        if acknowledged.send(()).is_err() || !send("UNLOCK", String::new(), info(&lock, APPLY)).await {
            return ledger;
        }
    }
}

/// Fails unless all that was acknowledged is there, whole, and nothing that was never sent.
async fn check(server: &Server, tenant: &str, ledger: &mut Ledger) {
    let tenants = server.get("/rezus/v1/tenants").await.expect(200, "tenants").items();
    let exists = tenants.iter().any(|shown| shown["name"] == tenant);
    // A first LOCK that was cut off may have made the tenant or not.
    let versions = if exists { server.versions(tenant).await } else { Vec::new() };
    let kept = versions.len();
    assert!(
        (ledger.acknowledged..=ledger.sent.len()).contains(&kept),
        "{tenant}: {kept} versions of {} acknowledged and {} sent",
        ledger.acknowledged,
        ledger.sent.len()
    );
    for (place, version) in versions.iter().enumerate() {
        let body = &ledger.sent[place];
        assert_eq!(version["version"], place + 1, "{tenant}: versions are counted without a gap");
        assert_eq!(
            version["sha256"],
            Fingerprint::of(body.as_bytes()).sha256_hex(),
            "{tenant}: version {place}"
        );
    }
    if kept > 0 {
        let current = server.get(&format!("/state/{tenant}")).await.expect(200, "the current state");
        assert!(current.body == ledger.sent[kept - 1], "{tenant}: the current state is torn");
        let resources =
            server.get(&format!("/rezus/v1/tenants/{tenant}/resources")).await.expect(200, "resources");
        let resources: Value = resources.json();
        assert_eq!((&resources["version"], resources["items"].as_array().unwrap().len()), (&kept.into(), 1));
    }
    let is_locked = server.locks().await.iter().any(|(locked, _)| locked == tenant);
    assert!(is_locked || !ledger.locked, "{tenant}: an acknowledged lock is gone");
    if is_locked {
        server.send("UNLOCK", &format!("/state/{tenant}"), "").await.expect(200, "breaking the lock");
    }
    // What was sent and not kept never happened.
    ledger.sent.truncate(kept);
    ledger.acknowledged = kept;
    ledger.locked = false;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_moment_loses_nothing_acknowledged_and_leaves_nothing_torn() {
    let rounds = if tools::drills_are_full() { 200 } else { 20 };
    let mut random = Random(0x7265_7a75);
    let mut server = Server::start().await;
    let mut ledgers: BTreeMap<String, Ledger> =
        (1..=3).map(|number| (format!("tenant-{number}"), Ledger::default())).collect();
    let mut kept = 0;
    for round in 0..rounds {
        let (acknowledge, mut acknowledged) = tokio::sync::mpsc::unbounded_channel();
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let writers: Vec<_> = ledgers
            .iter()
            .map(|(tenant, ledger)| {
                let (tenant, ledger) = (tenant.clone(), ledger.clone());
                let random = Random(random.below(u64::MAX));
                let writing = write_until_cut(
                    http.clone(),
                    server.url().to_owned(),
                    tenant.clone(),
                    ledger,
                    random,
                    acknowledge.clone(),
                );
                (tenant, tokio::spawn(writing))
            })
            .collect();
        for _ in 0..=random.below(20) {
            acknowledged.recv().await.unwrap();
        }
        // Anywhere in what the writers do next: a write takes a few milliseconds.
        let moment = std::time::Duration::from_micros(random.below(6_000));
        tokio::time::sleep(moment).await;
        server.kill().await;
        drop(acknowledged);
        for (tenant, writer) in writers {
            *ledgers.get_mut(&tenant).unwrap() = writer.await.unwrap();
        }
        server.start_again().await;
        for (tenant, ledger) in &mut ledgers {
            check(&server, tenant, ledger).await;
        }
        kept = ledgers.values().map(|ledger| ledger.acknowledged).sum();
        assert!(kept > round, "writers got somewhere in every round");
    }
    tools::say(&format!(
        "killed {rounds} times: {kept} versions of 3 tenants acknowledged, none lost, none torn"
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_is_synced_before_each_answer_that_says_done() {
    let server = Server::start().await;
    let Some(strace) = tools::find("strace") else {
        tools::missing("strace", "whether the log is synced before each answer");
        return;
    };
    let trace = server.scratch().join("trace");
    let mut tracer = Command::new(strace)
        .args([
            "-f",
            "-y",
            "-s",
            "60",
            "-e",
            "trace=read,recvfrom,fsync,fdatasync,write,writev,sendto,sendmsg",
        ])
        .args(["-p", &server.pid().to_string(), "-o"])
        .arg(&trace)
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(tracer.stderr.take().unwrap()).lines();
    while !said.next_line().await.unwrap().expect("strace attaches").contains("attached") {}

    let mut expected = 0;
    for number in 1..=5 {
        let lock = id(number);
        let body = state_with(LINEAGE, u64::from(number), &"x".repeat(usize::from(number) * 40_000));
        server.send("LOCK", "/state/synced", info(&lock, APPLY)).await.expect(200, "LOCK");
        server.send("POST", &format!("/state/synced?ID={lock}"), body).await.expect(200, "POST");
        server.send("UNLOCK", "/state/synced", info(&lock, APPLY)).await.expect(200, "UNLOCK");
        expected += 3;
    }
    server.send("DELETE", "/state/synced", "").await.expect(200, "DELETE");
    expected += 1;
    let pid = nix::unistd::Pid::from_raw(i32::try_from(tracer.id().unwrap()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    tracer.wait().await.unwrap();

    let trace = std::fs::read_to_string(trace).unwrap();
    assert_eq!(synced_answers(&trace), expected, "{trace}");
}

/// Counts the answers to writes; panics at one before which the log was not synced since its request came.
fn synced_answers(trace: &str) -> usize {
    let is_write = |line: &str| {
        ["\"LOCK /state", "\"POST /state", "\"UNLOCK /state", "\"DELETE /state"]
            .iter()
            .any(|start| line.contains(start))
    };
    let (mut pending, mut synced, mut answers) = (false, false, 0);
    for line in trace.lines() {
        let is_read = line.contains("read(") || line.contains("recvfrom(") || line.contains("resumed>\"");
        if is_read && is_write(line) {
            (pending, synced) = (true, false);
        } else if line.contains("sync")
            && line.ends_with("= 0")
            && (line.contains("-wal") || line.contains("resumed"))
        {
            synced = true;
        } else if pending && line.contains("\"HTTP/1.1 200") {
            assert!(synced, "an answer before any sync:\n{line}");
            (pending, answers) = (false, answers + 1);
        }
    }
    answers
}
