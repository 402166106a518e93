//! Who objects are over time: their identity, since when they are, and in which version their spec last changed.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::{API, LINEAGE, block, by_hand, machines, state_of};
use crate::in_process::InProcess;
use crate::server::Server;

const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/web/machines";

/// Machines of four versions: `a` never changes, `b` changes in the second and goes in the third, `c` comes in the
/// second and changes in the fourth.
fn version(number: u64) -> String {
    let (a, b) = (json!({ "name": "a" }), |zone: &str| json!({ "name": "b", "zone": zone }));
    let c = |zone: &str| json!({ "name": "c", "zone": zone });
    match number {
        1 => machines(1, &[("a", a), ("b", b("one"))]),
        2 => machines(2, &[("a", a), ("b", b("two")), ("c", c("one"))]),
        3 => machines(3, &[("a", a), ("c", c("one"))]),
        _ => machines(number, &[("a", a), ("c", c("two"))]),
    }
}

/// Metadata by name, but for the resource version.
fn metadata(items: Vec<Value>) -> BTreeMap<String, Value> {
    items
        .into_iter()
        .map(|mut it| {
            let metadata = it["metadata"].as_object_mut().unwrap();
            // It is the server's, and another after a restart.
            let version = metadata.remove("resourceVersion").unwrap();
            assert!(version.as_str().unwrap().parse::<u64>().unwrap() > 0);
            (metadata["name"].as_str().unwrap().to_owned(), it["metadata"].clone())
        })
        .collect()
}

/// The time of a version to the second.
fn written(versions: &[Value], number: u64) -> String {
    let version = versions.iter().find(|version| version["version"] == number).unwrap();
    format!("{}Z", &version["writtenAt"].as_str().unwrap()[..19])
}

#[tokio::test]
async fn generation_and_times_are_those_of_the_versions_that_made_the_object() {
    let plane = InProcess::new();
    for number in 1..=4 {
        plane.clock.advance(Duration::from_millis(61_500));
        plane.post("web", version(number)).await.expect(200, "POST");
        // After the first two nobody looks.
        if number == 2 {
            plane.get(MACHINES).await.expect(200, "list");
        }
    }
    let versions = plane.versions("web").await;
    let found = metadata(plane.get(MACHINES).await.items());
    for (name, came, changed) in [("a", 1, 1), ("c", 2, 4)] {
        let object = &found[name];
        assert_eq!(object["generation"], changed, "{name}");
        assert_eq!(object["creationTimestamp"], written(&versions, came), "{name}");
        assert_eq!(object["namespace"], "web");
    }
    // All objects have one, and no two the same.
    let mut uids = Vec::new();
    for path in ["machines", "nodegroups", "tenants"] {
        for item in plane.get(&format!("{API}/{path}")).await.items() {
            uids.push(item["metadata"]["uid"].as_str().unwrap().to_owned());
        }
    }
    let count = uids.len();
    uids.sort();
    uids.dedup();
    assert_eq!((uids.len(), count), (4, 4), "{uids:?}");
    assert!(uids.iter().all(|uid| uuid_version(uid) == '5'), "{uids:?}");
}

fn uuid_version(uid: &str) -> char {
    assert_eq!(uid.len(), 36, "{uid}");
    uid.chars().nth(14).unwrap()
}

#[tokio::test]
async fn whether_anybody_read_versions_in_between_makes_no_difference() {
    let (watched, alone) = (InProcess::new(), InProcess::new());
    for number in 1..=4 {
        for plane in [&watched, &alone] {
            plane.clock.advance(Duration::from_mins(1));
            plane.post("web", version(number)).await.expect(200, "POST");
        }
        watched.get(MACHINES).await.expect(200, "list");
    }
    let found = metadata(watched.get(MACHINES).await.items());
    assert_eq!(found, metadata(alone.get(MACHINES).await.items()));
}

#[tokio::test]
async fn identities_outlive_restarts_and_crashes() {
    let mut server = Server::start().await;
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    for number in 1..=6 {
        server.send("POST", "/state/web", version(number)).await.expect(200, "POST");
        if u64::is_multiple_of(number, 2) {
            let found = metadata(server.get(MACHINES).await.expect(200, "list").items());
            for (name, object) in &found {
                if let Some(known) = known.get(name) {
                    assert_eq!(known["uid"], object["uid"], "{name}");
                    assert_eq!(known["creationTimestamp"], object["creationTimestamp"], "{name}");
                }
            }
            known = found;
        }
        if number.is_multiple_of(3) {
            server.kill().await;
        } else {
            assert!(server.terminate().await.success());
        }
        server.start_again().await;
    }
    assert_eq!(metadata(server.get(MACHINES).await.items()), known);
    assert_eq!((&known["a"]["generation"], &known["c"]["generation"]), (&json!(1), &json!(4)));
}

