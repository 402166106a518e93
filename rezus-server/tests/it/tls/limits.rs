//! What requests are held to, whichever way they come.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Full};
use rezus_server::config::{ByteSize, LimitsConfig, Span, StateConfig};
use rezus_server::peer::Peer;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw::{ca, connect, http2, with};
use crate::answer::Answer;
use crate::in_process::{InProcess, local};
use crate::lock::{self, state};
use crate::server::Server;

const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/machines";

/// Bodies that stop coming are given up soon.
fn impatient() -> StateConfig {
    StateConfig { idle: Span(Duration::from_secs(2)), ..StateConfig::default() }
}

fn server(limits: LimitsConfig) -> InProcess {
    InProcess::limited(limits, impatient())
}

/// Fails unless the answer is a `Status` with this code and reason; returns what it says.
#[track_caller]
fn refused(answer: Answer, code: u16, reason: &str) -> String {
    let answer = answer.expect(code, reason);
    let status = answer.json();
    for (member, expected) in
        [("kind", "Status"), ("apiVersion", "v1"), ("status", "Failure"), ("reason", reason)]
    {
        assert_eq!(status[member], Value::from(expected), "{status}");
    }
    assert_eq!(status["code"], code);
    status["message"].as_str().unwrap().to_owned()
}

/// A body that begins and does not end.
fn endless(begin: &'static str) -> Body {
    let begin = stream::iter([Ok::<_, Infallible>(Bytes::from_static(begin.as_bytes()))]);
    Body::from_stream(begin.chain(stream::pending()))
}

