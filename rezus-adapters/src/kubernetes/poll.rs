//! What is asked for anew in each turn, one after the other on one connection.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use rezus_core::base::Timestamp;
use rezus_core::observed::facts::{ApiCheck, Usage};
use rezus_core::observed::{Failure, Phase, Quantity};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::body::Limit;
use super::text;
use super::trouble::{Asked, Trouble, unreachable};
use super::wire::{Link, Reading, Wire};

/// How much of an answer about one thing is read.
const ONE: u64 = 8 * 1024 * 1024;

/// How much of a list is read.
pub(super) const LIST: u64 = 64 * 1024 * 1024;

/// One turn's requests: they share a connection, and a new one is made where it broke.
pub(super) struct Poll<'a> {
    pub(super) wire: &'a Wire,
    link: Option<Link>,
}

/// What is asked for.
struct Question {
    path: Cow<'static, str>,
    verb: &'static str,
    resource: &'static str,
    bytes: u64,
    json: bool,
    also: Option<StatusCode>,
}

impl Question {
    const fn json(path: &'static str, verb: &'static str, resource: &'static str, bytes: u64) -> Self {
        Self { path: Cow::Borrowed(path), verb, resource, bytes, json: true, also: None }
    }
}

/// What the leases of nodes tell.
#[derive(Debug)]
pub(super) struct Leases {
    /// How new the list is.
    pub(super) version: Option<u64>,
    /// When each node renewed its own.
    pub(super) renewed: BTreeMap<String, Timestamp>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: String,
}

#[derive(Deserialize)]
struct Named {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct List<T> {
    metadata: ListMeta,
    // Go writes an empty list as nothing at all.
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct ListMeta {
    #[serde(default, rename = "resourceVersion")]
    version: String,
}

impl<'a> Poll<'a> {
    /// Connects.
    pub(super) async fn begin(wire: &'a Wire, until: Instant) -> Result<Self, Failure> {
        let link = wire.connect(until).await.map_err(told)?;
        Ok(Self { wire, link: Some(link) })
    }

    /// `gitVersion` of the API server.
    pub(super) async fn version(&mut self, until: Instant) -> Result<String, Failure> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let asked = Question::json("/version", "get", "version", ONE);
        let version: Version = self.read(&asked, until).await?;
        Ok(text::clean(&version.git_version))
    }

    /// The UID of the namespace `kube-system`.
    pub(super) async fn cluster_uid(&mut self, until: Instant) -> Result<String, Failure> {
        let asked = Question::json("/api/v1/namespaces/kube-system", "get", "namespaces", ONE);
        let namespace: Named = self.read(&asked, until).await?;
        Ok(text::clean(&namespace.metadata.uid))
    }

    /// The checks that failed.
    pub(super) async fn failed_checks(&mut self, until: Instant) -> Result<Vec<ApiCheck>, Failure> {
        // A server that is not ready says so with this status, and why in the body.
        let also = Some(StatusCode::INTERNAL_SERVER_ERROR);
        let path = Cow::Borrowed("/readyz?verbose");
        let asked = Question { path, verb: "get", resource: "readyz", bytes: ONE, json: false, also };
        failed_checks(&self.bytes(&asked, until).await?)
    }

    /// The leases of nodes.
    pub(super) async fn leases(&mut self, until: Instant) -> Result<Leases, Failure> {
        #[derive(Deserialize)]
        struct Lease {
            metadata: Meta,
            spec: Option<Spec>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            renew_time: Option<String>,
        }
        let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
        let list: List<Lease> = self.read(&Question::json(path, "list", "leases", LIST), until).await?;
        let renewed = list.items.unwrap_or_default().into_iter().filter_map(|lease| {
            let at = Timestamp::parse(&lease.spec?.renew_time?).ok()?;
            Some((text::clean(&lease.metadata.name), at))
        });
        Ok(Leases { version: list.metadata.version.parse().ok(), renewed: renewed.collect() })
    }

