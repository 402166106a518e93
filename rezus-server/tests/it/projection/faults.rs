//! What else can be wrong while somebody reads: storage that fails, a tenant that comes anew, one that is broken among
//! many.

use std::time::Duration;

use rezus_testkit::fake::{FakeStateStore, Fault};
use serde_json::json;

use super::{API, machines, names};
use crate::in_process::InProcess;
use crate::server::Server;

const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/web/machines";

#[tokio::test]
async fn what_cannot_be_read_now_is_no_empty_list() {
    let store = FakeStateStore::new();
    let plane = InProcess::over_fake(&store);
    plane.post("web", machines(1, &[("a", json!({ "name": "a" }))])).await.expect(200, "POST");
    for path in
        ["/namespaces/web/machines", "/namespaces/web/machines/a", "/machines", "/nodegroups", "/tenants"]
    {
        store.fail_next(Fault::Read);
        let answer = plane.get(&format!("{API}{path}")).await.expect(503, path);
        assert!(!answer.message().is_empty());
        plane.get(&format!("{API}{path}")).await.expect(200, path);
    }
}

#[tokio::test]
async fn a_store_that_takes_no_writes_still_shows_machines() {
    let store = FakeStateStore::new();
    let plane = InProcess::over_fake(&store);
    plane.post("web", machines(1, &[("a", json!({ "name": "a" }))])).await.expect(200, "POST");
    store.fail_next(Fault::BeforeWrite);
    let answer = plane.get(MACHINES).await.expect(200, "list");
    assert_eq!(names(&answer.items()), ["a"]);
}

#[tokio::test]
async fn a_tenant_removed_and_made_anew_has_other_objects() {
    let plane = InProcess::new();
    let body = machines(1, &[("a", json!({ "name": "a" }))]);
    let mut found = Vec::new();
    for _ in 0..2 {
        plane.clock.advance(Duration::from_mins(1));
        plane.post("web", body.clone()).await.expect(200, "POST");
        found.push(plane.get(&format!("{MACHINES}/a")).await.expect(200, "a").json());
        plane.send("DELETE", "/rezus/v1/tenants/web?force=true", "").await.expect(204, "remove");
    }
    let since = |number: usize| &found[number]["metadata"]["creationTimestamp"];
    assert_ne!(since(0), since(1));
}

#[tokio::test]
async fn one_tenant_whose_state_is_damaged_does_not_hide_the_others() {
    let mut server = Server::start().await;
    for tenant in ["bad", "good"] {
        let body = machines(1, &[("a", json!({ "name": tenant }))]);
        server.send("POST", &format!("/state/{tenant}"), body).await.expect(200, "POST");
    }
    let listed = server.get(&format!("{API}/machines")).await.expect(200, "machines");
    assert_eq!(names(&listed.items()), ["bad", "good"]);
    assert!(server.terminate().await.success());
    let database = rusqlite::Connection::open(server.data_dir().join("rezus.db")).unwrap();
    let damage = "UPDATE chunks SET data = x'00' WHERE version_id = (SELECT min(version_id) FROM chunks)";
    assert_eq!(database.execute(damage, []).unwrap(), 1);
    drop(database);
    server.start_again().await;
    server.get(&format!("{API}/namespaces/bad/machines")).await.expect(500, "the damaged one");
    let listed = server.get(&format!("{API}/machines")).await.expect(200, "machines");
    // What was known of it is its name.
    let items = listed.items();
    assert_eq!(names(&items), ["bad", "good"]);
    assert_eq!((&items[0]["spec"], &items[1]["spec"]["name"]), (&json!({}), &json!("good")));
    let warning = listed.headers.get("warning").unwrap().to_str().unwrap();
    assert!(warning.starts_with("299 ") && warning.contains("bad"), "{warning}");
    let listed = server.get(&format!("{API}/tenants")).await.expect(200, "tenants").items();
    assert_eq!(names(&listed), ["bad", "good"]);
    assert_eq!(listed[0]["status"]["conditions"][0]["reason"], "Damaged");
}
