//! `tenant configure`: with what runs are made, and labels.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use rezus_core::base::TenantName;
use serde_json::{Map, Value, json};

use super::pack::pack;
use crate::cli::client::Client;
use crate::cli::{CliError, Target};

/// Say with what a tenant's runs are made, and label it. What is not named stays as it is.
#[derive(Debug, Args)]
pub(in crate::cli) struct Configure {
    /// Which tenant.
    tenant: TenantName,
    /// Upload the configuration in this directory, as it is now.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Have the server read the configuration in this directory of its own machine, at the beginning of each run.
    #[arg(long, value_name = "DIR", conflicts_with = "dir")]
    server_dir: Option<PathBuf>,
    /// Set a variable; no secrets, it is shown. May be given more than once, as all that take a name.
    #[arg(long, value_name = "NAME=VALUE")]
    var: Vec<String>,
    /// Take a variable away, secret or not.
    #[arg(long, value_name = "NAME")]
    unset_var: Vec<String>,
    /// Read a variable's value from a file of the server's machine, or from its environment, for each run.
    #[arg(long, value_name = "NAME=file:PATH|env:NAME")]
    secret_var: Vec<String>,
    /// Give the program a secret in its environment, such as a provider's credential.
    #[arg(long, value_name = "NAME=file:PATH|env:NAME")]
    secret_env: Vec<String>,
    /// Take a secret of the program's environment away.
    #[arg(long, value_name = "NAME")]
    unset_secret_env: Vec<String>,
    /// Let the program see this variable of the server's environment, beside those that the server lets all see; those
    /// named replace those of before. `--env=` names none.
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Label the tenant.
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// Take a label away.
    #[arg(long, value_name = "KEY")]
    unlabel: Vec<String>,
    /// What the configuration is called: a commit, a tag.
    #[arg(long, value_name = "TEXT")]
    revision: Option<String>,
    /// Whether an apply waits for somebody's approval.
    #[arg(long, value_enum)]
    approval: Option<Approval>,
    /// What is refused.
    #[arg(long, value_enum)]
    protect: Option<Protect>,
    /// How often drift is looked for, such as 1h; or `never`.
    #[arg(long, value_name = "SPAN|never")]
    drift: Option<String>,
    /// What a drift check looks at.
    #[arg(long, value_enum)]
    drift_mode: Option<DriftMode>,
    /// The program, by its path on the server's machine; `--binary=` for the server's own choice.
    #[arg(long, value_name = "PATH")]
    binary: Option<String>,
    /// How long a plan may take.
    #[arg(long, value_name = "SPAN")]
    plan_timeout: Option<String>,
    /// How long an apply may take.
    #[arg(long, value_name = "SPAN")]
    apply_timeout: Option<String>,
    /// How long after an interrupt the program is killed.
    #[arg(long, value_name = "SPAN")]
    grace: Option<String>,
    /// Whether writes that are not made under the lock are refused.
    #[arg(long, value_name = "true|false")]
    require_locks: Option<bool>,
    /// Whether states in clear are refused; `default` for what the server asks of all tenants.
    #[arg(long, value_enum)]
    encryption: Option<Encryption>,
    /// Read what opens the cluster's Kubernetes API in this kubeconfig of the server's machine, where the state holds
    /// nothing that does; `--kubeconfig-file=` for none. Only a client certificate that is in the file itself counts.
    #[arg(long, value_name = "PATH")]
    kubeconfig_file: Option<String>,
    /// The same of its Talos API and a talosconfig.
    #[arg(long, value_name = "PATH")]
    talosconfig_file: Option<String>,
    /// Whether the cluster is observed.
    #[arg(long, value_enum)]
    collect: Option<Collect>,
    /// Let this address be asked although it is a loopback or link-local one; those named replace those of before.
    /// `--allow-destination=` names none.
    #[arg(long, value_name = "IP")]
    allow_destination: Vec<String>,
    /// Replay this recording instead of asking the cluster, a file of the server's machine that `rezus-server record` wrote;
    /// `--recording=` for none.
    #[arg(long, value_name = "PATH")]
    recording: Option<String>,
    /// The port at which `node_exporter` answers on the machines, or `none` to ask none.
    #[arg(long, value_name = "PORT|none")]
    node_metrics: Option<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Approval {
    /// It waits.
    Manual,
    /// It does not.
    Auto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DriftMode {
    /// Whether the resources are as the state has them.
    RefreshOnly,
    /// And whether the configuration would change them.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Encryption {
    /// They are.
    Required,
    /// They are not.
    Optional,
    /// As the server has it.
    Default,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Collect {
    /// It is.
    On,
    /// It is not.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Protect {
    /// Destroying everything.
    Destroy,
    /// Nothing.
    None,
}

impl Configure {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let tenant = self.tenant.clone();
        let changes = self.changes()?;
        let archive = self.dir.as_deref().map(pack).transpose()?;
        if changes.is_empty() && archive.is_none() {
            return Err(CliError::Usage(
                "there is nothing to change: see `tenant configure --help`".to_owned(),
            ));
        }
        let client = Client::open(&self.target).await?;
        if let Some(archive) = archive {
            let path = format!("/rezus/v1/tenants/{tenant}/configuration");
            let revision: Vec<(&str, &str)> =
                self.revision.iter().map(|revision| ("revision", revision.as_str())).collect();
            let size = archive.len();
            let answer = client.send_as("application/x-tar", "PUT", &path, &revision, archive.into()).await?;
            let digest = answer.json()?["configuration"]["digest"].as_str().unwrap_or("-").to_owned();
            writeln!(out, "{tenant}: configuration of {size} bytes uploaded (sha256 {digest})")?;
        }
        if !changes.is_empty() {
            let path = format!("/rezus/v1/tenants/{tenant}");
            client.patch(&path, &Value::Object(changes)).await?;
            writeln!(out, "{tenant}: configured")?;
        }
        Ok(())
    }

    /// The body of the request that changes everything but the archive.
    fn changes(&self) -> Result<Map<String, Value>, CliError> {
        let mut changes = Map::new();
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                changes.insert(key.to_owned(), value);
            }
        };
        let null = |name: &String| (name.clone(), Value::Null);
        let mut variables: Map<String, Value> = self.unset_var.iter().map(null).collect();
        let mut secrets = variables.clone();
        for pair in &self.var {
            let (name, value) = split(pair, "--var")?;
            variables.insert(name.to_owned(), value.into());
            // A variable is one or the other.
            secrets.insert(name.to_owned(), Value::Null);
        }
        for pair in &self.secret_var {
            let (name, source) = split(pair, "--secret-var")?;
            secrets.insert(name.to_owned(), source_of(source, "--secret-var")?);
            variables.insert(name.to_owned(), Value::Null);
        }
        let mut environment: Map<String, Value> = self.unset_secret_env.iter().map(null).collect();
        for pair in &self.secret_env {
            let (name, source) = split(pair, "--secret-env")?;
            environment.insert(name.to_owned(), source_of(source, "--secret-env")?);
        }
        let mut labels: Map<String, Value> = self.unlabel.iter().map(null).collect();
        for pair in &self.label {
            let (key, value) = split(pair, "--label")?;
            labels.insert(key.to_owned(), value.into());
        }
        for (key, members) in [
            ("variables", variables),
            ("secretVariables", secrets),
            ("secretEnvironment", environment),
            ("labels", labels),
        ] {
            set(key, (!members.is_empty()).then(|| members.into()));
        }
        let names: Vec<&String> = self.env.iter().filter(|name| !name.is_empty()).collect();
        set("environment", (!self.env.is_empty()).then(|| json!(names)));
        // With an archive it is sent along.
        set("revision", self.revision.as_ref().filter(|_| self.dir.is_none()).map(|text| json!(text)));
        set("dir", self.server_dir.as_ref().map(|dir| json!(dir)));
        let approval = |approval| if approval == Approval::Auto { "auto" } else { "manual" };
        set("approval", self.approval.map(|wanted| approval(wanted).into()));
        set("protectDestroy", self.protect.map(|protect| (protect == Protect::Destroy).into()));
        let unless = |text: &String, nothing: &str| if text == nothing { Value::Null } else { json!(text) };
        set("drift", self.drift.as_ref().map(|every| unless(every, "never")));
        let mode = |mode| if mode == DriftMode::Full { "full" } else { "refresh-only" };
        set("driftMode", self.drift_mode.map(|wanted| mode(wanted).into()));
        set("binary", self.binary.as_ref().map(|binary| unless(binary, "")));
        set("planTimeout", self.plan_timeout.as_ref().map(|span| json!(span)));
        set("applyTimeout", self.apply_timeout.as_ref().map(|span| json!(span)));
        set("grace", self.grace.as_ref().map(|span| json!(span)));
        let asked = |encryption| match encryption {
            Encryption::Required => "required".into(),
            Encryption::Optional => "optional".into(),
            Encryption::Default => Value::Null,
        };
        set("encryption", self.encryption.map(asked));
        set("kubeconfigFile", self.kubeconfig_file.as_ref().map(|path| unless(path, "")));
        set("talosconfigFile", self.talosconfig_file.as_ref().map(|path| unless(path, "")));
        set("collect", self.collect.map(|collect| (collect == Collect::On).into()));
        let addresses: Vec<&String> = self.allow_destination.iter().filter(|text| !text.is_empty()).collect();
        set("destinations", (!self.allow_destination.is_empty()).then(|| json!(addresses)));
        if let Some(port) = &self.node_metrics {
            let number = port.parse::<u16>().map(Value::from);
            let usage =
                |_| CliError::Usage("--node-metrics takes a port from 1 to 65535, or none".to_owned());
            set("nodeMetrics", Some(if port == "none" { Value::Null } else { number.map_err(usage)? }));
        }
        set("recording", self.recording.as_ref().map(|path| unless(path, "")));
        set("requireLocks", self.require_locks.map(Value::from));
        Ok(changes)
    }
}

/// Splits `NAME=VALUE`. What is wrong is not repeated: it may be a secret.
fn split<'p>(pair: &'p str, option: &str) -> Result<(&'p str, &'p str), CliError> {
    let split = pair.split_once('=').filter(|(name, _)| !name.is_empty());
    split.ok_or_else(|| CliError::Usage(format!("{option} takes a name, an equals sign and a value")))
}

fn source_of(text: &str, option: &str) -> Result<Value, CliError> {
    match text.split_once(':') {
        Some(("file", path)) if !path.is_empty() => Ok(json!({ "file": path })),
        Some(("env", name)) if !name.is_empty() => Ok(json!({ "environment": name })),
        _ => Err(CliError::Usage(format!(
            "{option} takes where the secret is, not the secret: NAME=file:PATH or NAME=env:NAME, of the server's machine"
        ))),
    }
}
