//! What an uploaded configuration may be: a tar archive of regular files and folders below one folder.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::ops::Bound;
use std::path::{Component, Path, PathBuf};

use tar::{Archive, EntryType};

/// The unit of an archive; two of zeros end it.
const BLOCK: usize = 512;

/// Why bytes are no configuration. Names are shown cut and escaped.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The end is missing.
    #[error("the archive is not whole: it does not end as a tar archive does")]
    NotWhole,
    /// It cannot be read.
    #[error("the archive cannot be read after {after}")]
    Broken {
        /// The last entry that could be.
        after: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A link, a device, or what else is neither file nor folder.
    #[error("{0} is neither a regular file nor a folder: links and devices are refused")]
    Kind(String),
    /// A name that leads elsewhere, or is none.
    #[error("{0} is no path below the configuration's folder: name entries relative to it, without ..")]
    Path(String),
    /// Two entries are in the same place.
    #[error("{0} is in the archive more than once")]
    Twice(String),
    /// A file is where another entry has a folder.
    #[error("{0} lies below what is a file")]
    BelowFile(String),
    /// Nothing that could be run.
    #[error("there is no .tf, .tofu, .tf.json or .tofu.json file at the top of the archive")]
    Nothing,
}

/// Checks an archive, entry by entry, to its end.
///
/// # Errors
///
/// [`ArchiveError`] names the entry.
pub fn check(bytes: &[u8]) -> Result<(), ArchiveError> {
    let end = bytes.len().checked_sub(2 * BLOCK).and_then(|start| bytes.get(start..));
    if !bytes.len().is_multiple_of(BLOCK) || end.is_none_or(|end| end.iter().any(|byte| *byte != 0)) {
        return Err(ArchiveError::NotWhole);
    }
    let mut last = "its beginning".to_owned();
    let broken = |last: &str| {
        let after = last.to_owned();
        move |source| ArchiveError::Broken { after, source }
    };
    let mut archive = Archive::new(bytes);
    let mut places: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for entry in archive.entries().map_err(broken(&last))? {
        let mut entry = entry.map_err(broken(&last))?;
        let kind = entry.header().entry_type();
        // Says something of all entries: `git archive` writes the commit there.
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let name = shown(&entry.path_bytes());
        let is_file = match kind {
            EntryType::Regular => true,
            EntryType::Directory => false,
            _ => return Err(ArchiveError::Kind(name)),
        };
        let place = std::str::from_utf8(&entry.path_bytes()).ok().and_then(|path| place(path, is_file));
        let Some(place) = place else {
            return Err(ArchiveError::Path(name));
        };
        if place.ancestors().skip(1).any(|above| places.get(above) == Some(&true)) {
            return Err(ArchiveError::BelowFile(name));
        }
        let below = (Bound::Excluded(place.as_path()), Bound::Unbounded);
        let next = places.range::<Path, _>(below).next();
        let is_taken = is_file && next.is_some_and(|(next, _)| next.starts_with(&place));
        if places.insert(place, is_file).is_some() || is_taken {
            return Err(ArchiveError::Twice(name));
        }
        let (declared, mut read) = (entry.size(), 0_u64);
        let mut buffer = [0; 8 << 10];
        loop {
            let length = entry.read(&mut buffer).map_err(broken(&name))?;
            if length == 0 {
                break;
            }
            read = read.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        }
        if read != declared {
            return Err(ArchiveError::NotWhole);
        }
        last = name;
    }
    let is_configuration =
        |(place, is_file): (&PathBuf, &bool)| *is_file && place.components().count() == 1 && is_source(place);
    if places.iter().any(is_configuration) { Ok(()) } else { Err(ArchiveError::Nothing) }
}

/// Tells whether a file is read by tofu or terraform, by its name.
pub fn is_source(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    [".tf", ".tofu", ".tf.json", ".tofu.json"].iter().any(|ending| name.ends_with(ending))
}

/// Where an entry comes to lie below the folder; the folder itself is `.`.
fn place(path: &str, is_file: bool) -> Option<PathBuf> {
    let mut place = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => place.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let is_named = !path.is_empty() && !path.chars().any(char::is_control) && path.len() <= 4096;
    (is_named && (!is_file || !place.as_os_str().is_empty())).then_some(place)
}

/// A name as it may stand in a message.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).chars().take(200).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
