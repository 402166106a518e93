//! Nodes that were there and are gone: shown for a day, then forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::observed::{Claim, Found, Matches, Seen};

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
    /// Compares the nodes that are there now with those that were, given machines that are declared and what became of each. Returns the names of those
    /// that went.
    ///
    /// What is declared and not there is missing, not gone.
    pub(super) fn look(&mut self, claims: &[Claim], matches: &Matches<'_>, now: Timestamp) -> Vec<String> {
        let mut there: BTreeMap<&str, Option<&str>> =
            matches.stale.iter().map(|node| (node.name.as_str(), None)).collect();
        there.extend(matches.seen.iter().filter_map(|one| Some((one.node?.name.as_str(), None))));
        let (mut missing, mut looked_for) = (BTreeSet::new(), BTreeSet::new());
        for (claim, found) in claims.iter().zip(&matches.found) {
            match found {
                Found::Matched { seen, .. } => {
                    let node = matches.seen.get(*seen).and_then(|one| one.node);
                    there.extend(node.map(|node| (node.name.as_str(), Some(claim.name.as_str()))));
                }
                Found::Missing => {
                    missing.insert(claim.name.as_str());
                    looked_for.insert(claim.hostname.as_deref().unwrap_or(&claim.name));
                }
                Found::Ambiguous { .. } => {}
            }
        }
        // What Talos still tells of is there, although it is no node any more.
        let told: BTreeSet<&str> = matches.seen.iter().map(Seen::name).collect();
        let mut went = Vec::new();
        self.present.retain(|name, claim| {
            let is_there = there.contains_key(name.as_str()) || told.contains(name.as_str());
            let is_missing = looked_for.contains(name.as_str())
                || claim.as_deref().is_some_and(|claim| missing.contains(claim));
            if !is_there && !is_missing {
                went.push(name.clone());
            }
            is_there || is_missing
        });
        self.gone.retain(|name, _| !looked_for.contains(name.as_str()) && !told.contains(name.as_str()));
        for (name, claim) in there {
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
