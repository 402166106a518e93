//! `[tenants.NAME]`: with what a tenant's runs are made, and what else is set of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use rezus_core::declared::Encryption;
use rezus_core::runs::workspace::{ConfigurationSource, DriftMode, SecretSource, Workspace};
use rezus_core::runs::{Approval, VariableName};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::Span;
use super::runs::environment;
use crate::workspaces::names;

/// `[tenants.NAME]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Section")]
pub struct TenantConfig {
    /// What its runs are made with, where it names a directory.
    pub workspace: Option<Workspace>,
    /// The kubeconfig that counts where the state holds no credential that opens Kubernetes.
    pub kubeconfig_file: Option<PathBuf>,
    /// The same of a talosconfig.
    pub talosconfig_file: Option<PathBuf>,
    /// What is asked of its states. Default that of `[state]`, or what an operator set.
    pub encryption: Option<Encryption>,
}

/// `[tenants.NAME]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    /// The directory of its configuration.
    #[serde(default, deserialize_with = "some_path")]
    dir: Option<PathBuf>,
    #[serde(default, deserialize_with = "some_path")]
    kubeconfig_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "some_path")]
    talosconfig_file: Option<PathBuf>,
    #[serde(default)]
    encryption: Option<Encryption>,
    /// What its owner calls the configuration.
    #[serde(default)]
    revision: Option<String>,
    /// Values of its variables: no secrets, they are shown.
    #[serde(default)]
    variables: BTreeMap<VariableName, String>,
    /// Values of its variables that are secrets: `{ file = "PATH" }` or `{ environment = "NAME" }`.
    #[serde(default, deserialize_with = "secrets")]
    secret_variables: BTreeMap<VariableName, SecretSource>,
    /// Further variables of the program's environment, all taken for secrets.
    #[serde(default, deserialize_with = "secret_environment")]
    secret_environment: BTreeMap<String, SecretSource>,
    /// Variables of the server's environment that the program sees beside those of `[runs]`.
    #[serde(default, deserialize_with = "environment")]
    environment: BTreeSet<String>,
    /// The program, instead of that of `[runs]`.
    #[serde(default, deserialize_with = "some_path")]
    binary: Option<PathBuf>,
    /// Whether an apply waits for approval: `manual` or `auto`. Default `manual`.
    #[serde(default)]
    approval: Option<Approval>,
    /// Whether destroy is refused. Default false.
    #[serde(default)]
    protect_destroy: bool,
    /// How often drift is looked for. Default never.
    #[serde(default, deserialize_with = "span")]
    drift: Option<Span>,
    /// What is looked at then: `refresh-only`, whether the resources are as the state has them, or `full`, and whether the
    /// configuration would change them. Default `refresh-only`.
    #[serde(default)]
    drift_mode: DriftMode,
    /// How long a plan may take. Default `1h`.
    #[serde(default, deserialize_with = "span")]
    plan_timeout: Option<Span>,
    /// How long an apply may take. Default `6h`.
    #[serde(default, deserialize_with = "span")]
    apply_timeout: Option<Span>,
    /// How long after an interrupt the program is killed. Default `1m`.
    #[serde(default, deserialize_with = "span")]
    grace: Option<Span>,
}

impl Section {
    /// Returns what runs of the configuration in a directory are made with.
    fn workspace(&self, dir: PathBuf) -> Workspace {
        let default = Workspace::of(ConfigurationSource::Directory(dir));
        let span = |span: Option<Span>, default: Duration| span.map_or(default, |Span(span)| span);
        Workspace {
            revision: self.revision.clone(),
            variables: self.variables.clone(),
            secret_variables: self.secret_variables.clone(),
            secret_environment: self.secret_environment.clone(),
            environment: self.environment.clone(),
            binary: self.binary.clone(),
            approval: self.approval.unwrap_or(default.approval),
            protect_destroy: self.protect_destroy,
            drift_every: self.drift.map(|Span(span)| span),
            drift_mode: self.drift_mode,
            plan_timeout: span(self.plan_timeout, default.plan_timeout),
            apply_timeout: span(self.apply_timeout, default.apply_timeout),
            grace: span(self.grace, default.grace),
            ..default
        }
    }
}

impl TryFrom<Section> for TenantConfig {
    type Error = &'static str;

