//! Mapping files of a directory.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rezus_core::declared::mapping::{MappingFile, Mappings};
use rezus_core::declared::projector::Projector;

/// Why the mappings of a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MappingsError {
    /// A file or the directory cannot be read.
    #[error("{} cannot be read", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Rules are not sound: a line for each, with file, line and reason.
    #[error("{0}")]
    Unsound(String),
}

/// Returns the built-in mappings with those of a directory on top.
///
/// # Errors
///
/// [`MappingsError`] names file, line and reason.
pub fn load(dir: &Path) -> Result<Mappings, MappingsError> {
    compile(&read(dir)?)
}

/// Compiles files on top of the built-in ones.
///
/// # Errors
///
/// [`MappingsError::Unsound`].
pub fn compile(files: &[MappingFile]) -> Result<Mappings, MappingsError> {
    Mappings::compile(files).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        MappingsError::Unsound(lines.join("\n"))
    })
}

/// Reads the mapping files of a directory, sorted by name.
///
/// # Errors
///
/// [`MappingsError::Read`].
pub fn read(dir: &Path) -> Result<Vec<MappingFile>, MappingsError> {
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path)
            .map_err(|source| MappingsError::Read { path: path.clone(), source })?;
        Ok(MappingFile { name: path.display().to_string(), text })
    };
    paths(dir, &["yaml", "yml"])?.into_iter().map(read).collect()
}

/// Returns the files of a directory that end so, sorted.
///
/// # Errors
///
/// [`MappingsError::Read`].
pub fn paths(dir: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, MappingsError> {
    let failed = |source| MappingsError::Read { path: dir.to_owned(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(|ending| endings.contains(&ending)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Looks at a directory for changes until the task is ended. Files that are sound come into force at once; of others the
/// log says what is wrong, and what was in force stays.
pub async fn reload(dir: PathBuf, projector: Projector, every: Duration) {
    let mut ticks = tokio::time::interval(every.max(Duration::from_millis(100)));
    let texts = |files: Vec<MappingFile>| -> Vec<(String, String)> {
        files.into_iter().map(|file| (file.name, file.text)).collect()
    };
    let mut known = read(&dir).map(texts).ok();
    loop {
        ticks.tick().await;
        let files = match read(&dir) {
            Ok(files) => files,
            Err(error) => {
                if known.take().is_some() {
                    tracing::warn!(cause = %crate::error::Chain(&error), "mappings cannot be read: those in force stay");
                }
                continue;
            }
        };
        let now = Some(texts(files.clone()));
        if now == known {
            continue;
        }
        known = now;
        match compile(&files) {
            Ok(mappings) => {
                projector.use_mappings(mappings);
                tracing::info!(files = files.len(), "mappings came into force");
            }
            Err(error) => {
                tracing::warn!(cause = error.to_string(), "mappings are not sound: those in force stay");
            }
        }
    }
}
