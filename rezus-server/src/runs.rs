//! Runs: who may have one when, what becomes of each, and the truth about it afterwards.
//!
//! One board holds every run that has not ended; it is changed under one lock, and what is on it was made durable
//! first. `dispatch` gives runs their turn, `drive` takes one through a stage, `settle` sees to what a stage left.

mod again;
mod create;
mod dispatch;
mod drive;
mod error;
mod holder;
mod kit;
mod live;
mod plaintext;
mod plans;
mod recover;
mod rehearse;
mod saves;
mod schedule;
mod settle;
mod token;
mod unrecorded;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rezus_core::base::{Clock, TenantName, Timestamp};
use rezus_core::declared::backend::StateBackend;
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projector::Projector;
use rezus_core::declared::reader::StateReader;
use rezus_core::declared::store::{StateStore, TenantRecord};
use rezus_core::runs::executor::{RunId, TofuExecutor};
use rezus_core::runs::store::RunStore;
use rezus_core::runs::workspace::Workspace;
use rezus_core::runs::{
    Asked, Cause, Ended, Learns as _, PendingEnd, Phase, PlannedValues, Queue, Run, RunName, RunRecord,
    SecretText, WaitEnd,
};
use tokio::sync::{Mutex, Notify, mpsc, watch};

use crate::auth::Auth;
use crate::config::RunsConfig;
use crate::kube::catalogue::Catalogue;
use crate::pulls::Desk;
use crate::workspaces::Workspaces;

pub use create::{Name, NewRun};
pub use error::RunsError;
pub use holder::Holder;
pub use live::Live;
pub use saves::Save;

/// All runs. Clones are the same.
#[derive(Clone, Debug)]
pub struct Runs(Arc<Inner>);

/// What runs work with.
#[derive(Debug)]
pub struct Means {
    /// Where they are kept.
    pub store: Arc<dyn RunStore>,
    /// Where they are executed.
    pub executor: Arc<dyn TofuExecutor>,
    /// The states.
    pub backend: StateBackend,
    /// Reads through the index.
    pub reader: StateReader,
    /// What states declare.
    pub projector: Projector,
    /// Tokens, and the audit trail.
    pub auth: Auth,
    /// What is shown.
    pub catalogue: Catalogue,
    /// What is so for a moment, for whoever shows it.
    pub live: Live,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where plaintexts are asked for.
    pub desk: Desk,
    /// The settings.
    pub config: RunsConfig,
    /// What they are made with.
    pub workspaces: Workspaces,
    /// The URLs of the listeners, once they are bound.
    pub listeners: Arc<std::sync::OnceLock<Vec<String>>>,
}

#[derive(Debug)]
struct Inner {
    means: Means,
    board: Mutex<Board>,
    wake: Notify,
    /// Whether new runs are refused, as the server is about to end.
    closed: AtomicBool,
    /// Whether what an earlier server left was taken up.
    taken_over: tokio::sync::OnceCell<()>,
    /// Held by whoever looks again for what is in no version.
    rechecks: Mutex<()>,
    /// How many runs are in somebody's hands.
    busy: watch::Sender<usize>,
}

/// Every run that has not ended, and whose turn it is.
#[derive(Debug)]
struct Board {
    queue: Queue,
    runs: HashMap<RunId, Entry>,
    /// Tenants that an operator has stopped.
    frozen: BTreeMap<TenantName, String>,
    /// Tenants with something that was created and is in no version.
    unrecorded: HashSet<TenantName>,
}

/// The longest pause between two attempts to keep a run.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(4);

/// A run on the board.
#[derive(Debug)]
struct Entry {
    run: Run,
    asked: Asked,
    /// To whoever drives it.
    orders: Option<mpsc::UnboundedSender<Order>>,
    /// How long its log is.
    log: watch::Sender<u64>,
    /// What was done when it saved, of an apply.
    saves: Option<Arc<saves::Saves>>,
    /// What its plan changes, where the plan itself is not kept.
    values: Option<PlannedValues>,
}

