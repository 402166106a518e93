//! Commands whose output is wanted whole: in memory only, and gone when nobody waits for them any more.

use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rezus_core::runs::SecretText;
use rezus_core::runs::executor::{Answer, ExecutorError};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use zeroize::Zeroizing;

use super::files::system;

/// So much of standard error is kept.
const ERRORS: usize = 64 << 10;

/// Runs a command, which leads a process group, to its end.
pub(super) async fn run(command: Command, timeout: Duration, limit: usize) -> Result<Answer, ExecutorError> {
    let refused = system("run a program");
    let mut command = tokio::process::Command::from(command);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().map_err(&refused)?;
    let mut group = Group(child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw));
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(refused(io::Error::other("it has no pipes")));
    };
    let work = async {
        let (stdout, stderr) = tokio::try_join!(read_all(stdout, limit), read_beginning(stderr))?;
        let status = child.wait().await.map_err(&refused)?;
        group.0 = None;
        let stderr = SecretText::new(String::from_utf8_lossy(&stderr).into_owned());
        Ok(Answer { code: status.code(), stdout, stderr })
    };
    tokio::time::timeout(timeout, work).await.unwrap_or(Err(ExecutorError::TimedOut))
}

/// A process group that is killed when it is dropped. Its leader was not waited for: the number is nobody else's.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

async fn read_all(
    mut from: impl AsyncRead + Unpin,
    limit: usize,
) -> Result<Zeroizing<Vec<u8>>, ExecutorError> {
    let mut all = Zeroizing::new(Vec::new());
    let mut piece = Zeroizing::new(vec![0; 64 << 10]);
    loop {
        let count = from.read(&mut piece).await.map_err(system("read what a program says"))?;
        if count == 0 {
            return Ok(all);
        }
        if all.len() + count > limit {
            return Err(ExecutorError::TooLong(limit));
        }
        if all.len() + count > all.capacity() {
            // By hand, for the smaller one is overwritten when it is given back.
            let mut larger = Zeroizing::new(Vec::with_capacity((all.len() + count) * 2));
            larger.extend_from_slice(&all);
            all = larger;
        }
        all.extend_from_slice(&piece[..count]);
    }
}

async fn read_beginning(mut from: impl AsyncRead + Unpin) -> Result<Zeroizing<Vec<u8>>, ExecutorError> {
    let mut beginning = Zeroizing::new(Vec::with_capacity(ERRORS));
    let mut piece = Zeroizing::new(vec![0; 16 << 10]);
    loop {
        let count = from.read(&mut piece).await.map_err(system("read what a program says"))?;
        if count == 0 {
            return Ok(beginning);
        }
        let kept = count.min(ERRORS - beginning.len());
        beginning.extend_from_slice(&piece[..kept]);
    }
}
