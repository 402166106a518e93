//! `[collector]`: how clusters are observed.

use std::time::Duration;

use serde::Deserialize;

use super::Span;

/// `[collector]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CollectorConfig {
    /// Whether clusters are observed. Default true.
    pub enabled: bool,
    /// How often a cluster's Kubernetes API is read; nodes and pods are watched beside that. Default `30s`.
    pub kubernetes: Span,
    /// How often the Talos API of a cluster's control planes is read; workers are read by turns, each at least every five
    /// minutes where there is time. Default `60s`.
    pub talos: Span,
    /// How often `node_exporter` is read, of tenants for which that is set. Default `60s`.
    pub node_metrics: Span,
    /// How many sources are read at a time, of all tenants. Default 64.
    pub parallel: usize,
}

impl Default for CollectorConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            kubernetes: Span(Duration::from_secs(30)),
            talos: Span(Duration::from_mins(1)),
            node_metrics: Span(Duration::from_mins(1)),
            parallel: 64,
        }
    }
}
