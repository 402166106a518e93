//! What is kept of what was done.

use std::time::Duration;

use rezus_core::access::{AccountStore as _, AuditFilter};
use rezus_testkit::fake::Fault;
use serde_json::Value;

use super::people::Closed;
use crate::in_process::InProcess;
use crate::lock::{self, APPLY, state};
use crate::server::{Server, Settings};

async fn trail(closed: &Closed, query: &str) -> Vec<Value> {
    closed.ask("admin-all", "GET", &format!("/rezus/v1/audit{query}"), "").await.expect(200, "audit").items()
}

/// Terraform's `force-unlock` sends an empty body: who may break locks breaks it, and that is kept; the others are told
/// whose it is.
#[tokio::test]
async fn a_lock_that_was_broken_is_on_record_with_who_broke_it() {
    let closed = Closed::new().await;
    let info = lock::info(&lock::id(1), APPLY);
    closed.ask("backend-own", "LOCK", "/state/own", info.clone()).await.expect(200, "LOCK");
    let refused =
        closed.ask("backend-own", "UNLOCK", "/state/own", "").await.expect(409, "by one who may not");
    assert_eq!(refused.json(), serde_json::from_str::<Value>(&info).unwrap());
    closed.ask("edit-own", "UNLOCK", "/state/own", "").await.expect(200, "by one who may");
    let rows = trail(&closed, "?tenant=own").await;
    let facts: Vec<_> = rows
        .iter()
        .map(|row| {
            (row["who"].as_str().unwrap(), row["action"].as_str().unwrap(), row["code"].as_u64().unwrap())
        })
        .collect();
    let backend = "backend:own:backendown";
    let expected = [("edit-own", "lock.break", 200), (backend, "lock.break", 409), (backend, "lock", 200)];
    assert_eq!(facts, expected);
    assert_eq!((&rows[0]["from"], &rows[0]["tenant"]), (&"192.0.2.7".into(), &"own".into()));
    assert_eq!(rows[0]["at"], "2026-11-30T19:10:37.000Z");
}

/// The list of locks says who holds what since when, and letting one go is kept.
#[tokio::test]
async fn held_locks_are_listed_and_their_release_is_on_record() {
    let closed = Closed::new().await;
    closed
        .ask("backend-own", "LOCK", "/state/own", lock::info(&lock::id(1), APPLY))
        .await
        .expect(200, "LOCK");
    closed.plane.clock.advance(Duration::from_secs(90));
    let locks = closed.ask("view-own", "GET", "/rezus/v1/locks", "").await.expect(200, "locks").items();
    let [held] = locks.as_slice() else { panic!("{locks:?}") };
    assert_eq!((&held["who"], &held["operation"]), (&"root@vm".into(), &APPLY.into()));
    assert_eq!((&held["ageSeconds"], &held["acquiredBy"]), (&90.into(), &"backend:own:backendown".into()));
    closed.ask("view-own", "DELETE", "/rezus/v1/tenants/own/locks", "").await.expect(403, "to look at only");
    closed.ask("edit-own", "DELETE", "/rezus/v1/tenants/own/locks", "").await.expect(200, "released");
    let rows = trail(&closed, "?who=edit-own").await;
    assert_eq!(
        (&rows[0]["action"], &rows[0]["tenant"], &rows[0]["code"]),
        (&"lock.break".into(), &"own".into(), &200.into())
    );
}

