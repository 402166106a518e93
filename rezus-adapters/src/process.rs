//! tofu and terraform as child processes, each under a supervisor that outlives the server. Linux: it reads `/proc`.
//!
//! A job is three processes. The server starts the supervisor, the supervisor starts the program; environment and
//! secrets go from one to the next by a pipe and are in no file and no argument. The files of a run are the truth for
//! everybody (`process/files.rs`): the supervisor writes them, and the server reads them whether it started the job or
//! found it. What comes in between is told nowhere else, so nothing is lost with either of the two.

mod backend_block;
mod execution;
mod files;
mod identity;
mod leftovers;
mod query;
mod run_log;
mod spawn;
mod spool;
mod supervisor;
mod tool;
mod tree;
mod watch;
mod wire;
mod workspace;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::runs::Stage;
use rezus_core::runs::executor::{
    Answer, Configuration, Ending, Execution, ExecutorError, Job, Prepared, Query, RunId, TofuExecutor, Tool,
    ToolKind,
};
use zeroize::Zeroizing;

pub use supervisor::supervise;
pub use tool::{OLDEST_TERRAFORM, OLDEST_TOFU};
pub use tree::{MOST_BYTES, MOST_FILES};

use execution::ProcessExecution;
use files::{ProcessRecord, RunFiles, blocking, make_folder, remove, system};
use watch::Watch;
use wire::WireJob;

/// What marks the processes of a run.
fn mark(id: &RunId) -> String {
    format!("{}/{}", id.tenant, id.run)
}

/// How programs are executed.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// Where runs have their files: a folder in the data directory. Nobody else may open it.
    pub dir: PathBuf,
    /// Where working directories are.
    pub work: PathBuf,
    /// The program, and its arguments, that calls [`supervise`].
    pub supervisor: Vec<OsString>,
    /// The user and the group that programs run as; else the server's. Only root can do that. They must be able to
    /// reach `work`, and should not be able to reach anything else of the server's.
    pub run_as: Option<(u32, u32)>,
    /// Where providers are kept for all tenants (`TF_PLUGIN_CACHE_DIR`).
    pub plugin_cache: Option<PathBuf>,
}

/// A [`TofuExecutor`] by child processes. A clone is another handle of the same.
///
/// One that is made anew over the same folders finds what the one before it has begun, if that is gone.
#[derive(Clone, Debug)]
pub struct ProcessExecutor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: ProcessConfig,
    tools: tool::Tools,
    /// The jobs whose end is not known yet.
    jobs: Mutex<HashMap<(RunId, Stage), Arc<Watch>>>,
    /// A tenant's is held while a working directory of it is made.
    preparing: Mutex<HashMap<TenantName, Arc<Mutex<()>>>>,
}

impl ProcessConfig {
    /// Where a job's program keeps providers: `OpenTofu` locks what it shares, since 1.10; Terraform does not, so there each
    /// tenant has its own, and a tenant has one run at a time.
    fn cache_of(&self, job: &Job) -> Option<PathBuf> {
        let cache = self.plugin_cache.as_ref()?;
        Some(match job.tool.kind {
            ToolKind::Tofu => cache.join("tofu"),
            ToolKind::Terraform => cache.join("terraform").join(job.id.tenant.as_str()),
        })
    }
}

impl Inner {
    /// What is held while a working directory of a tenant is made: no tenant waits for another.
    fn preparing(&self, tenant: &TenantName) -> Arc<Mutex<()>> {
        let mut all = self.preparing.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(tenant.clone()).or_default())
    }
}

impl ProcessExecutor {
    /// Makes one; the folders are made when they are needed.
    pub fn new(mut config: ProcessConfig) -> Self {
        // Supervisors and programs work in other directories than this process.
        for path in [&mut config.dir, &mut config.work].into_iter().chain(&mut config.plugin_cache) {
            *path = std::path::absolute(&*path).unwrap_or_else(|_| path.clone());
        }
        let jobs = Mutex::default();
        let inner = Inner { config, tools: tool::Tools::default(), jobs, preparing: Mutex::default() };
        Self(Arc::new(inner))
    }

