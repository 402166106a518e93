//! What a stage of a run is made with: program, working directory, environment, command lines, and the secrets that
//! must not be in its log.

use std::collections::BTreeMap;
use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::declared::reader::ReadError;
use rezus_core::runs::executor::{Configuration, Job, Prepared, Query, RunId, Tool, ToolKind};
use rezus_core::runs::workspace::{ConfigurationSource, DriftMode, SecretSource, Workspace};
use rezus_core::runs::{Cause, Operation, RunFacts, SecretText, Stage};

use super::Runs;
use super::token::RunToken;
use crate::error::Chain;

/// The file that makes any configuration keep its state here. Addresses and credentials come by environment: no file
/// and no plan holds them, and a plan can be applied after the server moved to another port.
const OVERRIDE: (&str, &str) = ("rezus_override.tf.json", "{\"terraform\":{\"backend\":{\"http\":{}}}}\n");

/// How much longer than its program's time a token works: for retries and the last save.
const SPARE: Duration = Duration::from_mins(10);

/// How long the tool may take to show a plan.
const SHOW: Duration = Duration::from_mins(5);

/// How large a plan may be when it is shown.
const SHOWN: usize = 512 << 20;

/// What a run is made with.
#[derive(Debug)]
pub(super) struct Kit {
    pub(super) workspace: Workspace,
    pub(super) tool: Tool,
    pub(super) prepared: Prepared,
    environment: BTreeMap<String, SecretText>,
    secrets: Vec<SecretText>,
}

/// Which of the steps that make a plan makes it: the last one.
pub(super) const PLAN_STEP: usize = 1;

/// Why there is none.
pub(crate) type NoKit = Cause;

/// What reads a tenant's state.
#[derive(Debug)]
pub(crate) struct Puller {
    /// A command without its command line.
    pub(crate) query: Query,
    token: RunToken,
}

/// A configuration that says where the state is, and nothing else.
fn only_a_backend() -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(u64::try_from(OVERRIDE.1.len()).unwrap_or(0));
    header.set_mode(0o600);
    archive.append_data(&mut header, "backend.tf.json", OVERRIDE.1.as_bytes())?;
    archive.into_inner()
}

fn with_token(environment: &mut BTreeMap<String, SecretText>, token: &RunToken) {
    environment.insert("TF_HTTP_USERNAME".to_owned(), SecretText::new("rezus".to_owned()));
    environment.insert("TF_HTTP_PASSWORD".to_owned(), token.secret.clone());
}

impl Runs {
    /// Gathers what a run is made with.
    pub(super) async fn kit(&self, id: &RunId) -> Result<Kit, NoKit> {
        let means = &self.0.means;
        let workspace = self.workspace(&id.tenant).await;
        let workspace =
            workspace.map_err(|error| Cause::new("NoConfiguration", Chain(&error).to_string()))?;
        let named = workspace.binary.clone().or_else(|| means.config.binary.clone());
        let tool = self.executor().tool(named).await;
        let tool = tool.map_err(|error| Cause::new("NoTool", Chain(&error).to_string()))?;
        let configuration = match &workspace.source {
            ConfigurationSource::Directory(path) => Configuration::Directory(path.clone()),
            ConfigurationSource::Archive(digest) => {
                let found = self.store().archive(digest).await;
                let found = found.map_err(|error| Cause::new("StoreFailed", Chain(&error).to_string()))?;
                Configuration::Archive(found.ok_or_else(|| {
                    Cause::new(
                        "NoConfiguration",
                        "the configuration that was uploaded is gone: upload it again",
                    )
                })?)
            }
        };
        let files = vec![(OVERRIDE.0.to_owned(), OVERRIDE.1.to_owned())];
        let prepared = self.executor().prepare(&id.tenant, configuration, files).await;
        let prepared =
            prepared.map_err(|error| Cause::new("ConfigurationInvalid", Chain(&error).to_string()))?;
        let (environment, mut secrets) = self.environment(&id.tenant, &workspace)?;
        secrets.extend(self.secrets_for(id, &workspace).await?);
        Ok(Kit { workspace, tool, prepared, environment, secrets })
    }

