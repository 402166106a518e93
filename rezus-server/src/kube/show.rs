//! Shows what is declared as objects: metadata and spec from the state, and what is to be said about the state itself
//! as conditions in the status.

mod of_runs;
mod run;
mod state;
mod tenant;

use rezus_core::base::Timestamp;
use rezus_core::declared::mapping::extract::Kind;
use rezus_core::declared::mapping::{Origin, Provider};
use rezus_core::declared::projection::{Lifetime, SpecFields};
use rezus_core::declared::resource::{AddressType, Machine, NodeGroup, Projection, Role};
use serde_json::json;
use uuid::Uuid;

use super::item::{Draft, Row};
use super::kinds::{MACHINE, NODE_GROUP, PROVIDER, TENANT};
use super::object::{Condition, Object, seconds};
use super::observed;

pub use run::{KnownRuns, run};
pub use state::{event, state_version, transition};
pub use tenant::{Known, Told, namespace, tenant, tenant_uid};

/// The namespace of UIDs of what has no history of its own (RFC 9562, section 5.5): a random UUID, made once. Never to
/// be changed.
const NAMESPACE: Uuid = Uuid::from_u128(0x2f6d_0f0e_7a43_4c58_8a5b_91c1_6a0e_44d7);

/// Returns the UID of what has no history of its own.
fn uid(parts: &[&str]) -> String {
    Uuid::new_v5(&NAMESPACE, parts.join("\n").as_bytes()).hyphenated().to_string()
}

/// A condition that is made from the state alone.
fn of_state(
    kind: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
    since: Timestamp,
) -> Condition {
    Condition {
        kind,
        holds: if holds { "True" } else { "False" },
        reason: reason.into(),
        message,
        last_transition_time: seconds(since),
        source: "state",
    }
}

/// A cluster with nothing but what its state says of it.
pub(super) fn cluster(name: &str, projection: &Projection) -> Object {
    let mut object = Object::new(&TENANT, name, projection.cluster.spec_fields());
    object.label("rezuscloud.io/tenant", Some(name));
    object
}

/// A machine with nothing but what its state says of it.
pub(super) fn bare_machine(machine: &Machine) -> Object {
    let mut object = Object::new(&MACHINE, &machine.object_name, machine.spec_fields());
    object.label("rezuscloud.io/role", machine.role.map(Role::as_str));
    object.label("rezuscloud.io/node-group", machine.node_group.as_deref());
    object.label("rezuscloud.io/provider", Some(&machine.provider));
    object.annotate("rezuscloud.io/address", machine.address.to_string());
    object
}

/// A node group with nothing but what its state says of it.
pub(super) fn bare_node_group(group: &NodeGroup) -> Object {
    let mut object = Object::new(&NODE_GROUP, &group.object_name, group.spec_fields());
    object.label("rezuscloud.io/role", group.role.map(Role::as_str));
    object.label("rezuscloud.io/provider", group.provider.as_deref());
    object
}

/// Says where and since when a declared object is. The version is that of its spec's last change: it does not move with
/// states that declare the same.
fn declared(mut object: Object, tenant: &str, lifetime: Option<&Lifetime>) -> Object {
    object.label("rezuscloud.io/tenant", Some(tenant));
    if let Some(lifetime) = lifetime {
        object.annotate("rezuscloud.io/state-version", lifetime.history.generation().to_string());
    }
    object.within(tenant).over_time(lifetime)
}

/// Since when an object is there, and since when it is as it is; the epoch where that is not known.
fn times(lifetime: Option<&Lifetime>) -> (Timestamp, Timestamp) {
    let unknown = Timestamp::from_millis(0);
    lifetime.map_or((unknown, unknown), |lifetime| (lifetime.created_at, lifetime.changed_at))
}