/// What a run that is under way is told.
#[derive(Debug)]
enum Order {
    Interrupt,
    Kill,
    Secrets(Vec<SecretText>),
}

impl Entry {
    fn new(run: Run) -> Self {
        let log = watch::Sender::new(0);
        Self { run, asked: Asked::default(), orders: None, log, saves: None, values: None }
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // Whoever drove it has just finished.
            drop(orders.send(order));
        }
    }
}

impl Runs {
    /// Makes it; nothing happens before [`serve`](Self::serve).
    pub fn new(means: Means) -> Self {
        let queue = Queue::new(means.config.slots);
        let board =
            Board { queue, runs: HashMap::new(), frozen: BTreeMap::new(), unrecorded: HashSet::new() };
        Self(Arc::new(Inner {
            means,
            board: Mutex::new(board),
            wake: Notify::new(),
            closed: AtomicBool::new(false),
            taken_over: tokio::sync::OnceCell::new(),
            rechecks: Mutex::new(()),
            busy: watch::Sender::new(0),
        }))
    }

    /// Returns where runs are kept.
    pub fn store(&self) -> &Arc<dyn RunStore> {
        &self.0.means.store
    }

    /// Returns where states are kept.
    pub fn states(&self) -> &Arc<dyn StateStore> {
        self.0.means.backend.store()
    }

    /// Returns the mappings in force.
    pub fn mappings(&self) -> Mappings {
        self.0.means.projector.mappings()
    }

    /// Returns where they are executed.
    pub fn executor(&self) -> &Arc<dyn TofuExecutor> {
        &self.0.means.executor
    }

    /// Returns what a tenant's runs are made with.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoWorkspace`] where it has no configuration.
    pub async fn workspace(&self, tenant: &TenantName) -> Result<Workspace, RunsError> {
        let settings = self.0.means.workspaces.of(tenant).await?;
        settings.workspace.ok_or_else(|| RunsError::NoWorkspace(tenant.clone()))
    }

