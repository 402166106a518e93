//! `mappings`: checking files of one's own, and holding them against states.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use rezus_core::declared::mapping::{Mappings, Origin};
use serde_json::Value;

use super::{CliError, project, table};
use crate::kube::{self, Expected};
use crate::mapping_files;

#[derive(Debug, Subcommand)]
pub(super) enum MappingsCommand {
    /// Check the mappings of a directory on top of the built-in ones.
    Check {
        /// The directory: its files named *.yaml and *.yml.
        dir: PathBuf,
    },
    /// Hold the mappings of a directory against the states beside them: what NAME.tfstate declares must be what
    /// NAME.expect.json lists, as `project -o json` prints it.
    Test {
        /// The directory.
        dir: PathBuf,
        /// Write down what is declared now instead.
        #[arg(long)]
        update: bool,
    },
    /// List the mappings in force: the built-in ones, and those of a directory.
    List {
        /// The directory.
        dir: Option<PathBuf>,
    },
}

impl MappingsCommand {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::Check { dir } => {
                let files = mapping_files::read(&dir)?;
                mapping_files::compile(&files)?;
                writeln!(out, "{}: {} mappings are sound", dir.display(), files.len())?;
                Ok(())
            }
            Self::Test { dir, update } => test(&dir, update, out),
            Self::List { dir } => {
                let mappings = load(dir.as_deref())?;
                let rows = mappings.providers().iter().map(|provider| {
                    let mapped = provider.types.iter().filter(|(_, kind)| kind.is_some()).count();
                    vec![
                        provider.name.clone(),
                        mapped.to_string(),
                        provider.types.len().to_string(),
                        match &provider.origin {
                            Origin::BuiltIn => "built in".to_owned(),
                            Origin::File(path) => table::harmless(path),
                        },
                        table::harmless(&provider.description),
                    ]
                });
                table::print(&["NAME", "MAPPED", "TYPES", "ORIGIN", "DESCRIPTION"], rows, out)?;
                Ok(())
            }
        }
    }
}

/// Returns the built-in mappings, with those of a directory on top.
pub(super) fn load(dir: Option<&Path>) -> Result<Mappings, CliError> {
    match dir {
        Some(dir) => Ok(mapping_files::load(dir)?),
        None => Ok(Mappings::built_in()),
    }
}

fn read_error(path: &Path, source: io::Error) -> CliError {
    CliError::File { path: path.display().to_string(), what: "read", source }
}

fn test(dir: &Path, update: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let mappings = mapping_files::load(dir)?;
    let states = mapping_files::paths(dir, &["tfstate"])?;
    let mut failed = 0;
    for state in &states {
        let body = std::fs::read(state).map_err(|source| read_error(state, source))?;
        let name = state.file_stem().and_then(|stem| stem.to_str()).unwrap_or("state");
        let list = kube::list(name, &project::project(&mappings, state, &body)?);
        let text = serde_json::to_string_pretty(&list).map_err(io::Error::from)?;
        let expectation = state.with_extension("expect.json");
        if update {
            std::fs::write(&expectation, text + "\n").map_err(|source| CliError::File {
                path: expectation.display().to_string(),
                what: "written",
                source,
            })?;
            writeln!(out, "{}: written down", expectation.display())?;
            continue;
        }
        let expected = std::fs::read(&expectation).map_err(|source| read_error(&expectation, source))?;
        let differences = differences(&expected, text.as_bytes())?;
        if differences.is_empty() {
            writeln!(out, "{}: as expected", state.display())?;
        } else {
            failed += 1;
            writeln!(out, "{}: not as expected", state.display())?;
            for difference in differences {
                writeln!(out, "  {}", table::harmless(&difference))?;
            }
        }
    }
    match (states.len(), failed) {
        (0, _) => Err(CliError::Usage(format!("{} has no *.tfstate to test with", dir.display()))),
        (_, 0) => Ok(()),
        (all, failed) => {
            Err(CliError::Unexpected(format!("{failed} of {all} states declare something else")))
        }
    }
}

/// Says what differs, object by object and field by field.
fn differences(expected: &[u8], found: &[u8]) -> Result<Vec<String>, CliError> {
    let read = |text: &[u8]| {
        serde_json::from_slice::<Expected>(text)
            .map_err(|_| CliError::Unexpected("an expectation is no list of objects in JSON".to_owned()))
    };
    let (expected, found) = (read(expected)?.items, read(found)?.items);
    let key =
        |object: &Value| format!("{} {}", object["kind"].as_str().unwrap_or("?"), object["metadata"]["name"]);
    let mut differences = Vec::new();
    for object in &expected {
        let Some(other) = found.iter().find(|other| key(other) == key(object)) else {
            differences.push(format!("{} is not declared", key(object)));
            continue;
        };
        for part in ["metadata", "spec"] {
            let empty = serde_json::Map::new();
            let fields =
                |object: &'_ Value| object[part].as_object().cloned().unwrap_or_else(|| empty.clone());
            let (wanted, is) = (fields(object), fields(other));
            let names: std::collections::BTreeSet<&String> = wanted.keys().chain(is.keys()).collect();
            for name in names {
                if wanted.get(name) != is.get(name) {
                    let shown =
                        |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
                    differences.push(format!(
                        "{} {part}.{name}: expected {}, found {}",
                        key(object),
                        shown(wanted.get(name)),
                        shown(is.get(name))
                    ));
                }
            }
        }
    }
    let unexpected = found.iter().filter(|object| !expected.iter().any(|other| key(other) == key(object)));
    differences.extend(unexpected.map(|object| format!("{} is declared, and not expected", key(object))));
    Ok(differences)
}
