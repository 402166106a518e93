//! Runs: what rezus adds to the tool's own time, many tenants that want their turn at once, and a log that is as long as
//! it may get.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rezus_benches::{Client, Contest, Outcome, Promise, Row, Server, percentile, say, size, timed};
use tokio::runtime::Runtime;

mod runs_log;
mod runs_queue;

/// How many resources are made.
const RESOURCES: usize = 1_000;

/// How often each way to make them is taken.
const ROUNDS: usize = 7;

/// What rezus may add to the tool's time: so many milliseconds, and a part of that time.
const OVERHEAD: (f64, f64) = (150.0, 0.02);

/// The exit code of a plan that changes something.
const CHANGES: i32 = 2;

fn main() -> Outcome<()> {
    if rezus_benches::is_listing() {
        return Ok(());
    }
    let client = tokio::runtime::Runtime::new()?;
    let mut rows = client.block_on(runs_queue::scripted())?;
    if let Some(binary) = rezus_benches::server_binary(env!("CARGO_MANIFEST_DIR"))? {
        match rezus_benches::program("terraform") {
            Some(tool) => rows.splice(0..0, overhead(&client, &binary, &tool)?).for_each(drop),
            None if std::env::var("CI").as_deref() == Ok("true") => {
                return Err("terraform is missing: what runs add to its time must be measured".into());
            }
            None => say("!! SKIPPED: what runs add to the tool's time: terraform is not installed"),
        }
        rows.extend(client.block_on(runs_queue::with_children(&binary))?);
        rows.extend(client.block_on(runs_log::long(&binary))?);
    } else {
        say("!! SKIPPED: there is no server binary beside this benchmark; build it or set REZUS_SERVER_BIN");
    }
    rezus_benches::print("runs", &rows);
    Ok(())
}

/// Compares runs with the same commands by hand, against the same server and in the same environment.
fn overhead(client: &Runtime, binary: &Path, tool: &Path) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let bench = Bench::start(client, binary, tool, directory.path())?;
    let tenants = std::cell::Cell::new(0);
    let tenant = || {
        tenants.set(tenants.get() + 1);
        format!("tenant-{}", tenants.get())
    };
    let mut contest = Contest::default();
    let [apply, bare_apply, plan, bare_plan] = [
        contest.add(|| bench.run(&tenant(), "apply", "Applied")),
        contest.add(|| bench.by_hand(&tenant(), true)),
        contest.add(|| bench.run(&tenant(), "plan", "Planned")),
        contest.add(|| bench.by_hand(&tenant(), false)),
    ];
    contest.run(size(ROUNDS, 1))?;
    let rivals = contest.median(bare_apply);
    let (most, part) = OVERHEAD;
    let most = most + part * rivals.as_secs_f64() * 1e3;
    let row = |what: &str, ours, bare, commands: &str, promise| {
        let rival = (commands, rezus_benches::span(contest.median(bare)));
        let figure = rezus_benches::span(contest.median(ours));
        Row::figures(what, figure, rival, (contest.excess(ours, bare), " ms more"), promise)
    };
    let resources = size(RESOURCES, 5);
    Ok(vec![
        row(
            &format!("a run that applies {resources} resources"),
            apply,
            bare_apply,
            "init, plan, apply by hand",
            Promise::AtMost(most),
        ),
        row(
            &format!("a run that plans {resources} resources, and sums up"),
            plan,
            bare_plan,
            "init, plan by hand",
            Promise::Nothing,
        ),
    ])
}

/// A server, and what its runs are made with.
struct Bench<'c> {
    client: &'c Runtime,
    server: Server,
    http: Client,
    tool: PathBuf,
    directory: PathBuf,
}

impl<'c> Bench<'c> {
    fn start(client: &'c Runtime, binary: &Path, tool: &Path, directory: &Path) -> Outcome<Self> {
        let configuration = directory.join("configuration");
        std::fs::create_dir(&configuration)?;
        let resources = size(RESOURCES, 5);
        let text = format!(
            "resource \"terraform_data\" \"node\" {{\n  count = {resources}\n  input = \"value-${{count.index}}\"\n}}\n"
        );
        std::fs::write(configuration.join("main.tf"), text)?;
        std::fs::create_dir(directory.join("cache"))?;
        let data_dir = directory.join("data");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let cache = directory.join("cache");
        let server = client.block_on(start(
            binary,
            &data_dir,
            tool,
            &[
                ("PATH", &path),
                ("HOME", directory.as_os_str()),
                ("REZUS_RUNS__PLUGIN_CACHE", cache.as_os_str()),
            ],
        ))?;
        let http = server.client()?;
        Ok(Self { client, server, http, tool: tool.to_owned(), directory: directory.to_owned() })
    }

