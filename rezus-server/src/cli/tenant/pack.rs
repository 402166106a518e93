//! Packs a directory into an archive that depends on nothing but names and contents.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tar::{Builder, EntryType, Header};

use crate::cli::CliError;
use crate::workspaces::archive::is_source;

/// Packs a configuration. What the tools keep beside it (`.terraform`, states) and `.git` are left out.
pub(super) fn pack(dir: &Path) -> Result<Vec<u8>, CliError> {
    let fail = |path: &Path| {
        let path = path.display().to_string();
        move |source| CliError::File { path, what: "read", source }
    };
    let mut found = Vec::new();
    walk(dir, Path::new(""), &mut found)?;
    if !found.iter().any(|(place, is_dir)| !is_dir && place.components().count() == 1 && is_source(place)) {
        return Err(CliError::Usage(format!(
            "{} holds no .tf, .tofu, .tf.json or .tofu.json file",
            dir.display()
        )));
    }
    found.sort();
    let mut archive = Builder::new(Vec::new());
    for (place, is_dir) in found {
        let path = dir.join(&place);
        let content = if is_dir { Vec::new() } else { fs::read(&path).map_err(fail(&path))? };
        let mut header = Header::new_ustar();
        header.set_entry_type(if is_dir { EntryType::Directory } else { EntryType::Regular });
        header.set_mode(if is_dir || is_executable(&path) { 0o755 } else { 0o644 });
        header.set_mtime(0);
        header.set_size(u64::try_from(content.len()).unwrap_or(u64::MAX));
        archive.append_data(&mut header, &place, content.as_slice()).map_err(fail(&path))?;
    }
    archive.into_inner().map_err(fail(dir))
}

/// Finds what is to be packed below a folder.
fn walk(dir: &Path, below: &Path, found: &mut Vec<(PathBuf, bool)>) -> Result<(), CliError> {
    // An empty name would only add a slash.
    let folder = if below.as_os_str().is_empty() { dir.to_owned() } else { dir.join(below) };
    let fail =
        |source: io::Error| CliError::File { path: folder.display().to_string(), what: "read", source };
    for entry in fs::read_dir(&folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let place = below.join(entry.file_name());
        if is_left_out(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let kind = entry.file_type().map_err(fail)?;
        if kind.is_dir() {
            found.push((place.clone(), true));
            walk(dir, &place, found)?;
        } else if kind.is_file() {
            found.push((place, false));
        } else {
            return Err(CliError::Usage(format!(
                "{} is neither a regular file nor a folder: put a copy of what it leads to in its place",
                dir.join(place).display()
            )));
        }
    }
    Ok(())
}

/// Tells whether something is no part of a configuration, by its name: `*.tfstate*` may hold secrets.
fn is_left_out(name: &str) -> bool {
    name == ".terraform" || name == ".git" || name.contains(".tfstate")
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspaces::archive;

    fn names(bytes: &[u8]) -> Vec<String> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap();
        entries.map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect()
    }

    #[test]
    fn the_same_files_make_the_same_archive() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files =
            ["main.tf", "modules/a/main.tf", "files/\u{e9} b.txt", &format!("{}/x.tf", "d".repeat(120))];
        let backwards: Vec<&str> = files.iter().rev().copied().collect();
        for (dir, files) in [(&one, files.to_vec()), (&other, backwards)] {
            for file in files {
                let path = dir.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, file).unwrap();
            }
        }
        for left_out in
            [".terraform/x", ".git/config", "terraform.tfstate", "a.tfstate.backup", "errored.tfstate"]
        {
            let path = other.path().join(left_out);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "secret").unwrap();
        }
        let (left, right) = (pack(one.path()).unwrap(), pack(other.path()).unwrap());
        assert!(left == right);
        archive::check(&left).unwrap();
        let names = names(&left);
        assert!(names.is_sorted() && names.len() == 8, "{names:?}");
        fs::write(one.path().join("main.tf"), "else").unwrap();
        assert!(pack(one.path()).unwrap() != right);
    }

    #[test]
    fn links_are_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("main.tf"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        let error = pack(dir.path()).unwrap_err().to_string();
        assert!(error.contains("link is neither"), "{error}");
    }

    #[test]
    fn a_directory_without_a_configuration_is_told() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("readme"), "").unwrap();
        assert!(pack(dir.path()).unwrap_err().to_string().contains("holds no .tf"));
        assert!(pack(&dir.path().join("absent")).unwrap_err().to_string().contains("cannot be read"));
    }
}
