//! The port behind which tofu or terraform is executed.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::stream::Event;
use super::{RunName, SecretText, Stage};
use crate::base::TenantName;

/// Which run it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    /// Whose.
    pub tenant: TenantName,
    /// Its name.
    pub run: RunName,
}

/// The program that is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Where it is.
    pub path: PathBuf,
    /// Which one.
    pub kind: ToolKind,
    /// Its version, as it says.
    pub version: String,
}

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// `OpenTofu`.
    Tofu,
    /// Terraform.
    Terraform,
}

impl ToolKind {
    /// The program's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tofu => "tofu",
            Self::Terraform => "terraform",
        }
    }
}

/// What a tenant's configuration is made of.
#[derive(Clone, PartialEq, Eq)]
pub enum Configuration {
    /// A directory of the machine's, copied as it is now.
    Directory(PathBuf),
    /// An archive that was uploaded: a tar, not compressed.
    Archive(Bytes),
}

/// The length only.
impl fmt::Debug for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => f.debug_tuple("Directory").field(path).finish(),
            Self::Archive(bytes) => write!(f, "Archive({} bytes)", bytes.len()),
        }
    }
}

/// A working directory that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Where it is.
    pub work_dir: PathBuf,
    /// The SHA-256 of the configuration's files, in hexadecimal.
    pub digest: String,
}

/// What a stage of a run executes.
#[derive(Clone)]
pub struct Job {
    /// Of which run.
    pub id: RunId,
    /// Which stage.
    pub stage: Stage,
    /// The program.
    pub tool: Tool,
    /// Where it works.
    pub work_dir: PathBuf,
    /// The command lines, one after the other until one fails: no secrets.
    pub steps: Vec<Vec<String>>,
    /// Its whole environment but for what the executor adds of its own.
    pub environment: BTreeMap<String, SecretText>,
    /// What must not be in the log.
    pub secrets: Vec<SecretText>,
    /// After how long it is interrupted.
    pub timeout: Duration,
    /// How long after an interrupt it is killed.
    pub grace: Duration,
    /// How long the run's log may become, in bytes; what follows is counted and dropped.
    pub log_limit: u64,
}

/// Names only: values of the environment are secrets.
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("id", &self.id)
            .field("stage", &self.stage)
            .field("steps", &self.steps)
            .field("environment", &self.environment.keys())
            .finish_non_exhaustive()
    }
}

/// A command whose output is wanted whole, in memory only.
#[derive(Clone)]
pub struct Query {
    /// The program.
    pub tool: Tool,
    /// Where it works.
    pub work_dir: PathBuf,
    /// The command line: no secrets.
    pub arguments: Vec<String>,
    /// Its whole environment.
    pub environment: BTreeMap<String, SecretText>,
    /// After how long it is killed.
    pub timeout: Duration,
    /// How long its output may be, in bytes; a longer one is an error.
    pub limit: usize,
}

/// Names only: values of the environment are secrets.
impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("arguments", &self.arguments)
            .field("environment", &self.environment.keys())
            .finish_non_exhaustive()
    }
}

/// What a query gave.
pub struct Answer {
    /// The exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// All of standard output.
    pub stdout: zeroize::Zeroizing<Vec<u8>>,
    /// The beginning of standard error, as text.
    pub stderr: SecretText,
}

/// Lengths only: both may hold secrets.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Answer(code {:?}, {} bytes)", self.code, self.stdout.len())
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody saw it: whoever watched it is gone too.
    Unknown,
}

/// Why an executor stopped a job by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stopped {
    /// It was told to.
    Asked,
    /// Its time was over.
    TimedOut,
    /// The server was gone.
    ServerLost,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ending {
    /// How its last program ended.
    pub exit: Exit,
    /// Which of its steps that was, from 0.
    pub step: usize,
    /// Why it was stopped, if it was.
    pub stopped: Option<Stopped>,
    /// Whether it had to be killed.
    pub killed: bool,
}

/// What happens while a job is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The program said something; secrets were taken out.
    Event(Event),
    /// The run's log has this length now, in bytes.
    Log(u64),
    /// The job has ended; nothing follows.
    Ended(Ending),
}

/// Why something could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// There is no such program, or it is none of the two.
    #[error("{0}")]
    NoTool(String),
    /// The configuration cannot be used.
    #[error("the configuration cannot be used: {0}")]
    Configuration(String),
    /// The output of a query was too long.
    #[error("the output has more than {0} bytes")]
    TooLong(usize),
    /// A query took too long.
    #[error("the program did not end in time")]
    TimedOut,
    /// The system refused something.
    #[error("cannot {what}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// A job that was started, or found again.
