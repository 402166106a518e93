//! What is shown to be let in, by whom, how often, and for how long.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_core::access::{AccountStore as _, AuditFilter};
use rezus_server::auth::{FAILURES, WINDOW};
use rezus_server::peer::Peer;
use rezus_testkit::fake::Fault;
use serde_json::Value;

use super::people::{Closed, secret, token_id};
use crate::answer::Answer;
use crate::in_process::elsewhere;
use crate::lock::state;
use crate::server::{Server, Settings};
use crate::tool::{self, Form, Workspace};

fn peer(address: &str) -> Peer {
    Peer::Address(format!("{address}:4000").parse().unwrap())
}

async fn shown(closed: &Closed, peer: Peer, authorization: &str) -> Answer {
    closed.plane.send_as(peer, "GET", "/state/own", &[("authorization", authorization)], "").await
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

#[tokio::test]
async fn a_token_is_the_password_of_any_user() {
    let closed = Closed::new().await;
    let token = secret("backend-own").reveal();
    for user in ["", "rezus", "ana@example.org"] {
        shown(&closed, elsewhere(), &basic(user, &token)).await.expect(200, user);
    }
    shown(&closed, elsewhere(), &format!("bearer {token}")).await.expect(200, "Bearer");
    let refused = shown(&closed, elsewhere(), &basic(&token, "")).await.expect(401, "as the user");
    assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"rezus\""));
}

#[tokio::test]
async fn after_ten_failures_an_address_waits_and_no_other_does() {
    let closed = Closed::new().await;
    let (bad, good) =
        (format!("Bearer {}", secret("bad").reveal()), format!("Bearer {}", secret("edit-all").reveal()));
    let attacker = || peer("198.51.100.9");
    for number in 0..FAILURES {
        shown(&closed, attacker(), &bad).await.expect(401, &number.to_string());
    }
    closed.plane.clock.advance(Duration::from_secs(20));
    let waits = shown(&closed, attacker(), &bad).await.expect(429, "one too many");
    assert_eq!(
        (waits.header("retry-after"), &waits.json()["reason"]),
        (Some("40"), &"TooManyRequests".into())
    );
    shown(&closed, attacker(), "Bearer hunter2").await.expect(429, "whatever is shown");
    shown(&closed, peer("198.51.100.10"), &bad).await.expect(401, "another address");
    shown(&closed, peer("198.51.100.10"), &good).await.expect(200, "another address");
    // A client that was forgotten keeps nobody from saving a state.
    shown(&closed, attacker(), &good).await.expect(200, "a token that works");
    closed.plane.clock.advance(WINDOW);
    shown(&closed, attacker(), &bad).await.expect(401, "it may try again");

    closed.plane.plane().auth.trail().flush().await;
    let filter = AuditFilter { limit: 100, who: Some(String::new()), tenant: None };
    let failures = closed.accounts.audit(&filter).await.unwrap();
    assert_eq!(failures.len(), 12, "those that were told to wait leave no trace");
    let row = failures.last().unwrap();
    assert_eq!((row.action.as_str(), row.object.as_str(), row.code), ("login", "unknown token", 401));
    assert_eq!(row.from, "198.51.100.9");
}

#[tokio::test]
async fn loopback_is_an_address_like_any_other() {
    let closed = Closed::new().await;
    let bad = format!("Bearer {}", secret("bad").reveal());
    for _ in 0..FAILURES {
        shown(&closed, peer("127.0.0.1"), &bad).await.expect(401, "a failure");
    }
    shown(&closed, peer("127.0.0.1"), &bad).await.expect(429, "one too many");
}