    /// Gathers what reads a tenant's state, and nothing else of its configuration.
    pub(crate) async fn puller(&self, id: &RunId, workspace: &Workspace) -> Result<Puller, NoKit> {
        let failed = |reason: &'static str, why: String| Cause::new(reason, why);
        let named = workspace.binary.clone().or_else(|| self.0.means.config.binary.clone());
        let tool = self.executor().tool(named).await;
        let tool = tool.map_err(|error| failed("NoTool", Chain(&error).to_string()))?;
        let archive = only_a_backend().map_err(|error| failed("NoDirectory", error.to_string()))?;
        let prepared =
            self.executor().prepare(&id.tenant, Configuration::Archive(archive.into()), Vec::new()).await;
        let prepared = prepared.map_err(|error| failed("NoDirectory", Chain(&error).to_string()))?;
        let (mut environment, _) = self.environment(&id.tenant, workspace)?;
        let token = self.mint(id, SHOW).await;
        let token = token.map_err(|error| failed("StoreFailed", Chain(&error).to_string()))?;
        with_token(&mut environment, &token);
        let query = Query {
            tool,
            work_dir: prepared.work_dir,
            arguments: Vec::new(),
            environment,
            timeout: SHOW,
            limit: SHOWN,
        };
        Ok(Puller { query, token })
    }

    /// Ends what a puller had.
    pub(crate) async fn end_puller(&self, puller: Puller) {
        self.revoke(puller.token).await;
    }

    /// The environment of a tenant's programs, without a token, and the secrets in it.
    pub(super) fn environment(
        &self,
        tenant: &TenantName,
        workspace: &Workspace,
    ) -> Result<(BTreeMap<String, SecretText>, Vec<SecretText>), NoKit> {
        let means = &self.0.means;
        let mut environment = BTreeMap::new();
        for name in means.config.environment.iter().chain(&workspace.environment) {
            if let Ok(value) = std::env::var(name) {
                environment.insert(name.clone(), SecretText::new(value));
            }
        }
        // What is named for one tenant is a credential more often than not.
        let mut secrets: Vec<SecretText> =
            workspace.environment.iter().filter_map(|name| environment.get(name).cloned()).collect();
        let variables =
            workspace.secret_variables.iter().map(|(name, source)| (format!("TF_VAR_{name}"), source));
        let others = workspace.secret_environment.iter().map(|(name, source)| (name.clone(), source));
        for (name, source) in variables.chain(others) {
            let value = read(source).map_err(|why| {
                Cause::new("SecretMissing", format!("the secret {name} of {tenant} cannot be read: {why}"))
            })?;
            secrets.push(value.clone());
            environment.insert(name, value);
        }
        // Whoever shows a passphrase does not show the line that it stands in.
        secrets.extend(environment.get("TF_ENCRYPTION").into_iter().flat_map(SecretText::keys));
        if let Some(url) = means.listeners.get().and_then(|urls| urls.first()) {
            let address = format!("{url}/state/{tenant}");
            for name in ["TF_HTTP_ADDRESS", "TF_HTTP_LOCK_ADDRESS", "TF_HTTP_UNLOCK_ADDRESS"] {
                environment.insert(name.to_owned(), SecretText::new(address.clone()));
            }
        }
        Ok((environment, secrets))
    }

    /// The strings that a tenant's newest state holds secret. Of an encrypted one they are known once it was decrypted.
    pub(super) async fn state_secrets(&self, tenant: &TenantName) -> Result<Vec<SecretText>, ReadError> {
        let secrets = self.0.means.reader.secret_strings(tenant).await?;
        Ok(secrets.into_iter().map(SecretText::new).collect())
    }
}