#[async_trait]
pub trait Execution: fmt::Debug + Send + Sync {
    /// Waits for what happens next. After [`Happening::Ended`] it gives that again. Events of a job that was found
    /// again begin with its first.
    ///
    /// *Cancellation.* A dropped call has lost nothing.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`] where the job's files cannot be read.
    async fn next(&mut self) -> Result<Happening, ExecutorError>;

    /// Tells the job to end: the program's process group is interrupted, and killed after the grace. Once it has been
    /// told, it may be told again without effect.
    fn interrupt(&self);

    /// Kills the program's process group at once.
    fn kill(&self);

    /// Has further secrets taken out of what is still to be written to the log.
    fn add_secrets(&self, secrets: Vec<SecretText>);
}

/// Where tofu or terraform is executed, and where a run's log and plan are kept meanwhile.
///
/// *Contract.*
/// - The program sees the environment it is given and nothing of the server's; it is never reached by signals that are
///   meant for the server, and a signal meant for it reaches all processes it has begun.
/// - What it writes is in the log in the order it was written, standard error included, without the secrets it was
///   given, and the same bytes for everybody who reads them, at any time. A line that is an event is written as people
///   read it.
/// - A job goes on if its [`Execution`] is dropped; if the process that began it is lost, it is interrupted.
/// - [`find`](TofuExecutor::find) gives every job that was begun and not [forgotten](TofuExecutor::forget), in this
///   process or in an earlier one, until its end and after. Where whoever watched a program is gone, the program is
///   ended first.
///
/// The suite: `rezus_testkit::executor_contract!`.
#[async_trait]
pub trait TofuExecutor: fmt::Debug + Send + Sync + 'static {
    /// Finds the program: the one named, else `tofu`, else `terraform`, and asks its version, once.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::NoTool`] where there is none, or one that is too old.
    async fn tool(&self, named: Option<PathBuf>) -> Result<Tool, ExecutorError>;

    /// Makes a working directory of a configuration for a tenant, or finds the one that was made of it before, and
    /// writes `files` into it.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::Configuration`] says what is wrong with it.
    async fn prepare(
        &self,
        tenant: &TenantName,
        configuration: Configuration,
        files: Vec<(String, String)>,
    ) -> Result<Prepared, ExecutorError>;

    /// Returns where a run's plan is, or would be.
    fn plan_path(&self, id: &RunId) -> PathBuf;

    /// Starts a job. A run has one at a time.
    ///
    /// # Errors
    ///
    /// [`ExecutorError`] where it could not be started: nothing runs then.
    async fn start(&self, job: Job) -> Result<Box<dyn Execution>, ExecutorError>;

    /// Finds a job that was started, by this process or an earlier one.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn find(&self, id: &RunId, stage: Stage) -> Result<Option<Box<dyn Execution>>, ExecutorError>;

    /// Runs a command to its end and returns what it wrote.
    ///
    /// *Cancellation.* A dropped call kills the program.
    ///
    /// # Errors
    ///
    /// [`ExecutorError`] where it could not be run, took too long or said too much.
    async fn query(&self, query: Query) -> Result<Answer, ExecutorError>;

    /// Returns what the program left in a working directory where it could not save the state (`errored.tfstate`).
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn errored_state(&self, work_dir: PathBuf) -> Result<Option<Bytes>, ExecutorError>;

    /// Removes that.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn remove_errored_state(&self, work_dir: PathBuf) -> Result<(), ExecutorError>;

    /// Takes that out of the working directory and keeps it with what a run leaves, for whoever pushes it by hand. Returns
    /// where it is then.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn keep_errored_state(&self, id: &RunId, work_dir: PathBuf) -> Result<PathBuf, ExecutorError>;

    /// Tells whether a run's plan is there in clear: of an encrypted state that is not to be. A plan in clear is a zip
    /// archive, an encrypted one is not.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn is_plan_clear(&self, id: &RunId) -> Result<bool, ExecutorError>;

    /// Removes a run's plan.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn discard_plan(&self, id: &RunId) -> Result<(), ExecutorError>;

    /// Returns up to `most` bytes of a run's log from `offset` on: none at its end. `None` where there is no log.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`].
    async fn log(&self, id: &RunId, offset: u64, most: usize) -> Result<Option<Bytes>, ExecutorError>;

    /// Ends a run's log: it is compressed, and the plan is removed.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`]; what could be done was done.
    async fn seal(&self, id: &RunId) -> Result<(), ExecutorError>;

    /// Removes all that a run has left.
    ///
    /// # Errors
    ///
    /// [`ExecutorError::System`]; what could be removed was removed.
    async fn forget(&self, id: &RunId) -> Result<(), ExecutorError>;
}