    fn files(&self, id: &RunId) -> RunFiles {
        RunFiles::new(&self.0.config.dir, id)
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<(RunId, Stage), Arc<Watch>>> {
        self.0.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_executed(&self, id: &RunId) -> bool {
        self.jobs().iter().any(|((known, _), watch)| known == id && !watch.has_ended())
    }

    /// Starts a job, whether anybody waits for that or not: what has begun must be known here.
    async fn begin(self, job: Job) -> Result<Arc<Watch>, ExecutorError> {
        let (id, stage, files) = (job.id.clone(), job.stage, self.files(&job.id));
        self.claim(&job, &files).await?;
        let wire = WireJob::new(&job, &self.0.config, &files);
        drop(job);
        let started = match watch::start(&self.0.config, wire).await {
            Ok(started) => started,
            Err(error) => {
                // Nothing runs: nothing was begun.
                blocking(move || {
                    let left = [files.process(stage), files.events(stage)];
                    left.iter().try_for_each(|path| remove(path)).map_err(system("remove a run's files"))
                })
                .await?;
                return Err(error);
            }
        };
        let (watch, ends) = Watch::new();
        let watch = Arc::new(watch);
        let key = (id, stage);
        self.jobs().insert(key.clone(), Arc::clone(&watch));
        let watched = Arc::clone(&watch);
        tokio::spawn(async move {
            watch::follow(started, files, stage, &watched, ends).await;
            self.jobs().remove(&key);
        });
        Ok(watch)
    }

    /// Makes a run's folder, and says in it that a stage is begun, before it is.
    async fn claim(&self, job: &Job, files: &RunFiles) -> Result<(), ExecutorError> {
        if job.steps.is_empty() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it has no steps");
            return Err(system("start a job")(error));
        }
        if self.is_executed(&job.id) {
            let error = io::Error::new(io::ErrorKind::ResourceBusy, "its run is executed already");
            return Err(system("start a job")(error));
        }
        let (stage, files, plan) = (job.stage, files.clone(), self.plan_path(&job.id));
        let record = ProcessRecord {
            boot_id: identity::boot_id().map_err(system("read the boot's ID"))?,
            supervisor: None,
            child: None,
            step: 0,
            work_dir: job.work_dir.clone(),
            grace_millis: wire::millis(job.grace),
        };
        let run_as = self.0.config.run_as;
        let (cache, root) = (self.0.config.cache_of(job), self.0.config.plugin_cache.clone());
        blocking(move || {
            let write = system("write a run's files");
            if let Some(cache) = cache {
                // The tools complain of one that is not there, and make none.
                make_folder(&cache).map_err(&write)?;
                if let (Some(owner), Some(root)) = (run_as, root) {
                    // What leads there stays the server's: nobody else can put a link in its place.
                    for level in cache.ancestors().skip(1).take_while(|level| level.starts_with(&root)) {
                        workspace::let_through(level).map_err(&write)?;
                    }
                    workspace::give_folder(&cache, owner).map_err(&write)?;
                }
            }
            make_folder(files.path()).map_err(&write)?;
            if let (Some(owner), Some(folder)) = (run_as, plan.parent()) {
                make_folder(folder).map_err(&write)?;
                workspace::give_folder(folder, owner).map_err(&write)?;
                for above in folder.ancestors().skip(1).take(2) {
                    workspace::let_through(above).map_err(&write)?;
                }
            }
            // A stage is executed once.
            let path = files.process(stage);
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(&write)?;
            files.write_process(stage, &record).map_err(&write)
        })
        .await
    }
}

#[async_trait]
impl TofuExecutor for ProcessExecutor {
    async fn tool(&self, named: Option<PathBuf>) -> Result<Tool, ExecutorError> {
        self.0.tools.find(named).await
    }

