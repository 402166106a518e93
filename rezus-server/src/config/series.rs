//! `[series]`: the samples that are kept of what is observed, and where else they are sent.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::{ByteSize, ConfigError, Span};

/// `[series]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeriesConfig {
    /// Whether samples are kept. Default true.
    pub enabled: bool,
    /// For how long samples are in memory, for quick answers. Default `2h`.
    pub hot: Span,
    /// How many days samples are kept as they were taken. Default 7.
    pub keep_raw_days: u32,
    /// How many days what each five minutes came to is kept. Default 60.
    pub keep_5m_days: u32,
    /// How many days what each hour came to is kept. Default 730.
    pub keep_1h_days: u32,
    /// How many bytes all of it may take on disk; beyond that the oldest goes. Default `10GiB`.
    pub max_bytes: ByteSize,
    /// How many series may be live at a time, of all tenants; samples of further ones are dropped. Default 200,000.
    pub max_series: usize,
    /// The same of any one tenant. Default 100,000.
    pub max_series_per_tenant: usize,
    /// From what samples are safe once they are kept: `process`, the end of the process; or `power`, the loss of power too, for
    /// which the disk is waited for once a second. Default `process`.
    pub sync: SeriesSync,
    /// Where samples are sent on to, if anywhere.
    pub remote_write: Option<RemoteWriteConfig>,
}

/// From what samples are safe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeriesSync {
    /// The end of the process.
    #[default]
    Process,
    /// The loss of power.
    Power,
}

/// `[series.remote_write]`: a receiver of Prometheus' remote write, version 1.0.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteWriteConfig {
    /// Its URL, as `https://prometheus.example/api/v1/write`; without a user.
    pub url: String,
    /// A file that holds the bearer token.
    pub bearer_token_file: Option<PathBuf>,
    /// A file that holds `user:password`.
    pub basic_auth_file: Option<PathBuf>,
    /// A PEM file with the authorities by which it is believed. Default the system's.
    pub ca_file: Option<PathBuf>,
    /// How many bytes of samples wait on disk at most while it takes none; beyond that the oldest are dropped. Default
    /// `256MiB`.
    #[serde(default = "queue")]
    pub queue: ByteSize,
}

const fn queue() -> ByteSize {
    ByteSize(256 << 20)
}

impl Default for SeriesConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            hot: Span(Duration::from_hours(2)),
            keep_raw_days: 7,
            keep_5m_days: 60,
            keep_1h_days: 730,
            max_bytes: ByteSize(10 << 30),
            max_series: 200_000,
            max_series_per_tenant: 100_000,
            sync: SeriesSync::Process,
            remote_write: None,
        }
    }
}

impl SeriesConfig {
    /// Checks what a single setting cannot tell.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.keep_raw_days == 0
            || self.keep_5m_days < self.keep_raw_days
            || self.keep_1h_days < self.keep_5m_days
        {
            return Err(ConfigError::SeriesOutOfOrder);
        }
        if self.remote_write.is_some() && !self.enabled {
            return Err(ConfigError::NothingToSendOn);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeping(raw: u32, fine: u32, coarse: u32) -> SeriesConfig {
        SeriesConfig {
            keep_raw_days: raw,
            keep_5m_days: fine,
            keep_1h_days: coarse,
            ..SeriesConfig::default()
        }
    }

    #[test]
    fn what_is_coarser_is_kept_no_shorter() {
        for [raw, fine, coarse] in [[0, 60, 730], [7, 6, 730], [7, 60, 59]] {
            assert!(matches!(keeping(raw, fine, coarse).check(), Err(ConfigError::SeriesOutOfOrder)));
        }
        assert!(keeping(60, 60, 60).check().is_ok() && SeriesConfig::default().check().is_ok());
    }

    #[test]
    fn what_is_not_kept_is_not_sent_on() {
        let remote = RemoteWriteConfig {
            url: "http://127.0.0.1/".to_owned(),
            bearer_token_file: None,
            basic_auth_file: None,
            ca_file: None,
            queue: queue(),
        };
        let config = SeriesConfig { remote_write: Some(remote), ..SeriesConfig::default() };
        assert!(config.check().is_ok());
        let off = SeriesConfig { enabled: false, ..config };
        assert!(matches!(off.check(), Err(ConfigError::NothingToSendOn)));
    }
}
