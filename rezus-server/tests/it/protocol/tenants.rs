//! Tenants that are not there, and methods that are not.

use rezus_server::config::StateConfig;

use crate::in_process::{InProcess, elsewhere, local};
use crate::lock::{self, APPLY};

#[tokio::test]
async fn a_tenant_that_may_not_be_created_by_writing_is_named_with_the_command_that_creates_it() {
    let closed = StateConfig { create_on_write: false, ..StateConfig::default() };
    for (server, peer) in [(InProcess::with(closed), local()), (InProcess::new(), elsewhere())] {
        for (method, target, body) in [
            ("POST", "/state/web", lock::state("l", 1)),
            ("PUT", "/state?ID=web", lock::state("l", 1)),
            ("LOCK", "/state/web", lock::info(&lock::id(1), APPLY)),
            ("LOCK", "/state?ID=web", lock::info(&lock::id(1), APPLY)),
            ("POST", "/state/web/lock", lock::info(&lock::id(1), APPLY)),
        ] {
            let answer = server.send_as(peer.clone(), method, target, &[], body).await.expect(404, target);
            assert!(answer.message().contains("rezus-server tenant create web"), "{method} {target}");
        }
        assert!(server.get("/rezus/v1/tenants").await.items().is_empty());
        server.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "create");
        let answer = server.send_as(peer, "POST", "/state/web", &[], lock::state("l", 1)).await;
        answer.expect(200, "POST to the tenant that exists now");
    }
}

#[tokio::test]
async fn of_an_unknown_tenant_there_is_nothing() {
    let server = InProcess::new();
    for (method, target) in [
        ("GET", "/state/web"),
        ("GET", "/state?ID=web"),
        ("DELETE", "/state/web"),
        ("UNLOCK", "/state/web"),
        ("GET", "/rezus/v1/tenants/web"),
        ("GET", "/rezus/v1/tenants/web/versions"),
        ("GET", "/rezus/v1/tenants/web/resources"),
        ("DELETE", "/rezus/v1/tenants/web"),
    ] {
        server.send(method, target, "").await.expect(404, target);
    }
    server.unlock("web", &lock::id(1)).await.expect(404, "UNLOCK");
}

#[tokio::test]
async fn a_first_write_creates_its_tenant_and_a_lock_alone_creates_none_that_stays() {
    let server = InProcess::new();
    server.lock("web", &lock::id(1), APPLY).await.expect(200, "LOCK");
    assert_eq!(server.get("/rezus/v1/tenants").await.items().len(), 1);
    server.unlock("web", &lock::id(1)).await.expect(200, "UNLOCK");
    assert!(server.get("/rezus/v1/tenants").await.items().is_empty());

    server.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "create");
    server.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(409, "create again");
    server.lock("web", &lock::id(2), APPLY).await.expect(200, "LOCK");
    server.unlock("web", &lock::id(2)).await.expect(200, "UNLOCK");
    server.get("/state/web").await.expect(404, "there is a tenant and no state");
    assert_eq!(server.get("/rezus/v1/tenants").await.items().len(), 1);
    server.send("DELETE", "/state/web", "").await.expect(200, "DELETE of nothing");
    assert!(server.versions("web").await.is_empty());
}

/// All methods that a state's address takes.
const OF_STATES: &str = "GET, POST, PUT, DELETE, LOCK, UNLOCK";

/// Each of `refused` is answered by 405 and the methods of `taken`.
async fn takes_only(target: &str, taken: &str, refused: &[&str]) {
    let server = InProcess::new();
    server.post("web", lock::state("l", 1)).await.expect(200, "a state");
    for method in refused {
        let answer = server.send(method, target, "").await.expect(405, &format!("{method} {target}"));
        let allowed = answer.header("allow").unwrap_or_default();
        // Where there is a GET, HEAD may be named as well.
        let mut allowed: Vec<&str> =
            allowed.split(',').map(str::trim).filter(|method| *method != "HEAD").collect();
        let mut expected: Vec<&str> = taken.split(", ").collect();
        allowed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(allowed, expected, "Allow of {method} {target}");
        assert_eq!(answer.json()["reason"], "MethodNotAllowed");
    }
    assert_eq!(server.versions("web").await.len(), 1);
}

#[tokio::test]
async fn an_unknown_method_of_a_state_is_refused_with_those_it_takes() {
    takes_only("/state/web", OF_STATES, &["PATCH", "OPTIONS", "TRACE", "COPY", "lock"]).await;
    takes_only("/state?ID=web", OF_STATES, &["PATCH", "OPTIONS", "PROPFIND"]).await;
    takes_only("/state", OF_STATES, &["PATCH"]).await;
}

#[tokio::test]
async fn an_unknown_method_of_a_lock_is_refused_with_those_it_takes() {
    takes_only("/state/web/lock", "POST, PUT, DELETE, LOCK, UNLOCK", &["GET", "PATCH", "OPTIONS"]).await;
}

#[tokio::test]
async fn an_unknown_method_of_the_api_is_refused_with_those_it_takes() {
    takes_only("/rezus/v1/tenants", "GET, POST", &["PUT", "DELETE", "LOCK"]).await;
    takes_only("/rezus/v1/tenants/web", "GET, PATCH, DELETE", &["PUT", "POST"]).await;
}
