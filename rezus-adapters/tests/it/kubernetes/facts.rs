//! What is told of a cluster that is well, and of one that is not.

use std::sync::Arc;

use rezus_adapters::kubernetes::KubernetesScraper;
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::observed::ClusterScraper as _;
use rezus_core::observed::facts::{ApiCheck, Holds, Usage};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::cluster::{node, pod};
use serde_json::json;

use super::{AMPLE, Lab, some, whole};

#[tokio::test]
async fn all_that_a_cluster_tells_is_read() {
    let lab = Lab::start().await;
    let facts = whole(lab.open().read(AMPLE).await);
    assert_eq!(facts.version.as_deref(), Some("v1.35.1"));
    assert_eq!(facts.cluster_uid.as_deref(), Some("6f0e3c7e-0000-4000-8000-00000000cafe"));
    assert_eq!((facts.server_time, facts.skew_ms), (Some(lab.clock.now()), Some(0)));
    assert_eq!(facts.failed_checks, Some(Vec::new()));
    let nodes = facts.nodes.unwrap();
    let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["node-0000", "node-0001", "node-0002"]);
    let first = &nodes[0];
    assert_eq!(first.uid, "uid-of-node-0000");
    assert_eq!(first.created_at, Timestamp::parse("2026-11-01T07:59:00Z").ok());
    assert_eq!(first.provider_id.as_deref(), Some("fake://zone/node-0000"));
    assert_eq!(first.info.machine_id, "be871ac0d0dd31fa4caca753b0f3f1b2");
    assert_eq!(first.info.container_runtime, "containerd://2.1.4");
    assert_eq!(first.capacity.cpu_nanocores, Some(8_000_000_000));
    assert_eq!(first.allocatable.cpu_nanocores, Some(7_950_000_000));
    assert_eq!(first.capacity.memory_bytes, Some(16 << 30));
    assert_eq!(first.allocatable.ephemeral_bytes, Some(90 << 30));
    assert_eq!(first.capacity.pods, Some(110));
    let conditions: Vec<_> =
        first.conditions.iter().map(|condition| (condition.kind.as_str(), condition.status)).collect();
    let expected = [
        ("DiskPressure", Holds::False),
        ("MemoryPressure", Holds::False),
        ("PIDPressure", Holds::False),
        ("Ready", Holds::True),
    ];
    assert_eq!(conditions, expected);
    assert_eq!(first.addresses[0].address, "10.0.0.7");
    assert_eq!(first.lease_renewed_at, Some(lab.clock.now()));
    assert!(!first.control_plane && !first.deleting && !first.unschedulable && !first.cordoned_by_talos);
    let usage = Usage {
        node: "node-0000".to_owned(),
        at: lab.clock.now(),
        cpu_nanocores: 123_456_789,
        memory_bytes: 2_034_560 * 1024,
    };
    assert_eq!(facts.usage.unwrap()[0], usage);
    let pods = facts.pods.unwrap();
    assert_eq!((pods.total, pods.running, pods.offenders.len()), (6, 6, 0));
}

#[tokio::test]
async fn how_far_the_server_s_clock_is_ahead_is_told() {
    for ahead in [-7_000_000, 11_000] {
        let lab = Lab::start().await;
        let own = Timestamp::from_millis(lab.clock.now().as_millis() - ahead);
        let scraper = KubernetesScraper::new(Arc::new(ManualClock::at(own)));
        let facts = whole(scraper.open(lab.fake.target("web")).unwrap().read(AMPLE).await);
        assert_eq!((facts.server_time, facts.skew_ms), (Some(lab.clock.now()), Some(ahead)));
    }
}

