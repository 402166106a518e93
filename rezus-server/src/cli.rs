//! The command line.

mod audit;
mod backend_config;
mod backup;
mod client;
mod demo;
mod get;
mod lock;
mod mappings;
mod metrics;
mod project;
mod record;
mod run;
mod state;
mod table;
mod tenant;
mod token;
mod user;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use rezus_core::base::TenantName;

use crate::config::{Config, ConfigError};
use crate::error::Chain;
use crate::serve::{Running, ServeError};
use client::{Client, ClientError};

/// rezus keeps the state of OpenTofu and Terraform: every version, locked, indexed, and never more than it was given.
#[derive(Debug, Parser)]
#[command(name = "rezus-server", version, max_term_width = 110)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server.
    Serve(Serve),
    /// Show what rezus does: start a server, apply an example to it, print what came of it, stay up.
    Demo(demo::Demo),
    /// Read and write tenants' states.
    #[command(subcommand)]
    State(state::StateCommand),
    /// List, create and remove tenants.
    #[command(subcommand)]
    Tenant(tenant::TenantCommand),
    /// Have tofu or terraform run for a tenant, and see what comes of it.
    #[command(subcommand)]
    Run(run::RunCommand),
    /// Record what is read of a cluster, so that it can be replayed without it.
    Record(record::Record),
    /// List and break locks.
    #[command(subcommand)]
    Lock(lock::LockCommand),
    /// Make, list and revoke tokens: what people and programs prove with who they are.
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Make, list and remove users, and grant them roles.
    #[command(subcommand)]
    User(user::UserCommand),
    /// Grant roles to the members of groups.
    #[command(subcommand)]
    Group(user::GroupCommand),
    /// List who did what.
    Audit(audit::Audit),
    /// List what is declared: tenants, node groups, machines, or the mappings that make them.
    Get(get::Get),
    /// Show what was sampled of a cluster or a machine over time: which metrics there are, or a plot of one.
    Metrics(metrics::Metrics),
    /// Compare two versions of a tenant's state, as resources.
    Diff(get::Diff),
    /// Say where the fields of a machine come from.
    Explain(get::Explain),
    /// Print what the API would list for a state file.
    Project(project::Project),
    /// Check, test and list mappings: what provider resources become, and where each field is.
    #[command(subcommand)]
    Mappings(mappings::MappingsCommand),
    /// Print the backend block of a tenant's configuration.
    BackendConfig(backend_config::BackendConfig),
    /// Work on the derived index.
    #[command(subcommand)]
    Index(IndexCommand),
    /// Copy all data to a file, while the server runs.
    Backup(backup::Backup),
    /// Bring the data of a backup back, while no server runs.
    Restore(backup::Restore),
    /// Watch over a run's program: the server starts this.
    #[command(name = crate::compose::SUPERVISE, hide = true)]
    Supervise,
    /// Print a completion script.
    Completions {
        /// For which shell.
        shell: clap_complete::Shell,
    },
}

/// Where the data is: in a directory, through the server that runs on it where one does, or behind a server's URL.
#[derive(Clone, Debug, Args)]
pub struct Target {
    /// The data directory; the server that runs on it is asked, if one does [default: `REZUS_SERVER__DATA_DIR`, else
    /// rezus-data].
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    /// The URL of a server, instead of a data directory.
    #[arg(long, value_name = "URL", global = true, conflicts_with = "data_dir")]
    server: Option<String>,
    /// The settings for a data directory on which no server runs: a TOML file, as `serve` takes it.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// A PEM file with the authorities by which that server's certificate is believed, instead of the system's.
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    ca_file: Option<PathBuf>,
    /// A file that holds the API token for that server.
    #[arg(long, value_name = "FILE", global = true, requires = "server")]
    token_file: Option<PathBuf>,
}

impl Target {
    /// The data directory: the one named, that of the environment, the default.
    fn data_dir(&self) -> PathBuf {
        let named = self.data_dir.clone();
        let named = named.or_else(|| std::env::var_os("REZUS_SERVER__DATA_DIR").map(PathBuf::from));
        named.unwrap_or_else(|| Config::default().server.data_dir)
    }
}