#[tokio::test]
async fn what_is_too_long_is_told_how_long_it_may_be() {
    let server = server(LimitsConfig { body: ByteSize(1_000), ..LimitsConfig::default() });
    let query = "x".repeat(9_000);
    for path in ["/rezus/v1/tenants", "/state/web", MACHINES, "/healthz", "/nowhere"] {
        let said = refused(server.get(&format!("{path}?{query}")).await, 414, "RequestURITooLong");
        assert!(said.contains("8192"), "{said}");
        let long = "x".repeat(66_000);
        let answer = server.send_as(local(), "GET", path, &[("x-long", &long)], Bytes::new()).await;
        let said = refused(answer, 431, "RequestHeaderFieldsTooLarge");
        assert!(said.contains("65536"), "{said}");
    }
    server.get(&format!("/rezus/v1/tenants?{}", &query[..8_000])).await.expect(200, "a long selector");

    let name = format!(r#"{{"name":"web","note":"{}"}}"#, "x".repeat(1_000));
    let json = [("content-type", "application/json")];
    for body in [Body::from(name.clone()), Body::from_stream(stream::iter([Ok::<_, Infallible>(name)]))] {
        let answer = server.send_body(local(), "POST", "/rezus/v1/tenants", &json, body).await;
        let said = refused(answer, 413, "RequestEntityTooLarge");
        assert!(said.contains("1000") && said.contains("limits.body"), "{said}");
    }
    // States have a limit of their own.
    let large = lock::state_with("l", 1, &"x".repeat(5_000));
    server.post("web", large).await.expect(200, "a state");
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let limits = LimitsConfig { deadline: Span(Duration::from_millis(50)), ..LimitsConfig::default() };
    let server = server(limits);
    let json = [("content-type", "application/json")];
    let tenants = "/rezus/v1/tenants";
    let answer = server.send_body(local(), "POST", tenants, &json, endless("{")).await;
    let said = refused(answer, 504, "Timeout");
    assert!(said.contains("limits.deadline"), "{said}");
    // Who may open the socket has all the time that the body has.
    let answer = server.send_body(Peer::Socket, "POST", tenants, &json, endless("{")).await;
    answer.expect(400, "a body that stopped coming");
    // So has a state.
    let answer = server.send_body(local(), "POST", "/state/web", &json, endless("{")).await;
    assert_ne!(answer.code, 504);
}

#[tokio::test]
async fn those_beyond_what_may_be_under_way_are_told_to_come_again() {
    let limits = LimitsConfig { in_flight: 1, watches: 0, ..LimitsConfig::default() };
    let server = server(limits);
    let json = [("content-type", "application/json")];
    let under_way = server.send_body(local(), "POST", "/rezus/v1/tenants", &json, endless("{"));
    let mut under_way = std::pin::pin!(under_way);
    // It has its place once it waits for its body.
    let waiting = tokio::time::timeout(Duration::from_millis(50), under_way.as_mut()).await;
    assert!(waiting.is_err());
    for path in ["/rezus/v1/tenants", MACHINES, "/version"] {
        let answer = server.get(path).await;
        assert_eq!(answer.headers["retry-after"], "1");
        let said = refused(answer, 429, "TooManyRequests");
        assert!(said.contains("limits.in_flight"), "{said}");
    }
    for path in ["/healthz", "/readyz", "/livez"] {
        server.get(path).await.expect(200, "health");
    }
    // The state backend has places of its own, and the socket needs none.
    server.post("web", state("l", 1)).await.expect(200, "a state");
    let answer = server.send_as(Peer::Socket, "GET", "/rezus/v1/tenants", &[], Bytes::new()).await;
    answer.expect(200, "an admin");
    under_way.await.expect(400, "a body that stopped coming");
    server.get("/rezus/v1/tenants").await.expect(200, "there is room again");
}

#[tokio::test]
async fn watches_have_places_of_their_own() {
    let server = server(LimitsConfig { watches: 0, ..LimitsConfig::default() });
    for query in ["watch=true", "watch=1", "watch=", "watch", "watch=maybe", "a=b&watch=TRUE&watch=false"] {
        let answer = server.get(&format!("{MACHINES}?{query}")).await;
        assert_eq!(answer.headers["retry-after"], "1");
        let said = refused(answer, 429, "TooManyRequests");
        assert!(said.contains("limits.watches"), "{query}: {said}");
    }
    for query in ["", "watch=0", "watch=false", "watch=False", "watcher=true", "x=watch"] {
        let answer = server.get(&format!("{MACHINES}?{query}")).await;
        assert_ne!(answer.code, 429, "{query}");
    }
    // Only lists of resources can be watched: all else keeps to the limits of what is answered at once.
    for path in ["/a", "/a/status", "/a/history", "/a/provenance"] {
        let path = format!("/apis/rezuscloud.io/v1alpha1/namespaces/web/machines{path}?watch=true");
        assert_eq!(server.get(&path).await.code, 404, "{path}");
    }
    server.get("/rezus/v1/tenants?watch=true").await;
    assert_ne!(server.get("/rezus/v1/tenants?watch=true").await.code, 429);
}

/// The same over the wire, where the library beneath must not be stricter.
#[tokio::test]
async fn the_limits_hold_over_tls() {
    let server = Server::start_with(with(&[("REZUS_SERVER__MAX_CONNECTIONS", "2")])).await;
    let authority = ca(&server);
    for (line, code, reason) in [
        (format!("GET /?{} HTTP/1.1", "x".repeat(9_000)), 414, "RequestURITooLong"),
        (format!("GET / HTTP/1.1\r\nx-long: {}", "x".repeat(66_000)), 431, "RequestHeaderFieldsTooLarge"),
        (
            format!(
                "POST /rezus/v1/tenants HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: {}",
                2 << 20
            ),
            413,
            "RequestEntityTooLarge",
        ),
    ] {
        let mut stream = connect(&server, &authority, "localhost").await.unwrap();
        let expect = "expect: 100-continue\r\nconnection: close";
        stream.write_all(format!("{line}\r\nhost: x\r\n{expect}\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let status: Value = serde_json::from_str(body).unwrap();
        assert_eq!(status["reason"], reason);
    }

    let first = connect(&server, &authority, "localhost").await.unwrap();
    let _second = connect(&server, &authority, "localhost").await.unwrap();
    let mut third = std::pin::pin!(connect(&server, &authority, "localhost"));
    let waiting = tokio::time::timeout(Duration::from_secs(1), third.as_mut()).await;
    assert!(waiting.is_err(), "there is no room yet");
    drop(first);
    third.await.unwrap();
}

#[tokio::test]
async fn the_limits_hold_over_http2() {
    let server = Server::start_with(with(&[])).await;
    let mut sender = http2(&server).await;
    for (target, header, body, code, reason) in [
        (format!("/?{}", "x".repeat(9_000)), 1, 0, 414, Some("RequestURITooLong")),
        ("/".to_owned(), 66_000, 0, 431, Some("RequestHeaderFieldsTooLarge")),
        ("/rezus/v1/tenants".to_owned(), 1, 2 << 20, 413, Some("RequestEntityTooLarge")),
        // What is far too long is not even read.
        ("/".to_owned(), 140_000, 0, 431, None),
        ("/livez".to_owned(), 1, 0, 200, None),
    ] {
        let method = if body > 0 { "POST" } else { "GET" };
        let request = hyper::Request::builder()
            .method(method)
            .uri(format!("https://localhost{target}"))
            .header("content-type", "application/json")
            .header("x-long", "x".repeat(header))
            .body(Full::new(Bytes::from(vec![b' '; body])))
            .unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), code, "{reason:?}");
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        if let Some(reason) = reason {
            let status: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(status["reason"], reason);
        }
    }
}
