//! Locks that could not be seen, not be released, or were answered wrongly.

use std::time::Duration;

use serde_json::{Value, json};

use crate::in_process::{InProcess, elsewhere, local};
use crate::lock::{self, APPLY, state};
use crate::server::Server;

fn holder(id: &str) -> Value {
    serde_json::from_str(&lock::info(id, APPLY)).unwrap()
}

/// Terraform's `force-unlock` sends an empty body, and servers answered 400. It releases the lock for those who may
/// break locks, and tells the others whose it is.
#[tokio::test]
async fn an_unlock_without_a_body_breaks_the_lock_for_those_who_may() {
    let server = InProcess::new();
    let id = lock::id(1);
    server.lock("web", &id, APPLY).await.expect(200, "LOCK");
    let refused = server.send_as(elsewhere(), "UNLOCK", "/state/web", &[("content-length", "0")], "").await;
    assert_eq!(refused.expect(409, "by one who may not").json(), holder(&id));
    assert_eq!(server.tenant("web").await["lock"]["id"], id);
    let broken = server.send_as(local(), "UNLOCK", "/state/web", &[("content-length", "0")], "").await;
    broken.expect(200, "by one who may");
    server.get("/rezus/v1/tenants/web").await.expect(404, "nothing is left of the tenant");
    let late = server.post_under("web", &id, state("l", 1)).await.expect(423, "who was the holder");
    assert_eq!(late.json(), holder(&id));
}

/// The same over the network, where the log keeps who broke it.
#[tokio::test]
async fn a_broken_lock_is_logged_with_the_one_who_broke_it() {
    let mut server = Server::start().await;
    server.send("LOCK", "/state/web", lock::info(&lock::id(1), APPLY)).await.expect(200, "LOCK");
    server.send("UNLOCK", "/state/web", "").await.expect(200, "UNLOCK");
    server.logged("lock broken", 1).await;
    server.send("LOCK", "/state/web", lock::info(&lock::id(2), APPLY)).await.expect(200, "LOCK");
    server.send("DELETE", "/rezus/v1/tenants/web/locks", "").await.expect(200, "an operator's way");
    server.logged("lock broken", 2).await;
    let log = server.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("lock broken")).collect();
    assert!(
        lines.iter().all(|line| line.contains("127.0.0.1") && line.contains("tenant.name=web")),
        "{lines:?}"
    );
}

/// The refusal showed the lock of the one who was refused, not that of the holder.
#[tokio::test]
async fn the_loser_is_shown_the_winners_lock() {
    let server = InProcess::new();
    let (winner, loser) = (lock::id(1), lock::id(2));
    server.lock("web", &winner, APPLY).await.expect(200, "LOCK of the winner");
    for _ in 0..3 {
        let refused = server.lock("web", &loser, "OperationTypePlan").await.expect(423, "LOCK of the loser");
        assert_eq!(refused.json(), holder(&winner));
    }
    server.unlock("web", &winner).await.expect(200, "UNLOCK");
    server.lock("web", &loser, "OperationTypePlan").await.expect(200, "LOCK of the loser");
}

/// A server compared the whole lock info instead of its ID, which `force-unlock` does not know.
#[tokio::test]
async fn only_the_id_of_a_lock_is_compared() {
    let server = InProcess::new();
    for (number, created) in [
        (1, json!("2026-11-30T16:54:37.540115051Z")),
        (2, json!("2026-11-30T18:54:37.540115051+02:00")),
        (3, json!("2026-11-30T16:54:37Z")),
        (4, json!("not a time")),
        (5, Value::Null),
    ] {
        let id = lock::id(number);
        let mut info = json!({ "ID": id, "Operation": APPLY, "Who": "root@vm" });
        if !created.is_null() {
            info["Created"] = created.clone();
        }
        server.send("LOCK", "/state/web", info.to_string()).await.expect(200, &created.to_string());
        let shown = server.lock("web", &lock::id(99), APPLY).await.expect(423, "the second").json();
        if number < 4 {
            assert_eq!(shown["Created"], created, "as it was sent");
        } else {
            // A client that cannot read the time cannot read the lock.
            let at = shown["Created"].as_str().unwrap();
            assert!(rezus_core::base::Timestamp::parse(at).is_ok(), "{at}");
        }
        let mut wrong = info.clone();
        wrong["ID"] = lock::id(98).into();
        server.send("UNLOCK", "/state/web", wrong.to_string()).await.expect(409, "another ID");
        let year_one = json!({ "ID": id, "Created": "0001-01-01T00:00:00Z" });
        server.send("UNLOCK", "/state/web", year_one.to_string()).await.expect(200, "the ID alone");
    }
}

