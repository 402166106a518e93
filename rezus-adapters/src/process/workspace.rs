//! Working directories: `WORK/TENANT/DIGEST`, each made of a configuration once.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use nix::fcntl::OFlag;
use rezus_core::base::TenantName;
use rezus_core::runs::Stage;
use rezus_core::runs::executor::{Configuration, ExecutorError, Prepared};

use super::files::{RunFiles, make_folder, remove, system, write_whole};
use super::tree::{Manifest, Taker, open_plainly};
use super::{ProcessConfig, backend_block};

/// How many characters of the digest name a directory.
const NAME: usize = 16;

/// How many directories of a tenant are kept beside those that runs need.
const KEPT: usize = 3;

/// What a directory is called while it is made.
const NEW: &str = ".new";

/// What tofu leaves where it could not save a state.
const ERRORED: &str = "errored.tfstate";

/// How many bytes of that are taken.
const MOST_ERRORED: u64 = 512 << 20;

/// See [`TofuExecutor::prepare`](rezus_core::runs::executor::TofuExecutor::prepare). One at a time for a tenant.
pub(super) fn prepare(
    config: &ProcessConfig,
    tenant: &TenantName,
    configuration: &Configuration,
    files: &[(String, String)],
) -> Result<Prepared, ExecutorError> {
    const WRITE: &str = "write a working directory";
    const GIVE: &str = "give a working directory to whom programs run as";
    let written: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let folder = config.work.join(tenant.as_str());
    make_folder(&folder).map_err(system(WRITE))?;
    let new = folder.join(NEW);
    remove_folder(&new).map_err(system("remove a working directory"))?;
    let made = take(&new, configuration, &written);
    let manifest = match made {
        Ok(manifest) => manifest,
        Err(error) => {
            // The next one that is made removes it too.
            drop(remove_folder(&new));
            return Err(error);
        }
    };
    if config.run_as.is_some() {
        let_through(&folder).map_err(system(WRITE))?;
    }
    let digest = manifest.digest();
    let work_dir = folder.join(digest.get(..NAME).unwrap_or(&digest));
    if is_owned(&work_dir, config.run_as) && manifest.is_kept_in(&work_dir, &written) {
        remove_folder(&new).map_err(system("remove a working directory"))?;
    } else {
        // A run has changed it: programs write where they work.
        if let Some(owner) = config.run_as {
            give(&new, owner).map_err(system(GIVE))?;
        }
        replace(&new, &work_dir).map_err(system(WRITE))?;
    }
    for (name, text) in files {
        write_whole(&work_dir.join(name), text.as_bytes(), config.run_as).map_err(system(WRITE))?;
    }
    tidy(config, tenant, &folder, &work_dir).map_err(system("remove a working directory"))?;
    Ok(Prepared { work_dir, digest })
}

fn take(new: &Path, configuration: &Configuration, written: &[&str]) -> Result<Manifest, ExecutorError> {
    make_folder(new).map_err(system("write a working directory"))?;
    let mut taker = Taker::new(new, written);
    match configuration {
        Configuration::Directory(path) => taker.directory(path)?,
        Configuration::Archive(bytes) => taker.archive(bytes)?,
    }
    let manifest = taker.finish();
    let paths: Vec<String> = manifest.paths().map(str::to_owned).collect();
    backend_block::check(new, &paths)?;
    Ok(manifest)
}

/// Puts a directory in another's place. What tofu could not save stays.
fn replace(new: &Path, place: &Path) -> io::Result<()> {
    if place.exists() {
        let errored = place.join(ERRORED);
        if errored.exists() {
            fs::rename(errored, new.join(ERRORED))?;
        }
        remove_folder(place)?;
    }
    fs::rename(new, place)
}

