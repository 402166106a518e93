//! Watches what tenants' clusters are really like: reads each source of each on its own schedule, and keeps what was seen
//! on the [`Board`], in memory only. It knows nothing of what is declared but whom to ask, and with what.

mod board;
mod follow;
mod pulse;
mod targets;

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use rezus_core::base::{Clock, TenantName};
use rezus_core::declared::store::StateStore;
use rezus_core::observed::facts::{MachineKind, TalosMachine};
use rezus_core::observed::{ClusterScraper, Pace, Source};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::CollectorConfig;
use crate::error::Chain;
use crate::samples::Samples;
use crate::workspaces::Workspaces;
pub use board::{Board, Turn};
pub use pulse::{Pulse, Pulses};
pub use targets::{Targets, Whom};

/// How often it is looked at which tenants there are, if nobody says that it changed.
const LOOK: Duration = Duration::from_secs(5);

/// How many tenants begin to be observed at a time, and how long a try may take to find out which clusters one had.
const BEGINNING: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);

/// How long is waited before each try to find out which clusters a tenant had.
const WAITS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// How many sources are read at a time of those that told nothing the last time: however many do, they keep the others
/// from nothing.
const DOUBTFUL: usize = 16;

/// By what one source is read.
#[derive(Clone, Debug)]
pub struct Scrapers {
    /// Of a cluster.
    pub live: Arc<dyn ClusterScraper>,
    /// Of a recording.
    pub recorded: Arc<dyn ClusterScraper>,
}

/// What the collector works with.
#[derive(Debug)]
pub struct Means {
    /// By what is read: at most one of each source.
    pub scrapers: Vec<Scrapers>,
    /// Whom to ask.
    pub targets: Targets,
    /// Which tenants there are.
    pub states: Arc<dyn StateStore>,
    /// What is set of them.
    pub workspaces: Workspaces,
    /// Where what is seen goes.
    pub board: Board,
    /// What becomes of it over time.
    pub samples: Samples,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How often, and how many at a time.
    pub config: CollectorConfig,
}

/// The collector.
#[derive(Clone, Debug)]
pub struct Collector(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    means: Means,
    /// Places for sources that answered the last time, and for those that did not.
    slots: Semaphore,
    doubtful: Semaphore,
    beginning: Semaphore,
    look: Notify,
}

/// The tasks that read a tenant's sources; they end when it is dropped.
struct Followed(Vec<JoinHandle<()>>);

impl Drop for Followed {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl Collector {
    /// A collector that reads nothing yet.
    pub fn new(means: Means) -> Self {
        let slots = Semaphore::new(means.config.parallel.max(1));
        let (doubtful, beginning) = (Semaphore::new(DOUBTFUL), Semaphore::new(BEGINNING));
        Self(Arc::new(Inner { means, slots, doubtful, beginning, look: Notify::new() }))
    }

    /// Has it looked at soon which tenants there are, and what is set of them.
    pub fn look(&self) {
        self.0.look.notify_one();
    }

    /// Reads until the task is ended.
    pub async fn run(self) {
        let board = &self.0.means.board;
        let mut followed: HashMap<TenantName, Followed> = HashMap::new();
        loop {
            board.beat(self.0.means.clock.now());
            match self.0.wanted().await {
                Ok((on, off)) => {
                    followed.retain(|tenant, _| on.contains(tenant));
                    self.0.means.samples.keep_only(&on, self.0.means.clock.now());
                    board.set(&on, off, &self.0.sources());
                    for tenant in on {
                        followed.entry(tenant).or_insert_with_key(|tenant| self.0.follow(tenant));
                    }
                }
                Err(error) => {
                    tracing::warn!(cause = %Chain(&*error), "which tenants are observed cannot be told now: they stay the same");
                }
            }
            drop(timeout(LOOK, self.0.look.notified()).await);
        }
    }
}

impl Inner {
    /// The tenants that are to be observed, and those that are not.
    async fn wanted(
        &self,
    ) -> Result<(BTreeSet<TenantName>, BTreeSet<TenantName>), Box<dyn Error + Send + Sync>> {
        let settings = self.means.workspaces.all().await?;
        let tenants = self.means.states.tenants().await?;
        let is_enabled = self.means.config.enabled;
        let is_on =
            |name: &TenantName| is_enabled && settings.get(name).is_none_or(|set| set.collect != Some(false));
        Ok(tenants.into_iter().map(|record| record.name).partition(is_on))
    }

    fn sources(&self) -> BTreeSet<Source> {
        self.means.scrapers.iter().map(|one| one.live.source()).collect()
    }

    fn follow(self: &Arc<Self>, tenant: &TenantName) -> Followed {
        let begun = begin(Arc::clone(self), tenant.clone()).boxed().shared();
        let one = |scrapers: &Scrapers| {
            tokio::spawn(follow::follow(Arc::clone(self), tenant.clone(), scrapers.clone(), begun.clone()))
        };
        Followed(self.means.scrapers.iter().map(one).collect())
    }
}

/// Finds out which clusters a tenant had, before any is read: what cannot be told after some tries is taken for none.
async fn begin(inner: Arc<Inner>, tenant: TenantName) {
    let Means { samples, board, .. } = &inner.means;
    for wait in WAITS {
        tokio::time::sleep(wait).await;
        // Many begin at the same time: they take turns.
        let _place = inner.beginning.acquire().await;
        if let Ok(Some(incarnations)) = timeout(PATIENCE, samples.clusters(&tenant)).await {
            return board.had(&tenant, incarnations);
        }
    }
    tracing::warn!(tenant.name = %tenant, "samples of another cluster than before may go on as that one's");
}

/// How often each source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paces {
    /// Kubernetes.
    pub kubernetes: Pace,
    /// Talos, of control planes.
    pub talos: Pace,
    /// `node_exporter`.
    pub node_metrics: Pace,
}

/// Workers' Talos API is read by turns: of one of them there is news at least so often.
const WORKERS: Duration = Duration::from_mins(5);

impl Paces {
    /// Those that are set.
    pub fn of(config: &CollectorConfig) -> Self {
        let CollectorConfig { kubernetes, talos, node_metrics, .. } = config;
        Self { kubernetes: Pace(kubernetes.0), talos: Pace(talos.0), node_metrics: Pace(node_metrics.0) }
    }

    /// That of a source.
    pub const fn of_source(self, source: Source) -> Pace {
        match source {
            Source::Kubernetes => self.kubernetes,
            Source::Talos => self.talos,
            Source::NodeMetrics => self.node_metrics,
        }
    }

    /// That of a machine that Talos tells of.
    pub fn of_machine(self, machine: &TalosMachine) -> Pace {
        if machine.kind == MachineKind::ControlPlane { self.talos } else { Pace(self.talos.0.max(WORKERS)) }
    }
}
