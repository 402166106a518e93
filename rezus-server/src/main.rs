//! The `rezus-server` command.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Gives back what large states took for a moment: see [`rezus_server::memory`].
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    rezus_server::cli::run(std::env::args_os(), std::env::vars())
}
