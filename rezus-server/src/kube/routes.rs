//! The paths: every kind under its group, one object or several. Everything but reading is refused, with where the change
//! belongs; runs alone can be made.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, RawQuery, State};
use axum::http::header::ALLOW;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};
use serde_json::json;

use super::credentials;
use super::kinds::{GROUP, KINDS, KindInfo, VERSION};
use super::list::{self, Place};
use super::metrics;
use super::run;
use super::sight::Sight;
use super::then;
use crate::api::Path;
use crate::compose::Plane;
use crate::error::ApiError;

const PROVENANCE: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines/{name}/provenance";
const HISTORY: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines/{name}/history";

const METRICS: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/machines/{name}/metrics";
const TENANT_METRICS: &str = "/apis/rezuscloud.io/v1alpha1/tenants/{tenant}/metrics";

const KUBECONFIG: &str = "/apis/rezuscloud.io/v1alpha1/tenants/{tenant}/kubeconfig";
const TALOSCONFIG: &str = "/apis/rezuscloud.io/v1alpha1/tenants/{tenant}/talosconfig";

const LOG: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/runs/{name}/log";

/// The paths by which something is done with a run. Each takes POST alone.
pub const ACTS: [&str; 3] = [
    "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/runs/{name}/approve",
    "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/runs/{name}/cancel",
    "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/runs/{name}/dismiss",
];

/// Where runs are made, by POST.
pub const RUNS: &str = "/apis/rezuscloud.io/v1alpha1/namespaces/{tenant}/runs";

/// How much of a body is read that nobody looks at, so that the client gets to read the refusal.
const DRAINED: usize = 1 << 20;

/// A path, and what is there.
struct Route {
    path: String,
    kind: &'static KindInfo,
    is_one: bool,
}

/// Every path of objects.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = Vec::new();
    for kind in KINDS {
        let base = if kind.is_core { "/api/v1".to_owned() } else { format!("/apis/{GROUP}/{VERSION}") };
        let plural = kind.plural;
        // What is one for each tenant has the tenant's name.
        let name = if kind.namespaced || kind.kind == "Provider" { "{name}" } else { "{tenant}" };
        let mut add = |path: String, is_one| routes.push(Route { path, kind, is_one });
        add(format!("{base}/{plural}"), false);
        let within = if kind.namespaced {
            let within = format!("{base}/namespaces/{{tenant}}/{plural}");
            add(within.clone(), false);
            within
        } else {
            format!("{base}/{plural}")
        };
        add(format!("{within}/{name}"), true);
        if kind.has_status() {
            add(format!("{within}/{name}/status"), true);
        }
    }
    routes
});

/// Every path that takes GET, for whoever must know all of them; that of [`RUNS`] takes POST too.
pub static PATHS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let objects = ROUTES.iter().map(|route| route.path.as_str());
    objects.chain([PROVENANCE, HISTORY, METRICS, KUBECONFIG, TALOSCONFIG, TENANT_METRICS, LOG]).collect()
});

/// Tells whether a route, as it is matched, lists objects: only there a query that asks to watch means that.
pub fn can_be_watched(route: &str) -> bool {
    ROUTES.iter().any(|known| !known.is_one && known.path == route)
}

/// Tells whether a route, as it is matched, is of runs' logs.
pub fn is_log(route: &str) -> bool {
    route == LOG
}

