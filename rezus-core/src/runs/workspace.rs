//! What a tenant's runs are made with: its configuration, variables and policy.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Approval, VariableName};

/// Where a tenant's configuration is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConfigurationSource {
    /// A directory of the server's machine, read at the beginning of each run.
    Directory(PathBuf),
    /// An archive that was uploaded, by the SHA-256 of its bytes in hexadecimal.
    Archive(String),
}

/// Where a secret is read when it is needed. It is never kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretSource {
    /// A file of the server's machine; a line feed at its end does not count.
    File(PathBuf),
    /// A variable of the server's own environment.
    Environment(String),
}

/// What a drift check looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriftMode {
    /// Whether the resources are as the state has them.
    #[default]
    RefreshOnly,
    /// And whether the configuration would change them.
    Full,
}

impl DriftMode {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RefreshOnly => "refresh-only",
            Self::Full => "full",
        }
    }
}

/// What a tenant's runs are made with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workspace {
    /// The configuration.
    pub source: ConfigurationSource,
    /// What its owner calls it: a commit, a tag.
    pub revision: Option<String>,
    /// Values of its variables: no secrets, they are shown.
    #[serde(default)]
    pub variables: BTreeMap<VariableName, String>,
    /// Values of its variables that are secrets.
    #[serde(default)]
    pub secret_variables: BTreeMap<VariableName, SecretSource>,
    /// Further variables of the program's environment, all taken for secrets: credentials of providers,
    /// `TF_ENCRYPTION`.
    #[serde(default)]
    pub secret_environment: BTreeMap<String, SecretSource>,
    /// Variables of the server's environment that the program sees too.
    #[serde(default)]
    pub environment: BTreeSet<String>,
    /// The program; found by itself where it is absent.
    pub binary: Option<PathBuf>,
    /// Whether an apply waits for approval.
    pub approval: Approval,
    /// Whether destroy is refused.
    #[serde(default)]
    pub protect_destroy: bool,
    /// How often drift is looked for; never where it is absent.
    pub drift_every: Option<Duration>,
    /// What is looked at then.
    #[serde(default)]
    pub drift_mode: DriftMode,
    /// How long a plan may take.
    pub plan_timeout: Duration,
    /// How long an apply may take.
    pub apply_timeout: Duration,
    /// How long after an interrupt the program is killed.
    pub grace: Duration,
}

impl Workspace {
    /// A workspace of a configuration, all else as it is by default.
    pub fn of(source: ConfigurationSource) -> Self {
        Self {
            source,
            revision: None,
            variables: BTreeMap::new(),
            secret_variables: BTreeMap::new(),
            secret_environment: BTreeMap::new(),
            environment: BTreeSet::new(),
            binary: None,
            approval: Approval::Manual,
            protect_destroy: false,
            drift_every: None,
            drift_mode: DriftMode::RefreshOnly,
            plan_timeout: Duration::from_hours(1),
            apply_timeout: Duration::from_hours(6),
            grace: Duration::from_mins(1),
        }
    }

    /// Tells whether the state is encrypted by the tools, and plans with it.
    pub fn encrypts(&self) -> bool {
        self.secret_environment.contains_key("TF_ENCRYPTION") || self.environment.contains("TF_ENCRYPTION")
    }
}

/// What is set of a tenant that its state does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantSettings {
    /// What its runs are made with.
    pub workspace: Option<Workspace>,
    /// Labels that an operator gave it.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The kubeconfig that counts where the state holds no credential that opens Kubernetes: a file of the server's machine,
    /// read when it is needed and never kept.
    pub kubeconfig_file: Option<PathBuf>,
    /// The same of a talosconfig.
    pub talosconfig_file: Option<PathBuf>,
    /// Whether its cluster is observed; it is where nothing is said.
    pub collect: Option<bool>,
    /// Addresses that may be asked although they are loopback or link-local ones.
    #[serde(default)]
    pub destinations: BTreeSet<IpAddr>,
    /// A recording that is replayed instead of asking anybody: a file of the server's machine.
    pub recording: Option<PathBuf>,
    /// The port at which `node_exporter` answers on its machines; not asked where it is absent.
    pub node_metrics: Option<u16>,
}
