//! How etcd is: by quorum, never by all members.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::super::facts::{Etcd, EtcdMember, EtcdStatus, Holds, TalosMachine};
use crate::base::Timestamp;

/// How etcd is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EtcdHealth {
    /// It has no quorum: nothing can be written.
    QuorumLost,
    /// A member's data is corrupt, or there is more than one etcd.
    Critical,
    /// It has no space: writes are refused.
    ReadOnly,
    /// Too little was seen to tell.
    Unknown,
    /// One more loss takes the quorum away, or a voter is down.
    AtRisk,
    /// It works, but something is odd.
    Degraded,
    /// It works, and has one member only.
    NoRedundancy,
    /// It works.
    Ok,
}

impl EtcdHealth {
    /// The word as a condition's reason.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::QuorumLost => "EtcdQuorumLost",
            Self::Critical => "EtcdCritical",
            Self::ReadOnly => "EtcdReadOnly",
            Self::Unknown => "EtcdUnknown",
            Self::AtRisk => "EtcdAtRisk",
            Self::Degraded => "EtcdDegraded",
            Self::NoRedundancy => "EtcdNoRedundancy",
            Self::Ok => "EtcdOk",
        }
    }
}

/// What else needs a quorum, and was seen to do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// Nothing was.
    None,
    /// No node's lease was renewed for 120 s.
    LeasesStopped,
    /// The API server's readiness fails on etcd.
    ApiNotReady,
}

/// What was seen of etcd in one turn, and what is known of before.
#[derive(Clone, Debug)]
pub struct EtcdSeen<'a> {
    /// The newest list of members.
    pub list: Option<&'a Etcd>,
    /// Whether it was read in this turn: that it could be proves a quorum.
    pub listed_now: bool,
    /// What members that answered in this turn say of themselves.
    pub statuses: &'a [&'a EtcdStatus],
    /// How many control planes there are said to be: what is gone by where there never was a list.
    pub expected: usize,
    /// Whether something else says that there is no quorum.
    pub witness: Witness,
    /// Since when each learner is known to be one.
    pub learners: &'a BTreeMap<u64, Timestamp>,
    /// How long a member may be a learner.
    pub learner_patience: Duration,
    /// Members whose log was behind in the turn before.
    pub behind_before: &'a BTreeSet<u64>,
    /// How large a database may be, in bytes; 2 GiB unless it is configured.
    pub quota_bytes: u64,
    /// Now.
    pub now: Timestamp,
}

impl EtcdSeen<'_> {
    /// etcd's own limit of a database, unless `quota-backend-bytes` says another one.
    pub const QUOTA: u64 = 2 << 30;
}

/// Something that is to be said of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In one word: `LearnerStuck`, `VoterDown` ...
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// A verdict on etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdVerdict {
    /// Whether it has a quorum.
    pub quorum: Holds,
    /// How it is.
    pub health: EtcdHealth,
    /// How many members vote.
    pub voters: usize,
    /// Whether `voters` is only what is expected, since there never was a list.
    pub assumed: bool,
    /// How many of them are a quorum.
    pub needed: usize,
    /// How many of them were seen to follow one leader.
    pub up: usize,
    /// How many more may be lost; `None` where there is no quorum, or it is not known.
    pub tolerance: Option<usize>,
    /// The leader's id, where there is one.
    pub leader: Option<u64>,
    /// What is to be said.
    pub findings: Vec<Finding>,
    /// Members whose log is behind: for the next turn.
    pub behind: BTreeSet<u64>,
}

/// Proposals above this many unapplied entries are refused by etcd itself (`maxGapBetweenApplyAndCommitIndex`).
const BACKLOG_LIMIT: u64 = 5000;
const BACKLOG: u64 = 1000;
const BEHIND: u64 = 1000;
const FRAGMENTED_FROM: u64 = 100 << 20;