/// Removes old directories that no run needs.
fn tidy(config: &ProcessConfig, tenant: &TenantName, folder: &Path, current: &Path) -> io::Result<()> {
    // The current one is the newest, whatever its time says.
    let used = |path: &Path| path.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut all: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_ours = path.file_name().is_some_and(|name| name.len() == NAME);
        if is_ours && path != current {
            all.push((used(&path), path));
        }
    }
    all.sort_by(|a, b| b.cmp(a));
    let needed = needed(config, tenant)?;
    for (_, path) in all.into_iter().skip(KEPT - 1) {
        if !needed.contains(&path) && !path.join(ERRORED).exists() {
            remove_folder(&path)?;
        }
    }
    Ok(())
}

/// The directories of runs that are not sealed.
fn needed(config: &ProcessConfig, tenant: &TenantName) -> io::Result<BTreeSet<PathBuf>> {
    let mut needed = BTreeSet::new();
    let runs = match fs::read_dir(config.dir.join(tenant.as_str())) {
        Ok(runs) => runs,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(needed),
        Err(error) => return Err(error),
    };
    for run in runs {
        let files = RunFiles::at(run?.path());
        for stage in Stage::ALL {
            needed.extend(files.read_process(stage)?.map(|record| record.work_dir));
        }
    }
    Ok(needed)
}

/// See [`TofuExecutor::errored_state`](rezus_core::runs::executor::TofuExecutor::errored_state).
pub(super) fn errored_state(work_dir: &Path) -> io::Result<Option<Bytes>> {
    let path = work_dir.join(ERRORED);
    let file = match open_plainly(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let too_long = || {
        let (shown, most) = (path.display(), MOST_ERRORED >> 20);
        let message =
            format!("{shown} has more than {most} MiB and stays where it is: look at it, then move it");
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    if file.metadata()?.len() > MOST_ERRORED {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    let count = file.take(MOST_ERRORED + 1).read_to_end(&mut bytes)?;
    if u64::try_from(count).is_ok_and(|count| count <= MOST_ERRORED) {
        return Ok(Some(Bytes::from(bytes)));
    }
    Err(too_long())
}

/// Removes that.
pub(super) fn remove_errored_state(work_dir: &Path) -> io::Result<()> {
    remove(&work_dir.join(ERRORED))
}

/// Puts it among a run's files, and returns where it is.
pub(super) fn keep_errored_state(files: &RunFiles, work_dir: &Path) -> io::Result<PathBuf> {
    let state = errored_state(work_dir)?.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let kept = files.path().join(ERRORED);
    make_folder(files.path())?;
    write_whole(&kept, &state, None)?;
    remove_errored_state(work_dir)?;
    Ok(kept)
}

/// Tells whether a plan is there in clear. Source: a saved plan is a zip archive; an encrypted one is JSON.
pub(super) fn is_plan_clear(plan: &Path) -> io::Result<bool> {
    let mut file = match open_plainly(plan) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut begins = [0; 1];
    let read = file.read(&mut begins)?;
    // Whatever is no JSON counts as clear.
    Ok(read > 0 && begins != *b"{")
}

/// Tells whether a directory is whose it must be; one from before programs ran as somebody else is not.
fn is_owned(path: &Path, owner: Option<(u32, u32)>) -> bool {
    owner.is_none_or(|owner| path.symlink_metadata().is_ok_and(|it| (it.uid(), it.gid()) == owner))
}

/// Makes a directory that was just made, and the files and directories in it, somebody's. It comes last: until then
/// nobody else gets into it, so nothing in it is another's.
fn give(path: &Path, owner: (u32, u32)) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            give(&entry.path(), owner)?;
        } else {
            fchown(open_plainly(&entry.path())?, Some(owner.0), Some(owner.1))?;
        }
    }
    give_folder(path, owner)
}

/// Lets others through a folder to what is theirs in it; what there is besides they do not see.
pub(super) fn let_through(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o711))
}

/// Makes a folder somebody's; a link to one is refused.
pub(super) fn give_folder(path: &Path, (uid, gid): (u32, u32)) -> io::Result<()> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY).bits();
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    fchown(folder, Some(uid), Some(gid))
}

/// Removes a directory; that there is none is as good.
pub(super) fn remove_folder(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
