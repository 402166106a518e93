//! One cluster while it is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::observed::facts::{Facts, Kubernetes, Usage};
use rezus_core::observed::{Failure, Reading, Session};
use tokio::sync::watch as channel;
use tokio::time::Instant;

use super::line::{Line, Turns};
use super::nodes::Nodes;
use super::pods::Pods;
use super::poll::{Leases, Poll};
use super::summary::Summaries;
use super::watch::Watch;
use super::wire::Wire;

/// How long other news are waited for once there is some: they come in flocks.
const FLOCK: Duration = Duration::from_millis(200);

/// Older than this, a lease is that of a node that is gone.
const LEASE_DEAD: Duration = Duration::from_mins(2);

/// How long it is not asked again whether there is a metrics server.
const NO_METRICS: Duration = Duration::from_hours(1);

/// The requests of a turn that follow each other.
const REQUESTS: u32 = 5;

/// A session with one API server.
#[derive(Debug)]
pub(super) struct KubernetesSession {
    wire: Arc<Wire>,
    clock: Arc<dyn Clock>,
    turns: Turns,
    watches: Option<Watches>,
    news: channel::Sender<u64>,
    seen: u64,
    leases: Freshest,
    summaries: Summaries,
    /// Which cluster it was that answered last, as far as it said.
    cluster_uid: Option<String>,
    /// Until when nobody asks whether there is a metrics server, where there is none.
    no_metrics_until: Option<Instant>,
}

/// What begins with the first answer: nothing is watched at a server that never gave one.
#[derive(Debug)]
struct Watches {
    nodes: Watch<Nodes>,
    pods: Watch<Pods>,
}

/// How new the newest list of leases was.
#[derive(Debug, Default)]
struct Freshest {
    version: u64,
    /// Whether the list before was an older one.
    older: bool,
}

impl Freshest {
    /// Takes no list that is older than one before it: it comes from an old copy. That an older one comes twice in a row is
    /// a cluster that was restored.
    fn newest(&mut self, leases: Leases) -> Result<Leases, Failure> {
        let Some(version) = leases.version else { return Ok(leases) };
        if version < self.version && !self.older {
            self.older = true;
            return Err(Failure::StaleCache);
        }
        self.version = version;
        self.older = false;
        Ok(leases)
    }
}

impl Leases {
    /// Tells whether no node renews its lease any more.
    fn are_dead(&self, now: Option<Timestamp>) -> bool {
        let newest = self.renewed.values().max();
        newest.zip(now).is_some_and(|(newest, now)| now.since(*newest) > LEASE_DEAD)
    }
}

impl KubernetesSession {
    pub(super) fn new(wire: Arc<Wire>, clock: Arc<dyn Clock>, turns: Turns) -> Self {
        Self {
            wire,
            clock,
            turns,
            watches: None,
            news: channel::Sender::new(0),
            seen: 0,
            leases: Freshest::default(),
            summaries: Summaries::default(),
            cluster_uid: None,
            no_metrics_until: None,
        }
    }

