//! Failures of one part, which leave the others.

use std::time::Duration;

use rezus_core::base::Clock as _;
use rezus_core::observed::{Failure, Reading};

use tokio::time::timeout;

use super::{AMPLE, Lab, some, whole};

#[track_caller]
fn part(reading: &Reading, name: &str) -> Failure {
    let [(part, failure)] = reading.failures.as_slice() else { panic!("{:?}", reading.failures) };
    assert_eq!(part, name);
    failure.clone()
}

fn forbidden(verb: &str, resource: &str) -> Failure {
    Failure::Forbidden { verb: verb.to_owned(), resource: resource.to_owned() }
}

#[tokio::test]
async fn what_a_client_may_not_read_is_told_by_verb_and_resource() {
    let parts = [
        ("nodes", "nodes", forbidden("list", "nodes")),
        ("pods", "pods", forbidden("list", "pods")),
        ("leases", "leases", forbidden("list", "leases")),
        ("metrics", "usage", forbidden("list", "metrics.k8s.io")),
        ("version", "version", forbidden("get", "version")),
        ("readyz", "readyz", forbidden("get", "readyz")),
        ("namespaces", "identity", forbidden("get", "namespaces")),
    ];
    let lab = Lab::start().await;
    let mut session = lab.open();
    for (resource, name, expected) in parts {
        lab.fake.heal();
        lab.fake.forbid(resource);
        let reading = lab.open().read(AMPLE).await;
        assert_eq!(part(&reading, name), expected);
        some(reading);
    }
    lab.fake.heal();
    whole(session.read(AMPLE).await);
}

#[tokio::test]
async fn a_cluster_without_metrics_has_none_installed() {
    let lab = Lab::start().await;
    lab.fake.uninstall_metrics();
    let reading = lab.open().read(AMPLE).await;
    assert_eq!(part(&reading, "usage"), Failure::NotInstalled { what: "metrics.k8s.io".to_owned() });
    let facts = some(reading);
    assert_eq!((facts.usage, facts.nodes.map(|nodes| nodes.len())), (None, Some(3)));
}

#[tokio::test]
async fn a_request_that_hangs_leaves_time_for_the_others() {
    let lab = Lab::start().await;
    lab.fake.hang("leases");
    let reading = lab.open().read(Duration::from_secs(12)).await;
    assert!(matches!(part(&reading, "leases"), Failure::Unreachable { .. }), "{:?}", reading.failures);
    let nodes = some(reading).nodes.unwrap();
    assert!(nodes.iter().all(|node| node.lease_renewed_at.is_none()));
}

/// An API server whose list is older than one before it answers from a copy; twice in a row, it was restored.
#[tokio::test]
async fn a_list_that_is_older_than_the_one_before_is_not_believed_once() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.fake.tell_version(Some(7));
    assert_eq!(part(&session.read(AMPLE).await, "leases"), Failure::StaleCache);
    lab.fake.tell_version(Some(8));
    whole(session.read(AMPLE).await);
}

#[tokio::test]
async fn that_no_node_renews_its_lease_is_an_old_copy() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.clock.advance(Duration::from_secs(121));
    let reading = session.read(AMPLE).await;
    assert_eq!(part(&reading, "leases"), Failure::StaleCache);
    assert!(some(reading).nodes.unwrap().iter().all(|node| node.lease_renewed_at.is_none()));
    // One that is renewed tells that the others are dead.
    lab.fake.renew("node-0002", lab.clock.now());
    let nodes = whole(session.read(AMPLE).await).nodes.unwrap();
    assert!(nodes.iter().all(|node| node.lease_renewed_at.is_some()));
}

/// An object is never so large; what is sent as one is not collected to see where it ends. All is listed anew instead.
#[tokio::test]
async fn an_event_that_is_too_large_is_not_read() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    assert_eq!(lab.fake.asked()["/api/v1/nodes"], 1);
    lab.fake.change("nodes", "node-0000", |node| {
        node["metadata"]["annotations"]["filler"] = "x".repeat(5 * 1024 * 1024).into();
        node["spec"]["unschedulable"] = true.into();
    });
    timeout(AMPLE, session.changed()).await.unwrap();
    assert!(whole(session.read(AMPLE).await).nodes.unwrap()[0].unschedulable);
    assert_eq!(lab.fake.asked()["/api/v1/nodes"], 2);
}
