//! `get`, `diff` and `explain`: what is declared, as resources, and with `get` how it is.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use rezus_core::base::{TenantName, Timestamp};
use serde_json::Value;

use super::client::Client;
use super::table::{self, cell, items};
use super::{CliError, Target, print_json};
use crate::compose::now;

const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// List tenants, node groups, machines or providers.
#[derive(Debug, Args)]
pub(super) struct Get {
    /// What to list.
    #[arg(value_enum)]
    kind: Kind,
    /// Only the one of this name.
    name: Option<String>,
    /// Of this tenant; of all if absent.
    #[arg(short, long)]
    tenant: Option<TenantName>,
    /// As of this version of the tenant's state.
    #[arg(long, value_name = "N", requires = "tenant")]
    version: Option<u64>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t)]
    output: GetOutput,
    #[command(flatten)]
    target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Tenants, each with what its state says of the cluster.
    #[value(alias = "tenant", alias = "tn")]
    Tenants,
    /// Groups of machines.
    #[value(alias = "nodegroup", alias = "ng")]
    Nodegroups,
    /// Machines.
    #[value(alias = "machine", alias = "mc")]
    Machines,
    /// Mappings.
    #[value(alias = "provider")]
    Providers,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum GetOutput {
    /// A table for people.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// The server's JSON.
    Json,
}

impl Get {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let client = Client::open(&self.target).await?;
        let version = self.version.map(|version| version.to_string());
        let query: Vec<(&str, &str)> = version.iter().map(|version| ("version", version.as_str())).collect();
        let mut list = client.get(&self.path()?, &query).await?;
        if let Some(tenant) = self.tenant.as_ref().filter(|_| items(&list).is_empty()) {
            // A namespace that is not there lists as one without anything in it.
            client.get(&format!("{API}/tenants/{tenant}"), &[]).await?;
        }
        if let Some(name) = &self.name {
            let found = items(&list).iter().find(|item| item["metadata"]["name"] == name.as_str()).cloned();
            let found =
                found.ok_or_else(|| CliError::Unexpected(format!("there is no {name} among them")))?;
            if self.output == GetOutput::Json {
                return print_json(&found, out);
            }
            list["items"] = vec![found].into();
        }
        match self.output {
            GetOutput::Json => print_json(&list, out),
            GetOutput::Table => print(self.kind, &list, false, out),
            GetOutput::Wide => print(self.kind, &list, true, out),
        }
    }

    fn path(&self) -> Result<String, CliError> {
        let kind = match self.kind {
            Kind::Tenants => "tenants",
            Kind::Nodegroups => "nodegroups",
            Kind::Machines => "machines",
            Kind::Providers => "providers",
        };
        match (&self.tenant, self.kind) {
            (None, _) => Ok(format!("{API}/{kind}")),
            (Some(tenant), Kind::Machines | Kind::Nodegroups) => {
                Ok(format!("{API}/namespaces/{tenant}/{kind}"))
            }
            (Some(_), Kind::Tenants | Kind::Providers) => {
                Err(CliError::Usage(format!("{kind} belong to no tenant: leave --tenant out")))
            }
        }
    }
}

/// The cells of an object.
type Row = fn(&Value, Timestamp) -> Vec<String>;

/// Prints a list as a table.
fn print(kind: Kind, list: &Value, wide: bool, out: &mut dyn Write) -> Result<(), CliError> {
    let (heads, more, row): (&[&str], &[&str], Row) = match kind {
        Kind::Tenants => (
            &["NAME", "CLUSTER", "MACHINES", "GROUPS", "SPEC", "READY", "SEEN"],
            &["KUBERNETES", "TALOS", "ENDPOINT", "VERSION"],
            tenant_row,
        ),
        Kind::Nodegroups => (
            &["TENANT", "NAME", "ROLE", "DECLARED"],
            &["PROVIDER", "TYPES", "REGIONS", "SOURCE"],
            node_group_row,
        ),
        Kind::Machines => (
            &["TENANT", "NAME", "ROLE", "ADDRESS", "PROVIDER", "GROUP", "READY", "SEEN"],
            &["TYPE", "REGION", "ZONE", "PROVIDER-ID", "STATE-ADDRESS"],
            machine_row,
        ),
        Kind::Providers => (&["NAME", "ORIGIN", "TYPES"], &["SOURCES"], provider_row),
    };
    let all: Vec<&str> = heads.iter().chain(more).copied().collect();
    let columns = if wide { all.len() } else { heads.len() };
    let now = now();
    let rows = items(list).iter().map(|item| row(item, now).into_iter().take(columns).collect());
    table::print(&all[..columns], rows, out)?;
    Ok(())
}

fn tenant_row(tenant: &Value, now: Timestamp) -> Vec<String> {
    let (spec, status) = (&tenant["spec"], &tenant["status"]);
    let machines = &status["machines"];
    // Before any node was listed, none is known to be ready or not.
    let ready = match &status["kubernetes"] {
        Value::Null => "-".to_owned(),
        _ => format!("{}/{}", cell(&machines["ready"]), cell(&machines["declared"])),
    };
    [
        cell(&tenant["metadata"]["name"]),
        cell(&spec["clusterName"]),
        cell(&spec["machines"]),
        cell(&spec["nodeGroups"]),
        cell(&condition(tenant, "SpecAvailable")["reason"]),
        ready,
        table::age(&status["observedAt"], now),
        cell(&spec["kubernetesVersion"]),
        cell(&spec["talosVersion"]),
        cell(&spec["endpoint"]),
        cell(&spec["state"]["version"]),
    ]
    .into()
}

