//! How it got here: what was sampled of a machine, or of a cluster as a whole, for people.

mod asked;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use rezus_core::base::TenantName;
use rezus_core::observed::{MetricInfo, MetricKind, metrics};
use rezus_core::series::{
    Labels, Matcher, MatcherError, NAME, Operator, Selection, Series, SeriesError, TENANT,
};
use serde_json::{Map, Value, json};

use super::kinds::MACHINE;
use super::list::not_found;
use super::then::existing;
use crate::api::{Path, Query};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::prometheus::NotDone;
use asked::{Asked, Steps};
use steps::Point;

/// How many samples are read for one answer.
const SAMPLES: usize = 1_000_000;

/// How many points one answer shows, of all series.
const POINTS: usize = 200_000;

/// How far back the value before the first step is looked for, by which a counter rose.
const BEFORE: Duration = Duration::from_mins(5);

/// The label that says which machine of a cluster a series is of.
const NODE: &str = "node";

/// What is known of one machine.
pub(super) async fn of_machine(
    State(plane): State<Plane>,
    Path((tenant, machine)): Path<(String, String)>,
    Query(asked): Query<Asked>,
) -> Result<Json<Value>, ApiError> {
    let tenant = existing(&plane, &tenant).await?;
    plane.catalogue.tenant(&tenant).await?;
    if !plane.catalogue.machines(&tenant).await.iter().any(|(name, _)| *name == machine) {
        return Err(not_found(&MACHINE, &machine));
    }
    let steps = asked.steps(plane.clock.now())?;
    let wanted = wanted(&asked)?;
    let nodes = plane.catalogue.sampled_as(&tenant, &machine);
    let of = nodes.iter().map(|node| selection(&tenant, steps, wanted, Some(node)));
    let mut shown = answer(&plane, steps, of.collect::<Result<_, _>>().map_err(ApiError::internal)?).await?;
    shown["machine"] = machine.into();
    shown["nodes"] = nodes.into_iter().collect();
    explain(&plane, &tenant, &mut shown);
    Ok(Json(shown))
}

/// What is known of a cluster: what is of no machine, or, where a metric is named, all of it.
pub(super) async fn of_tenant(
    State(plane): State<Plane>,
    Path(tenant): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Json<Value>, ApiError> {
    let tenant = existing(&plane, &tenant).await?;
    let steps = asked.steps(plane.clock.now())?;
    let wanted = wanted(&asked)?;
    let node = if wanted.is_some() { None } else { Some("") };
    let of = selection(&tenant, steps, wanted, node).map_err(ApiError::internal)?;
    let mut shown = answer(&plane, steps, vec![of]).await?;
    shown["tenant"] = tenant.as_str().into();
    if wanted.is_none() {
        shown["metrics"] = listed(&plane, &tenant, steps).await?;
    }
    explain(&plane, &tenant, &mut shown);
    Ok(Json(shown))
}

/// The metric that is named, where one is.
fn wanted(asked: &Asked) -> Result<Option<&'static MetricInfo>, ApiError> {
    let Some(name) = &asked.name else { return Ok(None) };
    let known = metrics().iter().find(|metric| metric.name == name);
    let unknown = || {
        let names: Vec<&str> = metrics().iter().map(|metric| metric.name).collect();
        ApiError::bad_request(format!("name: there is no such metric; there are: {}", names.join(", ")))
    };
    known.map(Some).ok_or_else(unknown)
}

/// What samples are of: of a tenant, a metric where one is named, and a machine where one is.
fn selection(
    tenant: &TenantName,
    steps: Steps,
    metric: Option<&MetricInfo>,
    node: Option<&str>,
) -> Result<Selection, MatcherError> {
    let named = metric.map(|metric| Matcher::new(NAME, Operator::Equal, metric.name));
    let of_node = node.map(|node| Matcher::new(NODE, Operator::Equal, node));
    Ok(Selection {
        tenants: Some([tenant.clone()].into()),
        matchers: named.into_iter().chain(of_node).collect::<Result<_, _>>()?,
        from: steps.from.minus(BEFORE.max(steps.step)),
        to: steps.to,
        width: steps.step,
        limit: SAMPLES,
    })
}

/// Reads what is selected, as much of all together as of each, and shows it.
async fn answer(plane: &Plane, steps: Steps, selections: Vec<Selection>) -> Result<Value, ApiError> {
    let store = Arc::clone(&plane.series);
    let work = async move {
        let (mut read, mut left) = (Vec::new(), SAMPLES);
        for selection in selections {
            let found = store.select(&Selection { limit: left, ..selection }).await;
            let found = found.map_err(|error| unread(&error))?;
            left -= found.iter().map(|series| series.samples.len() + series.rolled.len()).sum::<usize>();
            read.extend(found);
        }
        tokio::task::spawn_blocking(move || shown_all(steps, &read)).await.map_err(ApiError::internal)?
    };
    plane.queries.run(plane.queries.time(), work).await.map_err(not_done)?
}

