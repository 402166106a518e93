//! What is read of machines, in which order, and how often.

use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::observed::Failure;
use rezus_core::observed::facts::{EtcdAlarm, Filesystem, MachineKind, Stage};
use rezus_testkit::fake::cluster::talos::{Door, Etcd};

use super::fixture::{Fixture, LONG, facts, failure, machine};

const STATUS: &str = "MachineStatuses.runtime.talos.dev";

#[tokio::test]
async fn a_cluster_tells_its_members_machines_and_etcd() {
    let fixture = Fixture::new(3, 2).await;
    fixture.fake.change(|cluster| {
        cluster.machines[1].is_ready = false;
        cluster.machines[1].unmet = vec![("nodeReady".to_owned(), "not\nready".to_owned())];
        cluster.machines[1].services[1].2 = Some(false);
        cluster.machines[4].ahead_ms = 90_000;
        cluster.machines[2].etcd = Etcd::Up { id: 9, is_learner: true };
    });
    let reading = fixture.read(&[0]).await;
    assert_eq!(reading.failures, []);
    let talos = facts(&reading);
    // `printf cluster-id | sha256sum | head -c 32`
    assert_eq!(talos.cluster_id.as_deref(), Some("3c6eb6a11b9250caa0bdfb9f48ef01d2"));
    assert_eq!(talos.cluster_name.as_deref(), Some("fake"));
    let members = talos.members.as_ref().unwrap();
    let names: Vec<&str> = members.iter().map(|member| member.node_name.as_str()).collect();
    assert_eq!(names, ["cp-0", "cp-1", "cp-2", "worker-3", "worker-4"]);
    assert_eq!(members[3].kind, MachineKind::Worker);
    assert_eq!(members[3].operating_system, "Talos (v1.13.9)");
    assert_eq!(members[3].hostname, "worker-3.example.com");

    assert_eq!(talos.machines.len(), 5);
    let first = machine(&reading, "127.0.0.2");
    assert_eq!(first.answered_at, Some(reading.started));
    assert_eq!(first.node_name.as_deref(), Some("cp-0"));
    assert_eq!(first.node_id.as_deref(), Some("node-0"));
    assert_eq!(first.system_uuid.as_deref(), Some("uuid of cp-0"));
    assert_eq!(first.provider_id.as_deref(), Some("fake:///cp-0"));
    assert_eq!(first.addresses, ["127.0.0.2".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(first.kind, MachineKind::ControlPlane);
    assert_eq!(first.version.as_deref(), Some("v1.13.9"));
    assert_eq!((first.stage, first.ready), (Some(Stage::Running), Some(true)));
    assert_eq!(first.booted_at, Some(Timestamp::from_millis(1_796_000_000_000)));
    assert_eq!(first.memory.unwrap().total_bytes, 8_192_000_000);
    assert_eq!(first.load.unwrap().load15.to_bits(), 0.125_f64.to_bits());
    assert_eq!(first.time_synced, Some(true));
    assert_eq!(first.skew_ms, Some(0));
    let var = Filesystem {
        mounted_on: "/var".to_owned(),
        size_bytes: 10_000_000_000,
        available_bytes: 4_000_000_000,
    };
    assert_eq!(first.filesystems.as_deref(), Some([var].as_slice()));
    let etcd = first.etcd.as_ref().unwrap();
    assert_eq!((etcd.leader, etcd.raft_index, etcd.raft_applied_index), (0xa000_0000_0000_0001, 1_000, 998));
    assert_eq!(first.etcd_member_id, Some(0xa000_0000_0000_0001));

    let second = machine(&reading, "127.0.0.3");
    assert_eq!(second.ready, Some(false));
    assert_eq!(second.unmet[0].reason, "not\u{fffd}ready");
    let services = second.services.as_ref().unwrap();
    assert_eq!(services[0].healthy, Some(true));
    assert_eq!((services[1].healthy, services[1].message.as_str()), (Some(false), "what the check said"));
    assert_eq!((services[2].healthy, services[2].message.as_str()), (None, ""));

    let worker = machine(&reading, "127.0.0.6");
    assert_eq!((worker.kind, worker.skew_ms), (MachineKind::Worker, Some(90_000)));
    assert_eq!((worker.etcd.as_ref(), worker.etcd_member_id), (None, None));

    let etcd = talos.etcd.as_ref().unwrap();
    let ids: Vec<(u64, bool)> = etcd.members.iter().map(|member| (member.id, member.is_learner)).collect();
    assert_eq!(ids, [(9, true), (0xa000_0000_0000_0001, false), (0xa000_0000_0000_0002, false)]);
    assert_eq!(etcd.members[0].peer_urls, ["https://127.0.0.4:2380"]);
    assert_eq!((etcd.listed_at, etcd.lists_differ), (Some(reading.started), false));
    // To ask for alarms is a proposal to etcd: not where nothing is wrong.
    assert_eq!(fixture.asked("EtcdAlarmList"), Vec::<String>::new());
}

#[tokio::test]
async fn machines_are_asked_through_one_endpoint_by_the_header() {
    let fixture = Fixture::new(3, 1).await;
    fixture.read(&[1, 0, 2]).await;
    let calls = fixture.fake.take_calls();
    assert!(calls.iter().all(|call| call.index == 1));
    let mut asked: Vec<_> =
        calls.iter().filter(|call| call.method == STATUS).map(|call| call.node.clone()).collect();
    asked.sort();
    let all = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];
    assert_eq!(asked, all.map(|address| Some(address.to_owned())));
}

#[tokio::test]
async fn alarms_are_asked_for_where_a_status_tells_of_them() {
    let fixture = Fixture::new(1, 0).await;
    fixture.fake.change(|cluster| cluster.alarms = vec![(7, 1)]);
    let reading = fixture.read(&[0]).await;
    let alarms = &facts(&reading).etcd.as_ref().unwrap().alarms;
    assert_eq!(alarms.as_slice(), [EtcdAlarm { member_id: 7, alarm: "NOSPACE".to_owned() }]);
}

#[tokio::test]
async fn workers_are_asked_every_five_minutes_and_clocks_every_ten() {
    let fixture = Fixture::new(1, 2).await;
    let mut session = fixture.session(&[0]);
    let first = session.read(LONG).await;
    fixture.fake.take_calls();
    let worker = "127.0.0.3";
    for (minutes, workers, clocks) in [(1, 0, 0), (4, 2, 0), (5, 2, 3)] {
        fixture.clock.advance(Duration::from_mins(minutes));
        let reading = session.read(LONG).await;
        let calls = fixture.fake.take_calls();
        let of = |method: &str| calls.iter().filter(|call| call.method == method).count();
        assert_eq!((of(STATUS), of("Time")), (1 + workers, clocks), "after {minutes} more");
        if workers == 0 {
            assert_eq!(machine(&reading, worker), machine(&first, worker));
            assert_eq!(machine(&reading, "127.0.0.2").answered_at, Some(reading.started));
        } else {
            assert_eq!(machine(&reading, worker).answered_at, Some(reading.started));
            assert_eq!(machine(&reading, worker).skew_ms, Some(0));
        }
    }
}

#[tokio::test]
async fn a_turn_without_time_for_all_goes_on_with_the_rest_in_the_next() {
    let fixture = Fixture::new(1, 24).await;
    let mut session = fixture.session(&[0]);
    fixture.fake.change(|cluster| {
        for machine in cluster.machines.iter_mut().skip(1) {
            machine.delay = Duration::from_millis(150);
        }
    });
    let budget = Duration::from_secs(4);
    let began = std::time::Instant::now();
    let reading = session.read(budget).await;
    assert!(began.elapsed() < budget + Duration::from_secs(5));
    let Failure::Partial { done, total: 25 } = failure(&reading, "machines") else {
        panic!("{:?}", reading.failures)
    };
    assert!(*done > 0 && *done < 25);
    let answered = |reading: &rezus_core::observed::Reading| {
        let answered = facts(reading).machines.iter().filter(|machine| machine.load.is_some());
        answered.map(|machine| machine.asked.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    let first = answered(&reading);
    fixture.fake.take_calls();
    let reading = session.read(budget).await;
    // Control planes are asked again, and of the workers only those that were not.
    let asked = fixture.asked("LoadAvg");
    assert!(asked.contains(&"127.0.0.2".to_owned()));
    assert!(asked.iter().all(|address| address == "127.0.0.2" || !first.contains(address)));
    assert!(answered(&reading).len() > first.len());
}

#[tokio::test]
async fn a_dead_machine_is_its_own_failure_and_nobody_elses() {
    let fixture = Fixture::new(3, 1).await;
    let mut session = fixture.session(&[0, 1]);
    session.read(LONG).await;
    fixture.fake.change(|cluster| cluster.machines[2].is_dead = true);
    let reading = session.read(LONG).await;
    let parts: Vec<&str> = reading.failures.iter().map(|(part, _)| part.as_str()).collect();
    assert_eq!(parts, ["127.0.0.4"]);
    assert_eq!(failure(&reading, "127.0.0.4").reason(), "Unreachable");
    let dead = machine(&reading, "127.0.0.4");
    assert_eq!((dead.answered_at, dead.stage, dead.etcd.as_ref()), (None, None, None));
    assert_eq!((dead.node_name.as_deref(), dead.kind), (Some("cp-2"), MachineKind::ControlPlane));
    assert_eq!(machine(&reading, "127.0.0.2").answered_at, Some(reading.started));
}

#[tokio::test]
async fn a_quorum_that_is_lost_leaves_statuses_and_the_last_list() {
    let fixture = Fixture::new(1, 0).await;
    let mut session = fixture.session(&[0]);
    let before = session.read(LONG).await;
    fixture.fake.change(|cluster| cluster.has_quorum = false);
    fixture.clock.advance(Duration::from_mins(1));
    let reading = session.read(LONG).await;
    assert_eq!(failure(&reading, "127.0.0.2 etcd members").reason(), "Timeout");
    let etcd = machine(&reading, "127.0.0.2").etcd.as_ref().unwrap();
    assert_eq!((etcd.leader, etcd.errors.as_slice()), (0, ["etcdserver: no leader".to_owned()].as_slice()));
    // Its date says that it proves no quorum now.
    assert_eq!(facts(&reading).etcd, facts(&before).etcd);
    assert!(facts(&reading).etcd.as_ref().unwrap().listed_at < Some(reading.started));
    // What comes after is read all the same, and alarms are not asked for.
    assert!(machine(&reading, "127.0.0.2").load.is_some());
    assert_eq!(fixture.asked("EtcdAlarmList"), Vec::<String>::new());
}

#[tokio::test]
async fn a_control_plane_whose_etcd_never_joined_is_no_member() {
    let fixture = Fixture::new(3, 0).await;
    fixture.fake.change(|cluster| cluster.machines[2].etcd = Etcd::None);
    let reading = fixture.read(&[0]).await;
    assert_eq!(failure(&reading, "127.0.0.4 etcd status").reason(), "Timeout");
    let third = machine(&reading, "127.0.0.4");
    assert_eq!((third.stage, third.etcd.as_ref(), third.etcd_member_id), (Some(Stage::Running), None, None));
    assert_eq!(facts(&reading).etcd.as_ref().unwrap().members.len(), 2);
}

#[tokio::test]
async fn an_etcd_that_is_down_still_tells_which_member_it_is() {
    let fixture = Fixture::new(3, 0).await;
    fixture.fake.change(|cluster| cluster.machines[1].etcd = Etcd::Down { id: 5 });
    let reading = fixture.read(&[0]).await;
    let second = machine(&reading, "127.0.0.3");
    assert_eq!((second.etcd.as_ref(), second.etcd_member_id), (None, Some(5)));
    assert_eq!(facts(&reading).etcd.as_ref().unwrap().members.len(), 3);
}

#[tokio::test]
async fn without_discovery_the_endpoints_are_asked_themselves() {
    let fixture = Fixture::new(2, 1).await;
    fixture.fake.change(|cluster| cluster.has_discovery = false);
    let reading = fixture.read(&[0, 1, 2]).await;
    assert_eq!(facts(&reading).members.as_deref(), Some([].as_slice()));
    let kinds: Vec<MachineKind> = facts(&reading).machines.iter().map(|machine| machine.kind).collect();
    assert_eq!(kinds, [MachineKind::ControlPlane, MachineKind::ControlPlane, MachineKind::Worker]);
    assert_eq!(facts(&reading).etcd.as_ref().unwrap().members.len(), 2);
    assert!(fixture.fake.take_calls().iter().all(|call| call.node.is_none()));
}

#[tokio::test]
async fn a_declared_machine_that_discovery_forgot_is_asked_itself() {
    let fixture = Fixture::new(2, 0).await;
    fixture.fake.change(|cluster| cluster.machines[1].is_discovered = false);
    fixture.fake.door(1, Door::Closed);
    let reading = fixture.read(&[0, 1]).await;
    assert_eq!(failure(&reading, "127.0.0.3").reason(), "Unreachable");
    assert_eq!(machine(&reading, "127.0.0.3").answered_at, None);
}

#[tokio::test]
async fn workers_forward_nothing_so_their_endpoints_tell_of_themselves_alone() {
    let fixture = Fixture::new(1, 2).await;
    // Workers alone: each endpoint is asked for itself, and the control plane where it is found.
    let reading = fixture.read(&[1, 2]).await;
    assert_eq!(machine(&reading, "127.0.0.3").stage, Some(Stage::Running));
    assert_eq!(machine(&reading, "127.0.0.4").stage, Some(Stage::Running));
    // Nothing listens on its port 50000.
    assert_eq!(failure(&reading, "127.0.0.2").reason(), "Unreachable");
    // A worker first, and then somebody who forwards: the worker is tried once.
    let mut session = fixture.session(&[1, 0]);
    let reading = session.read(LONG).await;
    assert_eq!(reading.failures, []);
    fixture.fake.take_calls();
    fixture.clock.advance(Duration::from_mins(5));
    session.read(LONG).await;
    let calls = fixture.fake.take_calls();
    assert!(calls.iter().all(|call| call.index == 0), "{calls:?}");
}

#[tokio::test]
async fn the_endpoint_that_answered_is_the_first_one_next_time() {
    let fixture = Fixture::new(2, 0).await;
    fixture.fake.door(0, Door::Closed);
    let mut session = fixture.session(&[0, 1]);
    let reading = session.read(LONG).await;
    assert_eq!(machine(&reading, "127.0.0.3").stage, Some(Stage::Running));
    fixture.fake.take_calls();
    session.read(LONG).await;
    assert!(fixture.fake.take_calls().iter().all(|call| call.index == 1));
}

#[tokio::test]
async fn a_turn_that_is_dropped_midway_leaves_the_session_usable() {
    let fixture = Fixture::new(1, 1).await;
    let mut session = fixture.session(&[0]);
    fixture.fake.change(|cluster| cluster.machines[1].delay = Duration::from_secs(3));
    let dropped = tokio::time::timeout(Duration::from_millis(500), session.read(LONG)).await;
    assert!(dropped.is_err());
    fixture.fake.change(|cluster| cluster.machines[1].delay = Duration::ZERO);
    let reading = session.read(LONG).await;
    assert_eq!(reading.failures, []);
    assert_eq!(machine(&reading, "127.0.0.3").stage, Some(Stage::Running));
}
