//! The pods of a cluster, as a watch keeps them: sums, and those that give trouble.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::Pods as Summary;
use rezus_core::observed::{ContainerKind, ContainerSeen, Ended, PodBook, PodCondition, PodPhase, PodSeen};
use serde::{Deserialize, Deserializer};

use super::objects::{Meta, core_resource, holds, several, time};
use super::text::clean;
use super::watch::Keep;
use super::wire::Wire;

/// As many pods as are kept: Kubernetes itself is made for 150,000.
const MOST: usize = 300_000;

/// The pods.
#[derive(Debug)]
pub(super) struct Pods {
    book: PodBook,
    /// What time it is there.
    wire: Arc<Wire>,
}

impl Pods {
    pub(super) fn new(wire: Arc<Wire>) -> Self {
        Self { book: PodBook::default(), wire }
    }

    pub(super) fn summary(&self, now: Timestamp) -> Summary {
        self.book.summary(now)
    }

    fn apply(&mut self, object: &PodObject) {
        if self.book.len() < MOST {
            self.book.apply(&object.pod, self.wire.now());
        }
    }
}

/// Pods are read again in time: none of them is news that cannot wait.
impl Keep for Pods {
    type Object = PodObject;

    fn begin(&mut self) {
        self.book.restart();
    }

    fn listed(&mut self, object: PodObject) {
        self.apply(&object);
    }

    fn end(&mut self) -> bool {
        self.book.settled();
        false
    }

    fn put(&mut self, object: PodObject) -> bool {
        self.apply(&object);
        false
    }

    fn remove(&mut self, object: &PodObject) -> bool {
        self.book.remove(&object.pod.uid);
        false
    }
}

/// A pod, as far as it is judged by.
#[derive(Clone, Debug)]
pub(super) struct PodObject {
    meta: ObjectMeta,
    pod: PodSeen,
}

#[derive(Deserialize)]
struct Raw {
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
    node_name: Option<String>,
    init_containers: Option<Vec<InitContainer>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitContainer {
    name: String,
    #[serde(default)]
    restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    reason: Option<String>,
    conditions: Option<Vec<Condition>>,
    init_container_statuses: Option<Vec<Container>>,
    container_statuses: Option<Vec<Container>>,
    ephemeral_container_statuses: Option<Vec<Container>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    status: String,
    reason: Option<String>,
    last_transition_time: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: String,
    #[serde(default)]
    restart_count: i64,
    #[serde(default)]
    state: State,
    #[serde(default)]
    last_state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Deserialize)]
struct Waiting {
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    reason: Option<String>,
    #[serde(default)]
    exit_code: i32,
    finished_at: Option<String>,
}

/// A text, where it says something.
fn said(text: Option<String>) -> Option<String> {
    text.map(|text| clean(&text)).filter(|text| !text.is_empty())
}

impl From<Terminated> for Ended {
    fn from(raw: Terminated) -> Self {
        Self { reason: said(raw.reason), exit_code: raw.exit_code, at: time(raw.finished_at) }
    }
}

impl Container {
    fn seen(self, kind: ContainerKind) -> ContainerSeen {
        ContainerSeen {
            name: clean(&self.name),
            kind,
            restarts: u32::try_from(self.restart_count.max(0)).unwrap_or(u32::MAX),
            waiting: said(self.state.waiting.and_then(|waiting| waiting.reason)),
            ended: self.state.terminated.map(Into::into),
            ended_before: self.last_state.terminated.map(Into::into),
        }
    }
}

impl From<Raw> for PodObject {
    fn from(raw: Raw) -> Self {
        let Raw { metadata, spec, status } = raw;
        let beside: BTreeSet<String> = several(spec.init_containers)
            .filter(|container| container.restart_policy.as_deref() == Some("Always"))
            .map(|container| clean(&container.name))
            .collect();
        let init = several(status.init_container_statuses).map(|container| {
            let kind = if beside.contains(&clean(&container.name)) {
                ContainerKind::Sidecar
            } else {
                ContainerKind::Init
            };
            container.seen(kind)
        });
        let app = several(status.container_statuses).map(|container| container.seen(ContainerKind::App));
        let ephemeral = several(status.ephemeral_container_statuses);
        let ephemeral = ephemeral.map(|container| container.seen(ContainerKind::Ephemeral));
        let containers = init.chain(app).chain(ephemeral).collect();
        let (mut ready, mut scheduled) = (None, None);
        for raw in several(status.conditions) {
            let place = match raw.kind.as_str() {
                "Ready" => &mut ready,
                "PodScheduled" => &mut scheduled,
                _ => continue,
            };
            let since = time(raw.last_transition_time);
            *place = Some(PodCondition { status: holds(&raw.status), reason: said(raw.reason), since });
        }
        let meta = metadata.slim();
        let pod = PodSeen {
            uid: clean(&metadata.uid),
            namespace: clean(&metadata.namespace.unwrap_or_default()),
            name: clean(&metadata.name),
            node: said(spec.node_name),
            created_at: time(metadata.creation_timestamp),
            gone_by: time(metadata.deletion_timestamp),
            phase: match status.phase.as_str() {
                "Pending" => PodPhase::Pending,
                "Running" => PodPhase::Running,
                "Succeeded" => PodPhase::Succeeded,
                "Failed" => PodPhase::Failed,
                _ => PodPhase::Unknown,
            },
            reason: said(status.reason),
            ready,
            scheduled,
            containers,
        };
        Self { meta, pod }
    }
}

impl<'de> Deserialize<'de> for PodObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Raw::deserialize(deserializer).map(Into::into)
    }
}

core_resource!(PodObject, NamespaceResourceScope, "Pod", "pods");
