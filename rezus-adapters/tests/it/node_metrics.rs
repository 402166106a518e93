//! The scraper of `node_exporter` against the real one, and against servers that are none.

use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::node_metrics::NodeMetricsScraper;
use rezus_core::base::{TenantName, Timestamp};
use rezus_core::observed::facts::{Facts, NodeMetrics};
use rezus_core::observed::{ClusterScraper as _, Destinations, Failure, Phase, Reading, Session, Target};
use rezus_testkit::clock::ManualClock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

const LONG: Duration = Duration::from_secs(30);

fn target(urls: Vec<String>) -> Target {
    Target {
        tenant: TenantName::parse("acme").unwrap(),
        endpoints: urls,
        credential: None,
        destinations: Destinations { allowed: [IpAddr::V4(Ipv4Addr::LOCALHOST)].into() },
    }
}

fn open(target: Target) -> Result<Box<dyn Session>, Failure> {
    NodeMetricsScraper::new(Arc::new(ManualClock::default())).open(target)
}

async fn read(urls: Vec<String>) -> Reading {
    open(target(urls)).unwrap().read(LONG).await
}

/// A server that answers each request with these bytes, so many times, and hangs up.
async fn server(head: &'static str, piece: &'static str, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _read = stream.read(&mut [0; 4_096]).await;
                let mut sent = stream.write_all(head.as_bytes()).await;
                for _ in 0..times {
                    sent = sent.and(stream.write_all(piece.as_bytes()).await);
                    if sent.is_err() {
                        return;
                    }
                }
            });
        }
    });
    url
}

fn facts(reading: &Reading) -> &NodeMetrics {
    match &reading.facts {
        Some(Facts::NodeMetrics(facts)) => facts,
        _ => panic!("no facts: {:?}", reading.failures),
    }
}

/// The failure of a source that could not be read at all.
async fn failure(head: &'static str, piece: &'static str, times: usize) -> Failure {
    let reading = read(vec![server(head, piece, times).await]).await;
    assert_eq!(reading.facts, None);
    let [(part, failure)] = reading.failures.try_into().unwrap();
    assert_eq!(part, "all");
    failure
}

const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn a_page_tells_a_machine() {
    let page = "# HELP node_load1 x\n\
        node_uname_info{machine=\"x86_64\",nodename=\"a\\\\b\"} 1\n\
        node_boot_time_seconds 1.7960000005e+09\n\
        node_load1 0.5\nnode_load5 0.25\nnode_load15 NaN\n\
        node_memory_MemTotal_bytes 8.192e+09\nnode_memory_MemAvailable_bytes 5e+09\n\
        node_filesystem_size_bytes{device=\"/dev/sda6\",fstype=\"xfs\",mountpoint=\"/var\"} 1e+10\n\
        node_filesystem_avail_bytes{device=\"/dev/sda6\",fstype=\"xfs\",mountpoint=\"/var\"} 4e+09\n\
        node_filesystem_size_bytes{device=\"/dev/sda6\",fstype=\"xfs\",mountpoint=\"/var/lib/a\"} 1e+10\n\
        node_filesystem_size_bytes{device=\"tmpfs\",fstype=\"tmpfs\",mountpoint=\"/tmp\"} 1\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"idle\"} 100\n\
        node_cpu_seconds_total{cpu=\"0\",mode=\"user\"} 10\n\
        node_cpu_seconds_total{cpu=\"1\",mode=\"iowait\"} 1\n\
        node_cpu_seconds_total{cpu=\"1\",mode=\"system\"} 5\n\
        node_network_receive_bytes_total{device=\"lo\"} 1\n\
        node_network_receive_bytes_total{device=\"eth0\"} 20\n\
        node_network_transmit_bytes_total{device=\"eth0\"} 30\n\
        node_timex_sync_status 1\nnode_timex_offset_seconds -0.25\n";
    let reading = read(vec![server(OK, page, 1).await]).await;
    assert_eq!(reading.failures, []);
    let [machine] = facts(&reading).machines.as_slice() else { panic!("{reading:?}") };
    assert_eq!((machine.asked.as_str(), machine.node_name.as_deref()), ("127.0.0.1", Some("a\\b")));
    assert_eq!(machine.at, Some(reading.started));
    assert_eq!(machine.booted_at.map(Timestamp::as_millis), Some(1_796_000_000_500));
    // A load that is no number makes none of the three up.
    assert_eq!(machine.load, None);
    let memory = machine.memory.unwrap();
    assert_eq!((memory.total_bytes, memory.available_bytes), (8_192_000_000, 5_000_000_000));
    let [var] = machine.filesystems.as_slice() else { panic!("{machine:?}") };
    assert_eq!(
        (var.mounted_on.as_str(), var.size_bytes, var.available_bytes),
        ("/var", 10_000_000_000, 4_000_000_000)
    );
    assert_eq!((machine.cpu_busy_seconds, machine.cpu_seconds), (Some(15.0), Some(116.0)));
    assert_eq!((machine.received_bytes, machine.sent_bytes), (Some(20.0), Some(30.0)));
    assert_eq!((machine.time_synced, machine.time_offset_seconds), (Some(true), Some(-0.25)));
}

