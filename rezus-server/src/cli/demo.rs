//! `demo`: the main job, once, in front of the user.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use rezus_core::base::TenantName;
use serde_json::json;

use super::client::Client;
use super::state::{push, show};
use super::{CliError, Output, backend_config, get, metrics};
use crate::config::{Config, Span};
use crate::data_dir::DataDir;
use crate::serve::{Running, ServeError};

const CONFIGURATION: &str = include_str!("../../../examples/backend/main.tf");
const SHIPPED_STATE: &str = include_str!("../../../examples/backend/demo.tfstate");

/// Recordings of a cluster as the example declares it, by their files' names; the first is replayed.
const RECORDINGS: [(&str, &str); 3] = [
    ("healthy", include_str!("../../../examples/clusters/healthy.jsonl")),
    ("quorum-lost", include_str!("../../../examples/clusters/quorum-lost.jsonl")),
    ("half-gone", include_str!("../../../examples/clusters/half-gone.jsonl")),
];

/// How long it is waited for the machines to be observed: the first turns of tenants are spread over seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often the recording is read: oftener than a cluster would be, so that there is something to plot soon.
const PACE: Duration = Duration::from_secs(3);

/// What is plotted, and for how long it is waited for so many points of it.
const PLOTTED: &str = "rezus_node_cpu_usage_cores";
const POINTS: usize = 4;
const PLOT_PATIENCE: Duration = Duration::from_secs(10);

/// Show what rezus does: start a server, apply an example to it, print what came of it, stay up.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// Where the demo's data goes: a new directory for temporary files if absent.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The address to listen on; 127.0.0.1:8080, or a free port where that is taken.
    #[arg(long, value_name = "127.0.0.1:PORT")]
    plain: Option<SocketAddr>,
}

impl Demo {
    pub(super) async fn run(
        self,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<(), CliError> {
        let mut config = Config::load(None, environment)?;
        config.server.data_dir = self.fresh_directory()?;
        config.server.plain = self.plain.unwrap_or(config.server.plain);
        // A port that is free: the real one may run beside it.
        config.server.tls = SocketAddr::from(([127, 0, 0, 1], 0));
        config.collector.kubernetes = Span(PACE);
        config.collector.talos = Span(PACE);
        config.check()?;
        if config.log.level == Config::default().log.level {
            "warn".clone_into(&mut config.log.level);
        }
        crate::telemetry::start_log(&config.log)?;
        say(&format!("data in {}", config.server.data_dir.display()))?;
        let running = match Running::start(&config).await {
            Err(ServeError::Bind { address, .. }) if self.plain.is_none() => {
                say(&format!("{address} is taken: listening on a free port"))?;
                config.server.plain.set_port(0);
                Running::start(&config).await?
            }
            started => started?,
        };
        say(&format!("listening on {}\n", running.url()))?;

        let tenant = TenantName::parse("demo").map_err(|error| CliError::Usage(error.to_string()))?;
        let address = backend_config::state_address(running.url(), &tenant, false);
        // Through the socket one is admin. The tool gets a token of its own, for this tenant's state alone.
        let client = Client::by_socket(&DataDir::new(&config.server.data_dir)).await?;
        client.post("/rezus/v1/tenants", &json!({ "name": tenant.as_str() })).await?;
        let recordings = write_recordings(&config.server.data_dir)?;
        let replayed = recordings.join(file_of(RECORDINGS[0].0));
        client.patch(&format!("/rezus/v1/tenants/{tenant}"), &json!({ "recording": replayed })).await?;
        if let Some(tool) = find_tool() {
            let new = json!({ "tenant": tenant.as_str(), "note": "the demo's own apply" });
            let made = client.post("/rezus/v1/tokens", &new).await?;
            let token = made["token"].as_str().unwrap_or_default();
            apply(&tool, &config.server.data_dir.join("workspace"), &address, token).await?;
        } else {
            say(
                "neither tofu nor terraform is installed: posting the state that an apply of the example left\n",
            )?;
            let state = Bytes::from_static(SHIPPED_STATE.as_bytes());
            push::push(&client, &tenant, state, false, &mut io::stdout()).await?;
        }

        say("\nWhat is declared now:\n")?;
        show::list(&client, &tenant, Output::Table, &mut io::stdout()).await?;
        say(
            "\nAs machines. There is no such cluster here: READY and SEEN are those of a recording, replayed as if it were now:\n",
        )?;
        get::print_machines(&client, &tenant, PATIENCE, &mut io::stdout()).await?;
        say("\nHow it got here, as far as some seconds tell:\n")?;
        metrics::print_soon(&client, &tenant, PLOTTED, POINTS, PLOT_PATIENCE, &mut io::stdout()).await?;
        say(&format!(
            "\nThe same later, and which other metrics there are:\n\n  rezus-server metrics {tenant} {PLOTTED} --range 10m --data-dir {dir}\n  rezus-server metrics {tenant} --data-dir {dir}",
            dir = config.server.data_dir.display(),
        ))?;
        say(
            "\nTwo more recordings show such a cluster in trouble: quorum-lost loses two control planes after three minutes, half-gone has lost half of its machines. To replay one, and look again some seconds later:\n",
        )?;
        for (name, _) in &RECORDINGS[1..] {
            say(&format!(
                "  rezus-server tenant configure {tenant} --recording {} --data-dir {}",
                recordings.join(file_of(name)).display(),
                config.server.data_dir.display(),
            ))?;
        }
        say(&format!("  rezus-server get machines --data-dir {}", config.server.data_dir.display()))?;
        say(&format!(
            "\nA configuration of your own keeps its state here with:\n\n{}\nand a token for it:\n\n  export TF_HTTP_USERNAME=rezus TF_HTTP_PASSWORD=$(rezus-server token create --backend demo --data-dir {} | head -n 1)\n",
            backend_config::block(&address),
            config.server.data_dir.display(),
        ))?;
        say(&format!(
            "\nOne resource, with what is secret hidden, as admin through the server's socket:\n\n  curl --unix-socket {} --get http://localhost/rezus/v1/tenants/demo/resources --data-urlencode 'address=terraform_data.worker[\"edge/oslo\"]'\n",
            DataDir::new(&config.server.data_dir).socket().display(),
        ))?;
        say(&format!(
            "\nThe same in kubectl:\n\n  kubectl --kubeconfig {} get machines -A -o wide\n",
            DataDir::new(&config.server.data_dir).kubeconfig().display(),
        ))?;
        running.announce()?;
        say("stop with Ctrl-C")?;
        running.until_signal().await;
        Ok(())
    }

    fn fresh_directory(&self) -> Result<PathBuf, CliError> {
        match &self.data_dir {
            Some(path) if path.join("rezus.db").exists() => Err(CliError::Usage(format!(
                "{} holds data already: the demo wants a fresh directory",
                path.display()
            ))),
            Some(path) => Ok(path.clone()),
            None => Ok(tempfile::Builder::new().prefix("rezus-demo-").tempdir()?.keep()),
        }
    }
}

/// Writes the recordings where the server can read them, by absolute paths; returns their directory.
fn write_recordings(data_dir: &Path) -> Result<PathBuf, CliError> {
    let directory = data_dir.join("recordings");
    let file = |source| CliError::File { path: directory.display().to_string(), what: "written", source };
    std::fs::create_dir_all(&directory).map_err(file)?;
    for (name, recording) in RECORDINGS {
        std::fs::write(directory.join(file_of(name)), recording).map_err(file)?;
    }
    directory.canonicalize().map_err(file)
}

fn file_of(recording: &str) -> String {
    format!("{recording}.jsonl")
}

fn say(text: &str) -> Result<(), CliError> {
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}

/// Finds `tofu`, else `terraform`, on the path.
fn find_tool() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    ["tofu", "terraform"]
        .iter()
        .find_map(|name| directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file()))
}

