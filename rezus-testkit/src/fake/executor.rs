//! Programs that are not executed, but do as scripts say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::runs::executor::{
    Answer, Configuration, Ending, Execution, ExecutorError, Happening, Job, Prepared, Query, RunId, Stopped,
    TofuExecutor, Tool, ToolKind,
};
use rezus_core::runs::stream::Event;
use rezus_core::runs::{SecretText, Stage};
use tokio::sync::watch;
use zeroize::Zeroizing;

use super::Script;
use super::performance::{Order, Performance};

type Answers = Box<dyn Fn(&Query) -> Result<Answer, ExecutorError> + Send + Sync>;

/// A working directory that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preparation {
    /// For whom.
    pub tenant: TenantName,
    /// Of what.
    pub configuration: Configuration,
    /// With these files.
    pub files: Vec<(String, String)>,
}

/// A [`TofuExecutor`] in memory. A clone is another handle of the same storage.
///
/// A job does as the script for its tenant and stage says, else that for its stage, else it ends well at once.
#[derive(Clone, Default)]
pub struct ScriptedExecutor(Arc<Shared>);

/// What handles and jobs share.
#[derive(Default)]
pub(super) struct Shared {
    state: Mutex<State>,
    /// Changes whenever something has happened.
    pub(super) changed: watch::Sender<u64>,
}

/// All there is.
#[derive(Default)]
pub(super) struct State {
    scripts: BTreeMap<(Option<TenantName>, Stage), Script>,
    pub(super) gates: BTreeSet<String>,
    pub(super) runs: BTreeMap<RunId, FakeRun>,
    jobs: Vec<Job>,
    queries: Vec<Query>,
    answers: Option<Answers>,
    prepared: Vec<Preparation>,
    refused: Option<String>,
    unstartable: Option<String>,
    errored: Option<Bytes>,
}

/// What a run has left.
#[derive(Default)]
pub(super) struct FakeRun {
    pub(super) log: Vec<u8>,
    pub(super) stages: BTreeMap<Stage, FakeStage>,
}

/// A job.
pub(super) struct FakeStage {
    pub(super) events: Vec<Event>,
    pub(super) ended: Option<Ending>,
    pub(super) orders: watch::Sender<Order>,
    pub(super) secrets: Vec<SecretText>,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what there is, and has everybody look at it who waits.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.send_modify(|turn| *turn += 1);
        changed
    }

    fn order(&self, id: &RunId, stage: Stage, order: Order) {
        self.change(|state| {
            if let Some(stage) = state.runs.get(id).and_then(|run| run.stages.get(&stage)) {
                stage.orders.send_if_modified(|known| known.raise(order));
            }
        });
    }
}

impl ScriptedExecutor {
    /// One without scripts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has all jobs of a stage do this.
    #[must_use]
    pub fn script(self, stage: Stage, script: Script) -> Self {
        self.set_script(None, stage, script);
        self
    }

    /// Has the jobs of a stage that start from now on do this: those of a tenant, or all that have no script of their
    /// tenant's.
    pub fn set_script(&self, tenant: Option<&TenantName>, stage: Stage, script: Script) {
        self.0.lock().scripts.insert((tenant.cloned(), stage), script);
    }

    /// Opens a gate, for good.
    pub fn open_gate(&self, gate: &str) {
        self.0.change(|state| state.gates.insert(gate.to_owned()));
    }

    /// Has queries answered so; else they say nothing and end well.
    pub fn answer(&self, answers: impl Fn(&Query) -> Result<Answer, ExecutorError> + Send + Sync + 'static) {
        self.0.lock().answers = Some(Box::new(answers));
    }

    /// Has configurations refused, for this reason, or taken again.
    pub fn refuse_configurations(&self, reason: Option<&str>) {
        self.0.lock().refused = reason.map(str::to_owned);
    }

    /// Lets no job start, for this reason, or lets them again.
    pub fn refuse_starts(&self, reason: Option<&str>) {
        self.0.lock().unstartable = reason.map(str::to_owned);
    }

    /// Leaves a state that could not be saved, for whoever takes it next.
    pub fn leave_errored_state(&self, state: Bytes) {
        self.0.lock().errored = Some(state);
    }

    /// The server is gone, and another one begins: what runs is interrupted.
    pub fn lose_server(&self) {
        self.order_all(Order::Interrupt(Stopped::ServerLost));
    }

    /// Whoever watches programs is gone: nobody sees how those that run end.
    pub fn lose_supervisors(&self) {
        self.order_all(Order::Lose);
    }

