//! The supervisor as a program of its own, for whoever embeds rezus in a binary without a sub-command for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    rezus_adapters::process::supervise()
}
