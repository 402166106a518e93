//! Runs as people read them.

use std::io::Write;

use serde_json::Value;

use crate::cli::CliError;
use crate::cli::table::{self, cell, harmless, items};
use crate::compose::now;

/// How far a run is.
pub(super) fn phase(run: &Value) -> String {
    cell(&run["status"]["phase"])
}

/// Prints runs as a table.
pub(super) fn list(list: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let now = now();
    let rows = items(list).iter().map(|run| {
        let (metadata, spec, status) = (&run["metadata"], &run["spec"], &run["status"]);
        vec![
            cell(&metadata["namespace"]),
            cell(&metadata["name"]),
            cell(&spec["operation"]),
            phase(run),
            changes(&status["summary"]),
            table::age(&status["queuedAt"], now),
            cell(&spec["requestedBy"]),
        ]
    });
    table::print(&["TENANT", "NAME", "OP", "PHASE", "CHANGES", "AGE", "BY"], rows, out)?;
    Ok(())
}

fn changes(summary: &Value) -> String {
    if summary.is_null() {
        return "-".to_owned();
    }
    let count = |member: &str| summary[member].as_u64().unwrap_or(0);
    format!("+{} ~{} -{}", count("add"), count("change"), count("remove"))
}

/// Prints a run, line by line.
pub(super) fn run(run: &Value, out: &mut dyn Write) -> Result<(), CliError> {
    let (metadata, spec, status) = (&run["metadata"], &run["spec"], &run["status"]);
    let mut line = |name: &str, value: String| {
        if value == "-" { Ok(()) } else { writeln!(out, "{name:<16}{value}") }
    };
    line("Run:", cell(&metadata["name"]))?;
    line("Tenant:", cell(&metadata["namespace"]))?;
    line("Operation:", cell(&spec["operation"]))?;
    line("Approval:", cell(&spec["approval"]))?;
    line("Asked for by:", cell(&spec["requestedBy"]))?;
    line("Reason:", cell(&spec["reason"]))?;
    for (name, value) in spec["variables"].as_object().into_iter().flatten() {
        line("Variable:", format!("{} = {}", harmless(name), cell(value)))?;
    }
    for (name, list) in [("Target:", &spec["targets"]), ("Replace:", &spec["replace"])] {
        for address in list.as_array().into_iter().flatten() {
            line(name, cell(address))?;
        }
    }
    line("Phase:", phase(run))?;
    line("Why:", cell(&status["message"]))?;
    line("Changes:", changes(&status["summary"]))?;
    for group in status["summary"]["nodeGroups"].as_array().into_iter().flatten() {
        line("Node group:", format!("{} {}", cell(&group["name"]), changes(group)))?;
    }
    for change in status["changes"].as_array().into_iter().flatten() {
        let why = change["reason"].as_str().map_or_else(String::new, |why| format!(" ({})", harmless(why)));
        line("Change:", format!("{} {}{why}", cell(&change["action"]), cell(&change["address"])))?;
    }
    if let Some(more) = status["changesOmitted"].as_u64() {
        line("", format!("and {more} more"))?;
    }
    let tool = format!("{} {}", cell(&status["tool"]), cell(&status["toolVersion"]));
    line("Program:", if status["tool"].is_null() { "-".to_owned() } else { tool })?;
    line("Configuration:", cell(&status["configDigest"]))?;
    line("Revision:", cell(&status["configRevision"]))?;
    line("Version before:", cell(&status["stateVersionBefore"]))?;
    line("Version after:", cell(&status["stateVersionAfter"]))?;
    line("Exit code:", cell(&status["exitCode"]))?;
    line("Queued:", cell(&status["queuedAt"]))?;
    line("Started:", cell(&status["startedAt"]))?;
    line("Finished:", cell(&status["finishedAt"]))?;
    line("Approved by:", cell(&status["approvedBy"]))?;
    line("Done by:", cell(&status["coalescedInto"]))?;
    for condition in status["conditions"].as_array().into_iter().flatten() {
        writeln!(out, "{}:", cell(&condition["type"]))?;
        // The lines of the blocks are to be pasted.
        for text in condition["message"].as_str().unwrap_or_default().lines() {
            writeln!(out, "{}", harmless(text))?;
        }
    }
    Ok(())
}
