//! Failures of one part, which leave the others.

use std::time::Duration;

use rezus_core::base::Clock as _;
use rezus_core::observed::facts::Usage;
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
async fn without_a_metrics_server_kubelets_are_asked_themselves() {
    let lab = Lab::start().await;
    lab.fake.uninstall_metrics();
    let mut session = lab.open();
    let usage = whole(session.read(AMPLE).await).usage.unwrap();
    let told = |usage: &Usage| (usage.node.clone(), usage.cpu_nanocores, usage.memory_bytes);
    let expected = |node: &str| (node.to_owned(), 87_654_321, 3_000_000);
    let nodes = ["node-0000", "node-0001", "node-0002"];
    assert_eq!(usage.iter().map(told).collect::<Vec<_>>(), nodes.map(expected));
    // Not again in the next turn, and what was told is still known.
    let asked = || -> usize {
        let of_kubelets = |(path, times): (String, usize)| path.contains("/proxy/").then_some(times);
        lab.fake.asked().into_iter().filter_map(of_kubelets).sum()
    };
    assert_eq!(asked(), 3);
    assert_eq!(whole(session.read(AMPLE).await).usage, Some(usage));
    assert_eq!(asked(), 3);
}

#[tokio::test]
async fn where_kubelets_may_not_be_asked_that_is_told_once() {
    let lab = Lab::start().await;
    lab.fake.uninstall_metrics();
    lab.fake.forbid("summary");
    let mut session = lab.open();
    let reading = session.read(AMPLE).await;
    let refused = Failure::Forbidden { verb: "get".to_owned(), resource: "nodes/proxy".to_owned() };
    assert_eq!(part(&reading, "usage"), refused);
    let facts = some(reading);
    assert_eq!((facts.usage, facts.nodes.map(|nodes| nodes.len())), (None, Some(3)));
    assert_eq!(whole(session.read(AMPLE).await).usage, None);
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
    // They are told all the same: that none is renewed witnesses a lost quorum.
    assert!(some(reading).nodes.unwrap().iter().all(|node| node.lease_renewed_at.is_some()));
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

#[tokio::test]
async fn a_metrics_server_that_is_not_there_is_not_looked_for_in_every_turn() {
    let lab = Lab::start().await;
    lab.fake.uninstall_metrics();
    let mut session = lab.open();
    let asked = || lab.fake.asked()["/apis/metrics.k8s.io/v1beta1/nodes"];
    for _ in 0..3 {
        some(session.read(AMPLE).await);
    }
    assert_eq!(asked(), 1);
}
