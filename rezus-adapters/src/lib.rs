//! The adapters of rezus: what connects the ports of `rezus-core` to the outside.
//!
//! | module | feature | implements |
//! | --- | --- | --- |
//! | [`clock`] | always | `Clock`, by the machine's clock |
//! | `sqlite` | `sqlite` | `StateStore`, `IndexStore`, `HistoryStore` and `AccountStore`, in one SQLite file |

pub mod clock;
#[cfg(feature = "sqlite")]
pub mod sqlite;