fn read(source: &SecretSource) -> Result<SecretText, String> {
    match source {
        SecretSource::File(path) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(SecretText::new(text.strip_suffix('\n').unwrap_or(&text).to_owned())),
            Err(error) => Err(format!("the file {}: {error}", path.display())),
        },
        SecretSource::Environment(name) => match std::env::var(name) {
            Ok(text) => Ok(SecretText::new(text)),
            Err(_) => Err(format!("the server's environment has no {name} that is text")),
        },
    }
}

impl Kit {
    /// How long a token must work for a stage.
    pub(super) fn most(&self, stage: Stage) -> Duration {
        let timeout = match stage {
            Stage::Plan | Stage::PlanAgain => self.workspace.plan_timeout,
            Stage::Apply => self.workspace.apply_timeout,
        };
        timeout.saturating_add(self.workspace.grace).saturating_add(SPARE)
    }

    /// What is executed for a stage.
    pub(super) fn job(
        &self,
        id: &RunId,
        stage: Stage,
        steps: Vec<Vec<String>>,
        token: &RunToken,
        log_limit: u64,
    ) -> Job {
        let mut environment = self.environment.clone();
        with_token(&mut environment, token);
        let mut secrets = self.secrets.clone();
        secrets.push(token.secret.clone());
        Job {
            id: id.clone(),
            stage,
            tool: self.tool.clone(),
            work_dir: self.prepared.work_dir.clone(),
            steps,
            environment,
            secrets,
            timeout: match stage {
                Stage::Plan | Stage::PlanAgain => self.workspace.plan_timeout,
                Stage::Apply => self.workspace.apply_timeout,
            },
            grace: self.workspace.grace,
            log_limit,
        }
    }

    /// What shows a plan, secrets and all.
    pub(super) fn show(&self, plan: &std::path::Path) -> Query {
        Query {
            tool: self.tool.clone(),
            work_dir: self.prepared.work_dir.clone(),
            arguments: vec!["show".to_owned(), "-json".to_owned(), plan.display().to_string()],
            environment: self.environment.clone(),
            timeout: SHOW,
            limit: SHOWN,
        }
    }
}

/// The command lines that make a plan.
pub(super) fn plan_steps(facts: &RunFacts, kit: &Kit, plan: &std::path::Path) -> Vec<Vec<String>> {
    let request = &facts.request;
    let mut init = words(&["init", "-input=false", "-no-color", "-reconfigure"]);
    if shows_init_as_json(&kit.tool) {
        init.insert(1, "-json".to_owned());
    }
    let mut line = words(&["plan", "-json", "-input=false", "-no-color", "-detailed-exitcode"]);
    match request.operation {
        Operation::Plan | Operation::Apply => {}
        Operation::Destroy => line.push("-destroy".to_owned()),
        Operation::Drift => {
            // A check holds nobody up.
            line.push("-lock=false".to_owned());
            if kit.workspace.drift_mode == DriftMode::RefreshOnly {
                line.push("-refresh-only".to_owned());
            }
        }
    }
    line.push(format!("-out={}", plan.display()));
    let mut variables = kit.workspace.variables.clone();
    variables.extend(request.variables.clone());
    line.extend(variables.iter().map(|(name, value)| format!("-var={name}={value}")));
    line.extend(request.targets.iter().map(|target| format!("-target={target}")));
    line.extend(request.replace.iter().map(|target| format!("-replace={target}")));
    vec![init, line]
}

/// The command line that does what a plan says.
pub(super) fn apply_steps(plan: &std::path::Path) -> Vec<Vec<String>> {
    let mut line = words(&["apply", "-json", "-input=false", "-no-color"]);
    line.push(plan.display().to_string());
    vec![line]
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Whether `init` knows `-json`: Terraform since 1.9; of `OpenTofu`, releases from 1.10 on are known to.
fn shows_init_as_json(tool: &Tool) -> bool {
    let mut numbers = tool.version.split('.').map(|part| part.parse::<u64>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    match tool.kind {
        ToolKind::Terraform => version >= (1, 9),
        ToolKind::Tofu => version >= (1, 10),
    }
}
