//! Shows tenants: what their states declare as a whole, and what hinders knowing it.

use std::collections::BTreeMap;

use rezus_core::base::Timestamp;
use rezus_core::declared::projection::{Lifetime, SpecFields};
use rezus_core::declared::resource::Cluster;
use rezus_core::declared::store::{Content, RefusalRecord, TenantRecord, VersionMeta};
use rezus_core::declared::{Lineage, Serial};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::run::KnownRuns;
use super::{of_runs, of_state, uid};
use crate::kube::credentials::{self, Validity};
use crate::kube::item::{Draft, Row};
use crate::kube::kinds::{NAMESPACE, TENANT};
use crate::kube::object::{Condition, Object};
use crate::kube::observed;
use crate::pulls::Standing;

/// What of a tenant's state can be told.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// All of it.
    All {
        /// The cluster as a whole.
        cluster: &'a Cluster,
        /// How many machines are declared.
        machines: usize,
        /// How many node groups.
        node_groups: usize,
    },
    /// There is no state.
    Nothing,
    /// The state is encrypted: counts are absent, never zero.
    Encrypted(&'a Standing),
    /// The state is kept, but not as it was written.
    Damaged,
}

/// What is told of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// What the store knows of it.
    pub record: &'a TenantRecord,
    /// What its state declares.
    pub known: Known<'a>,
    /// Since when its cluster is declared.
    pub lifetime: Option<&'a Lifetime>,
    /// The last write that was refused, if none was accepted since.
    pub refused: Option<&'a RefusalRecord>,
    /// What is known of its runs.
    pub runs: &'a KnownRuns,
    /// How long the credentials are good with which its cluster is reached.
    pub validity: &'a [Validity],
    /// The labels that its operators gave it.
    pub labels: &'a BTreeMap<String, String>,
    /// The time.
    pub now: Timestamp,
    /// The conditions it had when it was shown last: what holds on holds since then.
    pub before: &'a [Condition],
}

impl Known<'_> {
    /// The word of the column Phase.
    const fn phase(&self) -> &'static str {
        match self {
            Self::All { .. } => "Available",
            Self::Nothing => "NoState",
            Self::Encrypted(Standing::Waiting) => "Decrypting",
            Self::Encrypted(_) => "Encrypted",
            Self::Damaged => "Damaged",
        }
    }
}

/// Returns a Tenant's UID.
pub fn tenant_uid(record: &TenantRecord, lifetime: Option<&Lifetime>) -> String {
    lifetime.map_or_else(|| record_uid(record, "Tenant"), |lifetime| lifetime.history.uid.clone())
}

/// What identifies a tenant that was never written: it is another one when it is created anew.
fn record_uid(record: &TenantRecord, kind: &str) -> String {
    uid(&[kind, record.name.as_str(), &record.created_at.as_millis().to_string()])
}

