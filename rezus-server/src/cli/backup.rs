//! `backup` and `restore`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use rezus_adapters::sqlite::{self, Depth};

use super::{CliError, progress_bar};
use crate::compose::StartError;
use crate::data_dir::{DataDir, DataDirError};

/// Copy all data to a file, while the server runs.
#[derive(Debug, Args)]
pub(super) struct Backup {
    /// The file to make; there must be none yet. It holds secrets, like the states in it: keep it as safe.
    file: PathBuf,
    /// The data directory.
    #[arg(long, value_name = "DIR", env = "REZUS_SERVER__DATA_DIR", default_value = "rezus-data")]
    data_dir: PathBuf,
}

/// Bring the data of a backup back, while no server runs.
#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup.
    file: PathBuf,
    /// The data directory; made if it is not there.
    #[arg(long, value_name = "DIR", env = "REZUS_SERVER__DATA_DIR", default_value = "rezus-data")]
    data_dir: PathBuf,
    /// Put aside the data that is there, as rezus.db.before-restore.
    #[arg(long)]
    force: bool,
}

impl Backup {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let data_dir = DataDir::new(&self.data_dir);
        let database = data_dir.database();
        if !database.exists() {
            return Err(StartError::from(DataDirError::Absent(self.data_dir.clone())).into());
        }
        copy(&database, &self.file)?;
        let size = std::fs::metadata(&self.file).map_or(0, |file| file.len());
        writeln!(out, "{}: {} copied", self.file.display(), crate::config::ByteSize(size))?;
        Ok(())
    }
}

impl Restore {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        sqlite::check(&self.file, Depth::Whole).map_err(StartError::from)?;
        let data_dir = DataDir::new(&self.data_dir);
        data_dir.create().map_err(StartError::from)?;
        let lock = data_dir.lock().map_err(StartError::from)?;
        let database = data_dir.database();
        if database.exists() {
            if !self.force {
                return Err(CliError::Usage(format!(
                    "{} has data already: add --force to put it aside, or name another --data-dir",
                    self.data_dir.display()
                )));
            }
            put_aside(&database)?;
        }
        copy(&self.file, &database)?;
        drop(lock);
        writeln!(out, "{}: restored from {}", self.data_dir.display(), self.file.display())?;
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), StartError> {
    let progress = progress_bar(0);
    sqlite::backup(from, to, |done, all| {
        progress.set_length(all);
        progress.set_position(done);
    })?;
    progress.finish_and_clear();
    Ok(())
}

/// Renames a database and its log, unless something was put aside before.
fn put_aside(database: &Path) -> Result<(), CliError> {
    let aside = database.with_added_extension("before-restore");
    if aside.exists() {
        return Err(CliError::Usage(format!(
            "{} is there from an earlier restore: move it away first",
            aside.display()
        )));
    }
    for suffix in ["", "-wal", "-shm"] {
        let mut from = database.as_os_str().to_owned();
        from.push(suffix);
        let mut to = aside.as_os_str().to_owned();
        to.push(suffix);
        if Path::new(&from).exists() {
            std::fs::rename(&from, &to).map_err(|source| CliError::File {
                path: database.display().to_string(),
                what: "put aside",
                source,
            })?;
        }
    }
    Ok(())
}