/// Judges etcd.
///
/// That members do not answer proves nothing: [`Holds::False`] takes more than the rest of voters that answer and see no
/// leader, or one of them and a [`Witness`].
pub fn etcd(seen: &EtcdSeen<'_>) -> EtcdVerdict {
    let members = seen.list.map(|list| list.members.as_slice()).unwrap_or_default();
    let assumed = members.is_empty();
    let voter = |id: u64| members.iter().any(|member| member.id == id && !member.is_learner);
    let votes = |status: &&&EtcdStatus| {
        if assumed { !status.is_learner } else { voter(status.member_id) }
    };
    let statuses = seen.statuses.iter().filter(votes).copied().collect::<Vec<_>>();
    let voters = if assumed { seen.expected } else { members.iter().filter(|one| !one.is_learner).count() };
    let needed = voters / 2 + 1;
    let term = statuses.iter().filter(|status| status.leader != 0).map(|status| status.raft_term).max();
    let mut followers = BTreeMap::<u64, BTreeSet<u64>>::new();
    for status in statuses.iter().filter(|status| status.leader != 0 && Some(status.raft_term) == term) {
        followers.entry(status.leader).or_default().insert(status.member_id);
    }
    let (leader, up) = followers
        .iter()
        .max_by_key(|(_, followers)| followers.len())
        .map_or((None, 0), |(leader, followers)| (Some(*leader), followers.len()));
    let leaderless = statuses.iter().filter(|status| status.leader == 0).count();
    let quorum = if seen.listed_now || (voters > 0 && up >= needed) {
        Holds::True
    } else if leaderless > voters.saturating_sub(needed) && voters > 0
        || (leaderless > 0 && seen.witness != Witness::None)
    {
        Holds::False
    } else {
        Holds::Unknown
    };
    let mut verdict = EtcdVerdict {
        quorum,
        health: EtcdHealth::Ok,
        voters,
        assumed,
        needed,
        up,
        tolerance: (quorum == Holds::True).then(|| up.saturating_sub(needed)),
        leader: leader.filter(|_| quorum == Holds::True),
        findings: Vec::new(),
        behind: behind(&statuses),
    };
    let health = findings(seen, members, &statuses, &mut verdict.findings, &verdict.behind);
    verdict.health = match quorum {
        Holds::False => {
            verdict.findings.insert(0, lost(seen.witness, leaderless, voters));
            EtcdHealth::QuorumLost
        }
        _ if health < EtcdHealth::Unknown => health,
        Holds::Unknown => EtcdHealth::Unknown,
        Holds::True if voters > 1 && (up < voters || up <= needed) => {
            let message = format!("{up} of {voters} voters follow the leader, {needed} are needed");
            let reason = if up < voters { "VoterDown" } else { "NoTolerance" };
            verdict.findings.insert(0, Finding { reason, message });
            EtcdHealth::AtRisk
        }
        Holds::True if health == EtcdHealth::Ok && voters == 1 => EtcdHealth::NoRedundancy,
        Holds::True => health,
    };
    verdict
}

fn lost(witness: Witness, leaderless: usize, voters: usize) -> Finding {
    let besides = match witness {
        Witness::None => "",
        Witness::LeasesStopped => ", and no node's lease is renewed",
        Witness::ApiNotReady => ", and the API server is not ready for want of etcd",
    };
    let message = format!("{leaderless} of {voters} voters answer and see no leader{besides}");
    Finding { reason: "QuorumLost", message }
}

fn behind(statuses: &[&EtcdStatus]) -> BTreeSet<u64> {
    let newest = statuses.iter().map(|status| status.raft_index).max().unwrap_or(0);
    let far = statuses.iter().filter(|status| newest - status.raft_index > BEHIND);
    far.map(|status| status.member_id).collect()
}