    async fn prepare(
        &self,
        tenant: &TenantName,
        configuration: Configuration,
        files: Vec<(String, String)>,
    ) -> Result<Prepared, ExecutorError> {
        let (inner, tenant) = (Arc::clone(&self.0), tenant.clone());
        blocking(move || {
            let preparing = inner.preparing(&tenant);
            let _one = preparing.lock().unwrap_or_else(PoisonError::into_inner);
            workspace::prepare(&inner.config, &tenant, &configuration, &files)
        })
        .await
    }

    /// In the run's folder; where programs run as somebody else, who must not get there, beside the working
    /// directories.
    fn plan_path(&self, id: &RunId) -> PathBuf {
        match self.0.config.run_as {
            None => self.files(id).plan(),
            Some(_) => {
                self.0.config.work.join(id.tenant.as_str()).join("plans").join(id.run.as_str()).join("plan")
            }
        }
    }

    async fn start(&self, job: Job) -> Result<Box<dyn Execution>, ExecutorError> {
        let (files, stage) = (self.files(&job.id), job.stage);
        let begun = tokio::spawn(self.clone().begin(job)).await;
        let watch = begun.map_err(|error| system("start a job")(io::Error::other(error)))??;
        Ok(Box::new(ProcessExecution::new(files, stage, watch)))
    }

    async fn find(&self, id: &RunId, stage: Stage) -> Result<Option<Box<dyn Execution>>, ExecutorError> {
        let (files, key) = (self.files(id), (id.clone(), stage));
        let known = self.jobs().get(&key).map(Arc::clone);
        if let Some(watch) = known {
            return Ok(Some(Box::new(ProcessExecution::new(files, stage, watch))));
        }
        let look = files.clone();
        let (ending, was_begun) = blocking(move || {
            let read = system("read a run's files");
            let ending: Option<Ending> = look.read_ending(stage).map_err(&read)?;
            Ok((ending, look.process(stage).exists()))
        })
        .await?;
        let watch = match (ending, was_begun) {
            (Some(ending), _) => Arc::new(Watch::ended(ending)),
            (None, false) => return Ok(None),
            (None, true) => self.adopt(key, files.clone()),
        };
        Ok(Some(Box::new(ProcessExecution::new(files, stage, watch))))
    }

    async fn query(&self, query: Query) -> Result<Answer, ExecutorError> {
        let config = &self.0.config;
        let environment = query.environment.iter();
        let environment = environment
            .map(|(name, value)| (name.clone(), Zeroizing::new(value.reveal().to_owned())))
            .collect();
        let (tool, work_dir) = (&query.tool.path, &query.work_dir);
        let mut command = spawn::command(tool, work_dir, &environment, None, config.run_as);
        command.args(&query.arguments);
        query::run(command, query.timeout, query.limit).await
    }

    async fn errored_state(&self, work_dir: PathBuf) -> Result<Option<Bytes>, ExecutorError> {
        let read = move || workspace::errored_state(&work_dir);
        blocking(move || read().map_err(system("read the state that was not saved"))).await
    }

    async fn remove_errored_state(&self, work_dir: PathBuf) -> Result<(), ExecutorError> {
        let remove = move || workspace::remove_errored_state(&work_dir);
        blocking(move || remove().map_err(system("remove the state that was not saved"))).await
    }

    async fn keep_errored_state(&self, id: &RunId, work_dir: PathBuf) -> Result<PathBuf, ExecutorError> {
        let files = self.files(id);
        blocking(move || {
            workspace::keep_errored_state(&files, &work_dir)
                .map_err(system("keep the state that was not saved"))
        })
        .await
    }

    async fn is_plan_clear(&self, id: &RunId) -> Result<bool, ExecutorError> {
        let plan = self.plan_path(id);
        blocking(move || workspace::is_plan_clear(&plan).map_err(system("read a run's plan"))).await
    }

    async fn discard_plan(&self, id: &RunId) -> Result<(), ExecutorError> {
        let plan = self.plan_path(id);
        blocking(move || remove(&plan).map_err(system("remove a run's plan"))).await
    }

    async fn log(&self, id: &RunId, offset: u64, most: usize) -> Result<Option<Bytes>, ExecutorError> {
        let files = self.files(id);
        let read = move || run_log::read(&files, offset, most).map_err(system("read a run's log"));
        Ok(blocking(read).await?.map(Bytes::from))
    }

