//! `audit`: who did what.

use std::io::Write;

use clap::Args;
use rezus_core::base::TenantName;
use serde_json::Value;

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Output, Target, print_json};

/// List what was done, newest first: each write, lock, token and look at a secret, with who, from where and the outcome.
#[derive(Debug, Args)]
pub(super) struct Audit {
    /// In this tenant only.
    #[arg(long)]
    tenant: Option<TenantName>,
    /// By this user only.
    #[arg(long, value_name = "USER")]
    who: Option<String>,
    /// How many at most.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    target: Target,
}

impl Audit {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let client = Client::open(&self.target).await?;
        let limit = self.limit.to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(self.tenant.as_ref().map(|tenant| ("tenant", tenant.as_str())));
        query.extend(self.who.as_deref().map(|who| ("who", who)));
        let list = client.get("/rezus/v1/audit", &query).await?;
        if self.output == Output::Json {
            return print_json(&list, out);
        }
        let row = |row: &Value| {
            let who = row["who"].as_str().filter(|who| !who.is_empty()).unwrap_or("-");
            vec![
                cell(&row["at"]),
                who.to_owned(),
                cell(&row["from"]),
                cell(&row["action"]),
                cell(&row["tenant"]),
                cell(&row["object"]),
                cell(&row["code"]),
            ]
        };
        let heads = ["AT", "WHO", "FROM", "ACTION", "TENANT", "ON", "OUTCOME"];
        Ok(table::print(&heads, items(&list).iter().map(row), out)?)
    }
}
