//! A plane whose runs are executed by scripts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::sqlite::SqliteStore;
use rezus_core::base::TenantName;
use rezus_core::runs::executor::Job;
use rezus_core::runs::workspace::{ConfigurationSource, TenantSettings, Workspace};
use rezus_core::runs::{Operation, Phase, RunName, RunRecord, RunRequest, Stage};
use rezus_server::compose::Stores;
use rezus_server::config::{AuthConfig, Config, RunsConfig};
use rezus_server::runs::{Name, NewRun, RunsError};
use rezus_testkit::fake::{OnInterrupt, Script, ScriptedExecutor};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::in_process::InProcess;
use crate::lock;

/// How long anything may take that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// A plane whose runs are executed by scripts, over a database of its own.
#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) plane: InProcess,
    pub(crate) executor: ScriptedExecutor,
    serving: Vec<JoinHandle<()>>,
}

/// Reads a tenant's name.
pub(crate) fn tenant(name: &str) -> TenantName {
    name.parse().unwrap()
}

/// A plan that creates so many resources.
pub(crate) fn plan_of(creates: usize) -> Script {
    changes_of(creates).exit(2)
}

/// What such a plan says.
pub(crate) fn changes_of(creates: usize) -> Script {
    let changes = (0..creates).map(|i| change(i, "create"));
    let summary = format!(
        r#"{{"@level":"info","@message":"Plan: {creates} to add","changes":{{"add":{creates},"change":0,"import":0,"remove":0,"operation":"plan"}},"type":"change_summary"}}"#
    );
    Script::lines(changes).say_lines([summary])
}

