//! What a tenant's runs say of it: conditions that are made from what tofu or terraform reported, and from nothing else.

use rezus_core::base::Timestamp;
use rezus_core::runs::{Created, Drifted, Operation, Phase, RunFacts, RunRecord};

use super::run::KnownRuns;
use crate::kube::object::{Condition, seconds};

/// How many resources a message names.
const NAMED: usize = 10;

/// Makes the conditions of a tenant whose newest version is `head`.
pub(super) fn conditions(runs: &KnownRuns, head: Option<u64>, created: Timestamp) -> Vec<Condition> {
    drifted(runs, head, created).into_iter().chain(unrecorded_resources(runs)).collect()
}

fn of_runs(
    kind: &'static str,
    holds: &'static str,
    reason: &'static str,
    message: String,
    since: Timestamp,
) -> Condition {
    Condition {
        kind,
        holds,
        reason: reason.into(),
        message,
        last_transition_time: seconds(since),
        source: "run",
    }
}

/// Whether the resources are as the state has them; nothing where nobody has anything to run.
fn drifted(runs: &KnownRuns, head: Option<u64>, created: Timestamp) -> Option<Condition> {
    let checks = || runs.records.iter().filter(|run| run.facts().request.operation == Operation::Drift);
    if !runs.is_configured && checks().next().is_none() {
        return None;
    }
    let ended = |run: &&RunRecord| run.phase().is_end() && run.phase() != Phase::Coalesced;
    let newest = checks().rev().find(ended);
    let evaluated = checks().rev().find(|run| run.phase() == Phase::Planned);
    let since = evaluated.map(ended_at);
    let unknown = |why: String, at: Timestamp| {
        let message = match since {
            Some(since) => format!("not evaluated since {since}: {why}"),
            None => format!("never evaluated: {why}"),
        };
        Some(of_runs("Drifted", "Unknown", "NotEvaluated", message, at))
    };
    if let Some((at, why)) = &runs.skipped {
        return unknown(format!("skipped at {at}: {why}"), *at);
    }
    let Some(newest) = newest else {
        return unknown("no drift check has ended yet".to_owned(), created);
    };
    let facts = newest.facts();
    if newest.phase() != Phase::Planned {
        let why = facts.message.as_deref().unwrap_or("it does not say why");
        let phase = newest.phase().as_str();
        return unknown(format!("the run {} is {phase}: {why}", facts.name), ended_at(newest));
    }
    if facts.version_before != head {
        return unknown("the state has changed since".to_owned(), ended_at(newest));
    }
    let at = ended_at(newest);
    let pending = pending(facts);
    Some(
        if facts.drift.is_empty()
            && let Some(pending) = pending
        {
            let message =
                format!("the run {} found everything as the state has it, but {pending}", facts.name);
            of_runs("Drifted", "True", "PendingChanges", message, at)
        } else if facts.drift.is_empty() {
            let message = format!("the run {} found everything as the state has it", facts.name);
            of_runs("Drifted", "False", "InSync", message, at)
        } else {
            let count = facts.drift.len();
            let noun = if count == 1 { "resource is" } else { "resources are" };
            let message = format!(
                "{count} {noun} not as the state has it, as the run {} found: {}",
                facts.name,
                listed(facts.drift.iter().map(otherwise), count)
            );
            let message = match pending {
                Some(pending) => format!("{message}; and {pending}"),
                None => message,
            };
            of_runs("Drifted", "True", "Drifted", message, at)
        },
    )
}

/// What the configuration would change of resources that have not drifted; nothing where that was not looked at.
fn pending(facts: &RunFacts) -> Option<String> {
    let count = facts.pending();
    let is_drifted = |address: &str| facts.drift.iter().any(|drifted| drifted.address == address);
    let changes = facts.changes.iter().filter(|change| !is_drifted(&change.address));
    let told = changes.map(|change| format!("{} ({})", change.address, change.action));
    let noun = if count == 1 { "resource" } else { "resources" };
    let all = usize::try_from(count).unwrap_or(usize::MAX);
    (count > 0).then(|| format!("the configuration changes {count} {noun}: {}", listed(told, all)))
}

