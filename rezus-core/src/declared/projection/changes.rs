//! Specs as the API's fields, and what differs between two projections.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::declared::resource::{
    Cluster, Machine, NodeAddress, NodeGroup, Problem, Projection, ProviderConfig,
};
use crate::declared::{Fingerprint, ResourceAddress};

/// The kind of a declared resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceKind {
    /// The cluster as a whole: the API's Tenant.
    Cluster,
    /// A node group.
    NodeGroup,
    /// A machine.
    Machine,
}

/// A resource that is not the same in two projections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceChange {
    /// Its kind.
    pub kind: ResourceKind,
    /// The name of the object; empty for the cluster, which has the tenant's.
    pub name: String,
    /// What became of it.
    pub change: Change,
}

/// What became of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Only the new projection has it.
    Added,
    /// Only the old projection has it.
    Removed,
    /// Both have it, and these fields differ: at least one, in the order of the spec.
    Changed {
        /// The fields.
        fields: Vec<FieldChange>,
    },
}

/// A field that is not the same in two projections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange {
    /// The spec's field, as the API spells it.
    pub field: &'static str,
    /// What was there, as compact JSON; `None` if nothing.
    pub before: Option<String>,
    /// What is there now, in the same way.
    pub after: Option<String>,
}

/// A spec's fields that are present, as the API spells them, in its order, each with its value as compact JSON.
pub type SpecFields = Vec<(&'static str, String)>;

/// Compares two projections; sorted by kind, then by name. Resources are the same if their objects have the same name.
pub fn diff(old: &Projection, new: &Projection) -> Vec<ResourceChange> {
    let mut pairs: BTreeMap<_, (Option<SpecFields>, Option<SpecFields>)> = BTreeMap::new();
    for (kind, name, fields) in resources(old) {
        pairs.entry((kind, name)).or_default().0 = Some(fields);
    }
    for (kind, name, fields) in resources(new) {
        pairs.entry((kind, name)).or_default().1 = Some(fields);
    }
    let mut changes = Vec::new();
    for ((kind, name), pair) in pairs {
        let change = match pair {
            (Some(before), Some(after)) if before == after => continue,
            (Some(before), Some(after)) => Change::Changed { fields: differing(kind, before, after) },
            (None, _) => Change::Added,
            (_, None) => Change::Removed,
        };
        changes.push(ResourceChange { kind, name: name.to_owned(), change });
    }
    changes
}

fn resources(projection: &Projection) -> impl Iterator<Item = (ResourceKind, &str, SpecFields)> {
    let cluster = std::iter::once((ResourceKind::Cluster, "", projection.cluster.spec_fields()));
    let groups = projection.node_groups.iter();
    let groups = groups.map(|group| (ResourceKind::NodeGroup, &*group.object_name, group.spec_fields()));
    let machines = projection.machines.iter();
    let machines =
        machines.map(|machine| (ResourceKind::Machine, &*machine.object_name, machine.spec_fields()));
    cluster.chain(groups).chain(machines)
}

/// Pairs the fields of two specs of one kind; both are in that kind's order.
fn differing(kind: ResourceKind, before: SpecFields, after: SpecFields) -> Vec<FieldChange> {
    let (mut before, mut after) = (BTreeMap::from_iter(before), BTreeMap::from_iter(after));
    let changes = kind.fields().iter().map(|field| FieldChange {
        field,
        before: before.remove(field),
        after: after.remove(field),
    });
    changes.filter(|change| change.before != change.after).collect()
}

/// A resource of a projection, and all that its history needs to know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identified {
    /// Its kind.
    pub kind: ResourceKind,
    /// The name of the object; empty for the cluster.
    pub name: String,
    /// What tells it from others of its kind: a machine's [identity](Machine::identity), a group's name; empty for the
    /// cluster.
    pub identity: String,
    /// The [digest](spec_digest) of its spec.
    pub digest: [u8; 32],
}

/// Returns all resources of a projection, sorted by kind, then by name.
pub fn identified(projection: &Projection) -> Vec<Identified> {
    let identities = projection.node_groups.iter().map(|group| group.object_name.clone());
    let identities = identities.chain(projection.machines.iter().map(Machine::identity));
    let identities = std::iter::once(String::new()).chain(identities);
    let resources = resources(projection).zip(identities);
    let identified = resources.map(|((kind, name, fields), identity)| Identified {
        kind,
        name: name.to_owned(),
        identity,
        digest: spec_digest(&fields),
    });
    identified.collect()
}

