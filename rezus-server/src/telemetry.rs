//! The plane's own health: `/healthz`, `/readyz`, `/livez`, `/version`, `/metrics`, request IDs, and the log.

mod samples;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use rezus_core::base::TenantName;
use rezus_core::declared::projector::Notices;
use rezus_core::declared::store::{Content, StoreError, TenantRecord};
use tracing_subscriber::EnvFilter;

use crate::collector::Pulses;
use crate::compose::Plane;
use crate::config::{LogConfig, LogFormat};
use crate::error::{ApiError, Chain};

/// The paths, for whoever must know all of them.
pub const PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/metrics"];

/// This release.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

const PREFIX: &str = "rezus";

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Counts what is done, and logs what goes wrong where the answer is none the worse for it.
impl Notices for Metrics {
    fn history_not_kept(&self, tenant: &TenantName, error: &StoreError) {
        tracing::warn!(
            tenant.name = %tenant,
            cause = %Chain(error),
            "who this tenant's objects are over time cannot be kept: after a restart they may count as having come later"
        );
    }

    fn projected(&self) {
        self.projections.inc();
    }
}

/// Returns the routes.
pub fn routes(plane: Plane) -> Router {
    let [healthz, livez, readyz, version, metrics] = PATHS;
    Router::new()
        .route(healthz, get(ready))
        .route(livez, get(|| async { "ok" }))
        .route(readyz, get(ready))
        .route(version, get(show_version))
        .route(metrics, get(show_metrics))
        .with_state(plane)
}

/// Ready is who can read and write its store.
async fn ready(State(plane): State<Plane>) -> Result<&'static str, ApiError> {
    plane.backend.store().ready().await?;
    Ok("ok")
}

async fn show_version() -> Json<serde_json::Value> {
    Json(crate::kube::discovery::version())
}

async fn show_metrics(State(plane): State<Plane>) -> Result<Response, ApiError> {
    let tenants = plane.backend.store().tenants().await?;
    let mut now = registry_of(&tenants, plane.intake.in_flight());
    register_pulses(&mut now, &Pulses::of(&plane.board, plane.clock.now()));
    let forwarded = plane.forwarder.as_ref().map(|forwarder| forwarder.forwarded());
    samples::register(&mut now, &plane.samples.told(), forwarded, plane.upkeep.bytes());
    if let Some(at) = plane.board.beaten_at() {
        let beat: Gauge = Gauge::default();
        beat.set(at.as_millis() / 1_000);
        let help = "When the collector last looked which clusters it reads, since 1970";
        now.register_with_unit("collector_heartbeat", help, Unit::Seconds, beat);
    }
    let mut text = String::new();
    encode_registry(&mut text, &plane.metrics.registry)
        .and_then(|()| encode_registry(&mut text, &now))
        .and_then(|()| encode_eof(&mut text))
        .map_err(ApiError::internal)?;
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content_type)], text).into_response())
}

/// What is true at the moment, registered anew for each scrape: scrapes at the same time share nothing.
fn registry_of(tenants: &[TenantRecord], in_flight: u64) -> Registry {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let gauge = |number: u64| {
        let gauge: Gauge = Gauge::default();
        gauge.set(signed(number));
        gauge
    };
    let count = |count: usize| gauge(u64::try_from(count).unwrap_or(u64::MAX));
    let sizes = Family::<TenantLabels, Gauge>::default();
    let versions = Family::<TenantLabels, Gauge>::default();
    let written = Family::<TenantLabels, Gauge>::default();
    for tenant in tenants {
        let Some(head) = tenant.head.as_ref().filter(|head| head.content != Content::Tombstone) else {
            continue;
        };
        let labels = TenantLabels { tenant: tenant.name.to_string() };
        sizes.get_or_create(&labels).set(signed(head.size_bytes));
        versions.get_or_create(&labels).set(signed(head.version.get()));
        written.get_or_create(&labels).set(head.written_at.as_millis() / 1_000);
    }
    let locked = tenants.iter().filter(|tenant| tenant.lock.is_some()).count();
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_with_unit(
        "state_bodies_in_flight",
        "Bytes of states that are being received or worked on",
        Unit::Bytes,
        gauge(in_flight),
    );
    registry.register("tenants", "Tenants", count(tenants.len()));
    registry.register("locks_held", "Tenants whose state is locked", count(locked));
    registry.register_with_unit("state_size", "Size of each tenant's current state", Unit::Bytes, sizes);
    registry.register("state_version", "Number of each tenant's current version", versions);
    registry.register_with_unit(
        "state_written_at",
        "When each tenant's current version was written, since 1970",
        Unit::Seconds,
        written,
    );
    registry
}

