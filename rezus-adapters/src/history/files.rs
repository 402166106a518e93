//! The files there are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::error::{FileError, SetAside};
use super::file::{Care, ChunkFile};
use super::name::{DAY, Name, begin};

/// What a file is called that could not be read.
const DAMAGED: &str = "damaged";

/// What a file is called that is not whole yet.
const NEW: &str = "new";

/// Days, as the times at which they begin.
pub(super) type Days = Arc<BTreeSet<i64>>;

/// The files of a history, by name. Only their names are known of most.
#[derive(Debug)]
pub(super) struct Files {
    directory: PathBuf,
    names: RwLock<BTreeSet<Name>>,
    /// What those are called that are out of the way, without that ending.
    damaged: Mutex<BTreeSet<Name>>,
    /// Of files of rollups, of which days they are, as far as somebody asked.
    days: Mutex<BTreeMap<Name, Days>>,
    set_aside: Mutex<Vec<SetAside>>,
}

impl Files {
    /// Looks at what is in a directory, which is made where there is none. What was not finished is removed.
    pub(super) fn scan(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let (mut names, mut damaged) = (BTreeSet::new(), BTreeSet::new());
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let text = entry.file_name().to_string_lossy().into_owned();
            names.extend(Name::parse(&text));
            damaged.extend(text.strip_suffix(DAMAGED).and_then(|text| {
                let text = text.strip_suffix('.')?;
                LOGS.iter().find_map(|log| Name::parse(text.strip_suffix(log)?)).or_else(|| Name::parse(text))
            }));
            if text.strip_suffix(NEW).and_then(|text| Name::parse(text.strip_suffix('.')?)).is_some() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Self {
            directory: directory.to_owned(),
            names: RwLock::new(names),
            damaged: Mutex::new(damaged),
            days: Mutex::default(),
            set_aside: Mutex::default(),
        })
    }

    /// Returns where they are.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the names there are.
    pub(super) fn list(&self) -> BTreeSet<Name> {
        self.names.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells whether a file is there.
    pub(super) fn has(&self, name: Name) -> bool {
        self.names.read().unwrap_or_else(PoisonError::into_inner).contains(&name)
    }

    /// Returns a file's path.
    pub(super) fn path(&self, name: Name) -> PathBuf {
        self.directory.join(name.to_string())
    }

    /// Returns the path of a file that is not whole yet.
    fn path_of_new(&self, name: Name) -> PathBuf {
        self.path(name).with_added_extension(NEW)
    }

    /// Knows of a file from now on.
    pub(super) fn add(&self, name: Name) {
        self.names.write().unwrap_or_else(PoisonError::into_inner).insert(name);
    }

    /// Returns the days that a file's rollups are of; none where it is not there. It is opened the first time.
    pub(super) fn days(&self, name: Name) -> Result<Days, FileError> {
        if !self.has(name) {
            return Ok(Days::default());
        }
        // Locked while it is read, so that no day that is added meanwhile is missed.
        let mut known = self.known_days();
        if let Some(days) = known.get(&name) {
            return Ok(Arc::clone(days));
        }
        let days = Arc::new(ChunkFile::read(&self.path(name))?.days()?);
        if !days.iter().all(|day| begin(*day, DAY) == *day && name.span().contains(day)) {
            return Err(FileError::Damaged("a day"));
        }
        known.insert(name, Arc::clone(&days));
        Ok(days)
    }

    /// Knows that a file has the rollups of a day, now that it says so itself.
    pub(super) fn add_day(&self, name: Name, day: i64) {
        if let Some(days) = self.known_days().get_mut(&name) {
            Arc::make_mut(days).insert(day);
        }
    }

    fn known_days(&self) -> MutexGuard<'_, BTreeMap<Name, Days>> {
        self.days.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file to be written to. Where there is none it is made, whole or not at all: a kill leaves none that cannot be read.
    pub(super) fn write(&self, name: Name) -> Result<ChunkFile, FileError> {
        if !self.has(name) {
            self.make(name)
                .and_then(ChunkFile::close)
                .and_then(|()| self.finish(name, &[]))
                .map_err(|error| FileError::Unfinished(Box::new(error)))?;
        }
        ChunkFile::write(&self.path(name), Care::Log)
    }

    /// Makes a file that is not whole yet, in place of what was left of another.
    pub(super) fn make(&self, name: Name) -> Result<ChunkFile, FileError> {
        let new = self.path_of_new(name);
        remove_if_there(&new)?;
        ChunkFile::write(&new, Care::None)
    }

    /// Gives a file that is whole its own name; those that it stands for are removed.
    pub(super) fn finish(&self, name: Name, instead_of: &[Name]) -> Result<(), FileError> {
        let new = self.path_of_new(name);
        File::open(&new)?.sync_all()?;
        fs::rename(&new, self.path(name))?;
        self.sync()?;
        {
            let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
            names.insert(name);
            names.retain(|name| !instead_of.contains(name));
        }
        instead_of.iter().try_for_each(|name| self.unlink(*name))
    }

    /// Removes a file. Who reads it at this moment reads on.
    pub(super) fn remove(&self, name: Name) -> Result<(), FileError> {
        self.names.write().unwrap_or_else(PoisonError::into_inner).remove(&name);
        // One that cannot be removed is there still.
        self.unlink(name).inspect_err(|_| self.add(name))?;
        self.known_days().remove(&name);
        Ok(())
    }

    fn unlink(&self, name: Name) -> Result<(), FileError> {
        // The log first: a file without its log is whole, as it was some time ago; what comes again of it is merged.
        for path in with_log(&self.path(name)).into_iter().rev() {
            remove_if_there(&path)?;
        }
        Ok(())
    }

    /// Makes what was made and renamed here survive a power loss.
    pub(super) fn sync(&self) -> Result<(), FileError> {
        Ok(File::open(&self.directory)?.sync_all()?)
    }

    /// Puts a file that is damaged out of the way.
    pub(super) fn set_aside(&self, name: Name, why: FileError) -> Result<(), FileError> {
        // Locked meanwhile, and forgotten once it is away: what cannot be renamed is tried again, and what is made anew is known.
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        for path in with_log(&self.path(name)) {
            match fs::rename(&path, path.with_added_extension(DAMAGED)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        names.remove(&name);
        drop(names);
        self.lock_damaged().insert(name);
        self.known_days().remove(&name);
        let notice = SetAside { path: self.path(name), source: Box::new(why) };
        self.set_aside.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
        Ok(())
    }

    /// Returns the names that those had that are out of the way.
    pub(super) fn damaged(&self) -> BTreeSet<Name> {
        self.lock_damaged().clone()
    }

    /// Removes what is out of the way of a file of this name.
    pub(super) fn remove_damaged(&self, name: Name) -> Result<(), FileError> {
        for path in with_log(&self.path(name)) {
            remove_if_there(&path.with_added_extension(DAMAGED))?;
        }
        self.lock_damaged().remove(&name);
        Ok(())
    }

    fn lock_damaged(&self) -> MutexGuard<'_, BTreeSet<Name>> {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was put out of the way since the last call.
    pub(super) fn take_set_aside(&self) -> Vec<SetAside> {
        std::mem::take(&mut *self.set_aside.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns how many bytes there are of all files.
    pub(super) fn total(&self) -> u64 {
        self.bytes().values().sum()
    }

    /// Returns how many bytes there are of each kind of files, and of those that are out of the way.
    pub(super) fn bytes(&self) -> BTreeMap<&'static str, u64> {
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
        let mut bytes: BTreeMap<&'static str, u64> = KINDS.into_iter().map(|kind| (kind, 0)).collect();
        for name in self.list() {
            let own: u64 = with_log(&self.path(name)).iter().map(|path| size(path)).sum();
            *bytes.entry(name.kind()).or_default() += own;
        }
        for name in self.damaged() {
            let paths = with_log(&self.path(name)).map(|path| path.with_added_extension(DAMAGED));
            *bytes.entry(DAMAGED).or_default() += paths.iter().map(|path| size(path)).sum::<u64>();
        }
        bytes
    }
}

/// What bytes are counted by.
const KINDS: [&str; 6] = ["tail", "sealed", "raw", "fine", "coarse", DAMAGED];

/// What the names of the files end with that SQLite puts beside a file.
const LOGS: [&str; 2] = ["-wal", "-shm"];

fn with_log(path: &Path) -> [PathBuf; 3] {
    let beside = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let [log, index] = LOGS.map(beside);
    [path.to_owned(), log, index]
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
