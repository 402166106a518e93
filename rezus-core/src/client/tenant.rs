//! Tenants, and the mappings that make them.

use serde::{Deserialize, Serialize};

use super::{Condition, EtcdSummary, KubernetesSummary, MachineCounts, Problem, SourceStatus};

/// What the tenant's state declares of its cluster, and what that state is. Of an encrypted or damaged state only the
/// latter is known: counts are absent then, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TenantSpec {
    /// The cluster's name, as its Talos resources declare it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// Where the cluster's API server is to answer, as its Talos resources declare it: a URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The version of Kubernetes that is wanted, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// The version of Talos Linux that is wanted, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub talos_version: Option<String>,
    /// The provider configurations that the state names. Sorted, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<ProviderConfig>,
    /// Fields of this spec that could not be read as a mapping says. Sorted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
    /// How many `NodeGroups` the state declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_groups: Option<u64>,
    /// How many Machines the state declares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<u64>,
    /// The state that is in force; absent while none was written, and after it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TenantState>,
}

/// What is said of a tenant: about its state, about its runs, and about what was observed. Never a part of what is
/// declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TenantStatus {
    /// What is true, false or unknown of the tenant, each with who says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// When anything of the cluster was observed last, in RFC 3339. It moves when what is shown changes, when news becomes
    /// old, and every twelve minutes otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub observed_at: Option<String>,
    /// Which of the clusters that it had since it is observed: the first is 1. It is another one when another cluster answers in
    /// the place of the one before; the samples of each have its number as the label `incarnation`, but those of the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<u64>,
    /// Set while the first turn of reading any of its sources has not come to an end: what is said may change by what that tells.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub warming: bool,
    /// How many of its machines are how. Absent where nothing was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machines: Option<MachineCounts>,
    /// Nodes and Talos machines that no Machine declares: they are shown, and never touched. Sorted, no more than 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undeclared: Vec<String>,
    /// Machines and nodes that were there and are not any more, nor declared: for a day. Sorted, no more than 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<GoneMachine>,
    /// The cluster as its Kubernetes API tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubernetes: Option<KubernetesSummary>,
    /// The cluster's etcd, as its members tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdSummary>,
    /// How reading each source goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceStatus>,
}

/// A machine that was there, and is gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoneMachine {
    /// The name that it was seen by.
    pub name: String,
    /// Since when it is gone, as far as was looked, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub since: String,
}

/// A provider configuration that a state names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProviderConfig {
    /// The provider's source address, such as `registry.opentofu.org/hetznercloud/hcloud`.
    pub source: String,
    /// The alias, of a configuration that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The key, of a configuration with `for_each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The state of a tenant that is in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TenantState {
    /// The server's own count of the tenant's accepted states: 1, 2, 3 and so on.
    pub version: u64,
    /// The serial, as the state says of itself; absent in some encrypted states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The lineage, as the state says of itself; absent in some encrypted states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    /// The version of the tofu or terraform that wrote the state, as the state says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// Whether the state is encrypted by its writer. What it declares is not known then.
    pub encrypted: bool,
    /// The state's length in bytes, as it was written.
    pub size_bytes: u64,
    /// When the server accepted the state, in RFC 3339.
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub written_at: String,
    /// How many instance objects the state holds, those of data sources and deposed ones included; absent of an encrypted
    /// state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<u64>,
    /// Types of managed resources that no mapping knows, and how many objects of each there are. Sorted by type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmapped: Vec<TypeCount>,
}

/// A resource type, and how many objects of it there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TypeCount {
    /// The resource type, such as `hcloud_server`.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// How many objects of it the state holds.
    pub count: u64,
}

/// A mapping: which resource types of a provider become which kind. It is configuration of the server, not declared by
/// any state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSpec {
    /// Patterns of the provider source addresses that the mapping is for, such as `*/hetznercloud/hcloud`.
    pub sources: Vec<String>,
    /// The resource types that become something. Types that are left out on purpose are not among them.
    pub resource_types: Vec<ResourceType>,
    /// Where the mapping is from: the words "built in", or its file.
    pub origin: String,
}

/// What a resource type becomes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResourceType {
    /// The resource type, such as `hcloud_server`; of a data source with `data.` before it.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// The kind that its objects become, or that they add to: Machine or Tenant.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["Machine", "Tenant"])))]
    pub kind: String,
}
