//! The files of a run, and how they are written: whole or not at all.
//!
//! `DIR/TENANT/RUN/` holds `log` (later `log.zst`), `plan`, and for each stage `STAGE.process` (which processes),
//! `STAGE.events` (one JSON object a line) and `STAGE.ending`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use rezus_core::runs::Stage;
use rezus_core::runs::executor::{Ending, ExecutorError, RunId};
use serde::{Deserialize, Serialize};

use super::identity::Identity;

/// Which processes execute a stage of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessRecord {
    /// The boot that the processes belong to.
    pub(super) boot_id: String,
    /// Who watches; not known before it has begun.
    pub(super) supervisor: Option<Identity>,
    /// What it has started, which leads a process group.
    pub(super) child: Option<Identity>,
    /// Which of the job's steps that is.
    pub(super) step: usize,
    /// Where it works.
    pub(super) work_dir: PathBuf,
    /// How long it has after an interrupt.
    pub(super) grace_millis: u64,
}

/// The folder of a run.
#[derive(Clone, Debug)]
pub(super) struct RunFiles(PathBuf);

impl RunFiles {
    pub(super) fn new(dir: &Path, id: &RunId) -> Self {
        Self(dir.join(id.tenant.as_str()).join(id.run.as_str()))
    }

    /// The run's folder, by its path.
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn log(&self) -> PathBuf {
        self.0.join("log")
    }

    pub(super) fn sealed_log(&self) -> PathBuf {
        self.0.join("log.zst")
    }

    pub(super) fn plan(&self) -> PathBuf {
        self.0.join("plan")
    }

    pub(super) fn events(&self, stage: Stage) -> PathBuf {
        self.of_stage(stage, "events")
    }

    pub(super) fn process(&self, stage: Stage) -> PathBuf {
        self.of_stage(stage, "process")
    }

    pub(super) fn ending(&self, stage: Stage) -> PathBuf {
        self.of_stage(stage, "ending")
    }

    fn of_stage(&self, stage: Stage, what: &str) -> PathBuf {
        self.0.join(format!("{}.{what}", stage.as_str()))
    }

    /// Reads which processes execute a stage. `None` where it was not begun.
    pub(super) fn read_process(&self, stage: Stage) -> io::Result<Option<ProcessRecord>> {
        read_json(&self.process(stage))
    }

    pub(super) fn write_process(&self, stage: Stage, record: &ProcessRecord) -> io::Result<()> {
        write_whole(&self.process(stage), &serde_json::to_vec(record)?, None)
    }

    /// Reads how a stage ended. `None` where it has not.
    pub(super) fn read_ending(&self, stage: Stage) -> io::Result<Option<Ending>> {
        read_json(&self.ending(stage))
    }

    pub(super) fn write_ending(&self, stage: Stage, ending: &Ending) -> io::Result<()> {
        write_whole(&self.ending(stage), &serde_json::to_vec(ending)?, None)
    }
}

fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file that is there whole, or as it was before, after whatever happens; it is the owner's, else the
/// server's.
pub(super) fn write_whole(path: &Path, bytes: &[u8], owner: Option<(u32, u32)>) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    // A program may have put a link or a pipe there: what is opened is a file that was not there before.
    remove(&new)?;
    let flags = OFlag::O_NOFOLLOW.bits();
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(&new)?;
    file.write_all(bytes)?;
    if let Some((uid, gid)) = owner {
        fchown(&file, Some(uid), Some(gid))?;
    }
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder_of(path)
}

/// Makes sure that what was renamed or removed beside a file stays so.
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Opens a file for writing at its end.
pub(super) fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Makes a folder that is its owner's alone, and those it lies in.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a file; that there is none is as good.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The error of something that the system refused.
pub(super) fn system(what: &'static str) -> impl Fn(io::Error) -> ExecutorError {
    move |source| ExecutorError::System { what, source }
}

/// Does what waits for the disk where that holds nobody up.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ExecutorError> + Send + 'static,
) -> Result<T, ExecutorError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| system("work on files to its end")(io::Error::other(error)))?
}