    fn order_all(&self, order: Order) {
        self.0.change(|state| {
            for stage in state.runs.values().flat_map(|run| run.stages.values()) {
                stage.orders.send_if_modified(|known| known.raise(order));
            }
        });
    }

    /// The jobs that were started, in their order.
    pub fn jobs(&self) -> Vec<Job> {
        self.0.lock().jobs.clone()
    }

    /// What must not be in the log of a job, as far as was told.
    pub fn secrets(&self, id: &RunId, stage: Stage) -> Vec<SecretText> {
        let state = self.0.lock();
        let stage = state.runs.get(id).and_then(|run| run.stages.get(&stage));
        stage.map(|stage| stage.secrets.clone()).unwrap_or_default()
    }

    /// The queries that were made, in their order.
    pub fn queries(&self) -> Vec<Query> {
        self.0.lock().queries.clone()
    }

    /// The configurations that were prepared, in their order.
    pub fn prepared(&self) -> Vec<Preparation> {
        self.0.lock().prepared.clone()
    }
}

impl std::fmt::Debug for ScriptedExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScriptedExecutor").finish_non_exhaustive()
    }
}

#[async_trait]
impl TofuExecutor for ScriptedExecutor {
    async fn tool(&self, named: Option<PathBuf>) -> Result<Tool, ExecutorError> {
        let path = named.unwrap_or_else(|| PathBuf::from("/usr/bin/tofu"));
        Ok(Tool { path, kind: ToolKind::Tofu, version: "1.12.6".to_owned() })
    }

    async fn prepare(
        &self,
        tenant: &TenantName,
        configuration: Configuration,
        files: Vec<(String, String)>,
    ) -> Result<Prepared, ExecutorError> {
        let mut state = self.0.lock();
        if let Some(reason) = &state.refused {
            return Err(ExecutorError::Configuration(reason.clone()));
        }
        let content = match &configuration {
            Configuration::Directory(path) => path.to_string_lossy().into_owned().into_bytes(),
            Configuration::Archive(bytes) => bytes.to_vec(),
        };
        let digest = format!("{:08x}", crc32fast::hash(&content)).repeat(8);
        state.prepared.push(Preparation { tenant: tenant.clone(), configuration, files });
        let work_dir = PathBuf::from("/work").join(tenant.as_str()).join(&digest[..16]);
        Ok(Prepared { work_dir, digest })
    }

    fn plan_path(&self, id: &RunId) -> PathBuf {
        PathBuf::from("/runs").join(id.tenant.as_str()).join(id.run.as_str()).join("plan")
    }

    async fn start(&self, job: Job) -> Result<Box<dyn Execution>, ExecutorError> {
        let (id, stage) = (job.id.clone(), job.stage);
        let (orders, seen) = watch::channel(Order::GoOn);
        let script = {
            let mut state = self.0.lock();
            if let Some(reason) = &state.unstartable {
                return Err(refused("start the program", reason));
            }
            let run = state.runs.entry(id.clone()).or_default();
            let is_executed = run.stages.values().any(|stage| stage.ended.is_none());
            if job.steps.is_empty() || is_executed || run.stages.contains_key(&stage) {
                return Err(refused(
                    "start a job",
                    "it has no steps, or its run or stage is executed already",
                ));
            }
            let secrets = job.secrets.clone();
            run.stages.insert(stage, FakeStage { events: Vec::new(), ended: None, orders, secrets });
            state.jobs.push(job.clone());
            let scripts = &state.scripts;
            let of_tenant = scripts.get(&(Some(id.tenant.clone()), stage));
            of_tenant.or_else(|| scripts.get(&(None, stage))).cloned().unwrap_or_default()
        };
        tokio::spawn(Performance::new(Arc::clone(&self.0), job, seen).perform(script));
        Ok(Box::new(FakeExecution::new(Arc::clone(&self.0), id, stage)))
    }

    async fn find(&self, id: &RunId, stage: Stage) -> Result<Option<Box<dyn Execution>>, ExecutorError> {
        let is_there = self.0.lock().runs.get(id).is_some_and(|run| run.stages.contains_key(&stage));
        Ok(is_there.then(|| -> Box<dyn Execution> {
            Box::new(FakeExecution::new(Arc::clone(&self.0), id.clone(), stage))
        }))
    }

    async fn query(&self, query: Query) -> Result<Answer, ExecutorError> {
        let mut state = self.0.lock();
        state.queries.push(query.clone());
        let answer = match &state.answers {
            Some(answers) => answers(&query)?,
            None => Answer {
                code: Some(0),
                stdout: Zeroizing::new(Vec::new()),
                stderr: SecretText::new(String::new()),
            },
        };
        if answer.stdout.len() > query.limit { Err(ExecutorError::TooLong(query.limit)) } else { Ok(answer) }
    }