/// Returns the SHA-256 of a spec's fields: equal specs have equal digests.
pub fn spec_digest(fields: &[(&'static str, String)]) -> [u8; 32] {
    let mut text = String::new();
    for part in fields.iter().flat_map(|(field, value)| [*field, value]) {
        text.push_str(&part.len().to_string());
        text.push(':');
        text.push_str(part);
    }
    Fingerprint::of(text.as_bytes()).sha256
}

impl ResourceKind {
    /// Returns the API's word for the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "Tenant",
            Self::NodeGroup => "NodeGroup",
            Self::Machine => "Machine",
        }
    }

    /// Returns the fields of the kind's spec that a state fills, in the API's order.
    pub const fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Cluster => &[
                "clusterName",
                "endpoint",
                "kubernetesVersion",
                "talosVersion",
                "providers",
                "unmapped",
                "problems",
            ],
            Self::NodeGroup => {
                &["role", "provider", "count", "machines", "instanceTypes", "regions", "source"]
            }
            Self::Machine => &[
                "name",
                "address",
                "resourceType",
                "provider",
                "providerSource",
                "providerID",
                "hostname",
                "role",
                "nodeGroup",
                "addresses",
                "instanceType",
                "region",
                "zone",
                "image",
                "cpus",
                "memoryMiB",
                "recordedPower",
                "tainted",
                "alsoKnownAs",
                "problems",
            ],
        }
    }
}

impl Cluster {
    /// Returns the spec's fields that are present, in the API's order, each with its value as compact JSON. What the
    /// store knows of the state and the counts of other resources are not among them.
    pub fn spec_fields(&self) -> SpecFields {
        let unmapped =
            |(resource_type, count): &(String, u64)| json!({"type": resource_type, "count": count});
        let values = [
            text(self.cluster_name.as_deref()),
            text(self.endpoint.as_deref()),
            text(self.kubernetes_version.as_deref()),
            text(self.talos_version.as_deref()),
            list(&self.providers, provider),
            list(&self.unmapped, unmapped),
            list(&self.problems, problem),
        ];
        present(ResourceKind::Cluster, values)
    }
}

impl NodeGroup {
    /// Returns the spec's fields that are present, in the API's order, each with its value as compact JSON.
    pub fn spec_fields(&self) -> SpecFields {
        let string = |text: &String| json!(text);
        let values = [
            self.role.map(|role| word(role.as_str())),
            text(self.provider.as_deref()),
            Some(self.count.to_string()),
            list(&self.machines, string),
            list(&self.instance_types, string),
            list(&self.regions, string),
            text(Some(&self.source)),
        ];
        present(ResourceKind::NodeGroup, values)
    }
}

impl Machine {
    /// Returns the spec's fields that are present, in the API's order, each with its value as compact JSON.
    pub fn spec_fields(&self) -> SpecFields {
        let address = |address: &ResourceAddress| json!(address.as_str());
        let values = [
            text(self.name.as_deref()),
            Some(word(self.address.as_str())),
            text(Some(&self.resource_type)),
            text(Some(&self.provider)),
            text(Some(&self.provider_source)),
            text(self.provider_id.as_deref()),
            text(self.hostname.as_deref()),
            self.role.map(|role| word(role.as_str())),
            text(self.node_group.as_deref()),
            list(&self.addresses, node_address),
            text(self.instance_type.as_deref()),
            text(self.region.as_deref()),
            text(self.zone.as_deref()),
            text(self.image.as_deref()),
            self.cpus.as_ref().map(ToString::to_string),
            self.memory_mib.as_ref().map(ToString::to_string),
            self.recorded_power.map(|power| word(power.as_str())),
            Some(self.tainted.to_string()),
            list(&self.also_known_as, address),
            list(&self.problems, problem),
        ];
        present(ResourceKind::Machine, values)
    }
}

fn present<const N: usize>(kind: ResourceKind, values: [Option<String>; N]) -> SpecFields {
    let fields = kind.fields().iter().zip(values);
    fields.filter_map(|(field, value)| Some((*field, value?))).collect()
}

fn text(value: Option<&str>) -> Option<String> {
    value.filter(|text| !text.is_empty()).map(word)
}

/// Returns a text as JSON.
fn word(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn list<T>(items: &[T], shown: impl Fn(&T) -> Value) -> Option<String> {
    (!items.is_empty()).then(|| Value::Array(items.iter().map(shown).collect()).to_string())
}

fn node_address(address: &NodeAddress) -> Value {
    json!({"type": address.kind.as_str(), "address": address.address})
}

fn problem(problem: &Problem) -> Value {
    json!({"field": problem.field, "reason": problem.reason})
}

fn provider(config: &ProviderConfig) -> Value {
    let members =
        [("source", Some(&config.source)), ("alias", config.alias.as_ref()), ("key", config.key.as_ref())];
    let present = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    Value::Object(present.collect())
}
