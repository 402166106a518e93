//! How etcd is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{Etcd, EtcdAlarm, EtcdMember, EtcdStatus, Holds, TalosMachine};
use rezus_core::observed::judge::{EtcdHealth, EtcdSeen, EtcdVerdict, Membership, Witness, etcd, membership};

/// Members 1, 2 ...: the voters first, then learners.
fn list(voters: u64, learners: u64) -> Etcd {
    let member = |id| EtcdMember {
        id,
        hostname: format!("cp{id}"),
        peer_urls: vec![format!("https://10.0.0.{id}:2380")],
        is_learner: id > voters,
    };
    Etcd { members: (1..=voters + learners).map(member).collect(), ..Etcd::default() }
}

fn status(member_id: u64, leader: u64) -> EtcdStatus {
    EtcdStatus { member_id, leader, raft_term: 5, db_size: 100, db_size_in_use: 90, ..EtcdStatus::default() }
}

/// What is seen where no list was read in this turn.
struct Case {
    list: Option<Etcd>,
    listed_now: bool,
    statuses: Vec<EtcdStatus>,
    expected: usize,
    witness: Witness,
    learners: BTreeMap<u64, Timestamp>,
    behind_before: BTreeSet<u64>,
}

fn case(list: Etcd, statuses: Vec<EtcdStatus>) -> Case {
    Case {
        list: Some(list),
        listed_now: false,
        statuses,
        expected: 3,
        witness: Witness::None,
        learners: BTreeMap::new(),
        behind_before: BTreeSet::new(),
    }
}

impl Case {
    fn verdict(&self) -> EtcdVerdict {
        etcd(&EtcdSeen {
            list: self.list.as_ref(),
            listed_now: self.listed_now,
            statuses: &self.statuses.iter().collect::<Vec<_>>(),
            expected: self.expected,
            witness: self.witness,
            learners: &self.learners,
            learner_patience: Duration::from_mins(10),
            behind_before: &self.behind_before,
            quota_bytes: EtcdSeen::QUOTA,
            now: Timestamp::from_millis(1_000_000),
        })
    }
}

fn reasons(verdict: &EtcdVerdict) -> Vec<&'static str> {
    verdict.findings.iter().map(|finding| finding.reason).collect()
}

#[test]
fn etcd_is_judged_by_its_quorum() {
    use EtcdHealth::{AtRisk, Degraded, NoRedundancy, Ok, QuorumLost, Unknown};
    use Holds::{False, True};
    let listed = |case: Case| Case { listed_now: true, ..case };
    let seen_by = |witness, case: Case| Case { witness, ..case };
    let follow = |ids: &[u64]| ids.iter().map(|id| status(*id, 1)).collect::<Vec<_>>();
    let lone = || vec![status(3, 0)];
    let old = EtcdStatus { raft_term: 4, ..status(3, 3) };
    for (what, case, quorum, health, tolerance, findings) in [
        ("all well", case(list(3, 0), follow(&[1, 2, 3])), True, Ok, Some(1), vec![]),
        ("one down", case(list(3, 0), follow(&[1, 2])), True, AtRisk, Some(0), vec!["VoterDown"]),
        (
            "one sees no leader",
            case(list(3, 0), [follow(&[1, 2]), lone()].concat()),
            True,
            AtRisk,
            Some(0),
            vec!["VoterDown"],
        ),
        (
            "one is of an old term",
            case(list(3, 0), [follow(&[1, 2]), vec![old]].concat()),
            True,
            AtRisk,
            Some(0),
            vec!["VoterDown"],
        ),
        ("two down", case(list(3, 0), lone()), Holds::Unknown, Unknown, None, vec![]),
        (
            "two down, leases stopped",
            seen_by(Witness::LeasesStopped, case(list(3, 0), lone())),
            False,
            QuorumLost,
            None,
            vec!["QuorumLost"],
        ),
        (
            "two down, API not ready",
            seen_by(Witness::ApiNotReady, case(list(3, 0), lone())),
            False,
            QuorumLost,
            None,
            vec!["QuorumLost"],
        ),
        (
            "two see no leader",
            case(list(3, 0), vec![status(2, 0), status(3, 0)]),
            False,
            QuorumLost,
            None,
            vec!["QuorumLost"],
        ),
        ("none answers", case(list(3, 0), vec![]), Holds::Unknown, Unknown, None, vec![]),
        (
            "none answers, leases stopped",
            seen_by(Witness::LeasesStopped, case(list(3, 0), vec![])),
            Holds::Unknown,
            Unknown,
            None,
            vec![],
        ),
        (
            "one follows, two are unseen",
            case(list(3, 0), follow(&[1])),
            Holds::Unknown,
            Unknown,
            None,
            vec![],
        ),
        (
            "one follows, but the list was read",
            listed(case(list(3, 0), follow(&[1]))),
            True,
            AtRisk,
            Some(0),
            vec!["VoterDown"],
        ),
        ("five, two down", case(list(5, 0), follow(&[1, 2, 3])), True, AtRisk, Some(0), vec!["VoterDown"]),
        ("four", case(list(4, 0), follow(&[1, 2, 3, 4])), True, Degraded, Some(1), vec!["EvenVoters"]),
        ("two", case(list(2, 0), follow(&[1, 2])), True, AtRisk, Some(0), vec!["NoTolerance", "EvenVoters"]),
        (
            "two and a learner",
            case(list(2, 1), follow(&[1, 2, 3])),
            True,
            AtRisk,
            Some(0),
            vec!["NoTolerance", "EvenVoters"],
        ),
        (
            "two, one down, a learner",
            case(list(2, 1), follow(&[1, 3])),
            Holds::Unknown,
            Unknown,
            None,
            vec!["EvenVoters"],
        ),
        ("one", case(list(1, 0), follow(&[1])), True, NoRedundancy, Some(0), vec![]),
        (
            "one sees no leader",
            case(list(1, 0), vec![status(1, 0)]),
            False,
            QuorumLost,
            None,
            vec!["QuorumLost"],
        ),
        ("a stranger answers", case(list(1, 0), vec![status(9, 9)]), Holds::Unknown, Unknown, None, vec![]),
        (
            "no list",
            Case { list: None, ..case(list(0, 0), follow(&[1, 2])) },
            True,
            AtRisk,
            Some(0),
            vec!["VoterDown"],
        ),
        (
            "nothing known",
            Case { list: None, expected: 0, ..case(list(0, 0), vec![]) },
            Holds::Unknown,
            Unknown,
            None,
            vec![],
        ),
    ] {
        let verdict = case.verdict();
        assert_eq!(
            (verdict.quorum, verdict.health, verdict.tolerance),
            (quorum, health, tolerance),
            "{what}"
        );
        assert_eq!(reasons(&verdict), findings, "{what}");
    }
    let verdict = case(list(2, 1), follow(&[1, 2, 3])).verdict();
    assert_eq!((verdict.voters, verdict.needed, verdict.up, verdict.leader), (2, 2, 2, Some(1)));
    assert!(Case { list: None, ..case(list(0, 0), vec![]) }.verdict().assumed);
}

