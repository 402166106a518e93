//! Working directories: what is taken of a configuration, and what is refused.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::runs::executor::{Configuration, ExecutorError, Prepared, TofuExecutor as _};

use super::fixture::Stage;

const FILES: [(&str, &str); 4] = [
    ("main.tf", "resource \"terraform_data\" \"a\" {}\n"),
    ("modules/m/m.tf", "terraform {\n  backend \"s3\" {}\n}\n"),
    ("modules/n.txt", ""),
    ("run.sh", "#!/bin/sh\n"),
];

fn tenant() -> TenantName {
    TenantName::parse("prod").unwrap()
}

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

fn directory(stage: &Stage, files: &[(&str, &str)]) -> Configuration {
    let root = stage.path().join("source");
    drop(std::fs::remove_dir_all(&root));
    std::fs::create_dir(&root).unwrap();
    write(&root, files);
    Configuration::Directory(root)
}

fn header(name: &str, kind: tar::EntryType, size: usize) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    // By hand: the crate refuses to write what is to be refused here.
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(u64::try_from(size).unwrap());
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in files {
        builder.append(&header(name, tar::EntryType::Regular, text.len()), text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

async fn prepare(
    stage: &Stage,
    configuration: Configuration,
    files: &[(&str, &str)],
) -> Result<Prepared, String> {
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    stage.process().prepare(&tenant(), configuration, files).await.map_err(|error| match error {
        ExecutorError::Configuration(_) => error.to_string(),
        other => unreachable!("another error: {other:?}"),
    })
}

/// All files below a folder.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(path).unwrap());
            }
        }
    }
    found
}

fn map(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

#[tokio::test]
async fn a_directory_and_an_archive_of_the_same_files_are_the_same() {
    let stage = Stage::new();
    let mut noisy = FILES.to_vec();
    noisy.extend([
        (".terraform/providers/x", "x"),
        (".git/config", "x"),
        ("terraform.tfstate", "x"),
        ("terraform.tfstate.backup", "x"),
        ("errored.tfstate", "x"),
        ("modules/m/terraform.tfstate.d/a", "x"),
    ]);
    let source = directory(&stage, &noisy);
    let script = stage.path().join("source/run.sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let from_directory = prepare(&stage, source, &[]).await.unwrap();
    assert_eq!(tree(&from_directory.work_dir), map(&FILES));
    let mode =
        |name: &str| from_directory.work_dir.join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("run.sh"), mode("main.tf"), mode("modules")), (0o700, 0o600, 0o700));
    let place = stage.path().join("work/prod").join(&from_directory.digest[..16]);
    assert_eq!((from_directory.digest.len(), &from_directory.work_dir), (64, &place));

    noisy.reverse();
    let dotted: Vec<(String, &str)> = noisy.iter().map(|(name, text)| (format!("./{name}"), *text)).collect();
    let dotted: Vec<(&str, &str)> = dotted.iter().map(|(name, text)| (name.as_str(), *text)).collect();
    for bytes in [archive(&noisy), archive(&dotted)] {
        let from_archive = prepare(&stage, Configuration::Archive(bytes.into()), &[]).await.unwrap();
        assert_eq!(from_archive, from_directory);
    }
    // Another content, another name or another cut between both is another configuration.
    for (at, name, text) in [(2, "modules/n.txt", "x"), (2, "modules/n.tx", ""), (0, "main.tf", "")] {
        let mut other = FILES;
        other[at] = (name, text);
        let other = prepare(&stage, Configuration::Archive(archive(&other).into()), &[]).await.unwrap();
        assert_ne!(other.digest, from_directory.digest);
    }
}