#[tokio::test]
async fn a_token_works_until_it_expires_or_is_revoked_and_not_a_request_longer() {
    let closed = Closed::new().await;
    let make = r#"{"user":"victim","expiresInSeconds":60}"#;
    let made = closed.ask("admin-all", "POST", "/rezus/v1/tokens", make).await.expect(201, "a token").json();
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let asks = async || {
        let headers = [("authorization", bearer.as_str())];
        closed.plane.send_as(elsewhere(), "GET", "/rezus/v1/server", &headers, "").await.code
    };
    assert_eq!(asks().await, 200);
    closed.plane.clock.advance(Duration::from_millis(59_999));
    assert_eq!(asks().await, 200);
    closed.plane.clock.advance(Duration::from_millis(1));
    assert_eq!(asks().await, 401);

    let revoke = format!("/rezus/v1/tokens/{}", token_id("edit-all"));
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "before");
    closed.ask("admin-all", "DELETE", &revoke, "").await.expect(204, "revoked");
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(401, "after");
    closed.ask("admin-all", "DELETE", &revoke, "").await.expect(204, "once more");
    closed.ask("admin-all", "DELETE", "/rezus/v1/tokens/nothing", "").await.expect(404, "none");

    closed.ask("victim", "GET", "/rezus/v1/server", "").await.expect(200, "before");
    closed.ask("admin-all", "DELETE", "/rezus/v1/users/victim", "").await.expect(204, "its user is removed");
    closed.ask("victim", "GET", "/rezus/v1/server", "").await.expect(401, "after");
    closed.ask("admin-all", "POST", "/rezus/v1/users", r#"{"name":"victim"}"#).await.expect(201, "a new one");
    closed.ask("victim", "GET", "/rezus/v1/server", "").await.expect(401, "the former one's token");
}

