//! What changes while a session is open.

use std::time::Duration;

use rezus_core::observed::facts::{Holds, Kubernetes};
use rezus_core::observed::{Failure, Session};
use rezus_testkit::fake::cluster::{PeerFault, node};
use tokio::time::timeout;

use super::{AMPLE, Lab, only, some, whole};

fn ready(facts: &Kubernetes, name: &str) -> Option<Holds> {
    let node = facts.nodes.as_ref()?.iter().find(|node| node.name == name)?;
    node.conditions.iter().find(|condition| condition.kind == "Ready").map(|condition| condition.status)
}

async fn is_quiet(session: &mut dyn Session) -> bool {
    timeout(Duration::from_millis(700), session.changed()).await.is_err()
}

#[tokio::test]
async fn a_node_that_changes_is_told_at_once_and_is_in_the_next_reading() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    assert!(is_quiet(&mut *session).await, "what was read is no news");
    lab.fake.set_ready("node-0001", "Unknown");
    timeout(AMPLE, session.changed()).await.unwrap();
    assert_eq!(ready(&whole(session.read(AMPLE).await), "node-0001"), Some(Holds::Unknown));

    lab.fake.put(node("new"));
    lab.fake.remove("nodes", "node-0000");
    timeout(AMPLE, session.changed()).await.unwrap();
    let facts = whole(session.read(AMPLE).await);
    assert_eq!((ready(&facts, "node-0000"), ready(&facts, "new")), (None, Some(Holds::True)));
    assert!(is_quiet(&mut *session).await, "several changes are told once");
}

#[tokio::test]
async fn hearts_that_beat_are_no_news() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    for second in 10..20 {
        lab.fake.change("nodes", "node-0000", |node| {
            node["status"]["conditions"][3]["lastHeartbeatTime"] =
                format!("2026-11-30T19:10:{second}Z").into();
            node["status"]["images"] = serde_json::json!([]);
        });
    }
    assert!(is_quiet(&mut *session).await);
}

#[tokio::test]
async fn news_are_not_lost_with_a_wait_that_is_dropped() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.fake.set_ready("node-0001", "False");
    // Long enough for the news, and not for those that may come with it.
    drop(timeout(Duration::from_millis(100), session.changed()).await);
    timeout(AMPLE, session.changed()).await.unwrap();
}

/// What happened while nobody was connected is in the first reading after.
#[tokio::test]
async fn after_an_outage_all_is_as_it_is_by_then() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    for fault in [PeerFault::NotAccepting, PeerFault::HalfOpen, PeerFault::Unavailable] {
        lab.fake.set_fault(Some(fault));
        lab.fake.settled().await;
        only(session.read(Duration::from_secs(2)).await);
        lab.fake.remove("nodes", "node-0002");
        lab.fake.set_fault(None);
        lab.fake.settled().await;
        assert_eq!(gone_within(&mut *session, "node-0002").await, None, "{fault:?}");
        lab.fake.put(node("node-0002"));
        lab.fake.renew("node-0002", rezus_core::base::Clock::now(&lab.clock));
    }
}

/// Reads until a node is gone: what a watch missed comes in once it is open again, soon after.
async fn gone_within(session: &mut dyn Session, name: &str) -> Option<Holds> {
    let mut last = None;
    for _ in 0..20 {
        last = ready(&some(session.read(AMPLE).await), name);
        if last.is_none() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    last
}

#[tokio::test]
async fn a_history_that_is_gone_is_listed_anew() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.fake.set_fault(Some(PeerFault::NotAccepting));
    lab.fake.settled().await;
    only(session.read(Duration::from_secs(2)).await);
    lab.fake.remove("nodes", "node-0001");
    lab.fake.compact();
    lab.fake.set_fault(None);
    lab.fake.settled().await;
    assert_eq!(gone_within(&mut *session, "node-0001").await, None);
    assert!(lab.fake.asked()["/api/v1/nodes"] >= 2);
}

#[tokio::test]
async fn a_watch_that_is_told_410_each_time_still_tells_what_is_listed() {
    let lab = Lab::start().await;
    lab.fake.set_watch_gone(true);
    let mut session = lab.open();
    assert_eq!(some(session.read(AMPLE).await).nodes.map(|nodes| nodes.len()), Some(3));
    lab.fake.remove("nodes", "node-0001");
    assert_eq!(gone_within(&mut *session, "node-0001").await, None);
}

/// Nodes that are no longer watched are not told as if they were there.
#[tokio::test]
async fn a_watch_that_is_refused_later_ends_what_it_told() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.fake.forbid("nodes");
    let mut last = None;
    for _ in 0..120 {
        let reading = session.read(AMPLE).await;
        last = reading.failures.into_iter().find(|(part, _)| part == "nodes").map(|(_, failure)| failure);
        if last.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let verb = "watch".to_owned();
    assert_eq!(last, Some(Failure::Forbidden { verb, resource: "nodes".to_owned() }));
    lab.fake.heal();
    whole(session.read(AMPLE).await);
}

/// Its watches would go on where those of the other one ended, and its nodes would be taken for the new one's.
#[tokio::test]
async fn another_cluster_at_the_same_place_is_listed_anew() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    let lists = || ["/api/v1/nodes", "/api/v1/pods"].map(|path| lab.fake.asked()[path]);
    whole(session.read(AMPLE).await);
    whole(session.read(AMPLE).await);
    assert_eq!(lists(), [1, 1]);
    lab.fake.set_cluster_uid("another");
    let facts = whole(session.read(AMPLE).await);
    assert_eq!((facts.cluster_uid.as_deref(), lists()), (Some("another"), [2, 2]));
    whole(session.read(AMPLE).await);
    assert_eq!(lists(), [2, 2]);
}
