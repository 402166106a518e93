//! What a request changes of a tenant's settings. No message repeats a value.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use rezus_core::declared::Encryption;
use rezus_core::runs::workspace::{ConfigurationSource, DriftMode, SecretSource, TenantSettings, Workspace};
use rezus_core::runs::{Approval, VariableName};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::config::Span;
use crate::error::ApiError;
use crate::workspaces::names;

/// How many labels, and how many variables of each kind, a tenant may have.
const MOST: usize = 1_000;

/// All labels together may have so many bytes: every Tenant is shown with them.
const LABELS: usize = 16 << 10;

type Edit = Box<dyn FnOnce(&mut Workspace) + Send>;
type Set = Box<dyn FnOnce(&mut TenantSettings) + Send>;

/// What a setting is to be that can be nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<T>(pub(super) Option<T>);

/// The changes, checked one by one.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) require_locks: Option<bool>,
    /// What is asked of states; nothing for what the server asks of all.
    pub(super) encryption: Option<Wanted<Encryption>>,
    /// Files that credentials are read from.
    pub(super) kubeconfig_file: Option<Wanted<PathBuf>>,
    pub(super) talosconfig_file: Option<Wanted<PathBuf>>,
    dir: Option<PathBuf>,
    edits: Vec<Edit>,
    sets: Vec<Set>,
    labels: BTreeMap<String, Option<String>>,
    /// Whether they name what is the server's: files, programs, variables of its environment.
    pub(super) names_the_servers: bool,
}

impl Changes {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// [`ApiError`] names the member.
    pub(super) fn of(object: Map<String, Value>) -> Result<Self, ApiError> {
        let mut changes = Self::default();
        for (key, value) in object {
            changes.read(&key, value)?;
        }
        Ok(changes)
    }

    fn read(&mut self, key: &str, value: Value) -> Result<(), ApiError> {
        match key {
            "requireLocks" => self.require_locks = Some(typed(key, value, "true or false")?),
            "encryption" => {
                let expected = "required, optional, or null for what the server asks";
                self.encryption = Some(Wanted(typed(key, value, expected)?));
            }
            "kubeconfigFile" => self.kubeconfig_file = Some(self.file(key, value)?),
            "talosconfigFile" => self.talosconfig_file = Some(self.file(key, value)?),
            "collect" => {
                let collect: Option<bool> =
                    typed(key, value, "true, false, or null for what the server does")?;
                self.set(move |settings| settings.collect = collect);
            }
            "destinations" => {
                let addresses: BTreeSet<IpAddr> = typed(key, value, "a list of IP addresses")?;
                // What the server reaches, and others do not.
                self.names_the_servers |= !addresses.is_empty();
                self.set(move |settings| settings.destinations = addresses);
            }
            "recording" => {
                let Wanted(recording) = self.file(key, value)?;
                self.set(move |settings| settings.recording = recording);
            }
            "nodeMetrics" => {
                let expected = "the port of node_exporter, or null for none";
                let port: Option<NonZeroU16> = typed(key, value, expected)?;
                self.set(move |settings| settings.node_metrics = port.map(NonZeroU16::get));
            }
            "dir" => {
                let dir = path(key, value)?;
                self.names_the_servers = true;
                self.dir = Some(dir);
            }
            "revision" => {
                let revision: Option<String> = typed(key, value, "a text or null")?;
                let revision = revision.map(|revision| short(key, revision)).transpose()?;
                self.edit(move |workspace| workspace.revision = revision);
            }
            "variables" => {
                let values = named(key, value, "an object of texts; null takes one away")?;
                self.edit(move |workspace| merge(&mut workspace.variables, values));
            }
            "secretVariables" => {
                let sources = sources(key, value)?;
                let sources = by_variable(key, sources)?;
                self.names_the_servers |= sources.values().any(Option::is_some);
                self.edit(move |workspace| merge(&mut workspace.secret_variables, sources));
            }
            "secretEnvironment" => {
                let sources = sources(key, value)?;
                for name in sources.keys() {
                    checked(key, names::check_set(name))?;
                }
                self.names_the_servers |= sources.values().any(Option::is_some);
                self.edit(move |workspace| merge(&mut workspace.secret_environment, sources));
            }
            "environment" => {
                let variables: BTreeSet<String> =
                    typed(key, value, "a list of names of environment variables")?;
                for name in &variables {
                    checked(key, names::check_set(name))?;
                }
                self.names_the_servers |= !variables.is_empty();
                self.edit(move |workspace| workspace.environment = variables);
            }
            "binary" => {
                let binary = if value.is_null() { None } else { Some(path(key, value)?) };
                self.names_the_servers |= binary.is_some();
                self.edit(move |workspace| workspace.binary = binary);
            }
            "approval" => {
                let approval: Approval = typed(key, value, "manual or auto")?;
                self.edit(move |workspace| workspace.approval = approval);
            }
            "protectDestroy" => {
                let protect: bool = typed(key, value, "true or false")?;
                self.edit(move |workspace| workspace.protect_destroy = protect);
            }
            "drift" => {
                let every = if value.is_null() { None } else { Some(span(key, value)?) };
                self.edit(move |workspace| workspace.drift_every = every);
            }
            "driftMode" => {
                let mode: DriftMode = typed(key, value, "refresh-only or full")?;
                self.edit(move |workspace| workspace.drift_mode = mode);
            }
            "planTimeout" => {
                let span = span(key, value)?;
                self.edit(move |workspace| workspace.plan_timeout = span);
            }
            "applyTimeout" => {
                let span = span(key, value)?;
                self.edit(move |workspace| workspace.apply_timeout = span);
            }
            "grace" => {
                let span = span(key, value)?;
                self.edit(move |workspace| workspace.grace = span);
            }
            "labels" => {
                self.labels = typed(key, value, "an object of texts; null takes one away")?;
                for (name, value) in &self.labels {
                    let value = value.as_deref().unwrap_or_default();
                    checked(key, names::check_label(name, value))?;
                }
            }
            _ => {
                let key: String = key.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
                return Err(ApiError::bad_request(format!("{key:?} is nothing that can be set of a tenant")));
            }
        }
        Ok(())
    }

