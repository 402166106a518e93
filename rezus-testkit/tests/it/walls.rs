//! The walls between crates and planes, read from the manifests and the imports.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which of our crates each of our crates may depend on, outside of its tests.
const ARROWS: [(&str, &[&str]); 6] = [
    ("rezus-core", &[]),
    ("rezus-adapters", &["rezus-core"]),
    ("rezus-testkit", &["rezus-core"]),
    ("rezus-server", &["rezus-adapters", "rezus-core"]),
    ("rezus-examples", &["rezus-adapters", "rezus-core", "rezus-server"]),
    ("rezus-benches", &["rezus-adapters", "rezus-core", "rezus-server", "rezus-testkit"]),
];

/// All that the core may use: nothing that does I/O, knows a runtime, or speaks a protocol.
const CORE_MAY_USE: [&str; 21] = [
    "aho-corasick",
    "async-trait",
    "base64",
    "bytes",
    "crc32fast",
    "jiff",
    "md-5",
    "memchr",
    "promql-parser",
    "regex",
    "regex-lite",
    "schemars",
    "serde",
    "serde-saphyr",
    "serde_json",
    "sha2",
    "subtle",
    "thiserror",
    "unicode-general-category",
    "uuid",
    "zeroize",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The normal dependencies of each member.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let normal = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
        normal.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect()
    };
    packages.iter().map(|package| (package["name"].as_str().unwrap().to_owned(), normal(package))).collect()
}

#[test]
fn arrows_between_crates_point_inwards() {
    let found = dependencies();
    let members: BTreeSet<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    assert_eq!(found.keys().map(String::as_str).collect::<BTreeSet<_>>(), members);
    for (name, allowed) in ARROWS {
        let ours = found[name].iter().filter(|dependency| members.contains(dependency.as_str()));
        for dependency in ours {
            assert!(allowed.contains(&dependency.as_str()), "{name} -> {dependency}");
        }
    }
}

#[test]
fn the_core_uses_nothing_that_touches_the_outside() {
    for dependency in &dependencies()["rezus-core"] {
        assert!(CORE_MAY_USE.contains(&dependency.as_str()), "rezus-core -> {dependency}");
    }
}

#[test]
fn client_libraries_are_for_whoever_is_a_client() {
    for (member, dependencies) in dependencies() {
        let is_client = ["rezus-adapters", "rezus-examples"].contains(&member.as_str());
        assert_eq!(dependencies.contains("kube"), is_client, "{member}");
        assert_eq!(dependencies.contains("k8s-openapi"), is_client, "{member}");
    }
}

/// All source files below a folder, with their text.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// Code without its comments: a comment may name what code may not.
fn names(text: &str, word: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| line.contains(word))
}

#[test]
fn the_planes_do_not_name_each_other() {
    let core = root().join("rezus-core/src");
    let walls = [
        ("declared", ["observed", "access::", "client::", "runs::"].as_slice()),
        ("observed", &["declared", "access::", "client::", "runs::"]),
        ("access", &["declared", "observed", "client::", "runs::"]),
        ("client", &["access::", "declared::", "observed::", "base::", "runs::"]),
        ("base", &["declared", "observed", "access::", "client::", "runs::"]),
        ("runs", &["observed", "access::", "client::"]),
        ("series", &["declared", "observed", "access::", "client::", "runs::"]),
    ];
    for (plane, forbidden) in walls {
        let mut files = sources(&core.join(plane));
        let front = core.join(format!("{plane}.rs"));
        files.push((front.clone(), std::fs::read_to_string(front).unwrap()));
        for (path, text) in files {
            for word in forbidden {
                assert!(!names(&text, word), "{} names {word}", path.display());
            }
        }
    }
}

#[test]
fn adapters_are_named_where_things_are_put_together_and_nowhere_else() {
    for (path, text) in sources(&root().join("rezus-server/src")) {
        let may = path.ends_with("compose.rs") || path.ends_with("cli/backup.rs");
        assert!(may || !names(&text, "rezus_adapters"), "{} names an adapter", path.display());
    }
}

#[test]
fn every_member_takes_the_workspaces_lints() {
    for member in ["rezus-core", "rezus-adapters", "rezus-testkit", "rezus-server", "examples", "benches"] {
        let manifest = std::fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{member}");
    }
}

#[test]
fn every_file_says_first_what_lives_there_and_fits_a_readers_head() {
    for (path, text) in sources(&root()) {
        assert!(text.starts_with("//! "), "{} does not say what lives there", path.display());
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines", path.display());
    }
}
