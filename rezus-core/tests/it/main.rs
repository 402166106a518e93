//! What the core promises of whole documents: laws over generated ones, and the fixtures.

#![cfg(feature = "declared")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what fails here fails a test")]

mod backend;
mod cursor;
mod fixtures;
mod mapping;
#[cfg(feature = "observed")]
mod observed;
mod projection;
mod projection_fixtures;
mod projector;
#[cfg(feature = "promql")]
mod promql;
#[cfg(feature = "runs")]
mod runs;