#[derive(Debug, Args)]
struct Serve {
    /// Where all data is kept; made if it is not there [default: rezus-data].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A TOML file with settings; `REZUS_SECTION__KEY` variables override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address of the TLS listener; port 0 picks a free one [default: 127.0.0.1:8443].
    #[arg(long, value_name = "ADDR:PORT")]
    tls: Option<SocketAddr>,
    /// The address of the plain listener, on loopback; port 0 picks a free one [default: 127.0.0.1:8080].
    #[arg(long, value_name = "127.0.0.1:PORT")]
    plain: Option<SocketAddr>,
    /// Run without a TLS listener.
    #[arg(long)]
    no_tls: bool,
    /// Let everybody on this machine do everything, without a token: for trials, with all listeners on loopback.
    #[arg(long)]
    no_auth: bool,
}

#[derive(Debug, Subcommand)]
enum IndexCommand {
    /// Build the index anew from the states.
    Rebuild {
        /// Of this tenant only.
        tenant: Option<TenantName>,
        #[command(flatten)]
        target: Target,
    },
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// A table for people.
    #[default]
    Table,
    /// The server's JSON.
    Json,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The settings cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The log's level cannot be read.
    #[error("log.level cannot be used")]
    Log(#[from] tracing_subscriber::filter::ParseError),
    /// The server does not run.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// What was asked for was not done.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The data cannot be opened, copied or brought back.
    #[error(transparent)]
    Data(#[from] crate::compose::StartError),
    /// A file cannot be read or written.
    #[error("{path} cannot be {what}")]
    File {
        /// Which one.
        path: String,
        /// What was to be done with it.
        what: &'static str,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A file is no state that can be read.
    #[error("{path} declares nothing that can be read: {reason}")]
    NoState {
        /// Which file.
        path: String,
        /// Why.
        reason: String,
    },
    /// Mappings cannot be used.
    #[error(transparent)]
    Mappings(#[from] crate::mapping_files::MappingsError),
    /// Mappings find something else than was expected.
    #[error("{0}")]
    Unexpected(String),
    /// What was asked for makes no sense as it is.
    #[error("{0}")]
    Usage(String),
    /// The exit code says how a run ended: in words it was said already.
    #[error("the run ended with exit code {0}")]
    Outcome(u8),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] io::Error),
}

/// Bad usage and bad settings (`EX_USAGE` of sysexits.h).
const EXIT_USAGE: u8 = 64;

/// What is no state cannot be projected.
const EXIT_NO_STATE: u8 = 2;

/// Runs a command line and returns how the process ends: 0 done, 1 failed, 2 no state to project or
/// a run that found changes, 64 used wrongly.
pub fn run(
    arguments: impl Iterator<Item = OsString>,
    environment: impl Iterator<Item = (String, String)>,
) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let is_answer = !error.use_stderr();
            // Nobody can be told where printing fails.
            drop(error.print());
            return if is_answer { ExitCode::SUCCESS } else { ExitCode::from(EXIT_USAGE) };
        }
    };
    if matches!(cli.command, Command::Supervise) {
        return crate::compose::supervise();
    }
    match execute(cli.command, environment) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough, as in `| head`.
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(CliError::Outcome(code)) => ExitCode::from(code),
        Err(error) => {
            // Nobody can be told where printing fails.
            drop(writeln!(io::stderr(), "error: {}", Chain(&error)));
            match error {
                CliError::Config(_) | CliError::Log(_) | CliError::Usage(_) => ExitCode::from(EXIT_USAGE),
                CliError::NoState { .. } => ExitCode::from(EXIT_NO_STATE),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// For how long threads that may block wait for more to do. Each has memory of its own to allocate from, one to two
/// megabytes once it has worked, and gives it back only as it ends.
const THREADS_WAIT: Duration = Duration::from_secs(2);

fn execute(command: Command, environment: impl Iterator<Item = (String, String)>) -> Result<(), CliError> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_keep_alive(THREADS_WAIT).build()?;
    let mut out = io::stdout().lock();
    match command {
        Command::Serve(serve) => {
            drop(out);
            let ended = runtime.block_on(run_server(&serve, environment));
            // Whatever still blocks a thread has had its grace.
            runtime.shutdown_background();
            ended
        }
        Command::Demo(demo) => {
            drop(out);
            let ended = runtime.block_on(demo.run(environment));
            runtime.shutdown_background();
            ended
        }
        Command::State(command) => runtime.block_on(command.run(&mut out)),
        Command::Tenant(command) => runtime.block_on(command.run(&mut out)),
        Command::Token(command) => runtime.block_on(command.run(&mut out)),
        Command::User(command) => runtime.block_on(command.run(&mut out)),
        Command::Group(command) => runtime.block_on(command.run(&mut out)),
        Command::Audit(command) => runtime.block_on(command.run(&mut out)),
        Command::Run(command) => runtime.block_on(command.run(&mut out)),
        Command::Record(command) => runtime.block_on(command.run(&mut out)),
        Command::Lock(command) => runtime.block_on(command.run(&mut out)),
        Command::BackendConfig(command) => runtime.block_on(command.run(&mut out)),
        Command::Index(IndexCommand::Rebuild { tenant, target }) => {
            runtime.block_on(rebuild_index(tenant, &target, &mut out))
        }
        Command::Get(command) => runtime.block_on(command.run(&mut out)),
        Command::Metrics(command) => runtime.block_on(command.run(&mut out)),
        Command::Diff(command) => runtime.block_on(command.run(&mut out)),
        Command::Explain(command) => runtime.block_on(command.run(&mut out)),
        Command::Project(command) => command.run(&mut out),
        Command::Mappings(command) => command.run(&mut out),
        Command::Backup(command) => command.run(&mut out),
        Command::Restore(command) => command.run(&mut out),
        // It has no use for what the others are given.
        Command::Supervise => Ok(()),
        Command::Completions { shell } => {
            // The generator panics where writing fails, as in `| head`.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "rezus-server", &mut script);
            out.write_all(&script)?;
            Ok(())
        }
    }
}

async fn run_server(
    serve: &Serve,
    environment: impl Iterator<Item = (String, String)>,
) -> Result<(), CliError> {
    let mut config = Config::load(serve.config.as_deref(), environment)?;
    if let Some(data_dir) = &serve.data_dir {
        config.server.data_dir.clone_from(data_dir);
    }
    config.server.plain = serve.plain.unwrap_or(config.server.plain);
    config.server.tls = serve.tls.unwrap_or(config.server.tls);
    config.server.no_tls |= serve.no_tls;
    config.auth.enabled &= !serve.no_auth;
    config.check()?;
    crate::telemetry::start_log(&config.log)?;
    let running = Running::start(&config).await?;
    running.announce()?;
    running.until_signal().await;
    Ok(())
}

async fn rebuild_index(
    tenant: Option<TenantName>,
    target: &Target,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let client = Client::open(target).await?;
    let names = match tenant {
        Some(tenant) => vec![tenant.to_string()],
        None => client.names("/rezus/v1/tenants").await?,
    };
    let progress = progress_bar(u64::try_from(names.len()).unwrap_or(u64::MAX));
    for name in names {
        let rebuilt = client.post(&format!("/rezus/v1/tenants/{name}/index"), &serde_json::json!({})).await?;
        progress.suspend(|| writeln!(out, "{name}: {} objects indexed", rebuilt["rows"]))?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(())
}

/// A bar on a terminal; nothing elsewhere.
fn progress_bar(length: u64) -> indicatif::ProgressBar {
    indicatif::ProgressBar::new(length)
}

/// Prints an answer as the server gave it.
fn print_json(value: &serde_json::Value, out: &mut dyn Write) -> Result<(), CliError> {
    serde_json::to_writer_pretty(&mut *out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// The whole command line, for tests that must know every subcommand.
pub fn command() -> clap::Command {
    Cli::command()
}
