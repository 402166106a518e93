//! The adapters of rezus: what connects the ports of `rezus-core` to the outside.
//!
//! | module | feature | implements |
//! | --- | --- | --- |
//! | [`clock`] | always | `Clock`, by the machine's clock |
//! | `kubernetes` | `kubernetes` | `ClusterScraper`, by the Kubernetes API of clusters |
//! | `process` | `process` | `TofuExecutor`, by child processes (Linux) |
//! | `recorded` | `recorded` | `ClusterScraper`, by recordings |
//! | `sqlite` | `sqlite` | `StateStore`, `IndexStore`, `HistoryStore` and `AccountStore`, in one SQLite file |

pub mod clock;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
#[cfg(feature = "process")]
pub mod process;
#[cfg(feature = "recorded")]
pub mod recorded;
#[cfg(feature = "sqlite")]
pub mod sqlite;
