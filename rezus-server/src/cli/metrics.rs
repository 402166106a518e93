//! `metrics`: how it got here, as a plot.

mod plot;
mod value;

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use rezus_core::base::{TenantName, Timestamp};
use serde_json::Value;

use super::client::Client;
use super::table::{self, cell};
use super::{CliError, Target, print_json};
use crate::compose::now;
use plot::Line;

const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// The width where nobody tells how wide the terminal is.
const COLUMNS: u16 = 80;

/// How wide the line of one of several series is at least.
const NARROWEST: u16 = 20;

/// Show what was sampled of a cluster or a machine over time: which metrics there are, or a plot of one.
#[derive(Debug, Args)]
pub(super) struct Metrics {
    /// Whose cluster.
    tenant: TenantName,
    /// Of which machine; of the whole cluster if absent.
    machine: Option<String>,
    /// Which metric, such as `node_load1`; all of them, with their newest values, if absent.
    name: Option<String>,
    /// How long, until now: `90m`, `6h`, `7d` [default: 1h].
    #[arg(long, value_name = "SPAN", conflicts_with = "from")]
    range: Option<String>,
    /// Since this date and time of RFC 3339.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Until this date and time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// How far apart points are; chosen by how long it is if absent.
    #[arg(long, value_name = "SPAN")]
    step: Option<String>,
    /// Print the server's JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl Metrics {
    pub(super) async fn run(self, out: &mut dyn Write) -> Result<(), CliError> {
        let client = Client::open(&self.target).await?;
        let (machine, name) = self.meant();
        let texts = [
            ("name", name.as_ref()),
            ("range", self.range.as_ref()),
            ("from", self.from.as_ref()),
            ("to", self.to.as_ref()),
            ("step", self.step.as_ref()),
        ];
        let query: Vec<(&str, &str)> =
            texts.into_iter().filter_map(|(name, text)| Some((name, text?.as_str()))).collect();
        let answer = client.get(&path(&self.tenant, machine), &query).await?;
        if self.json {
            return print_json(&answer, out);
        }
        print(&answer, name.as_deref(), columns(), now(), out)
    }

    /// Which machine and which metric are meant: with one of them only, the metric is what has an underscore, which no
    /// machine's name has. The prefix of all of them may be left out.
    fn meant(&self) -> (Option<&str>, Option<String>) {
        let (machine, name) = match (self.machine.as_deref(), self.name.as_deref()) {
            (Some(only), None) if only.contains('_') => (None, Some(only)),
            both => both,
        };
        let whole = |name: &str| {
            if name.starts_with("rezus_") { name.to_owned() } else { format!("rezus_{name}") }
        };
        (machine, name.map(whole))
    }
}

