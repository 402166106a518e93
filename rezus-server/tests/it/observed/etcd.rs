//! The etcd of clusters.

use std::time::Duration;

use rezus_core::observed::facts::Facts;
use rezus_testkit::fake::Turn;

use super::lab::{Access, Lab, name, state};
use super::{facts, says};

/// How often Talos is read.
const TURN: Duration = Duration::from_mins(1);

const NAMES: [&str; 3] = ["cp-1", "cp-2", "cp-3"];

/// A cluster of three control planes, of which Talos tells this.
async fn cluster(talos: Facts) -> Lab {
    let lab = Lab::new();
    lab.tells("web", facts::nodes(&NAMES));
    lab.talos.set(&name("web"), Turn::Tells(Box::new(talos)));
    lab.push("web", &state(1, &NAMES.map(|name| (name, "controlplane")), Access::Both)).await;
    lab.pass(TURN).await;
    lab
}

async fn tells(lab: &Lab, talos: Facts) {
    lab.talos.set(&name("web"), Turn::Tells(Box::new(talos)));
    lab.pass(TURN * 2).await;
}

/// Three members that follow the first, or see no leader, or do not answer at all (`None`).
fn three(leaders: [Option<u64>; 3], list: bool) -> Facts {
    let machines = (1_u8..).zip(NAMES).zip(leaders);
    let machines = machines.map(|((number, name), leader)| {
        facts::control_plane(name, number, leader.map(|leader| (u64::from(number), leader, false)))
    });
    let list = list.then(|| facts::members(&[(1, "cp-1", false), (2, "cp-2", false), (3, "cp-3", false)]));
    facts::talos(machines.collect(), list)
}

#[tokio::test(start_paused = true)]
async fn e01_a_control_plane_that_never_joined_etcd_is_not_ready() {
    let machines = (1_u8..).zip(NAMES).map(|(number, name)| {
        facts::control_plane(name, number, (number < 3).then_some((u64::from(number), 1, false)))
    });
    let list = facts::members(&[(1, "cp-1", false), (2, "cp-2", false)]);
    let lab = cluster(facts::talos(machines.collect(), Some(list))).await;
    for (name, wanted) in NAMES.iter().zip([("True", "Ready"), ("True", "Ready"), ("False", "EtcdNotJoined")])
    {
        assert_eq!(says(&lab.machine(name).await, "Ready"), wanted, "{name}");
    }
    assert_eq!(says(&lab.tenant().await, "Ready").0, "False");
}

#[tokio::test(start_paused = true)]
async fn e02_one_voter_of_three_down_is_a_risk_and_no_loss() {
    let lab = cluster(three([Some(1); 3], true)).await;
    assert_eq!(says(&lab.tenant().await, "EtcdQuorum"), ("True", "EtcdOk"));
    tells(&lab, three([Some(1), Some(1), None], true)).await;
    assert_eq!(says(&lab.tenant().await, "EtcdQuorum"), ("True", "EtcdAtRisk"));
}

#[tokio::test(start_paused = true)]
async fn e02_quorum_is_lost_once_a_second_witness_says_so() {
    let lab = cluster(three([Some(1); 3], true)).await;
    tells(&lab, three([None, None, Some(0)], false)).await;
    assert_eq!(says(&lab.tenant().await, "EtcdQuorum"), ("Unknown", "EtcdUnknown"));
    for (seconds, wanted) in [(100, ("Unknown", "EtcdUnknown")), (121, ("False", "EtcdQuorumLost"))] {
        lab.tells("web", facts::silent(NAMES.map(facts::node).into(), seconds));
        lab.pass(TURN).await;
        assert_eq!(says(&lab.tenant().await, "EtcdQuorum"), wanted, "{seconds} s");
    }
    assert_eq!(says(&lab.tenant().await, "Ready"), ("False", "EtcdQuorumLost"));
}

#[tokio::test(start_paused = true)]
async fn e02_a_learner_gives_no_quorum_and_is_stuck_after_ten_minutes() {
    let machines = (1_u8..)
        .zip(NAMES)
        .map(|(number, name)| facts::control_plane(name, number, Some((u64::from(number), 1, number == 3))));
    let list = facts::members(&[(1, "cp-1", false), (2, "cp-2", false), (3, "cp-3", true)]);
    let lab = cluster(facts::talos(machines.collect(), Some(list))).await;
    let tenant = lab.tenant().await;
    let etcd = &tenant["status"]["etcd"];
    assert_eq!((&etcd["voters"], &etcd["votersUp"], &etcd["quorum"]), (&2.into(), &2.into(), &"Yes".into()));
    let said = |tenant: &serde_json::Value| tenant["status"]["etcd"]["message"].as_str().unwrap().to_owned();
    assert!(!said(&tenant).contains("learn"), "{tenant:#}");
    lab.pass(Duration::from_mins(11)).await;
    let tenant = lab.tenant().await;
    assert!(said(&tenant).contains("learn"), "{tenant:#}");
}