#[tokio::test]
async fn a_directory_is_used_again_and_mended_where_a_run_has_changed_it() {
    let stage = Stage::new();
    let files = [("rezus_override.tf.json", "{}"), ("rezus.auto.tfvars.json", "{\"a\": 1}")];
    let first = prepare(&stage, directory(&stage, &FILES), &files).await.unwrap();
    let expected = [map(&FILES), map(&files)].concat_maps();
    assert_eq!(tree(&first.work_dir), expected);
    // What init leaves stays; variables are written anew.
    write(
        &first.work_dir,
        &[(".terraform/x", "x"), (".terraform.lock.hcl", "x"), ("made-by-a-run.txt", "x")],
    );
    let changed = [files[0], ("rezus.auto.tfvars.json", "{\"a\": 2}")];
    let second = prepare(&stage, directory(&stage, &FILES), &changed).await.unwrap();
    assert_eq!(second, first);
    let kept = tree(&second.work_dir);
    assert_eq!((kept[".terraform/x"].as_str(), kept["rezus.auto.tfvars.json"].as_str()), ("x", "{\"a\": 2}"));
    // What tofu would read is as it was configured; what it could not save stays.
    for (name, text) in [("main.tf", "changed"), ("sneaked.tf", "x"), ("x.auto.tfvars", "x")] {
        write(&first.work_dir, &[(name, text), ("errored.tfstate", "state")]);
        let third = prepare(&stage, directory(&stage, &FILES), &files).await.unwrap();
        let mut expected = expected.clone();
        expected.insert("errored.tfstate".to_owned(), "state".to_owned());
        assert_eq!(tree(&third.work_dir), expected, "{name}");
    }
    let kept = stage.process().errored_state(first.work_dir.clone()).await.unwrap();
    assert_eq!(kept.as_deref(), Some(&b"state"[..]));
    stage.process().remove_errored_state(first.work_dir.clone()).await.unwrap();
    assert_eq!(stage.process().errored_state(first.work_dir.clone()).await.unwrap(), None);
    // A link in its place is no state.
    std::os::unix::fs::symlink("/etc/passwd", first.work_dir.join("errored.tfstate")).unwrap();
    assert!(stage.process().errored_state(first.work_dir).await.is_err());
}

trait ConcatMaps {
    fn concat_maps(self) -> BTreeMap<String, String>;
}

impl ConcatMaps for [BTreeMap<String, String>; 2] {
    fn concat_maps(self) -> BTreeMap<String, String> {
        self.into_iter().flatten().collect()
    }
}

