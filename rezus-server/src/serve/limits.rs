//! What a request is held to before anything is done about it: its size, its time, and how many others are under way.
//!
//! Each refusal is a `Status` of Kubernetes, so that its clients know whether to try again.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use http_body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::held::Held;
use super::paced::Paced;
use crate::config::{ByteSize, LimitsConfig};
use crate::error::ApiError;
use crate::kube;
use crate::peer::Peer;

/// When a client is to come again that was one too many.
const AGAIN: Duration = Duration::from_secs(1);

/// An answer of up to so many bytes keeps no place: whoever asked may leave it unread for as long as they like.
const SMALL: u64 = 16 << 10;

/// The limits, and what is under way under them. Clones share it.
#[derive(Clone, Debug)]
pub struct Limits {
    config: Arc<LimitsConfig>,
    uploads: ByteSize,
    states: Arc<Semaphore>,
    others: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

/// What kind of request it is: each has limits of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Tells whether the server is well: answered however busy it is.
    Health,
    /// Of the state backend: bodies of any size, for as long as they take. It has limits of its own beside.
    State,
    /// Goes on until something ends it.
    Watch,
    /// A whole state or log is answered, for as long as that takes.
    Download,
    /// A configuration is sent, for as long as that takes: nobody but its tenant's admins is read.
    Upload,
    /// Everything else.
    Other,
}

impl Limits {
    /// Nothing is under way yet.
    pub fn new(config: &LimitsConfig) -> Self {
        let places = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            config: Arc::new(config.clone()),
            uploads: config.body,
            states: places(config.in_flight.max(1)),
            others: places(config.in_flight.max(1)),
            watches: places(config.watches),
        }
    }

    /// Configurations that are uploaded may be longer than other bodies.
    #[must_use]
    pub fn with_uploads(self, uploads: ByteSize) -> Self {
        Self { uploads, ..self }
    }

    /// Refuses a request by its head.
    fn objection(&self, request: &Request) -> Option<ApiError> {
        let LimitsConfig { url, head, .. } = self.config.as_ref();
        let length = |length: usize| u64::try_from(length).unwrap_or(u64::MAX);
        let target = length(request.uri().path_and_query().map_or(0, |target| target.as_str().len()));
        if target > url.0 {
            return Some(ApiError::uri_too_long(format!(
                "the URL has {target} bytes and may have {}",
                url.0
            )));
        }
        // Each line has a colon, a blank and an end beside name and value.
        let lines = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
        let size = target.saturating_add(length(lines.sum()));
        (size > head.0).then(|| {
            ApiError::head_too_large(format!(
                "the head of the request has {size} bytes and may have {}",
                head.0
            ))
        })
    }

    /// The longest body of a kind of request, and the setting that says so.
    fn longest(&self, kind: Kind) -> (ByteSize, &'static str) {
        match kind {
            Kind::Upload => (self.uploads, "runs.max_configuration"),
            _ => (self.config.body, "limits.body"),
        }
    }

    /// Finds a place for a request, or says that there is none.
    fn admit(&self, kind: Kind) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        let (places, what, limit) = match kind {
            Kind::Health => return Ok(None),
            Kind::State => (&self.states, "requests are under way", "limits.in_flight"),
            Kind::Download | Kind::Upload | Kind::Other => {
                (&self.others, "requests are under way", "limits.in_flight")
            }
            Kind::Watch => (&self.watches, "watches are open", "limits.watches"),
        };
        Arc::clone(places).try_acquire_owned().map(Some).map_err(|_| {
            ApiError::too_many(format!("as many {what} as may be ({limit}): try again later"), AGAIN)
        })
    }
}

impl Kind {
    fn of(request: &Request) -> Self {
        let path = request.uri().path();
        if ["/healthz", "/livez", "/readyz"].contains(&path) {
            return Self::Health;
        }
        if path == "/state" || path.starts_with("/state/") {
            return Self::State;
        }
        let route = request.extensions().get::<MatchedPath>();
        let is_list = route.is_some_and(|route| kube::can_be_watched(route.as_str()));
        if is_list && request.method() == Method::GET && asks_to_watch(request.uri()) {
            return Self::Watch;
        }
        if path.starts_with("/rezus/v1/tenants/") && path.ends_with("/body") {
            return Self::Download;
        }
        if path.starts_with("/rezus/v1/tenants/") && path.ends_with("/readings") {
            return Self::Watch;
        }
        if route.is_some_and(|route| kube::is_log(route.as_str())) {
            let follows = kube::follows(request.uri().query(), request.headers());
            return if follows { Self::Watch } else { Self::Download };
        }
        if path.starts_with("/rezus/v1/tenants/") && path.ends_with("/configuration") {
            return Self::Upload;
        }
        Self::Other
    }
}

