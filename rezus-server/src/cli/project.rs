//! `project`: what a state file declares, without a server.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rezus_core::declared::VersionNumber;
use rezus_core::declared::document::{self, Document};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::projection;
use rezus_core::declared::resource::{AddressType, Machine, Projection, Role};

use super::mappings;
use super::{CliError, table};
use crate::kube;

/// Print what the API would list for a state file.
#[derive(Debug, Args)]
pub(super) struct Project {
    /// The state's file; - for standard input.
    file: PathBuf,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t)]
    output: ProjectOutput,
    /// A directory of mappings on top of the built-in ones.
    #[arg(long, value_name = "DIR")]
    mappings: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ProjectOutput {
    /// Machines as a table.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// All resources, as a list.
    Json,
    /// The same.
    Yaml,
}

impl Project {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let mappings = mappings::load(self.mappings.as_deref())?;
        let body = super::state::push::read(&self.file)?;
        let name = self.file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("state").to_owned();
        let projection = project(&mappings, &self.file, &body)?;
        let list = kube::list(&name, &projection);
        match self.output {
            ProjectOutput::Table => print_machines(&projection, false, out)?,
            ProjectOutput::Wide => print_machines(&projection, true, out)?,
            ProjectOutput::Json => {
                serde_json::to_writer_pretty(&mut *out, &list).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            ProjectOutput::Yaml => {
                let value = serde_json::to_value(&list).map_err(io::Error::from)?;
                let yaml = serde_saphyr::to_string(&value).map_err(io::Error::other)?;
                out.write_all(yaml.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// Projects the state in a file.
pub(super) fn project(mappings: &Mappings, file: &Path, body: &[u8]) -> Result<Projection, CliError> {
    let refuse = |reason: String| CliError::NoState { path: file.display().to_string(), reason };
    let document = document::read_with(body, &|resource_type| mappings.secret_rules(resource_type));
    match document.map_err(|error| refuse(error.to_string()))? {
        Document::Plain(state) => Ok(projection::project(mappings, VersionNumber::FIRST, body, &state.rows)),
        Document::Encrypted(_) => {
            Err(refuse("it is encrypted: `tofu state pull` with its key gives the state in clear".to_owned()))
        }
    }
}

fn print_machines(projection: &Projection, wide: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let cluster = &projection.cluster;
    let facts = [
        ("cluster", &cluster.cluster_name),
        ("endpoint", &cluster.endpoint),
        ("Kubernetes", &cluster.kubernetes_version),
        ("Talos", &cluster.talos_version),
    ];
    let facts: Vec<String> =
        facts.iter().filter_map(|(name, fact)| fact.as_ref().map(|fact| format!("{name} {fact}"))).collect();
    if !facts.is_empty() {
        writeln!(out, "{}\n", facts.join(", "))?;
    }
    let mut heads = vec!["NAME", "ROLE", "ADDRESS", "PROVIDER", "GROUP", "PROBLEMS"];
    if wide {
        heads.extend(["TYPE", "REGION", "ZONE", "PROVIDER-ID", "STATE-ADDRESS"]);
    }
    table::print(&heads, projection.machines.iter().map(|machine| row(machine, wide)), out)?;
    for (kind, count) in &cluster.unmapped {
        writeln!(out, "no mapping knows {kind} ({count})")?;
    }
    Ok(())
}

fn row(machine: &Machine, wide: bool) -> Vec<String> {
    let text = |text: Option<&str>| text.filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    let of_kind = |kind| machine.addresses.iter().find(move |address| address.kind == kind);
    let address = of_kind(AddressType::InternalIp).or_else(|| of_kind(AddressType::ExternalIp));
    let mut row = vec![
        machine.object_name.clone(),
        text(machine.role.map(Role::as_str)),
        text(address.map(|address| address.address.as_str())),
        machine.provider.to_string(),
        text(machine.node_group.as_deref()),
        if machine.problems.is_empty() { "-".to_owned() } else { machine.problems.len().to_string() },
    ];
    if wide {
        row.extend([
            text(machine.instance_type.as_deref()),
            text(machine.region.as_deref()),
            text(machine.zone.as_deref()),
            text(machine.provider_id.as_deref()),
            machine.address.to_string(),
        ]);
    }
    row.iter().map(|cell| table::harmless(cell)).collect()
}