/// Shows a Tenant, and returns the conditions that it has now.
pub fn tenant(told: Told<'_>) -> (Draft, Vec<Condition>) {
    let Told { record, known, lifetime, .. } = told;
    let fields = match known {
        Known::All { cluster, .. } => cluster.spec_fields(),
        Known::Nothing | Known::Encrypted(_) | Known::Damaged => SpecFields::new(),
    };
    let name = record.name.as_str();
    let mut object = Object::new(&TENANT, name, fields);
    // What no mapping knows is said of the state.
    let unmapped = object.take_field("unmapped");
    for (key, value) in told.labels {
        object.given_label(key, value);
    }
    object.label("rezuscloud.io/tenant", Some(name));
    let head = record.head.as_ref().filter(|head| head.content != Content::Tombstone);
    let mut cells = Row::default().text(Some(name)).text(Some(known.phase()));
    if let Known::All { machines, node_groups, .. } = known {
        object.field("nodeGroups", &node_groups);
        object.field("machines", &machines);
        cells = cells.number(count(machines));
    } else {
        cells = cells.unknown();
    }
    let conditions = conditions(told, head);
    object.conditions(conditions.iter().cloned());
    if let Some(head) = head {
        object.field("state", &State::of(head, unmapped));
        object.annotate("rezuscloud.io/state-version", head.version.to_string());
    }
    let created = lifetime.map_or(record.created_at, |lifetime| lifetime.created_at);
    let object = match lifetime {
        Some(lifetime) => object.over_time(Some(lifetime)),
        None => object.created(record_uid(record, "Tenant"), record.created_at),
    };
    cells = cells.observed().age(created);
    cells = match known {
        Known::All { node_groups, .. } => cells.number(count(node_groups)),
        Known::Nothing | Known::Encrypted(_) | Known::Damaged => cells.unknown(),
    };
    let cells = cells.number(count(told.runs.records.len())).text(told.runs.last_end()).observed();
    let draft = Draft::new(&TENANT, object, Vec::new(), cells);
    (draft.until_observed(observed::tenant_not_observed()), conditions)
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// What is to be said of the state, and what runs say.
fn conditions(told: Told<'_>, head: Option<&VersionMeta>) -> Vec<Condition> {
    let Told { record, known, refused, before, .. } = told;
    let since = head.map_or(record.created_at, |head| head.written_at);
    let mut conditions = Vec::new();
    let mut say = |kind: &'static str, holds: bool, reason: &'static str, message: String, at: Timestamp| {
        conditions.push(since_when(of_state(kind, holds, reason, message, at), before));
    };
    match known {
        Known::All { cluster, .. } => {
            say("SpecAvailable", true, "Projected", String::new(), since);
            let types: Vec<String> =
                cluster.unmapped.iter().map(|(name, count)| format!("{name} ({count})")).collect();
            let (complete, reason) =
                if types.is_empty() { (true, "AllTypesKnown") } else { (false, "UnknownTypes") };
            say("MappingComplete", complete, reason, types.join(", "), since);
            if head.is_some_and(|head| head.content == Content::Encrypted) {
                say("StateEncrypted", true, "Envelope", String::new(), since);
            } else {
                say("StateUnencrypted", true, "InClear", String::new(), since);
            }
        }
        Known::Encrypted(standing) => {
            let (reason, message) = match standing {
                Standing::NoKey => (
                    "Encrypted",
                    "the state is encrypted and its key is not here: what it declares is not known"
                        .to_owned(),
                ),
                Standing::Waiting => {
                    ("Decrypting", "the state is encrypted, and is being decrypted".to_owned())
                }
                Standing::Failed(why) => {
                    ("DecryptFailed", format!("the state is encrypted, and cannot be decrypted: {why}"))
                }
            };
            say("SpecAvailable", false, reason, message, since);
            say("StateEncrypted", true, "Envelope", String::new(), since);
        }
        Known::Damaged => {
            let message =
                "what is kept of the state is damaged: roll back to a version that is not, or restore a backup"
                    .to_owned();
            say("SpecAvailable", false, "Damaged", message, since);
        }
        Known::Nothing => {
            let message = "no state was written, or it was deleted".to_owned();
            say("SpecAvailable", false, "NoState", message, since);
        }
    }
    if let Some((holds, reason, message)) = credentials::judged(told.validity, told.now) {
        say("CredentialsCurrent", holds, reason, message, since);
    }
    if let Some(refusal) = refused {
        let message = format!(
            "the last {} by {} was refused ({}): {}",
            refusal.operation, refusal.who, refusal.code, refusal.reason
        );
        say("WriteRefused", true, "Refused", message, refusal.at);
    }
    let version = head.map(|head| head.version.get());
    let of_runs = of_runs::conditions(told.runs, version, record.created_at);
    conditions.extend(of_runs.into_iter().map(|condition| since_when(condition, before)));
    conditions
}

/// A condition that held already holds since then.
fn since_when(mut condition: Condition, before: &[Condition]) -> Condition {
    let same = before.iter().find(|old| old.kind == condition.kind && old.holds == condition.holds);
    if let Some(old) = same {
        condition.last_transition_time.clone_from(&old.last_transition_time);
    }
    condition
}

/// Shows a tenant as the namespace of its objects.
pub fn namespace(record: &TenantRecord) -> Draft {
    let name = record.name.as_str();
    let mut object = Object::bare(&NAMESPACE, name);
    object.label("kubernetes.io/metadata.name", Some(name));
    object.member("spec", &json!({}));
    object.phase("Active");
    let object = object.created(record_uid(record, "Namespace"), record.created_at);
    let cells = Row::default().text(Some(name)).text(Some("Active")).age(record.created_at);
    Draft::new(&NAMESPACE, object, vec![("status.phase", Some("Active".to_owned()))], cells)
}

/// `spec.state` of a Tenant.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct State {
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    serial: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lineage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    writer: Option<String>,
    encrypted: bool,
    size_bytes: u64,
    written_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    resources: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unmapped: Option<Box<RawValue>>,
}

impl State {
    fn of(head: &VersionMeta, unmapped: Option<Box<RawValue>>) -> Self {
        Self {
            version: head.version.get(),
            serial: head.serial.map(Serial::get),
            lineage: head.lineage.as_ref().map(Lineage::to_string).filter(|lineage| !lineage.is_empty()),
            writer: head.writer.clone(),
            encrypted: head.content == Content::Encrypted,
            size_bytes: head.size_bytes,
            written_at: head.written_at.to_string(),
            resources: match head.content {
                Content::Plain { objects, .. } => Some(objects),
                Content::Encrypted | Content::Tombstone => None,
            },
            unmapped,
        }
    }
}
