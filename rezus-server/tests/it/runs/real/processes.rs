//! The processes of a run, as the machine shows them.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// Its command line, with spaces between the words.
    pub(super) line: String,
    /// Its environment, with line feeds between the variables.
    pub(super) environment: String,
}

impl Process {
    fn read(path: &Path) -> Option<Self> {
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let text = |file: &str, between: &str| {
            let bytes = std::fs::read(path.join(file)).ok()?;
            Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').replace('\0', between))
        };
        Some(Self { pid, line: text("cmdline", " ")?, environment: text("environ", "\n")? })
    }

    /// Returns a process.
    pub(super) fn of(pid: u32) -> Self {
        Self::read(Path::new(&format!("/proc/{pid}"))).unwrap()
    }

    /// Kills it.
    pub(super) fn kill(&self) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
    }

    pub(super) fn is_supervisor(&self) -> bool {
        self.line.ends_with(" supervise")
    }

    pub(super) fn is_tool(&self) -> bool {
        self.line.split(' ').next().is_some_and(|program| program.ends_with("/terraform"))
    }

    /// What a variable of its environment is.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Returns all processes of a run that live.
pub(super) fn of_run(tenant: &str, run: &str) -> Vec<Process> {
    let mark = format!("{tenant}/{run}");
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Process::read(&entry.ok()?.path()));
    all.filter(|it| it.variable("REZUS_RUN") == Some(mark.as_str())).collect()
}
