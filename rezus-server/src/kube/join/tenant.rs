//! How a cluster is as a whole, and what is shown of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::client::{EtcdSummary, GoneMachine, MachineCounts, NodeGroupStatus, TenantStatus};
use rezus_core::observed::facts::{EtcdStatus, Holds, MachineKind};
use rezus_core::observed::judge::{
    self, ClockSeen, Counts, EtcdSeen, EtcdVerdict, Finding, Health, Leases, Witness,
};
use rezus_core::observed::{Failure, Freshness, Matches, Picture, Source};

use super::machine::holds;
use super::memory::{CLOCK_SKEW, Memory, Said, Told};
use super::{Seen, parts};
use crate::kube::item::Row;
use crate::kube::object::seconds;

/// How many names of what is undeclared, or gone, are shown.
const UNDECLARED: usize = 100;

/// How long a member of etcd may learn.
const PATIENCE: Duration = Duration::from_mins(10);

/// Judges the cluster's etcd; nothing where nothing was ever seen of it.
pub(super) fn etcd(seen: &Seen<'_>, memory: &mut Memory, expected: usize) -> Option<EtcdVerdict> {
    let picture = &seen.picture.talos;
    let is_known = |at: Timestamp| seen.paces.talos.freshness(at, seen.now) != Freshness::Unknown;
    let list = picture.etcd.as_ref();
    let control_planes = picture.machines.values().filter(|one| one.value.etcd.is_some());
    let statuses: Vec<&EtcdStatus> = control_planes
        .filter(|one| seen.paces.talos.freshness(one.observed_at, seen.now) == Freshness::Fresh)
        .filter_map(|one| one.value.etcd.as_ref())
        .collect();
    if list.is_none() && statuses.is_empty() {
        return None;
    }
    let learners: Vec<u64> = list
        .iter()
        .flat_map(|list| &list.value.members)
        .filter(|member| member.is_learner)
        .map(|member| member.id)
        .collect();
    memory.learners.retain(|id, _| learners.contains(id));
    for id in learners {
        memory.learners.entry(id).or_insert(seen.now);
    }
    // The list of this very turn: as new as what the machines told.
    let turn = seen.picture.standings.get(&Source::Talos).map(|standing| standing.tried_at);
    let listed_now = list.is_some_and(|list| {
        is_known(list.observed_at) && turn.is_some_and(|turn| turn.since(list.observed_at) <= LISTED)
    });
    let kubernetes = &seen.picture.kubernetes;
    let api_fails = kubernetes.failed_checks.as_ref().is_some_and(|checks| {
        seen.paces.kubernetes.freshness(checks.observed_at, seen.now) == Freshness::Fresh
            && checks.value.iter().any(|check| check.name.starts_with("etcd"))
    });
    let witness = match seen.leases {
        _ if api_fails => Witness::ApiNotReady,
        Leases::AllStale { dead: true, .. } if seen.of_nodes == Freshness::Fresh => Witness::LeasesStopped,
        _ => Witness::None,
    };
    let behind_before = std::mem::take(&mut memory.behind);
    let verdict = judge::etcd(&EtcdSeen {
        list: list.map(|list| &list.value),
        listed_now,
        statuses: &statuses,
        expected,
        witness,
        learners: &memory.learners,
        learner_patience: PATIENCE,
        behind_before: &behind_before,
        quota_bytes: EtcdSeen::QUOTA,
        now: seen.now,
    });
    // One turn's numbers are compared once, however often they are looked at.
    memory.behind = if memory.turn == turn { behind_before } else { verdict.behind.clone() };
    memory.turn = turn;
    Some(verdict)
}

/// How much older than the end of its turn a list of members is that was read in it.
const LISTED: Duration = Duration::from_secs(50);

/// Counts machines in the words of the API.
pub(super) fn shown(counts: &Counts) -> MachineCounts {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    MachineCounts {
        declared: number(counts.claimed),
        ready: number(counts.ready),
        not_ready: number(counts.not_ready),
        missing: number(counts.missing),
        unknown: number(counts.unknown),
        undeclared: number(counts.unclaimed),
    }
}

