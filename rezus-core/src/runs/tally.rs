//! What the events of a run add up to.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::executor::ToolKind;
use super::stream::{Change, Diagnostic, Event, Hook, Summary};

/// How many changes, creations and errors are kept one by one; all of them are counted.
const MOST: usize = 100_000;

/// How many changes are told with a run.
const MOST_TOLD: usize = 200;

/// How many errors are kept.
const MOST_ERRORS: usize = 20;

/// How many resources a plan changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Created, replaced ones included, as tofu counts.
    pub add: u64,
    /// Changed in place.
    pub change: u64,
    /// Destroyed, replaced ones included.
    pub remove: u64,
    /// Destroyed and created again.
    pub replace: u64,
    /// Taken into the state.
    pub import: u64,
    /// Taken out of the state and left alone.
    pub forget: u64,
}

impl Counts {
    /// Tells whether nothing is changed.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A resource that was reported as created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Created {
    /// The address of the resource instance, as the tool prints it.
    pub address: String,
    /// Its resource type.
    pub resource_type: String,
    /// The provider's ID of it, where that was told.
    pub id: Option<String>,
}

/// What was said so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The program and its version, as it says.
    pub tool: Option<(ToolKind, String)>,
    /// The changes that were planned, those that change nothing left out.
    pub planned: Vec<Change>,
    /// The resources that are not as the state has them.
    pub drift: Vec<Change>,
    /// What the plan counts.
    pub plan: Option<Summary>,
    /// What was done in the end: the program's own last word.
    pub done: Option<Summary>,
    /// How many operations were planned, replacements as two.
    pub total: u64,
    /// How many operations were done.
    pub completed: u64,
    /// How many failed.
    pub failed: u64,
    /// What was created and, as far as was told, not destroyed again.
    pub created: Vec<Created>,
    /// The addresses of `created`.
    pub created_at: BTreeSet<String>,
    /// The addresses at which something was destroyed, but for what had been replaced before.
    pub destroyed: BTreeSet<String>,
    /// How many operations were done when the last one was that no version shows by what it holds: a change in place,
    /// or the end of what a replacement at the same address came before. 0 where there was none.
    pub unseen_at: u64,
    /// The first errors.
    pub errors: Vec<Diagnostic>,
}

impl Tally {
    /// Adds what was said.
    pub fn add(&mut self, event: Event) {
        match event {
            Event::Version { tool, version } => self.tool = Some((tool, version)),
            Event::Planned(change) if !matches!(change.action.as_str(), "noop" | "no-op" | "read") => {
                self.total += if change.action == "replace" { 2 } else { 1 };
                if self.planned.len() < MOST {
                    self.planned.push(change);
                }
            }
            Event::Drift(change) if self.drift.len() < MOST => self.drift.push(change),
            Event::Summary(summary) if summary.operation == "plan" => self.plan = Some(summary),
            Event::Summary(summary) => self.done = Some(summary),
            Event::Completed(hook) if hook.action != "read" => {
                self.completed += 1;
                self.complete(hook);
            }
            Event::Errored(_) => self.failed += 1,
            Event::Diagnostic(diagnostic) if diagnostic.is_error && self.errors.len() < MOST_ERRORS => {
                self.errors.push(diagnostic);
            }
            _ => {}
        }
    }

    fn complete(&mut self, hook: Hook) {
        match hook.action.as_str() {
            // Of a replacement that creates before it destroys, the one that is destroyed has another ID, which is not told.
            "create" if self.created.len() < MOST => {
                let Hook { address, resource_type, id, .. } = hook;
                self.created_at.insert(address.clone());
                self.created.push(Created { address, resource_type, id });
            }
            "delete" if self.destroyed.len() < MOST && !self.created_at.contains(&hook.address) => {
                self.destroyed.insert(hook.address);
            }
            _ => self.unseen_at = self.completed,
        }
    }