    async fn seal(&self, id: &RunId) -> Result<(), ExecutorError> {
        self.must_have_ended(id, "seal a run's log")?;
        let (files, plan) = (self.files(id), self.plan_path(id));
        blocking(move || {
            let removed = remove(&plan).map_err(system("remove a run's plan"));
            run_log::seal(&files).map_err(system("compress a run's log"))?;
            for stage in Stage::ALL {
                for path in [files.events(stage), files.process(stage)] {
                    remove(&path).map_err(system("remove a run's files"))?;
                }
            }
            removed
        })
        .await
    }

    async fn forget(&self, id: &RunId) -> Result<(), ExecutorError> {
        self.must_have_ended(id, "forget a run")?;
        let (files, plan) = (self.files(id), self.plan_path(id));
        blocking(move || {
            let gone = system("remove a run's files");
            let removed = plan.parent().map_or(Ok(()), workspace::remove_folder).map_err(&gone);
            workspace::remove_folder(files.path()).map_err(&gone)?;
            removed
        })
        .await
    }
}

impl ProcessExecutor {
    /// Follows a job that an earlier server has begun, once.
    fn adopt(&self, key: (RunId, Stage), files: RunFiles) -> Arc<Watch> {
        let mut jobs = self.jobs();
        if let Some(known) = jobs.get(&key) {
            return Arc::clone(known);
        }
        let (watch, ends) = Watch::new();
        let watch = Arc::new(watch);
        jobs.insert(key.clone(), Arc::clone(&watch));
        let (executor, watched) = (self.clone(), Arc::clone(&watch));
        tokio::spawn(async move {
            watch::follow_found(files, key.1, &watched, ends).await;
            executor.jobs().remove(&key);
        });
        watch
    }

    fn must_have_ended(&self, id: &RunId, what: &'static str) -> Result<(), ExecutorError> {
        if self.is_executed(id) {
            let error = io::Error::new(io::ErrorKind::ResourceBusy, "it is executed");
            return Err(system(what)(error));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_the_same_in_every_directory() {
        let config = ProcessConfig {
            dir: "data/runs".into(),
            work: "data/work".into(),
            supervisor: Vec::new(),
            run_as: None,
            plugin_cache: Some("data/plugins".into()),
        };
        let ProcessConfig { dir, work, plugin_cache, .. } = ProcessExecutor::new(config).0.config.clone();
        let here = std::env::current_dir().unwrap();
        assert_eq!(dir, here.join("data/runs"));
        assert_eq!(work, here.join("data/work"));
        assert_eq!(plugin_cache, Some(here.join("data/plugins")));
    }

    #[tokio::test]
    async fn a_tenant_waits_for_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("main.tf"), "").unwrap();
        let config = ProcessConfig {
            dir: folder.path().join("runs"),
            work: folder.path().join("work"),
            supervisor: Vec::new(),
            run_as: None,
            plugin_cache: None,
        };
        let executor = ProcessExecutor::new(config);
        let (busy, other) = (TenantName::parse("busy").unwrap(), TenantName::parse("other").unwrap());
        let held = executor.0.preparing(&busy);
        // Held by a thread, which ends with what it waits for.
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let (holds, is_held) = tokio::sync::oneshot::channel();
        let holder = std::thread::spawn(move || {
            let _held = held.lock().unwrap();
            holds.send(()).unwrap();
            assert!(wait.recv().is_err());
        });
        is_held.await.unwrap();
        let prepare = async |tenant| {
            let made = executor.prepare(tenant, Configuration::Directory(source.clone()), Vec::new());
            tokio::time::timeout(std::time::Duration::from_secs(30), made).await
        };
        let others = prepare(&other).await;
        assert!(executor.0.preparing(&busy).try_lock().is_err());
        drop(release);
        holder.join().unwrap();
        assert!(others.expect("it waits for another tenant").is_ok());
        assert!(prepare(&busy).await.unwrap().is_ok());
    }
}
