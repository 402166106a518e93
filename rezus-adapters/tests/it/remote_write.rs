//! Remote write against a real Prometheus, and against receivers that refuse, hang up, or are not there.

mod prometheus;
mod receiver;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rezus_adapters::clock::SystemClock;
use rezus_adapters::remote_write::{RemoteWrite, RemoteWriteConfig};
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::series::{Entry, Forwarded, Forwarder as _, Labels, STALE, Sample, TimeSeriesSink as _};
use rezus_testkit::fake::cluster::{Authority, Validity};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use prometheus::Prometheus;
use receiver::Receiver;

/// No wait here is longer.
const PATIENCE: Duration = Duration::from_mins(1);

fn config(directory: &Path, url: &str) -> RemoteWriteConfig {
    RemoteWriteConfig {
        url: url.to_owned(),
        bearer_token_file: None,
        basic_auth_file: None,
        ca_file: None,
        queue: directory.join("remote-write.db"),
        queue_bytes: 64 << 20,
    }
}

/// A queue whose samples are sent until it is dropped.
struct Sending {
    remote: RemoteWrite,
    task: JoinHandle<()>,
    told: Arc<Mutex<Vec<String>>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sending {
    fn start(config: &RemoteWriteConfig) -> Self {
        let remote = RemoteWrite::open(config, Arc::new(SystemClock)).unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let (sender, heard) = (remote.clone(), Arc::clone(&told));
        let task = tokio::spawn(async move {
            let tell = move |error: &(dyn std::error::Error + 'static)| {
                heard.lock().unwrap().push(error.to_string());
            };
            sender.forward(&tell).await;
        });
        Self { remote, task, told }
    }

    async fn until(&self, what: &str, holds: impl Fn(Forwarded) -> bool) -> Forwarded {
        let reached = async {
            loop {
                let forwarded = self.remote.forwarded();
                if holds(forwarded) {
                    return forwarded;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let reached = tokio::time::timeout(PATIENCE, reached).await;
        reached.unwrap_or_else(|_| {
            panic!("{what}: {:?}, {:?}", self.remote.forwarded(), self.told.lock().unwrap())
        })
    }

    async fn stop(self) {
        self.task.abort();
        while !self.task.is_finished() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn labels(node: &str) -> Labels {
    Labels::new([("__name__", "rezus_test"), ("tenant", "prod"), ("node", node), ("z", "ü \"quoted\" \\")])
        .unwrap()
}

fn entry(node: &str, at: Timestamp, value: f64) -> Entry {
    Entry { labels: labels(node), sample: Sample { at, value } }
}

/// A time so many seconds ago, on a whole second.
fn ago(seconds: i64) -> Timestamp {
    let now = SystemClock.now().as_millis() / 1_000;
    Timestamp::from_millis((now - seconds) * 1_000)
}

#[tokio::test]
async fn samples_arrive_in_a_real_prometheus_bit_for_bit() {
    let Some(prometheus) = Prometheus::start().await else { return };
    let directory = TempDir::new().unwrap();
    let sending = Sending::start(&config(directory.path(), &prometheus.write_url()));
    let values = [0.1, -0.0, 1e300, 5e-324, 1_796_065_837.123, f64::INFINITY, f64::NEG_INFINITY, 42.0];
    let start = ago(200);
    let at = |step: usize| start.after(Duration::from_secs(10) * u32::try_from(step).unwrap());
    let entries: Vec<Entry> =
        values.iter().enumerate().map(|(step, value)| entry("a", at(step), *value)).collect();
    sending.remote.append(&entries).await.unwrap();
    // One of a million series' worth in one call: several requests.
    let many: Vec<Entry> =
        (0..5_000).map(|number| entry(&format!("n{number}"), at(0), f64::from(number))).collect();
    sending.remote.append(&many).await.unwrap();
    sending.until("all sent", |it| it.pending == 0).await;
    let forwarded = sending.remote.forwarded();
    assert_eq!((forwarded.sent, forwarded.refused, forwarded.dropped), (5_008, 0, 0));
    assert!(forwarded.succeeded_at.is_some());

    let found =
        prometheus.samples(r#"rezus_test{tenant="prod",node="a",z="ü \"quoted\" \\"}"#, at(8), 300).await;
    let expected: Vec<(i64, u64)> =
        entries.iter().map(|entry| (entry.sample.at.as_millis(), entry.sample.value.to_bits())).collect();
    let found: Vec<(i64, u64)> = found.into_iter().map(|(at, value)| (at, value.to_bits())).collect();
    assert_eq!(found, expected);
    let count = prometheus.instant("count(rezus_test{node=~\"n.*\"})", at(0)).await;
    assert_eq!(count, Some(5_000.0));

    // The end of a series is an end there, too, and no value.
    sending.remote.append(&[entry("a", at(9), STALE)]).await.unwrap();
    sending.until("the end is sent", |it| it.sent == 5_009).await;
    assert_eq!(prometheus.instant("rezus_test{node=\"a\"}", at(8)).await, Some(42.0));
    assert_eq!(prometheus.instant("rezus_test{node=\"a\"}", at(9)).await, None);
}

#[tokio::test]
async fn what_nobody_takes_waits_over_a_restart_and_arrives_in_order() {
    let Some(mut prometheus) = Prometheus::start().await else { return };
    let directory = TempDir::new().unwrap();
    let config = config(directory.path(), &prometheus.write_url());
    let start = ago(200);
    let at = |step: u32| start.after(Duration::from_secs(10) * step);
    let sending = Sending::start(&config);
    sending.remote.append(&[entry("a", at(0), 0.0)]).await.unwrap();
    sending.until("the first is sent", |it| it.sent == 1).await;

    prometheus.stop();
    for step in 1..5 {
        sending.remote.append(&[entry("a", at(step), f64::from(step))]).await.unwrap();
    }
    let forwarded = sending.until("it was tried", |it| it.retried > 0).await;
    assert_eq!((forwarded.sent, forwarded.pending), (1, 4));
    assert!(sending.told.lock().unwrap().iter().all(|told| told.contains("does not answer")));
    sending.stop().await;

    let sending = Sending::start(&config);
    for step in 5..8 {
        sending.remote.append(&[entry("a", at(step), f64::from(step))]).await.unwrap();
    }
    assert_eq!(sending.remote.forwarded().pending, 7);
    prometheus.start_again().await;
    let forwarded = sending.until("the rest is sent", |it| it.pending == 0).await;
    assert_eq!((forwarded.sent, forwarded.refused), (7, 0));
    let found = prometheus.samples("rezus_test{node=\"a\"}", at(8), 300).await;
    let expected: Vec<(i64, f64)> = (0..8).map(|step| (at(step).as_millis(), f64::from(step))).collect();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_was_sent_and_is_still_in_the_queue_is_sent_again_and_costs_no_other_sample() {
    let Some(prometheus) = Prometheus::start().await else { return };
    let directory = TempDir::new().unwrap();
    let config = config(directory.path(), &prometheus.write_url());
    let start = ago(200);
    let at = |step: u32| start.after(Duration::from_secs(10) * step);
    {
        let queued = RemoteWrite::open(&config, Arc::new(SystemClock)).unwrap();
        for step in 0..3 {
            queued.append(&[entry("a", at(step), f64::from(step))]).await.unwrap();
        }
    }
    // The files as they are when a process is killed between sending and taking out.
    let kept = TempDir::new().unwrap();
    copy(directory.path(), kept.path());
    let sending = Sending::start(&config);
    sending.until("all sent", |it| it.sent == 3).await;
    sending.stop().await;
    copy(kept.path(), directory.path());

    let sending = Sending::start(&config);
    sending.remote.append(&[entry("a", at(3), 3.0), entry("b", at(3), 4.0)]).await.unwrap();
    let forwarded = sending.until("all settled", |it| it.pending == 0).await;
    // Prometheus takes a repeat of the newest sample of a series, and refuses those before it.
    assert_eq!(forwarded.sent + forwarded.refused, 5, "{forwarded:?}");
    let found = prometheus.samples("rezus_test{node=\"a\"}", at(8), 300).await;
    let expected: Vec<(i64, f64)> = (0..4).map(|step| (at(step).as_millis(), f64::from(step))).collect();
    assert_eq!(found, expected);
    assert_eq!(prometheus.instant("rezus_test{node=\"b\"}", at(3)).await, Some(4.0));
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(to).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for entry in std::fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

#[tokio::test]
async fn a_refusal_is_final_and_a_wait_is_waited() {
    let receiver = Receiver::start().await;
    receiver.answers(&["HTTP/1.1 400 Bad Request\r\ncontent-length: 19\r\n\r\nout of order sample"]);
    let directory = TempDir::new().unwrap();
    let sending = Sending::start(&config(directory.path(), &receiver.url()));
    sending.remote.append(&[entry("a", ago(10), 1.0)]).await.unwrap();
    let forwarded = sending.until("it is refused", |it| it.refused == 1 && it.pending == 0).await;
    assert_eq!((forwarded.pending, forwarded.retried, receiver.count()), (0, 0, 1));
    let told = sending.told.lock().unwrap().clone();
    assert_eq!(told, ["the receiver of remote write answered 400: out of order sample"]);

    // 429 with a wait, a redirect that is not followed, a break, and then success.
    let target = Receiver::start().await;
    let moved = format!("HTTP/1.1 307 Moved\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", target.url());
    receiver.answers(&[
        "HTTP/1.1 429 Slow\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n",
        &moved,
        "",
        "HTTP/1.1 204 No Content\r\n\r\n",
    ]);
    let began = std::time::Instant::now();
    sending.remote.append(&[entry("a", ago(9), 1.0)]).await.unwrap();
    let forwarded = sending.until("it is taken", |it| it.sent == 1).await;
    assert_eq!((forwarded.retried, receiver.count(), target.count()), (3, 5, 0));
    // No sooner than asked for: 2 s, then waits of its own.
    assert!(began.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn one_sample_that_is_refused_costs_no_other_call_its_samples() {
    let receiver = Receiver::start().await;
    receiver.refuses("poison");
    let directory = TempDir::new().unwrap();
    let config = config(directory.path(), &receiver.url());
    {
        let queued = RemoteWrite::open(&config, Arc::new(SystemClock)).unwrap();
        for number in 0..40 {
            let node = if number == 23 { "poison".to_owned() } else { format!("n{number}") };
            queued.append(&[entry(&node, ago(60), 1.0)]).await.unwrap();
        }
    }
    let sending = Sending::start(&config);
    let forwarded = sending.until("all settled", |it| it.pending == 0).await;
    assert_eq!((forwarded.sent, forwarded.refused), (39, 1));
    let taken = receiver.taken();
    assert_eq!(taken.iter().filter(|node| *node != "poison").count(), 39);
}

#[tokio::test]
async fn headers_are_those_of_the_protocol_and_secrets_are_only_in_theirs() {
    let receiver = Receiver::start().await;
    let directory = TempDir::new().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "canary-bearer-7f3a\n").unwrap();
    let with_token = RemoteWriteConfig {
        bearer_token_file: Some(token.clone()),
        ..config(directory.path(), &receiver.url())
    };
    let sending = Sending::start(&with_token);
    sending.remote.append(&[entry("a", ago(10), 1.0)]).await.unwrap();
    sending.until("it is taken", |it| it.sent == 1).await;
    let head = receiver.heads().remove(0).to_ascii_lowercase();
    assert!(head.starts_with("post /api/v1/write?x=1 http/1.1\r\n"), "{head}");
    for line in [
        "content-encoding: snappy",
        "content-type: application/x-protobuf",
        "x-prometheus-remote-write-version: 0.1.0",
        "authorization: bearer canary-bearer-7f3a",
        &format!("host: {}", receiver.address()),
    ] {
        assert!(head.lines().any(|found| found == line), "{line}: {head}");
    }
    assert!(head.lines().any(|line| line.starts_with("user-agent: rezus/")), "{head}");

    // It is exchanged while the server runs; where it is gone, nothing is sent, and nothing lost.
    std::fs::remove_file(&token).unwrap();
    sending.remote.append(&[entry("a", ago(9), 1.0)]).await.unwrap();
    sending.until("it was tried", |it| it.retried > 0).await;
    std::fs::write(&token, "another").unwrap();
    sending.until("it is taken", |it| it.sent == 2).await;
    assert!(receiver.heads().remove(1).to_ascii_lowercase().contains("bearer another"));
    let told = format!("{:?} {:?} {:?}", sending.told.lock().unwrap(), sending.remote, with_token);
    assert!(!told.contains("canary-bearer"), "{told}");
}

#[tokio::test]
async fn nothing_is_sent_to_whom_no_authority_of_ours_knows() {
    let (ours, other) = (Authority::new("ours"), Authority::new("ours"));
    let receiver = Receiver::start_tls(&ours.loopback_server(Validity::ALWAYS)).await;
    let directory = TempDir::new().unwrap();
    let (token, ca) = (directory.path().join("token"), directory.path().join("ca.pem"));
    std::fs::write(&token, "canary-bearer-7f3a").unwrap();
    std::fs::write(&ca, other.certificate()).unwrap();
    let config = RemoteWriteConfig {
        bearer_token_file: Some(token),
        ca_file: Some(ca.clone()),
        ..config(directory.path(), &receiver.url())
    };
    let sending = Sending::start(&config);
    sending.remote.append(&[entry("a", ago(10), 1.0)]).await.unwrap();
    sending.until("it was tried", |it| it.retried > 0).await;
    assert_eq!((receiver.count(), sending.remote.forwarded().pending), (0, 1));
    sending.stop().await;
    std::fs::write(&ca, ours.certificate()).unwrap();
    let sending = Sending::start(&config);
    sending.until("it is taken", |it| it.sent == 1).await;
    assert_eq!(receiver.count(), 1);
}