/// Returns the routes.
pub fn routes(plane: Plane) -> Router {
    let mut router = Router::new();
    for Route { path, kind, is_one } in &*ROUTES {
        let (kind, is_one) = (*kind, *is_one);
        let read = move |plane: State<Plane>,
                         Path(names): Path<HashMap<String, String>>,
                         RawQuery(query): RawQuery,
                         sight: Sight,
                         headers: HeaderMap| async move {
            let asked = Asked { kind, is_one, names, query, sight };
            asked.answer(&plane, &headers).await
        };
        let handler = if path == RUNS { get(read).post(run::create) } else { get(read) };
        router = router.route(path, refusing(handler, kind));
    }
    for (path, handler) in [
        (PROVENANCE, get(then::provenance)),
        (HISTORY, get(then::history)),
        (METRICS, get(metrics::of_machine)),
    ] {
        router = router.route(path, refusing(handler, &super::kinds::MACHINE));
    }
    for (path, handler) in [
        (KUBECONFIG, get(credentials::kubeconfig)),
        (TALOSCONFIG, get(credentials::talosconfig)),
        (TENANT_METRICS, get(metrics::of_tenant)),
    ] {
        router = router.route(path, refusing(handler, &super::kinds::TENANT));
    }
    let [approve, cancel, dismiss] = ACTS;
    for (path, handler) in [
        (LOG, get(run::log)),
        (approve, post(run::approve)),
        (cancel, post(run::cancel)),
        (dismiss, post(run::dismiss)),
    ] {
        router = router.route(path, refusing(handler, &super::kinds::RUN));
    }
    router.with_state(plane)
}

/// A request to read objects.
struct Asked {
    kind: &'static KindInfo,
    is_one: bool,
    names: HashMap<String, String>,
    query: Option<String>,
    sight: Sight,
}

impl Asked {
    async fn answer(mut self, plane: &Plane, headers: &HeaderMap) -> Result<Response, ApiError> {
        let query = self.query.unwrap_or_default();
        let tenant = self.names.remove("tenant");
        let name = self.names.remove("name");
        let (namespace, name) = if self.kind.namespaced { (tenant, name) } else { (None, tenant.or(name)) };
        let place = Place { kind: self.kind, namespace, sight: self.sight };
        match name.filter(|_| self.is_one) {
            Some(name) => list::one(plane, place, &name, &query, headers).await,
            None => list::several(plane, place, &query, headers).await,
        }
    }
}

/// Refuses every other method, by the route alone: before the object is looked for, or the body.
fn refusing(reading: MethodRouter<Plane>, kind: &'static KindInfo) -> MethodRouter<Plane> {
    let refuse = move |method: Method,
                       route: MatchedPath,
                       Path(names): Path<HashMap<String, String>>,
                       body: Body| async move {
        // A client that is still writing would not read the answer.
        drop(axum::body::to_bytes(body, DRAINED).await);
        let mut details = json!({ "kind": kind.plural });
        if !kind.is_core {
            details["group"] = kind.group().into();
        }
        let named = names.get(if kind.namespaced { "name" } else { "tenant" }).or_else(|| names.get("name"));
        if let Some(name) = named {
            details["name"] = name.chars().take(253).collect::<String>().into();
        }
        let (is_act, is_made) = (ACTS.contains(&route.as_str()), route.as_str() == RUNS);
        let belongs = match kind.kind {
            "Run" if is_act => "this path takes POST alone",
            "Run" => {
                "a run is made, approved and cancelled, and neither changed nor deleted: POST it to /namespaces/{tenant}/runs, \
                 or POST to its /approve, /cancel or /dismiss"
            }
            "Provider" => "a mapping is a file: change it in the directory of mappings",
            "Namespace" => "a tenant is created by its first apply, or by `rezus-server tenant create`",
            "Event" => "events are the server's own",
            _ => {
                "it shows what the state declares. Change the tenant's configuration and apply it with tofu or terraform"
            }
        };
        let what = if kind.kind == "Run" { "" } else { " is read-only" };
        let message = format!("{method} is refused: {}{what}: {belongs}", kind.qualified());
        let mut response = ApiError::method_not_allowed(message).with_details(details).into_response();
        let allowed = match (is_act, is_made) {
            (true, _) => "POST",
            (false, true) => "GET, HEAD, POST",
            (false, false) => "GET, HEAD",
        };
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    };
    reading.fallback(refuse)
}
