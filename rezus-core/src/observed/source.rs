//! Where news comes from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What of a cluster is read: each has a schedule of its own, and fails by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The cluster's Kubernetes API.
    Kubernetes,
    /// The Talos API of its machines.
    Talos,
    /// `node_exporter` on its machines.
    NodeMetrics,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kubernetes, Self::Talos, Self::NodeMetrics];

    /// Its name, as the API and the metrics have it: `kubernetes`, `talos` or `node-metrics`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Talos => "talos",
            Self::NodeMetrics => "node-metrics",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
