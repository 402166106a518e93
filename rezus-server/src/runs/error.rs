//! Why something is not done with a run.

use rezus_core::base::TenantName;
use rezus_core::declared::backend::BackendError;
use rezus_core::declared::store::StoreError;
use rezus_core::runs::executor::ExecutorError;
use rezus_core::runs::store::RunStoreError;
use rezus_core::runs::{Phase, RequestError, RunName, RunNameError};

/// Why something is not done with a run.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The server is about to end.
    #[error("the server is stopping: no run begins any more")]
    Closed,
    /// There are no runs here.
    #[error("runs are switched off on this server: runs.enabled = false")]
    Disabled,
    /// Whoever can reach the server would run programs on it.
    #[error(
        "runs are refused while the server runs without authentication, since everybody on this machine could run programs as the server: start it with authentication, or allow it by name: runs.allow_without_auth = true"
    )]
    NoAuthentication,
    /// There is no such tenant.
    #[error("there is no tenant {0}")]
    NoTenant(TenantName),
    /// There is nothing to run.
    #[error(
        "the tenant {0} has no configuration to run: give it one with `rezus-server tenant configure {0} --dir DIR`"
    )]
    NoWorkspace(TenantName),
    /// Destroying is refused.
    #[error(
        "the tenant {0} is protected from destroy: lift that with `rezus-server tenant configure {0} --protect none`"
    )]
    Protected(TenantName),
    /// The name is taken.
    #[error("there is a run {0} already: choose another name, or generateName")]
    Exists(RunName),
    /// There is no such run.
    #[error("the tenant {tenant} has no run {run}")]
    NoRun {
        /// Whose.
        tenant: TenantName,
        /// Which one.
        run: RunName,
    },
    /// The run's plan waits for nobody.
    #[error("the run {run} is {}: only a run that is AwaitingApproval can be approved", phase.as_str())]
    NotWaiting {
        /// Which one.
        run: RunName,
        /// How far it is.
        phase: Phase,
    },
    /// The run has not ended.
    #[error("the run {run} is {}: wait until it has ended", phase.as_str())]
    NotEnded {
        /// Which one.
        run: RunName,
        /// How far it is.
        phase: Phase,
    },
    /// A run that works now holds the lock.
    #[error(
        "the lock is held by the run {run}, which is {}: cancel that, or break its lock by `rezus-server lock break --force` (force=true)", phase.as_str()
    )]
    HoldsLock {
        /// Which one.
        run: RunName,
        /// How far it is.
        phase: Phase,
    },
    /// A run of the tenant is under way.
    #[error("the run {0} is under way: cancel it, or wait until it has ended")]
    UnderWay(RunName),
    /// What is asked for makes no sense.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The name is none.
    #[error(transparent)]
    Name(#[from] RunNameError),
    /// No token can be made for it.
    #[error("no token can be made for the run: {0}")]
    Token(String),
    /// The machine gives no random bytes.
    #[error("no name can be made: {0}")]
    Random(String),
    /// Runs cannot be kept or read now.
    #[error(transparent)]
    Store(#[from] RunStoreError),
    /// States cannot be read now.
    #[error(transparent)]
    States(#[from] StoreError),
    /// The state's rules refuse it.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// It cannot be executed.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
}
