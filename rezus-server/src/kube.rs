//! What a state declares in the form of Kubernetes objects: `metadata` and `spec`, and what is to be said about the
//! state itself as conditions in `status`.

mod routes;

use std::collections::BTreeMap;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::mapping::extract::Kind;
use rezus_core::declared::mapping::{Origin, Provider};
use rezus_core::declared::projection::{Change, FieldChange, ResourceChange, ResourceKind, SpecFields, diff};
use rezus_core::declared::projector::Lifetime;
use rezus_core::declared::resource::{Machine, NodeGroup, Projection, Role};
use rezus_core::declared::store::{Content, TenantRecord, VersionMeta};
use rezus_core::declared::{Lineage, Serial};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The API group and version.
pub const API_VERSION: &str = "rezuscloud.io/v1alpha1";

pub use routes::{PATHS, routes};

/// One object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: Spec,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Clone, Debug, Serialize)]
struct Status {
    conditions: Vec<Condition>,
}

/// A condition made from the state alone; what was observed has others.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "status")]
    holds: &'static str,
    reason: &'static str,
    message: String,
    last_transition_time: String,
    source: &'static str,
}

/// In which version of which tenant's state an object is declared.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredIn<'a> {
    /// The tenant.
    pub tenant: &'a str,
    /// The version.
    pub version: &'a VersionMeta,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

/// The fields that are present, each a JSON text of its own: numbers keep their digits.
#[derive(Clone, Debug)]
struct Spec(Vec<(&'static str, Box<RawValue>)>);

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (field, value) in &self.0 {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

/// A list of objects of several kinds, as `kubectl get -o json` prints it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct List {
    api_version: &'static str,
    kind: &'static str,
    items: Vec<Object>,
}

/// What of an object is read back, to compare what was expected.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Expected {
    /// The objects.
    pub items: Vec<Value>,
}

impl Object {
    fn new(kind: &'static str, name: &str, fields: SpecFields) -> Self {
        // The fields are JSON already.
        let raw = |(field, value)| RawValue::from_string(value).ok().map(|value| (field, value));
        let metadata = Metadata { name: name.to_owned(), ..Metadata::default() };
        let spec = Spec(fields.into_iter().filter_map(raw).collect());
        Self { api_version: API_VERSION, kind, metadata, spec, status: None }
    }

    /// Says who the object is, and since when.
    #[must_use]
    pub fn over_time(mut self, lifetime: Option<&Lifetime>) -> Self {
        if let Some(Lifetime { history, created_at, changed_at }) = lifetime {
            self.metadata.uid = Some(history.uid.clone());
            self.metadata.generation = Some(history.generation());
            self.metadata.creation_timestamp = Some(seconds(*created_at));
            // Microseconds: below 2^53, so that tools which make numbers of it lose nothing.
            self.metadata.resource_version = Some((changed_at.as_millis() * 1_000).to_string());
        }
        self
    }

    /// Puts the object into its tenant's namespace.
    #[must_use]
    pub fn declared_in(mut self, declared: DeclaredIn<'_>) -> Self {
        self.metadata.namespace = Some(declared.tenant.to_owned());
        self.label("rezuscloud.io/tenant", Some(declared.tenant));
        let version = declared.version.version.to_string();
        self.metadata.annotations.insert("rezuscloud.io/state-version", version);
        self
    }

    /// Adds a field behind those of the projection.
    fn field(&mut self, name: &'static str, value: &impl Serialize) {
        if let Ok(value) = serde_json::value::to_raw_value(value) {
            self.spec.0.push((name, value));
        }
    }

    fn condition(
        &mut self,
        kind: &'static str,
        holds: bool,
        reason: &'static str,
        message: String,
        since: String,
    ) {
        let condition = Condition {
            kind,
            holds: if holds { "True" } else { "False" },
            reason,
            message,
            last_transition_time: since,
            source: "state",
        };
        self.status.get_or_insert_with(|| Status { conditions: Vec::new() }).conditions.push(condition);
    }

    /// Adds a label, unless its value is none that Kubernetes takes.
    fn label(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| is_label_value(value)) {
            self.metadata.labels.insert(name, value.to_owned());
        }
    }
}

