//! Tools of the machine that tests need, and how a test says that one is missing.

use std::io::Write as _;
use std::path::PathBuf;

/// Finds a program on the path.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Says loudly what was not tried because a tool is missing; where everything must be tried, fails.
pub(crate) fn missing(tool: &str, untried: &str) {
    say(&format!("NOT TRIED: {untried}: {tool} is not installed"));
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{tool} is missing: {untried} must be tried");
}

/// Whether long drills run in full (`DRILLS=full`) or in their short form.
pub(crate) fn drills_are_full() -> bool {
    std::env::var("DRILLS").as_deref() == Ok("full")
}

/// Says something past the test harness, which keeps the output of tests that pass to itself.
pub(crate) fn say(text: &str) {
    // A test is no worse for not being heard.
    drop(writeln!(std::io::stderr(), "{text}"));
}