    /// Ends a tenant's runs whose plan waits.
    async fn make_stale(
        &self,
        board: &mut Board,
        tenant: &TenantName,
        cause: &Cause,
    ) -> Result<(), RunsError> {
        let now = self.0.means.clock.now();
        let waiting: Vec<RunId> = board
            .runs
            .iter()
            .filter(|(id, entry)| {
                id.tenant == *tenant && matches!(entry.run, Run::AwaitingApproval(_) | Run::Approved(_))
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in waiting {
            let is_driven = board.queue.active(tenant) == Some(&id);
            let ended = match board.runs.get(&id).map(|entry| entry.run.clone()) {
                Some(Run::AwaitingApproval(run)) => run.end(WaitEnd::Stale, cause.clone(), now),
                Some(Run::Approved(run)) if !is_driven => run.end(WaitEnd::Stale, cause.clone(), now),
                _ => continue,
            };
            self.end(board, &id, ended).await?;
        }
        Ok(())
    }

    /// Keeps a run. A store that cannot be used is tried again for a while: what has happened is not to be forgotten.
    async fn put(&self, record: &RunRecord) -> Result<(), RunsError> {
        let mut wait = std::time::Duration::from_millis(50);
        loop {
            match self.store().put(record).await {
                Ok(_) => return Ok(()),
                Err(error) if wait > PATIENCE => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(tenant.name = %record.tenant(), run = %record.facts().name, cause = %crate::error::Chain(&error), "a run cannot be kept now: it is tried again");
                    tokio::time::sleep(wait).await;
                    wait *= 2;
                }
            }
        }
    }

    /// Keeps what a run has become.
    async fn keep(&self, board: &mut Board, id: &RunId, run: Run) -> Result<(), RunsError> {
        self.put(&run.record()).await?;
        self.0.means.live.is_kept(id);
        if let Some(entry) = board.runs.get_mut(id) {
            entry.run = run;
        }
        self.0.means.catalogue.touch(&id.tenant);
        Ok(())
    }

    /// Keeps that a run has ended, and lets go of all that it had.
    async fn end(&self, board: &mut Board, id: &RunId, ended: Ended) -> Result<(), RunsError> {
        if !ended.facts().unrecorded.is_empty() {
            board.unrecorded.insert(id.tenant.clone());
        }
        self.put(&Run::Ended(ended).record()).await?;
        self.0.means.live.is_kept(id);
        board.queue.remove(id);
        board.runs.remove(id);
        self.0.means.catalogue.touch(&id.tenant);
        // The plan at once: it may hold secrets. A long log takes a while.
        if let Err(error) = self.executor().discard_plan(id).await {
            tracing::error!(tenant.name = %id.tenant, run = %id.run, cause = %crate::error::Chain(&error), "a run's plan cannot be removed");
        }
        let (runs, id) = (self.clone(), id.clone());
        tokio::spawn(async move { runs.seal(&id).await });
        Ok(())
    }

    /// Puts away what a run left.
    async fn seal(&self, id: &RunId) {
        if let Err(error) = self.executor().seal(id).await {
            tracing::warn!(tenant.name = %id.tenant, run = %id.run, cause = %crate::error::Chain(&error), "what a run left cannot be put away");
        }
    }

    /// Agrees to what a run has planned. One that was approved before and has not ended stays as it is.
    ///
    /// # Errors
    ///
    /// [`RunsError::NotWaiting`] for a run whose plan waits for nobody.
    pub async fn approve(
        &self,
        tenant: &TenantName,
        name: &RunName,
        by: &str,
    ) -> Result<RunRecord, RunsError> {
        if self.0.closed.load(Ordering::SeqCst) {
            return Err(RunsError::Closed);
        }
        let id = RunId { tenant: tenant.clone(), run: name.clone() };
        let mut board = self.0.board.lock().await;
        let waiting = match board.runs.get(&id).map(|entry| entry.run.clone()) {
            Some(Run::AwaitingApproval(waiting)) => waiting,
            Some(run) if run.facts().approved_by.is_some() => return Ok(run.record()),
            _ => {
                let record = self.kept(tenant, name).await?;
                return Err(RunsError::NotWaiting { run: name.clone(), phase: record.phase() });
            }
        };
        let approved = Run::Approved(waiting.approve(by));
        let record = approved.record();
        self.keep(&mut board, &id, approved).await?;
        board.queue.push(id, self.0.means.clock.now());
        drop(board);
        self.0.wake.notify_one();
        Ok(record)
    }

    /// Ends a run: at once where it waits; one that is under way is interrupted, and killed where it was cancelled
    /// before. One that has ended stays as it is.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`].
    pub async fn cancel(
        &self,
        tenant: &TenantName,
        name: &RunName,
        by: &str,
    ) -> Result<RunRecord, RunsError> {
        let id = RunId { tenant: tenant.clone(), run: name.clone() };
        let mut board = self.0.board.lock().await;
        let now = self.0.means.clock.now();
        let cause = Cause::new("Cancelled", format!("cancelled by {by}"));
        let Some(entry) = board.runs.get_mut(&id) else {
            return self.kept(tenant, name).await;
        };
        let is_driven = entry.orders.is_some();
        let ended = match entry.run.clone() {
            Run::Pending(run) => run.end(PendingEnd::Cancelled(by.to_owned()), cause, now),
            Run::AwaitingApproval(run) => {
                let run = run.learn(|facts| facts.cancelled_by = Some(by.to_owned()));
                run.end(WaitEnd::Cancelled, cause, now)
            }
            Run::Approved(run) if !is_driven => {
                let run = run.learn(|facts| facts.cancelled_by = Some(by.to_owned()));
                run.end(WaitEnd::Cancelled, cause, now)
            }
            run => {
                let order = if entry.asked.cancelled_by.is_some() { Order::Kill } else { Order::Interrupt };
                entry.asked.cancelled_by.get_or_insert_with(|| by.to_owned());
                entry.order(order);
                return Ok(run.record());
            }
        };
        let record = Run::Ended(ended.clone()).record();
        self.end(&mut board, &id, ended).await?;
        drop(board);
        self.0.wake.notify_one();
        Ok(record)
    }

    /// Says that what a run created and no version has is taken care of.
    ///
    /// # Errors
    ///
    /// [`RunsError`].
    pub async fn dismiss(
        &self,
        tenant: &TenantName,
        name: &RunName,
        by: &str,
    ) -> Result<RunRecord, RunsError> {
        let _board = self.0.board.lock().await;
        let record = self.kept(tenant, name).await?;
        let Run::Ended(ended) = Run::from(record.clone()) else {
            return Err(RunsError::NotEnded { run: name.clone(), phase: record.phase() });
        };
        let record = Run::Ended(ended.dismiss(by)).record();
        self.store().put(&record).await?;
        self.0.means.catalogue.touch(tenant);
        Ok(record)
    }

    /// Returns a run as it is kept.
    ///
    /// # Errors
    ///
    /// [`RunsError::NoRun`].
    pub async fn kept(&self, tenant: &TenantName, name: &RunName) -> Result<RunRecord, RunsError> {
        let found = self.store().run(tenant, name).await?;
        found.ok_or_else(|| RunsError::NoRun { tenant: tenant.clone(), run: name.clone() })
    }

    /// Returns a tenant's runs, those under way as far as they are now.
    ///
    /// # Errors
    ///
    /// [`RunsError::Store`].
    pub async fn of(&self, tenant: &TenantName) -> Result<Vec<RunRecord>, RunsError> {
        let mut records = self.store().runs(Some(tenant)).await?;
        self.0.means.live.bring_up_to_date(&mut records);
        Ok(records)
    }

    /// Tells how long the log of a run is, as it grows. `None` for a run that has ended: its log grows no more.
    pub async fn log_length(&self, id: &RunId) -> Option<watch::Receiver<u64>> {
        self.0.board.lock().await.runs.get(id).map(|entry| entry.log.subscribe())
    }

    /// Says that a new version of a tenant's state was accepted: plans of the earlier one are stale, and what is secret in
    /// it is kept out of logs from now on.
    pub async fn accepted(&self, tenant: &TenantName) {
        let mut board = self.0.board.lock().await;
        let cause = Cause::new("StateMoved", "the state has a newer version than the plan");
        if let Err(error) = self.make_stale(&mut board, tenant, &cause).await {
            tracing::warn!(tenant.name = %tenant, cause = %crate::error::Chain(&error), "a run whose plan is stale cannot be ended now");
        }
        drop(board);
        self.tell_secrets(tenant).await;
        self.recheck_unrecorded(tenant).await;
    }

    /// Finds out whether an operator has stopped a tenant's runs, or lets them go on.
    ///
    /// # Errors
    ///
    /// [`RunsError::States`].
    pub async fn look_at_freeze(&self, tenant: &TenantName) -> Result<(), RunsError> {
        // Under the lock: of two that look, the later one is right.
        let mut board = self.0.board.lock().await;
        let record = self.states().tenant(tenant).await?;
        let why = record.and_then(|(record, _)| frozen(&record));
        match why {
            Some(why) => board.frozen.insert(tenant.clone(), why),
            None => board.frozen.remove(tenant),
        };
        drop(board);
        self.0.wake.notify_one();
        Ok(())
    }
}

/// The point in time that lies `span` after another.
fn later(at: Timestamp, span: std::time::Duration) -> Timestamp {
    let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_add(millis))
}

/// Tells by whom and why a tenant's runs are stopped.
fn frozen(record: &TenantRecord) -> Option<String> {
    record.freeze.as_ref().map(|freeze| format!("{} by {}", freeze.reason, freeze.by))
}

/// Tells whether a run of this phase is under way.
pub const fn is_under_way(phase: Phase) -> bool {
    matches!(phase, Phase::Planning | Phase::Applying)
}