#[tokio::test]
async fn what_is_no_configuration_is_refused_and_leaves_nothing() {
    let stage = Stage::new();
    let refused = async |configuration, expected: &str| {
        let files = [("rezus_override.tf.json", "{}")];
        let reason = prepare(&stage, configuration, &files).await.unwrap_err();
        assert!(reason.contains(expected), "{reason}");
        let left = std::fs::read_dir(stage.path().join("work/prod")).unwrap().count();
        assert_eq!(left, 0, "{reason}");
    };
    let tar = |bytes: Vec<u8>| Configuration::Archive(Bytes::from(bytes));
    let main = FILES[0];
    refused(Configuration::Directory(stage.path().join("none")), "cannot read").await;
    refused(directory(&stage, &[("a.txt", "")]), "no .tf, .tofu or .tf.json file at its root").await;
    refused(directory(&stage, &[("rezus_override.tf.json", "{}")]), "rezus writes itself").await;
    let s3 = [main, ("state.tofu", "terraform {\n  backend \"s3\" {}\n}\n")];
    refused(directory(&stage, &s3), "state.tofu has a backend \"s3\" block, but rezus keeps").await;
    let cloud = [main, ("cloud.tf.json", r#"{"terraform": {"cloud": {}}}"#)];
    refused(tar(archive(&cloud)), "cloud.tf.json has a cloud block").await;

    let linked = directory(&stage, &[main]);
    std::os::unix::fs::symlink("main.tf", stage.path().join("source/link.tf")).unwrap();
    refused(linked, "source/link.tf is a symbolic link").await;
    let piped = directory(&stage, &[main]);
    nix::unistd::mkfifo(&stage.path().join("source/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused(piped, "source/pipe is no regular file").await;

    for (name, kind) in [
        ("link", tar::EntryType::Symlink),
        ("hard", tar::EntryType::Link),
        ("device", tar::EntryType::Char),
        ("pipe", tar::EntryType::Fifo),
    ] {
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header(name, kind, 0), &[][..]).unwrap();
        refused(
            tar(builder.into_inner().unwrap()),
            &format!("{name} in the archive is a link or no regular"),
        )
        .await;
    }
    for name in ["../main.tf", "/main.tf", "a/../../main.tf", "a/.."] {
        refused(tar(archive(&[main, (name, "x")])), "leads out of it").await;
    }
    refused(tar(archive(&[main, ("./main.tf", "")])), "main.tf is in it twice").await;
    refused(tar(archive(&[main, ("main.tf/x", "")])), "cannot be written").await;
    let deep = format!("{}x", "d/".repeat(45).repeat(2).chars().take(96).collect::<String>());
    drop(prepare(&stage, tar(archive(&[main, (deep.as_str(), "")])), &[]).await);
    drop(std::fs::remove_dir_all(stage.path().join("work/prod")));
    let whole = archive(&FILES);
    for cut in [0, 1, 511, 512, 700, 1024, 1536, whole.len() - 1024, whole.len() - 512] {
        refused(tar(whole[..cut].to_vec()), "the archive is cut off").await;
    }
    refused(tar(vec![0x1f, 0x8b, 8, 0]), "compressed").await;
    refused(tar(vec![7; 4096]), "is no tar").await;
    let many: Vec<String> = (0..=rezus_adapters::process::MOST_FILES).map(|i| format!("f{i}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    refused(tar(archive(&many)), "more than 10000 files").await;
    let bomb = header("bomb", tar::EntryType::Regular, 1 << 40);
    refused(tar([bomb.as_bytes().as_slice(), &[0; 4096]].concat()), "").await;
}

#[tokio::test]
async fn the_newest_directories_are_kept() {
    let stage = Stage::new();
    let mut made = Vec::new();
    for number in 0..5 {
        let text = format!("# {number}\n");
        made.push(
            prepare(&stage, directory(&stage, &[("main.tf", &text)]), &[("x", "")]).await.unwrap().work_dir,
        );
        if number == 0 {
            // A run that is not over needs the first.
            let folder = stage.path().join("runs/prod/waits");
            std::fs::create_dir_all(&folder).unwrap();
            let record = serde_json::json!({
                "bootId": "x", "supervisor": null, "child": null, "step": 0,
                "workDir": made[0], "graceMillis": 0,
            });
            std::fs::write(folder.join("plan.process"), record.to_string()).unwrap();
        }
    }
    let left: Vec<bool> = made.iter().map(|path| path.exists()).collect();
    assert_eq!(left, [true, false, true, true, true]);
}

/// Waits for what must not hang. A thread that hangs does not keep the test from failing.
fn promptly<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(std::time::Duration::from_mins(1), work).await };
    let done = runtime.block_on(limited);
    runtime.shutdown_background();
    done.expect("it hangs")
}

/// What puts something at a path.
type Way<'a> = &'a dyn Fn(&Path);

/// Makes a file look as long as the file system allows, or nearly.
fn make_huge(path: &Path) {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(1 << 50).or_else(|_| file.set_len(1 << 40)).unwrap();
}

#[test]
fn what_a_program_put_in_the_way_of_files_is_neither_followed_nor_waited_for() {
    let stage = Stage::new();
    let files = [("rezus_override.tf.json", "{}")];
    let whole = [map(&FILES), map(&files)].concat_maps();
    let target = stage.path().join("target");
    let ways: [(&str, Way<'_>); 4] = [
        ("link", &|path| std::os::unix::fs::symlink(&target, path).unwrap()),
        ("pipe", &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap()),
        ("huge file", &make_huge),
        ("directory", &|path| std::fs::create_dir(path).unwrap()),
    ];
    let first = promptly(prepare(&stage, directory(&stage, &FILES), &files)).unwrap();
    for (kind, put) in ways {
        for name in ["rezus_override.tf.json.new", "rezus_override.tf.json", "main.tf"] {
            std::fs::write(&target, FILES[0].1).unwrap();
            let path = first.work_dir.join(name);
            drop(std::fs::remove_file(&path));
            put(&path);
            let again = promptly(prepare(&stage, directory(&stage, &FILES), &files)).unwrap();
            assert_eq!(again, first, "{kind} at {name}");
            assert_eq!(tree(&again.work_dir), whole, "{kind} at {name}");
            let left = path.symlink_metadata().map(|it| it.is_file()).ok();
            let expected = files.iter().chain(&FILES).any(|(written, _)| *written == name).then_some(true);
            assert_eq!(left, expected, "{kind} at {name}");
            assert_eq!(std::fs::read_to_string(&target).unwrap(), FILES[0].1, "{kind} at {name}");
        }
    }
}

#[test]
fn a_state_that_is_too_long_is_an_error_and_stays() {
    let stage = Stage::new();
    let path = stage.path().join("cwd/errored.tfstate");
    make_huge(&path);
    let error = promptly(stage.process().errored_state(stage.path().join("cwd"))).unwrap_err();
    let reason = std::error::Error::source(&error).unwrap().to_string();
    assert!(reason.contains("errored.tfstate has more than 512 MiB"), "{reason}");
    assert!(path.exists());
}

#[tokio::test]
async fn a_working_directory_is_given_away_and_nothing_that_is_linked_into_it() {
    if !nix::unistd::geteuid().is_root() {
        // Past the capture of tests' output.
        drop(std::io::Write::write_all(
            &mut std::io::stderr(),
            b"NOT TRIED: whom working directories belong to: only root can give them away\n",
        ));
        return;
    }
    let (stage, nobody) = (Stage::new(), 65_534);
    let owner = |path: &Path| std::os::unix::fs::MetadataExt::uid(&path.symlink_metadata().unwrap());
    let files = vec![("rezus_override.tf.json".to_owned(), "{}".to_owned())];
    let executor = stage.running_as(nobody, nobody);
    // One that was made while programs ran as the server is made anew.
    let root = prepare(&stage, directory(&stage, &FILES), &[]).await.unwrap();
    assert_eq!(owner(&root.work_dir), 0);
    let given = executor.prepare(&tenant(), directory(&stage, &FILES), files.clone()).await.unwrap();
    assert_eq!(given.work_dir, root.work_dir);
    for name in ["", "main.tf", "modules", "modules/m", "modules/m/m.tf", "rezus_override.tf.json"] {
        assert_eq!(owner(&given.work_dir.join(name)), nobody, "{name}");
    }

    let kept = stage.path().join("kept");
    write(&kept, &[("secret", "x"), ("linked", "x")]);
    std::os::unix::fs::symlink(&kept, given.work_dir.join(".terraform")).unwrap();
    std::os::unix::fs::symlink(kept.join("secret"), given.work_dir.join("link")).unwrap();
    std::fs::hard_link(kept.join("linked"), given.work_dir.join("hard")).unwrap();
    for text in [FILES[0].1, "changed"] {
        write(&given.work_dir, &[("main.tf", text)]);
        let again = executor.prepare(&tenant(), directory(&stage, &FILES), files.clone()).await.unwrap();
        assert_eq!(again, given);
        for name in ["", "secret", "linked"] {
            assert_eq!(owner(&kept.join(name)), 0, "{name}");
        }
        for name in ["", "main.tf", "rezus_override.tf.json"] {
            assert_eq!(owner(&again.work_dir.join(name)), nobody, "{name}");
        }
    }
}
