//! `state`: what tenants declare, and every version of it.

pub(super) mod push;
pub(super) mod show;

use std::io::Write;
use std::path::PathBuf;

use bytes::Bytes;
use clap::Subcommand;
use rezus_core::base::TenantName;
use rezus_core::declared::ResourceAddress;
use serde_json::{Value, json};

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Output, Target, print_json};
use crate::compose::now;

#[derive(Debug, Subcommand)]
pub(super) enum StateCommand {
    /// List what a tenant's current state declares.
    List {
        /// Whose state.
        tenant: TenantName,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one resource instance, with what is secret masked.
    Show {
        /// Whose state.
        tenant: TenantName,
        /// The instance, as `state list` prints it.
        address: ResourceAddress,
        /// An old generation that waits to be destroyed, by its key.
        #[arg(long, value_name = "KEY")]
        deposed: Option<String>,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Print a state byte for byte, secrets included.
    Get {
        /// Whose state.
        tenant: TenantName,
        /// An earlier version.
        #[arg(long, value_name = "N")]
        version: Option<u64>,
        #[command(flatten)]
        target: Target,
    },
    /// Write a state, under the lock.
    Push {
        /// Whose state.
        tenant: TenantName,
        /// The state's file; - for standard input.
        file: PathBuf,
        /// Also against the rules of serial and lineage.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
    /// List the versions of a tenant's state, newest first.
    Versions {
        /// Whose state.
        tenant: TenantName,
        /// Also snapshots of operations under way.
        #[arg(long)]
        intermediate: bool,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Keep a version from being removed by retention, or let it go again.
    Pin {
        /// Whose state.
        tenant: TenantName,
        /// Which version.
        version: u64,
        /// Let it go again.
        #[arg(long)]
        remove: bool,
        #[command(flatten)]
        target: Target,
    },
    /// List the last requests that were refused, newest first, and why: no client shows that.
    Refusals {
        /// Whose state.
        tenant: TenantName,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Bring an earlier version back as a new one.
    Rollback {
        /// Whose state.
        tenant: TenantName,
        /// Which version.
        version: u64,
        #[command(flatten)]
        target: Target,
    },
    /// Compare two versions, resource by resource.
    Diff {
        /// Whose state.
        tenant: TenantName,
        /// The earlier version.
        from: u64,
        /// The later version.
        to: u64,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Remove versions that retention no longer keeps, now.
    Prune {
        /// Only say which.
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        target: Target,
    },
}

impl StateCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::List { tenant, output, target } => {
                show::list(&Client::open(&target).await?, &tenant, output, out).await
            }
            Self::Show { tenant, address, deposed, output, target } => {
                let client = Client::open(&target).await?;
                show::object(&client, &tenant, &address, deposed.as_deref(), output, out).await
            }
            Self::Get { tenant, version, target } => {
                let path = match version {
                    Some(version) => format!("/rezus/v1/tenants/{tenant}/versions/{version}/body"),
                    None => format!("/state/{tenant}"),
                };
                let answer = Client::open(&target).await?.send("GET", &path, &[], Bytes::new()).await?;
                out.write_all(&answer.success()?)?;
                Ok(())
            }
            Self::Push { tenant, file, force, target } => {
                let body = push::read(&file)?;
                push::push(&Client::open(&target).await?, &tenant, body, force, out).await
            }
            Self::Versions { tenant, intermediate, output, target } => {
                let query = [("intermediate", if intermediate { "true" } else { "false" })];
                let path = format!("/rezus/v1/tenants/{tenant}/versions");
                let versions = Client::open(&target).await?.get(&path, &query).await?;
                if output == Output::Json {
                    print_json(&versions, out)
                } else {
                    print_versions(&versions, out)
                }
            }
            Self::Pin { tenant, version, remove, target } => {
                let path = format!("/rezus/v1/tenants/{tenant}/versions/{version}");
                Client::open(&target).await?.patch(&path, &json!({ "pinned": !remove })).await?;
                let effect = if remove { "may be removed by retention" } else { "is kept" };
                writeln!(out, "{tenant}: version {version} {effect}")?;
                Ok(())
            }
            Self::Refusals { tenant, output, target } => {
                let path = format!("/rezus/v1/tenants/{tenant}/refusals");
                let refusals = Client::open(&target).await?.get(&path, &[]).await?;
                if output == Output::Json {
                    print_json(&refusals, out)
                } else {
                    print_refusals(&refusals, out)
                }
            }
            Self::Rollback { tenant, version, target } => {
                let path = format!("/rezus/v1/tenants/{tenant}/rollback");
                let written =
                    Client::open(&target).await?.post(&path, &json!({ "version": version })).await?;
                writeln!(
                    out,
                    "{tenant}: version {version} is back as version {} with serial {}",
                    written["version"],
                    cell(&written["serial"])
                )?;
                Ok(())
            }
            Self::Diff { tenant, from, to, output, target } => {
                let query = [("from", from.to_string()), ("to", to.to_string())];
                let query: Vec<(&str, &str)> =
                    query.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let path = format!("/rezus/v1/tenants/{tenant}/diff");
                let diff = Client::open(&target).await?.get(&path, &query).await?;
                if output == Output::Json { print_json(&diff, out) } else { print_diff(&diff, out) }
            }
            Self::Prune { dry_run, target } => {
                let client = Client::open(&target).await?;
                let pruned = client.post("/rezus/v1/prune", &json!({ "dryRun": dry_run })).await?;
                print_pruned(&pruned, dry_run, out)
            }
        }
    }
}

fn print_versions(versions: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let now = now();
    let rows = items(versions).iter().rev().map(|version| {
        vec![
            cell(&version["version"]),
            cell(&version["serial"]),
            cell(&version["resources"]),
            table::size(&version["sizeBytes"]),
            table::age(&version["writtenAt"], now),
            cell(&version["writtenBy"]),
            cell(&version["lockOperation"]),
            marks(version),
        ]
    });
    let heads = ["VERSION", "SERIAL", "RESOURCES", "SIZE", "AGE", "BY", "OPERATION", "MARKS"];
    table::print(&heads, rows, out)?;
    Ok(())
}

/// What is to be known of a version beyond its numbers.
fn marks(version: &Value) -> String {
    let names = ["deleted", "encrypted", "forced", "unlocked", "intermediate", "pinned"];
    let mut marks: Vec<String> =
        names.into_iter().filter(|name| version[*name] == true).map(ToOwned::to_owned).collect();
    if let Some(earlier) = version["rollbackOf"].as_u64() {
        marks.push(format!("rollback of {earlier}"));
    }
    if marks.is_empty() { "-".to_owned() } else { marks.join(", ") }
}

fn print_refusals(refusals: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let now = now();
    let rows = items(refusals).iter().map(|refusal| {
        vec![
            table::age(&refusal["at"], now),
            cell(&refusal["operation"]),
            cell(&refusal["code"]),
            cell(&refusal["who"]),
            cell(&refusal["reason"]),
        ]
    });
    table::print(&["AGE", "OPERATION", "CODE", "WHO", "REASON"], rows, out)?;
    Ok(())
}

fn print_diff(diff: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let changes = items(diff);
    if changes.is_empty() {
        writeln!(out, "versions {} and {} declare the same", diff["from"], diff["to"])?;
    }
    for change in changes {
        let sign = match change["change"].as_str() {
            Some("added") => "+",
            Some("removed") => "-",
            _ => "~",
        };
        let deposed = change["deposed"].as_str().map(|key| format!(" (deposed {key})")).unwrap_or_default();
        writeln!(out, "{sign} {}{deposed}", cell(&change["address"]))?;
        for attribute in change["attributes"].as_array().map(Vec::as_slice).unwrap_or_default() {
            let side = |name: &str| attribute.get(name).map_or_else(|| "-".to_owned(), ToString::to_string);
            writeln!(out, "    {}: {} -> {}", cell(&attribute["path"]), side("before"), side("after"))?;
        }
    }
    Ok(())
}

fn print_pruned(pruned: &Value, dry_run: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let tenants = items(pruned);
    let verb = if dry_run { "would go" } else { "went" };
    for tenant in tenants {
        let versions: Vec<String> =
            tenant["versions"].as_array().into_iter().flatten().map(ToString::to_string).collect();
        writeln!(
            out,
            "{}: {} versions {verb}, {} of states: {}",
            cell(&tenant["tenant"]),
            versions.len(),
            table::size(&tenant["sizeBytes"]),
            versions.join(" ")
        )?;
    }
    if tenants.is_empty() {
        writeln!(out, "no version is past its retention")?;
    }
    writeln!(
        out,
        "the database has {}, {} of it free",
        table::size(&pruned["fileBytes"]),
        table::size(&pruned["freeBytes"])
    )?;
    Ok(())
}