/// A time as Kubernetes has it in metadata: RFC 3339 to the second.
fn seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// Tells whether a text can be a label's value: up to 63 of letters, digits, `-`, `_` and `.`, a letter or digit at both
/// ends.
fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && is_end(bytes.first())
        && is_end(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// Shows a Machine.
pub fn machine(machine: &Machine) -> Object {
    let mut object = Object::new("Machine", &machine.object_name, machine.spec_fields());
    object.label("rezuscloud.io/role", machine.role.map(Role::as_str));
    object.label("rezuscloud.io/node-group", machine.node_group.as_deref());
    object.label("rezuscloud.io/provider", Some(&machine.provider));
    object.metadata.annotations.insert("rezuscloud.io/address", machine.address.to_string());
    object
}

/// Says what is to be said of a machine's state: in which version it is read off.
pub fn machine_conditions(object: &mut Object, machine: &Machine, declared: DeclaredIn<'_>) {
    let since = || seconds(declared.version.written_at);
    if machine.tainted {
        let message = "the state marks it to be replaced by the next apply".to_owned();
        object.condition("Tainted", true, "MarkedInState", message, since());
    }
    if !machine.problems.is_empty() {
        let fields: Vec<&str> = machine.problems.iter().map(|problem| problem.field.as_str()).collect();
        let message = format!("could not be read: {}", fields.join(", "));
        object.condition("MappingComplete", false, "FieldsUnreadable", message, since());
    }
}

/// What of a tenant's state can be told.
#[derive(Clone, Copy, Debug)]
pub enum Known<'a> {
    /// All of it.
    All(&'a Projection),
    /// There is no state.
    Nothing,
    /// The state is encrypted: counts are absent, never zero.
    Encrypted,
    /// The state is kept, but not as it was written.
    Damaged,
}

/// Shows a Tenant.
pub fn tenant(record: &TenantRecord, known: Known<'_>) -> Object {
    let fields = match known {
        Known::All(projection) => projection.cluster.spec_fields(),
        Known::Nothing | Known::Encrypted | Known::Damaged => SpecFields::new(),
    };
    let name = record.name.as_str();
    let mut object = Object::new("Tenant", name, fields);
    // What no mapping knows is said of the state.
    let unmapped = object.spec.0.iter().position(|(field, _)| *field == "unmapped");
    let unmapped = unmapped.map(|place| object.spec.0.remove(place).1);
    object.label("rezuscloud.io/tenant", Some(name));
    let head = record.head.as_ref().filter(|head| head.content != Content::Tombstone);
    let since = || seconds(head.map_or(record.created_at, |head| head.written_at));
    match known {
        Known::All(projection) => {
            object.field("nodeGroups", &projection.node_groups.len());
            object.field("machines", &projection.machines.len());
            object.condition("SpecAvailable", true, "Projected", String::new(), since());
            let types: Vec<String> =
                projection.cluster.unmapped.iter().map(|(name, count)| format!("{name} ({count})")).collect();
            let (complete, reason) =
                if types.is_empty() { (true, "AllTypesKnown") } else { (false, "UnknownTypes") };
            object.condition("MappingComplete", complete, reason, types.join(", "), since());
            object.condition("StateUnencrypted", true, "InClear", String::new(), since());
        }
        Known::Encrypted => {
            let message =
                "the state is encrypted and its key is not here: what it declares is not known".to_owned();
            object.condition("SpecAvailable", false, "Encrypted", message, since());
            object.condition("StateEncrypted", true, "Envelope", String::new(), since());
        }
        Known::Damaged => {
            let message =
                "what is kept of the state is damaged: roll back to a version that is not, or restore a \
                           backup"
                    .to_owned();
            object.condition("SpecAvailable", false, "Damaged", message, since());
        }
        Known::Nothing => {
            let message = "no state was written, or it was deleted".to_owned();
            object.condition("SpecAvailable", false, "NoState", message, since());
        }
    }
    if let Some(head) = head {
        object.field("state", &State::of(head, unmapped));
        object.metadata.annotations.insert("rezuscloud.io/state-version", head.version.to_string());
    }
    object
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

/// Shows a Provider: a mapping. Mappings are configuration, not declared by a state.
pub fn provider(provider: &Provider) -> Object {
    let mut object = Object::new("Provider", &provider.name, SpecFields::new());
    object.field("sources", &provider.sources);
    let types: Vec<_> = provider
        .types
        .iter()
        .filter_map(|(name, kind)| {
            let kind = match kind.as_ref()? {
                Kind::Machine | Kind::TalosMachine => "Machine",
                Kind::Cluster => "Tenant",
            };
            Some(json!({ "type": name, "kind": kind }))
        })
        .collect();
    object.field("resourceTypes", &types);
    let origin = match &provider.origin {
        Origin::BuiltIn => "built in",
        Origin::File(path) => path,
    };
    object.field("origin", &origin);
    object
}

/// Shows a `NodeGroup`.
pub fn node_group(group: &NodeGroup) -> Object {
    let mut object = Object::new("NodeGroup", &group.object_name, group.spec_fields());
    object.label("rezuscloud.io/role", group.role.map(Role::as_str));
    object.label("rezuscloud.io/provider", group.provider.as_deref());
    object
}

/// Shows all that a projection declares: the tenant under `name`, its node groups, its machines.
pub fn list(name: &str, projection: &Projection) -> List {
    let mut tenant = Object::new("Tenant", name, projection.cluster.spec_fields());
    tenant.label("rezuscloud.io/tenant", Some(name));
    let items = std::iter::once(tenant)
        .chain(projection.node_groups.iter().map(node_group))
        .chain(projection.machines.iter().map(machine));
    List { api_version: "v1", kind: "List", items: items.collect() }
}

/// Shows what differs between two versions of a tenant's state, resource by resource.
pub fn changes(tenant: &TenantName, old: &Projection, new: &Projection) -> Vec<Value> {
    let shown = |resource: ResourceChange| {
        let mut shown = change(&resource.change);
        let name = if resource.kind == ResourceKind::Cluster { tenant.as_str() } else { &resource.name };
        shown["kind"] = resource.kind.as_str().into();
        shown["name"] = name.into();
        shown
    };
    diff(old, new).into_iter().map(shown).collect()
}

/// Shows what became of a resource.
fn change(change: &Change) -> Value {
    let parsed = |text: &Option<String>| serde_json::from_str::<Value>(text.as_ref()?).ok();
    match change {
        Change::Added => json!({ "change": "added" }),
        Change::Removed => json!({ "change": "removed" }),
        Change::Changed { fields } => {
            let shown = |field: &FieldChange| {
                let mut shown = json!({ "field": field.field });
                for (side, value) in [("before", parsed(&field.before)), ("after", parsed(&field.after))] {
                    if let Some(value) = value {
                        shown[side] = value;
                    }
                }
                shown
            };
            json!({ "change": "changed", "fields": fields.iter().map(shown).collect::<Vec<_>>() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_what_kubernetes_takes() {
        for good in ["a", "A1", "eu-1", "a_b.c"] {
            assert!(is_label_value(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a/b", "ä", &"x".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
