//! Runs of tofu or terraform.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Condition;

/// What was asked of tofu or terraform, by whoever asked for the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunSpec {
    /// What to do. plan: say what an apply would change. apply: plan, and change it once that is approved. destroy: the
    /// same for taking everything away. drift: say what differs from the state, and change nothing.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["plan", "apply", "destroy", "drift"])))]
    pub operation: String,
    /// Whether an apply waits for somebody's consent (manual) or not (auto). The tenant's policy where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("enum" = ["manual", "auto"])))]
    pub approval: Option<String>,
    /// Values of the configuration's variables for this run, beside those that the tenant is configured with. No
    /// secrets: they are shown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Addresses of the only resources to look at, as with `-target`. All where it is absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<String>,
    /// Addresses of resources to replace, as with `-replace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<String>,
    /// Why, in the words of whoever asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who asked for it, as the server knows the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_by: Option<String>,
}

/// How far a run is, and what tofu or terraform reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RunStatus {
    /// How far the run is, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Why it is there, in one word for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why it is there, in words for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The program that does it: tofu or terraform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// That program's version, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
    /// The digest of the configuration that was run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<String>,
    /// What revision that configuration is, in the words of whoever configured the tenant with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_revision: Option<String>,
    /// The version of the tenant's state that the run began with; absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_version_before: Option<u64>,
    /// The version of the tenant's state that the run left; absent where it wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_version_after: Option<u64>,
    /// What the plan changes, counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<RunSummary>,
    /// What the plan changes, one by one and sorted by address: the first 200.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<PlannedChange>,
    /// How many more changes the plan makes; absent where all of them are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes_omitted: Option<u64>,
    /// The program's exit code; absent while it has not ended, and where a signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// When the run was asked for, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub queued_at: Option<String>,
    /// When it began, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub started_at: Option<String>,
    /// When it ended, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub finished_at: Option<String>,
    /// Who approved the apply; absent where nobody had to, or nobody did yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// The Run that does the work of this one, as both were waiting for the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coalesced_into: Option<String>,
    /// Resources that were reported as created and that no version of the state has: they exist, and tofu does not know
    /// of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unrecorded: Vec<UnrecordedResource>,
    /// What is true, false or unknown of the run, each with who says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// How many resources a plan changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RunSummary {
    /// How many are created, those that are replaced included, as tofu counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub add: Option<u64>,
    /// How many are changed in place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<u64>,
    /// How many are destroyed, those that are replaced included, as tofu counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remove: Option<u64>,
    /// How many are destroyed and created again; they are counted in add and remove too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<u64>,
    /// How many are taken into the state as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import: Option<u64>,
    /// How many are left alone and taken out of the state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forget: Option<u64>,
    /// The same by node group, of the machines alone. Sorted by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_groups: Vec<NodeGroupChanges>,
}

/// A change that a plan makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedChange {
    /// The address of the resource instance, as tofu prints it.
    pub address: String,
    /// What is done with it, in tofu's word: create, update, replace, delete, move, import, forget.
    pub action: String,
    /// Why it is replaced or deleted, in tofu's word, such as `replace_because_tainted` and
    /// `replace_because_cannot_update`; absent where tofu gives no reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How many machines of a node group a plan changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeGroupChanges {
    /// The name of the `NodeGroup`.
    pub name: String,
    /// How many of its machines are created, those that are replaced included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<u64>,
    /// How many of its machines are destroyed, those that are replaced included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<u64>,
    /// How many of its machines are destroyed and created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<u64>,
}

/// A resource that exists and that no version of the state has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnrecordedResource {
    /// The address of the resource instance, as tofu prints it.
    pub address: String,
    /// Its resource type.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// The provider's ID of it, as tofu reported it; absent where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