    /// The addresses at which there is nothing any more, as what was there was destroyed and not replaced.
    pub fn gone(&self) -> BTreeSet<&str> {
        self.destroyed
            .iter()
            .map(String::as_str)
            .filter(|address| !self.created_at.contains(*address))
            .collect()
    }

    /// What the plan changes; nothing is known before it is made.
    pub fn counts(&self) -> Option<Counts> {
        let plan = self.plan.as_ref()?;
        let replaced = self.planned.iter().filter(|change| change.action == "replace").count();
        Some(Counts {
            add: plan.add,
            change: plan.change,
            remove: plan.remove,
            replace: u64::try_from(replaced).unwrap_or(u64::MAX),
            import: plan.import,
            forget: plan.forget,
        })
    }

    /// The changes that are told with a run, sorted by address, and how many more the plan makes.
    pub fn told_changes(&self) -> (Vec<Change>, u64) {
        let mut planned: Vec<&Change> = self.planned.iter().collect();
        planned.sort_by(|a, b| a.address.cmp(&b.address));
        let omitted = u64::try_from(planned.len().saturating_sub(MOST_TOLD)).unwrap_or(u64::MAX);
        (planned.into_iter().take(MOST_TOLD).cloned().collect(), omitted)
    }

    /// Tells whether an error says this, in its summary or details.
    pub fn says(&self, words: &str) -> bool {
        self.errors.iter().any(|error| error.summary.contains(words) || error.detail.contains(words))
    }

    /// The first error in one line, for people.
    pub fn first_error(&self) -> Option<String> {
        let error = self.errors.first()?;
        let mut text = error.summary.clone();
        if let Some(place) = error.address.as_ref().or(error.place.as_ref()) {
            text = format!("{place}: {text}");
        }
        if let Some(line) = error.detail.lines().map(str::trim).find(|line| !line.is_empty()) {
            text = format!("{text}: {line}");
        }
        Some(text.chars().take(500).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_by_address_and_not_more_than_anybody_reads() {
        let mut tally = Tally::default();
        for number in (0..203).rev() {
            let (reason, action) = (Some("tainted".to_owned()), "replace".to_owned());
            let address = format!("a.b[{number:03}]");
            tally.add(Event::Planned(Change { address, resource_type: "a".to_owned(), action, reason }));
        }
        let (told, omitted) = tally.told_changes();
        assert_eq!((told.len(), omitted), (200, 3));
        assert_eq!((told[0].address.as_str(), told[199].address.as_str()), ("a.b[000]", "a.b[199]"));
        assert_eq!(told[0].action_reason(), Some("replace_because_tainted"));
    }

    #[test]
    fn what_is_replaced_is_not_gone_whichever_way_round() {
        let mut tally = Tally::default();
        let acts = [("a", "delete"), ("b", "delete"), ("b", "create"), ("c", "create"), ("c", "delete")];
        for (address, action) in acts {
            tally.add(Event::Completed(Hook {
                address: address.to_owned(),
                resource_type: "t".to_owned(),
                action: action.to_owned(),
                id: None,
            }));
        }
        assert_eq!(tally.gone(), BTreeSet::from(["a"]));
        assert_eq!(tally.completed, 5);
    }

    #[test]
    fn what_no_version_shows_is_an_update_or_the_end_of_what_was_replaced_before() {
        let cases: [(&[(&str, &str)], u64); 4] = [
            (&[("a", "create"), ("b", "delete"), ("c", "read")], 0),
            (&[("a", "delete"), ("a", "create")], 0),
            (&[("a", "update"), ("b", "create")], 1),
            (&[("b", "update"), ("a", "create"), ("a", "delete"), ("c", "create")], 3),
        ];
        for (acts, unseen_at) in cases {
            let mut tally = Tally::default();
            for (address, action) in acts {
                tally.add(Event::Completed(Hook {
                    address: (*address).to_owned(),
                    resource_type: "t".to_owned(),
                    action: (*action).to_owned(),
                    id: None,
                }));
            }
            assert_eq!(tally.unseen_at, unseen_at, "{acts:?}");
        }
    }
}
