//! `state list` and `state show`.

use std::io::Write;

use bytes::Bytes;
use rezus_core::base::TenantName;
use rezus_core::declared::{ResourceAddress, masked};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::client::Client;
use super::super::table::{self, cell, items};
use super::super::tenant::print_refusal;
use super::super::{CliError, Output, print_json};

/// Prints what a tenant's current state declares, and what was refused since it was written.
pub(in super::super) async fn list(
    client: &Client,
    tenant: &TenantName,
    output: Output,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let resources = client.get(&format!("/rezus/v1/tenants/{tenant}/resources"), &[]).await;
    if output == Output::Json {
        return print_json(&resources?, out);
    }
    // Asked for first, told in any case: where the state cannot be shown, a refused write may be why.
    let shown = client.get(&format!("/rezus/v1/tenants/{tenant}"), &[]).await?;
    if let Ok(resources) = &resources {
        let rows = items(resources).iter().map(|resource| {
            vec![
                cell(&resource["address"]),
                cell(&resource["type"]),
                provider(resource["provider"].as_str().unwrap_or_default()).to_owned(),
                marks(resource),
            ]
        });
        table::print(&["ADDRESS", "TYPE", "PROVIDER", "MARKS"], rows, out)?;
    }
    print_refusal(&shown, out)?;
    resources?;
    Ok(())
}

fn marks(resource: &Value) -> String {
    let mut marks = Vec::new();
    if resource["tainted"] == true {
        marks.push("tainted".to_owned());
    }
    if let Some(key) = resource["deposed"].as_str() {
        marks.push(format!("deposed {key}"));
    }
    if let Some(hidden) = resource["masked"].as_array() {
        marks.push(format!("{} hidden", hidden.len()));
    }
    if marks.is_empty() { "-".to_owned() } else { marks.join(", ") }
}

/// Shortens `provider["registry.opentofu.org/hashicorp/aws"].eu` to `hashicorp/aws`.
fn provider(configured: &str) -> &str {
    let source = configured.split('"').nth(1).unwrap_or(configured);
    source.split_once('/').map_or(source, |(_, name)| name)
}

/// Only what is printed is read, and the object stays text: its numbers keep their digits.
#[derive(Deserialize)]
struct Shown {
    version: u64,
    resource: Value,
    object: Box<RawValue>,
}

/// Prints one resource instance.
pub(in super::super) async fn object(
    client: &Client,
    tenant: &TenantName,
    address: &ResourceAddress,
    deposed: Option<&str>,
    output: Output,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let mut query = vec![("address", address.as_str())];
    query.extend(deposed.map(|key| ("deposed", key)));
    let path = format!("/rezus/v1/tenants/{tenant}/resources");
    let answer = client.send("GET", &path, &query, Bytes::new()).await?.success()?;
    if output == Output::Json {
        out.write_all(&answer)?;
        writeln!(out)?;
        return Ok(());
    }
    let shown: Shown = serde_json::from_slice(&answer).map_err(|_| {
        CliError::Usage("the answer is not one of rezus: is this the right server?".to_owned())
    })?;
    let resource = &shown.resource;
    let mut line = |name: &str, value: String| writeln!(out, "{name:<10}{value}");
    line("Address:", cell(&resource["address"]))?;
    if !resource["deposed"].is_null() {
        line("Deposed:", cell(&resource["deposed"]))?;
    }
    line("Provider:", cell(&resource["provider"]))?;
    line("Tainted:", cell(&resource["tainted"]))?;
    line("Version:", format!("{}, at {}", shown.version, cell(&resource["path"])))?;
    writeln!(out, "{}", masked::pretty(shown.object.get()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::provider;

    #[test]
    fn providers_are_shortened_to_their_name() {
        for (configured, short) in [
            ("provider[\"registry.opentofu.org/bpg/proxmox\"].dc1", "bpg/proxmox"),
            ("module.x.provider[\"terraform.io/builtin/terraform\"]", "builtin/terraform"),
            ("provider.aws", "provider.aws"),
            ("", ""),
        ] {
            assert_eq!(provider(configured), short);
        }
    }
}