    async fn facts(&mut self, budget: Duration) -> Result<(Kubernetes, Vec<(String, Failure)>), Failure> {
        let until = Instant::now() + budget;
        self.identity_holds()?;
        let wire = Arc::clone(&self.wire);
        // Half of the time for the connection is more than it is ever given, but where time is short.
        let mut poll = Poll::begin(&wire, Instant::now() + budget / 2).await?;
        let mut parts = Parts { failures: Vec::new(), proved: false };
        // Each request gets its share of what is left, so that one that hangs leaves time for the others.
        let share = |left: u32| {
            let now = Instant::now();
            now + until.saturating_duration_since(now) / (left + 1)
        };
        let version = parts.take("version", poll.version(share(REQUESTS)).await);
        let failed_checks = parts.take("readyz", poll.failed_checks(share(REQUESTS - 1)).await);
        let cluster_uid = parts.take("identity", poll.cluster_uid(share(REQUESTS - 2)).await);
        if let Some(uid) = &cluster_uid {
            self.is_cluster(uid);
        }
        let leases = poll.leases(share(REQUESTS - 3)).await;
        let (server_time, skew_ms) = (wire.date(), wire.skew_ms());
        let leases = parts.take("leases", leases.and_then(|leases| self.leases.newest(leases)));
        if leases.as_ref().is_some_and(|leases| leases.are_dead(server_time)) {
            // The copy may be old, or nobody can write any more: what they say is told either way.
            parts.failures.push(("leases".to_owned(), Failure::StaleCache));
        }
        let usage = self.usage(&mut poll, share(REQUESTS - 4)).await;
        if !parts.proved {
            // A watch that nothing came by proves nothing where nothing else is answered.
            let first = parts.failures.into_iter().next().map(|(_, failure)| failure);
            return Err(first.unwrap_or(Failure::Internal { detail: "nothing was asked".to_owned() }));
        }
        let watches = self.watches.get_or_insert_with(|| {
            let line = Line::new(&wire, &self.turns);
            Watches {
                nodes: Watch::begin(Nodes::default(), &line, &self.news),
                pods: Watch::begin(Pods::new(Arc::clone(&wire)), &line, &self.news),
            }
        });
        let now = wire.now();
        let news = &self.news;
        let nodes = watches.nodes.read(until, |nodes| (nodes.all(), *news.borrow())).await;
        let nodes = parts.take("nodes", nodes).map(|(mut nodes, seen)| {
            self.seen = seen;
            let renewed = leases.as_ref().map(|leases| &leases.renewed);
            for node in &mut nodes {
                node.lease_renewed_at = renewed.and_then(|at: &BTreeMap<_, _>| at.get(&node.name).copied());
            }
            nodes
        });
        let usage = match (usage, &nodes) {
            (Err(Failure::NotInstalled { .. }), Some(nodes)) => {
                // Half of what is left: the pods are read as well.
                self.summaries.read(&mut poll, nodes, share(1)).await
            }
            (usage, _) => usage,
        };
        // Its connection is closed: until the next turn it would only be kept.
        drop(poll);
        let usage = parts.take("usage", usage).filter(|usage| !usage.is_empty());
        let pods = watches.pods.read(until, |pods| pods.summary(now)).await;
        let pods = parts.take("pods", pods);
        let facts =
            Kubernetes { version, cluster_uid, server_time, skew_ms, failed_checks, nodes, pods, usage };
        Ok((facts, parts.failures))
    }

    /// Forgets what was watched and counted where another cluster answers now: its watches would go on where those of the other one
    /// ended.
    fn is_cluster(&mut self, uid: &str) {
        let is_other = self.cluster_uid.replace(uid.to_owned()).is_some_and(|before| before != uid);
        if is_other {
            self.watches = None;
            self.leases = Freshest::default();
            self.summaries = Summaries::default();
            self.no_metrics_until = None;
        }
    }

    /// What nodes use, as the metrics server tells: where there is none, that is looked at again after an hour.
    async fn usage(&mut self, poll: &mut Poll<'_>, until: Instant) -> Result<Vec<Usage>, Failure> {
        let none = || Failure::NotInstalled { what: "metrics.k8s.io".to_owned() };
        if self.no_metrics_until.is_some_and(|until| Instant::now() < until) {
            return Err(none());
        }
        self.no_metrics_until = None;
        match poll.usage(until).await {
            // An API server whose metrics server is gone for now answers so for it.
            Err(Failure::RateLimited { retry_after: None }) => Err(none()),
            Err(failure @ Failure::NotInstalled { .. }) => {
                self.no_metrics_until = Some(Instant::now() + NO_METRICS);
                Err(failure)
            }
            usage => usage,
        }
    }

    fn identity_holds(&self) -> Result<(), Failure> {
        self.wire.identity.check(self.clock.now())
    }
}

/// What became of the parts of a turn.
struct Parts {
    failures: Vec<(String, Failure)>,
    /// Whether somebody answered who is an API server and knows us.
    proved: bool,
}

impl Parts {
    fn take<T>(&mut self, name: &str, part: Result<T, Failure>) -> Option<T> {
        match part {
            Ok(part) => {
                self.proved = true;
                Some(part)
            }
            Err(failure) => {
                // A page that is not found, or one too large, anybody's web server has.
                self.proved |= matches!(failure, Failure::Forbidden { .. } | Failure::StaleCache);
                self.failures.push((name.to_owned(), failure));
                None
            }
        }
    }
}

#[async_trait]
impl Session for KubernetesSession {
    async fn read(&mut self, budget: Duration) -> Reading {
        let started = self.clock.now();
        let result = self.facts(budget).await;
        let (facts, failures) = match result {
            Ok((facts, failures)) => (Some(Facts::Kubernetes(facts)), failures),
            Err(failure) => (None, vec![("all".to_owned(), failure)]),
        };
        Reading { started, finished: self.clock.now(), facts, failures }
    }

    async fn changed(&mut self) {
        let mut news = self.news.subscribe();
        let seen = self.seen;
        // The sender is ours: it does not go away.
        drop(news.wait_for(|count| *count != seen).await);
        tokio::time::sleep(FLOCK).await;
        self.seen = *self.news.borrow();
    }
}