#[tokio::test]
async fn hostile_pages_are_failures_by_their_names() {
    let html = "<html>\u{1b}[31m it works </html>\n";
    let Failure::Malformed { start } = failure(OK, html, 1).await else { panic!("not malformed") };
    assert!(start.starts_with("<html>") && !start.contains('\u{1b}') && start.chars().count() <= 64);
    // A page that never ends, a line that never ends, and a compressed page that nobody asked for.
    let endless = failure(OK, "node_load1 0.5 # and so on and so on and so on and so on\n", 1 << 20).await;
    assert_eq!(endless, Failure::TooLarge { limit: 4 << 20 });
    assert_eq!(failure(OK, "node_load1_______________", 1 << 20).await, Failure::TooLarge { limit: 4 << 20 });
    let zipped = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\n\r\n";
    assert_eq!(failure(zipped, "\u{1f}gzip\n", 1).await.reason(), "Malformed");
    // Cut in a line, and cut in a body whose length was told.
    assert_eq!(failure(OK, "node_load1 0.5\nnode_lo", 1).await.reason(), "Malformed");
    let long = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n";
    let cut = failure(long, "node_load1 0.5\n", 1).await;
    assert!(matches!(cut, Failure::Unreachable { phase: Phase::Http, .. }), "{cut:?}");
    assert!(matches!(failure("", "garbage\n", 1).await, Failure::Unreachable { phase: Phase::Http, .. }));
}

#[tokio::test]
async fn statuses_have_their_names() {
    for (head, reason) in [
        ("HTTP/1.1 401 a\r\ncontent-length: 0\r\n\r\n", "Unauthorized"),
        ("HTTP/1.1 403 a\r\ncontent-length: 0\r\n\r\n", "Forbidden"),
        ("HTTP/1.1 404 a\r\ncontent-length: 0\r\n\r\n", "NotInstalled"),
        ("HTTP/1.1 429 a\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n", "RateLimited"),
        ("HTTP/1.1 503 a\r\ncontent-length: 0\r\n\r\n", "Unreachable"),
        // Nobody is followed anywhere.
        ("HTTP/1.1 302 a\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n", "Malformed"),
    ] {
        assert_eq!(failure(head, "", 0).await.reason(), reason);
    }
}

#[tokio::test]
async fn a_machine_that_fails_costs_the_others_nothing() {
    let well = server(OK, "node_load1 0.5\n", 1).await;
    let sick =
        server("HTTP/1.1 503 a\r\ncontent-length: 0\r\n\r\n", "", 0).await.replace("127.0.0.1", "localhost");
    let reading = read(vec![sick, well]).await;
    assert_eq!(facts(&reading).machines.len(), 1);
    let [(part, failure)] = reading.failures.as_slice() else { panic!("{reading:?}") };
    assert_eq!((part.as_str(), failure.reason()), ("localhost", "Unreachable"));
}

#[tokio::test]
async fn a_machine_that_keeps_silent_ends_with_the_budget() {
    // It accepts, and nobody ever answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let budget = Duration::from_secs(1);
    let mut session = open(target(vec![url])).unwrap();
    let reading = tokio::time::timeout(budget + Duration::from_secs(5), session.read(budget)).await.unwrap();
    assert_eq!(reading.failures[0].1.reason(), "Timeout");
}

#[tokio::test]
async fn what_is_no_endpoint_is_refused_and_not_dialled() {
    for url in ["ftp://a/", "https://a/", "a", "http://user:secret@a/", "/metrics", ""] {
        let failure = open(target(vec![url.to_owned()])).map(|_| ()).unwrap_err();
        assert_eq!(failure.reason(), "CredentialRejected", "{url}");
        assert!(!failure.to_string().contains("secret"));
    }
    let mut target = target(vec![server(OK, "node_load1 0.5\n", 1).await]);
    target.destinations.allowed.clear();
    let reading = open(target).unwrap().read(LONG).await;
    assert_eq!(reading.failures[0].1.reason(), "CredentialRejected");
}

struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The real exporter and where it answers; `None` where it is not installed.
fn exporter() -> Option<(Exporter, String)> {
    let mut command = Command::new("prometheus-node-exporter");
    command.arg("--web.listen-address=127.0.0.1:0").stdin(Stdio::null()).stdout(Stdio::null());
    let mut exporter = Exporter(command.stderr(Stdio::piped()).spawn().ok()?);
    let log = BufReader::new(exporter.0.stderr.take().unwrap());
    // It says where it listens: `msg="Listening on" address=127.0.0.1:36063`.
    let mut lines = log.lines();
    let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("address=127")));
    let line = line.expect("it says where it listens").unwrap();
    // What else it says is read, so that it never waits for that.
    drop(std::thread::spawn(move || lines.count()));
    let address = line.rsplit("address=").next().unwrap().trim().to_owned();
    Some((exporter, format!("http://{address}/metrics")))
}

#[tokio::test]
async fn the_real_exporter_is_understood() {
    let Some((_exporter, url)) = exporter() else {
        assert!(std::env::var_os("CI").is_none(), "prometheus-node-exporter is not installed");
        println!("NOT TESTED: prometheus-node-exporter is not installed");
        return;
    };
    let reading = read(vec![url]).await;
    assert_eq!(reading.failures, []);
    let [machine] = facts(&reading).machines.as_slice() else { panic!("{reading:?}") };
    let memory = machine.memory.unwrap();
    assert!(memory.total_bytes > memory.available_bytes && memory.available_bytes > 0);
    assert!(machine.node_name.is_some() && machine.booted_at.is_some() && machine.load.is_some());
    assert!(machine.cpu_seconds > machine.cpu_busy_seconds && machine.cpu_busy_seconds > Some(0.0));
}
