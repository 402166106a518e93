//! How a whole cluster is.

use serde::{Deserialize, Serialize};

use super::super::Freshness;
use super::super::facts::Holds;
use super::{EtcdHealth, EtcdVerdict, Health};

/// How many machines are how. `claimed` is the sum of `ready`, `not_ready`, `missing` and `unknown`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counts {
    /// Looked for.
    pub claimed: usize,
    /// Ready.
    pub ready: usize,
    /// There, and not ready.
    pub not_ready: usize,
    /// Not there.
    pub missing: usize,
    /// Nobody knows.
    pub unknown: usize,
    /// There, and not looked for.
    pub unclaimed: usize,
}

/// Counts machines.
pub fn counts<'a>(machines: impl IntoIterator<Item = &'a Health>, unclaimed: usize) -> Counts {
    let mut counts = Counts { unclaimed, ..Counts::default() };
    for health in machines {
        counts.claimed += 1;
        match health.holds {
            Holds::True => counts.ready += 1,
            Holds::False if health.reason == "Missing" => counts.missing += 1,
            Holds::False => counts.not_ready += 1,
            Holds::Unknown => counts.unknown += 1,
        }
    }
    counts
}

/// Judges a cluster by its machines, its etcd, and how old the API server's last answer is (`None`: it never answered).
///
/// What is known to be wrong comes before what is not known.
pub fn tenant(counts: &Counts, etcd: Option<&EtcdVerdict>, api: Option<Freshness>) -> Health {
    if let Some(etcd) = etcd.filter(|etcd| etcd.health < EtcdHealth::Unknown) {
        let message = etcd.findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
        return Health::new(Holds::False, etcd.health.reason(), message);
    }
    let Counts { claimed, ready, not_ready, missing, unknown, unclaimed: _ } = *counts;
    if not_ready + missing > 0 {
        let message = format!(
            "of {claimed} machines {ready} are ready, {not_ready} not, {missing} missing, {unknown} unknown"
        );
        return Health::new(Holds::False, "MachinesNotReady", message);
    }
    match api {
        None => return Health::new(Holds::Unknown, "NotObserved", "its API server never answered"),
        Some(Freshness::Unknown) => {
            return Health::new(Holds::Unknown, "Unreachable", "its API server did not answer for long");
        }
        Some(Freshness::Fresh | Freshness::Stale) => {}
    }
    if unknown > 0 {
        let message = format!("of {claimed} machines {ready} are ready, {unknown} unknown");
        return Health::new(Holds::Unknown, "MachinesUnknown", message);
    }
    if claimed == 0 {
        return Health::new(Holds::Unknown, "NoMachines", "no machine is looked for");
    }
    match etcd {
        Some(etcd) if matches!(etcd.health, EtcdHealth::AtRisk | EtcdHealth::Degraded) => {
            let message = etcd.findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
            Health::new(Holds::True, etcd.health.reason(), message)
        }
        Some(_) | None => Health::new(Holds::True, "Ready", format!("all {claimed} machines are ready")),
    }
}
