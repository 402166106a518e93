//! `lock`: who holds what, and letting it go for them.

use std::io::Write;

use clap::Subcommand;
use rezus_core::base::TenantName;
use serde_json::Value;

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Output, Target, print_json};

#[derive(Debug, Subcommand)]
pub(super) enum LockCommand {
    /// List the locks that are held and the freezes that operators set, of all tenants or of one.
    List {
        /// Of this tenant only.
        tenant: Option<TenantName>,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Release a tenant's lock for whoever holds it. Writes of the one that held it are refused from then on.
    Break {
        /// Whose lock.
        tenant: TenantName,
        /// Only if it is this one.
        #[arg(long)]
        id: Option<String>,
        /// Also while the run that holds it is under way.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
}

impl LockCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::List { tenant, output, target } => {
                let client = Client::open(&target).await?;
                let path = tenant.map_or_else(
                    || "/rezus/v1/locks".to_owned(),
                    |tenant| format!("/rezus/v1/tenants/{tenant}/locks"),
                );
                let locks = client.get(&path, &[]).await?;
                if output == Output::Json {
                    return print_json(&locks, out);
                }
                let rows = items(&locks).iter().map(|lock| {
                    vec![
                        cell(&lock["tenant"]),
                        cell(&lock["who"]),
                        cell(&lock["operation"]),
                        table::seconds(lock["ageSeconds"].as_u64().unwrap_or(0)),
                        cell(&lock["acquiredBy"]),
                        holder(lock),
                        // That of a freeze says the same again.
                        if lock["reason"].is_null() { cell(&lock["id"]) } else { "-".to_owned() },
                        cell(&lock["reason"]),
                    ]
                });
                let heads = ["TENANT", "WHO", "OPERATION", "AGE", "FROM", "HOLDER", "ID", "REASON"];
                table::print(&heads, rows, out)?;
                Ok(())
            }
            Self::Break { tenant, id, force, target } => {
                let client = Client::open(&target).await?;
                let id = id.iter().map(|id| ("id", id.as_str()));
                let query: Vec<(&str, &str)> = id.chain(force.then_some(("force", "true"))).collect();
                let path = format!("/rezus/v1/tenants/{tenant}/locks");
                let broken = client.send("DELETE", &path, &query, bytes::Bytes::new()).await?.json()?;
                match items(&broken).first() {
                    Some(lock) => writeln!(
                        out,
                        "{tenant}: broke the lock of {} ({}, {})",
                        cell(&lock["who"]),
                        cell(&lock["operation"]),
                        cell(&lock["id"])
                    )?,
                    None => writeln!(out, "{tenant}: no lock was held")?,
                }
                Ok(())
            }
        }
    }
}

/// Whether whoever holds a lock lives, and which run that is.
fn holder(lock: &Value) -> String {
    let holder = cell(&lock["holder"]);
    lock["run"].as_str().map_or_else(|| holder.clone(), |run| format!("{holder} (run {run})"))
}