fn resource(i: usize) -> String {
    format!(r#"{{"addr":"terraform_data.it[{i}]","resource_type":"terraform_data","resource_name":"it"}}"#)
}

fn change(i: usize, action: &str) -> String {
    let resource = resource(i);
    format!(
        r#"{{"@level":"info","@message":"terraform_data.it[{i}]: Plan to {action}","change":{{"resource":{resource},"action":"{action}"}},"type":"planned_change"}}"#
    )
}

/// That a resource was created.
pub(crate) fn created(i: usize) -> String {
    let resource = resource(i);
    format!(
        r#"{{"@level":"info","@message":"terraform_data.it[{i}]: Creation complete after 0s [id=id-{i}]","hook":{{"resource":{resource},"action":"create","id_key":"id","id_value":"id-{i}","elapsed_seconds":0}},"type":"apply_complete"}}"#
    )
}

/// A state that holds so many of them.
pub(crate) fn state_of(serial: u64, resources: usize) -> String {
    let instances: Vec<String> = (0..resources)
        .map(|i| format!(r#"{{"index_key":{i},"schema_version":0,"attributes":{{"id":"id-{i}"}}}}"#))
        .collect();
    format!(
        r#"{{"version":4,"terraform_version":"1.12.6","serial":{serial},"lineage":"l","outputs":{{}},"resources":[{{"mode":"managed","type":"terraform_data","name":"it","provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[{}]}}]}}"#,
        instances.join(",")
    )
}

impl Lab {
    /// A plane with the default settings, in which everybody may run.
    pub(crate) fn new() -> Self {
        Self::with(RunsConfig { allow_without_auth: true, ..RunsConfig::default() })
    }

    /// A plane with these settings.
    pub(crate) fn with(runs: RunsConfig) -> Self {
        let directory = TempDir::new().unwrap();
        Self::over(runs, ScriptedExecutor::new(), directory)
    }

    fn over(runs: RunsConfig, executor: ScriptedExecutor, directory: TempDir) -> Self {
        let store = SqliteStore::open(&directory.path().join("rezus.db")).unwrap();
        let config = Config { auth: AuthConfig { enabled: false }, runs, ..Config::default() };
        let plane = InProcess::executing(
            &config,
            Stores::of(store, crate::in_process::series()),
            Arc::new(executor.clone()),
            Some(directory),
        );
        plane.plane().listeners.set(vec!["http://127.0.0.1:1".to_owned()]).unwrap();
        let serving = vec![
            tokio::spawn(plane.plane().runs.clone().serve()),
            tokio::spawn(plane.plane().pulls.clone().serve()),
        ];
        Self { plane, executor, serving }
    }

    /// Ends the server as by `kill -9`, and begins another over what is left.
    pub(crate) async fn killed(self) -> Self {
        self.serving.iter().for_each(JoinHandle::abort);
        self.executor.lose_server();
        let Self { plane, executor, .. } = self;
        let directory = plane.into_directory().await;
        let runs = RunsConfig { allow_without_auth: true, ..RunsConfig::default() };
        Self::over(runs, executor, directory)
    }

    /// Creates a tenant with a configuration.
    pub(crate) async fn tenant(&self, name: &str) -> TenantName {
        self.tenant_with(name, |_| {}).await
    }

    /// Creates a tenant with a configuration that is changed like this.
    pub(crate) async fn tenant_with(&self, name: &str, change: impl FnOnce(&mut Workspace)) -> TenantName {
        let name = tenant(name);
        self.plane.plane().backend.create_tenant(&name).await.unwrap();
        let directory = PathBuf::from(format!("/configurations/{name}"));
        let mut workspace = Workspace::of(ConfigurationSource::Directory(directory));
        change(&mut workspace);
        let settings = TenantSettings { workspace: Some(workspace), ..TenantSettings::default() };
        self.plane.plane().run_store.set_settings(&name, &settings, None).await.unwrap();
        name
    }

    /// Asks for a run.
    pub(crate) async fn ask(&self, tenant: &TenantName, request: RunRequest) -> Result<RunRecord, RunsError> {
        let name = Name::Prefix(format!("{}-", request.operation));
        let new = NewRun { name, labels: std::collections::BTreeMap::new(), request };
        self.plane.plane().runs.create(tenant, new).await
    }

    /// Asks for a run that is nothing but this, and returns its name.
    pub(crate) async fn run(&self, tenant: &TenantName, operation: Operation) -> RunName {
        self.ask(tenant, RunRequest::new(operation, "alice")).await.unwrap().facts().name.clone()
    }

    /// Waits until a run is this far.
    pub(crate) async fn until(&self, tenant: &TenantName, run: &RunName, phase: Phase) -> RunRecord {
        self.find(tenant, run, |record| record.phase() == phase, phase.as_str()).await
    }

    /// Waits until a run has ended.
    pub(crate) async fn ended(&self, tenant: &TenantName, run: &RunName) -> RunRecord {
        self.find(tenant, run, |record| record.phase().is_end(), "ended").await
    }

    async fn find(
        &self,
        tenant: &TenantName,
        run: &RunName,
        is_it: impl Fn(&RunRecord) -> bool,
        what: &str,
    ) -> RunRecord {
        let mut last = None;
        let found = async {
            loop {
                let record = self.plane.plane().runs.kept(tenant, run).await.unwrap();
                if is_it(&record) {
                    return record;
                }
                last = Some(record);
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await.ok();
        found.unwrap_or_else(|| panic!("{run} is not {what} in time: {last:?}"))
    }

    /// Waits until a run's program of a stage was started.
    pub(crate) async fn job(&self, run: &RunName, stage: Stage) -> Job {
        let found = async {
            loop {
                let jobs = self.executor.jobs();
                if let Some(job) = jobs.into_iter().rev().find(|job| job.id.run == *run && job.stage == stage)
                {
                    return job;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("the program is started in time")
    }

    /// Does with a tenant's state what a run's program does.
    pub(crate) async fn as_program(
        &self,
        job: &Job,
        method: &str,
        query: &str,
        body: impl Into<bytes::Bytes>,
    ) -> u16 {
        let token = job.environment["TF_HTTP_PASSWORD"].reveal();
        let bearer = format!("Bearer {token}");
        let target = format!("/state/{}{query}", job.id.tenant);
        let peer = crate::in_process::local();
        self.plane.send_as(peer, method, &target, &[("authorization", bearer.as_str())], body).await.code
    }

    /// Takes the lock as a run's program does.
    pub(crate) async fn lock_as_program(&self, job: &Job, id: &str) {
        assert_eq!(self.as_program(job, "LOCK", "", lock::info(id, lock::APPLY)).await, 200);
    }

    /// Has a tenant's programs wait at a gate of this name once they have said this, and then exit.
    pub(crate) fn hold(&self, stage: Stage, script: Script, gate: &str, code: i32) {
        let dies = OnInterrupt::Exit { says: Vec::new(), code: 1 };
        self.executor.set_script(None, stage, script.wait(gate).exit(code).on_interrupt(dies));
    }
}
