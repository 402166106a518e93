//! Ends what a supervisor that is gone has left running.

use std::time::Duration;

use nix::sys::signal::Signal;
use rezus_core::runs::Stage;
use rezus_core::runs::executor::{Ending, Stopped};
use tokio::time::Instant;

use super::files::{ProcessRecord, RunFiles, blocking};
use super::identity::{Identity, Stat, marked};
use super::watch::{is_of_this_boot, mark_of, unseen};

/// How often it is looked whether something still runs.
const LOOK: Duration = Duration::from_millis(50);

/// How long after SIGKILL something that still runs hangs in the kernel.
const KILLED: Duration = Duration::from_secs(10);

/// Interrupts what still runs of a job without a supervisor, kills it after its grace, and writes down that nobody saw
/// its end.
pub(super) async fn end_leftovers(files: &RunFiles, stage: Stage, stopped: Option<Stopped>) -> Ending {
    let record = {
        let files = files.clone();
        blocking(move || Ok(files.read_process(stage).ok().flatten())).await.ok().flatten()
    };
    let mut killed = false;
    // After a boot, nothing runs that ran before.
    if let Some(record) = record.as_ref().filter(|record| is_of_this_boot(record)) {
        let mark = mark_of(files);
        send(&mark, record, Some(Signal::SIGINT)).await;
        let grace = Duration::from_millis(record.grace_millis);
        killed = !is_over_within(&mark, record, None, grace, Left::program).await;
        // What a program leaves running is not waited for.
        is_over_within(&mark, record, Some(Signal::SIGKILL), KILLED, Left::anything).await;
    }
    let ending = unseen(record.map_or(0, |record| record.step), stopped, killed);
    let files = files.clone();
    // Where that cannot be written, the next one who looks finds the same.
    drop(blocking(move || Ok(files.write_ending(stage, &ending).ok())).await);
    ending
}

/// What runs of a job.
#[derive(Clone, Copy)]
struct Left {
    /// The program, where it is known.
    leader: Option<bool>,
    /// Others that bear the mark.
    others: bool,
}

impl Left {
    /// The program runs. Where it is not known which one it was, any may be it.
    fn program(self) -> bool {
        self.leader.unwrap_or(self.others)
    }

    fn anything(self) -> bool {
        self.leader == Some(true) || self.others
    }
}

/// Waits until something does not run any more, and sends a signal to all that does at every look.
async fn is_over_within(
    mark: &str,
    record: &ProcessRecord,
    signal: Option<Signal>,
    time: Duration,
    runs: fn(Left) -> bool,
) -> bool {
    let until = Instant::now() + time;
    loop {
        if !runs(send(mark, record, signal).await) {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        tokio::time::sleep_until(until.min(Instant::now() + LOOK)).await;
    }
}

/// Sends a signal to all processes of a run, and tells which there are: the child's group, and those that bear the mark
/// and have left it.
async fn send(mark: &str, record: &ProcessRecord, signal: Option<Signal>) -> Left {
    let (mark, child) = (mark.to_owned(), record.child);
    let work = move || {
        let leader = child.filter(|child| child.is_alive());
        let is_outside = |it: &Identity| {
            leader.is_none_or(|leader| Stat::read(it.pid).is_some_and(|stat| stat.group != leader.pid))
        };
        let others: Vec<Identity> = marked(&mark).into_iter().filter(is_outside).collect();
        if let Some(signal) = signal {
            if let Some(leader) = leader {
                leader.signal_group(signal);
            }
            for process in &others {
                process.signal(signal);
            }
        }
        Ok(Left { leader: child.map(|_| leader.is_some()), others: !others.is_empty() })
    };
    blocking(work).await.unwrap_or(Left { leader: None, others: false })
}
