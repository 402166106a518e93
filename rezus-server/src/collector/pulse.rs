//! How observing goes, for the server's own metrics.

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::observed::Source;

use super::Board;

/// How one source of one tenant goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Pulse {
    /// Whose.
    pub tenant: TenantName,
    /// Which source.
    pub source: Source,
    /// Whether its last turn told anything.
    pub up: bool,
    /// How long that took, in seconds.
    pub duration_seconds: f64,
    /// How long ago it told anything, in seconds; absent if it never did.
    pub age_seconds: Option<f64>,
    /// Of how many things it told last: nodes, machines.
    pub items: usize,
    /// How many parts of it could not be read the last time.
    pub failures: usize,
}

/// How observing goes, tenant by tenant, at `now`. A source that was not tried yet is not up.
#[derive(Clone, Debug, Default)]
pub struct Pulses(pub Vec<Pulse>);

impl Pulses {
    /// Takes them.
    pub fn of(board: &Board, now: Timestamp) -> Self {
        let mut pulses = Vec::new();
        for (tenant, picture) in board.pictures() {
            for source in Source::ALL {
                let standing = picture.standings.get(&source);
                // Of most clusters it is not asked.
                if standing.is_none() && source == Source::NodeMetrics {
                    continue;
                }
                let answered_at = standing.and_then(|standing| standing.answered_at);
                pulses.push(Pulse {
                    tenant: tenant.clone(),
                    source,
                    up: standing.is_some_and(|standing| standing.silent_since.is_none()),
                    duration_seconds: standing.map_or(0.0, |standing| standing.took.as_secs_f64()),
                    age_seconds: answered_at.map(|at| now.since(at).as_secs_f64()),
                    items: standing.map_or(0, |standing| standing.items),
                    failures: standing.map_or(0, |standing| standing.failures.len()),
                });
            }
        }
        pulses.sort_by(|a, b| (&a.tenant, a.source).cmp(&(&b.tenant, b.source)));
        Self(pulses)
    }
}