/// What is shown of a node group: how its machines are.
pub(super) fn group(
    counts: &Counts,
    seen: &Seen<'_>,
    observed_at: Option<Timestamp>,
) -> Told<NodeGroupStatus> {
    let Counts { claimed: declared, ready, not_ready, missing, unknown, .. } = *counts;
    let (word, reason) = match (not_ready + missing, unknown, declared) {
        (0, 0, 0) => ("Unknown", "NoMachines"),
        (0, 0, _) => ("True", "Ready"),
        (0, _, _) => ("Unknown", "MachinesUnknown"),
        _ => ("False", "MachinesNotReady"),
    };
    let message = format!(
        "of {declared} machines {ready} are ready, {not_ready} not, {missing} missing, {unknown} unknown"
    );
    let status = NodeGroupStatus {
        machines: Some(shown(counts)),
        warming: seen.is_warming(),
        ..NodeGroupStatus::default()
    };
    let is_known = ready + not_ready + missing > 0;
    let number = |count: usize| match u64::try_from(count) {
        Ok(count) if is_known => Row::default().number(count),
        _ => Row::default().unknown(),
    };
    Told {
        conditions: vec![Said::new("Ready", word, reason, message)],
        news: status.clone(),
        status,
        cells: vec![number(ready + not_ready), number(ready)],
        observed_at,
    }
}

/// What is shown of the tenant.
pub(super) fn tenant(
    counts: &Counts,
    matches: &Matches<'_>,
    departed: &BTreeMap<String, Timestamp>,
    seen: &Seen<'_>,
    etcd: Option<&EtcdVerdict>,
    clocks: Option<&Health>,
) -> Told<TenantStatus> {
    let kubernetes = seen.picture.kubernetes.nodes.as_ref();
    let health = judge::tenant(counts, etcd, kubernetes.map(|_| seen.of_nodes));
    let mut conditions = vec![said("Ready", &health)];
    conditions
        .extend([Source::Kubernetes, Source::Talos].into_iter().filter_map(|source| reachable(seen, source)));
    if let Some(etcd) = etcd {
        let message = findings(&etcd.findings);
        conditions.push(Said::new("EtcdQuorum", holds(etcd.quorum), etcd.health.reason(), message));
    }
    conditions.extend(clocks.map(|health| said(CLOCK_SKEW, health)));
    let gone = departed.iter().take(UNDECLARED);
    let mut undeclared: BTreeSet<String> = matches
        .unclaimed
        .iter()
        .filter_map(|at| matches.seen.get(*at))
        .map(|one| one.name().to_owned())
        .collect();
    undeclared.extend(matches.stale.iter().map(|node| node.name.clone()));
    let mut news = TenantStatus {
        machines: Some(shown(counts)),
        undeclared: undeclared.into_iter().take(UNDECLARED).collect(),
        incarnation: seen.picture.incarnations.told().map(u64::from),
        warming: seen.is_warming(),
        gone: gone.map(|(name, at)| GoneMachine { name: name.clone(), since: seconds(*at) }).collect(),
        kubernetes: parts::kubernetes(
            &seen.picture.kubernetes,
            seen.of_node_status,
            seen.paces.kubernetes,
            seen.now,
        ),
        etcd: etcd.map(summary),
        sources: parts::sources(
            seen.picture,
            |source| seen.paces.of_source(source),
            seen.now,
            clocks.is_some_and(|clocks| clocks.holds == Holds::True),
        ),
        ..TenantStatus::default()
    };
    let answered = seen.picture.standings.values().filter_map(|standing| standing.answered_at);
    let observed_at = answered.max();
    let mut status = news.clone();
    status.observed_at = observed_at.map(seconds);
    if let Some(kubernetes) = &mut news.kubernetes {
        kubernetes.observed_at.clear();
        kubernetes.clock_skew_millis = None;
        if let Some(pods) = &mut kubernetes.pods {
            (pods.total, pods.running, pods.pending) = (0, 0, 0);
        }
    }
    for source in &mut news.sources {
        source.answered_at = None;
        source.message = parts::gists(seen.picture, &source.source);
    }
    // Where nobody knows of any machine, none being ready is not known either.
    let ready = if seen.of_nodes == Freshness::Unknown {
        Row::default().unknown()
    } else {
        Row::default().text(Some(&format!("{}/{}", counts.ready, counts.claimed)))
    };
    let cells =
        vec![ready, observed_at.map_or_else(|| Row::default().unknown(), |at| Row::default().age(at))];
    Told { conditions, news, status, cells, observed_at }
}