#[tokio::test]
async fn admins_read_what_is_of_their_tenants() {
    let closed = Closed::new().await;
    for tenant in ["own", "foreign"] {
        closed
            .ask("edit-all", "GET", &format!("/state/{tenant}"), "")
            .await
            .expect(200, "a look at a secret");
    }
    closed.ask("admin-all", "POST", "/rezus/v1/users", r#"{"name":"ana"}"#).await.expect(201, "a user");
    let rows =
        closed.ask("admin-own", "GET", "/rezus/v1/audit?tenant=own", "").await.expect(200, "own").items();
    assert_eq!(rows.len(), 1);
    closed.ask("admin-own", "GET", "/rezus/v1/audit?tenant=foreign", "").await.expect(403, "another's");
    closed.ask("admin-own", "GET", "/rezus/v1/audit", "").await.expect(403, "all");
    let all = trail(&closed, "").await;
    let (first, object) = (&all[0]["action"], &all[0]["object"]);
    assert_eq!((all.len(), first, object), (3, &"user.create".into(), &"ana".into()));
    assert_eq!(trail(&closed, "?limit=2").await.len(), 2);
    closed
        .ask("admin-all", "GET", "/rezus/v1/audit?since=yesterday", "")
        .await
        .expect(400, "no such parameter");
}

#[tokio::test]
async fn rows_go_when_their_time_is_over() {
    let closed = Closed::new().await;
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "long ago");
    assert_eq!(trail(&closed, "").await.len(), 1);
    let auth = &closed.plane.plane().auth;
    closed.plane.clock.advance(Duration::from_hours(24 * 365));
    auth.prune().await.unwrap();
    assert_eq!(trail(&closed, "").await.len(), 1, "a year is kept");
    closed.plane.clock.advance(Duration::from_millis(1));
    auth.prune().await.unwrap();
    assert_eq!(trail(&closed, "").await.len(), 0);
}

/// A trail that cannot be written now is written later, and costs no request.
#[tokio::test]
async fn rows_wait_while_the_store_fails() {
    let closed = Closed::new().await;
    closed.accounts.inject(Fault::BeforeWrite);
    closed.ask("edit-all", "GET", "/state/own", "").await.expect(200, "the first");
    let auth = &closed.plane.plane().auth;
    auth.trail().flush().await;
    let filter = AuditFilter { limit: 10, ..AuditFilter::default() };
    assert_eq!(closed.accounts.audit(&filter).await.unwrap().len(), 0);
    closed.ask("edit-all", "POST", "/state/own", state("l", 2)).await.expect(200, "the second");
    auth.trail().flush().await;
    let actions: Vec<String> =
        closed.accounts.audit(&filter).await.unwrap().into_iter().map(|row| row.action).collect();
    assert_eq!(actions, ["state.write", "state.read"]);
}

#[tokio::test]
async fn what_a_client_did_not_wait_for_is_on_record_with_its_outcome() {
    use axum::body::Body;
    let closed = Closed::new().await;
    let plane: &InProcess = &closed.plane;
    // The body never ends: the request is given up while it arrives.
    let (started, has_started) = tokio::sync::oneshot::channel();
    let mut started = Some(started);
    let pieces = futures_util::stream::poll_fn(move |_| {
        if let Some(started) = started.take() {
            started.send(()).unwrap();
        }
        std::task::Poll::<Option<Result<bytes::Bytes, std::io::Error>>>::Pending
    });
    let bearer = format!("Bearer {}", super::people::secret("edit-all").reveal());
    let headers = [("authorization", bearer.as_str()), ("content-length", "1000")];
    let body = Body::from_stream(pieces);
    let request = plane.send_body(crate::in_process::elsewhere(), "POST", "/state/own", &headers, body);
    tokio::select! {
        answer = request => panic!("{}", answer.code),
        arrived = has_started => arrived.unwrap(),
    }
    let rows = trail(&closed, "").await;
    assert_eq!((&rows[0]["action"], &rows[0]["code"]), (&"state.write".into(), &499.into()));
}

#[tokio::test]
async fn nothing_on_record_is_lost_when_the_server_is_told_to_end() {
    let mut server = Server::start_with(Settings { auth: true, ..Settings::default() }).await;
    let bearer = format!("Bearer {}", super::admin::token(server.data_dir()));
    let headers = [("authorization", bearer.as_str())];
    for number in 1..=20 {
        server.send_with("POST", "/state/web", &headers, state("l", number)).await.expect(200, "POST");
    }
    assert!(server.terminate().await.success());
    server.start_again().await;
    let rows = server.send_with("GET", "/rezus/v1/audit?tenant=web", &headers, "").await.expect(200, "audit");
    assert_eq!(rows.items().len(), 20);
    assert!(rows.items().iter().all(|row| row["who"] == "admin" && row["from"] == "127.0.0.1"));
}
