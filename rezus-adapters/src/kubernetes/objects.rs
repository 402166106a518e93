//! Objects as far as they are read: what is kept of them is facts, and of their metadata what a watch needs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ClusterResourceScope;
use rezus_core::base::Timestamp;
use rezus_core::observed::Quantity;
use rezus_core::observed::facts::{Holds, Node, NodeAddress, NodeCondition, NodeInfo, Quantities, Taint};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::text::clean;

/// Of one thing no more than so many parts are kept: a node with a thousand taints is a trick.
const MOST: usize = 256;

/// `metadata` without labels of other use, annotations of other use, owners and `managedFields`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) uid: String,
    pub(super) resource_version: Option<String>,
    pub(super) creation_timestamp: Option<String>,
    pub(super) deletion_timestamp: Option<String>,
    labels: Labels,
    annotations: Annotations,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Labels {
    #[serde(rename = "node-role.kubernetes.io/control-plane")]
    control_plane: Option<IgnoredAny>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    #[serde(rename = "talos.dev/cordoned")]
    cordoned: Option<IgnoredAny>,
}

impl Meta {
    /// The metadata that a watch needs.
    pub(super) fn slim(&self) -> ObjectMeta {
        ObjectMeta {
            name: Some(self.name.clone()),
            namespace: self.namespace.clone(),
            resource_version: self.resource_version.clone(),
            ..ObjectMeta::default()
        }
    }
}

/// A node, read into its facts.
#[derive(Clone, Debug)]
pub(super) struct NodeObject {
    meta: ObjectMeta,
    pub(super) node: Node,
}

#[derive(Deserialize)]
struct RawNode {
    #[serde(default)]
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    unschedulable: bool,
    #[serde(rename = "providerID")]
    provider_id: Option<String>,
    taints: Option<Vec<RawTaint>>,
}

#[derive(Deserialize)]
struct RawTaint {
    key: String,
    #[serde(default)]
    effect: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    conditions: Option<Vec<RawCondition>>,
    addresses: Option<Vec<RawAddress>>,
    node_info: Info,
    capacity: Amounts,
    allocatable: Amounts,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawCondition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    last_transition_time: Option<String>,
}

#[derive(Deserialize)]
struct RawAddress {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Info {
    #[serde(rename = "machineID")]
    machine_id: String,
    #[serde(rename = "systemUUID")]
    system_uuid: String,
    #[serde(rename = "bootID")]
    boot_id: String,
    kubelet_version: String,
    os_image: String,
    kernel_version: String,
    container_runtime_version: String,
    architecture: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Amounts {
    cpu: Option<String>,
    memory: Option<String>,
    #[serde(rename = "ephemeral-storage")]
    ephemeral: Option<String>,
    pods: Option<String>,
}

impl From<Amounts> for Quantities {
    fn from(raw: Amounts) -> Self {
        let read = |text: Option<String>| text?.parse::<Quantity>().ok();
        let whole = |text| read(text)?.whole();
        Self {
            cpu_nanocores: read(raw.cpu).and_then(Quantity::nanocores),
            memory_bytes: whole(raw.memory),
            ephemeral_bytes: whole(raw.ephemeral),
            pods: whole(raw.pods),
        }
    }
}

/// The status of a condition.
pub(super) fn holds(status: &str) -> Holds {
    match status {
        "True" => Holds::True,
        "False" => Holds::False,
        _ => Holds::Unknown,
    }
}

impl From<RawCondition> for NodeCondition {
    fn from(raw: RawCondition) -> Self {
        let status = holds(&raw.status);
        Self {
            kind: clean(&raw.kind),
            status,
            reason: clean(&raw.reason),
            message: clean(&raw.message),
            since: time(raw.last_transition_time),
        }
    }
}

impl From<RawNode> for NodeObject {
    fn from(raw: RawNode) -> Self {
        let RawNode { metadata, spec, status } = raw;
        let info = status.node_info;
        let mut conditions: Vec<NodeCondition> = several(status.conditions).map(Into::into).collect();
        conditions.sort_by(|one, other| one.kind.cmp(&other.kind));
        let taint = |raw: RawTaint| Taint { key: clean(&raw.key), effect: clean(&raw.effect) };
        let address = |raw: RawAddress| NodeAddress { kind: clean(&raw.kind), address: clean(&raw.address) };
        let node = Node {
            name: clean(&metadata.name),
            uid: clean(&metadata.uid),
            created_at: time(metadata.creation_timestamp.clone()),
            deleting: metadata.deletion_timestamp.is_some(),
            cordoned_by_talos: metadata.annotations.cordoned.is_some(),
            unschedulable: spec.unschedulable,
            provider_id: spec.provider_id.map(|id| clean(&id)).filter(|id| !id.is_empty()),
            control_plane: metadata.labels.control_plane.is_some(),
            taints: several(spec.taints).map(taint).collect(),
            conditions,
            addresses: several(status.addresses).map(address).collect(),
            info: NodeInfo {
                machine_id: clean(&info.machine_id),
                system_uuid: clean(&info.system_uuid),
                boot_id: clean(&info.boot_id),
                kubelet_version: clean(&info.kubelet_version),
                os_image: clean(&info.os_image),
                kernel_version: clean(&info.kernel_version),
                container_runtime: clean(&info.container_runtime_version),
                architecture: clean(&info.architecture),
            },
            capacity: status.capacity.into(),
            allocatable: status.allocatable.into(),
            lease_renewed_at: None,
        };
        Self { meta: metadata.slim(), node }
    }
}

/// Of several parts the first ones, as many as are kept.
pub(super) fn several<T>(parts: Option<Vec<T>>) -> impl Iterator<Item = T> {
    parts.unwrap_or_default().into_iter().take(MOST)
}

/// A point in time; `None` where it is none.
pub(super) fn time(text: Option<String>) -> Option<Timestamp> {
    Timestamp::parse(&text?).ok()
}

impl<'de> Deserialize<'de> for NodeObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawNode::deserialize(deserializer).map(Into::into)
    }
}

/// Makes a type one of the core group's, as kube asks for it.
macro_rules! core_resource {
    ($type:ty, $scope:ty, $kind:literal, $plural:literal) => {
        impl ::kube::Resource for $type {
            type DynamicType = ();
            type Scope = $scope;

            fn kind((): &()) -> ::std::borrow::Cow<'_, str> {
                $kind.into()
            }

            fn group((): &()) -> ::std::borrow::Cow<'_, str> {
                "".into()
            }

            fn version((): &()) -> ::std::borrow::Cow<'_, str> {
                "v1".into()
            }

            fn plural((): &()) -> ::std::borrow::Cow<'_, str> {
                $plural.into()
            }

            fn meta(&self) -> &ObjectMeta {
                &self.meta
            }

            fn meta_mut(&mut self) -> &mut ObjectMeta {
                &mut self.meta
            }
        }
    };
}

pub(super) use core_resource;

core_resource!(NodeObject, ClusterResourceScope, "Node", "nodes");
