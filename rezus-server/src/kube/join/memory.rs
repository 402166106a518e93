//! What is remembered of a tenant's objects from one time to the next: since when conditions hold, and what was shown. It is
//! lost with the server, and then begins anew.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::observed::judge::Health;
use rezus_core::observed::{Claim, Found, Identity, Matches};
use serde::Serialize;

use super::departed::Departed;
use super::{Declared, Transition};
use crate::kube::item::{Piece, Row};
use crate::kube::kinds::KindInfo;
use crate::kube::object::Condition;
use crate::kube::observed::of_collector;

/// How long what is shown may be older than what is known where nothing else is new: longer than ten turns of any source
/// take, so that a cluster that stays as it is makes fewer changes than it has machines.
const QUIET: Duration = Duration::from_mins(12);

/// How many transitions are told at a time, of each kind of object: a cluster that comes up is no thousand events.
const EVENTS: usize = 50;

/// The condition that says that a clock is off: the one that is good where it does not hold.
pub(super) const CLOCK_SKEW: &str = "ClockSkew";

/// Tells whether a reason may be somebody's doing: a state that holds what would have harmed whoever used it, or another
/// authority by the name of the one that is known.
pub(in crate::kube) fn is_suspicious(reason: &str) -> bool {
    matches!(reason, "CredentialRejected" | "IdentityMismatch")
}

/// What is remembered.
#[derive(Debug, Default)]
pub(in crate::kube) struct Memory {
    /// Which machine each claim was matched to.
    pub(super) identities: HashMap<String, Identity>,
    /// Since when each etcd member learns.
    pub(super) learners: BTreeMap<u64, Timestamp>,
    /// Which etcd members' logs were behind in the turn before, and which turn was looked at last.
    pub(super) behind: BTreeSet<u64>,
    pub(super) turn: Option<Timestamp>,
    /// Of which cluster all of that is.
    pub(super) incarnation: Option<u32>,
    /// What was said of clocks when one was seen to be off last.
    pub(super) skewed: Option<(Health, Timestamp)>,
    /// What was there when it was looked last, and since when what is not there any more.
    pub(super) departed: Departed,
    shown: HashMap<(&'static str, String), Shown>,
    /// By what names samples of each machine were known last.
    pub(in crate::kube) sampled_as: SampledAs,
}

/// By what names samples of machines are known.
pub(in crate::kube) type SampledAs = Arc<BTreeMap<String, BTreeSet<String>>>;

/// What was shown of an object.
#[derive(Debug)]
struct Shown {
    /// What was news of it.
    news: u64,
    observed_at: Option<Timestamp>,
    conditions: Vec<Since>,
}

/// Since when a condition is as it is.
#[derive(Clone, Debug)]
struct Since {
    kind: &'static str,
    holds: &'static str,
    reason: String,
    at: Timestamp,
}

/// A condition, before it is known since when it is so.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) kind: &'static str,
    pub(super) holds: &'static str,
    pub(super) reason: String,
    pub(super) message: String,
    /// What of the message is news where it is another one than before.
    pub(super) gist: String,
}

impl Said {
    /// All of whose message is news.
    pub(super) fn new(kind: &'static str, holds: &'static str, reason: &str, message: String) -> Self {
        Self { kind, holds, reason: reason.to_owned(), gist: message.clone(), message }
    }

    /// Tells whether it is as it should not be.
    fn is_warning(&self) -> bool {
        if self.kind == CLOCK_SKEW { self.holds == "True" } else { self.holds != "True" }
    }

    /// Tells whether it is an event wherever it comes up, of whatever condition.
    fn is_alarm(&self) -> bool {
        self.is_warning() && (self.kind == CLOCK_SKEW || is_suspicious(&self.reason))
    }
}

/// All that is to be shown of an object.
pub(super) struct Told<S> {
    pub(super) conditions: Vec<Said>,
    /// The status, without what changes with each turn.
    pub(super) news: S,
    /// The status whole.
    pub(super) status: S,
    pub(super) cells: Vec<Row>,
    /// When any of it was observed last.
    pub(super) observed_at: Option<Timestamp>,
}

impl Memory {
    /// Forgets what was of another cluster; tells whether anything was.
    pub(super) fn is_of_another(&mut self, incarnation: u32) -> bool {
        let before = self.incarnation.replace(incarnation);
        if before.is_none_or(|before| before == incarnation) {
            return false;
        }
        self.identities.clear();
        self.learners.clear();
        self.behind.clear();
        (self.turn, self.skewed) = (None, None);
        self.departed = Departed::default();
        true
    }