/// The condition of that type; nothing where an object has none.
fn condition<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let mut conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

fn node_group_row(group: &Value, _: Timestamp) -> Vec<String> {
    let (metadata, spec) = (&group["metadata"], &group["spec"]);
    let mut row =
        [&metadata["namespace"], &metadata["name"], &spec["role"], &spec["count"], &spec["provider"]]
            .map(cell)
            .to_vec();
    row.extend([joined(&spec["instanceTypes"]), joined(&spec["regions"]), cell(&spec["source"])]);
    row
}

fn machine_row(machine: &Value, now: Timestamp) -> Vec<String> {
    let (metadata, spec) = (&machine["metadata"], &machine["spec"]);
    let addresses = spec["addresses"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of_type = |kind: &str| addresses.iter().find(move |address| address["type"] == kind);
    let address = of_type("InternalIP")
        .or_else(|| of_type("ExternalIP"))
        .map_or(&Value::Null, |found| &found["address"]);
    [
        cell(&metadata["namespace"]),
        cell(&metadata["name"]),
        cell(&spec["role"]),
        cell(address),
        cell(&spec["provider"]),
        cell(&spec["nodeGroup"]),
        cell(&condition(machine, "Ready")["status"]),
        table::age(&machine["status"]["observedAt"], now),
        cell(&spec["instanceType"]),
        cell(&spec["region"]),
        cell(&spec["zone"]),
        cell(&spec["providerID"]),
        cell(&spec["address"]),
    ]
    .into()
}

fn provider_row(provider: &Value, _: Timestamp) -> Vec<String> {
    let spec = &provider["spec"];
    let types = spec["resourceTypes"].as_array().map_or(0, Vec::len);
    vec![
        cell(&provider["metadata"]["name"]),
        cell(&spec["origin"]),
        types.to_string(),
        joined(&spec["sources"]),
    ]
}

fn joined(list: &Value) -> String {
    let texts: Vec<String> = list.as_array().into_iter().flatten().map(cell).collect();
    if texts.is_empty() { "-".to_owned() } else { texts.join(",") }
}

/// Prints a tenant's machines once each of them was observed, or after so long in any case: for the demo.
pub(super) async fn print_machines(
    client: &Client,
    tenant: &TenantName,
    patience: Duration,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let path = format!("{API}/namespaces/{tenant}/machines");
    let until = Instant::now() + patience;
    loop {
        let list = client.get(&path, &[]).await?;
        let is_observed = |machine: &Value| machine["status"]["observedAt"].is_string();
        if items(&list).iter().all(is_observed) || Instant::now() >= until {
            return print(Kind::Machines, &list, false, out);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Compare two versions of a tenant's state, as resources.
#[derive(Debug, Args)]
pub(super) struct Diff {
    /// Whose state.
    tenant: TenantName,
    /// The earlier version.
    from: u64,
    /// The later version.
    to: u64,
    /// Print the server's JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl Diff {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let query =
            [("from", self.from.to_string()), ("to", self.to.to_string()), ("as", "resources".to_owned())];
        let query: Vec<(&str, &str)> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let path = format!("/rezus/v1/tenants/{}/diff", self.tenant);
        let diff = Client::open(&self.target).await?.get(&path, &query).await?;
        if self.json {
            return print_json(&diff, out);
        }
        if items(&diff).is_empty() {
            writeln!(out, "versions {} and {} declare the same resources", self.from, self.to)?;
        }
        for change in items(&diff) {
            let sign = match change["change"].as_str() {
                Some("added") => "+",
                Some("removed") => "-",
                _ => "~",
            };
            writeln!(out, "{sign} {} {}", cell(&change["kind"]), cell(&change["name"]))?;
            for field in change["fields"].as_array().map(Vec::as_slice).unwrap_or_default() {
                let side = |name: &str| field.get(name).map_or_else(|| "-".to_owned(), cell);
                writeln!(out, "    {}: {} -> {}", cell(&field["field"]), side("before"), side("after"))?;
            }
        }
        Ok(())
    }
}

/// Say where the fields of a machine come from.
#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Whose machine.
    tenant: TenantName,
    /// Which machine, by its object's name.
    machine: String,
    /// Only this field, such as `role` or `addresses[0].address`.
    field: Option<String>,
    /// As of this version of the tenant's state.
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    #[command(flatten)]
    target: Target,
}

impl Explain {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let client = Client::open(&self.target).await?;
        let version: Vec<(&str, String)> =
            self.version.iter().map(|version| ("version", version.to_string())).collect();
        let query: Vec<(&str, &str)> = version.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let machine: String = form_urlencoded::byte_serialize(self.machine.as_bytes()).collect();
        let path = format!("{API}/namespaces/{}/machines/{machine}/provenance", self.tenant);
        let shown = client.get(&path, &query).await?;
        let fields = shown["fields"].as_object().cloned().unwrap_or_default();
        let wanted = |name: &str| self.field.as_deref().is_none_or(|field| field == name);
        let rows: Vec<Vec<String>> = fields
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, source)| {
                vec![name.clone(), cell(&source["address"]), cell(&source["path"]), cell(&source["rule"])]
            })
            .collect();
        if rows.is_empty() {
            let names: Vec<&str> = fields.keys().map(String::as_str).collect();
            return Err(CliError::Unexpected(format!(
                "{} has no such field; it has: {}",
                self.machine,
                names.join(", ")
            )));
        }
        table::print(&["FIELD", "FROM", "PATH", "RULE"], rows, out)?;
        Ok(())
    }
}
