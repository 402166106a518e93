//! The server's configuration: one TOML file, overridden by `REZUS_SECTION__KEY` variables, read once.

mod collector;
mod limits;
mod quantity;
mod query;
mod runs;
mod series;
mod tenants;
mod tls;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rezus_core::declared::backend::Retention;
use rezus_core::declared::{Encryption, EncryptionPolicy};
use rezus_core::runs::TenantKey;
use serde::Deserialize;

pub use collector::CollectorConfig;
pub use limits::LimitsConfig;
pub use quantity::{ByteSize, Span};
pub use query::QueryConfig;
pub use runs::{RunAs, RunsConfig};
pub use series::{RemoteWriteConfig, SeriesConfig, SeriesSync};
pub use tenants::TenantConfig;
pub use tls::TlsConfig;

/// All settings, with their defaults.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where it listens and keeps its data.
    pub server: ServerConfig,
    /// The TLS listener's certificate.
    pub tls: TlsConfig,
    /// What clients are held to.
    pub limits: LimitsConfig,
    /// The state backend's limits.
    pub state: StateConfig,
    /// How long versions are kept.
    pub retention: RetentionConfig,
    /// What states are made into.
    pub projection: ProjectionConfig,
    /// Who is let in.
    pub auth: AuthConfig,
    /// How long it is kept who did what.
    pub audit: AuditConfig,
    /// Runs of tofu or terraform.
    pub runs: RunsConfig,
    /// What runs of these tenants are made with, whatever else was set.
    pub tenants: BTreeMap<TenantKey, TenantConfig>,
    /// How clusters are observed.
    pub collector: CollectorConfig,
    /// What is kept of that over time.
    pub series: SeriesConfig,
    /// What queries of series are held to.
    pub query: QueryConfig,
    /// What is logged, and how.
    pub log: LogConfig,
}

/// `[auth]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthConfig {
    /// Whether callers must prove who they are. Without that, whoever is on this machine may do everything, and no
    /// listener may be reachable from elsewhere. Default true.
    pub enabled: bool,
}

/// `[audit]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditConfig {
    /// How many days rows are kept. Default 365.
    pub keep_days: u32,
    /// How many rows are kept at most. Default 1,000,000.
    pub keep_rows: u64,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self { keep_days: 365, keep_rows: 1_000_000 }
    }
}

/// `[server]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Where all data is kept. Default `./rezus-data`.
    pub data_dir: PathBuf,
    /// The address of the plain listener: loopback only. Default `127.0.0.1:8080`.
    pub plain: SocketAddr,
    /// The address of the TLS listener, on loopback or not; port 0 picks a free one. Default `127.0.0.1:8443`.
    pub tls: SocketAddr,
    /// Whether there is no TLS listener. Default false.
    pub no_tls: bool,
    /// How long requests under way may take once the server was told to stop. Default `30s`.
    pub shutdown_grace: Span,
    /// How many connections a listener serves at a time; further ones wait. Fewer where the system's limit of open files
    /// is low, so that the data can always be opened. Default 4,096.
    pub max_connections: usize,
}

/// `[state]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StateConfig {
    /// The largest state that is accepted. Default `256MiB`.
    pub max_body: ByteSize,
    /// How many bytes of states may be in memory at a time; further ones wait unread. One body may always come in.
    /// Default `128MiB`.
    pub in_flight: ByteSize,
    /// How long a body waits for that before 503. Default `60s`.
    pub wait: Span,
    /// How long a body may pause before it is given up. Default `30s`.
    pub idle: Span,
    /// How much of a body must arrive in a second, on average and after as much as a pause; 0 for no minimum. A slower
    /// one is given up, so that nobody keeps others out by trickling. Default `64KiB`.
    pub min_rate: ByteSize,
    /// Whether a tenant is created by its first LOCK or POST of who may create tenants. Default true.
    pub create_on_write: bool,
    /// Whether states in clear are refused: `optional`, or `required` for envelopes of OpenTofu's state encryption. Of one
    /// tenant it can be set otherwise. Default `optional`.
    pub encryption: Encryption,
}

