//! What the server tells the supervisor, a line of JSON each: one job, then what is to be done with it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rezus_core::runs::executor::Job;
use rezus_core::runs::{SecretText, Stage};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::files::RunFiles;
use super::{ProcessConfig, mark};

/// A job, as the supervisor reads it. No `Debug`: it holds secrets.
#[derive(Serialize, Deserialize)]
pub(super) struct WireJob {
    pub(super) mark: String,
    pub(super) stage: Stage,
    pub(super) folder: PathBuf,
    pub(super) tool: PathBuf,
    pub(super) work_dir: PathBuf,
    pub(super) steps: Vec<Vec<String>>,
    pub(super) environment: BTreeMap<String, Zeroizing<String>>,
    pub(super) secrets: Vec<Zeroizing<String>>,
    pub(super) timeout_millis: u64,
    pub(super) grace_millis: u64,
    pub(super) log_limit: u64,
    pub(super) run_as: Option<(u32, u32)>,
    pub(super) plugin_cache: Option<PathBuf>,
}

/// What is to be done with a job.
#[derive(Serialize, Deserialize)]
pub(super) enum Control {
    Interrupt,
    Kill,
    Secrets(Vec<Zeroizing<String>>),
}

impl WireJob {
    pub(super) fn new(job: &Job, config: &ProcessConfig, files: &RunFiles) -> Self {
        let environment = job.environment.iter();
        Self {
            mark: mark(&job.id),
            stage: job.stage,
            folder: files.path().to_owned(),
            tool: job.tool.path.clone(),
            work_dir: job.work_dir.clone(),
            steps: job.steps.clone(),
            environment: environment.map(|(name, value)| (name.clone(), hidden(value))).collect(),
            secrets: job.secrets.iter().map(hidden).collect(),
            timeout_millis: millis(job.timeout),
            grace_millis: millis(job.grace),
            log_limit: job.log_limit,
            run_as: config.run_as,
            plugin_cache: config.cache_of(job),
        }
    }
}

impl Control {
    pub(super) fn secrets(secrets: &[SecretText]) -> Self {
        Self::Secrets(secrets.iter().map(hidden).collect())
    }
}

fn hidden(text: &SecretText) -> Zeroizing<String> {
    Zeroizing::new(text.reveal().to_owned())
}

pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Writes a line.
pub(super) fn to_line(message: &impl Serialize) -> serde_json::Result<Zeroizing<Vec<u8>>> {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, message)?;
    // Made once as long as it becomes: what grows leaves copies of secrets behind.
    let mut line = Zeroizing::new(Vec::with_capacity(counted.0 + 1));
    serde_json::to_writer(&mut *line, message)?;
    line.push(b'\n');
    Ok(line)
}

/// Counts what is written to it.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        self.0 += buf.len();
        Ok(buf.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