/// LOCK was answered 201, which no client takes for success.
#[tokio::test]
async fn success_is_200_and_nothing_is_404() {
    let server = Server::start().await;
    let info = lock::info(&lock::id(1), APPLY);
    let under = format!("/state/web?ID={}", lock::id(1));
    for (method, target, body, code) in [
        ("GET", "/state/web", String::new(), 404),
        ("LOCK", "/state/web", info.clone(), 200),
        ("GET", "/state/web", String::new(), 404),
        ("POST", &under, state("l", 1), 200),
        ("PUT", &under, state("l", 2), 200),
        ("UNLOCK", "/state/web", info, 200),
        ("GET", "/state/web", String::new(), 200),
        ("DELETE", "/state/web", String::new(), 200),
        ("GET", "/state/web", String::new(), 404),
    ] {
        server.send(method, target, body).await.expect(code, &format!("{method} {target}"));
    }
}

/// A pipeline locks by itself and runs its clients with `-lock=false` and the lock's ID in the address.
#[tokio::test]
async fn a_pipeline_that_locks_by_itself_writes_under_its_lock() {
    let server = Server::start().await;
    let (mine, other) = (lock::id(1), lock::id(2));
    server.send("LOCK", "/state/ci", lock::info(&mine, "pipeline 7")).await.expect(200, "LOCK");
    let expected: Value = serde_json::from_str(&lock::info(&mine, "pipeline 7")).unwrap();
    for target in ["/state/ci".to_owned(), format!("/state/ci?ID={other}")] {
        let refused = server.send("POST", &target, state("l", 1)).await.expect(423, &target);
        assert_eq!(refused.json(), expected);
    }
    let under = format!("/state/ci?ID={mine}");
    server.send("POST", &under, state("l", 1)).await.expect(200, "POST under its lock");
    server.send("UNLOCK", "/state/ci", lock::info(&other, "")).await.expect(409, "UNLOCK with another ID");
    server.send("UNLOCK", "/state/ci", lock::info(&mine, "")).await.expect(200, "UNLOCK");
    let version = &server.versions("ci").await[0];
    assert_eq!((&version["lockOperation"], &version["unlocked"]), (&"pipeline 7".into(), &false.into()));
}

/// Nobody could see or release a lock.
#[tokio::test]
async fn every_lock_is_listed_with_who_when_what_and_for_how_long_and_can_be_broken() {
    let server = InProcess::new();
    for (number, tenant) in [(1, "db"), (2, "web")] {
        server.lock(tenant, &lock::id(number), APPLY).await.expect(200, "LOCK");
        server.clock.advance(Duration::from_secs(90));
    }
    server.post("free", state("l", 1)).await.expect(200, "a tenant that nobody locks");
    let locks = server.get("/rezus/v1/locks").await.expect(200, "locks").items();
    let ages: Vec<u64> = locks.iter().map(|lock| lock["ageSeconds"].as_u64().unwrap()).collect();
    assert_eq!(ages, [180, 90]);
    for (lock, (number, tenant)) in locks.iter().zip([(1, "db"), (2, "web")]) {
        assert_eq!(lock["tenant"], tenant);
        assert_eq!(lock["id"], lock::id(number));
        assert_eq!((&lock["who"], &lock["operation"]), (&"root@vm".into(), &APPLY.into()));
        assert_eq!((&lock["clientVersion"], &lock["acquiredBy"]), (&"1.12.6".into(), &"127.0.0.1".into()));
        assert_eq!(lock["created"], "2026-11-30T16:54:37.540115051Z");
        assert!(lock["acquiredAt"].as_str().unwrap().starts_with("2026-11-30T19:1"), "{lock}");
        assert_eq!(
            server.get(&format!("/rezus/v1/tenants/{tenant}/locks")).await.items(),
            std::slice::from_ref(lock)
        );
        assert_eq!(server.tenant(tenant).await["lock"], *lock);
    }

    let path = "/rezus/v1/tenants/web/locks";
    server.send("DELETE", &format!("{path}?id={}", lock::id(1)), "").await.expect(409, "another lock");
    let broken = server.send("DELETE", &format!("{path}?id={}", lock::id(2)), "").await;
    assert_eq!(broken.expect(200, "this lock").items(), [locks[1].clone()]);
    assert_eq!(server.get("/rezus/v1/locks").await.items().len(), 1);
    server.send("DELETE", "/rezus/v1/tenants/db/locks", "").await.expect(200, "whichever is held");
    let far = server.send_as(elsewhere(), "DELETE", "/rezus/v1/tenants/free/locks", &[], "").await;
    far.expect(403, "by one who may not break locks");
    server
        .send("DELETE", "/rezus/v1/tenants/free/locks", "")
        .await
        .expect(200, "none is held: nothing to refuse");
}
