//! Which versions are let go, and which never.

use std::time::Duration;

use serde_json::Value;

use crate::in_process::InProcess;
use crate::lock::{self, APPLY, state};

async fn numbers(server: &InProcess) -> Vec<u64> {
    server.versions("web").await.iter().map(|version| version["version"].as_u64().unwrap()).collect()
}

async fn prune(server: &InProcess, dry_run: bool) -> Value {
    let body = format!(r#"{{"dryRun":{dry_run}}}"#);
    server.send("POST", "/rezus/v1/prune", body).await.expect(200, "prune").json()
}

#[tokio::test]
async fn snapshots_go_after_a_week_unless_they_are_pinned() {
    let server = InProcess::new();
    let id = lock::id(1);
    server.lock("web", &id, APPLY).await.expect(200, "LOCK");
    for serial in 1..=4 {
        server.post_under("web", &id, state("l", serial)).await.expect(200, "a snapshot");
    }
    server.unlock("web", &id).await.expect(200, "UNLOCK");
    let pin = r#"{"pinned":true}"#;
    server.send("PATCH", "/rezus/v1/tenants/web/versions/2", pin).await.expect(200, "pin");

    server.clock.advance(Duration::from_hours(24 * 7 - 1));
    assert_eq!(prune(&server, false).await["items"], Value::Array(Vec::new()));
    server.clock.advance(Duration::from_hours(2));
    assert_eq!(prune(&server, true).await["items"][0]["versions"], serde_json::json!([1, 3]));
    assert_eq!(numbers(&server).await, [1, 2, 3, 4], "a dry run removes nothing");
    assert_eq!(prune(&server, false).await["items"][0]["versions"], serde_json::json!([1, 3]));
    assert_eq!(numbers(&server).await, [2, 4]);
    server.get("/rezus/v1/tenants/web/versions/1/body").await.expect(404, "a version that went");
    assert_eq!(server.current("web").await.unwrap(), state("l", 4));
}

#[tokio::test]
async fn the_newest_hundred_stay_however_old_they_are() {
    let server = InProcess::new();
    for serial in 1..=103 {
        server.post("web", state("l", serial)).await.expect(200, "POST");
    }
    assert_eq!(prune(&server, false).await["items"], Value::Array(Vec::new()), "all are young");
    server.clock.advance(Duration::from_hours(24 * 365));
    prune(&server, false).await;
    assert_eq!(numbers(&server).await, (4..=103).collect::<Vec<_>>());
    // The serial of a rollback is above those of versions that went, too.
    server.push("web", &lock::id(1), state("l", 1)).await.expect(200, "a push back");
    let back = server.send("POST", "/rezus/v1/tenants/web/rollback", r#"{"version":50}"#).await;
    assert_eq!(back.expect(200, "rollback").json()["serial"], 104);
}
