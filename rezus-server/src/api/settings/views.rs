//! How what is set of a tenant looks in answers.

use std::collections::{BTreeMap, BTreeSet};

use rezus_core::declared::Freeze;
use rezus_core::runs::VariableName;
use rezus_core::runs::workspace::{ConfigurationSource, SecretSource, Workspace};
use serde::Serialize;

use crate::config::Span;

/// What a tenant's runs are made with.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationView {
    /// The directory of the server's machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// The SHA-256 of the archive that was uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What its owner calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Whether the server's configuration file says all of this.
    pub from_file: bool,
    /// Values of variables.
    pub variables: BTreeMap<VariableName, String>,
    /// Where values of secret variables are read.
    pub secret_variables: BTreeMap<VariableName, SecretSource>,
    /// Where secrets of the program's environment are read.
    pub secret_environment: BTreeMap<String, SecretSource>,
    /// Variables of the server's environment that the program sees.
    pub environment: BTreeSet<String>,
    /// The program, where it is not the server's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// `manual` or `auto`.
    pub approval: &'static str,
    /// Whether destroy is refused.
    pub protect_destroy: bool,
    /// How often drift is looked for; absent for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// What is looked at then: `refresh-only` or `full`.
    pub drift_mode: &'static str,
    /// How long a plan may take.
    pub plan_timeout: String,
    /// How long an apply may take.
    pub apply_timeout: String,
    /// How long after an interrupt the program is killed.
    pub grace: String,
}

/// An operator's stop.
#[derive(Debug, Serialize)]
pub struct FreezeView {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub at: String,
    /// Whether clients' locks and writes are refused too.
    pub clients: bool,
}

impl ConfigurationView {
    /// Shows a workspace; `is_fixed` by the configuration file.
    pub fn of(workspace: &Workspace, is_fixed: bool) -> Self {
        let span = |span| Span(span).to_string();
        let (dir, digest) = match &workspace.source {
            ConfigurationSource::Directory(dir) => (Some(dir.display().to_string()), None),
            ConfigurationSource::Archive(digest) => (None, Some(digest.clone())),
        };
        Self {
            dir,
            digest,
            revision: workspace.revision.clone(),
            from_file: is_fixed,
            variables: workspace.variables.clone(),
            secret_variables: workspace.secret_variables.clone(),
            secret_environment: workspace.secret_environment.clone(),
            environment: workspace.environment.clone(),
            binary: workspace.binary.as_ref().map(|binary| binary.display().to_string()),
            approval: workspace.approval.as_str(),
            protect_destroy: workspace.protect_destroy,
            drift: workspace.drift_every.map(span),
            drift_mode: workspace.drift_mode.as_str(),
            plan_timeout: span(workspace.plan_timeout),
            apply_timeout: span(workspace.apply_timeout),
            grace: span(workspace.grace),
        }
    }
}

impl FreezeView {
    /// Shows a freeze.
    pub fn of(freeze: &Freeze) -> Self {
        Self {
            by: freeze.by.clone(),
            reason: freeze.reason.clone(),
            at: freeze.at.to_string(),
            clients: freeze.clients,
        }
    }
}
