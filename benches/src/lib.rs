//! What the benchmarks share: rounds in which rivals take turns, the closing table, processes and their memory.
//!
//! A figure is promised as a ratio against a named rival, both measured in the same run: each round runs every one of
//! them once, so that whatever else the machine does meanwhile hits all alike.

mod contest;
mod machines;
mod process;
mod ready_made;
mod runs;
mod server;
mod state;
mod table;
mod wire;

use std::error::Error;

pub use contest::{Contest, percentile, timed};
pub use machines::{machines_state, servers_state};
pub use process::{answer_peak, ask_child, child_job, children, cpu_time, processor_time, program, vm_kib};
pub use ready_made::ReadyMade;
pub use runs::NewRun;
pub use server::{Client, Server, server_binary};
pub use state::{every, numbered};
pub use table::{Promise, Row, print, say, span};
pub use wire::{Asked, Dial, Lines, Protocol, Wire};

/// The result of what may fail for any reason: a benchmark then ends.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Tells whether each benchmark is only to be run once, over small states: as a test and not as a measurement.
///
/// As for criterion: `cargo bench` passes `--bench`, `cargo test` does not, and `--test` asks for it.
pub fn is_smoke() -> bool {
    let has = |wanted: &str| std::env::args().any(|argument| argument == wanted);
    has("--test") || !has("--bench")
}

/// Tells whether the benchmark is only asked what is in it, as test runners ask.
pub fn is_listing() -> bool {
    std::env::args().any(|argument| argument == "--list")
}

/// Returns `full` for a measurement, and `small` where it is only to be seen that all works.
pub fn size<T>(full: T, small: T) -> T {
    if is_smoke() { small } else { full }
}

/// Makes a directory that goes away when dropped, on the file system of the build's own files: no memory disk.
///
/// # Errors
///
/// When it cannot be made.
pub fn scratch(build: &str) -> Outcome<tempfile::TempDir> {
    std::fs::create_dir_all(build)?;
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(build)?)
}
