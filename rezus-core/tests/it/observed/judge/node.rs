//! How a node is.

use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{Holds, Kubernetes, Node, NodeCondition, NodeInfo, Taint};
use rezus_core::observed::judge::{Leases, NodeWord, node};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn condition(kind: &str, status: Holds) -> NodeCondition {
    NodeCondition {
        kind: kind.to_owned(),
        status,
        reason: "Because".to_owned(),
        message: "of it".to_owned(),
        since: Some(at(7)),
    }
}

fn well() -> Node {
    Node {
        name: "w1".to_owned(),
        conditions: vec![condition("MemoryPressure", Holds::False), condition("Ready", Holds::True)],
        info: NodeInfo { kubelet_version: "v1.33.1".to_owned(), ..NodeInfo::default() },
        lease_renewed_at: Some(at(1000)),
        ..Node::default()
    }
}

fn said(status: Holds) -> Node {
    Node { conditions: vec![condition("Ready", status)], ..well() }
}

fn tainted(key: &str) -> Node {
    Node { taints: vec![Taint { key: key.to_owned(), effect: "NoSchedule".to_owned() }], ..well() }
}

fn kubelet(version: &str) -> Node {
    Node { info: NodeInfo { kubelet_version: version.to_owned(), ..NodeInfo::default() }, ..well() }
}

fn lease(seconds_ago: i64) -> Node {
    Node { lease_renewed_at: Some(at(1000 - seconds_ago)), ..well() }
}

#[test]
fn the_worst_that_is_to_be_said_is_said() {
    use NodeWord::{Cordoned, Degraded, Deleting, NotReady, Pressure, Ready, Unreachable};
    let renewed = Leases::Renewed { now: at(1000) };
    let under = |kind: &str| Node {
        conditions: vec![condition(kind, Holds::True), condition("Ready", Holds::True)],
        unschedulable: true,
        ..well()
    };
    for (what, judged, word, message) in [
        ("well", well(), Ready, ""),
        ("deleting", Node { deleting: true, ..said(Holds::Unknown) }, Deleting, "the Node is being deleted"),
        ("silent", said(Holds::Unknown), Unreachable, "Because: of it"),
        ("not ready", said(Holds::False), NotReady, "Because: of it"),
        (
            "never ready",
            Node { conditions: vec![], ..well() },
            NotReady,
            "the kubelet never said whether it is ready",
        ),
        ("memory", under("MemoryPressure"), Pressure, "MemoryPressure: Because: of it"),
        ("network", under("NetworkUnavailable"), Pressure, "NetworkUnavailable: Because: of it"),
        ("another condition", under("KernelDeadlock"), Cordoned, "it is cordoned"),
        ("by Talos", Node { cordoned_by_talos: true, ..under("x") }, Cordoned, "Talos cordoned it"),
        (
            "shut down",
            tainted("node.cloudprovider.kubernetes.io/shutdown"),
            Degraded,
            "it is tainted node.cloudprovider.kubernetes.io/shutdown",
        ),
        ("a control plane", tainted("node-role.kubernetes.io/control-plane"), Ready, ""),
        ("older by three", kubelet("v1.31.0"), Ready, ""),
        (
            "older by four",
            kubelet("v1.30.9"),
            Degraded,
            "its kubelet v1.30.9 does not go with the API server v1.34.0",
        ),
        (
            "newer",
            kubelet("v1.35.0-rc.1"),
            Degraded,
            "its kubelet v1.35.0-rc.1 does not go with the API server v1.34.0",
        ),
        ("no version", kubelet(""), Ready, ""),
        ("lease of 40 s", lease(40), Ready, ""),
        ("lease of 41 s", lease(41), Degraded, "its lease was not renewed for more than 40 s"),
        ("lease of 120 s", lease(120), Degraded, "its lease was not renewed for more than 40 s"),
        (
            "lease of 121 s",
            lease(121),
            Unreachable,
            "its lease was not renewed for more than 120 s, though those of others are",
        ),
        (
            "no lease",
            Node { lease_renewed_at: None, ..well() },
            Degraded,
            "it has no lease, though others do",
        ),
    ] {
        let verdict = node(&judged, renewed, Some("v1.34.0"));
        assert_eq!((verdict.word, &*verdict.message), (word, message), "{what}");
    }
    assert_eq!(node(&kubelet("v1.20.0"), renewed, None).word, Ready);
}

#[test]
fn where_no_lease_is_renewed_no_node_is_judged_by_its_own() {
    let cluster = |leases: &[Option<i64>], now: Option<i64>| Kubernetes {
        server_time: now.map(at),
        nodes: Some(leases.iter().map(|lease| Node { lease_renewed_at: lease.map(at), ..well() }).collect()),
        ..Kubernetes::default()
    };
    for (leases, now, expected) in [
        (vec![Some(100), Some(960)], Some(1000), Leases::Renewed { now: at(1000) }),
        (vec![Some(100), Some(959)], Some(1000), Leases::AllStale { since: at(959), dead: false }),
        (vec![Some(100), Some(879)], Some(1000), Leases::AllStale { since: at(879), dead: true }),
        (vec![Some(100)], None, Leases::NotRead),
        (vec![None, None], Some(1000), Leases::NotRead),
        (vec![], Some(1000), Leases::NotRead),
    ] {
        let cluster = cluster(&leases, now);
        let seen = Leases::of(cluster.nodes.as_deref().unwrap_or_default(), cluster.server_time);
        assert_eq!(seen, expected, "{leases:?}");
        if !matches!(seen, Leases::Renewed { .. }) {
            for one in cluster.nodes.iter().flatten() {
                assert_eq!(node(one, seen, None).word, NodeWord::Ready, "{leases:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn bad_news_never_makes_a_verdict_better(
        deleting in any::<bool>(), unschedulable in any::<bool>(), pressure in any::<bool>(), taint in any::<bool>(),
        ready in prop::sample::select(vec![Holds::True, Holds::False, Holds::Unknown]), age in 0_i64..300, which in 0_u8..5,
    ) {
        let one = |deleting, unschedulable, pressure, taint, age| {
            let mut one = lease(age);
            one.deleting = deleting;
            one.unschedulable = unschedulable;
            one.conditions = vec![condition("Ready", ready)];
            if pressure {
                one.conditions.push(condition("DiskPressure", Holds::True));
            }
            if taint {
                one.taints = tainted("node.kubernetes.io/out-of-service").taints;
            }
            node(&one, Leases::Renewed { now: at(1000) }, Some("v1.33.0")).word
        };
        let before = one(deleting, unschedulable, pressure, taint, age);
        let after = one(
            deleting || which == 0, unschedulable || which == 1, pressure || which == 2, taint || which == 3,
            if which == 4 { age + 100 } else { age },
        );
        prop_assert!(after <= before);
    }
}