#[test]
fn what_else_is_odd_is_told() {
    use EtcdHealth::{Critical, Degraded, Ok, ReadOnly};
    let all = || vec![status(1, 1), status(2, 1), status(3, 1)];
    let with = |change: &dyn Fn(&mut Case)| {
        let mut case = case(list(3, 0), all());
        change(&mut case);
        case
    };
    let alarm = |alarm: &str| vec![EtcdAlarm { member_id: 2, alarm: alarm.to_owned() }];
    let told = |text: &str| vec![text.to_owned()];
    let set = |case: &mut Case, change: &dyn Fn(&mut Etcd)| case.list.iter_mut().for_each(change);
    let size = |case: &mut Case, size, in_use| {
        case.statuses[0].db_size = size;
        case.statuses[0].db_size_in_use = in_use;
    };
    // Index and applied index of all three.
    let log = |case: &mut Case, log: [(u64, u64); 3]| {
        for (status, (index, applied)) in case.statuses.iter_mut().zip(log) {
            status.raft_index = index;
            status.raft_applied_index = applied;
        }
    };
    let lagging = [(2000, 2000), (2000, 2000), (999, 999)];
    let learner = |case: &mut Case, since| {
        case.list = Some(list(3, 1));
        case.learners = BTreeMap::from([(4, Timestamp::from_millis(since))]);
    };
    let unstarted =
        |list: &mut Etcd| list.members.push(EtcdMember { id: 4, is_learner: true, ..EtcdMember::default() });
    let again = |case: &mut Case| {
        log(case, lagging);
        case.behind_before = BTreeSet::from([3]);
    };
    let errors = |case: &mut Case, text| case.statuses[1].errors = told(text);
    let cases: Vec<(&str, Case, EtcdHealth, Vec<&str>)> = vec![
        (
            "no space",
            with(&|case| set(case, &|list| list.alarms = alarm("NOSPACE"))),
            ReadOnly,
            vec!["NoSpace"],
        ),
        (
            "corrupt",
            with(&|case| set(case, &|list| list.alarms = alarm("CORRUPT"))),
            Critical,
            vec!["Corrupt"],
        ),
        (
            "a member tells",
            with(&|case| errors(case, "memberID:7 alarm:NOSPACE ")),
            ReadOnly,
            vec!["NoSpace"],
        ),
        ("another error", with(&|case| errors(case, "etcdserver: no leader")), Ok, vec![]),
        (
            "lists differ",
            with(&|case| set(case, &|list| list.lists_differ = true)),
            Degraded,
            vec!["ListsDiffer"],
        ),
        (
            "lists of two clusters",
            with(&|case| set(case, &|list| (list.lists_differ, list.lists_disjoint) = (true, true))),
            Critical,
            vec!["ListsDisjoint"],
        ),
        ("backlog", with(&|case| log(case, [(1999, 1000); 3])), Ok, vec![]),
        ("more", with(&|case| log(case, [(9, 9), (1009, 9), (1009, 1009)])), Degraded, vec!["ApplyBacklog"]),
        ("79 %", with(&|case| size(case, 1_717_986_918, 1 << 30)), Ok, vec![]),
        ("80 %", with(&|case| size(case, 1_717_986_919, 1 << 30)), Degraded, vec!["DatabaseFilling"]),
        ("95 %", with(&|case| size(case, 2_040_109_466, 2 << 30)), Degraded, vec!["DatabaseAlmostFull"]),
        ("small and fragmented", with(&|case| size(case, 100 << 20, 1)), Ok, vec![]),
        ("fragmented", with(&|case| size(case, 101 << 20, 1)), Ok, vec!["Fragmented"]),
        ("behind once", with(&|case| log(case, lagging)), Ok, vec![]),
        ("behind twice", with(&again), Degraded, vec!["MemberBehind"]),
        ("never started", with(&|case| set(case, &unstarted)), Degraded, vec!["MemberUnstarted"]),
        ("a learner", with(&|case| learner(case, 400_000)), Ok, vec![]),
        ("a learner for long", with(&|case| learner(case, 399_999)), Degraded, vec!["LearnerStuck"]),
    ];
    for (what, case, health, findings) in cases {
        let verdict = case.verdict();
        assert_eq!((verdict.health, reasons(&verdict)), (health, findings), "{what}");
    }
    // A voter fewer, and the learner that never becomes one.
    let mut stuck = case(list(2, 1), vec![status(1, 1), status(2, 1)]);
    stuck.learners = BTreeMap::from([(3, Timestamp::from_millis(0))]);
    assert_eq!(reasons(&stuck.verdict()), ["NoTolerance", "LearnerStuck", "EvenVoters"]);
}