/// Tells whether a query asks to watch, as Kubernetes reads it: `watch` is there, and its first value is neither `0` nor
/// `false` in any case.
pub fn asks_to_watch(uri: &Uri) -> bool {
    let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let watch = pairs.find(|(name, _)| name == "watch");
    watch.is_some_and(|(_, value)| value != "0" && !value.eq_ignore_ascii_case("false"))
}

/// Holds requests to the limits. What comes through the data directory's socket is an admin's: it always finds a place,
/// and has all the time it needs.
pub fn bounded(routes: Router, limits: Limits) -> Router {
    // The library's own limit is another.
    routes.layer(middleware::from_fn_with_state(limits, bound)).layer(DefaultBodyLimit::disable())
}

async fn bound(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    let kind = Kind::of(&request);
    if let Some(objection) = limits.objection(&request) {
        return objection.into_response();
    }
    let is_admin = matches!(request.extensions().get(), Some(ConnectInfo(Peer::Socket)));
    let place = match limits.admit(if is_admin { Kind::Health } else { kind }) {
        Ok(place) => place,
        Err(full) => return full.into_response(),
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let (longest, setting) = limits.longest(kind);
    let request = match kind {
        Kind::State => request,
        _ => request.map(|body| Body::new(Bounded { body, left: longest.0, is_over: Arc::clone(&is_over) })),
    };
    let answer = next.run(request);
    let mut answer = match kind {
        Kind::Health | Kind::Other if !is_admin => {
            match tokio::time::timeout(limits.config.deadline.0, answer).await {
                Ok(answer) => answer,
                Err(_) => ApiError::timeout(
                    "the answer took longer than it may (limits.deadline): what was asked for may be done all the same",
                )
                .into_response(),
            }
        }
        _ => answer.await,
    };
    if is_over.load(Ordering::Relaxed) {
        // Whatever its handler made of it.
        let message = format!("the body may have {} bytes ({setting})", longest.0);
        answer = ApiError::too_large(message).into_response();
    }
    let is_small = answer.body().size_hint().upper().is_some_and(|size| size <= SMALL);
    match (kind, is_small) {
        (_, true) | (Kind::Health, _) => answer,
        (Kind::State | Kind::Download | Kind::Watch, false) => {
            answer.map(|body| Body::new(Held::new(body, place)))
        }
        (Kind::Upload | Kind::Other, false) => {
            answer.map(|body| Body::new(Paced::new(body, place, limits.config.answer.0)))
        }
    }
}

/// A body was longer than it may be.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body is too long")]
struct TooLong;

/// A body that is cut off where it is too long; at once, if it says so itself. What nobody reads may have any length: the
/// answer then says why nobody does.
struct Bounded {
    body: Body,
    left: u64,
    is_over: Arc<AtomicBool>,
}

impl Bounded {
    fn cut(&self) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.is_over.store(true, Ordering::Relaxed);
        Poll::Ready(Some(Err(axum::Error::new(TooLong))))
    }
}

impl HttpBody for Bounded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.body.size_hint().lower() > self.left {
            return self.cut();
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(Ok(data)) = frame.as_ref().map(|frame| frame.as_ref().map(Frame::data_ref)) else {
            return Poll::Ready(frame);
        };
        let length = u64::try_from(data.map_or(0, Bytes::len)).unwrap_or(u64::MAX);
        let Some(left) = self.left.checked_sub(length) else {
            return self.cut();
        };
        self.left = left;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::routing::get;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_left_unread_keeps_a_place_if_it_is_large() {
        let text = |length: usize| get(move || async move { "x".repeat(length) });
        let routes = Router::new().route("/small", text(16 << 10)).route("/large", text((16 << 10) + 1));
        let config = LimitsConfig { in_flight: 1, ..LimitsConfig::default() };
        let routes = bounded(routes, Limits::new(&config));
        let ask = async |path: &str| {
            let request = Request::get(path).body(Body::empty()).unwrap();
            routes.clone().oneshot(request).await.unwrap()
        };
        let unread = [ask("/small").await, ask("/small").await, ask("/large").await];
        assert_eq!(unread.each_ref().map(Response::status), [StatusCode::OK; 3]);
        assert_eq!(ask("/small").await.status(), StatusCode::TOO_MANY_REQUESTS);
        drop(unread);
        assert_eq!(ask("/large").await.status(), StatusCode::OK);
    }
}
