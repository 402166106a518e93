//! Watches: what is told, in which order, and how they end.

use serde_json::{Value, json};

use super::{API, TABLE, two_tenants, web};
use crate::in_process::{Events, InProcess};
use crate::projection::machines;

/// Type, name and resource version of an event.
fn told(event: &Value) -> (String, String, u64) {
    let metadata = &event["object"]["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (text(&event["type"]), text(&metadata["name"]), text(&metadata["resourceVersion"]).parse().unwrap())
}

async fn watch(plane: &InProcess, target: &str) -> Events {
    plane.watch(&format!("{API}{target}"), "application/json").await
}

/// Followed while states are written, as a running server does it.
fn follow(plane: &InProcess) -> tokio::task::JoinHandle<()> {
    tokio::spawn(plane.plane().catalogue.clone().run())
}

#[tokio::test]
async fn what_is_there_comes_first_and_then_what_changes() {
    let plane = two_tenants().await;
    let followed = follow(&plane);
    for start in ["", "&resourceVersion=0", "&resourceVersion="] {
        let mut events = watch(&plane, &format!("/namespaces/web/machines?watch=1{start}")).await;
        for name in ["a", "b", "c"] {
            let (kind, named, _) = told(&events.next().await);
            assert_eq!((kind.as_str(), named.as_str()), ("ADDED", name), "{start}");
        }
    }
    let list = plane.get(&format!("{API}/namespaces/web/machines")).await.json();
    let since = list["metadata"]["resourceVersion"].as_str().unwrap();
    let mut events =
        watch(&plane, &format!("/namespaces/web/machines?watch=1&resourceVersion={since}")).await;
    plane.post("web", web(2, "two")).await.expect(200, "POST");
    let event = events.next().await;
    assert_eq!((&event["type"], &event["object"]["spec"]["zone"]), (&"MODIFIED".into(), &"two".into()));
    let (.., modified) = told(&event);
    plane
        .post("web", machines(3, &[("c", json!({ "name": "c" })), ("d", json!({ "name": "d" }))]))
        .await
        .expect(200, "POST");
    let mut last = modified;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let (kind, name, version) = told(&events.next().await);
        assert!(version > last, "{kind} {name}: {version} after {last}");
        last = version;
        seen.push(format!("{kind} {name}"));
    }
    assert_eq!(seen, ["DELETED a", "DELETED b", "MODIFIED c", "ADDED d"]);
    // Each is a place to go on from, the deletions too.
    let mut again =
        watch(&plane, &format!("/namespaces/web/machines?watch=1&resourceVersion={modified}")).await;
    assert_eq!(told(&again.next().await).0, "DELETED");
    let mut end =
        watch(&plane, &format!("/namespaces/web/machines?watch=1&resourceVersion={last}&timeoutSeconds=1"))
            .await;
    assert_eq!(end.next_or_end().await, None);
    followed.abort();
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark_that_says_so() {
    let plane = two_tenants().await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1";
    let mut events = watch(&plane, &format!("/machines?{query}")).await;
    let mut names = Vec::new();
    let bookmark = loop {
        let event = events.next().await;
        if event["type"] == "BOOKMARK" {
            break event["object"].clone();
        }
        names.push(told(&event).1);
    };
    assert_eq!(names, ["x", "a", "b", "c"]);
    assert_eq!(
        (&bookmark["kind"], &bookmark["apiVersion"]),
        (&"Machine".into(), &"rezuscloud.io/v1alpha1".into())
    );
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let list = plane.get(&format!("{API}/machines")).await.json();
    assert_eq!(bookmark["metadata"]["resourceVersion"], list["metadata"]["resourceVersion"]);
    assert_eq!(events.next_or_end().await, None);
    // Without bookmarks there is none; and where none are wanted, nothing is told of what is there.
    let mut events =
        watch(&plane, &format!("/machines?{}", query.replace("&allowWatchBookmarks=true", ""))).await;
    for _ in 0..4 {
        assert_eq!(events.next().await["type"], "ADDED");
    }
    assert_eq!(events.next_or_end().await, None);
    let mut events =
        watch(&plane, &format!("/machines?{}", query.replace("Events=true", "Events=false"))).await;
    assert_eq!(events.next_or_end().await, None);
}

#[tokio::test]
async fn bookmarks_come_before_the_end() {
    let plane = two_tenants().await;
    let version = |list: Value| list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let since = version(plane.get(&format!("{API}/nodegroups")).await.json());
    let query = format!("/nodegroups?watch=1&allowWatchBookmarks=1&resourceVersion={since}&timeoutSeconds=3");
    let mut events = watch(&plane, &query).await;
    // Nothing of the kind changes, and yet the place to go on from moves.
    plane.send("LOCK", "/state/web", "no lock info").await.expect(400, "a refusal makes an event");
    let newest = version(plane.get("/api/v1/events").await.json());
    assert_ne!(newest, since);
    let bookmark = events.next().await;
    assert_eq!(bookmark["type"], "BOOKMARK");
    assert_eq!(
        (&bookmark["object"]["kind"], &bookmark["object"]["metadata"]),
        (&"NodeGroup".into(), &json!({ "resourceVersion": newest }))
    );
    assert_eq!(events.next_or_end().await, None);
}

#[tokio::test]
async fn objects_that_begin_or_cease_to_match_come_and_go() {
    let plane = two_tenants().await;
    let followed = follow(&plane);
    let since = plane.get(&format!("{API}/machines")).await.json()["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let selected = |selector: &str| format!("/machines?watch=1&resourceVersion={since}&{selector}");
    let mut workers = watch(&plane, &selected("labelSelector=rezuscloud.io/role%3Dworker")).await;
    let mut one = watch(&plane, &selected("fieldSelector=metadata.name%3Dc")).await;
    let b = json!({ "name": "b", "role": "controlplane" });
    let c = json!({ "name": "c", "role": "worker" });
    let a = json!({ "name": "a", "role": "worker", "node_group": "pool", "zone": "one", "internal_ips": ["10.0.0.1"], "cpus": 4 });
    plane.post("web", machines(2, &[("a", a), ("b", b), ("c", c)])).await.expect(200, "POST");
    let (first, second) = (workers.next().await, workers.next().await);
    assert_eq!(told(&first).0 + &told(&first).1, "DELETEDb");
    // As it was when it matched last.
    assert_eq!(first["object"]["spec"]["role"], "worker");
    assert_eq!(told(&second).0 + &told(&second).1, "ADDEDc");
    let changed = one.next().await;
    assert_eq!(
        (&changed["type"], &changed["object"]["spec"]["role"]),
        (&"MODIFIED".into(), &"worker".into())
    );
    followed.abort();
}

#[tokio::test]
async fn a_version_that_is_none_to_go_on_from_is_told_in_the_stream() {
    let plane = two_tenants().await;
    let newest = plane.get(&format!("{API}/machines")).await.json()["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    for version in
        ["1".to_owned(), (newest.parse::<u64>().unwrap() + 1).to_string(), "9007199254740991".to_owned()]
    {
        for query in ["", "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"] {
            let mut events =
                watch(&plane, &format!("/machines?watch=1&resourceVersion={version}{query}")).await;
            let error = events.next().await;
            assert_eq!(error["type"], "ERROR");
            let status = &error["object"];
            assert_eq!(
                (&status["kind"], &status["code"], &status["reason"]),
                (&"Status".into(), &json!(410), &"Expired".into())
            );
            assert_eq!(events.next_or_end().await, None);
        }
    }
    plane.get(&format!("{API}/machines?watch=1&resourceVersion=abc")).await.expect(400, "no number");
}

#[tokio::test]
async fn tables_tell_their_columns_once() {
    let plane = two_tenants().await;
    let target = format!("{API}/machines?watch=1&timeoutSeconds=1");
    let mut events = plane.watch(&target, TABLE).await;
    let mut columns = Vec::new();
    while let Some(event) = events.next_or_end().await {
        let table = &event["object"];
        assert_eq!((&table["kind"], table["rows"].as_array().unwrap().len()), (&"Table".into(), 1));
        columns.push(table["columnDefinitions"].as_array().unwrap().len());
    }
    assert_eq!(columns, [13, 0, 0, 0]);
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut events = plane.watch(&target, accept).await;
    let event = events.next().await;
    assert_eq!(
        (&event["object"]["kind"], event["object"].get("spec")),
        (&"PartialObjectMetadata".into(), None)
    );
}

#[tokio::test]
async fn a_tenant_that_is_removed_takes_its_objects_along() {
    let plane = two_tenants().await;
    let followed = follow(&plane);
    let mut namespaces = plane.watch("/api/v1/namespaces?watch=1", "application/json").await;
    assert_eq!(told(&namespaces.next().await).1, "other");
    assert_eq!(told(&namespaces.next().await).1, "web");
    let mut events = watch(&plane, "/namespaces/other/machines?watch=1").await;
    assert_eq!(told(&events.next().await).1, "x");
    plane.send("DELETE", "/rezus/v1/tenants/other?force=true", "").await.expect(204, "removed");
    assert_eq!(told(&events.next().await).0, "DELETED");
    let gone = told(&namespaces.next().await);
    assert_eq!((gone.0.as_str(), gone.1.as_str()), ("DELETED", "other"));
    followed.abort();
}

#[tokio::test]
async fn watches_end_when_the_server_does() {
    let plane = two_tenants().await;
    let mut events = watch(&plane, "/namespaces/other/machines?watch=1").await;
    assert_eq!(told(&events.next().await).1, "x");
    plane.plane().draining.begin();
    assert_eq!(events.next_or_end().await, None);
}

#[tokio::test]
async fn a_watch_that_asks_to_last_for_ever_begins_all_the_same() {
    let plane = two_tenants().await;
    let mut events = watch(&plane, &format!("/machines?watch=1&timeoutSeconds={}", i64::MAX)).await;
    let (kind, name, _) = told(&events.next().await);
    assert_eq!((kind.as_str(), name.as_str()), ("ADDED", "x"));
}
