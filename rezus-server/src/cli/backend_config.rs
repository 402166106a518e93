//! `backend-config`: the block that points a configuration at rezus.

use std::io::Write;

use clap::Args;
use rezus_core::base::TenantName;

use super::client::Client;
use super::{CliError, Target};
use crate::config::Config;

/// Print the backend block of a tenant's configuration.
#[derive(Debug, Args)]
pub(super) struct BackendConfig {
    /// Which tenant.
    tenant: TenantName,
    /// The URL under which the configuration reaches the server; that of the running server if absent.
    #[arg(long)]
    url: Option<String>,
    /// Name the tenant in the query: /state?ID=TENANT.
    #[arg(long)]
    query: bool,
    #[command(flatten)]
    target: Target,
}

impl BackendConfig {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let url = match (&self.url, &self.target.server) {
            (Some(url), _) | (None, Some(url)) => url.clone(),
            (None, None) => {
                let client = Client::open(&self.target).await?;
                let server = client.get("/rezus/v1/server", &[]).await?;
                let default = || format!("http://{}", Config::default().server.plain);
                server["listeners"][0].as_str().map_or_else(default, ToOwned::to_owned)
            }
        };
        write!(out, "{}", block(&state_address(&url, &self.tenant, self.query)))?;
        Ok(())
    }
}

/// The address of a tenant's state. The path form is unambiguous: clients replace the `ID` of the other.
pub(super) fn state_address(url: &str, tenant: &TenantName, query: bool) -> String {
    let url = url.trim_end_matches('/');
    if query { format!("{url}/state?ID={tenant}") } else { format!("{url}/state/{tenant}") }
}

/// The block with all three addresses: without the last two, clients run unlocked and do not say so.
pub(super) fn block(address: &str) -> String {
    format!(
        "terraform {{
  backend \"http\" {{
    address        = \"{address}\"
    lock_address   = \"{address}\"
    unlock_address = \"{address}\"
  }}
}}
"
    )
}