/// `[retention]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// How many of a tenant's newest versions are kept. Default 100.
    pub keep_last: usize,
    /// How many days every version is kept. Default 90.
    pub keep_days: u32,
    /// How many days snapshots of operations under way are kept. Default 7.
    pub keep_intermediate_days: u32,
    /// How often versions are swept. Default `1h`.
    pub sweep: Span,
}

/// `[projection]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectionConfig {
    /// A directory of mappings on top of the built-in ones. Default none.
    pub mappings: Option<PathBuf>,
    /// How often that directory is looked at for changes. Default `5s`.
    pub reload: Span,
}

/// `[log]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// A level (`error`, `warn`, `info`, `debug`, `trace`), or directives as `rezus_server=debug,info`. Default `info`.
    pub level: String,
    /// `text` or `json`. Default `text`.
    pub format: LogFormat,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("rezus-data"),
            plain: SocketAddr::from(([127, 0, 0, 1], 8080)),
            tls: SocketAddr::from(([127, 0, 0, 1], 8443)),
            no_tls: false,
            shutdown_grace: Span(Duration::from_secs(30)),
            max_connections: 4_096,
        }
    }
}

impl Default for StateConfig {
    fn default() -> Self {
        Self {
            max_body: ByteSize(256 << 20),
            in_flight: ByteSize(128 << 20),
            wait: Span(Duration::from_mins(1)),
            idle: Span(Duration::from_secs(30)),
            min_rate: ByteSize(64 << 10),
            create_on_write: true,
            encryption: Encryption::Optional,
        }
    }
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            keep_last: 100,
            keep_days: 90,
            keep_intermediate_days: 7,
            sweep: Span(Duration::from_hours(1)),
        }
    }
}

impl Default for ProjectionConfig {
    fn default() -> Self {
        Self { mappings: None, reload: Span(Duration::from_secs(5)) }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self { level: "info".to_owned(), format: LogFormat::Text }
    }
}

impl RetentionConfig {
    /// Returns the policy these settings describe.
    pub fn policy(&self) -> Retention {
        let days = |days: u32| Duration::from_hours(24) * days;
        Retention {
            keep_last: self.keep_last,
            keep_for: days(self.keep_days),
            keep_intermediate_for: days(self.keep_intermediate_days),
        }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("the configuration file {} is not TOML", path.display())]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A setting is unknown, or not of its kind.
    #[error("a setting of {origin} cannot be used")]
    Setting {
        /// The file, and variables where there are any.
        origin: String,
        /// Which setting, and what was expected.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The plain listener would be reachable from elsewhere.
    #[error(
        "the plain listener {0} is not on loopback: without TLS states and locks would be open to the network"
    )]
    PlainNotLoopback(SocketAddr),
    /// A certificate is given without its key, or the other way round.
    #[error("tls.certificate and tls.key are given together or not at all")]
    HalfACertificate,
    /// Programs would run as somebody who cannot get to where they work.
    #[error(
        "runs.run_as needs runs.work: a directory outside of the data directory, which that user must not be able to open; and runs.plugin_cache beside it"
    )]
    RunAsNeedsWork,
    /// Samples would be sent on that are not made.
    #[error("series.remote_write sends on what is kept: it needs series.enabled")]
    NothingToSendOn,
    /// What is coarser would be kept for a shorter time than what it is made of.
    #[error(
        "series.keep_raw_days must be 1 at least, keep_5m_days no less than it, and keep_1h_days no less than that"
    )]
    SeriesOutOfOrder,
    /// Everybody could do everything.
    #[error(
        "without authentication every listener must be on loopback, and {0} is not: leave out --no-auth (auth.enabled = false), or listen on loopback"
    )]
    OpenToAll(SocketAddr),
}

