//! `[runs]`: how tofu or terraform is run.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{ByteSize, Span};
use crate::workspaces::names;

/// `[runs]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunsConfig {
    /// Whether there are runs. Default true.
    pub enabled: bool,
    /// Whether there are runs where nobody has to prove who they are: whoever is on this machine can then have any
    /// program run as the server. Default false.
    pub allow_without_auth: bool,
    /// How many tenants' runs are executed at a time. Default 4.
    pub slots: usize,
    /// How many encrypted states are deciphered at a time: each takes a core for a second. Default 1.
    pub pull_slots: usize,
    /// The program. Default the first of `tofu` and `terraform` on the server's path.
    pub binary: Option<PathBuf>,
    /// Where providers are kept that were downloaded. Default a folder of the data directory.
    pub plugin_cache: Option<PathBuf>,
    /// Where programs work. Default a folder of the data directory; with `run_as` it has to be named, since that user must
    /// not be able to open the data directory.
    pub work: Option<PathBuf>,
    /// The user and group that the program runs as, as numbers: `uid:gid`. Default those of the server.
    pub run_as: Option<RunAs>,
    /// How long a run's log may get; what comes after that is counted and left out. Default `1GiB`.
    pub log_limit: ByteSize,
    /// How many of a tenant's newest runs are kept. Default 200.
    pub keep_last: usize,
    /// How many days every run is kept. Default 90.
    pub keep_days: u32,
    /// How long a run waits for others to join it before it begins. Default `0s`.
    pub debounce: Span,
    /// The longest configuration that may be uploaded. Default `32MiB`.
    pub max_configuration: ByteSize,
    /// Variables of the server's environment that the program sees: a list, or a text with commas between them. Default
    /// those by which it finds programs, files, proxies and authorities.
    #[serde(deserialize_with = "environment")]
    pub environment: BTreeSet<String>,
}

/// What the program needs to work at all; credentials are given by name.
const ENVIRONMENT: [&str; 18] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

impl Default for RunsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            allow_without_auth: false,
            slots: 4,
            pull_slots: 1,
            binary: None,
            plugin_cache: None,
            work: None,
            run_as: None,
            log_limit: ByteSize(1 << 30),
            keep_last: 200,
            keep_days: 90,
            debounce: Span(Duration::ZERO),
            max_configuration: ByteSize(32 << 20),
            environment: ENVIRONMENT.map(str::to_owned).into(),
        }
    }
}

/// A user and a group by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct RunAs {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

impl FromStr for RunAs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ids = text.split_once(':').and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
        let (uid, gid) = ids.ok_or_else(|| {
            format!("{text:?} is no user and group: write two numbers, as run_as = \"1001:1001\"")
        })?;
        Ok(Self { uid, gid })
    }
}

impl TryFrom<String> for RunAs {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// `REZUS_` variables have no lists.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    List(BTreeSet<String>),
    Text(String),
}

pub(super) fn environment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<String>, D::Error> {
    let words = match Words::deserialize(deserializer)? {
        Words::List(words) => words,
        Words::Text(text) => {
            let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        }
    };
    words.iter().try_for_each(|name| names::check_set(name)).map_err(D::Error::custom)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_environment_are_a_list_or_a_text() {
        for text in ["environment = [\"A\", \"B\"]", "environment = \"A, B\""] {
            let config: RunsConfig = toml::from_str(text).unwrap();
            assert_eq!(config.environment, BTreeSet::from(["A".to_owned(), "B".to_owned()]), "{text}");
        }
        let config: RunsConfig = toml::from_str("run_as = \"1001:100\"").unwrap();
        assert_eq!(config.run_as, Some(RunAs { uid: 1001, gid: 100 }));
    }
}
