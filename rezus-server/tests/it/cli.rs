//! The command line, by each of the ways it has to a server.

mod commands;
mod copies;
mod declared;
mod mappings;
mod usage;

use std::ffi::OsStr;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::server::PROGRAM;

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    code: Option<i32>,
    stdout: Vec<u8>,
    errors: String,
}

impl Ran {
    /// Fails unless the command was done; returns what it printed.
    #[track_caller]
    pub(crate) fn done(self) -> String {
        assert_eq!((self.code, self.errors.as_str()), (Some(0), ""));
        String::from_utf8(self.stdout).unwrap()
    }

    /// Fails unless the command was done and printed JSON; returns that.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        serde_json::from_str(&self.done()).unwrap()
    }

    /// Fails unless the command ended with this code, printed nothing, and said what was wrong.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, piece: &str) {
        assert_eq!(self.code, Some(code), "{}", self.errors);
        assert!(self.errors.contains(piece), "{piece} is not in: {}", self.errors);
        assert!(self.stdout.is_empty(), "{:?}", String::from_utf8_lossy(&self.stdout));
    }
}

/// Runs the program with these arguments, and an environment of these variables alone.
async fn run_with(arguments: &[impl AsRef<OsStr>], variables: &[(&str, &str)], input: &[u8]) -> Ran {
    use tokio::io::AsyncWriteExt as _;
    let mut command = tokio::process::Command::new(PROGRAM);
    command.args(arguments).env_clear().envs(variables.iter().copied()).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that does not read closes its end.
    drop(stdin.write_all(input).await);
    drop(stdin);
    let limit = std::time::Duration::from_mins(1);
    let ended = tokio::time::timeout(limit, child.wait_with_output()).await.expect("the command ends");
    let Output { status, stdout, stderr } = ended.unwrap();
    Ran { code: status.code(), stdout, errors: String::from_utf8(stderr).unwrap() }
}

/// Runs the program with these arguments.
pub(crate) async fn run(arguments: &[impl AsRef<OsStr>]) -> Ran {
    run_with(arguments, &[], b"").await
}