#[tokio::test]
async fn a_node_in_trouble_is_told_with_all_its_marks() {
    let lab = Lab::start().await;
    let mut bad = node("bad");
    bad["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = "".into();
    bad["metadata"]["annotations"]["talos.dev/cordoned"] = "true".into();
    bad["metadata"]["deletionTimestamp"] = "2026-11-30T19:10:00Z".into();
    bad["spec"]["unschedulable"] = true.into();
    bad["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]);
    bad["status"]["conditions"][3]["message"] = format!("\u{1b}[2J{}", "x".repeat(2_000)).into();
    lab.fake.put(bad);
    lab.fake.set_ready("bad", "Unknown");
    // What an API server writes of a node that never joined.
    lab.fake.put(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}, "status": {"conditions": null}}));
    lab.fake.remove_lease("node-0001");
    let nodes = whole(lab.open().read(AMPLE).await).nodes.unwrap();
    let bad = nodes.iter().find(|node| node.name == "bad").unwrap();
    assert!(bad.control_plane && bad.cordoned_by_talos && bad.deleting && bad.unschedulable);
    assert_eq!(bad.taints[0].key, "node.kubernetes.io/unreachable");
    let ready = bad.conditions.iter().find(|condition| condition.kind == "Ready").unwrap();
    assert_eq!(ready.status, Holds::Unknown);
    assert_eq!((ready.message.len(), ready.message.starts_with(" [2J")), (512, true));
    let bare = nodes.iter().find(|node| node.name == "bare").unwrap();
    assert!(bare.conditions.is_empty() && bare.lease_renewed_at.is_none());
    let without = nodes.iter().find(|node| node.name == "node-0001").unwrap();
    assert_eq!(without.lease_renewed_at, None);
}

/// A crash loop is told while it waits, and from `lastState` while it runs; sidecars are no ordinary init containers.
#[tokio::test]
async fn pods_in_trouble_are_told_with_their_container() {
    let lab = Lab::start().await;
    let mut looping = pod("shop", "looping", "node-0000");
    let status = &mut looping["status"]["containerStatuses"][0];
    status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    status["restartCount"] = 12.into();
    lab.fake.put(looping);
    let mut killed = pod("shop", "killed", "node-0001");
    let ended =
        json!({"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-30T19:10:00Z"}});
    killed["status"]["containerStatuses"][0]["lastState"] = ended;
    killed["status"]["containerStatuses"][0]["restartCount"] = 1.into();
    lab.fake.put(killed);
    let mut sidecar = pod("shop", "sidecar", "node-0002");
    sidecar["spec"]["initContainers"] =
        json!([{"name": "proxy", "restartPolicy": "Always"}, {"name": "set-up"}]);
    sidecar["status"]["initContainerStatuses"] = json!([
        {"name": "proxy", "restartCount": 9, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
        {"name": "set-up", "restartCount": 0, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}},
    ]);
    lab.fake.put(sidecar);
    let pods = whole(lab.open().read(AMPLE).await).pods.unwrap();
    assert_eq!((pods.total, pods.crash_looping, pods.oom_killed, pods.restarts), (9, 2, 1, 22));
    let offender = |name: &str| pods.offenders.iter().find(|offender| offender.pod == name).unwrap();
    assert_eq!(offender("looping").reason, "CrashLoopBackOff");
    assert_eq!(offender("looping").node.as_deref(), Some("node-0000"));
    assert_eq!(offender("sidecar").container.as_deref(), Some("proxy"));
    assert_eq!(offender("killed").reason, "OOMKilled");
}

#[tokio::test]
async fn checks_that_fail_are_told_though_the_server_says_500() {
    let lab = Lab::start().await;
    lab.fake.fail_check("etcd");
    let facts = whole(lab.open().read(AMPLE).await);
    assert_eq!(facts.failed_checks, Some(vec![ApiCheck { name: "etcd".to_owned() }]));
}

#[tokio::test]
async fn more_objects_than_a_page_are_all_read() {
    let lab = Lab::start().await;
    lab.fake.fill(230, 501);
    let facts = some(lab.open().read(AMPLE).await);
    assert_eq!(facts.nodes.map(|nodes| nodes.len()), Some(230));
    assert_eq!(facts.pods.map(|pods| pods.total), Some(501));
}

#[tokio::test]
async fn nothing_is_sent_that_could_change_anything() {
    let lab = Lab::start().await;
    let mut session = lab.open();
    whole(session.read(AMPLE).await);
    lab.fake.set_ready("node-0001", "False");
    session.changed().await;
    whole(session.read(AMPLE).await);
    let asked = lab.fake.asked();
    assert!(asked.keys().all(|path| path.starts_with('/')), "{asked:?}");
    // What is watched is listed once.
    assert_eq!((asked["/api/v1/nodes"], asked["/api/v1/pods"]), (1, 1));
    assert_eq!(asked["/version"], 2);
}
