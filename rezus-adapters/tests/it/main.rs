//! The adapters under the laws of their ports.

#![expect(clippy::panic, clippy::unwrap_used, reason = "test code")]

mod history;
mod kubernetes;
mod node_metrics;
mod process;
mod recorded;
mod remote_write;
mod ring;
mod sqlite;
mod sqlite_file;
mod talos;