    /// What `metrics.k8s.io` tells of nodes, sorted by name.
    pub(super) async fn usage(&mut self, until: Instant) -> Result<Vec<Usage>, Failure> {
        #[derive(Deserialize)]
        struct Measured {
            metadata: Meta,
            timestamp: String,
            usage: Amounts,
        }
        #[derive(Deserialize)]
        struct Amounts {
            cpu: String,
            memory: String,
        }
        let ask = |path| Question::json(path, "list", "metrics.k8s.io", LIST);
        let mut answer: Result<List<Measured>, _> =
            self.read(&ask("/apis/metrics.k8s.io/v1beta1/nodes"), until).await;
        if matches!(answer, Err(Failure::NotInstalled { .. })) {
            // Kubernetes 1.37 has it without the beta.
            answer = self.read(&ask("/apis/metrics.k8s.io/v1/nodes"), until).await;
        }
        let list = answer?;
        let read = |measured: Measured| {
            Some(Usage {
                node: text::clean(&measured.metadata.name),
                at: Timestamp::parse(&measured.timestamp).ok()?,
                cpu_nanocores: measured.usage.cpu.parse::<Quantity>().ok()?.nanocores()?,
                memory_bytes: measured.usage.memory.parse::<Quantity>().ok()?.whole()?,
            })
        };
        let mut usage: Vec<_> = list.items.unwrap_or_default().into_iter().filter_map(read).collect();
        usage.sort_by(|one, other| one.node.cmp(&other.node));
        Ok(usage)
    }

    /// What a node's kubelet tells of it (`/stats/summary`): processor and memory alone.
    pub(super) async fn summary(&mut self, node: &str, until: Instant) -> Result<Usage, Failure> {
        #[derive(Deserialize)]
        struct Summary {
            node: OfNode,
        }
        #[derive(Deserialize)]
        struct OfNode {
            cpu: Cpu,
            memory: Memory,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Cpu {
            time: String,
            usage_nano_cores: u64,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Memory {
            working_set_bytes: u64,
        }
        // It is the name of a Node, which is no other path: RFC 1123 has neither slashes nor dots alone.
        if node.starts_with('.')
            || !node.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        {
            return Err(Failure::Malformed { start: text::clean(node) });
        }
        let path = format!("/api/v1/nodes/{node}/proxy/stats/summary?only_cpu_and_memory=true");
        let asked = Question { path: Cow::Owned(path), ..Question::json("", "get", "nodes/proxy", ONE) };
        let Summary { node: OfNode { cpu, memory } } = self.read(&asked, until).await?;
        let at =
            Timestamp::parse(&cpu.time).map_err(|_| Failure::Malformed { start: text::clean(&cpu.time) })?;
        Ok(Usage {
            node: node.to_owned(),
            at,
            cpu_nanocores: cpu.usage_nano_cores,
            memory_bytes: memory.working_set_bytes,
        })
    }

    async fn read<T: DeserializeOwned>(&mut self, asked: &Question, until: Instant) -> Result<T, Failure> {
        let bytes = self.bytes(asked, until).await?;
        serde_json::from_slice(&bytes).map_err(|_| Failure::Malformed { start: text::start(&bytes) })
    }

    async fn bytes(&mut self, question: &Question, until: Instant) -> Result<Bytes, Failure> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.wire.connect(until).await.map_err(told)?,
        };
        let request = Request::get(&*question.path)
            .body(Body::empty())
            .map_err(|_| Failure::Internal { detail: "a path is none".to_owned() })?;
        let asked = Asked { verb: question.verb, resource: question.resource.to_owned() };
        let within = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let limit = Limit::Whole { bytes: question.bytes, within };
        let reading = Reading { limit, json: question.json, also: question.also };
        let answer = self.wire.exchange(&mut link, request, &asked, reading, until).await.map_err(told)?;
        let bytes = answer.into_body().collect().await.map_err(told)?.to_bytes();
        // Only a connection whose answer was read to its end is of further use.
        self.link = Some(link);
        Ok(bytes)
    }
}

fn told(trouble: Trouble) -> Failure {
    match trouble {
        Trouble::Failed(failure) => failure,
        Trouble::Gone => unreachable(Phase::Http, "it answered 410"),
    }
}

/// Reads lines such as `[+]ping ok` and `[-]etcd failed: reason withheld`.
fn failed_checks(answer: &[u8]) -> Result<Vec<ApiCheck>, Failure> {
    let text = String::from_utf8_lossy(answer);
    if !text.trim_start().starts_with(['[', 'o']) {
        return Err(Failure::Malformed { start: text::start(answer) });
    }
    let failed = text.lines().filter_map(|line| line.trim().strip_prefix("[-]"));
    let name = |line: &str| text::clean(line.split_whitespace().next().unwrap_or_default());
    Ok(failed.take(256).map(|line| ApiCheck { name: name(line) }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_that_failed_are_told_by_name() {
        let answer = b"[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\nreadyz check failed\n";
        assert_eq!(failed_checks(answer), Ok(vec![ApiCheck { name: "etcd".to_owned() }]));
        assert_eq!(failed_checks(b"ok"), Ok(Vec::new()));
        assert!(matches!(failed_checks(b"<html>"), Err(Failure::Malformed { start }) if start == "<html>"));
    }
}