fn not_done(error: NotDone) -> ApiError {
    match error {
        NotDone::Late => ApiError::busy("it took too long to read these samples: ask for a shorter time"),
        NotDone::Broken(_) => ApiError::internal(error),
    }
}

/// All metrics that a tenant has series of, each with how many.
async fn listed(plane: &Plane, tenant: &TenantName, steps: Steps) -> Result<Value, ApiError> {
    let selection = selection(tenant, steps, None, None).map_err(ApiError::internal)?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let store = Arc::clone(&plane.series);
    let listed = async move { store.list(&selection).await };
    let listed = plane.queries.run(plane.queries.time(), listed).await.map_err(not_done)?;
    for labels in listed.map_err(|error| unread(&error))? {
        *counts.entry(labels.get(NAME).to_owned()).or_default() += 1;
    }
    let listed = counts.into_iter().map(|(name, count)| {
        let mut shown = about(&name);
        shown["series"] = count.into();
        shown
    });
    Ok(listed.collect())
}

fn unread(error: &SeriesError) -> ApiError {
    match error {
        SeriesError::TooMany { .. } => ApiError::invalid(error.to_string()),
        SeriesError::Unavailable { .. } => {
            tracing::warn!(cause = %crate::error::Chain(error), "samples cannot be read now");
            ApiError::busy("samples cannot be read now")
        }
    }
}

/// Says why there is nothing, where that is so.
fn explain(plane: &Plane, tenant: &TenantName, shown: &mut Value) {
    let is_empty = |member: &Value| member.as_array().is_some_and(Vec::is_empty);
    if !is_empty(&shown["series"]) {
        return;
    }
    let reason = if !plane.samples.is_enabled() {
        "samples are not kept: series.enabled is false"
    } else if plane.board.is_off(tenant) {
        "the cluster is not observed: it is switched off"
    } else if is_empty(&shown["nodes"]) {
        "nothing that was seen of the cluster since the server started was matched with this machine: its condition Ready says more"
    } else {
        "there are no samples of that time"
    };
    shown["reason"] = reason.into();
}

fn shown_all(steps: Steps, series: &[Series]) -> Result<Value, ApiError> {
    let Steps { from, to, step } = steps;
    let (mut all, mut points) = (Vec::new(), 0);
    for shown in series.iter().filter_map(|series| shown(series, steps)) {
        points += shown["points"].as_array().map_or(0, Vec::len);
        if points > POINTS {
            return Err(ApiError::invalid(format!(
                "these are more than {POINTS} points: ask for one metric, a shorter time, or wider steps"
            )));
        }
        all.push(shown);
    }
    Ok(json!({
        "from": from.to_string(),
        "to": to.to_string(),
        "stepSeconds": step.as_secs_f64(),
        "series": all,
    }))
}

/// What there is to say of a metric, of a counter by how much it rises in a second.
fn about(name: &str) -> Value {
    match metrics().iter().find(|metric| metric.name == name) {
        Some(MetricInfo { kind, unit, help, .. }) => {
            let unit = match (kind, *unit) {
                (MetricKind::Gauge, unit) => unit.to_owned(),
                (MetricKind::Counter, unit) => format!("{unit} per second"),
            };
            json!({ "name": name, "type": kind.as_str(), "unit": unit, "help": help })
        }
        None => json!({ "name": name, "type": "unknown", "unit": "", "help": "" }),
    }
}

/// Shows a series; nothing where nothing of it is within the time.
fn shown(series: &Series, Steps { from, step, .. }: Steps) -> Option<Value> {
    let name = series.labels.get(NAME);
    let is_counter = metrics().iter().any(|metric| metric.name == name && metric.kind == MetricKind::Counter);
    let points = if is_counter { steps::rates(series, step) } else { steps::averages(series, step) };
    let point = |Point { at, value, bounds }: Point| -> Value {
        let at = at.max(from).to_string();
        match bounds {
            Some([min, max]) => json!([at, value, min, max]),
            None => json!([at, value]),
        }
    };
    let is_within = |point: &Point| point.at.after(step) > from;
    let points: Vec<Value> = points.into_iter().filter(is_within).map(point).collect();
    let mut shown = about(name);
    shown["labels"] = others(&series.labels).into();
    let is_there = !points.is_empty();
    shown["points"] = points.into();
    is_there.then_some(shown)
}

/// The labels that tell series of one tenant and metric apart.
fn others(labels: &Labels) -> Map<String, Value> {
    let others = labels.iter().filter(|(name, _)| ![NAME, TENANT].contains(name));
    others.map(|(name, value)| (name.to_owned(), value.into())).collect()
}
