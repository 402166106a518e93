//! A tool of somebody else's that reads a state file through the core alone: no server, no runtime, no I/O but its own.
//!
//! ```text
//! cargo run -p rezus-examples --bin read_state -- examples/backend/demo.tfstate
//! ```
//!
//! Prints each object's address, where its bytes are, and the object with what is secret masked.

use std::io::{self, Write as _};
use std::process::ExitCode;

use rezus_core::declared::document::{self, Document};
use rezus_core::declared::masked;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        return fail("name a state file");
    };
    let body = match std::fs::read(&path) {
        Ok(body) => body,
        Err(error) => return fail(&error.to_string()),
    };
    match document::read(&body) {
        Ok(Document::Plain(state)) => match print(&state, &body) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error.to_string()),
        },
        Ok(Document::Encrypted(envelope)) => {
            fail(&format!("encrypted, serial {:?}: only tofu with its key can read it", envelope.serial))
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn print(state: &document::PlainState, body: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "serial {}, lineage {}", state.serial, state.lineage)?;
    for row in &state.rows {
        let (start, end) = (usize::try_from(row.span.start), usize::try_from(row.span.end));
        let (Ok(start), Ok(end)) = (start, end) else {
            continue;
        };
        let object = masked::show(&body[start..end], &row.masked).map_err(io::Error::other)?;
        writeln!(out, "{} at {} (bytes {start}..{end})\n  {object}", row.address, row.json_path())?;
    }
    Ok(())
}

fn fail(message: &str) -> ExitCode {
    // Nobody can be told where printing fails.
    drop(writeln!(io::stderr(), "error: {message}"));
    ExitCode::FAILURE
}
