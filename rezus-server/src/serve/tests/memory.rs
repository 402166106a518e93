//! What an open watch costs. Run by hand, each in a process of its own: `cargo test --release -p rezus-server --lib
//! a_watch_by_http2 -- --ignored --nocapture`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use axum::Router;
use axum::body::Body;
use axum::routing::get as route;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;

use super::lab::{Lab, connect, get};

const WATCHES: usize = 1_000;

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// One event, then silence.
fn silence() -> Router {
    let answer = || async {
        let first = futures_util::stream::iter([Ok::<_, std::convert::Infallible>("first\n")]);
        Body::from_stream(first.chain(futures_util::stream::pending()))
    };
    Router::new().route("/", route(answer))
}

#[tokio::test]
#[ignore = "measures; the client is another process"]
async fn a_watch_by_http2() {
    measure("h2").await;
}

#[tokio::test]
#[ignore = "measures; the client is another process"]
async fn a_watch_by_http1() {
    measure("http/1.1").await;
}

async fn measure(protocol: &str) {
    let lab = Lab::with(|_| silence()).await;
    let before = resident_kib();
    let program = std::env::current_exe().unwrap();
    let mut clients = Command::new(program)
        .args(["--exact", "serve::tests::memory::clients", "--ignored", "--nocapture"])
        .env("LAB_ADDRESS", lab.address.to_string())
        .env("LAB_CA", lab.ca_pem())
        .env("LAB_PROTOCOL", protocol)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(clients.stdout.take().unwrap()).lines();
    let open = tokio::task::spawn_blocking(move || lines.any(|line| line.unwrap().contains("all are open")));
    assert!(open.await.unwrap());
    let each = (resident_kib() - before) / WATCHES;
    println!("{protocol}: {each} KiB a watch");
    assert!(each < 64);
    drop(clients.stdin.take());
    clients.kill().unwrap();
    clients.wait().unwrap();
}

#[tokio::test]
#[ignore = "the other half of the measurement"]
async fn clients() {
    let Ok(address) = std::env::var("LAB_ADDRESS") else { return };
    let (ca, protocol) = (std::env::var("LAB_CA").unwrap(), std::env::var("LAB_PROTOCOL").unwrap());
    let mut open = Vec::new();
    for _ in 0..WATCHES {
        let stream = connect(address.parse().unwrap(), &ca, protocol.as_bytes(), None).await.unwrap();
        let mut answer = get(stream).await.unwrap();
        answer.body_mut().frame().await.unwrap().unwrap();
        open.push(answer);
    }
    println!("all are open");
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await.unwrap().unwrap();
}
