//! `token`: making, listing and revoking tokens.

use std::io::Write;

use clap::Subcommand;
use rezus_core::base::TenantName;
use serde_json::{Value, json};

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Output, Target, print_json};
use crate::compose::now;

#[derive(Debug, Subcommand)]
pub(super) enum TokenCommand {
    /// Make a token and print it, alone on the first line, once: only its hash is kept.
    Create {
        /// Whose token; your own if neither this nor --backend is given.
        #[arg(long, value_name = "USER", conflicts_with = "backend")]
        user: Option<String>,
        /// A token that opens this tenant's state and nothing else, for the backend block of its configuration.
        #[arg(long, value_name = "TENANT")]
        backend: Option<TenantName>,
        /// After how long it opens nothing any more, as 12h or 90d; never if absent.
        #[arg(long, value_name = "SPAN", value_parser = lifetime)]
        expires: Option<u64>,
        /// What it is for.
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
        #[command(flatten)]
        target: Target,
    },
    /// List tokens: your own, or all of them for an admin. No token is shown.
    List {
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
        #[command(flatten)]
        target: Target,
    },
    /// Revoke a token at once.
    Revoke {
        /// Its ID, as `token list` shows it.
        id: String,
        /// Also if it is the last one of an admin.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        target: Target,
    },
}

/// Reads a span in seconds; days and weeks are 24 and 168 hours.
fn lifetime(text: &str) -> Result<u64, String> {
    let whole = |digits: &str, factor: u64| digits.parse::<u64>().ok()?.checked_mul(factor);
    let days = text.strip_suffix('d').and_then(|days| whole(days, 86_400));
    let weeks = text.strip_suffix('w').and_then(|weeks| whole(weeks, 604_800));
    let other =
        || text.parse::<jiff::SignedDuration>().ok().and_then(|span| u64::try_from(span.as_secs()).ok());
    let seconds = days.or(weeks).or_else(other).filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "write a number and a unit, as 90d, 12h or 30m".to_owned())
}

impl TokenCommand {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Self::Create { user, backend, expires, note, target } => {
                let client = Client::open(&target).await?;
                let body = json!({
                    "user": user,
                    "tenant": backend.as_ref().map(TenantName::as_str),
                    "expiresInSeconds": expires,
                    "note": note,
                });
                let made = client.post("/rezus/v1/tokens", &body).await?;
                writeln!(out, "{}", cell(&made["token"]))?;
                let until = made["expiresAt"].as_str().map_or("until it is revoked", |at| at);
                let what = match backend {
                    Some(tenant) => {
                        format!("opens the state of {tenant}, as TF_HTTP_PASSWORD with any TF_HTTP_USERNAME")
                    }
                    None => format!("is of user {}", cell(&made["user"])),
                };
                writeln!(
                    out,
                    "token {} {what}; it works {}{until}",
                    cell(&made["id"]),
                    if made["expiresAt"].is_null() { "" } else { "until " }
                )?;
                Ok(())
            }
            Self::List { output, target } => {
                let list = Client::open(&target).await?.get("/rezus/v1/tokens", &[]).await?;
                if output == Output::Json {
                    return print_json(&list, out);
                }
                let heads = ["ID", "FOR", "STATE", "CREATED", "BY", "EXPIRES", "LAST USED", "NOTE"];
                Ok(table::print(&heads, items(&list).iter().map(row), out)?)
            }
            Self::Revoke { id, force, target } => {
                let client = Client::open(&target).await?;
                let force = if force { &[("force", "true")][..] } else { &[] };
                let path = format!("/rezus/v1/tokens/{}", super::user::segment(&id));
                client.send("DELETE", &path, force, bytes::Bytes::new()).await?.success()?;
                writeln!(out, "{id}: revoked")?;
                Ok(())
            }
        }
    }
}

fn row(token: &Value) -> Vec<String> {
    let owner = match token["tenant"].as_str() {
        Some(tenant) => format!("state of {tenant}"),
        None => format!("user {}", cell(&token["user"])),
    };
    let used = &token["lastUsedAt"];
    let note = token["note"].as_str().filter(|note| !note.is_empty()).unwrap_or("-");
    vec![
        cell(&token["id"]),
        owner,
        cell(&token["state"]),
        table::age(&token["createdAt"], now()),
        cell(&token["createdBy"]),
        token["expiresAt"].as_str().unwrap_or("never").to_owned(),
        if used.is_null() { "never".to_owned() } else { format!("{} ago", table::age(used, now())) },
        note.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_have_units() {
        for (text, seconds) in [("90d", 7_776_000), ("2w", 1_209_600), ("12h", 43_200), ("1h 30m", 5_400)] {
            assert_eq!(lifetime(text), Ok(seconds), "{text}");
        }
        for bad in ["", "90", "0d", "-1h", "d", "99999999999999999999d"] {
            assert!(lifetime(bad).is_err(), "{bad}");
        }
    }
}
