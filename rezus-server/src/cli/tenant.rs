//! `tenant`: who there is, and what of them is to be known at a glance.

mod configure;
mod pack;
mod settings;

use std::io::Write;

use clap::{Subcommand, ValueEnum};
use rezus_core::base::TenantName;
use serde_json::{Value, json};

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Output, Target, print_json};
use crate::compose::now;

#[derive(Debug, Subcommand)]
pub(super) enum TenantCommand {
    /// List all tenants.
    List {
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Show one tenant: its state, its lock, and what was refused since the last accepted write.
    Show {
        /// Which one.
        tenant: TenantName,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Create a tenant that has no state yet.
    Create {
        /// Its name: a DNS label that is no UUID.
        tenant: TenantName,
        #[command(flatten)]
        target: Target,
    },
    /// Forget a tenant with its whole history.
    Delete {
        /// Which one.
        tenant: TenantName,
        /// Also while its state still declares something.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Say with what a tenant's runs are made, and label it.
    Configure(Box<configure::Configure>),
    /// Stop a tenant's runs, and its clients where asked, until somebody unfreezes it.
    Freeze {
        /// Which one.
        tenant: TenantName,
        /// Why: whoever is refused is told.
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Refuse locks and writes of clients as well. What holds the lock already may finish.
        #[arg(long)]
        clients: bool,
        #[command(flatten)]
        target: Target,
    },
    /// Let a tenant go that was frozen.
    Unfreeze {
        /// Which one.
        tenant: TenantName,
        #[command(flatten)]
        target: Target,
    },
    /// Refuse writes that are not made under the lock, or accept them again.
    RequireLocks {
        /// Of which tenant.
        tenant: TenantName,
        /// Whether to refuse them.
        #[arg(value_enum, default_value_t)]
        switch: Switch,
        #[command(flatten)]
        target: Target,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    /// Refuse them.
    #[default]
    On,
    /// Accept them, marked as unlocked.
    Off,
}

impl TenantCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::List { output, target } => {
                let list = Client::open(&target).await?.get("/rezus/v1/tenants", &[]).await?;
                if output == Output::Json {
                    return print_json(&list, out);
                }
                table::print(
                    &[
                        "TENANT",
                        "VERSION",
                        "SERIAL",
                        "RESOURCES",
                        "SIZE",
                        "WRITTEN",
                        "LOCKED BY",
                        "LAST REFUSAL",
                    ],
                    items(&list).iter().map(row),
                    out,
                )?;
                Ok(())
            }
            Self::Show { tenant, output, target } => {
                let client = Client::open(&target).await?;
                let shown = client.get(&format!("/rezus/v1/tenants/{tenant}"), &[]).await?;
                if output == Output::Json { print_json(&shown, out) } else { print_tenant(&shown, out) }
            }
            Self::Create { tenant, target } => {
                let client = Client::open(&target).await?;
                client.post("/rezus/v1/tenants", &json!({ "name": tenant.as_str() })).await?;
                writeln!(
                    out,
                    "{tenant}: created; `rezus-server backend-config {tenant}` prints its backend block"
                )?;
                Ok(())
            }
            Self::Delete { tenant, force, target } => {
                let client = Client::open(&target).await?;
                let query: &[(&str, &str)] = if force { &[("force", "true")] } else { &[] };
                let path = format!("/rezus/v1/tenants/{tenant}");
                client.send("DELETE", &path, query, bytes::Bytes::new()).await?.success()?;
                writeln!(out, "{tenant}: deleted with its history")?;
                Ok(())
            }
            Self::Configure(configure) => configure.run(out).await,
            Self::Freeze { tenant, reason, clients, target } => {
                let client = Client::open(&target).await?;
                let body = json!({ "reason": reason, "clients": clients }).to_string();
                let path = format!("/rezus/v1/tenants/{tenant}/freeze");
                client.send("PUT", &path, &[], body.into()).await?.success()?;
                let whom = if clients { "runs and clients are refused" } else { "runs are refused" };
                writeln!(out, "{tenant}: frozen; {whom} until `rezus-server tenant unfreeze {tenant}`")?;
                Ok(())
            }
            Self::Unfreeze { tenant, target } => {
                let client = Client::open(&target).await?;
                let path = format!("/rezus/v1/tenants/{tenant}/freeze");
                client.send("DELETE", &path, &[], bytes::Bytes::new()).await?.success()?;
                writeln!(out, "{tenant}: not frozen")?;
                Ok(())
            }
            Self::RequireLocks { tenant, switch, target } => {
                let client = Client::open(&target).await?;
                let body = json!({ "requireLocks": switch == Switch::On });
                client.patch(&format!("/rezus/v1/tenants/{tenant}"), &body).await?;
                let effect = if switch == Switch::On { "refused" } else { "accepted, marked as unlocked" };
                writeln!(out, "{tenant}: writes without the lock are {effect}")?;
                Ok(())
            }
        }
    }
}

fn row(tenant: &Value) -> Vec<String> {
    let now = now();
    let state = &tenant["state"];
    let refusal = &tenant["refusal"];
    vec![
        cell(&tenant["name"]),
        cell(&state["version"]),
        cell(&state["serial"]),
        resources(state),
        table::size(&state["sizeBytes"]),
        table::age(&state["writtenAt"], now),
        cell(&tenant["lock"]["who"]),
        if refusal.is_null() {
            "-".to_owned()
        } else {
            format!(
                "{} {} {} ago",
                cell(&refusal["operation"]),
                refusal["code"],
                table::age(&refusal["at"], now)
            )
        },
    ]
}

/// How many objects a state holds, or why that is not known.
fn resources(state: &Value) -> String {
    if state["deleted"] == true {
        "deleted".to_owned()
    } else if state["encrypted"] == true {
        "encrypted".to_owned()
    } else {
        cell(&state["resources"])
    }
}

/// Prints a tenant, line by line.
pub(super) fn print_tenant(tenant: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let now = now();
    let state = &tenant["state"];
    let mut line = |name: &str, value: String| writeln!(out, "{name:<15}{value}");
    line("Tenant:", cell(&tenant["name"]))?;
    line("Created:", cell(&tenant["createdAt"]))?;
    line("Require locks:", cell(&tenant["requireLocks"]))?;
    line("Encryption:", cell(&tenant["encryption"]))?;
    if state.is_null() {
        line("State:", "none yet".to_owned())?;
    } else {
        line("Version:", format!("{} (serial {})", state["version"], cell(&state["serial"])))?;
        line("Lineage:", cell(&state["lineage"]))?;
        line("Resources:", resources(state))?;
        line("Size:", table::size(&state["sizeBytes"]))?;
        line(
            "Written:",
            format!(
                "{} ({} ago) by {} with {}",
                cell(&state["writtenAt"]),
                table::age(&state["writtenAt"], now),
                cell(&state["writtenBy"]),
                cell(&state["writer"]),
            ),
        )?;
        if state["unlocked"] == true && state["deleted"] != true {
            line("Warning:", "the current version was written without a lock".to_owned())?;
        }
        if state["forced"] == true {
            line("Note:", "the current version was forced over the rules of serial and lineage".to_owned())?;
        }
    }
    let lock = &tenant["lock"];
    if lock.is_null() {
        line("Lock:", "free".to_owned())?;
    } else {
        line(
            "Lock:",
            format!(
                "held by {} with {} for {} ({})",
                cell(&lock["who"]),
                cell(&lock["operation"]),
                table::seconds(lock["ageSeconds"].as_u64().unwrap_or(0)),
                cell(&lock["id"]),
            ),
        )?;
    }
    print_refusal(tenant, out)?;
    settings::print(tenant, out)
}

/// Prints the refusal that no accepted write followed: no client has shown it to anybody.
pub(super) fn print_refusal(tenant: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let refusal = &tenant["refusal"];
    if !refusal.is_null() {
        writeln!(
            out,
            "Refused since:  {} by {} at {} ({}): {}",
            cell(&refusal["operation"]),
            cell(&refusal["who"]),
            cell(&refusal["at"]),
            refusal["code"],
            cell(&refusal["reason"]),
        )?;
    }
    Ok(())
}