/// How observing goes.
fn register_pulses(registry: &mut Registry, Pulses(pulses): &Pulses) {
    let up = Family::<SourceLabels, Gauge>::default();
    let duration = Family::<SourceLabels, Gauge<f64, AtomicU64>>::default();
    let age = Family::<SourceLabels, Gauge<f64, AtomicU64>>::default();
    let items = Family::<SourceLabels, Gauge>::default();
    let failures = Family::<SourceLabels, Gauge>::default();
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    for pulse in pulses {
        let labels = SourceLabels { tenant: pulse.tenant.to_string(), source: pulse.source.as_str() };
        up.get_or_create(&labels).set(i64::from(pulse.up));
        duration.get_or_create(&labels).set(pulse.duration_seconds);
        if let Some(seconds) = pulse.age_seconds {
            age.get_or_create(&labels).set(seconds);
        }
        items.get_or_create(&labels).set(count(pulse.items));
        failures.get_or_create(&labels).set(count(pulse.failures));
    }
    registry.register("up", "Whether the last turn of reading a cluster's source told anything", up);
    registry.register_with_unit("scrape_duration", "How long that turn took", Unit::Seconds, duration);
    registry.register_with_unit("observation_age", "How long ago a source told anything", Unit::Seconds, age);
    registry.register("scrape_items", "Of how many things a source told last: nodes, machines", items);
    registry.register("scrape_failures", "Parts of a source that could not be read the last time", failures);
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabels {
    tenant: String,
    source: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    operation: String,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TenantLabels {
    tenant: String,
}

/// The server's own metrics that only ever grow, in the `OpenMetrics` format. No label takes a value that clients may
/// choose freely; what is true of tenants is registered anew for each scrape.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram>,
    refusals: Family<RefusalLabels, Counter>,
    writes: Counter,
    projections: Counter,
    written_bytes: Counter<u64, AtomicU64>,
}

impl Metrics {
    /// Makes the metrics, all at zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix(PREFIX),
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| {
                Histogram::new([
                    0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
                ])
            }),
            refusals: Family::default(),
            writes: Counter::default(),
            projections: Counter::default(),
            written_bytes: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("build", "This release", Info::new(vec![("version", VERSION)]));
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register_with_unit(
            "http_request_duration",
            "Time until the head of the answer",
            Unit::Seconds,
            metrics.seconds.clone(),
        );
        registry.register(
            "state_refusals",
            "Requests of the state backend that were refused",
            metrics.refusals.clone(),
        );
        registry.register("state_writes", "Versions accepted", metrics.writes.clone());
        registry.register(
            "projections",
            "Versions projected: read and mapped anew",
            metrics.projections.clone(),
        );
        registry.register_with_unit(
            "state_written",
            "Bytes of the versions accepted",
            Unit::Bytes,
            metrics.written_bytes.clone(),
        );
        metrics
    }

    /// Counts a refusal of the state backend.
    pub fn refused(&self, operation: &str, code: u16) {
        self.refusals.get_or_create(&RefusalLabels { operation: operation.to_owned(), code }).inc();
    }

    /// Counts an accepted version.
    pub fn accepted(&self, bytes: u64) {
        self.writes.inc();
        self.written_bytes.inc_by(bytes);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// Puts every request under a span with an ID, counts it and times it.
pub fn observed(routes: Router, metrics: Arc<Metrics>) -> Router {
    routes.layer(middleware::from_fn_with_state(metrics, observe))
}

async fn observe(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    use tracing::Instrument as _;

    let id = request_id(&request);
    let method = request.method().as_str().to_owned();
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str).to_owned();
    // The path and query may hold what is no one's business; the route does not.
    let span = tracing::info_span!("request", request.id = id, http.method = method, http.route = route);
    let started = tokio::time::Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    let took = started.elapsed();
    let code = response.status().as_u16();
    metrics
        .requests
        .get_or_create(&RequestLabels { route: route.clone(), method: known_method(method), code })
        .inc();
    metrics.seconds.get_or_create(&RouteLabels { route }).observe(took.as_secs_f64());
    span.in_scope(|| tracing::debug!(code, duration_ms = millis(took), "answered"));
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Takes the client's request ID if it is harmless in a log, or makes one.
fn request_id(request: &Request) -> String {
    let given = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_harmless = |id: &&str| {
        (1..=64).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    given.filter(is_harmless).map_or_else(|| uuid::Uuid::new_v4().to_string(), ToOwned::to_owned)
}

/// A client may send any method: only those that mean something become labels.
fn known_method(method: String) -> String {
    match method.as_str() {
        "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "LOCK" | "UNLOCK" | "OPTIONS" => method,
        _ => "other".to_owned(),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Libraries that would log whole answers of clusters.
const QUIET: &str = "kube_client=off,kube_runtime=off";

/// Starts the log, on standard error.
///
/// # Errors
///
/// The directive that cannot be read.
pub fn start_log(config: &LogConfig) -> Result<(), tracing_subscriber::filter::ParseError> {
    // What these say of answers that they cannot read is the answers themselves.
    let level = format!("{},{QUIET}", config.level);
    let filter = EnvFilter::builder().parse(level)?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second start in one process keeps the first: only tests do that.
    let started = match config.format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if started.is_err() {
        tracing::debug!("the log was started already");
    }
    Ok(())
}
