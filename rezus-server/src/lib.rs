//! The server of rezus: routes, configuration, the command line, and the place where all of it is put together.
//!
//! As a library it gives [`compose::router`] to tests and to programs that want the state backend in their own
//! process.

pub mod api;
pub mod auth;
pub mod cli;
pub mod collector;
pub mod compose;
pub mod config;
pub mod data_dir;
pub mod error;
pub mod kube;
pub mod mapping_files;
pub mod memory;
pub mod peer;
pub mod prometheus;
pub mod pulls;
pub mod runs;
pub mod samples;
pub mod secrets;
pub mod serve;
pub mod state_backend;
pub mod sweep;
pub mod telemetry;
pub mod tls;
pub mod workspaces;
