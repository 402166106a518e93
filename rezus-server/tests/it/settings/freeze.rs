//! An operator's stop: what it refuses, what it lets finish, and that everybody is told whose it is.

use serde_json::json;

use super::{run, server, shown};
use crate::in_process::InProcess;
use crate::lock::{self, APPLY, PUSH, state};
use crate::tool::{self, Form, Workspace};

const FREEZE: &str = "/rezus/v1/tenants/web/freeze";

/// A state is there, and nobody holds the lock.
async fn plane() -> InProcess {
    let plane = InProcess::new();
    plane.send("POST", "/state/web", state("l", 1)).await.expect(200, "the first state");
    plane
}

#[tokio::test]
async fn a_freeze_of_clients_refuses_every_write_and_shows_itself_as_the_lock() {
    let plane = plane().await;
    plane
        .send("PUT", FREEZE, r#"{"reason":"audit until Monday","clients":true}"#)
        .await
        .expect(200, "freeze");
    let before = plane.get("/rezus/v1/tenants/web").await.json();
    assert_eq!(before["freeze"]["reason"], "audit until Monday");
    let by = before["freeze"]["by"].as_str().unwrap().to_owned();
    for (method, target, body) in [
        ("LOCK", "/state/web", lock::info(&lock::id(1), APPLY)),
        ("LOCK", "/state/web", lock::info(&lock::id(1), PUSH)),
        ("POST", "/state/web/lock", lock::info(&lock::id(1), APPLY)),
        ("POST", "/state/web", state("l", 2)),
        ("PUT", "/state?ID=web", state("l", 2)),
        ("POST", &format!("/state/web?ID={}", lock::id(1)), state("l", 2)),
        ("DELETE", "/state/web", String::new()),
    ] {
        let info = plane.send(method, target, body).await.expect(423, &format!("{method} {target}")).json();
        assert_eq!((&info["Who"], &info["Info"]), (&json!(by), &json!("audit until Monday")), "{info}");
        assert_eq!((&info["Operation"], &info["Created"]), (&json!("freeze"), &before["freeze"]["at"]));
        assert_eq!(info["ID"], format!("frozen by {by}: audit until Monday"));
    }
    plane.get("/state/web").await.expect(200, "reading is no write");
    // The ID that is shown opens nothing.
    plane
        .send("UNLOCK", "/state/web", lock::info(&format!("frozen by {by}: audit until Monday"), APPLY))
        .await
        .expect(409, "by its ID");
    plane.send("UNLOCK", "/state/web", "").await.expect(200, "force-unlock, with nothing to unlock");
    plane.send("DELETE", "/rezus/v1/tenants/web/locks", "").await.expect(200, "no lock is broken");
    let after = plane.get("/rezus/v1/tenants/web").await.json();
    assert_eq!((&after["freeze"], &after["state"]), (&before["freeze"], &before["state"]));
    let refusals = plane.get("/rezus/v1/tenants/web/refusals").await.items();
    assert!(refusals[1]["reason"].as_str().unwrap().contains("audit until Monday"), "{refusals:?}");

    plane.send("DELETE", FREEZE, "").await.expect(200, "unfreeze");
    plane.send("DELETE", FREEZE, "").await.expect(200, "again");
    plane.send("POST", "/state/web", state("l", 2)).await.expect(200, "as before");
    assert!(plane.get("/rezus/v1/tenants/web").await.json().get("freeze").is_none());
    let nobody = plane.send("PUT", &FREEZE.replace("web", "nobody"), r#"{"reason":"x"}"#).await;
    nobody.expect(404, "no tenant");
}

#[tokio::test]
async fn what_was_under_way_may_save_and_let_its_lock_go() {
    let plane = plane().await;
    let id = lock::id(1);
    plane.send("LOCK", "/state/web", lock::info(&id, APPLY)).await.expect(200, "LOCK");
    plane.send("PUT", FREEZE, r#"{"reason":"stop","clients":true}"#).await.expect(200, "freeze");
    plane.send("LOCK", "/state/web", lock::info(&id, APPLY)).await.expect(200, "its answer was lost");
    plane.send("POST", &format!("/state/web?ID={id}"), state("l", 2)).await.expect(200, "it saves");
    let other = plane.send("POST", "/state/web", state("l", 3)).await.expect(423, "another").json();
    assert_eq!(other["Operation"], "freeze");
    let listed = plane.get("/rezus/v1/locks").await.items();
    let shown: Vec<_> = listed.iter().map(|lock| (&lock["operation"], &lock["reason"])).collect();
    assert_eq!(shown, [(&json!(APPLY), &json!(null)), (&json!("freeze"), &json!("stop"))]);
    assert_eq!(plane.get("/rezus/v1/tenants/web/locks").await.items().len(), 2);
    plane.send("UNLOCK", "/state/web", lock::info(&id, APPLY)).await.expect(200, "UNLOCK");
    plane.send("LOCK", "/state/web", lock::info(&id, APPLY)).await.expect(423, "no second time");
    let versions = plane.get("/rezus/v1/tenants/web/versions").await.items();
    assert_eq!(versions.len(), 2);
}

#[tokio::test]
async fn a_freeze_of_runs_leaves_clients_alone_and_outlives_an_unlock() {
    let plane = InProcess::new();
    let info = lock::info(&lock::id(1), APPLY);
    plane.send("LOCK", "/state/web", info.clone()).await.expect(200, "LOCK makes the tenant");
    plane.send("PUT", FREEZE, r#"{"reason":"stop"}"#).await.expect(200, "freeze");
    plane.send("UNLOCK", "/state/web", info.clone()).await.expect(200, "UNLOCK");
    let tenant = plane.get("/rezus/v1/tenants/web").await.expect(200, "it stays").json();
    assert_eq!(tenant["freeze"]["clients"], false);
    plane.send("LOCK", "/state/web", info).await.expect(200, "clients go on");
}

/// A23: the laptop's apply is refused with the operator's name; the list of locks shows who, since when and why.
#[tokio::test]
async fn a_laptops_apply_is_told_who_froze_the_tenant_and_why() {
    for tool in tool::installed() {
        let server = server().await;
        let block = Form::Path.block(server.url(), "prod");
        let laptop = Workspace::new(&tool, &server, "laptop", &block).await;
        let other = Workspace::new(&tool, &server, "other", &block).await;
        let under_way = laptop.apply_slowly("one").await;
        let freeze = ["tenant", "freeze", "prod", "--reason", "migration of the network", "--clients"];
        let printed = run(&server, &freeze).await.done();
        assert!(printed.contains("runs and clients are refused"), "{printed}");
        // What is under way saves and lets its lock go.
        laptop.let_go().await;
        Workspace::ended(under_way).await.done();
        assert_eq!(server.versions("prod").await.last().unwrap()["intermediate"], false);

        other.apply("two").await.failed_with("frozen by admin: migration of the network");
        assert!(shown(&server, "prod").await.get("lock").is_none());
        let locks = run(&server, &["lock", "list"]).await.done();
        let line = locks.lines().nth(1).unwrap();
        for piece in ["prod", "admin", "freeze", "migration of the network"] {
            assert!(line.contains(piece), "{piece} is not in: {locks}");
        }
        let tenant = run(&server, &["tenant", "show", "prod"]).await.done();
        assert!(tenant.contains("runs and clients, by admin at "), "{tenant}");
        run(&server, &["tenant", "unfreeze", "prod"]).await.done();
        other.apply("two").await.done();
        let audit = server.get("/rezus/v1/audit?tenant=prod&limit=200").await.expect(200, "audit").items();
        for action in ["tenant.freeze", "tenant.unfreeze"] {
            let row = audit.iter().find(|row| row["action"] == action);
            assert_eq!(row.map(|row| (&row["who"], &row["code"])), Some((&json!("admin"), &json!(200))));
        }
    }
}