#[tokio::test]
async fn what_went_and_came_back_is_another_object() {
    let plane = InProcess::new();
    let post = async |body: String| {
        plane.clock.advance(Duration::from_mins(1));
        plane.post("web", body).await.expect(200, "POST");
    };
    let with = |serial| machines(serial, &[("a", json!({ "name": "a" })), ("b", json!({ "name": "b" }))]);
    let without = |serial| machines(serial, &[("b", json!({ "name": "b" }))]);
    let now = async || metadata(plane.get(MACHINES).await.expect(200, "list").items());
    post(with(1)).await;
    let first = now().await;
    post(without(2)).await;
    // Read in between or not.
    assert_eq!(now().await.len(), 1);
    post(with(3)).await;
    let second = now().await;
    post(without(4)).await;
    post(with(5)).await;
    let third = now().await;
    let uid = |found: &BTreeMap<String, Value>, name: &str| found[name]["uid"].clone();
    assert!(uid(&first, "a") != uid(&second, "a") && uid(&second, "a") != uid(&third, "a"));
    assert!(uid(&first, "a") != uid(&third, "a"));
    assert_eq!((&second["a"]["generation"], &third["a"]["generation"]), (&json!(3), &json!(5)));
    let versions = plane.versions("web").await;
    assert_eq!(third["a"]["creationTimestamp"], written(&versions, 5));
    assert!(uid(&first, "b") == uid(&second, "b") && uid(&second, "b") == uid(&third, "b"));
    assert_eq!(third["b"]["generation"], 1);
}

#[tokio::test]
async fn another_address_of_the_same_name_or_another_lineage_is_another_object() {
    let plane = InProcess::new();
    let of = |lineage: &str, serial, key: &str| {
        state_of(lineage, serial, &[block("edge", &[by_hand(key, &json!({ "name": "a" }))])])
    };
    plane.post("web", of(LINEAGE, 1, "first")).await.expect(200, "1");
    let first = metadata(plane.get(MACHINES).await.items());
    plane.post("web", of(LINEAGE, 2, "second")).await.expect(200, "2");
    let second = metadata(plane.get(MACHINES).await.items());
    assert_ne!(first["a"]["uid"], second["a"]["uid"]);
    plane.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    plane.post("web", of("another", 1, "second")).await.expect(200, "another lineage");
    let third = metadata(plane.get(MACHINES).await.items());
    assert_ne!(second["a"]["uid"], third["a"]["uid"]);
}

#[tokio::test]
async fn a_deleted_state_takes_its_objects_identities_along() {
    let plane = InProcess::new();
    plane.post("web", version(1)).await.expect(200, "1");
    let first = metadata(plane.get(MACHINES).await.items());
    plane.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    plane.post("web", version(2)).await.expect(200, "2");
    let second = metadata(plane.get(MACHINES).await.items());
    assert_ne!(first["a"]["uid"], second["a"]["uid"]);
    assert_eq!(second["a"]["generation"], 3);
}

#[tokio::test]
async fn as_of_an_earlier_version_what_still_is_has_the_same_identity() {
    let plane = InProcess::new();
    for number in 1..=4 {
        plane.clock.advance(Duration::from_mins(1));
        plane.post("web", version(number)).await.expect(200, "POST");
    }
    let now = metadata(plane.get(MACHINES).await.items());
    for number in 1..=4 {
        let then = metadata(plane.get(&format!("{MACHINES}?version={number}")).await.items());
        for (name, object) in then.iter().filter(|(name, _)| now.contains_key(*name)) {
            for member in ["uid", "creationTimestamp"] {
                assert_eq!(object[member], now[name][member], "{name} as of version {number}");
            }
        }
    }
}

#[tokio::test]
async fn as_of_a_version_an_object_is_who_it_was_then() {
    let plane = InProcess::new();
    let mut then = BTreeMap::new();
    for number in 1..=4 {
        plane.clock.advance(Duration::from_mins(1));
        plane.post("web", version(number)).await.expect(200, "POST");
        then.insert(number, metadata(plane.get(MACHINES).await.items()));
    }
    for (number, expected) in then {
        let found = metadata(plane.get(&format!("{MACHINES}?version={number}")).await.items());
        assert_eq!(found, expected, "version {number}");
    }
}
