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
        if self.file.exists() {
            return Err(CliError::Usage(format!(
                "{} is there already: name a new file",
                self.file.display()
            )));
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
        let parts = Parts::of(&database);
        if !parts.present().is_empty() && !self.force {
            return Err(CliError::Usage(format!(
                "{} has data already: add --force to put it aside, or name another --data-dir",
                self.data_dir.display()
            )));
        }
        // Whole and durable beside the old one, before that is touched.
        let restored = database.with_added_extension("restored");
        remove_if_there(&restored)?;
        copy(&self.file, &restored)?;
        parts.put_aside()?;
        std::fs::rename(&restored, &database).map_err(|source| file_error(&database, "written", source))?;
        sync_directory(&self.data_dir)?;
        drop(lock);
        writeln!(out, "{}: restored from {}", self.data_dir.display(), self.file.display())?;
        Ok(())
    }
}

/// A database and what belongs to it. A log that is left lying would be read into whatever takes the database's place.
struct Parts([PathBuf; 3]);

impl Parts {
    fn of(database: &Path) -> Self {
        let with = |suffix: &str| {
            let mut path = database.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        // In the order they are put aside: what an interruption leaves is a log without its database, which no server
        // starts on, and never a database without its log.
        Self([database.to_owned(), with("-wal"), with("-shm")])
    }

    fn present(&self) -> Vec<&PathBuf> {
        self.0.iter().filter(|path| path.exists()).collect()
    }

    /// Renames what is there, unless something was put aside before.
    fn put_aside(&self) -> Result<(), CliError> {
        let aside = |path: &Path| path.with_added_extension("before-restore");
        if let Some(taken) = self.0.iter().map(|path| aside(path)).find(|path| path.exists()) {
            return Err(CliError::Usage(format!(
                "{} is there from an earlier restore: move it away first",
                taken.display()
            )));
        }
        for path in self.present() {
            std::fs::rename(path, aside(path)).map_err(|source| file_error(path, "put aside", source))?;
        }
        Ok(())
    }
}

fn remove_if_there(path: &Path) -> Result<(), CliError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(file_error(path, "removed", source))
        }
        _ => Ok(()),
    }
}

fn sync_directory(path: &Path) -> Result<(), CliError> {
    let synced = std::fs::File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|source| file_error(path, "written", source))
}

fn file_error(path: &Path, what: &'static str, source: std::io::Error) -> CliError {
    CliError::File { path: path.display().to_string(), what, source }
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
