//! `state push`: the HTTP backend's own way of writing, with the answer shown.

use std::io::{self, Read as _, Write};
use std::path::Path;

use bytes::Bytes;
use rezus_core::base::TenantName;
use serde_json::json;

use super::super::CliError;
use super::super::client::Client;
use crate::compose::now;
use crate::telemetry::VERSION;

/// Reads a file, or standard input for `-`.
pub(in super::super) fn read(file: &Path) -> Result<Bytes, CliError> {
    let mut body = Vec::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().read_to_end(&mut body)
    } else {
        std::fs::File::open(file).and_then(|mut file| file.read_to_end(&mut body))
    };
    read.map_err(|source| CliError::File { path: file.display().to_string(), what: "read", source })?;
    Ok(body.into())
}

/// Locks, writes, unlocks. Only a lock of the operation `state-push` lets the server set serial and lineage aside.
pub(in super::super) async fn push(
    client: &Client,
    tenant: &TenantName,
    body: Bytes,
    force: bool,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let path = format!("/state/{tenant}");
    let id = uuid::Uuid::new_v4().to_string();
    let lock = json!({
        "ID": id,
        "Operation": if force { "state-push" } else { "rezus state push" },
        "Info": "",
        "Who": who(),
        "Version": VERSION,
        "Created": now().to_string(),
        "Path": "",
    });
    let lock = Bytes::from(lock.to_string());
    client.send("LOCK", &path, &[], lock.clone()).await?.success()?;
    let written = client.send("POST", &path, &[("ID", &id)], body).await;
    let unlocked = client.send("UNLOCK", &path, &[], lock).await;
    written?.success()?;
    unlocked?.success()?;
    let shown = client.get(&format!("/rezus/v1/tenants/{tenant}"), &[]).await?;
    writeln!(
        out,
        "{tenant}: version {} with serial {}",
        shown["state"]["version"], shown["state"]["serial"]
    )?;
    Ok(())
}

fn who() -> String {
    let user = std::env::var("USER").unwrap_or_else(|_| "rezus".to_owned());
    let host = nix::unistd::gethostname().ok().and_then(|host| host.into_string().ok());
    format!("{user}@{}", host.as_deref().unwrap_or("localhost"))
}
