//! `record`: what is read of a cluster, into a file that can be replayed without it.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rezus_core::base::TenantName;
use tokio::time::{Instant, timeout_at};

use super::client::Client;
use super::{CliError, Target};
use crate::config::Span;

/// Record what the server reads of a tenant's cluster. It has no secrets in it, but names and addresses.
#[derive(Debug, Args)]
pub(super) struct Record {
    /// Whose cluster.
    tenant: TenantName,
    /// For how long: each source should be read once.
    #[arg(long = "for", value_name = "SPAN", default_value = "90s")]
    span: Span,
    /// Where it goes; a file of that name is replaced.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    target: Target,
}

impl Record {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let client = Client::open(&self.target).await?;
        if !client.is_served() {
            return Err(CliError::Unexpected(
                "no server runs on the data directory, so nobody reads clusters: start it with `rezus-server serve`"
                    .to_owned(),
            ));
        }
        let Span(span) = self.span;
        let until = Instant::now() + span.max(Duration::from_secs(1));
        let path = format!("/rezus/v1/tenants/{}/readings", self.tenant);
        let mut pieces = client.stream(&path, &[]).await?;
        let mut recorded = Vec::new();
        while let Ok(piece) = timeout_at(until, pieces.next()).await {
            let Some(piece) = piece? else { break };
            recorded.extend_from_slice(&piece);
        }
        // What was cut off is no turn.
        let whole = recorded.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        recorded.truncate(whole);
        let turns = recorded.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        if turns == 0 {
            return Err(CliError::Unexpected(format!(
                "nothing was read of {} in that time: is it observed? See `rezus-server get tenants`",
                self.tenant
            )));
        }
        let path = self.output.display().to_string();
        std::fs::write(&self.output, recorded).map_err(|source| CliError::File {
            path: path.clone(),
            what: "written",
            source,
        })?;
        writeln!(out, "{turns} turns of reading {} are in {path}", self.tenant)?;
        Ok(())
    }
}
