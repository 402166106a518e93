//! Lists that come in pages, and lists of a moment.

use serde_json::json;

use super::{API, names, two_tenants, web};
use crate::in_process::InProcess;
use crate::projection::machines;

#[tokio::test]
async fn all_pages_are_of_the_moment_of_the_first() {
    let plane = two_tenants().await;
    let target = format!("{API}/machines?limit=2");
    let first = plane.get(&target).await.expect(200, "first page").json();
    let metadata = &first["metadata"];
    assert_eq!(
        (names(first["items"].as_array().unwrap()), &metadata["remainingItemCount"]),
        (vec!["x", "a"], &json!(2))
    );
    // What changes meanwhile shows in none of them.
    plane.post("web", machines(2, &[("z", json!({ "name": "z" }))])).await.expect(200, "POST");
    assert_eq!(plane.get(&format!("{API}/machines")).await.items().len(), 2);
    let token = metadata["continue"].as_str().unwrap();
    let second = plane.get(&format!("{target}&continue={token}")).await.expect(200, "second page").json();
    assert_eq!(names(second["items"].as_array().unwrap()), ["b", "c"]);
    assert_eq!(second["metadata"], json!({ "resourceVersion": metadata["resourceVersion"] }));
    // The list of then can be asked for as a whole, too.
    let version = metadata["resourceVersion"].as_str().unwrap();
    let exact = format!("{API}/machines?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(names(&plane.get(&exact).await.expect(200, "exact").items()), ["x", "a", "b", "c"]);
    // A selector's rest is not counted.
    let selected = format!("{API}/machines?limit=1&labelSelector=rezuscloud.io/tenant");
    let selected = plane.get(&selected).await.json();
    assert!(
        selected["metadata"]["continue"].is_string()
            && selected["metadata"].get("remainingItemCount").is_none()
    );
}

#[tokio::test]
async fn a_token_is_good_for_its_list_alone() {
    let plane = two_tenants().await;
    let first = plane.get(&format!("{API}/namespaces/web/machines?limit=1")).await.json();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let within = format!("{API}/namespaces/web/machines?limit=1&continue={token}");
    assert_eq!(names(&plane.get(&within).await.expect(200, "its own").items()), ["b"]);
    for other in ["/namespaces/other/machines", "/machines", "/namespaces/web/nodegroups"] {
        let answer = plane.get(&format!("{API}{other}?limit=1&continue={token}")).await.expect(400, other);
        assert!(answer.message().contains("continue"), "{}", answer.message());
    }
    let stranger = InProcess::new();
    let answer = stranger.get(&within).await.expect(410, "another server's");
    assert_eq!(answer.json()["reason"], "Expired");
}

#[tokio::test]
async fn what_is_not_yet_or_no_longer_is_told_apart() {
    let plane = two_tenants().await;
    let version = |answer: &crate::answer::Answer| {
        answer.json()["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let target = format!("{API}/machines");
    let then = version(&plane.get(&target).await);
    let not_yet =
        plane.get(&format!("{target}?resourceVersion={}", then + 1_000)).await.expect(504, "not yet");
    let status = not_yet.json();
    assert_eq!((&status["reason"], not_yet.header("retry-after")), (&"Timeout".into(), None));
    assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert!(status["message"].as_str().unwrap().starts_with("Too large resource version: "));
    plane.get(&format!("{target}?resourceVersion={then}")).await.expect(200, "as new as that");
    plane.post("web", web(2, "two")).await.expect(200, "POST");
    assert!(version(&plane.get(&target).await) > then);
    let exact = format!("{target}?resourceVersion={then}&resourceVersionMatch=Exact");
    assert_eq!(plane.get(&exact).await.expect(410, "no longer").json()["reason"], "Expired");
    plane
        .get(&format!("{target}?resourceVersion={then}&resourceVersionMatch=NotOlderThan"))
        .await
        .expect(200, "newer");
}

#[tokio::test]
async fn a_state_that_declares_the_same_changes_no_object_but_the_tenant() {
    let plane = two_tenants().await;
    let listed = async |path: &str| plane.get(&format!("{API}{path}")).await.expect(200, path).items();
    let (machines, groups) = (listed("/machines").await, listed("/nodegroups").await);
    let tenants = listed("/tenants").await;
    plane.clock.advance(std::time::Duration::from_mins(1));
    plane.post("web", web(2, "one")).await.expect(200, "POST");
    assert_eq!((listed("/machines").await, listed("/nodegroups").await), (machines, groups));
    let now = listed("/tenants").await;
    assert_eq!(now[0], tenants[0]);
    assert_ne!(now[1]["metadata"]["resourceVersion"], tenants[1]["metadata"]["resourceVersion"]);
    // What held already holds since then.
    assert_eq!(now[1]["status"], tenants[1]["status"]);
}