/// How long it is said that a clock is off after it was seen to be: one that is so by hardly more than it may, or one of several
/// API servers', would be news in every turn.
const SKEWED_FOR: Duration = Duration::from_mins(10);

/// Judges the clocks that are known.
pub(super) fn clocks(seen: &Seen<'_>, memory: &mut Memory) -> Option<Health> {
    let health = clocks_now(seen);
    let is_off = health.as_ref().is_some_and(|health| health.holds == Holds::True);
    match &memory.skewed {
        Some((before, at)) if !is_off && seen.now.since(*at) < SKEWED_FOR => Some(before.clone()),
        _ => {
            memory.skewed = health.clone().filter(|_| is_off).map(|health| (health, seen.now));
            health
        }
    }
}

fn clocks_now(seen: &Seen<'_>) -> Option<Health> {
    let Picture { kubernetes, metrics, .. } = seen.picture;
    let is_known = |source, at| seen.paces.of_source(source).freshness(at, seen.now) != Freshness::Unknown;
    let api = kubernetes.skew_ms.as_ref().filter(|skew| is_known(Source::Kubernetes, skew.observed_at));
    let api = api.map(|skew| ClockSeen {
        of: "the API server",
        skew_ms: Some(skew.value),
        offset_ms: None,
        synced: None,
    });
    let machines = seen.talos.machines.iter().map(|machine| ClockSeen {
        of: machine.node_name.as_deref().unwrap_or(&machine.asked),
        skew_ms: machine.skew_ms,
        offset_ms: None,
        synced: machine.time_synced,
    });
    let metrics = metrics.values().filter(|seen| is_known(Source::NodeMetrics, seen.observed_at));
    let metrics = metrics.map(|seen| ClockSeen {
        of: seen.value.node_name.as_deref().unwrap_or(&seen.value.asked),
        skew_ms: None,
        offset_ms: seen.value.time_offset_seconds.and_then(in_millis),
        synced: seen.value.time_synced,
    });
    judge::clocks(&api.into_iter().chain(machines).chain(metrics).collect::<Vec<_>>())
}

/// Nothing of what is no length of time, or too long to be one.
fn in_millis(seconds: f64) -> Option<i64> {
    let span = Duration::try_from_secs_f64(seconds.abs()).ok()?;
    let millis = i64::try_from(span.as_millis()).ok()?;
    Some(if seconds < 0.0 { -millis } else { millis })
}

fn said(kind: &'static str, health: &Health) -> Said {
    Said::new(kind, holds(health.holds), &health.reason, health.message.clone())
}

fn findings(findings: &[Finding]) -> String {
    findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("; ")
}

/// Whether a source tells anything; nothing where it was never tried.
fn reachable(seen: &Seen<'_>, source: Source) -> Option<Said> {
    let standing = seen.picture.standings.get(&source)?;
    let kind = match source {
        Source::Kubernetes => "KubernetesReachable",
        Source::Talos | Source::NodeMetrics => "TalosReachable",
    };
    let Some(failure) = standing.silence() else {
        return Some(Said::new(kind, "True", "Answers", String::new()));
    };
    let holds = match failure {
        // Without a credential nobody knows.
        Failure::CredentialMissing | Failure::Disabled | Failure::Internal { .. } => "Unknown",
        _ => "False",
    };
    let message = failure.to_string();
    Some(Said { gist: parts::gist(failure), ..Said::new(kind, holds, failure.reason(), message) })
}

fn summary(etcd: &EtcdVerdict) -> EtcdSummary {
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let health = etcd.health.reason();
    EtcdSummary {
        health: health.strip_prefix("Etcd").unwrap_or(health).to_owned(),
        message: findings(&etcd.findings),
        quorum: match etcd.quorum {
            Holds::True => "Yes",
            Holds::False => "No",
            Holds::Unknown => "Unknown",
        }
        .to_owned(),
        voters: number(etcd.voters),
        voters_up: number(etcd.up),
    }
}

/// How many control planes there are said to be: declared, or else seen.
pub(super) fn control_planes(declared: usize, seen: &Seen<'_>) -> usize {
    let is_one = |kind: MachineKind| kind == MachineKind::ControlPlane;
    let machines = seen.talos.machines.iter().filter(|machine| is_one(machine.kind)).count();
    if declared > 0 { declared } else { machines }
}
