//! Shows runs.

use rezus_core::base::Timestamp;
use rezus_core::client::{
    self, NodeGroupChanges, PlannedChange, RunSpec, RunStatus, RunSummary, UnrecordedResource,
};
use rezus_core::declared::Serial;
use rezus_core::declared::store::VersionMeta;
use rezus_core::runs::{Counts, Operation, RunFacts, RunRecord};

use super::of_runs;
use crate::kube::age::age;
use crate::kube::item::{Draft, Row};
use crate::kube::kinds::RUN;
use crate::kube::object::{Object, seconds};

/// What is known of a tenant's runs.
#[derive(Clone, Debug, Default)]
pub struct KnownRuns {
    /// All that are kept, oldest first.
    pub records: Vec<RunRecord>,
    /// Whether the tenant has a configuration to run.
    pub is_configured: bool,
    /// When and why drift was last not looked for, where it has not been since.
    pub skipped: Option<(Timestamp, String)>,
}

impl KnownRuns {
    /// The run that wrote a version, by the name under which it was written.
    pub(super) fn writer(&self, written_by: &str) -> Option<&str> {
        let is_own = |facts: &RunFacts| {
            written_by.strip_prefix("run:") == Some(facts.name.as_str())
                || facts.principals.iter().any(|principal| principal == written_by)
        };
        let found = self.records.iter().map(RunRecord::facts).find(|facts| is_own(facts));
        found.map(|facts| facts.name.as_str())
    }

    /// In one word, how the last run ended.
    pub(super) fn last_end(&self) -> Option<&'static str> {
        let ended = self.records.iter().rev().find(|run| run.phase().is_end());
        ended.map(|run| run.phase().as_str())
    }
}

/// Shows a Run of a tenant whose state has these versions.
pub fn run(record: &RunRecord, versions: &[VersionMeta]) -> Draft {
    let facts = record.facts();
    let (tenant, name) = (record.tenant().as_str(), facts.name.as_str());
    let operation = facts.request.operation;
    let mut object = Object::bare(&RUN, name).within(tenant);
    for (key, value) in &facts.labels {
        object.given_label(key, value);
    }
    object.label("rezuscloud.io/tenant", Some(tenant));
    object.label("rezuscloud.io/operation", Some(operation.as_str()));
    object.member("spec", &spec(facts));
    object.member("status", &status(record));
    let queued = Timestamp::from_millis(facts.queued_at);
    let object = object.created(facts.uid.clone(), queued).of_generation(1);
    let left = facts.version_after.and_then(|version| {
        versions.iter().find(|meta| meta.version.get() == version)?.serial.map(Serial::get)
    });
    let cells =
        Row::default().text(Some(name)).text(Some(operation.as_str())).text(Some(record.phase().as_str()));
    let cells = match counts(facts) {
        Some(counts) => cells.text(Some(&format!("+{} ~{} -{}", counts.add, counts.change, counts.remove))),
        None => cells.unknown(),
    };
    let cells = cells.age(queued);
    let cells = match facts.started_at.map(Timestamp::from_millis) {
        Some(started) => match facts.finished_at.map(Timestamp::from_millis) {
            Some(finished) => cells.age(started).text(Some(&age(started, finished))),
            None => cells.age(started).age(started),
        },
        None => cells.text(None).text(None),
    };
    let cells =
        cells.text(left.map(|serial| serial.to_string()).as_deref()).text(Some(&facts.request.requested_by));
    let fields = vec![("status.phase", Some(record.phase().as_str().to_owned()))];
    Draft::new(&RUN, object, fields, cells)
}

/// What a plan changes; of a drift check, what it found to be otherwise than the state has it.
fn counts(facts: &RunFacts) -> Option<Counts> {
    let counts = facts.counts?;
    // A check that looked at the configuration too has a plan that would put right what has drifted.
    if facts.request.operation != Operation::Drift || !facts.changes.is_empty() {
        return Some(counts);
    }
    let gone = facts.drift.iter().filter(|drifted| drifted.action == "delete").count();
    let count = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
    Some(Counts { change: count(facts.drift.len() - gone), remove: count(gone), ..counts })
}

fn spec(facts: &RunFacts) -> RunSpec {
    let request = &facts.request;
    let texts = |targets: &[rezus_core::runs::Target]| targets.iter().map(ToString::to_string).collect();
    RunSpec {
        operation: request.operation.as_str().to_owned(),
        approval: request.operation.changes().then(|| facts.approval.as_str().to_owned()),
        variables: request.variables.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        targets: texts(&request.targets),
        replace: texts(&request.replace),
        reason: request.reason.clone(),
        requested_by: Some(request.requested_by.clone()),
    }
}

fn status(record: &RunRecord) -> RunStatus {
    let facts = record.facts();
    let time = |millis: i64| Timestamp::from_millis(millis).to_string();
    let unrecorded = of_runs::unrecorded(record);
    RunStatus {
        phase: Some(record.phase().as_str().to_owned()),
        reason: facts.reason.clone(),
        message: facts.message.clone(),
        tool: facts.tool.as_ref().map(|tool| tool.kind.as_str().to_owned()),
        tool_version: facts.tool.as_ref().map(|tool| tool.version.clone()),
        config_digest: facts.config_digest.clone(),
        config_revision: facts.config_revision.clone(),
        state_version_before: facts.version_before,
        state_version_after: facts.version_after,
        summary: counts(facts).map(|counts| summary(facts, counts)),
        changes: facts
            .changes
            .iter()
            .map(|change| PlannedChange {
                address: change.address.clone(),
                action: change.action.clone(),
                reason: change.action_reason().map(str::to_owned),
            })
            .collect(),
        changes_omitted: Some(facts.changes_omitted).filter(|omitted| *omitted > 0),
        exit_code: facts.exit_code,
        queued_at: Some(time(facts.queued_at)),
        started_at: facts.started_at.map(time),
        finished_at: facts.finished_at.map(time),
        approved_by: facts.approved_by.clone(),
        coalesced_into: facts.coalesced_into.as_ref().map(ToString::to_string),
        unrecorded: unrecorded
            .iter()
            .map(|created| UnrecordedResource {
                address: created.address.clone(),
                resource_type: created.resource_type.clone(),
                id: created.id.clone(),
            })
            .collect(),
        conditions: conditions(record),
    }
}

/// What is to be said of a run beside its phase.
fn conditions(record: &RunRecord) -> Vec<client::Condition> {
    let facts = record.facts();
    let Some((status, reason, message)) = of_runs::how_to_record(&[record]) else {
        return Vec::new();
    };
    let since = Timestamp::from_millis(facts.finished_at.unwrap_or(facts.queued_at));
    vec![client::Condition {
        kind: "UnrecordedResources".to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: seconds(since),
        observed_generation: None,
        source: "run".to_owned(),
    }]
}

fn summary(facts: &RunFacts, counts: Counts) -> RunSummary {
    RunSummary {
        add: Some(counts.add),
        change: Some(counts.change),
        remove: Some(counts.remove),
        replace: Some(counts.replace),
        import: Some(counts.import),
        forget: Some(counts.forget),
        node_groups: facts
            .groups
            .iter()
            .map(|group| NodeGroupChanges {
                name: group.name.clone(),
                add: Some(group.add),
                remove: Some(group.remove),
                replace: Some(group.replace),
            })
            .collect(),
    }
}
