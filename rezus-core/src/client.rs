//! What the API shows, as types for clients: `spec` and `status` of each kind of `rezuscloud.io/v1alpha1`.
//!
//! They know nothing of how the server makes them, need serde alone, and fit `kube::core::Object<MachineSpec,
//! MachineStatus>` and its likes. A field that is absent is unknown or does not apply: it is `None` or empty, and never
//! written. Fields of later versions are passed over. Words (roles, types, phases) are texts, so that a word of a later
//! version is no error.
//!
//! With the feature `schema` the types have a `schemars::JsonSchema`. Their documentation is what `kubectl explain`
//! prints.

mod condition;
mod machine;
mod run;
mod state_version;
mod status;
mod tenant;

pub use condition::{Condition, Problem};
pub use machine::{MachineSpec, MachineStatus, NodeAddress, NodeGroupSpec, NodeGroupStatus};
pub use run::{NodeGroupChanges, PlannedChange, RunSpec, RunStatus, RunSummary, UnrecordedResource};
pub use state_version::StateVersionSpec;
pub use status::{
    EtcdSummary, FilesystemStatus, FoundBy, KubernetesSummary, LoadStatus, MachineCounts, MemoryStatus,
    MetricsStatus, NodeResources, NodeStatus, NodeTaint, NodeUsage, PodTrouble, PodsSummary, ServiceStatus,
    SourceStatus, TalosStatus, UnmetStatus,
};
pub use tenant::{
    GoneMachine, ProviderConfig, ProviderSpec, ResourceType, TenantSpec, TenantState, TenantStatus, TypeCount,
};
