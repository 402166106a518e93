//! Requests and their answers.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Collected, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use rezus_core::base::Timestamp;
use serde_json::json;
use tokio::sync::watch::Receiver;

use super::super::PeerFault;
use super::{Behaviour, Shared, lock};

type Body = UnsyncBoxBody<Bytes, io::Error>;

fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

fn streamed(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> Body {
    StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data))).boxed_unsync()
}

/// Answers a request.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    request: &Request<Incoming>,
    fault: Option<PeerFault>,
) -> Response<Body> {
    let query: BTreeMap<&str, &str> = request
        .uri()
        .query()
        .unwrap_or_default()
        .split('&')
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .collect();
    let watching = query.get("watch") == Some(&"true");
    note(shared, request, watching);
    let mut response = match broken(shared, fault).await {
        Some(response) => response,
        None => respond(shared, request, &query, watching).await,
    };
    if fault == Some(PeerFault::Drip) || fault == Some(PeerFault::HalfOpen) || fault == Some(PeerFault::Cut) {
        let whole = response.into_body().collect().await.map(Collected::to_bytes).unwrap_or_default();
        response = json_response(StatusCode::OK, partial(whole, fault));
    }
    let headers = response.headers_mut();
    if let Ok(date) = http_date(shared.clock.now()).parse() {
        headers.insert("date", date);
    }
    response
}

fn note(shared: &Shared, request: &Request<Incoming>, watching: bool) {
    let mut path = request.uri().path().to_owned();
    if watching {
        path.push_str("?watch");
    }
    if request.method() != Method::GET {
        path = format!("{} {path}", request.method());
    }
    *lock(&shared.asked).entry(path).or_default() += 1;
}

