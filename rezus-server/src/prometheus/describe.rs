//! What series there are, and what this server is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use rezus_core::base::Timestamp;
use rezus_core::observed::{self, MetricKind};
use rezus_core::series::{Labels, NAME, Selection};
use serde_json::{Value, json};

use super::answer::{Answer, Refusal, write_labels};
use super::params::Params;
use crate::api::Path;
use crate::compose::Plane;
use crate::telemetry::VERSION;

/// The release of Prometheus whose answers these are: clients ask for it to know what they may send.
const AS_PROMETHEUS: &str = "2.42.0";

/// How far back metrics are looked for that are to be described.
const RECENT: Duration = Duration::from_hours(24);

/// Lists the series that fulfil one of the selectors, or all where none is given; each once, sorted.
async fn listed(plane: &Plane, params: Params) -> Result<BTreeSet<Labels>, Refusal> {
    let from = params.time_or("start", Timestamp::from_millis(i64::MIN))?;
    let to = params.time_or("end", Timestamp::from_millis(i64::MAX))?;
    if to < from {
        return Err(Refusal::parameter("end", "end timestamp must not be before start time"));
    }
    let (store, limit) = (Arc::clone(&plane.series), plane.queries.config.max_series);
    let work = async move {
        let tenants = params.tenants.clone();
        let selectors = tokio::task::spawn_blocking(move || params.selectors()).await;
        let mut selectors = selectors.map_err(|error| Refusal::internal(error.to_string()))??;
        if selectors.is_empty() {
            selectors.push(Vec::new());
        }
        let mut all = BTreeSet::new();
        for matchers in selectors {
            let tenants = tenants.clone();
            let selection = Selection { tenants, matchers, from, to, width: Duration::ZERO, limit };
            all.extend(store.list(&selection).await?);
        }
        Ok(all)
    };
    plane.queries.run(plane.queries.time(), work).await?
}

/// The labels of series.
pub(super) async fn series(State(plane): State<Plane>, params: Params) -> Result<Answer, Refusal> {
    if !params.has_selectors() {
        return Err(Refusal::bad_data("no match[] parameter provided"));
    }
    let limit = params.limit()?;
    let all = listed(&plane, params).await?;
    Ok(Answer::list(&all, limit, write_labels))
}

/// The names of labels.
pub(super) async fn labels(State(plane): State<Plane>, params: Params) -> Result<Answer, Refusal> {
    let limit = params.limit()?;
    let all = listed(&plane, params).await?;
    let names: BTreeSet<&str> = all.iter().flat_map(|labels| labels.iter().map(|(name, _)| name)).collect();
    Ok(Answer::texts(names, limit))
}

/// The values of a label.
pub(super) async fn values(
    State(plane): State<Plane>,
    Path(name): Path<String>,
    params: Params,
) -> Result<Answer, Refusal> {
    let limit = params.limit()?;
    let all = listed(&plane, params).await?;
    let values: BTreeSet<&str> =
        all.iter().map(|labels| labels.get(&name)).filter(|value| !value.is_empty()).collect();
    Ok(Answer::texts(values, limit))
}

/// What the metrics are that had samples lately. Of one that is not rezus' own only the kind is told, by its name, as
/// Prometheus' conventions have it.
pub(super) async fn metadata(State(plane): State<Plane>, params: Params) -> Result<Answer, Refusal> {
    let now = plane.clock.now();
    let selection = Selection {
        tenants: params.tenants.clone(),
        matchers: Vec::new(),
        from: now.minus(RECENT),
        to: now,
        width: Duration::ZERO,
        limit: plane.queries.config.max_series,
    };
    let store = Arc::clone(&plane.series);
    let all = plane.queries.run(plane.queries.time(), async move { store.list(&selection).await }).await??;
    let asked = params.get("metric");
    let names: BTreeSet<&str> = all.iter().map(|labels| labels.get(NAME)).collect();
    let about = |name: &str| {
        if let Some(metric) = observed::metrics().iter().find(|metric| metric.name == name) {
            return json!([{ "type": metric.kind.as_str(), "help": metric.help, "unit": metric.unit }]);
        }
        let kind = if name.ends_with("_total") { MetricKind::Counter } else { MetricKind::Gauge };
        json!([{ "type": kind.as_str(), "help": "", "unit": "" }])
    };
    let described = names.into_iter().filter(|name| asked.is_none_or(|asked| asked == *name));
    let described = described.take(params.limit()?.unwrap_or(usize::MAX));
    let described = described.map(|name| (name.to_owned(), about(name)));
    Ok(Answer::new(Value::Object(described.collect()).to_string()))
}

/// Rules there are none.
pub(super) async fn rules() -> Answer {
    Answer::new(json!({ "groups": [] }).to_string())
}

/// Nor alerts.
pub(super) async fn alerts() -> Answer {
    Answer::new(json!({ "alerts": [] }).to_string())
}

/// Nor exemplars.
pub(super) async fn nothing() -> Answer {
    Answer::new("[]".to_owned())
}

/// What this server is.
pub(super) async fn build() -> Answer {
    let build = json!({
        "version": AS_PROMETHEUS, "revision": format!("rezus {VERSION}"), "branch": "", "buildUser": "",
        "buildDate": "", "goVersion": "",
    });
    Answer::new(build.to_string())
}
