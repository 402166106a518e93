//! `[query]`: how much one query of series, or all of them, can have.

use std::time::Duration;

use serde::Deserialize;

use super::Span;

/// `[query]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueryConfig {
    /// How many samples a query may read, and how many values it may come to; one that takes more is refused. Each takes 16
    /// bytes of memory. Default 5,000,000.
    pub max_samples: usize,
    /// How many series a request for labels may go through; one that goes through more is refused. Default 500,000.
    pub max_series: usize,
    /// How long a query may take, its waiting for a place included. Default `30s`.
    pub timeout: Span,
    /// How many queries are evaluated at a time; further ones wait. Default 4.
    pub concurrent: usize,
}

impl Default for QueryConfig {
    fn default() -> Self {
        Self {
            max_samples: 5_000_000,
            max_series: 500_000,
            timeout: Span(Duration::from_secs(30)),
            concurrent: 4,
        }
    }
}