/// What all requests get of a server with a fault.
async fn broken(shared: &Arc<Shared>, fault: Option<PeerFault>) -> Option<Response<Body>> {
    match fault? {
        PeerFault::SilentHttp => std::future::pending().await,
        PeerFault::Endless => Some(json_response(StatusCode::OK, endless(shared))),
        PeerFault::Html => {
            let page = "<html>\u{1b}[31m<head><title>Sign in</title></head><body>Who are you?</body></html>";
            let mut response = Response::new(full(page));
            response
                .headers_mut()
                .insert("content-type", hyper::header::HeaderValue::from_static("text/html"));
            Some(response)
        }
        PeerFault::Unauthorized => Some(status(StatusCode::UNAUTHORIZED, "Unauthorized")),
        PeerFault::TooManyRequests => {
            let mut response = status(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
            response.headers_mut().insert("retry-after", hyper::header::HeaderValue::from_static("7"));
            Some(response)
        }
        PeerFault::Unavailable => Some(status(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable")),
        _ => None,
    }
}

/// 5 GB that could be the beginning of a list.
fn endless(shared: &Arc<Shared>) -> Body {
    let shared = Arc::clone(shared);
    let piece = Bytes::from(vec![b' '; 64 * 1024]);
    let first = stream::iter([Ok(Bytes::from_static(b"{\"items\":["))]);
    streamed(first.chain(stream::iter((0..80_000).map(move |_| {
        shared.taken.fetch_add(64 * 1024, Ordering::SeqCst);
        Ok(piece.clone())
    }))))
}

/// The beginning of an answer, slowly or not to its end.
fn partial(whole: Bytes, fault: Option<PeerFault>) -> Body {
    let first = whole.slice(..whole.len().min(16));
    match fault {
        Some(PeerFault::Drip) => streamed(stream::unfold(0, move |at| {
            let whole = whole.clone();
            async move {
                let byte = whole.get(at..=at).map(Bytes::copy_from_slice)?;
                tokio::time::sleep(Duration::from_secs(1)).await;
                Some((Ok(byte), at + 1))
            }
        })),
        Some(PeerFault::Cut) => {
            let end = Err(io::Error::from(io::ErrorKind::ConnectionReset));
            streamed(stream::iter([Ok(first), end]))
        }
        _ => streamed(stream::iter([Ok(first)]).chain(stream::pending())),
    }
}

async fn respond(
    shared: &Arc<Shared>,
    request: &Request<Incoming>,
    query: &BTreeMap<&str, &str>,
    watching: bool,
) -> Response<Body> {
    let behaviour = lock(&shared.behaviour).clone();
    let resource = match request.uri().path() {
        "/version" => "version",
        "/readyz" => "readyz",
        "/api/v1/namespaces/kube-system" => "namespaces",
        "/api/v1/nodes" => "nodes",
        "/api/v1/pods" => "pods",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases" => "leases",
        "/apis/metrics.k8s.io/v1beta1/nodes" if !behaviour.no_metrics => "metrics",
        path if path.starts_with("/api/v1/nodes/") && path.ends_with("/proxy/stats/summary") => "summary",
        _ => return status(StatusCode::NOT_FOUND, "NotFound"),
    };
    if request.method() != Method::GET {
        return status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed");
    }
    if behaviour.hanging.contains(resource) {
        return std::future::pending().await;
    }
    if behaviour.forbidden.contains(resource) {
        return status(StatusCode::FORBIDDEN, "Forbidden");
    }
    match resource {
        "version" => {
            json_response(StatusCode::OK, full(r#"{"major":"1","minor":"35","gitVersion":"v1.35.1"}"#))
        }
        "readyz" => readyz(&behaviour),
        "namespaces" => {
            let uid = lock(&shared.world).uid.clone();
            let object = json!({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid}});
            json_response(StatusCode::OK, full(object.to_string()))
        }
        "leases" => json_response(StatusCode::OK, full(leases(shared))),
        "summary" => json_response(StatusCode::OK, full(summary(shared))),
        "metrics" => json_response(StatusCode::OK, full(metrics(shared))),
        listed if watching => watch(shared, listed, query, behaviour.watch_gone),
        listed => json_response(StatusCode::OK, full(list(shared, listed, query))),
    }
}

fn readyz(behaviour: &Behaviour) -> Response<Body> {
    let failed = &behaviour.failed_checks;
    let mut text = String::from("[+]ping ok\n[+]log ok\n");
    for name in failed {
        text.extend(["[-]", name, " failed: reason withheld\n"]);
    }
    text += if failed.is_empty() { "readyz check passed\n" } else { "readyz check failed\n" };
    let mut response = Response::new(full(text));
    if !failed.is_empty() {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    response
}

fn leases(shared: &Shared) -> String {
    let world = lock(&shared.world);
    let lease = |(name, at): (&String, &Timestamp)| json!({"metadata": {"name": name}, "spec": {"holderIdentity": name, "renewTime": at.to_string()}});
    let items: Vec<_> = world.leases.iter().map(lease).collect();
    let version = world.told.unwrap_or(world.version).to_string();
    json!({"kind": "LeaseList", "metadata": {"resourceVersion": version}, "items": items}).to_string()
}

fn metrics(shared: &Shared) -> String {
    let at = shared.clock.now().to_string();
    let usage = |name: &String| {
        let usage = json!({"cpu": "123456789n", "memory": "2034560Ki"});
        json!({"metadata": {"name": name}, "timestamp": at, "window": "20.04s", "usage": usage})
    };
    let items: Vec<_> = lock(&shared.world).names("nodes").iter().map(usage).collect();
    json!({"kind": "NodeMetricsList", "metadata": {}, "items": items}).to_string()
}

fn summary(shared: &Shared) -> String {
    let at = shared.clock.now().to_string();
    let cpu = json!({"time": at, "usageNanoCores": 87_654_321, "usageCoreNanoSeconds": 1});
    json!({"node": {"cpu": cpu, "memory": {"time": at, "workingSetBytes": 3_000_000}}, "pods": []})
        .to_string()
}

fn list(shared: &Shared, resource: &'static str, query: &BTreeMap<&str, &str>) -> String {
    let world = lock(&shared.world);
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let after = query.get("continue").map(|token| token.replace("%2F", "/"));
    let page = world.page(resource, after.as_deref(), limit);
    let meta =
        json!({"resourceVersion": world.version.to_string(), "continue": page.next.unwrap_or_default()});
    drop(world);
    let mut text = format!("{{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{meta},\"items\":[");
    for (index, item) in page.items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(item);
    }
    text + "]}"
}

fn watch(
    shared: &Arc<Shared>,
    resource: &'static str,
    query: &BTreeMap<&str, &str>,
    gone: bool,
) -> Response<Body> {
    let from = query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0_u64);
    let known = lock(&shared.world).since(resource, from).is_some();
    if gone || !known {
        let error = json!({"type": "ERROR", "object": {
            "kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}});
        return json_response(StatusCode::OK, full(format!("{error}\n")));
    }
    let moved = shared.moved.subscribe();
    let shared = Arc::clone(shared);
    let lines = stream::unfold((shared, moved, from), move |(shared, mut moved, from)| async move {
        moved.mark_unchanged();
        let mut text = told(&shared, resource, from);
        if text.1.is_empty() {
            let silence = *lock(&shared.bookmarks);
            text = heard(&shared, resource, from, silence, &mut moved).await;
        }
        let (version, mut lines) = text;
        if lines.is_empty() {
            let kind = if resource == "nodes" { "Node" } else { "Pod" };
            let object = json!({"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": version.to_string()}});
            lines = format!("{}\n", json!({"type": "BOOKMARK", "object": object}));
        }
        Some((Ok(Bytes::from(lines)), (shared, moved, version)))
    });
    json_response(StatusCode::OK, streamed(lines))
}

/// The first events after a version, or none after that silence. Changes of other resources are none.
async fn heard(
    shared: &Shared,
    resource: &str,
    from: u64,
    silence: Duration,
    moved: &mut Receiver<u64>,
) -> (u64, String) {
    let waiting = async {
        while moved.changed().await.is_ok() {
            let text = told(shared, resource, from);
            if !text.1.is_empty() {
                return text;
            }
        }
        told(shared, resource, from)
    };
    match tokio::time::timeout(silence, waiting).await {
        Ok(text) => text,
        Err(_) => told(shared, resource, from),
    }
}

/// The events after a version, as lines, and the version that is reached by them.
fn told(shared: &Shared, resource: &str, from: u64) -> (u64, String) {
    let world = lock(&shared.world);
    let changes = world.since(resource, from).unwrap_or_default();
    let lines = changes
        .iter()
        .map(|change| format!("{{\"type\":\"{}\",\"object\":{}}}\n", change.kind, change.object));
    (world.version, lines.collect())
}

fn json_response(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert("content-type", json);
    response
}

fn status(code: StatusCode, reason: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code.as_u16(),
        "message": format!("the fake says {reason}"),
    });
    json_response(code, full(status.to_string()))
}

fn http_date(at: Timestamp) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or_default();
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
