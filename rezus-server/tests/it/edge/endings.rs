//! How connections end, and how the server does.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw::{answer, connection, head, until_closed, with};
use crate::lock::{state, state_with};
use crate::server::Server;

/// The grace is 30 seconds.
const WELL_BEFORE_THE_GRACE: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_head_that_does_not_arrive_is_given_up() {
    let server = Server::start().await;
    let mut nothing = connection(&server, "").await;
    let mut half = connection(&server, "POST /state/web HTTP/1.1\r\nhost: localh").await;
    let limit = Duration::from_secs(20);
    let (nothing, half) = tokio::join!(until_closed(&mut nothing, limit), until_closed(&mut half, limit));
    assert_eq!(nothing.as_deref(), Some(""));
    let half = half.expect("the connection is closed");
    assert!(!half.starts_with("HTTP/1.1 2"), "{half}");
}

#[tokio::test]
async fn the_end_does_not_wait_for_connections_on_which_nothing_is_under_way() {
    let mut server = Server::start().await;
    let _silent = connection(&server, "").await;
    let _half = connection(&server, "GET /state/web HTTP/1.1\r\nhost: localh").await;
    let mut idle = connection(&server, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut answered = [0; 15];
    idle.read_exact(&mut answered).await.unwrap();
    assert_eq!(&answered, b"HTTP/1.1 200 OK");
    let told = Instant::now();
    assert!(server.terminate().await.success());
    assert!(told.elapsed() < Duration::from_secs(8), "{:?}", told.elapsed());
}

/// A download is not cut short while its client reads, however slowly.
#[tokio::test]
async fn the_end_waits_for_an_answer_that_is_still_being_read() {
    let mut server = Server::start().await;
    let body = state_with("l", 1, &"x".repeat(24 << 20));
    server.send("POST", "/state/web", body.clone()).await.expect(200, "a state");
    let mut download = connection(&server, head("GET", "/state/web", &[])).await;
    let mut first = [0; 15];
    download.read_exact(&mut first).await.unwrap();
    server.ask_to_end();
    server.logged("stopping", 1).await;
    // Longer than a connection with nothing under way is given.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let rest = answer(&mut download).await;
    assert!(rest.ends_with(&body), "{} bytes", rest.len());
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn a_second_signal_ends_the_server_at_once() {
    let mut server = Server::start_with(with(&[("REZUS_STATE__IDLE", "60s")])).await;
    let body = state("l", 1);
    let lines = [format!("content-length: {}", body.len())];
    let mut under_way = connection(&server, head("POST", "/state/web", &[&lines[0]])).await;
    under_way.write_all(&body.as_bytes()[..50]).await.unwrap();
    server.get("/readyz").await.expect(200, "ready");
    let told = Instant::now();
    server.ask_to_end();
    server.logged("stopping", 1).await;
    server.ask_to_end();
    assert!(server.ended().await.success());
    assert!(told.elapsed() < WELL_BEFORE_THE_GRACE, "{:?}", told.elapsed());
}

#[tokio::test]
async fn the_grace_is_the_longest_that_requests_under_way_are_given() {
    let settings = with(&[("REZUS_STATE__IDLE", "60s"), ("REZUS_SERVER__SHUTDOWN_GRACE", "2s")]);
    let mut server = Server::start_with(settings).await;
    let mut under_way = connection(&server, head("POST", "/state/web", &["content-length: 1000"])).await;
    under_way.write_all(b"{").await.unwrap();
    server.get("/readyz").await.expect(200, "ready");
    let told = Instant::now();
    assert!(server.terminate().await.success());
    assert!(told.elapsed() < WELL_BEFORE_THE_GRACE, "{:?}", told.elapsed());
}