/// Plots the last moments of a metric of a tenant once each series has so many points, or after so long in any case: for the
/// demo.
pub(super) async fn print_soon(
    client: &Client,
    tenant: &TenantName,
    name: &str,
    points: usize,
    patience: Duration,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let query = [("name", name), ("range", "45s"), ("step", "3s")];
    let until = Instant::now() + patience;
    loop {
        let answer = client.get(&path(tenant, None), &query).await?;
        let series = list(&answer, "series");
        let is_enough =
            !series.is_empty() && series.iter().all(|series| list(series, "points").len() >= points);
        if is_enough || Instant::now() >= until {
            return print(&answer, Some(name), columns(), now(), out);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn path(tenant: &TenantName, machine: Option<&str>) -> String {
    match machine {
        Some(machine) => {
            let machine: String = form_urlencoded::byte_serialize(machine.as_bytes()).collect();
            format!("{API}/namespaces/{tenant}/machines/{machine}/metrics")
        }
        None => format!("{API}/tenants/{tenant}/metrics"),
    }
}

/// How wide the terminal is.
fn columns() -> u16 {
    terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| width.0)
}

fn list<'v>(value: &'v Value, member: &str) -> &'v [Value] {
    value[member].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

/// Prints an answer for people.
fn print(
    answer: &Value,
    name: Option<&str>,
    columns: u16,
    now: Timestamp,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let series = list(answer, "series");
    if let Some(reason) = answer["reason"].as_str() {
        writeln!(out, "{reason}")?;
        if list(answer, "metrics").is_empty() {
            return Ok(());
        }
    }
    match (name, series) {
        (None, _) => newest(answer, now, out),
        (Some(_), [only]) => one(only, answer, columns, out),
        (Some(_), several) => rows(several, answer, columns, out),
    }
}

/// Prints which metrics there are: what is shown with its newest value, and of others how many series there are.
fn newest(answer: &Value, now: Timestamp, out: &mut dyn Write) -> Result<(), CliError> {
    let shown = list(answer, "series").iter().map(|series| {
        let (value, age) = match list(series, "points").last() {
            Some(point) => (number(&point[1], series), table::age(&point[0], now)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        vec![cell(&series["name"]), labels(series, |_| true), value, age]
    });
    let is_shown =
        |metric: &&Value| !list(answer, "series").iter().any(|series| series["name"] == metric["name"]);
    let others = list(answer, "metrics").iter().filter(is_shown).map(|metric| {
        vec![
            cell(&metric["name"]),
            format!("{} series of machines", metric["series"]),
            "-".to_owned(),
            "-".to_owned(),
        ]
    });
    table::print(&["METRIC", "OF", "NEWEST", "SEEN"], shown.chain(others), out)?;
    Ok(())
}

/// The line of a series; none where there is no point.
fn line(series: &Value, answer: &Value) -> Option<Line> {
    let time = |value: &Value| Timestamp::parse(value.as_str()?).ok();
    let point = |point: &Value| Some((time(&point[0])?, point[1].as_f64()?));
    let points: Vec<_> = list(series, "points").iter().filter_map(point).collect();
    let step = Duration::try_from_secs_f64(answer["stepSeconds"].as_f64()?).ok()?;
    let line = Line { points, from: time(&answer["from"])?, to: time(&answer["to"])?, step };
    (!line.points.is_empty()).then_some(line)
}

fn number(value: &Value, series: &Value) -> String {
    let shown = |value| value::shown(value, text(series, "unit"), text(series, "name"));
    value.as_f64().map_or_else(|| "-".to_owned(), shown)
}

/// Those labels of a series that are wanted.
fn labels(series: &Value, is_wanted: impl Fn(&str) -> bool) -> String {
    let pairs = series["labels"].as_object().into_iter().flatten().filter(|(name, _)| is_wanted(name));
    pairs.map(|(name, value)| format!("{name}={}", cell(value))).collect::<Vec<_>>().join(" ")
}

/// Draws one series.
fn one(series: &Value, answer: &Value, columns: u16, out: &mut dyn Write) -> Result<(), CliError> {
    writeln!(out, "{}  {}\n{}\n", cell(&series["name"]), labels(series, |_| true), cell(&series["help"]))?;
    let Some(line) = line(series, answer) else {
        writeln!(out, "there are no samples of that time")?;
        return Ok(());
    };
    let show = |value| value::shown(value, text(series, "unit"), text(series, "name"));
    for row in line.plot(columns, show) {
        writeln!(out, "{row}")?;
    }
    let [min, max] = line.bounds();
    let newest = line.points.last().map_or(max, |(_, value)| *value);
    writeln!(out, "\nnewest {}, least {}, greatest {}; times are UTC", show(newest), show(min), show(max))?;
    Ok(())
}

/// Draws several series, one below the other, all on one scale.
fn rows(series: &[Value], answer: &Value, columns: u16, out: &mut dyn Write) -> Result<(), CliError> {
    let lines: Vec<(&Value, Line)> =
        series.iter().filter_map(|series| Some((series, line(series, answer)?))).collect();
    let Some((first, whole)) = lines.first() else {
        writeln!(out, "there are no samples of that time")?;
        return Ok(());
    };
    let bounds = lines.iter().map(|(_, line)| line.bounds());
    let scale = bounds.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, greatest], [min, max]| {
        [least.min(min), greatest.max(max)]
    });
    let show = |value| value::shown(value, text(first, "unit"), text(first, "name"));
    let [least, greatest] = scale.map(show);
    let is_common =
        |(name, value): &(&String, &Value)| lines.iter().all(|(one, _)| one["labels"][name] == **value);
    let common: Vec<&str> = first["labels"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(is_common)
        .map(|(name, _)| name.as_str())
        .collect();
    writeln!(
        out,
        "{}  {}\n{}\n",
        cell(&first["name"]),
        labels(first, |name| common.contains(&name)),
        cell(&first["help"])
    )?;
    let named: Vec<(String, String)> = lines
        .iter()
        .map(|(series, line)| {
            let newest = line.points.last().map_or_else(|| "-".to_owned(), |(_, value)| show(*value));
            (labels(series, |name| !common.contains(&name)), newest)
        })
        .collect();
    let widest =
        |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
    let label = widest(&mut named.iter().map(|(labels, _)| labels));
    let value = widest(&mut named.iter().map(|(_, newest)| newest)).max("newest".len());
    let taken = u16::try_from(label + value + 4).unwrap_or(u16::MAX);
    let width = columns.saturating_sub(taken).max(NARROWEST);
    for ((labels, newest), (_, line)) in named.iter().zip(&lines) {
        writeln!(out, "{labels:label$}  {}  {newest:>value$}", line.sparkline(width, scale))?;
    }
    writeln!(out, "{:label$}  {}  {:>value$}", "", whole.times(usize::from(width)), "newest")?;
    writeln!(out, "\nfrom {least} to {greatest}; times are UTC")?;
    Ok(())
}

#[cfg(test)]
mod tests;