#[test]
fn a_machine_belongs_to_etcd_by_its_id_its_name_or_its_address() {
    let machine = |member_id: Option<u64>, name: &str, address: &str| TalosMachine {
        etcd: member_id.map(|id| status(id, 1)),
        node_name: Some(name.to_owned()),
        addresses: vec![address.parse().unwrap()],
        ..TalosMachine::default()
    };
    let mut unstarted = list(3, 0);
    unstarted.members[2].hostname.clear();
    for (what, list, machine, expected) in [
        ("id", list(3, 0), machine(Some(3), "x", "10.0.0.9"), Membership::Member),
        ("name", list(3, 0), machine(None, "cp2", "10.0.0.9"), Membership::Member),
        ("address", list(3, 0), machine(None, "x", "10.0.0.1"), Membership::Member),
        ("none", list(3, 0), machine(None, "x", "10.0.0.9"), Membership::Absent),
        ("another cluster's", list(3, 0), machine(Some(9), "x", "10.0.0.9"), Membership::Absent),
        ("never started", unstarted, machine(None, "cp3", "10.0.0.3"), Membership::Absent),
        ("no list", list(0, 0), machine(Some(1), "cp1", "10.0.0.1"), Membership::Unknown),
    ] {
        assert_eq!(membership(Some(&list), Some(&machine), None), expected, "{what}");
    }
    assert_eq!(membership(Some(&list(3, 0)), None, Some("cp1")), Membership::Member);
    assert_eq!(membership(None, None, Some("cp1")), Membership::Unknown);
}

proptest! {
    /// Silence proves nothing, and learners never count.
    #[test]
    fn a_lost_quorum_takes_somebody_who_says_so(
        voters in 1_u64..8, learners in 0_u64..3, answers in prop::collection::vec(prop::option::of(0_u64..3), 10),
        witness in prop::sample::select(vec![Witness::None, Witness::LeasesStopped, Witness::ApiNotReady]),
    ) {
        let ids = 1..=voters + learners;
        let statuses = ids.zip(&answers).filter_map(|(id, leader)| Some(status(id, (*leader)?))).collect::<Vec<_>>();
        let leaderless = statuses.iter().filter(|one| one.leader == 0 && one.member_id <= voters).count();
        let mut one = case(list(voters, learners), statuses.clone());
        one.witness = witness;
        let verdict = one.verdict();
        if verdict.quorum == Holds::False {
            prop_assert!(leaderless > 0);
            prop_assert!(witness != Witness::None || leaderless + verdict.needed > verdict.voters);
        }
        prop_assert_eq!(verdict.health == EtcdHealth::QuorumLost, verdict.quorum == Holds::False);
        prop_assert_eq!(verdict.tolerance.is_some(), verdict.quorum == Holds::True);
        // Without the learners' answers it is the same.
        one.statuses.retain(|one| one.member_id <= voters);
        let alone = one.verdict();
        prop_assert_eq!((alone.quorum, alone.health, alone.up), (verdict.quorum, verdict.health, verdict.up));
        // In whatever order they come.
        one.statuses.reverse();
        let reversed = one.verdict();
        prop_assert_eq!((reversed.quorum, reversed.up), (alone.quorum, alone.up));
    }
}