    async fn errored_state(&self, _: PathBuf) -> Result<Option<Bytes>, ExecutorError> {
        Ok(self.0.lock().errored.clone())
    }

    async fn remove_errored_state(&self, _: PathBuf) -> Result<(), ExecutorError> {
        self.0.lock().errored = None;
        Ok(())
    }

    async fn keep_errored_state(&self, id: &RunId, _: PathBuf) -> Result<PathBuf, ExecutorError> {
        match self.0.lock().errored.take() {
            Some(_) => Ok(PathBuf::from("/runs").join(id.run.as_str()).join("errored.tfstate")),
            None => Err(refused("keep the state that was not saved", "there is none")),
        }
    }

    async fn is_plan_clear(&self, _: &RunId) -> Result<bool, ExecutorError> {
        Ok(true)
    }

    async fn discard_plan(&self, _: &RunId) -> Result<(), ExecutorError> {
        Ok(())
    }

    async fn log(&self, id: &RunId, offset: u64, most: usize) -> Result<Option<Bytes>, ExecutorError> {
        let state = self.0.lock();
        let Some(run) = state.runs.get(id) else {
            return Ok(None);
        };
        let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(run.log.len());
        let rest = &run.log[offset..];
        Ok(Some(Bytes::copy_from_slice(&rest[..rest.len().min(most)])))
    }

    async fn seal(&self, id: &RunId) -> Result<(), ExecutorError> {
        self.must_have_ended(id)?;
        if let Some(run) = self.0.lock().runs.get_mut(id) {
            for stage in run.stages.values_mut() {
                stage.events.clear();
            }
        }
        Ok(())
    }

    async fn forget(&self, id: &RunId) -> Result<(), ExecutorError> {
        self.must_have_ended(id)?;
        self.0.lock().runs.remove(id);
        Ok(())
    }
}

impl ScriptedExecutor {
    fn must_have_ended(&self, id: &RunId) -> Result<(), ExecutorError> {
        let state = self.0.lock();
        let mut stages = state.runs.get(id).into_iter().flat_map(|run| run.stages.values());
        if stages.any(|stage| stage.ended.is_none()) {
            return Err(refused("end a run", "it is executed"));
        }
        Ok(())
    }
}

fn refused(what: &'static str, reason: &str) -> ExecutorError {
    ExecutorError::System { what, source: std::io::Error::other(reason.to_owned()) }
}

/// A job that was started.
struct FakeExecution {
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    id: RunId,
    stage: Stage,
    /// How many events were told.
    told: usize,
    /// The length of the log that was told last.
    log: usize,
    ended: Option<Ending>,
}

impl FakeExecution {
    fn new(shared: Arc<Shared>, id: RunId, stage: Stage) -> Self {
        let changed = shared.changed.subscribe();
        Self { shared, changed, id, stage, told: 0, log: 0, ended: None }
    }

    fn look(&mut self) -> Option<Happening> {
        let state = self.shared.lock();
        let Some(run) = state.runs.get(&self.id) else {
            return self.ended.map(Happening::Ended);
        };
        let stage = run.stages.get(&self.stage)?;
        if let Some(event) = stage.events.get(self.told) {
            self.told += 1;
            return Some(Happening::Event(event.clone()));
        }
        if run.log.len() > self.log {
            self.log = run.log.len();
            return Some(Happening::Log(u64::try_from(self.log).unwrap_or(u64::MAX)));
        }
        self.ended = stage.ended;
        stage.ended.map(Happening::Ended)
    }
}

impl std::fmt::Debug for FakeExecution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeExecution")
            .field("id", &self.id)
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Execution for FakeExecution {
    async fn next(&mut self) -> Result<Happening, ExecutorError> {
        loop {
            self.changed.mark_unchanged();
            if let Some(happening) = self.look() {
                return Ok(happening);
            }
            if self.changed.changed().await.is_err() {
                return Err(refused("follow a run", "nobody watches it any more"));
            }
        }
    }

    fn interrupt(&self) {
        self.shared.order(&self.id, self.stage, Order::Interrupt(Stopped::Asked));
    }

    fn kill(&self) {
        self.shared.order(&self.id, self.stage, Order::Kill);
    }

    fn add_secrets(&self, secrets: Vec<SecretText>) {
        self.shared.change(|state| {
            let run = state.runs.get_mut(&self.id);
            if let Some(stage) = run.and_then(|run| run.stages.get_mut(&self.stage)) {
                stage.secrets.extend(secrets);
            }
        });
    }
}
