//! Components of the kinds of `rezuscloud.io/v1alpha1`.

use rezus_core::client::{
    MachineSpec, MachineStatus, NodeGroupSpec, NodeGroupStatus, ProviderSpec, RunSpec, RunStatus,
    StateVersionSpec, TenantSpec, TenantStatus,
};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::dialect::{component, convert};
use super::meta::{kind, list};
use crate::kube::kinds::{KindInfo, MACHINE, NODE_GROUP, PROVIDER, RUN, STATE_VERSION, TENANT};

/// A kind, what it is, and what its spec and status are.
const KINDS: [(&KindInfo, &str, &str, Option<&str>); 6] = [
    (
        &TENANT,
        "A cluster: what its state declares of it as a whole. Its name is also the namespace of its machines and node \
         groups.",
        "TenantSpec",
        Some("TenantStatus"),
    ),
    (
        &PROVIDER,
        "A mapping: what the resources of a provider become. It is configuration of the server.",
        "ProviderSpec",
        None,
    ),
    (
        &NODE_GROUP,
        "The machines of a tenant that have one purpose.",
        "NodeGroupSpec",
        Some("NodeGroupStatus"),
    ),
    (
        &MACHINE,
        "A machine of a tenant, as its state declares it. It is read only: change the tenant's configuration and apply it \
         with tofu or terraform.",
        "MachineSpec",
        Some("MachineStatus"),
    ),
    (&STATE_VERSION, "An accepted state of a tenant, without its content.", "StateVersionSpec", None),
    (
        &RUN,
        "A plan, apply, destroy or drift check of a tenant by tofu or terraform.",
        "RunSpec",
        Some("RunStatus"),
    ),
];

/// Returns the components, by name.
pub(super) fn schemas() -> Map<String, Value> {
    let mut components = types();
    for (info, description, spec, status) in KINDS {
        // Of what a type is, its own description tells, which is printed below this.
        let parts = [
            Some(("spec", spec, "What is declared.")),
            status.map(|status| ("status", status, "What is said of it: never a part of what is declared.")),
        ];
        let parts: Vec<_> = parts
            .into_iter()
            .flatten()
            .map(|(member, name, description)| (member, component(name), description.to_owned()))
            .collect();
        let schema = kind(info, description, &parts);
        components.insert(component(info.kind), schema);
        components.insert(component(&format!("{}List", info.kind)), list(info, &component(info.kind)));
    }
    components
}

/// The types of specs and statuses, and those they are made of.
fn types() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<MachineSpec>();
    generator.subschema_for::<MachineStatus>();
    generator.subschema_for::<NodeGroupSpec>();
    generator.subschema_for::<NodeGroupStatus>();
    generator.subschema_for::<TenantSpec>();
    generator.subschema_for::<TenantStatus>();
    generator.subschema_for::<ProviderSpec>();
    generator.subschema_for::<StateVersionSpec>();
    generator.subschema_for::<RunSpec>();
    generator.subschema_for::<RunStatus>();
    let types = generator.definitions().iter();
    types.map(|(name, schema)| (component(name), convert(schema))).collect()
}