fn ended_at(run: &RunRecord) -> Timestamp {
    Timestamp::from_millis(run.facts().finished_at.unwrap_or(run.facts().queued_at))
}

fn otherwise(drifted: &Drifted) -> String {
    let Drifted { address, action, attributes } = drifted;
    if attributes.is_empty() {
        format!("{address} ({action})")
    } else {
        format!("{address} ({action}: {})", listed(attributes.iter().cloned(), attributes.len()))
    }
}

/// The first of several texts, and how many more there are.
fn listed(texts: impl Iterator<Item = String>, count: usize) -> String {
    let mut shown: Vec<String> = texts.take(NAMED).collect();
    if let Some(more) = count.checked_sub(NAMED).filter(|more| *more > 0) {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// What a run created, no version has, and nobody has taken care of.
pub(super) fn unrecorded(run: &RunRecord) -> &[Created] {
    let facts = run.facts();
    if facts.dismissed_by.is_some() { &[] } else { &facts.unrecorded }
}

fn unrecorded_resources(runs: &KnownRuns) -> Option<Condition> {
    let records: Vec<&RunRecord> = runs.records.iter().filter(|run| !unrecorded(run).is_empty()).collect();
    let since = ended_at(records.first()?);
    let (holds, reason, message) = how_to_record(&records)?;
    Some(of_runs("UnrecordedResources", holds, reason, message, since))
}

/// Says what runs created that no version has, and how it comes to be in one; and of what it is not known. Nothing where
/// there is none. Gives a condition's status, reason and message.
pub(super) fn how_to_record(runs: &[&RunRecord]) -> Option<(&'static str, &'static str, String)> {
    let (mut lines, mut unknown, mut blocks) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs {
        for Created { address, resource_type, id } in unrecorded(run) {
            let id = id.as_deref();
            let told = id.map_or_else(|| "ID unknown".to_owned(), |id| format!("ID {id}"));
            let line = format!("{address} ({resource_type}, {told}) by the run {}", run.facts().name);
            if run.facts().unread {
                unknown.push(line);
            } else {
                lines.push(line);
                blocks.push(import_block(address, id));
            }
        }
    }
    let (some, many) = (lines.len(), unknown.len());
    let of_unknown = || {
        format!(
            "created, and not known to be in the newest version of the state, which could not be read yet: {}",
            listed(unknown.into_iter(), many)
        )
    };
    if some == 0 {
        return (many > 0).then(|| ("Unknown", "StateNotRead", of_unknown()));
    }
    let mut message = format!(
        "created, and in no version of the state: {}. To have them in the state, put this into the configuration and apply \
         it; or say that they are taken care of: `rezus-server run dismiss`\n{}",
        listed(lines.into_iter(), some),
        blocks.join("\n")
    );
    if many > 0 {
        message = format!("{message}\n{}", of_unknown());
    }
    Some(("True", "NotInState", message))
}

/// The block by which tofu and terraform take a resource into the state as it is.
fn import_block(address: &str, id: Option<&str>) -> String {
    match id {
        Some(id) => format!("import {{\n  to = {address}\n  id = {}\n}}", quoted(id)),
        None => format!("import {{\n  to = {address}\n  id = \"\" # was not told: ask the provider\n}}"),
    }
}

/// A text as the configuration language has it (HCL, "Quoted Templates"): nothing in it is taken for a template.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '$' | '%' if chars.peek() == Some(&'{') => quoted.extend([char, char]),
            char if char.is_control() => {
                let escaped = format!("\\u{:04x}", u32::from(char));
                quoted.push_str(&escaped);
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_block_can_be_pasted() {
        assert_eq!(
            import_block("module.a[\"x\"].aws_instance.b[0]", Some("i-0 \"${x}\" %{y} $z \\")),
            "import {\n  to = module.a[\"x\"].aws_instance.b[0]\n  id = \"i-0 \\\"$${x}\\\" %%{y} $z \\\\\"\n}"
        );
        assert!(import_block("a.b", None).contains("ask the provider"));
    }

    #[test]
    fn a_long_list_is_cut() {
        let names = (0..12).map(|n| n.to_string());
        assert_eq!(listed(names, 12), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
