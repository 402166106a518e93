//! The data directory: what lies in it, and who may open it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A data directory.
#[derive(Clone, Debug)]
pub struct DataDir(PathBuf);

/// The right to open a data directory's files: one process at a time has it.
#[derive(Debug)]
pub struct DataDirLock {
    #[expect(dead_code, reason = "the lock lasts as long as the file is open")]
    file: File,
}

/// Why a data directory cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// There is none.
    #[error("there is no rezus data in {}: name the directory with --data-dir; `rezus-server serve` makes one", .0.display())]
    Absent(PathBuf),
    /// The database is gone, and what it left behind is not.
    #[error("{} has no database, but {left}: an interrupted restore or a lost file. Put the database back, or move what is left away to start anew", path.display())]
    Torn {
        /// Which directory.
        path: PathBuf,
        /// What is left of the database.
        left: String,
    },
    /// Another process has it.
    #[error("{} is in use by another rezus process", .0.display())]
    InUse(PathBuf),
    /// It cannot be made or opened.
    #[error("the data directory {} cannot be used", path.display())]
    Unusable {
        /// Which directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl DataDir {
    /// Names a data directory; nothing is touched.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.0.join("rezus.db")
    }

    /// The socket of the server that runs on it; who may open it is admin.
    pub fn socket(&self) -> PathBuf {
        self.0.join("rezus.sock")
    }

    /// The server's own certificate authority, its certificate and their keys.
    pub fn tls(&self) -> PathBuf {
        self.0.join("tls")
    }

    /// What runs leave: logs, and plans until they are used.
    pub fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// Where programs work.
    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Providers that were downloaded.
    pub fn plugin_cache(&self) -> PathBuf {
        self.0.join("plugins")
    }

    /// What was sampled, and what of it is still to be sent on.
    pub fn series(&self) -> PathBuf {
        self.0.join("series")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.0.join("admin.kubeconfig")
    }

    /// Makes the directory where there is none, closed to all others.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Unusable`].
    pub fn create(&self) -> Result<(), DataDirError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        made.map_err(|source| DataDirError::Unusable { path: self.0.clone(), source })
    }

    /// Makes the directory of samples where there is none, closed to all others.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Unusable`].
    pub fn create_series(&self) -> Result<(), DataDirError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(self.series());
        made.map_err(|source| DataDirError::Unusable { path: self.series(), source })
    }

    /// Tells whether the database is there, or nothing of it.
    ///
    /// # Errors
    ///
    /// [`DataDirError::Torn`] if only a part is: starting anew would look like a fleet that declares nothing.
    pub fn check(&self) -> Result<(), DataDirError> {
        if self.database().exists() {
            return Ok(());
        }
        let left = ["rezus.db-wal", "rezus.db.before-restore", "rezus.db.partial"];
        match left.into_iter().find(|name| self.0.join(name).exists()) {
            Some(left) => Err(DataDirError::Torn { path: self.0.clone(), left: left.to_owned() }),
            None => Ok(()),
        }
    }

    /// Takes the right to open its files; the file system gives it back when the process ends, however it ends.
    ///
    /// # Errors
    ///
    /// [`DataDirError::InUse`] while another process has it, [`DataDirError::Absent`] if there is no directory.
    pub fn lock(&self) -> Result<DataDirLock, DataDirError> {
        let unusable = |source| DataDirError::Unusable { path: self.0.clone(), source };
        if !self.0.is_dir() {
            return Err(DataDirError::Absent(self.0.clone()));
        }
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(self.0.join("lock"));
        let file = file.map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => Ok(DataDirLock { file }),
            Err(TryLockError::WouldBlock) => Err(DataDirError::InUse(self.0.clone())),
            Err(TryLockError::Error(source)) => Err(unusable(source)),
        }
    }
}
