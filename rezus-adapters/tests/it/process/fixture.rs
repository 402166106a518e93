//! An executor over folders of its own, and shell scripts that do as they are told.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use rezus_adapters::process::{ProcessConfig, ProcessExecutor};
use rezus_core::runs::executor::{Job, RunId, TofuExecutor};
use rezus_testkit::contract::executor::ExecutorFixture;
use rezus_testkit::fake::{Act, OnInterrupt, Script};
use tempfile::TempDir;

/// What shell scripts are played on.
pub(super) struct Stage {
    folder: TempDir,
    executor: ProcessExecutor,
    scripts: AtomicUsize,
}

impl Stage {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let executor = open(folder.path(), None);
        for name in ["gates", "scripts", "cwd"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, executor, scripts: AtomicUsize::new(0) }
    }

    /// Another executor over the same folders, as a server that was started again has it.
    pub(super) fn reopened(&self) -> ProcessExecutor {
        open(self.folder.path(), None)
    }

    /// Another executor over the same folders, whose programs run as somebody else.
    pub(super) fn running_as(&self, uid: u32, gid: u32) -> ProcessExecutor {
        open(self.folder.path(), Some((uid, gid)))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn process(&self) -> &ProcessExecutor {
        &self.executor
    }

    /// Where a run's files are.
    pub(super) fn run_folder(&self, id: &RunId) -> PathBuf {
        self.path().join("runs").join(id.tenant.as_str()).join(id.run.as_str())
    }

    /// Makes a job run these lines of shell.
    pub(super) fn shell(&self, mut job: Job, lines: &str) -> Job {
        let number = self.scripts.fetch_add(1, Ordering::Relaxed);
        let path = self.path().join("scripts").join(number.to_string());
        write_script(&path, lines);
        job.tool.path = path;
        job.work_dir = self.path().join("cwd");
        job
    }

    /// The shell line that waits for a gate.
    pub(super) fn wait(&self, gate: &str) -> String {
        format!("while [ ! -e {} ]; do /bin/sleep 0.02; done", self.gate(gate).display())
    }

    fn gate(&self, gate: &str) -> PathBuf {
        self.path().join("gates").join(gate)
    }
}

fn open(folder: &Path, run_as: Option<(u32, u32)>) -> ProcessExecutor {
    ProcessExecutor::new(ProcessConfig {
        dir: folder.join("runs"),
        work: folder.join("work"),
        supervisor: vec![env!("CARGO_BIN_EXE_rezus-supervisor").into()],
        run_as,
        plugin_cache: None,
    })
}

/// Writes a program in shell.
pub(super) fn write_script(path: &Path, lines: &str) {
    // A child of another thread that has a file open for writing keeps it from being executed: it must not be this
    // process that writes it.
    let mut writer = std::process::Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 700 \"$0\""])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let text = format!("#!/bin/sh\n{lines}\n");
    std::io::Write::write_all(&mut writer.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
}

#[async_trait]
impl ExecutorFixture for Stage {
    fn executor(&self) -> Arc<dyn TofuExecutor> {
        Arc::new(self.executor.clone())
    }

    fn play(&self, job: Job, script: &Script) -> Job {
        let mut lines = String::new();
        match &script.on_interrupt {
            OnInterrupt::Die => {}
            OnInterrupt::Ignore => lines.push_str("trap '' INT\n"),
            OnInterrupt::Exit { says, code } => {
                writeln!(lines, "on_interrupt() {{\n{}\nexit {code}\n}}\ntrap on_interrupt INT", print(says))
                    .unwrap();
            }
        }
        for act in &script.acts {
            let line = match act {
                Act::Say(bytes) => print(bytes),
                Act::Complain(bytes) => format!("{} >&2", print(bytes)),
                Act::Wait(gate) => self.wait(gate),
                Act::Exit(code) => format!("exit {code}"),
            };
            writeln!(lines, "{line}").unwrap();
        }
        self.shell(job, &lines)
    }

    async fn open_gate(&self, gate: &str) {
        std::fs::write(self.gate(gate), "").unwrap();
    }
}

/// The shell line that writes these bytes.
fn print(bytes: &[u8]) -> String {
    let octal = bytes.iter().fold(String::new(), |mut octal, byte| {
        write!(octal, "\\{byte:03o}").unwrap();
        octal
    });
    format!("printf '{octal}'")
}