/// Collects what is to be said beside the quorum; gives the worst of it.
fn findings(
    seen: &EtcdSeen<'_>,
    members: &[EtcdMember],
    statuses: &[&EtcdStatus],
    findings: &mut Vec<Finding>,
    behind: &BTreeSet<u64>,
) -> EtcdHealth {
    let mut worst = EtcdHealth::Ok;
    let mut say = |health: EtcdHealth, reason, message| {
        worst = worst.min(health);
        findings.push(Finding { reason, message });
    };
    let listed = seen.list.iter().flat_map(|list| &list.alarms).map(|alarm| alarm.alarm.as_str());
    let told = seen.statuses.iter().flat_map(|status| &status.errors).map(String::as_str);
    let alarms = listed.chain(told).collect::<Vec<_>>();
    if alarms.iter().any(|alarm| alarm.contains("CORRUPT")) {
        say(EtcdHealth::Critical, "Corrupt", "a member's data is corrupt".to_owned());
    }
    if alarms.iter().any(|alarm| alarm.contains("NOSPACE")) {
        say(EtcdHealth::ReadOnly, "NoSpace", "its database is full: writes are refused".to_owned());
    }
    if seen.list.is_some_and(|list| list.lists_disjoint) {
        let message = "members give lists that have none in common: there is more than one etcd".to_owned();
        say(EtcdHealth::Critical, "ListsDisjoint", message);
    } else if seen.list.is_some_and(|list| list.lists_differ) {
        say(EtcdHealth::Degraded, "ListsDiffer", "members give different lists of members".to_owned());
    }
    for member in members {
        let name =
            if member.hostname.is_empty() { format!("{:016x}", member.id) } else { member.hostname.clone() };
        if member.hostname.is_empty() {
            say(EtcdHealth::Degraded, "MemberUnstarted", format!("member {name} never started"));
        }
        let since = seen.learners.get(&member.id).filter(|_| member.is_learner);
        if since.is_some_and(|since| seen.now.since(*since) > seen.learner_patience) {
            let minutes = seen.learner_patience.as_secs() / 60;
            let message = format!("member {name} is a learner for more than {minutes} min");
            say(EtcdHealth::Degraded, "LearnerStuck", message);
        }
    }
    let voters = members.iter().filter(|member| !member.is_learner).count();
    if voters > 0 && voters.is_multiple_of(2) {
        let message = format!("{voters} voters endure no more losses than {}", voters - 1);
        say(EtcdHealth::Degraded, "EvenVoters", message);
    }
    for id in behind.intersection(seen.behind_before) {
        say(EtcdHealth::Degraded, "MemberBehind", format!("member {id:016x} lags behind the others"));
    }
    for status in statuses {
        of_member(status, seen.quota_bytes, &mut say);
    }
    worst
}

fn of_member(status: &EtcdStatus, quota: u64, say: &mut impl FnMut(EtcdHealth, &'static str, String)) {
    let id = status.member_id;
    let backlog = status.raft_index.saturating_sub(status.raft_applied_index);
    if backlog >= BACKLOG {
        let (least, refused) =
            if backlog >= BACKLOG_LIMIT { (BACKLOG_LIMIT, ": writes are refused") } else { (BACKLOG, "") };
        let message = format!("member {id:016x} has {least} entries to apply or more{refused}");
        say(EtcdHealth::Degraded, "ApplyBacklog", message);
    }
    let size = u128::from(status.db_size) * 100;
    let percent = size / u128::from(quota.max(1));
    if percent >= 80 {
        let reason = if percent >= 95 { "DatabaseAlmostFull" } else { "DatabaseFilling" };
        let message = format!("the database of member {id:016x} is at {percent} % of its quota");
        say(EtcdHealth::Degraded, reason, message);
    }
    if status.db_size > FRAGMENTED_FROM && status.db_size_in_use < status.db_size / 2 {
        let message = format!("less than half of the database of member {id:016x} is in use: defragment it");
        say(EtcdHealth::Ok, "Fragmented", message);
    }
}

/// Whether a machine belongs to etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// It does, and has started.
    Member,
    /// It does not, or never started.
    Absent,
    /// There is no list.
    Unknown,
}

/// Tells whether a machine belongs to etcd: by its own member id, else by its node's name, else by an address of its peers.
pub fn membership(
    list: Option<&Etcd>,
    machine: Option<&TalosMachine>,
    node_name: Option<&str>,
) -> Membership {
    let Some(list) = list.filter(|list| !list.members.is_empty()) else { return Membership::Unknown };
    let own = machine.and_then(|machine| machine.etcd.as_ref()).map(|status| status.member_id);
    let name = node_name.or_else(|| machine?.node_name.as_deref());
    let at = |member: &EtcdMember| {
        let hosts = member.peer_urls.iter().filter_map(|url| url.split_once("://")?.1.rsplit_once(':'));
        let mut hosts = hosts.filter_map(|(host, _)| host.trim_matches(['[', ']']).parse().ok());
        machine.is_some_and(|machine| hosts.any(|host| machine.addresses.contains(&host)))
    };
    let found = list.members.iter().find(|member| Some(member.id) == own).or_else(|| {
        let named = |member: &&EtcdMember| !member.hostname.is_empty() && Some(&*member.hostname) == name;
        list.members.iter().find(named).or_else(|| list.members.iter().find(|member| at(member)))
    });
    match found {
        Some(member) if !member.hostname.is_empty() => Membership::Member,
        Some(_) | None => Membership::Absent,
    }
}
