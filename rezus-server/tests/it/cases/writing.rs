//! Writes that should not have been accepted, or were accepted unseen.

use crate::answer::content_md5;
use crate::in_process::{InProcess, local};
use crate::lock::{self, PUSH, state};
use crate::server::Server;

/// People forgot `lock_address` and ran unlocked without knowing.
#[tokio::test]
async fn a_write_without_a_lock_shows_and_can_be_forbidden() {
    let server = InProcess::new();
    server.post("web", state("l", 1)).await.expect(200, "a client without lock_address");
    assert_eq!(server.tenant("web").await["state"]["unlocked"], true);
    assert_eq!(server.versions("web").await[0]["unlocked"], true);
    let require = r#"{"requireLocks":true}"#;
    server.send("PATCH", "/rezus/v1/tenants/web", require).await.expect(200, "locks are required");
    let refused = server.post("web", state("l", 2)).await.expect(423, "the same client").message();
    assert!(refused.contains("lock_address") && refused.contains("backend-config web"), "{refused}");
    assert_eq!(server.tenant("web").await["refusal"]["code"], 423);
    server.push("web", &lock::id(1), state("l", 2)).await.expect(200, "a client with lock_address");
    assert_eq!(server.tenant("web").await["state"]["unlocked"], false);
}

/// An upload that had not come whole was acknowledged.
#[tokio::test]
async fn an_upload_that_did_not_come_whole_is_not_acknowledged() {
    let server = Server::start().await;
    let before = state("l", 1);
    server.send("POST", "/state/web", before.clone()).await.expect(200, "the state before");
    let whole = state("l", 2).into_bytes();
    let digest = content_md5(&whole);
    let mut changed = whole.clone();
    let at = changed.iter().position(|byte| *byte == b'm').unwrap();
    changed[at] = b'n';
    let cut = whole[..whole.len() - 1].to_vec();
    for (what, body) in [("one byte changed", changed), ("the tail cut", cut)] {
        let answer = server.send_with("POST", "/state/web", &[("content-md5", &digest)], body).await;
        answer.expect(400, what);
        assert_eq!(server.get("/state/web").await.body, before);
        assert_eq!(server.versions("web").await.len(), 1, "{what}");
    }
    server.send_with("POST", "/state/web", &[("content-md5", &digest)], whole).await.expect(200, "the whole");
}

/// A connection that ends in the middle of a body leaves nothing behind.
#[tokio::test]
async fn an_upload_whose_connection_breaks_leaves_nothing_behind() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let server = Server::start().await;
    let address = server.url().trim_start_matches("http://");
    let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = state("l", 1);
    let head =
        format!("POST /state/web HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&body.as_bytes()[..100]).await.unwrap();
    connection.shutdown().await.unwrap();
    // Whatever is answered, the server has dealt with the request by the time it closes.
    let mut answer = Vec::new();
    drop(connection.read_to_end(&mut answer).await);
    assert!(!String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 200"));
    server.get("/state/web").await.expect(404, "nothing was kept");
    server.get("/rezus/v1/tenants/web").await.expect(404, "nor a tenant");
}

/// A lower serial or another lineage was accepted by mistake, or could not be forced.
#[tokio::test]
async fn a_step_back_is_refused_unless_it_is_forced_and_history_stays_one_line() {
    let server = InProcess::new();
    server.post("web", state("first", 7)).await.expect(200, "the state before");
    for (body, names) in [(state("first", 6), ["7", "6"]), (state("second", 8), ["first", "second"])] {
        let refused = server.post("web", body).await.expect(409, "a step back").message();
        assert!(names.iter().all(|name| refused.contains(name)), "{refused}");
    }
    server.push("web", &lock::id(1), state("first", 6)).await.expect(200, "a lower serial, forced");
    server.push("web", &lock::id(2), state("second", 1)).await.expect(200, "another lineage, forced");
    server.post("web", state("second", 2)).await.expect(200, "its successor");
    server.post("empty", lock::empty_state("first", 7)).await.expect(200, "an empty state");
    server.post("empty", state("second", 1)).await.expect(200, "another lineage over an empty one");

    let versions = server.versions("web").await;
    let facts: Vec<(u64, u64, bool)> = versions
        .iter()
        .map(|version| {
            let number = |name: &str| version[name].as_u64().unwrap();
            (number("version"), number("serial"), version["forced"] == true)
        })
        .collect();
    assert_eq!(facts, [(1, 7, false), (2, 6, true), (3, 1, true), (4, 2, false)]);
    assert_eq!(versions[1]["lockOperation"], PUSH);
    for (number, body) in [(1, state("first", 7)), (2, state("first", 6)), (3, state("second", 1))] {
        let path = format!("/rezus/v1/tenants/web/versions/{number}/body");
        let kept = server.send_as(local(), "GET", &path, &[], "").await.expect(200, &path);
        assert_eq!(kept.body, body);
    }
}
