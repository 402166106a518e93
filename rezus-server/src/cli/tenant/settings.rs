//! Prints what is set of a tenant.

use std::io::Write;

use serde_json::Value;

use super::CliError;
use crate::cli::table::{cell, harmless};

/// Prints labels, freeze and configuration, line by line.
pub(super) fn print(tenant: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let mut line = |name: &str, value: String| writeln!(out, "{name:<15}{value}");
    let labels = pairs(&tenant["labels"], text);
    if !labels.is_empty() {
        line("Labels:", labels.join(", "))?;
    }
    let freeze = &tenant["freeze"];
    if !freeze.is_null() {
        let whom = if freeze["clients"] == true { "runs and clients" } else { "runs" };
        let (by, at, reason) = (cell(&freeze["by"]), cell(&freeze["at"]), cell(&freeze["reason"]));
        line("Frozen:", format!("{whom}, by {by} at {at}: {reason}"))?;
    }
    for (head, member) in
        [("Kubeconfig:", "kubeconfigFile"), ("Talosconfig:", "talosconfigFile"), ("Recording:", "recording")]
    {
        if let Some(path) = tenant[member].as_str() {
            line(head, harmless(path))?;
        }
    }
    if let Some(collect) = tenant["collect"].as_bool() {
        line("Observed:", if collect { "yes" } else { "no" }.to_owned())?;
    }
    let destinations: Vec<String> =
        tenant["destinations"].as_array().into_iter().flatten().map(cell).collect();
    if !destinations.is_empty() {
        line("May be asked:", destinations.join(", "))?;
    }
    if let Some(port) = tenant["nodeMetrics"].as_u64() {
        line("Node metrics:", format!("port {port}"))?;
    }
    let configuration = &tenant["configuration"];
    if configuration.is_null() {
        line("Configuration:", "none".to_owned())?;
        return Ok(());
    }
    let source = match (configuration["dir"].as_str(), configuration["digest"].as_str()) {
        (Some(dir), _) => format!("directory {}", harmless(dir)),
        (None, digest) => format!("archive {}", digest.unwrap_or("-")),
    };
    let by_file = if configuration["fromFile"] == true { " (configuration file)" } else { "" };
    line("Configuration:", format!("{source}{by_file}"))?;
    line("Revision:", cell(&configuration["revision"]))?;
    for (head, member) in
        [("Variables:", "variables"), ("Secrets:", "secretVariables"), ("Secret env:", "secretEnvironment")]
    {
        let show = if member == "variables" { text } else { source_of };
        for (place, pair) in pairs(&configuration[member], show).into_iter().enumerate() {
            line(if place == 0 { head } else { "" }, pair)?;
        }
    }
    let environment: Vec<String> =
        configuration["environment"].as_array().into_iter().flatten().map(cell).collect();
    if !environment.is_empty() {
        line("Environment:", environment.join(", "))?;
    }
    line("Approval:", cell(&configuration["approval"]))?;
    line(
        "Protected:",
        if configuration["protectDestroy"] == true { "from destroy" } else { "no" }.to_owned(),
    )?;
    line(
        "Drift:",
        format!(
            "{}, {}",
            configuration["drift"].as_str().map_or("never".to_owned(), |every| format!("every {every}")),
            cell(&configuration["driftMode"])
        ),
    )?;
    line(
        "Timeouts:",
        format!(
            "plan {}, apply {}, grace {}",
            cell(&configuration["planTimeout"]),
            cell(&configuration["applyTimeout"]),
            cell(&configuration["grace"])
        ),
    )?;
    if !configuration["binary"].is_null() {
        line("Binary:", cell(&configuration["binary"]))?;
    }
    Ok(())
}

fn pairs(object: &Value, show: fn(&Value) -> String) -> Vec<String> {
    let members = object.as_object().into_iter().flatten();
    members.map(|(key, value)| format!("{key}={}", show(value))).collect()
}

fn text(value: &Value) -> String {
    harmless(value.as_str().unwrap_or_default())
}

/// Where a secret is read: never itself.
fn source_of(source: &Value) -> String {
    match (source["file"].as_str(), source["environment"].as_str()) {
        (Some(file), _) => format!("file:{}", harmless(file)),
        (None, Some(name)) => format!("env:{name}"),
        (None, None) => "-".to_owned(),
    }
}
