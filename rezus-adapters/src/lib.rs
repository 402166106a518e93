//! The adapters of rezus: what connects the ports of `rezus-core` to the outside.
//!
//! | module | feature | implements |
//! | --- | --- | --- |
//! | [`clock`] | always | `Clock`, by the machine's clock |
//! | `history` | `history` | `TimeSeries`, in SQLite files of a directory |
//! | `kubernetes` | `kubernetes` | `ClusterScraper`, by the Kubernetes API of clusters |
//! | `node_metrics` | `node-metrics` | `ClusterScraper`, by `node_exporter` on a cluster's machines |
//! | `process` | `process` | `TofuExecutor`, by child processes (Linux) |
//! | `recorded` | `recorded` | `ClusterScraper`, by recordings |
//! | `remote_write` | `remote-write` | `Forwarder`, by Prometheus' remote write |
//! | `ring` | `ring` | `TimeSeries`, in memory |
//! | `sqlite` | `sqlite` | `StateStore`, `IndexStore`, `HistoryStore` and `AccountStore`, in one SQLite file |
//! | `talos` | `talos` | `ClusterScraper`, by the Talos API of a cluster's machines |

pub mod clock;
#[cfg(any(feature = "history", feature = "sqlite"))]
mod damage;
#[cfg(feature = "history")]
pub mod history;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "node-metrics")]
pub mod node_metrics;
#[cfg(feature = "process")]
pub mod process;
#[cfg(any(feature = "node-metrics", feature = "talos"))]
mod reach;
#[cfg(feature = "recorded")]
pub mod recorded;
#[cfg(feature = "remote-write")]
pub mod remote_write;
#[cfg(feature = "ring")]
pub mod ring;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "talos")]
pub mod talos;
#[cfg(any(feature = "node-metrics", feature = "remote-write", feature = "talos"))]
mod text;
