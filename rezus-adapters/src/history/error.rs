//! What can go wrong with a file, and what that means.

#![warn(clippy::wildcard_enum_match_arm)]

use std::path::PathBuf;

use rezus_core::series::SeriesError;
use rusqlite::ErrorCode;

use crate::damage;

/// Why a history could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The directory says no.
    #[error("{} cannot be read or made", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Coarser rollups would be gone before finer ones.
    #[error(
        "rollups of 5 minutes must be kept as long as samples at least, and those of 1 hour as long as those"
    )]
    Order,
    /// What was not sealed cannot be read back, and it is not that its file is damaged.
    #[error("{} cannot be read", path.display())]
    Tail {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// A file that was not what was written to it, and was set aside under another name; or was not there any more.
#[derive(Debug, thiserror::Error)]
#[error("{} is not as it was written: what is left of it is set aside with the ending .damaged", path.display())]
pub struct SetAside {
    /// Which it was.
    pub path: PathBuf,
    /// What was wrong.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Why something could not be done with a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("the database cannot do it")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the file system cannot do it")]
    Io(#[from] std::io::Error),
    #[error("numbers cannot be unpacked")]
    Pco(#[from] pco::errors::PcoError),
    #[error("{0} cannot be read")]
    Damaged(&'static str),
    /// Of one that is to take another's place, which is as it was.
    #[error("a file cannot be finished")]
    Unfinished(#[source] Box<Self>),
    #[error("the file's format is {0}, which this release does not know")]
    Format(i32),
}

impl FileError {
    /// Tells whether there is no room on the disk.
    pub(super) fn is_lack_of_room(&self) -> bool {
        match self {
            Self::Sqlite(error) => error.sqlite_error_code() == Some(ErrorCode::DiskFull),
            Self::Io(error) => error.kind() == std::io::ErrorKind::StorageFull,
            Self::Unfinished(error) => error.is_lack_of_room(),
            Self::Pco(_) | Self::Damaged(_) | Self::Format(_) => false,
        }
    }

    /// Tells whether somebody else has the file for a moment.
    pub(super) fn is_in_use(&self) -> bool {
        let Self::Sqlite(error) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::OperationInterrupted)
        )
    }

    /// Tells whether the file is not what was written, rather than out of reach.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Sqlite(error) => damage::is_damage(error),
            Self::Damaged(_) | Self::Pco(_) => true,
            Self::Io(_) | Self::Unfinished(_) | Self::Format(_) => false,
        }
    }

    /// Says that samples cannot be `doing` for this reason.
    pub(super) fn while_being(self, doing: &'static str) -> SeriesError {
        SeriesError::Unavailable { doing, source: Box::new(self) }
    }
}
