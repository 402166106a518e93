//! The files of a configuration, as they are taken from a directory or an archive into a folder of our own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Cursor, Read};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use nix::fcntl::OFlag;
use rezus_core::runs::executor::ExecutorError;
use sha2::{Digest as _, Sha256};

use super::files::system;

/// How many files a configuration may have.
pub const MOST_FILES: usize = 10_000;
/// How many bytes its files may have together.
pub const MOST_BYTES: u64 = 256 << 20;
/// How deep its directories may be.
const DEEPEST: usize = 64;
/// How much of a file is read at a time.
const PIECE: usize = 64 << 10;
/// A block of a tar.
const BLOCK: u64 = 512;

/// What each file holds, by its path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest(BTreeMap<String, Content>);

#[derive(Debug, PartialEq, Eq)]
struct Content {
    hash: [u8; 32],
    length: u64,
}

impl Manifest {
    /// The SHA-256 of all paths and contents, in hexadecimal.
    pub(super) fn digest(&self) -> String {
        let mut all = Sha256::new();
        for (path, content) in &self.0 {
            all.update(u64::try_from(path.len()).unwrap_or(u64::MAX).to_le_bytes());
            all.update(path);
            all.update(content.hash);
        }
        let digest: [u8; 32] = all.finalize().into();
        digest.iter().fold(String::new(), |mut hex, byte| {
            // A text can always be written.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Tells whether a folder holds these files, and besides them nothing at its root that tofu would read, but for
    /// `written`.
    pub(super) fn is_kept_in(&self, folder: &Path, written: &[&str]) -> bool {
        let is_same = |(path, content): (&String, &Content)| {
            // What `init` writes.
            path == LOCK_FILE || content.is_in(&folder.join(path)).unwrap_or(false)
        };
        let Ok(entries) = fs::read_dir(folder) else {
            return false;
        };
        let is_known = |entry: fs::DirEntry| {
            let Ok(name) = entry.file_name().into_string() else {
                return true;
            };
            // No file can be written where a directory is.
            let is_in_the_way = written.iter().any(|written| name.starts_with(written))
                && entry.file_type().is_ok_and(|kind| kind.is_dir());
            let is_ours = !is_read(&name) || self.0.contains_key(&name) || written.contains(&name.as_str());
            is_ours && !is_in_the_way
        };
        self.0.iter().all(is_same) && entries.flatten().all(is_known)
    }
}

const LOCK_FILE: &str = ".terraform.lock.hcl";

/// What tofu reads of a directory.
fn is_read(name: &str) -> bool {
    let kinds = [".tf", ".tofu", ".tf.json", ".tofu.json", ".auto.tfvars", ".auto.tfvars.json"];
    kinds.iter().any(|kind| name.ends_with(kind)) || name.starts_with("terraform.tfvars")
}

impl Content {
    /// Tells whether a file holds this. Of one that is longer no more is read than that takes.
    fn is_in(&self, path: &Path) -> io::Result<bool> {
        let file = open_plainly(path)?;
        if file.metadata()?.len() != self.length {
            return Ok(false);
        }
        // It may grow meanwhile.
        let mut file = file.take(self.length.saturating_add(1));
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        loop {
            let count = file.read(&mut piece)?;
            if count == 0 {
                let found: [u8; 32] = hash.finalize().into();
                return Ok(found == self.hash);
            }
            hash.update(&piece[..count]);
        }
    }
}

/// Opens a file, and no link to one; a pipe that took its place is not waited for.
pub(super) fn open_plainly(path: &Path) -> io::Result<fs::File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    Ok(file)
}

/// Takes files into a folder.
pub(super) struct Taker<'a> {
    folder: &'a Path,
    /// Names at the root that rezus writes itself.
    reserved: &'a [&'a str],
    manifest: Manifest,
    bytes: u64,
}