    /// Reads the name of a file of the server's machine; nothing takes it away.
    fn file(&mut self, key: &str, value: Value) -> Result<Wanted<PathBuf>, ApiError> {
        if value.is_null() || value == "" {
            return Ok(Wanted(None));
        }
        self.names_the_servers = true;
        Ok(Wanted(Some(path(key, value)?)))
    }

    fn set(&mut self, set: impl FnOnce(&mut TenantSettings) + Send + 'static) {
        self.sets.push(Box::new(set));
    }

    fn edit(&mut self, edit: impl FnOnce(&mut Workspace) + Send + 'static) {
        self.edits.push(Box::new(edit));
    }

    /// The directory that is to be read, if one was named.
    pub(super) fn dir(&self) -> Option<&PathBuf> {
        self.dir.as_ref()
    }

    /// Tells whether they change anything that runs are made with.
    pub(super) fn is_of_workspace(&self) -> bool {
        self.dir.is_some() || !self.edits.is_empty()
    }

    /// Tells whether they change anything that is kept with the settings.
    pub(super) fn is_of_settings(&self) -> bool {
        let is_of_files = self.kubeconfig_file.is_some() || self.talosconfig_file.is_some();
        self.is_of_workspace() || is_of_files || !self.sets.is_empty() || !self.labels.is_empty()
    }

