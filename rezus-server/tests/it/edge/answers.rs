//! Who is refused can read why, and what was begun is finished.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use rezus_server::config::StateConfig;
use rezus_testkit::strategy::large_state;
use tokio::io::AsyncWriteExt as _;

use super::raw::{answer, connection, head, status, with};
use crate::answer::content_md5;
use crate::in_process::{InProcess, elsewhere, local};
use crate::lock::{self, APPLY, state};
use crate::server::Server;

/// More than any buffer between the two takes: who does not read it keeps the client from reading the answer.
const LARGE: usize = 32 << 20;

#[tokio::test]
async fn a_refusal_is_read_after_a_large_body_was_sent_whatever_it_is_for() {
    let server = Server::start_with(with(&[("REZUS_STATE__MAX_BODY", "33MiB")])).await;
    let length = format!("content-length: {LARGE}");
    let json = "content-type: application/json";
    for (method, target, line, code) in [
        ("POST", "/state/No_Name", json, 400),
        ("POST", "/state?ID=No_Name", json, 423),
        ("POST", "/state", json, 400),
        ("POST", "/state/%ff", json, 400),
        ("POST", "/state/web?ID=1&ID=2", json, 400),
        ("POST", "/state/web", "content-md5: none", 400),
        ("LOCK", "/state/web", json, 400),
        ("UNLOCK", "/state/web", json, 400),
        ("PATCH", "/state/web", json, 405),
        ("GET", "/state/web", json, 404),
        ("DELETE", "/state/web", json, 404),
        ("POST", "/nowhere", json, 404),
        ("POST", "/rezus/v1/tenants", json, 413),
        ("PUT", "/rezus/v1/tenants", json, 405),
        ("PATCH", "/rezus/v1/tenants/No_Name", json, 413),
    ] {
        let what = format!("{method} {target} {line}");
        let mut client = connection(&server, head(method, target, &[&length, line])).await;
        client.write_all(&vec![b' '; LARGE]).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        status(&answer(&mut client).await, code, &what);
    }
}

#[tokio::test]
async fn a_state_without_room_or_over_the_limit_is_told_so_after_it_was_sent() {
    let settings = with(&[("REZUS_STATE__IN_FLIGHT", "1KiB"), ("REZUS_STATE__WAIT", "1s")]);
    let server = Server::start_with(settings).await;
    let length = format!("content-length: {LARGE}");
    let mut first = connection(&server, head("POST", "/state/first", &["content-length: 9000"])).await;
    first.write_all(b"{").await.unwrap();
    let is_read = "rezus_state_bodies_in_flight_bytes 1024";
    while !String::from_utf8_lossy(&server.get("/metrics").await.body).contains(is_read) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let mut second = connection(&server, head("POST", "/state/second", &[&length])).await;
    second.write_all(&vec![b' '; LARGE]).await.unwrap();
    status(&answer(&mut second).await, 503, "no room");

    let server = Server::start_with(with(&[("REZUS_STATE__MAX_BODY", "1MiB")])).await;
    let mut client = connection(&server, head("POST", "/state/web", &[&length])).await;
    client.write_all(&vec![b' '; LARGE]).await.unwrap();
    status(&answer(&mut client).await, 413, "over the limit");
}

