//! Machines and their groups.

use serde::{Deserialize, Serialize, Serializer};

use super::{Condition, FoundBy, MachineCounts, MetricsStatus, NodeStatus, Problem, TalosStatus};

/// What the state declares of a machine. All of it is taken from the tenant's state by the provider's mapping;
/// nothing is observed. The subresource `provenance` tells the place of each field in the state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct MachineSpec {
    /// The machine's name at the provider, as its resource declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address of the resource instance that declares the machine, as tofu and terraform print it, such as
    /// `hcloud_server.worker["w-1"]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The type of that resource, such as `hcloud_server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// The mapping that the machine is made by: the name of a Provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The source address of the provider, as the state names it, such as `registry.opentofu.org/hetznercloud/hcloud`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_source: Option<String>,
    /// The provider's own ID of the machine, as its resource declares it.
    #[serde(rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The host name that is declared for the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// The machine's role in its cluster: controlplane or worker. From a label or tag of its resource, or from the
    /// Talos configuration that is applied to it, as the mapping says.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["controlplane", "worker"])))]
    pub role: Option<String>,
    /// The node group that the machine belongs to: the name of a `NodeGroup` of the same tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group: Option<String>,
    /// The machine's addresses, as its resource and those attached to it declare them. Sorted, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<NodeAddress>,
    /// The provider's type or flavour of the machine, such as cx32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The region, as the provider's resource declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The zone within the region, or the host that carries the machine, as the provider's resource declares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The image the machine is made from, by the provider's name or ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How many CPUs the machine has, as the provider's resource declares it; may be a fraction.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "number")]
    pub cpus: Option<f64>,
    /// Memory in MiB, as the provider's resource declares it.
    #[serde(rename = "memoryMiB", skip_serializing_if = "Option::is_none")]
    pub memory_mib: Option<u64>,
    /// Whether the machine was running, stopped or changing when the provider wrote it into the state. Declared data of
    /// that version, no observation: it is as old as the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["running", "stopped", "changing"])))]
    pub recorded_power: Option<String>,
    /// Whether the state marks the machine to be replaced by the next apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tainted: Option<bool>,
    /// Addresses of Talos resources of the same state that describe this machine. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also_known_as: Vec<String>,
    /// Fields of this spec that could not be read as the mapping says. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

/// What is said of a machine: about its declaration, and about what was observed. Never a part of what is declared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct MachineStatus {
    /// What is true, false or unknown of the machine, each with who says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How the machine is, in one word, as it was observed: the reason of the condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<String>,
    /// When anything of the machine was observed last, in RFC 3339. It moves when what is shown changes, when news becomes
    /// old, and every twelve minutes otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub observed_at: Option<String>,
    /// Set while the first turn of reading any source of the cluster has not come to an end: what is said may change by what that
    /// tells.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warming: bool,
    /// How it is known which node the machine is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found_by: Option<FoundBy>,
    /// The machine's node, as the cluster's Kubernetes API tells it. Absent where there is none, or it is no longer known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeStatus>,
    /// The machine as its Talos API tells it. Absent where it never did, or what it told is too old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub talos: Option<TalosStatus>,
    /// The machine as its `node_exporter` tells it. Absent where that is not asked, or what it told is too old.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsStatus>,
}

/// An address of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeAddress {
    /// What the address is for. `InternalIP`: reached within the cluster's network. `ExternalIP`: reached from outside.
    /// `Hostname`: a name.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["InternalIP", "ExternalIP", "Hostname"])))]
    pub kind: String,
    /// The IP address in canonical spelling, or the name.
    pub address: String,
}

/// What the state declares of the machines of one purpose. All of it is derived from them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeGroupSpec {
    /// The role that all machines of the group have: controlplane or worker. Absent where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["controlplane", "worker"])))]
    pub role: Option<String>,
    /// The mapping that all machines of the group are made by: the name of a Provider. Absent where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How many machines of the group the state declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The names of those Machines. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<String>,
    /// The provider's types or flavours among them. Sorted, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub instance_types: Vec<String>,
    /// The regions among them. Sorted, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// How the group was told: the rule of the mapping that named it for most of its machines, such as a label, the
    /// module, or the resource block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// What is said of a node group: about its declaration, and about what was observed. Never a part of what is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NodeGroupStatus {
    /// What is true, false or unknown of the group, each with who says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Set while the first turn of reading any source of the cluster has not come to an end: what is said may change by what that
    /// tells.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warming: bool,
    /// How many of its machines are how. Absent where nothing was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachineCounts>,
}

/// Writes a whole number without a point, as the server does.
#[expect(clippy::ref_option, reason = "serde's signature")]
fn number<S: Serializer>(number: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    let Some(number) = number else { return serializer.serialize_none() };
    match number.to_string().parse::<i64>() {
        Ok(whole) => serializer.serialize_i64(whole),
        Err(_) => serializer.serialize_f64(*number),
    }
}
