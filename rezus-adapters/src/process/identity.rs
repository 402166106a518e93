//! Which process is which: a number is given again and again, so a process is known by its number, the moment it was
//! started, and the boot of the machine.

use std::fs;
use std::io;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// The variable that marks every process of a run.
pub(super) const MARK: &str = "REZUS_RUN";

/// A process of this boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    /// Its number.
    pub(super) pid: i32,
    /// When it was started, in ticks since the boot: field 22 of `/proc/PID/stat`.
    pub(super) start: u64,
}

impl Identity {
    /// The process that has this number now.
    pub(super) fn of(pid: i32) -> io::Result<Self> {
        let stat = Stat::read(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { pid, start: stat.start })
    }

    /// Tells whether it runs: one that has ended and was not waited for does not.
    pub(super) fn is_alive(self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.start == self.start && !stat.has_ended)
    }

    /// Sends a signal to it, if it is still the same.
    pub(super) fn signal(self, signal: Signal) {
        if self.is_alive() {
            // It may end at any moment.
            let _ = kill(Pid::from_raw(self.pid), signal);
        }
    }

    /// Sends a signal to the process group that it leads, if it is still the same.
    pub(super) fn signal_group(self, signal: Signal) {
        if self.is_alive() {
            let _ = killpg(Pid::from_raw(self.pid), signal);
        }
    }
}

/// What `/proc/PID/stat` says.
pub(super) struct Stat {
    /// Its parent's number.
    pub(super) parent: i32,
    /// Its process group.
    pub(super) group: i32,
    /// See [`Identity::start`].
    pub(super) start: u64,
    /// It has ended, and nobody has waited for it yet.
    pub(super) has_ended: bool,
}

impl Stat {
    pub(super) fn read(pid: i32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The program's name comes second, in parentheses, and may hold anything.
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some(Self { parent, group, start, has_ended })
    }
}

/// The numbers of all processes.
pub(super) fn all() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The living processes of a run, wherever they have gone: what they were started with says it.
pub(super) fn marked(mark: &str) -> Vec<Identity> {
    let variable = format!("{MARK}={mark}");
    let is_marked = |pid: i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    };
    all()
        .into_iter()
        .filter(|pid| is_marked(*pid))
        .filter_map(|pid| Identity::of(pid).ok())
        .filter(|it| it.is_alive())
        .collect()
}

/// Which boot of the machine this is.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let own = Identity::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(own.is_alive());
        assert!(!Identity { start: own.start + 1, ..own }.is_alive());
        // Nothing is sent to one that only has the same number: this test would not live on.
        Identity { start: own.start + 1, ..own }.signal(Signal::SIGKILL);
        Identity { start: own.start + 1, ..own }.signal_group(Signal::SIGKILL);
        assert!(all().contains(&own.pid));
        assert!(marked("none/such").is_empty());
        assert_eq!(boot_id().unwrap().len(), 36);
    }
}
