//! Nodes that were there and are gone: shown for a day, then forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::observed::{Found, Matches, Seen};

/// For how long what is gone is shown.
const SHOWN_FOR: Duration = Duration::from_hours(24);

/// How many are remembered: the rest of a cluster that shrinks by more than that is not told one by one.
const MOST: usize = 1_000;

/// What was there, and what is there no more.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// The nodes, by name; of those that are declared, by which machine.
    present: BTreeMap<String, Option<String>>,
    /// Since when.
    gone: BTreeMap<String, Timestamp>,
}

impl Departed {
    /// Compares the nodes that are there now with those that were; `claims` are the machines that are declared, in the order of what
    /// was found. Returns the names of those that went.
    ///
    /// What is declared and not there is missing, not gone; what Talos still tells of is there.
    pub(super) fn look<'m>(
        &mut self,
        claims: impl Iterator<Item = &'m str>,
        matches: &Matches<'_>,
        now: Timestamp,
    ) -> Vec<String> {
        let mut missing = BTreeSet::new();
        let mut nodes: BTreeMap<&str, Option<&str>> =
            matches.stale.iter().map(|node| (node.name.as_str(), None)).collect();
        nodes.extend(matches.seen.iter().filter_map(|one| Some((one.node?.name.as_str(), None))));
        for (claim, found) in claims.zip(&matches.found) {
            match found {
                Found::Matched { seen, .. } => {
                    let node = matches.seen.get(*seen).and_then(|one| one.node);
                    nodes.extend(node.map(|node| (node.name.as_str(), Some(claim))));
                }
                Found::Missing => drop(missing.insert(claim)),
                Found::Ambiguous { .. } => {}
            }
        }
        let told: BTreeSet<&str> = matches.seen.iter().map(Seen::name).collect();
        let mut went = Vec::new();
        self.present.retain(|name, claim| {
            let is_there = nodes.contains_key(name.as_str()) || told.contains(name.as_str());
            let is_missing = claim.as_deref().is_some_and(|claim| missing.contains(claim));
            if !is_there && !is_missing {
                went.push(name.clone());
            }
            is_there || is_missing
        });
        for (name, claim) in nodes {
            self.gone.remove(name);
            self.present.insert(name.to_owned(), claim.map(ToOwned::to_owned));
        }
        let room = MOST.saturating_sub(self.gone.len());
        self.gone.extend(went.iter().take(room).map(|name| (name.clone(), now)));
        went
    }

    /// Returns what is gone, by name, and since when. What is gone for a day is forgotten.
    pub(super) fn gone(&mut self, now: Timestamp) -> &BTreeMap<String, Timestamp> {
        self.gone.retain(|_, since| now.since(*since) < SHOWN_FOR);
        &self.gone
    }

    /// When the next one is forgotten.
    pub(super) fn next_turn(&self) -> Option<Timestamp> {
        self.gone.values().min().map(|since| since.after(SHOWN_FOR))
    }
}
