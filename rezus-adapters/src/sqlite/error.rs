//! Errors of SQLite, and what they mean to the ports.

#![warn(clippy::wildcard_enum_match_arm)]

use std::path::PathBuf;
use std::sync::Arc;

use rezus_core::access::AccountStoreError;
use rezus_core::declared::store::StoreError;
use rezus_core::runs::store::RunStoreError;

use crate::damage;

/// Why a file could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// SQLite says no.
    #[error("{} cannot be opened as a database", path.display())]
    Sqlite {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The file system says no.
    #[error("{} cannot be read or made", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is there and holds nothing.
    #[error("{} is empty, as a database never is: restore a backup, or move it away to start anew", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The file is a database of something else.
    #[error("{} is a SQLite database, but not one of rezus", path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
    },
    /// The file is not what SQLite wrote.
    #[error("{} is damaged: restore a backup", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
    },
    /// The copy could not be written.
    #[error("the copy {} could not be written", path.display())]
    Copy {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A newer release wrote the file.
    #[error(
        "{} has format {found}, this release knows up to {known}: use the release that wrote it, or a newer one",
        path.display()
    )]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format this release knows.
        known: u32,
    },
    /// The thread that writes could not be started.
    #[error("the thread that writes the database could not be started")]
    Thread(#[source] std::io::Error),
}

/// Why one job on the database failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum JobError {
    /// SQLite says no; shared, since one failed commit fails every job in it.
    #[error(transparent)]
    Sqlite(Arc<rusqlite::Error>),
    /// A stored value is not one that was ever stored.
    #[error("{0} is not what was stored")]
    Damaged(&'static str),
    /// The thread that writes has ended.
    #[error("the database is closed")]
    Closed,
}

impl From<rusqlite::Error> for JobError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl JobError {
    /// Tells whether the file is not what was written, rather than out of reach.
    fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => damage::is_damage(error),
            Self::Damaged(_) => true,
            Self::Closed => false,
        }
    }
}

impl From<JobError> for StoreError {
    fn from(error: JobError) -> Self {
        if error.is_damage() {
            Self::Corrupt { what: "the database".to_owned(), source: Some(Box::new(error)) }
        } else {
            Self::Unavailable { source: Box::new(error) }
        }
    }
}

impl From<JobError> for AccountStoreError {
    fn from(error: JobError) -> Self {
        if error.is_damage() {
            Self::Corrupt { source: Box::new(error) }
        } else {
            Self::Unavailable { source: Box::new(error) }
        }
    }
}

impl From<JobError> for RunStoreError {
    fn from(error: JobError) -> Self {
        if error.is_damage() {
            Self::Corrupt { what: "what is kept of runs", source: Some(Box::new(error)) }
        } else {
            Self::Unavailable { source: Box::new(error) }
        }
    }
}