impl<'a> Taker<'a> {
    pub(super) fn new(folder: &'a Path, reserved: &'a [&'a str]) -> Self {
        Self { folder, reserved, manifest: Manifest::default(), bytes: 0 }
    }

    pub(super) fn finish(self) -> Manifest {
        self.manifest
    }

    /// Copies a directory.
    pub(super) fn directory(&mut self, root: &Path) -> Result<(), ExecutorError> {
        let shown = root.display();
        let cannot =
            |path: &Path, error: &io::Error| refuse(format!("cannot read {}: {error}", path.display()));
        let kind = root.metadata().map_err(|error| cannot(root, &error))?;
        if !kind.is_dir() {
            return Err(refuse(format!("{shown} is no directory")));
        }
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let here = root.join(&folder);
            for entry in fs::read_dir(&here).map_err(|error| cannot(&here, &error))? {
                let entry = entry.map_err(|error| cannot(&here, &error))?;
                let path = folder.join(entry.file_name());
                let whole = entry.path();
                if is_skipped(&path) {
                    continue;
                }
                let kind = entry.file_type().map_err(|error| cannot(&whole, &error))?;
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    let mut file = open_plainly(&whole).map_err(|error| cannot(&whole, &error))?;
                    let mode = file.metadata().map_err(|error| cannot(&whole, &error))?.permissions().mode();
                    self.file(&path, &mut file, mode & 0o100 != 0)?;
                } else {
                    let what = if kind.is_symlink() { "a symbolic link" } else { "no regular file" };
                    return Err(refuse(format!(
                        "{} is {what}: use files and directories only",
                        whole.display()
                    )));
                }
            }
        }
        Ok(())
    }

    /// Unpacks a tar.
    pub(super) fn archive(&mut self, bytes: &Bytes) -> Result<(), ExecutorError> {
        if bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            return Err(refuse("the archive is compressed: send a plain tar".to_owned()));
        }
        let broken = |error: io::Error| refuse(format!("the archive is cut off or is no tar: {error}"));
        let mut archive = tar::Archive::new(Cursor::new(bytes));
        let mut end = 0;
        for entry in archive.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            end = entry.raw_file_position() + entry.size().div_ceil(BLOCK) * BLOCK;
            let kind = entry.header().entry_type();
            if kind.is_dir() || kind == tar::EntryType::XGlobalHeader {
                continue;
            }
            let path = entry.path().map_err(broken)?.into_owned();
            if !matches!(kind, tar::EntryType::Regular | tar::EntryType::Continuous) {
                let shown = path.display();
                return Err(refuse(format!(
                    "{shown} in the archive is a link or no regular file: use files and directories only"
                )));
            }
            let path = plain_path(&path)?;
            if !is_skipped(&path) {
                let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
                self.file(&path, &mut entry, executable)?;
            }
        }
        // Two blocks of zeros end a tar: without them it is not whole.
        let end = usize::try_from(end).map_err(|_| refuse("the archive is too long".to_owned()))?;
        if !bytes.get(end..end.saturating_add(1024)).is_some_and(|last| last.iter().all(|byte| *byte == 0)) {
            return Err(refuse("the archive is cut off, or is no tar: its end is missing".to_owned()));
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, from: &mut impl Read, executable: bool) -> Result<(), ExecutorError> {
        let shown = path.display();
        let name =
            path.to_str().ok_or_else(|| refuse(format!("{shown}: the name of a file is not UTF-8")))?;
        if self.reserved.contains(&name) {
            return Err(refuse(format!("{shown} is a file that rezus writes itself: rename it")));
        }
        if self.manifest.0.len() >= MOST_FILES {
            return Err(refuse(format!("it has more than {MOST_FILES} files")));
        }
        if path.components().count() > DEEPEST {
            return Err(refuse(format!("{shown} lies more than {DEEPEST} directories deep")));
        }
        if self.manifest.0.contains_key(name) {
            return Err(refuse(format!("{shown} is in it twice")));
        }
        let to = self.folder.join(path);
        let clash = |error: io::Error| refuse(format!("{shown} cannot be written: {error}"));
        if let Some(folder) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(clash)?;
        }
        let mode = if executable { 0o700 } else { 0o600 };
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&to).map_err(clash)?;
        let before = self.bytes;
        let mut hash = Sha256::new();
        let mut piece = vec![0; PIECE];
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(refuse(format!("{shown} cannot be read: {error}"))),
            };
            self.bytes += u64::try_from(count).unwrap_or(u64::MAX);
            if self.bytes > MOST_BYTES {
                return Err(refuse(format!("its files have more than {} MiB", MOST_BYTES >> 20)));
            }
            hash.update(&piece[..count]);
            io::Write::write_all(&mut file, &piece[..count]).map_err(system("write a configuration"))?;
        }
        let content = Content { hash: hash.finalize().into(), length: self.bytes - before };
        self.manifest.0.insert(name.to_owned(), content);
        Ok(())
    }
}

/// A path within the archive; one that leads elsewhere is refused.
fn plain_path(path: &Path) -> Result<PathBuf, ExecutorError> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                let shown = path.display();
                return Err(refuse(format!("{shown} in the archive leads out of it")));
            }
        }
    }
    if plain.as_os_str().is_empty() {
        return Err(refuse("a file in the archive has no name".to_owned()));
    }
    Ok(plain)
}

/// What is no configuration: what tofu makes of one, states, and a repository's own files.
fn is_skipped(path: &Path) -> bool {
    path.components().any(|component| {
        let name = component.as_os_str().to_string_lossy();
        matches!(name.as_ref(), ".terraform" | ".git" | "terraform.tfstate.d") || name.contains(".tfstate")
    })
}

pub(super) fn refuse(message: String) -> ExecutorError {
    ExecutorError::Configuration(message)
}