impl Config {
    /// Reads the file, where one is named, and the variables of `environment`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names file, setting and what was expected.
    pub fn load(
        file: Option<&Path>,
        environment: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let (mut table, mut origin) = match file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::File { path: path.to_owned(), source })?;
                let table = text.parse().map_err(|source| ConfigError::Syntax {
                    path: path.to_owned(),
                    source: Box::new(source),
                })?;
                (table, path.display().to_string())
            }
            None => (toml::Table::new(), "the configuration".to_owned()),
        };
        for (sections, key, value) in environment.filter_map(|(name, value)| variable(&name, value)) {
            origin = format!("{origin} with REZUS_ variables");
            let innermost = sections.into_iter().try_fold(&mut table, |table, section| {
                table.entry(section).or_insert_with(|| toml::Table::new().into()).as_table_mut()
            });
            if let Some(section) = innermost {
                section.insert(key, value);
            }
        }
        let config: Self =
            table.try_into().map_err(|source| ConfigError::Setting { origin, source: Box::new(source) })?;
        Ok(config)
    }

    /// Returns what is asked of whose states.
    pub fn encryption(&self) -> EncryptionPolicy {
        let fixed = self.tenants.iter().filter_map(|(tenant, set)| Some((tenant.0.clone(), set.encryption?)));
        EncryptionPolicy { default: self.state.encryption, fixed: fixed.collect() }
    }

    /// Checks what a single setting cannot tell.
    ///
    /// # Errors
    ///
    /// [`ConfigError::PlainNotLoopback`], [`ConfigError::OpenToAll`], [`ConfigError::HalfACertificate`],
    /// [`ConfigError::RunAsNeedsWork`], [`ConfigError::SeriesOutOfOrder`],
    /// [`ConfigError::NothingToSendOn`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let server = &self.server;
        if !server.plain.ip().is_loopback() {
            return Err(ConfigError::PlainNotLoopback(server.plain));
        }
        if !self.auth.enabled && !server.no_tls && !server.tls.ip().is_loopback() {
            return Err(ConfigError::OpenToAll(server.tls));
        }
        if self.runs.run_as.is_some() && (self.runs.work.is_none() || self.runs.plugin_cache.is_none()) {
            return Err(ConfigError::RunAsNeedsWork);
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return Err(ConfigError::HalfACertificate);
        }
        self.series.check()
    }
}