#[tokio::test]
async fn who_asks_before_sending_is_refused_without_being_asked_to_send() {
    let server = Server::start_with(with(&[("REZUS_STATE__MAX_BODY", "1MiB")])).await;
    let length = format!("content-length: {LARGE}");
    for (method, target, line, code) in [
        ("POST", "/state/No_Name", "x: y", 400),
        ("POST", "/state/web", "content-md5: none", 400),
        ("POST", "/state/web", "x: y", 413),
        ("POST", "/nowhere", "x: y", 404),
        ("POST", "/rezus/v1/tenants", "content-type: application/json", 413),
        ("PUT", "/rezus/v1/tenants", "x: y", 405),
    ] {
        let lines = [length.as_str(), "expect: 100-continue", line];
        let mut client = connection(&server, head(method, target, &lines)).await;
        status(&answer(&mut client).await, code, target);
    }
    // Who is welcome is asked.
    let body = state("l", 1);
    let lines = [&format!("content-length: {}", body.len()), "expect: 100-continue"];
    let mut client = connection(&server, head("POST", "/state/web", &lines)).await;
    client.write_all(body.as_bytes()).await.unwrap();
    let answer = answer(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK"), "{answer}");
}

/// It never pauses for long, and would hold its room for ever.
#[tokio::test]
async fn a_trickle_is_given_up_and_its_room_is_free_again() {
    let settings = with(&[("REZUS_STATE__IDLE", "1s"), ("REZUS_STATE__IN_FLIGHT", "1KiB")]);
    let server = Server::start_with(settings).await;
    for (method, target) in
        [("POST", "/state/web"), ("LOCK", "/state/web"), ("POST", "/rezus/v1/tenants"), ("POST", "/nowhere")]
    {
        let lines = ["content-length: 60000", "content-type: application/json"];
        let client = connection(&server, head(method, target, &lines)).await;
        let (mut reading, mut writing) = client.into_split();
        let trickle = tokio::spawn(async move {
            while writing.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        let code = if target == "/nowhere" { 404 } else { 400 };
        let said = status(&answer(&mut reading).await, code, &format!("{method} {target}"));
        assert!(method != "POST" || target != "/state/web" || said.contains("of 60000"), "{said}");
        trickle.abort();
    }
    server.send("POST", "/state/web", state("l", 1)).await.expect(200, "there is room");
}

/// Its room is taken until the state is written, whether or not anybody waits for the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_has_arrived_is_written_also_when_its_client_goes_and_holds_its_room_until_then() {
    let server = Arc::new(InProcess::with(StateConfig::default()));
    let state = Bytes::from(large_state(4_000, 7));
    let (arrived, has_arrived) = tokio::sync::oneshot::channel();
    let pieces =
        futures_util::stream::unfold((Some(arrived), Some(state.clone())), |(arrived, state)| async {
            match (arrived, state) {
                (arrived, Some(state)) => Some((Ok::<_, std::io::Error>(state), (arrived, None))),
                (Some(arrived), None) => {
                    arrived.send(()).unwrap();
                    None
                }
                (None, None) => None,
            }
        });
    let (sending, length) = (Arc::clone(&server), state.len().to_string());
    let request = tokio::spawn(async move {
        let headers = [("content-length", length.as_str())];
        sending.send_body(local(), "POST", "/state/web", &headers, Body::from_stream(pieces)).await
    });
    has_arrived.await.unwrap();
    request.abort();
    drop(request.await);
    let in_flight = server.plane().intake.in_flight();
    let written = server.current("web").await.is_some();
    assert!(in_flight > 0 || written, "the state is neither under way nor written");
    let patience = tokio::time::Instant::now() + Duration::from_secs(30);
    while server.current("web").await.is_none() {
        assert!(tokio::time::Instant::now() < patience, "what had arrived was not written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.current("web").await.unwrap(), state);
}

#[tokio::test]
async fn an_unlock_without_a_body_means_the_lock_that_its_address_names() {
    let server = InProcess::new();
    let (held, other) = (lock::id(1), lock::id(2));
    for (method, path) in
        [("UNLOCK", "/state/web"), ("UNLOCK", "/state/web/lock"), ("DELETE", "/state/web/lock")]
    {
        server.lock("web", &held, APPLY).await.expect(200, "a lock");
        let unlock = |id: &str| {
            let (server, target) = (&server, format!("{path}?ID={id}"));
            async move { server.send_as(elsewhere(), method, &target, &[], Bytes::new()).await }
        };
        let answer = unlock(&other).await.expect(409, "another lock");
        assert_eq!(answer.json()["ID"], held, "the holder");
        unlock("%00").await.expect(400, "no lock's ID");
        unlock(&held).await.expect(200, "by who may not break locks, but knows the ID");
    }
    // In the query form, the ID is the lock's, or the tenant's.
    server.lock("web", &held, APPLY).await.expect(200, "a lock");
    let target = format!("/state?ID={held}");
    server.send_as(elsewhere(), "UNLOCK", &target, &[], Bytes::new()).await.expect(200, "the lock's ID");
    server.lock("web", &held, APPLY).await.expect(200, "a lock");
    server.send("UNLOCK", "/state?ID=web", Bytes::new()).await.expect(200, "any: `terraform force-unlock`");
}

#[tokio::test]
async fn odd_addresses_are_the_clients_fault_and_said_to_be() {
    let server = InProcess::new();
    server.post("web", state("l", 1)).await.expect(200, "a state");
    let targets = [
        "/state/%ff",
        "/state/%ff/lock",
        "/state/%00",
        "/state?ID=%ff",
        "/state?ID=%00",
        "/state?ID=",
        "/state?ID",
        "/state?",
        "/state?ID=a&ID=b",
        "/state?ID=web&ID=web",
        "/state/web?ID=a&ID=a",
        "/state/web?ID=%0a%1b[31m",
        "/state/web?%ff=%ff&&=&=",
        "/state?ID=%F0%9F%92%A9",
        "/state?id=web",
    ];
    for target in
        targets.map(ToOwned::to_owned).into_iter().chain([format!("/state?ID={}", "x".repeat(3_000))])
    {
        for method in ["GET", "POST", "PUT", "DELETE", "LOCK", "UNLOCK", "PATCH"] {
            let answer = server.send(method, &target, Bytes::new()).await;
            assert!(answer.code < 500, "{method} {target}: {}", answer.code);
            if answer.code >= 400 && answer.json()["ID"].is_null() {
                answer.message();
            }
        }
    }
    server.get("/state/%ff").await.expect(400, "no UTF-8").message();
    server.get("/state?ID=web&ID=web").await.expect(400, "twice").message();
}

/// A client's text that forges a line of the log, or commands the terminal that shows it.
#[tokio::test]
async fn what_a_client_says_is_escaped_in_the_log() {
    let mut server = Server::start().await;
    let body = state("l\nFORGED", 2);
    let digest = content_md5(body.as_bytes());
    server.send_with("POST", "/state/web", &[("content-md5", &digest)], body).await.expect(200, "a state");
    server
        .send("POST", "/state/web", state("m\r\nFORGED \u{1b}[31m", 3))
        .await
        .expect(409, "another lineage");
    let mut holder: serde_json::Value = serde_json::from_str(&lock::info(&lock::id(1), APPLY)).unwrap();
    holder["Who"] = "me\nFORGED \u{1b}[31m".into();
    server.send("LOCK", "/state/web", holder.to_string()).await.expect(200, "a lock");
    server.send("LOCK", "/state/web", lock::info(&lock::id(2), APPLY)).await.expect(423, "locked");
    server.logged("refused", 2).await;
    let log = server.log();
    assert!(log.lines().all(|line| !line.starts_with("FORGED")) && !log.contains("\u{1b}[31m"), "{log}");
}
