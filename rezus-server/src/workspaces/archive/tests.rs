//! Archives that are taken, and those that are refused.

use super::*;

/// An entry whose name is not looked at.
fn entry(archive: &mut tar::Builder<Vec<u8>>, name: &str, kind: EntryType, content: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(u64::try_from(content.len()).unwrap());
    if matches!(kind, EntryType::Symlink | EntryType::Link) {
        header.set_link_name("main.tf").unwrap();
    }
    header.set_cksum();
    archive.append(&header, content).unwrap();
}

fn archive(entries: &[(&str, EntryType)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    for (name, kind) in entries {
        let content: &[u8] = if *kind == EntryType::Regular { b"# a file" } else { b"" };
        entry(&mut archive, name, *kind, content);
    }
    archive.into_inner().unwrap()
}

const FILE: EntryType = EntryType::Regular;
const FOLDER: EntryType = EntryType::Directory;

#[test]
fn folders_and_files_are_taken_however_they_are_spelt() {
    for entries in [
        &[("main.tf", FILE)][..],
        &[("./", FOLDER), ("./main.tofu", FILE), ("./a/", FOLDER), ("./a/b.tf", FILE)],
        &[
            ("pax_global_header", EntryType::XGlobalHeader),
            ("x.tf.json", FILE),
            ("a/b/c", FILE),
            ("a/d", FILE),
        ],
    ] {
        assert!(check(&archive(entries)).is_ok(), "{entries:?}");
    }
    let mut long = tar::Builder::new(Vec::new());
    entry(&mut long, "main.tf", FILE, b"");
    let mut header = tar::Header::new_gnu();
    header.set_size(3);
    header.set_mode(0o644);
    long.append_data(&mut header, format!("{}/{}", "d".repeat(120), "f".repeat(120)), &b"abc"[..]).unwrap();
    assert!(check(&long.into_inner().unwrap()).is_ok());
}

#[test]
fn what_leads_elsewhere_is_refused_by_name() {
    let main = ("main.tf", FILE);
    for (bad, message) in [
        (vec![main, ("link", EntryType::Symlink)], "link is neither a regular file nor a folder"),
        (vec![main, ("hard", EntryType::Link)], "hard is neither a regular file nor a folder"),
        (vec![main, ("null", EntryType::Char)], "null is neither"),
        (vec![main, ("pipe", EntryType::Fifo)], "pipe is neither"),
        (vec![("/etc/main.tf", FILE)], "/etc/main.tf is no path below"),
        (vec![main, ("../up.tf", FILE)], "../up.tf is no path below"),
        (vec![main, ("a/../../up.tf", FILE)], "a/../../up.tf is no path below"),
        (vec![main, ("a\nb", FILE)], "a\\nb is no path below"),
        (vec![main, (".", FILE)], ". is no path below"),
        (vec![main, main], "main.tf is in the archive more than once"),
        (vec![main, ("./main.tf", FILE)], "./main.tf is in the archive more than once"),
        (vec![main, ("a/b", FILE), ("a", FILE)], "a is in the archive more than once"),
        (vec![main, ("main.tf/x", FILE)], "main.tf/x lies below what is a file"),
        (vec![("a/main.tf", FILE), ("readme", FILE)], "there is no .tf"),
        (vec![], "there is no .tf"),
    ] {
        let error = check(&archive(&bad)).expect_err(message).to_string();
        assert!(error.contains(message), "{message} is not in: {error}");
    }
}

#[test]
fn what_is_not_whole_is_refused_wherever_it_ends() {
    let whole = archive(&[("main.tf", FILE), ("other.tf", FILE)]);
    assert!(check(&whole).is_ok());
    // The last block alone of the end is missing, or more.
    for length in 0..whole.len() {
        assert!(check(&whole[..length]).is_err(), "{length} of {}", whole.len());
    }
    let mut lies = archive(&[("main.tf", FILE)]);
    // A file that would be longer than the archive.
    let mut header = tar::Header::new_ustar();
    header.set_path("main.tf").unwrap();
    header.set_size(1 << 30);
    header.set_entry_type(FILE);
    header.set_cksum();
    lies[..BLOCK].copy_from_slice(header.as_bytes());
    assert!(check(&lies).is_err());
    assert!(check(&vec![b'x'; 4096]).is_err());
    let mut garbage = vec![b'x'; 4096];
    garbage.extend([0; 1024]);
    assert!(matches!(check(&garbage), Err(ArchiveError::Broken { .. })));
}