/// Shows a Machine.
pub fn machine(machine: &Machine, tenant: &str, lifetime: Option<&Lifetime>) -> Draft {
    let mut object = declared(bare_machine(machine), tenant, lifetime);
    let (created, changed) = times(lifetime);
    if machine.tainted {
        let message = "the state marks it to be replaced by the next apply".to_owned();
        object.conditions([of_state("Tainted", true, "MarkedInState", message, changed)]);
    }
    if !machine.problems.is_empty() {
        let fields: Vec<&str> = machine.problems.iter().map(|problem| problem.field.as_str()).collect();
        let message = format!("could not be read: {}", fields.join(", "));
        object.conditions([of_state("MappingComplete", false, "FieldsUnreadable", message, changed)]);
    }
    let role = machine.role.map(Role::as_str);
    let cells = Row::default()
        .text(Some(&machine.object_name))
        .text(role)
        .text(main_address(machine))
        .text(Some(&machine.provider))
        .observed()
        .observed()
        .age(created)
        .text(machine.node_group.as_deref())
        .text(machine.instance_type.as_deref())
        .text(machine.region.as_deref())
        .text(machine.zone.as_deref())
        .text(machine.provider_id.as_deref())
        .text(Some(machine.address.as_str()));
    let fields = vec![
        ("spec.role", role.map(ToOwned::to_owned)),
        ("spec.provider", Some(machine.provider.to_string())),
        ("spec.nodeGroup", machine.node_group.as_ref().map(ToString::to_string)),
    ];
    Draft::new(&MACHINE, object, fields, cells).until_observed(observed::machine_not_observed(created))
}

/// An internal address before an external one before a name.
fn main_address(machine: &Machine) -> Option<&str> {
    let of = |kind: AddressType| machine.addresses.iter().find(|address| address.kind == kind);
    let kinds = [AddressType::InternalIp, AddressType::ExternalIp, AddressType::Hostname];
    kinds.into_iter().find_map(of).map(|address| &*address.address).or(machine.hostname.as_deref())
}

/// Shows a `NodeGroup`.
pub fn node_group(group: &NodeGroup, tenant: &str, lifetime: Option<&Lifetime>) -> Draft {
    let object = declared(bare_node_group(group), tenant, lifetime);
    let role = group.role.map(Role::as_str);
    let created = times(lifetime).0;
    let cells = Row::default()
        .text(Some(&group.object_name))
        .text(role)
        .number(group.count)
        .observed()
        .observed()
        .age(created)
        .text(group.provider.as_deref())
        .text(Some(&group.instance_types.join(",")))
        .text(Some(&group.regions.join(",")));
    let fields = vec![
        ("spec.role", role.map(ToOwned::to_owned)),
        ("spec.provider", group.provider.as_ref().map(ToString::to_string)),
    ];
    Draft::new(&NODE_GROUP, object, fields, cells).until_observed(observed::group_not_observed(created))
}

/// Shows an object whose spec is not known: its state is encrypted or damaged, and an earlier one declared it.
pub fn remembered(name: &str, tenant: &str, lifetime: &Lifetime, is_machine: bool) -> Draft {
    let kind = if is_machine { &MACHINE } else { &NODE_GROUP };
    let object = Object::new(kind, name, SpecFields::new());
    let object = declared(object, tenant, Some(lifetime));
    let created = lifetime.created_at;
    let row = Row::default().text(Some(name)).text(None);
    let cells = if is_machine {
        let row = row.text(None).text(None).observed().observed().age(created);
        (0..6).fold(row, |row, _| row.text(None))
    } else {
        let row = row.unknown().observed().observed().age(created);
        (0..3).fold(row, |row, _| row.text(None))
    };
    let piece = if is_machine {
        observed::machine_not_observed(created)
    } else {
        observed::group_not_observed(created)
    };
    Draft::new(kind, object, Vec::new(), cells).until_observed(piece)
}

/// Shows a Provider: a mapping, in force since `loaded`. Mappings are configuration, not declared by a state.
///
/// The cells of its use, which differ from caller to caller, are not among its cells.
pub fn provider(provider: &Provider, loaded: Timestamp) -> Draft {
    let mut object = Object::new(&PROVIDER, &provider.name, SpecFields::new());
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
    let cells = Row::default()
        .text(Some(&provider.name))
        .text(provider.sources.first().map(String::as_str))
        .text(Some(origin))
        .age(loaded);
    Draft::new(&PROVIDER, object.created(uid(&["Provider", &provider.name]), loaded), Vec::new(), cells)
}
