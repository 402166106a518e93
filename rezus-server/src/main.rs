//! The `rezus-server` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    rezus_server::cli::run(std::env::args_os(), std::env::vars())
}
