//! The part of Prometheus' HTTP API by which Grafana reads series, under `/prometheus`: the plain `/api/v1` is Kubernetes'.
//!
//! Every series is a tenant's: who may not view a tenant finds its series as little as if there were none, in values as well as
//! in names and labels.

mod answer;
mod describe;
mod params;
mod query;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::Method;
use axum::http::header::CONTENT_LENGTH;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use tokio::sync::Semaphore;

use crate::compose::Plane;
use crate::config::QueryConfig;
use crate::error::{ApiError, Said};

use answer::{JSON, Refusal};

/// Where all of it is.
const ROOT: &str = "/prometheus/";

/// Every path and the methods it takes, for whoever must know all of them.
pub const PATHS: [(&str, &[&str]); 10] = [
    ("/prometheus/api/v1/query", &["GET", "POST"]),
    ("/prometheus/api/v1/query_range", &["GET", "POST"]),
    ("/prometheus/api/v1/query_exemplars", &["GET", "POST"]),
    ("/prometheus/api/v1/series", &["GET", "POST"]),
    ("/prometheus/api/v1/labels", &["GET", "POST"]),
    ("/prometheus/api/v1/label/{name}/values", &["GET"]),
    ("/prometheus/api/v1/metadata", &["GET"]),
    ("/prometheus/api/v1/rules", &["GET"]),
    ("/prometheus/api/v1/alerts", &["GET"]),
    ("/prometheus/api/v1/status/buildinfo", &["GET"]),
];

/// What queries are held to, and how many are at work. Clones share it.
#[derive(Clone, Debug)]
pub struct Queries {
    config: Arc<QueryConfig>,
    places: Arc<Semaphore>,
}

/// Why work was not done to its end.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// It took longer than it may, or waited so long for its turn.
    #[error("query timed out in query execution")]
    Late,
    /// It broke.
    #[error("a query broke off")]
    Broken(#[source] Box<dyn Error + Send + Sync>),
}

impl Queries {
    /// Nothing is at work yet.
    pub fn new(config: &QueryConfig) -> Self {
        let places = config.concurrent.clamp(1, Semaphore::MAX_PERMITS);
        Self { config: Arc::new(config.clone()), places: Arc::new(Semaphore::new(places)) }
    }

    /// Does something of which so much is done at a time, in no more time than that, its waiting included. What reads goes on
    /// when its time is over, as it cannot be broken off, and its place is taken for as long.
    ///
    /// # Errors
    ///
    /// [`NotDone`].
    pub async fn run<T: Send + 'static>(
        &self,
        time: Duration,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NotDone> {
        let places = Arc::clone(&self.places);
        let done = async move {
            let place = places.acquire_owned().await.map_err(|error| NotDone::Broken(error.into()))?;
            let task = tokio::spawn(async move {
                let done = work.await;
                drop(place);
                done
            });
            task.await.map_err(|error| NotDone::Broken(error.into()))
        };
        tokio::time::timeout(time, done).await.map_err(|_| NotDone::Late)?
    }

    /// Returns how long something may take.
    pub fn time(&self) -> Duration {
        self.config.timeout.0
    }
}

/// Returns the routes.
pub fn routes(plane: Plane) -> Router {
    let handlers: [MethodRouter<Plane>; 10] = [
        get(query::instant).post(query::instant),
        get(query::range).post(query::range),
        get(describe::nothing).post(describe::nothing),
        get(describe::series).post(describe::series),
        get(describe::labels).post(describe::labels),
        get(describe::values),
        get(describe::metadata),
        get(describe::rules),
        get(describe::alerts),
        get(describe::build),
    ];
    let mut router = Router::new();
    for ((path, methods), handler) in PATHS.iter().zip(handlers) {
        let refuse = move |method: Method| async move {
            let methods = methods.join(" or ");
            ApiError::method_not_allowed(format!("{method} is no method of {path}: use {methods}"))
        };
        router = router.route(path, handler.fallback(refuse));
    }
    router.with_state(plane)
}

/// Has whatever is refused on the way to these paths said as Prometheus says it: who was not let in, what is too large.
pub fn worded(routes: Router) -> Router {
    routes.layer(middleware::from_fn(word))
}

async fn word(request: Request, next: Next) -> Response {
    let is_here = request.uri().path().starts_with(ROOT);
    let mut response = next.run(request).await;
    match response.extensions_mut().remove::<Said>() {
        Some(Said(message)) if is_here => {
            let (mut parts, _) = response.into_parts();
            let (name, json) = JSON;
            parts.headers.insert(name, json);
            parts.headers.remove(CONTENT_LENGTH);
            let refusal = Refusal::of_status(parts.status, message);
            Response::from_parts(parts, Body::from(refusal.body()))
        }
        _ => response,
    }
}