    /// Remembers which machine each claim is.
    pub(super) fn remember(&mut self, claims: &[Claim], matches: &Matches<'_>) {
        for (claim, found) in claims.iter().zip(&matches.found) {
            if let Found::Matched { seen, .. } = found
                && let Some(seen) = matches.seen.get(*seen)
            {
                self.identities.insert(claim.name.clone(), seen.identity());
            }
        }
    }

    /// Remembers by what names samples of a machine are known: the last ones, while it is not seen.
    pub(super) fn sampled_as(&mut self, machine: &str, names: BTreeSet<String>) {
        if !names.is_empty() && self.sampled_as.get(machine) != Some(&names) {
            Arc::make_mut(&mut self.sampled_as).insert(machine.to_owned(), names);
        }
    }

    /// Forgets what is no longer declared.
    pub(super) fn keep_only(&mut self, declared: &Declared) {
        let machines: HashSet<&str> = declared.machines.iter().map(|(name, _)| name.as_str()).collect();
        let groups: HashSet<&str> = declared.groups.iter().map(|(name, _)| name.as_str()).collect();
        self.identities.retain(|name, _| machines.contains(name.as_str()));
        if self.sampled_as.keys().any(|name| !machines.contains(name.as_str())) {
            Arc::make_mut(&mut self.sampled_as).retain(|name, _| machines.contains(name.as_str()));
        }
        self.shown.retain(|(kind, name), _| match *kind {
            "Machine" => machines.contains(name.as_str()),
            "NodeGroup" => groups.contains(name.as_str()),
            _ => true,
        });
    }

    /// Tells whether anything was shown of a machine.
    pub(super) fn shows_machines(&self) -> bool {
        self.shown.keys().any(|(kind, _)| *kind == "Machine")
    }

    /// Returns what is to be shown of an object: nothing where it is shown already, and not too long ago. Tells what changed
    /// of its first condition and of clocks, and what is an alarm.
    pub(super) fn show<S: Serialize>(
        &mut self,
        kind: &'static KindInfo,
        name: &str,
        told: Told<S>,
        now: Timestamp,
        events: &mut Vec<Transition>,
    ) -> Option<Piece> {
        let key = (kind.kind, name.to_owned());
        let before = self.shown.get(&key);
        let mut hasher = DefaultHasher::new();
        hasher.write(serde_json::to_string(&told.news).unwrap_or_default().as_bytes());
        let mut since = Vec::with_capacity(told.conditions.len());
        let mut conditions: Vec<Condition> = Vec::with_capacity(told.conditions.len());
        for (place, said) in told.conditions.into_iter().enumerate() {
            for text in [said.kind, said.holds, &said.reason, &said.gist] {
                hasher.write(text.as_bytes());
                hasher.write_u8(0xff);
            }
            let earlier = before.and_then(|shown| shown.conditions.iter().find(|it| it.kind == said.kind));
            let same = earlier.filter(|earlier| earlier.holds == said.holds);
            let at = same.map_or(now, |same| same.at);
            let is_warning = said.is_warning();
            let is_other =
                earlier.is_none_or(|earlier| earlier.holds != said.holds || earlier.reason != said.reason);
            // What is shown first of most is no event.
            let is_told =
                said.is_alarm() || earlier.is_some_and(|earlier| place == 0 || earlier.kind == CLOCK_SKEW);
            if is_told && is_other && events.iter().filter(|event| event.kind.is(kind)).count() < EVENTS {
                events.push(Transition {
                    kind,
                    name: name.to_owned(),
                    is_warning,
                    reason: said.reason.clone(),
                    message: said.message.clone(),
                    at: now,
                });
            }
            since.push(Since { kind: said.kind, holds: said.holds, reason: said.reason.clone(), at });
            conditions.push(of_collector(said.kind, said.holds, said.reason, said.message, at));
        }
        let news = hasher.finish();
        if let Some(shown) = before
            && shown.news == news
            && shown.observed_at.is_some() == told.observed_at.is_some()
            && told.observed_at.zip(shown.observed_at).is_none_or(|(new, old)| new.since(old) <= QUIET)
        {
            return None;
        }
        self.shown.insert(key, Shown { news, observed_at: told.observed_at, conditions: since });
        Some(Piece::new(&conditions).members(&told.status).cells(told.cells))
    }
}
