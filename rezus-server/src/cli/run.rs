//! `run`: having tofu or terraform run for a tenant, and what comes of it.

mod follow;
mod print;

use std::io::{self, Write};

use clap::{Args, Subcommand};
use rezus_core::base::TenantName;
use rezus_core::runs::RunName;
use serde_json::{Map, Value, json};

use super::client::{Client, ClientError};
use super::{CliError, Output, Target, print_json};
use follow::Waiting;

const API: &str = "/apis/rezuscloud.io/v1alpha1";

#[derive(Debug, Subcommand)]
pub(super) enum RunCommand {
    /// Say what an apply would change.
    Plan(Ask),
    /// Plan, and change it once that is approved.
    Apply(Ask),
    /// The same for taking everything away.
    Destroy(Ask),
    /// Say what is not as the state has it, and change nothing.
    Drift(Ask),
    /// Agree to what a run has planned.
    Approve {
        #[command(flatten)]
        which: Which,
        /// Wait until it has ended. Exits with 0 if it was applied, with 1 otherwise.
        #[arg(long)]
        wait: bool,
        #[command(flatten)]
        target: Target,
    },
    /// End a run: at once where it waits; one that is under way is interrupted, and killed where it was cancelled before.
    Cancel {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        target: Target,
    },
    /// Say that what a run created, and no version of the state has, is taken care of.
    Dismiss {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        target: Target,
    },
    /// List runs, of all tenants or of one.
    List {
        /// Of this tenant only.
        tenant: Option<TenantName>,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one run: what was asked for, how far it is, what it changes.
    Show {
        #[command(flatten)]
        which: Which,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Print the log of a run, byte by byte as it is kept.
    Logs {
        #[command(flatten)]
        which: Which,
        /// Go on until the run ends.
        #[arg(short, long)]
        follow: bool,
        /// From this byte on.
        #[arg(long, value_name = "N", default_value_t = 0)]
        offset: u64,
        #[command(flatten)]
        target: Target,
    },
}

/// Which run.
#[derive(Clone, Debug, Args)]
pub(super) struct Which {
    /// Whose run.
    tenant: TenantName,
    /// Its name.
    #[arg(value_parser = RunName::parse)]
    run: RunName,
}

/// What is asked for.
#[derive(Clone, Debug, Args)]
pub(super) struct Ask {
    /// For which tenant.
    tenant: TenantName,
    /// Wait for nobody's approval.
    #[arg(long)]
    auto_approve: bool,
    /// Wait until it has ended, or waits for approval. Exits with 0 if all is as it should be, with 1 if it failed, with 2
    /// if a plan or drift check found changes, or an apply waits for approval.
    #[arg(long)]
    wait: bool,
    /// Set a variable of the configuration, for this run: no secret, it is shown.
    #[arg(long = "var", value_name = "K=V", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Look at this resource only; may be given several times.
    #[arg(long = "target", value_name = "ADDRESS")]
    targets: Vec<String>,
    /// Replace this resource; may be given several times.
    #[arg(long, value_name = "ADDRESS")]
    replace: Vec<String>,
    /// Why.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// What the run is called [default: the operation and five letters].
    #[arg(long, value_name = "NAME", value_parser = RunName::parse)]
    name: Option<RunName>,
    #[command(flatten)]
    at: Target,
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl Which {
    fn path(&self) -> String {
        format!("{API}/namespaces/{}/runs/{}", self.tenant, self.run)
    }

    /// Does something with the run, and returns it as it is then.
    async fn act(&self, client: &Client, act: &str) -> Result<Value, ClientError> {
        client.send("POST", &format!("{}/{act}", self.path()), &[], bytes::Bytes::new()).await?.json()
    }
}

impl RunCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::Plan(ask) => ask.run("plan", out).await,
            Self::Apply(ask) => ask.run("apply", out).await,
            Self::Destroy(ask) => ask.run("destroy", out).await,
            Self::Drift(ask) => ask.run("drift", out).await,
            Self::Approve { which, wait, target } => {
                let client = served(&target).await?;
                let run = which.act(&client, "approve").await?;
                writeln!(out, "{}: approved; it is {}", which.run, print::phase(&run))?;
                if wait { Waiting::new(&client, &which.tenant, &which.run).end().await } else { Ok(()) }
            }
            Self::Cancel { which, target } => {
                let run = which.act(&served(&target).await?, "cancel").await?;
                writeln!(out, "{}: it is {}", which.run, print::phase(&run))?;
                Ok(())
            }
            Self::Dismiss { which, target } => {
                which.act(&Client::open(&target).await?, "dismiss").await?;
                writeln!(out, "{}: what it created is taken care of", which.run)?;
                Ok(())
            }
            Self::List { tenant, output, target } => {
                let path = tenant.map_or_else(
                    || format!("{API}/runs"),
                    |tenant| format!("{API}/namespaces/{tenant}/runs"),
                );
                let list = Client::open(&target).await?.get(&path, &[]).await?;
                if output == Output::Json { print_json(&list, out) } else { print::list(&list, out) }
            }
            Self::Show { which, output, target } => {
                let run = Client::open(&target).await?.get(&which.path(), &[]).await?;
                if output == Output::Json { print_json(&run, out) } else { print::run(&run, out) }
            }
            Self::Logs { which, follow, offset, target } => {
                let client = if follow { served(&target).await? } else { Client::open(&target).await? };
                follow::logs(&client, &which, follow, offset, out).await
            }
        }
    }
}

/// Finds the server. Without one nobody executes anything, nor knows of what goes on.
async fn served(target: &Target) -> Result<Client, CliError> {
    let client = Client::open(target).await?;
    if client.is_served() {
        return Ok(client);
    }
    let directory = target.data_dir();
    let directory = directory.display();
    Err(CliError::Unexpected(format!(
        "no server runs on {directory}, so nobody executes runs: start it with `rezus-server serve --data-dir {directory}`"
    )))
}

impl Ask {
    async fn run(self, operation: &str, out: &mut dyn Write) -> Result<(), CliError> {
        let client = served(&self.at).await?;
        let path = format!("{API}/namespaces/{}/runs", self.tenant);
        let made = client
            .send(
                "POST",
                &path,
                &[("fieldValidation", "Strict")],
                self.manifest(operation).to_string().into(),
            )
            .await?
            .json()?;
        let name = made["metadata"]["name"].as_str().and_then(|name| RunName::parse(name).ok());
        let name = name.ok_or(ClientError::Strange(201))?;
        writeln!(out, "{name}")?;
        out.flush()?;
        if self.wait {
            return Waiting::new(&client, &self.tenant, &name).end().await;
        }
        if let Some(into) = made["status"]["coalescedInto"].as_str() {
            // For people: what is read by programs is the name.
            drop(writeln!(io::stderr(), "the run {into} waits already and does the same"));
        }
        Ok(())
    }

    fn manifest(&self, operation: &str) -> Value {
        let mut spec = json!({ "operation": operation });
        if self.auto_approve {
            spec["approval"] = "auto".into();
        }
        let variables: Map<String, Value> =
            self.variables.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let parts = [
            ("variables", Value::from(variables)),
            ("targets", self.targets.clone().into()),
            ("replace", self.replace.clone().into()),
            ("reason", self.reason.clone().into()),
        ];
        for (member, value) in parts {
            spec[member] = value;
        }
        let metadata = match &self.name {
            Some(name) => json!({ "name": name.as_str() }),
            None => json!({ "generateName": format!("{operation}-") }),
        };
        json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Run", "metadata": metadata, "spec": spec })
    }
}