    fn try_from(section: Section) -> Result<Self, Self::Error> {
        let workspace = section.dir.clone().map(|dir| section.workspace(dir));
        let Section { kubeconfig_file, talosconfig_file, encryption, .. } = &section;
        if workspace.is_none() {
            let nowhere = PathBuf::new();
            let default = Workspace::of(ConfigurationSource::Directory(nowhere.clone()));
            let is_nothing = kubeconfig_file.is_none() && talosconfig_file.is_none() && encryption.is_none();
            if is_nothing || section.workspace(nowhere) != default {
                return Err("dir is missing: the directory of the configuration that runs are made with");
            }
        }
        let Section { kubeconfig_file, talosconfig_file, encryption, .. } = section;
        Ok(Self { workspace, kubeconfig_file, talosconfig_file, encryption })
    }
}

fn path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    let path = PathBuf::deserialize(deserializer)?;
    names::check_path(&path).map_err(D::Error::custom)?;
    Ok(path)
}

fn some_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PathBuf>, D::Error> {
    path(deserializer).map(Some)
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Span>, D::Error> {
    let span = Span::deserialize(deserializer)?;
    names::check_span(span).map_err(D::Error::custom)?;
    Ok(Some(span))
}

fn secrets<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<VariableName, SecretSource>, D::Error> {
    let secrets = BTreeMap::deserialize(deserializer)?;
    secrets.values().try_for_each(names::check_source).map_err(D::Error::custom)?;
    Ok(secrets)
}

fn secret_environment<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, SecretSource>, D::Error> {
    let secrets = BTreeMap::<String, _>::deserialize(deserializer)?;
    secrets.keys().try_for_each(|name| names::check_set(name)).map_err(D::Error::custom)?;
    secrets.values().try_for_each(names::check_source).map_err(D::Error::custom)?;
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_section_is_its_workspace() {
        let text = "dir = \"/srv/prod\"\nrevision = \"v1\"\napproval = \"auto\"\nprotect_destroy = true\n\
            drift = \"6h\"\ndrift_mode = \"full\"\nplan_timeout = \"5m\"\nenvironment = [\"AWS_PROFILE\"]\nbinary = \"/opt/tofu\"\n\
            [variables]\nnodes = \"3\"\n[secret_variables]\ntoken = { file = \"/run/token\" }\n\
            [secret_environment]\nTF_ENCRYPTION = { environment = \"ENC\" }\n";
        let workspace = toml::from_str::<TenantConfig>(text).unwrap().workspace.unwrap();
        let name = |text: &str| VariableName::parse(text).unwrap();
        let expected = Workspace {
            revision: Some("v1".to_owned()),
            variables: [(name("nodes"), "3".to_owned())].into(),
            secret_variables: [(name("token"), SecretSource::File("/run/token".into()))].into(),
            secret_environment: [("TF_ENCRYPTION".to_owned(), SecretSource::Environment("ENC".to_owned()))]
                .into(),
            environment: ["AWS_PROFILE".to_owned()].into(),
            binary: Some("/opt/tofu".into()),
            approval: Approval::Auto,
            protect_destroy: true,
            drift_every: Some(Duration::from_hours(6)),
            drift_mode: DriftMode::Full,
            plan_timeout: Duration::from_mins(5),
            ..Workspace::of(ConfigurationSource::Directory("/srv/prod".into()))
        };
        assert_eq!(workspace, expected);
    }

    #[test]
    fn what_is_not_of_runs_needs_no_directory() {
        let text = "kubeconfig_file = \"/k\"\ntalosconfig_file = \"/t\"\nencryption = \"required\"\n";
        let config: TenantConfig = toml::from_str(text).unwrap();
        let expected = TenantConfig {
            workspace: None,
            kubeconfig_file: Some("/k".into()),
            talosconfig_file: Some("/t".into()),
            encryption: Some(Encryption::Required),
        };
        assert_eq!(config, expected);
        for (text, named) in [
            ("encryption = \"required\"\napproval = \"auto\"\n", "dir is missing"),
            ("encryption = \"always\"\n", "optional"),
            ("kubeconfig_file = \"k\"\n", "absolute"),
        ] {
            let error = toml::from_str::<TenantConfig>(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}