/// Reads `REZUS_SECTION__KEY` as a section, a key and a TOML value; what is no TOML value is a text. A section within
/// another is named after it.
fn variable(name: &str, value: String) -> Option<(Vec<String>, String, toml::Value)> {
    let (sections, key) = name.strip_prefix("REZUS_")?.rsplit_once("__")?;
    let value = match value.parse::<toml::Value>() {
        Ok(value @ (toml::Value::Boolean(_) | toml::Value::Integer(_))) => value,
        Ok(_) | Err(_) => toml::Value::String(value),
    };
    let sections = sections.split("__").map(str::to_ascii_lowercase).collect();
    Some((sections, key.to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    fn load(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rezus.toml");
        std::fs::write(&path, text).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::load(Some(&path), variables)
    }

    #[test]
    fn variables_override_the_file_and_the_file_overrides_defaults() {
        let text = "[state]\nmax_body = \"64MiB\"\nwait = \"5s\"\n[server]\nplain = \"127.0.0.1:9000\"\n";
        let variables = [
            ("REZUS_STATE__WAIT", "2m"),
            ("REZUS_SERVER__NO_TLS", "true"),
            ("REZUS_RETENTION__KEEP_LAST", "3"),
            ("REZUS_SERVER__DATA_DIR", "/srv/rezus"),
            ("REZUS_TLS__NAMES", "rezus.example, 192.0.2.7"),
            ("REZUS_SERIES__REMOTE_WRITE__URL", "http://127.0.0.1:9090/api/v1/write"),
            ("HOME", "/nowhere"),
        ];
        let config = load(text, &variables).unwrap();
        assert_eq!(config.state.max_body, ByteSize(64 << 20));
        assert_eq!(config.state.wait, Span(Duration::from_mins(2)));
        assert!(config.server.no_tls);
        assert_eq!(config.retention.keep_last, 3);
        assert_eq!(config.server.data_dir, Path::new("/srv/rezus"));
        assert_eq!(config.state.in_flight, ByteSize(128 << 20));
        let remote = config.series.remote_write.unwrap();
        assert_eq!(
            (remote.url.as_str(), remote.queue),
            ("http://127.0.0.1:9090/api/v1/write", ByteSize(256 << 20))
        );
        let names: Vec<String> = config.tls.names.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["rezus.example", "192.0.2.7"]);
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (text, named) in [
            ("[state]\nmax_size = 3\n", "max_size"),
            ("[state]\nmax_body = \"many\"\n", "many"),
            ("[server]\nplain = \"nowhere\"\n", "plain"),
            ("[log]\nformat = \"xml\"\n", "xml"),
            ("[tls]\nnames = [\"no name\"]\n", "no name"),
            ("[runs]\nslot = 1\n", "slot"),
            ("[runs]\nrun_as = \"root\"\n", "run_as"),
            ("[runs]\nenvironment = [\"A=B\"]\n", "environment"),
            ("[series]\nretention = 1\n", "retention"),
            ("[series.remote_write]\nqueue = \"1MiB\"\n", "url"),
            ("[series.remote_write]\nurl = \"http://x/\"\npassword = \"x\"\n", "password"),
            ("[tenants.Prod]\ndir = \"/c\"\n", "lower-case"),
            ("[tenants.prod]\n", "dir"),
            ("[tenants.prod]\ndir = \"c\"\n", "tenants.prod.dir"),
            ("[tenants.prod]\ndir = \"/c\"\ndrift = \"often\"\n", "tenants.prod.drift"),
            ("[tenants.prod]\ndir = \"/c\"\ngrace = \"0s\"\n", "tenants.prod.grace"),
            ("[tenants.prod]\ndir = \"/c\"\nsecrets = 1\n", "secrets"),
            (
                "[tenants.prod]\ndir = \"/c\"\n[tenants.prod.variables]\n\"a b\" = \"1\"\n",
                "tenants.prod.variables",
            ),
            (
                "[tenants.prod]\ndir = \"/c\"\n[tenants.prod.secret_variables]\na = \"plain\"\n",
                "tenants.prod.secret_variables",
            ),
            (
                "[tenants.prod]\ndir = \"/c\"\n[tenants.prod.secret_environment]\nTF_HTTP_PASSWORD = { file = \"/x\" }\n",
                "tenants.prod.secret_environment",
            ),
        ] {
            let error = load(text, &[]).unwrap_err();
            let source = error.source().unwrap().to_string();
            assert!(source.contains(named), "{source}");
        }
        assert!(matches!(load("state = [", &[]), Err(ConfigError::Syntax { .. })));
    }

    #[test]
    fn the_plain_listener_is_for_this_machine_alone() {
        let config = load("[server]\nplain = \"0.0.0.0:8080\"\n", &[]).unwrap();
        assert!(matches!(config.check(), Err(ConfigError::PlainNotLoopback(_))));
        let config = load("[server]\nplain = \"[::1]:8080\"\n", &[]).unwrap();
        assert!(config.check().is_ok());
    }

    #[test]
    fn a_certificate_comes_with_its_key() {
        for half in ["certificate", "key"] {
            let config = load(&format!("[tls]\n{half} = \"server.pem\"\n"), &[]).unwrap();
            assert!(matches!(config.check(), Err(ConfigError::HalfACertificate)), "{half}");
        }
    }

    #[test]
    fn a_server_without_authentication_is_for_this_machine_alone() {
        let open = "[auth]\nenabled = false\n[server]\ntls = \"0.0.0.0:8443\"\n";
        assert!(matches!(load(open, &[]).unwrap().check(), Err(ConfigError::OpenToAll(_))));
        assert!(load(&format!("{open}no_tls = true\n"), &[]).unwrap().check().is_ok());
        assert!(load(open, &[("REZUS_AUTH__ENABLED", "true")]).unwrap().check().is_ok());
        assert!(load("[auth]\nenabled = false\n", &[]).unwrap().check().is_ok());
    }
}