    /// Has a new tenant's run do it.
    fn run(&self, tenant: &str, operation: &str, expected: &str) -> Outcome<Duration> {
        let configuration = self.directory.join("configuration");
        self.client.block_on(self.http.configure(tenant, &configuration))?;
        timed(|| self.client.block_on(self.http.run(tenant, operation, expected)))
    }

    /// Does it by hand, in a directory that was made before.
    fn by_hand(&self, tenant: &str, applies: bool) -> Outcome<Duration> {
        let work_dir = self.directory.join(tenant);
        std::fs::create_dir(&work_dir)?;
        std::fs::copy(self.directory.join("configuration").join("main.tf"), work_dir.join("main.tf"))?;
        std::fs::write(work_dir.join("backend.tf"), "terraform {\n  backend \"http\" {}\n}\n")?;
        let exchange = serde_json::json!({ "name": tenant });
        self.client.block_on(self.http.exchange("POST", "/rezus/v1/tenants", &exchange))?;
        timed(|| {
            let always = ["-json", "-input=false", "-no-color"];
            self.execute(&work_dir, tenant, &["init", "-reconfigure"], &always, 0)?;
            let plan = ["plan", "-detailed-exitcode", "-out=plan"];
            self.execute(&work_dir, tenant, &plan, &always, CHANGES)?;
            if applies {
                self.execute(
                    &work_dir,
                    tenant,
                    &["apply"],
                    &["-json", "-input=false", "-no-color", "plan"],
                    0,
                )?;
            }
            Ok(())
        })
    }

    /// Executes the tool as the server does, and keeps what it says in a file.
    fn execute(
        &self,
        work_dir: &Path,
        tenant: &str,
        command: &[&str],
        arguments: &[&str],
        expected: i32,
    ) -> Outcome<()> {
        let address = format!("{}/state/{tenant}", self.server.url());
        let output = std::fs::File::options().create(true).append(true).open(work_dir.join("log"))?;
        // In a session of its own, as below the server: the kernel shares processors out among sessions.
        let mut tool = Command::new("setsid");
        tool.arg("--wait").arg(&self.tool).args(command).args(arguments).current_dir(work_dir).env_clear();
        tool.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", &self.directory);
        tool.env("TF_PLUGIN_CACHE_DIR", self.directory.join("cache"));
        tool.envs([("TF_IN_AUTOMATION", "1"), ("TF_INPUT", "0"), ("CHECKPOINT_DISABLE", "1")]);
        for name in ["TF_HTTP_ADDRESS", "TF_HTTP_LOCK_ADDRESS", "TF_HTTP_UNLOCK_ADDRESS"] {
            tool.env(name, &address);
        }
        let status = tool.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output).status()?;
        if status.code() == Some(expected) {
            return Ok(());
        }
        let log = std::fs::read_to_string(work_dir.join("log"))?;
        Err(format!("{command:?} ended with {status}: {log}").into())
    }
}

/// Starts a server that runs this tool for whoever is on this machine.
pub(crate) async fn start(
    binary: &Path,
    data_dir: &Path,
    tool: &Path,
    environment: &[(&str, &OsStr)],
) -> Outcome<Server> {
    let mut all: Vec<(&str, &OsStr)> =
        vec![("REZUS_RUNS__ALLOW_WITHOUT_AUTH", "true".as_ref()), ("REZUS_RUNS__BINARY", tool.as_os_str())];
    all.extend(environment);
    Server::start_with(binary, data_dir, &all).await
}

/// Writes a program that says it is Terraform, and at a plan does what a shell is told here.
pub(crate) fn stand_in(directory: &Path, init: &str, plan: &str) -> Outcome<PathBuf> {
    let path = directory.join("terraform");
    let text = format!(
        "#!/bin/sh\ncase $1 in\nversion) echo 'Terraform v1.11.4' ;;\ninit) {init} ;;\nplan) {plan} ;;\nshow) echo '{{}}' ;;\nesac\n"
    );
    std::fs::write(&path, text)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// A row that says how much memory something takes.
pub(crate) fn memory(what: &str, kib: u64, promise: Promise) -> Outcome<Row> {
    let megabytes = f64::from(u32::try_from(kib)?) * 1024.0 / 1e6;
    Ok(Row::alone(what, format!("{megabytes:.1} MB"), (megabytes, " MB"), promise))
}

/// A row that says how long reads took.
pub(crate) fn read(what: &str, times: &[Duration], promise: Promise) -> Row {
    let millis = |percent| percentile(times, percent).as_secs_f64() * 1e3;
    let (p99, p50) = (millis(99), millis(50));
    let figure = format!("{p99:.2} ms ({} reads)", times.len());
    Row::figures(what, figure, ("their median", format!("{p50:.2} ms")), (p99, " ms"), promise)
}