#[tokio::test]
async fn what_is_granted_counts_from_the_next_request_on() {
    let closed = Closed::new().await;
    let asks = async || closed.ask("victim", "GET", "/rezus/v1/tenants/own", "").await.code;
    let change = async |path: &str, method: &str, body: &str| {
        closed.ask("admin-all", method, path, body.to_owned()).await.expect(200, body);
    };
    assert_eq!(asks().await, 403);
    let user = "/rezus/v1/users/victim";
    change(user, "PATCH", r#"{"grants":[{"role":"view","tenants":["own"]}]}"#).await;
    assert_eq!(asks().await, 200);
    change(user, "PATCH", r#"{"grants":[{"role":"admin","tenants":["foreign"]}]}"#).await;
    assert_eq!(asks().await, 403);
    change("/rezus/v1/grants", "PUT", r#"{"group":"ops","grants":[{"role":"view"}]}"#).await;
    assert_eq!(asks().await, 403);
    change(user, "PATCH", r#"{"groups":["ops"]}"#).await;
    assert_eq!(asks().await, 200);
    change("/rezus/v1/grants", "PUT", r#"{"group":"ops","grants":[]}"#).await;
    assert_eq!(asks().await, 403);
    let odd = r#"{"grants":[{"role":"view","tenants":[]}]}"#;
    closed.ask("admin-all", "PATCH", user, odd).await.expect(400, "no tenant is not all of them");
}

#[tokio::test]
async fn use_is_noted_to_the_minute() {
    let closed = Closed::new().await;
    let used = async || -> Option<String> {
        let tokens = closed.ask("admin-all", "GET", "/rezus/v1/tokens", "").await.items();
        let is_it = |token: &&Value| token["id"] == token_id("edit-all");
        tokens.iter().find(is_it).unwrap()["lastUsedAt"].as_str().map(ToOwned::to_owned)
    };
    assert_eq!(used().await, None);
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "used");
    assert_eq!(used().await.as_deref(), Some("2026-11-30T19:10:37.000Z"));
    closed.plane.clock.advance(Duration::from_secs(59));
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "used again");
    assert_eq!(used().await.as_deref(), Some("2026-11-30T19:10:37.000Z"));
    closed.plane.clock.advance(Duration::from_secs(1));
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "a minute later");
    assert_eq!(used().await.as_deref(), Some("2026-11-30T19:11:37.000Z"));
}

#[tokio::test]
async fn nobody_is_let_in_while_the_accounts_cannot_be_read() {
    let closed = Closed::new().await;
    closed.plane.plane().auth.book().forget();
    closed.accounts.inject(Fault::Read);
    let answer = closed.ask("admin-all", "GET", "/state/own", "").await.expect(503, "unknown who it is");
    assert!(answer.header("retry-after").is_some());
    closed.ask("admin-all", "GET", "/state/own", "").await.expect(200, "known again");
}

/// A change whose answer was lost may have been made: it counts all the same.
#[tokio::test]
async fn a_revocation_that_seems_to_fail_is_not_forgotten() {
    let closed = Closed::new().await;
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "before");
    closed.accounts.inject(Fault::AfterWrite);
    let revoke = format!("/rezus/v1/tokens/{}", token_id("edit-all"));
    closed.ask("admin-all", "DELETE", &revoke, "").await.expect(503, "nobody knows");
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(401, "it was made");
}

#[tokio::test]
async fn real_clients_prove_themselves_by_their_environment() {
    for tool in tool::installed() {
        let server = Server::start_with(Settings { auth: true, ..Settings::default() }).await;
        let admin = super::admin::token(server.data_dir());
        let bearer = format!("Bearer {admin}");
        let ask = async |method: &str, target: &str, body: &str| {
            let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
            server.send_with(method, target, &headers, body.to_owned()).await
        };
        ask("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "tenant");
        let made = ask("POST", "/rezus/v1/tokens", r#"{"tenant":"web"}"#).await.expect(201, "token").json();
        let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());

        let mut workspace = Workspace::bare(&tool, &server, "basic", &Form::Query.block(server.url(), "web"));
        let init = ["init", "-input=false"];
        workspace.run(&init).await.failed_with("requires auth");
        workspace.set("TF_HTTP_USERNAME", "rezus");
        workspace.set("TF_HTTP_PASSWORD", token);
        workspace.run(&init).await.done();
        workspace.apply("two").await.done();
        let versions = ask("GET", "/rezus/v1/tenants/web/versions", "").await.expect(200, "versions").items();
        assert_eq!(versions[0]["writtenBy"], format!("backend:web:{id}"), "{}", tool.name);
        ask("DELETE", &format!("/rezus/v1/tokens/{id}"), "").await.expect(204, "revoked");
        workspace.apply("three").await.failed_with("requires auth");
        assert_eq!(ask("GET", "/rezus/v1/locks", "").await.items().len(), 0);
    }
}

#[tokio::test]
async fn whose_rights_are_taken_is_told_nothing_more_by_a_watch_that_was_begun() {
    for (method, target, body) in [
        ("DELETE", "/rezus/v1/tokens/viewown", ""),
        ("DELETE", "/rezus/v1/users/view-own", ""),
        ("PATCH", "/rezus/v1/users/view-own", r#"{"grants":[]}"#),
    ] {
        let closed = Closed::new().await;
        let watch = async |who: &str| {
            let bearer = format!("Bearer {}", secret(who).reveal());
            let target = "/apis/rezuscloud.io/v1alpha1/tenants?watch=1";
            closed.plane.watch_with(target, ("authorization", &bearer)).await
        };
        let (mut taken, mut other) = (watch("view-own").await, watch("edit-own").await);
        for events in [&mut taken, &mut other] {
            assert_eq!(events.next().await["object"]["metadata"]["name"], "own");
        }
        // What changes for others ends nothing.
        closed.ask("admin-all", "DELETE", "/rezus/v1/tokens/victim", "").await.expect(204, "another's");
        let write = async |serial| {
            let written = closed.ask("edit-own", "POST", "/state/own", state("l", serial)).await;
            written.expect(200, "a state");
            closed
                .ask("edit-own", "GET", "/apis/rezuscloud.io/v1alpha1/tenants", "")
                .await
                .expect(200, "list");
        };
        write(2).await;
        for events in [&mut taken, &mut other] {
            assert_eq!(events.next().await["object"]["spec"]["state"]["serial"], 2);
        }
        let answer = closed.ask("admin-all", method, target, body).await;
        assert!((200..300).contains(&answer.code), "{method} {target}: {}", answer.code);
        write(3).await;
        assert!(taken.next_or_end().await.is_none(), "{method} {target}");
        assert_eq!(other.next().await["object"]["spec"]["state"]["serial"], 3);
    }
}