    /// Makes them.
    ///
    /// # Errors
    ///
    /// [`ApiError`] 422 where the tenant has no configuration yet, or would have too much of something.
    pub(super) fn make(self, settings: &mut TenantSettings) -> Result<(), ApiError> {
        if let Some(dir) = self.dir {
            let source = ConfigurationSource::Directory(dir);
            match &mut settings.workspace {
                Some(workspace) => workspace.source = source,
                None => settings.workspace = Some(Workspace::of(source)),
            }
        }
        if !self.edits.is_empty() {
            let workspace = settings.workspace.as_mut().ok_or_else(|| {
                ApiError::invalid(
                    "the tenant has no configuration yet: upload one to .../configuration first, or name dir as well",
                )
            })?;
            for edit in self.edits {
                edit(workspace);
            }
            let counts = [
                ("variables", workspace.variables.len()),
                ("secretVariables", workspace.secret_variables.len()),
                ("secretEnvironment", workspace.secret_environment.len()),
                ("environment", workspace.environment.len()),
            ];
            if let Some((key, _)) = counts.into_iter().find(|(_, count)| *count > MOST) {
                return Err(ApiError::invalid(format!("{key} may have {MOST} members")));
            }
            let both = workspace.variables.keys().find(|name| workspace.secret_variables.contains_key(*name));
            if let Some(name) = both {
                return Err(ApiError::invalid(format!(
                    "{name} is among variables and secretVariables: take it away from one of them"
                )));
            }
        }
        if let Some(Wanted(file)) = self.kubeconfig_file {
            settings.kubeconfig_file = file;
        }
        if let Some(Wanted(file)) = self.talosconfig_file {
            settings.talosconfig_file = file;
        }
        for set in self.sets {
            set(settings);
        }
        if settings.destinations.len() > MOST {
            return Err(ApiError::invalid(format!("destinations may have {MOST} members")));
        }
        merge(&mut settings.labels, self.labels);
        let bytes: usize = settings.labels.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > LABELS {
            return Err(ApiError::invalid(format!("labels may have {LABELS} bytes in all")));
        }
        Ok(())
    }
}

fn typed<T: DeserializeOwned>(key: &str, value: Value, expected: &str) -> Result<T, ApiError> {
    serde_json::from_value(value).map_err(|_| ApiError::bad_request(format!("{key} is {expected}")))
}

fn checked<T>(key: &str, outcome: Result<T, impl std::error::Error>) -> Result<T, ApiError> {
    outcome.map_err(|fault| ApiError::invalid(format!("{key}: {fault}")))
}

fn short(key: &str, text: String) -> Result<String, ApiError> {
    if text.len() > 256 || text.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("{key} is a text of up to 256 bytes on one line")));
    }
    Ok(text)
}

fn path(key: &str, value: Value) -> Result<PathBuf, ApiError> {
    let path: PathBuf = typed(key, value, "a path")?;
    checked(key, names::check_path(&path))?;
    Ok(path)
}

fn span(key: &str, value: Value) -> Result<Duration, ApiError> {
    let expected = "a length of time such as 30s or 1h";
    let text: String = typed(key, value, expected)?;
    let span: Span = text.parse().map_err(|_| ApiError::bad_request(format!("{key} is {expected}")))?;
    checked(key, names::check_span(span))?;
    Ok(span.0)
}

fn sources(key: &str, value: Value) -> Result<BTreeMap<String, Option<SecretSource>>, ApiError> {
    let expected =
        "an object of {\"file\": PATH} or {\"environment\": NAME}; null takes one away: no secret itself";
    let sources: BTreeMap<String, Option<SecretSource>> = typed(key, value, expected)?;
    for source in sources.values().flatten() {
        checked(key, names::check_source(source))?;
    }
    Ok(sources)
}

fn named(
    key: &str,
    value: Value,
    expected: &str,
) -> Result<BTreeMap<VariableName, Option<String>>, ApiError> {
    by_variable(key, typed(key, value, expected)?)
}

fn by_variable<T>(key: &str, all: BTreeMap<String, T>) -> Result<BTreeMap<VariableName, T>, ApiError> {
    all.into_iter().map(|(name, value)| Ok((checked(key, VariableName::parse(&name))?, value))).collect()
}

fn merge<K: Ord, V>(into: &mut BTreeMap<K, V>, changes: BTreeMap<K, Option<V>>) {
    for (key, value) in changes {
        drop(match value {
            Some(value) => into.insert(key, value),
            None => into.remove(&key),
        });
    }
}
