//! Whether the clocks of a cluster, and rezus' own, show the same time.

use std::collections::BTreeSet;
use std::time::Duration;

use super::super::facts::Holds;
use super::Health;

/// How far a clock may be off.
const TOLERANCE: Duration = Duration::from_secs(5);

/// What is told of one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockSeen<'a> {
    /// Whose it is, as it is shown.
    pub of: &'a str,
    /// How far it is ahead of rezus' own, in milliseconds, where that was compared.
    pub skew_ms: Option<i64>,
    /// How far it is ahead of the one that it follows, in milliseconds, where it tells that.
    pub offset_ms: Option<i64>,
    /// Whether it follows another one, where it tells that.
    pub synced: Option<bool>,
}

/// Judges clocks: [`Holds::True`] where one is off, which is a warning. Nothing where none was told of.
///
/// How far is not said: a clock that drifts would be news with each turn.
pub fn clocks(seen: &[ClockSeen<'_>]) -> Option<Health> {
    let is_told = |clock: &ClockSeen<'_>| {
        clock.skew_ms.is_some() || clock.offset_ms.is_some() || clock.synced.is_some()
    };
    let told: Vec<_> = seen.iter().filter(|clock| is_told(clock)).collect();
    if told.is_empty() {
        return None;
    }
    let off = |millis: &i64| millis.unsigned_abs() > millis_of(TOLERANCE);
    let skews: Vec<i64> = told.iter().filter_map(|clock| clock.skew_ms).collect();
    let (least, most) = (skews.iter().min(), skews.iter().max());
    // Where all clocks agree with one another and none with rezus, it is not they that are off.
    let own = match (least, most) {
        (Some(least), Some(most))
            if skews.len() > 1 && skews.iter().all(off) && most.abs_diff(*least) <= millis_of(TOLERANCE) =>
        {
            Some(least.midpoint(*most))
        }
        _ => None,
    };
    let mut findings = Vec::new();
    if let Some(skew) = own {
        let side = side(skew.saturating_neg());
        findings.push(format!("rezus' own clock is more than 5 seconds {side} those of the cluster"));
    }
    let mut unsynced = BTreeSet::new();
    for clock in &told {
        let skew = clock.skew_ms.filter(|skew| own.is_none() && off(skew)).map(|skew| (skew, "rezus' own"));
        let offset = clock.offset_ms.filter(off).map(|offset| (offset, "the one that it follows"));
        if let Some((millis, other)) = skew.or(offset) {
            let side = side(millis);
            findings.push(format!("the clock of {} is more than 5 seconds {side} {other}", clock.of));
        } else if clock.synced == Some(false) {
            unsynced.insert(clock.of);
        }
    }
    if !unsynced.is_empty() {
        findings.push(format!("no other clock is followed by {}", some(&unsynced)));
    }
    Some(if findings.is_empty() {
        Health::new(Holds::False, "InStep", String::new())
    } else {
        let rest = findings.len().saturating_sub(SHOWN);
        findings.truncate(SHOWN);
        let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
        Health::new(Holds::True, "ClockSkew", findings.join("; ") + &more)
    })
}

/// How many are named.
const SHOWN: usize = 5;

fn some(names: &BTreeSet<&str>) -> String {
    let rest = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if rest > 0 { format!("{shown} and {rest} more") } else { shown }
}

const fn millis_of(span: Duration) -> u64 {
    span.as_secs() * 1_000
}

/// On which side of another one a clock is.
const fn side(millis: i64) -> &'static str {
    if millis < 0 { "behind" } else { "ahead of" }
}