/// Applies the example, with the addresses of this server in place of the example's own.
async fn apply(tool: &Path, workspace: &Path, address: &str, token: &str) -> Result<(), CliError> {
    let file = |source| CliError::File { path: workspace.display().to_string(), what: "written", source };
    std::fs::create_dir_all(workspace).map_err(file)?;
    std::fs::write(workspace.join("main.tf"), CONFIGURATION).map_err(file)?;
    let addresses =
        ["address", "lock_address", "unlock_address"].map(|name| format!("-backend-config={name}={address}"));
    let init =
        ["init", "-input=false", "-no-color"].iter().copied().chain(addresses.iter().map(String::as_str));
    run_tool(tool, workspace, token, init).await?;
    run_tool(tool, workspace, token, ["apply", "-auto-approve", "-input=false", "-no-color"]).await
}

async fn run_tool(
    tool: &Path,
    workspace: &Path,
    token: &str,
    arguments: impl IntoIterator<Item = &str>,
) -> Result<(), CliError> {
    let mut command = tokio::process::Command::new(tool);
    command.args(arguments).current_dir(workspace).stdin(Stdio::null()).kill_on_drop(true);
    // No question to the vendor, no advice about the next command.
    command.env("CHECKPOINT_DISABLE", "1").env("TF_IN_AUTOMATION", "1");
    // By environment: arguments are seen by all, and what is written into a backend block is kept in plan files.
    command.env("TF_HTTP_USERNAME", "rezus").env("TF_HTTP_PASSWORD", token);
    let failed = |source| CliError::File { path: tool.display().to_string(), what: "run", source };
    let status = command.status().await.map_err(failed)?;
    if status.success() {
        Ok(())
    } else {
        Err(CliError::Usage(format!("{} failed: see above", tool.display())))
    }
}
