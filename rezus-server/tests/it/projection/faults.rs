//! What else can be wrong while somebody reads: storage that fails, a tenant that comes anew, one that is broken among
//! many.

use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use rezus_core::access::{Access, Identity, Role, Scope};
use rezus_core::base::Timestamp;
use rezus_core::declared::store::RefusalRecord;
use rezus_testkit::fake::{FakeStateStore, Fault};
use serde_json::json;
use tower::ServiceExt as _;

use super::{API, machines, names};
use crate::in_process::{InProcess, local};
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

#[tokio::test]
async fn one_tenant_whose_records_are_damaged_costs_those_nothing_who_do_not_see_it() {
    let plane = InProcess::new();
    let zone = |zone: &str, serial| machines(serial, &[("a", json!({ "name": "a", "zone": zone }))]);
    for tenant in ["bad", "good"] {
        plane.post(tenant, zone("one", 1)).await.expect(200, "POST");
    }
    let followed = tokio::spawn(plane.plane().catalogue.clone().run());
    let good = format!("{API}/namespaces/good/machines?watch=1");
    let mut events = plane.watch(&good, "application/json").await;
    assert_eq!(events.next().await["type"], "ADDED");
    let damage = "INSERT INTO refusals (tenant, at, who, operation, code, reason) VALUES ('bad', 0, '', 'POST', 99999, '')";
    assert_eq!(plane.database().execute(damage, []).unwrap(), 1);
    plane.plane().catalogue.touch(&"bad".parse().unwrap());
    plane.post("good", zone("two", 2)).await.expect(200, "POST");
    // Nobody but the watcher asks.
    let event = events.next().await;
    assert_eq!((&event["type"], &event["object"]["spec"]["zone"]), (&json!("MODIFIED"), &json!("two")));
    followed.abort();
    // What is damaged are the refusals alone: they are missing, and nothing else is.
    let listed = plane.get(&format!("{API}/machines")).await.expect(200, "a list with the damaged one");
    assert_eq!(names(&listed.items()), ["a", "a"]);
    assert!(plane.get("/api/v1/events").await.expect(200, "events").items().is_empty());
    let viewer = Identity {
        name: "ana".to_owned(),
        groups: Vec::new(),
        access: Access::of([(Role::View, &Scope::Tenants(["good".parse().unwrap()].into()))]),
        token: None,
    };
    for kind in ["machines", "tenants", "providers"] {
        let request = Request::get(format!("{API}/{kind}")).extension(ConnectInfo(local()));
        let request = request.extension(viewer.clone()).body(Body::empty()).unwrap();
        let router = rezus_server::compose::router(plane.plane());
        assert_eq!(router.oneshot(request).await.unwrap().status(), 200, "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_nobody_tells_of_is_noticed_even_where_somebody_always_writes() {
    let store = FakeStateStore::new();
    let plane = InProcess::over_fake(&store);
    for tenant in ["busy", "quiet"] {
        plane.post(tenant, machines(1, &[("a", json!({ "name": "a" }))])).await.expect(200, "POST");
    }
    let events = "/api/v1/namespaces/quiet/events";
    assert_eq!(plane.get(events).await.expect(200, "before").items().len(), 0);
    let followed = tokio::spawn(plane.plane().catalogue.clone().run());
    let refusal = RefusalRecord {
        at: Timestamp::from_millis(0),
        who: "ana".to_owned(),
        operation: "POST".to_owned(),
        code: 409,
        reason: "no".to_owned(),
        head: None,
    };
    plane.plane().backend.store().record_refusal(&"quiet".parse().unwrap(), refusal).await.unwrap();
    assert_eq!(plane.get(events).await.expect(200, "nobody told").items().len(), 0);
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_mins(1)).await;
        plane.plane().catalogue.touch(&"busy".parse().unwrap());
    }
    assert_eq!(plane.get(events).await.expect(200, "after").items().len(), 1);
    followed.abort();
}

#[tokio::test]
async fn those_who_ask_at_once_have_a_state_read_once() {
    let store = FakeStateStore::new();
    let plane = InProcess::over_fake(&store);
    let mut read = Vec::new();
    for (serial, readers) in [(1, 1), (2, 8)] {
        plane.post("web", machines(serial, &[("a", json!({ "name": "a" }))])).await.expect(200, "POST");
        let before = store.bytes_read();
        for answer in futures_util::future::join_all((0..readers).map(|_| plane.get(MACHINES))).await {
            assert_eq!(names(&answer.expect(200, "list").items()), ["a"]);
        }
        read.push(store.bytes_read() - before);
    }
    assert!(read[0] > 0);
    assert_eq!(read[0], read[1]);
}
