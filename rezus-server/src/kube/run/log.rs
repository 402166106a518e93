//! The log of a run, as bytes or as events, from any offset on; whole, or as it grows until the run ends.
//!
//! A follower reads pieces of what is kept at its own pace and holds nothing but its offset: all of them get the same
//! bytes, whenever they came and however slowly they read.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use rezus_core::access::Identity;
use rezus_core::runs::executor::{RunId, TofuExecutor};
use tokio::sync::watch;

use super::sse;
use crate::api::Path;
use crate::auth::{Auth, Who};
use crate::compose::Plane;
use crate::error::ApiError;
use crate::runs::Runs;
use crate::serve::Draining;

/// How much of a log is read at a time.
const PIECE: usize = 64 << 10;

/// How often something is sent to a follower of events where nothing happens: proxies end what is silent for a minute.
const ALIVE: Duration = Duration::from_secs(15);

/// Where a follower of events says how far it was.
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// What is asked for of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    is_followed: bool,
    offset: u64,
    /// Whether it is wanted as events.
    events: bool,
}

impl Asked {
    /// Parameters of other names, which Kubernetes has for the logs of pods, are passed over.
    fn parse(query: &str, headers: &HeaderMap) -> Result<Self, ApiError> {
        let events = wants_events(headers);
        let mut asked = Self { is_followed: events, offset: 0, events };
        let number = |name: &str, text: &str| {
            let bad = || ApiError::bad_request(format!("{name}: expected the number of a byte"));
            text.parse::<u64>().map_err(|_| bad())
        };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "follow" => asked.is_followed = value != "0" && !value.eq_ignore_ascii_case("false"),
                "offset" if !value.is_empty() => asked.offset = number("offset", &value)?,
                _ => {}
            }
        }
        if let Some(last) = headers.get(LAST_EVENT).filter(|last| events && !last.is_empty()) {
            asked.offset = number("Last-Event-ID", last.to_str().unwrap_or_default())?;
        }
        Ok(asked)
    }
}

/// Tells whether events are wanted rather than bytes: only there where they are asked for by name.
fn wants_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|part| {
            part.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/event-stream"))
        })
}

/// Tells whether a request for a log goes on until its run ends.
pub fn follows(query: Option<&str>, headers: &HeaderMap) -> bool {
    Asked::parse(query.unwrap_or_default(), headers).is_ok_and(|asked| asked.is_followed)
}

/// Answers with a run's log.
pub(in crate::kube) async fn log(
    State(plane): State<Plane>,
    Path((namespace, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    who: Who,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (tenant, run) = super::run_of(&namespace, &name)?;
    let asked = Asked::parse(query.as_deref().unwrap_or_default(), &headers)?;
    plane.runs.kept(&tenant, &run).await.map_err(|error| super::not_done(error, &run))?;
    let id = RunId { tenant, run };
    let executor = Arc::clone(plane.runs.executor());
    // Before anything is read: what is written afterwards is told.
    let live = if asked.is_followed { plane.runs.log_length(&id).await } else { None };
    if let Some(before) = asked.offset.checked_sub(1) {
        let there = executor.log(&id, before, 1).await.map_err(ApiError::internal)?;
        if there.is_none_or(|there| there.is_empty()) {
            return Err(ApiError::range_not_satisfiable(format!(
                "the log has fewer than {} bytes",
                asked.offset
            )));
        }
    }
    let mut accounts = plane.auth.book().subscribe();
    if who.0.token.is_some() {
        // They may have changed since the request was let in.
        accounts.mark_changed();
    }
    let reader = Reader {
        runs: plane.runs.clone(),
        executor,
        id,
        offset: asked.offset,
        events: asked.events,
        live,
        is_over: false,
        auth: plane.auth.clone(),
        identity: who.0,
        accounts,
        draining: plane.draining.clone(),
    };
    let pieces = futures_util::stream::try_unfold(reader, |mut reader| async move {
        Ok::<_, std::io::Error>(reader.next().await?.map(|piece| (piece, reader)))
    });
    let media = if asked.events { "text/event-stream" } else { "text/plain; charset=utf-8" };
    let head = [
        (CONTENT_TYPE, media),
        (CACHE_CONTROL, "no-store"),
        // Nobody is to wait for more in order to guess what it is, or to pass on more at a time (nginx).
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((head, Body::from_stream(pieces)).into_response())
}

/// Whoever reads a log.
struct Reader {
    runs: Runs,
    executor: Arc<dyn TofuExecutor>,
    id: RunId,
    offset: u64,
    events: bool,
    /// Tells when the log grows; none where it does not, or that is not waited for.
    live: Option<watch::Receiver<u64>>,
    is_over: bool,
    auth: Auth,
    identity: Identity,
    /// Tells when an account may have changed.
    accounts: watch::Receiver<u64>,
    draining: Draining,
}

impl Reader {
    /// The next piece; `None` at the end.
    async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        while !self.is_over {
            if self.live.is_some() && !self.may_go_on().await {
                return Ok(None);
            }
            let read =
                self.executor.log(&self.id, self.offset, PIECE).await.map_err(std::io::Error::other)?;
            let mut piece = read.unwrap_or_default();
            // A character that is cut in the middle of the log is whole in the next piece.
            let is_last = self.live.is_none() && piece.len() < PIECE;
            if self.events {
                piece.truncate(sse::whole(&piece, is_last));
            }
            if !piece.is_empty() {
                self.offset += u64::try_from(piece.len()).unwrap_or(u64::MAX);
                return Ok(Some(if self.events { sse::event(&piece, self.offset).into() } else { piece }));
            }
            if self.live.is_none() {
                self.is_over = true;
                return Ok(self.last_event().await);
            }
            if let Some(piece) = self.wait().await {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Waits until there may be more, and returns what is to be sent meanwhile.
    async fn wait(&mut self) -> Option<Bytes> {
        let live = self.live.as_mut()?;
        tokio::select! {
            grown = live.changed() => {
                if grown.is_err() {
                    // The run has ended: what is there now is all.
                    self.live = None;
                }
                None
            }
            changed = self.accounts.changed() => {
                // What came of it is looked at before anything more is read.
                self.is_over = changed.is_err();
                self.accounts.mark_changed();
                None
            }
            // The client goes on with another server from where it is.
            () = self.draining.begun() => {
                self.is_over = true;
                None
            }
            () = tokio::time::sleep(ALIVE), if self.events => Some(Bytes::from_static(sse::KEEP_ALIVE.as_bytes())),
        }
    }

    /// Says to a follower of events that the run has ended: else it would come again.
    async fn last_event(&self) -> Option<Bytes> {
        if !self.events {
            return None;
        }
        let record = self.runs.kept(&self.id.tenant, &self.id.run).await.ok()?;
        record.phase().is_end().then(|| sse::end(record.phase().as_str()).into())
    }

    /// Tells whether whoever reads has the rights with which they began.
    async fn may_go_on(&mut self) -> bool {
        if !self.accounts.has_changed().unwrap_or(true) {
            return true;
        }
        self.accounts.mark_unchanged();
        self.identity.token.is_none() || self.auth.is_as_before(&self.identity).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_says_from_where_and_in_which_form() {
        let mut headers = HeaderMap::new();
        let asked = |query: &str, headers: &HeaderMap| Asked::parse(query, headers).ok();
        let plain = |is_followed, offset| Some(Asked { is_followed, offset, events: false });
        assert_eq!(asked("", &headers), plain(false, 0));
        assert_eq!(asked("follow=true&offset=7&tailLines=3", &headers), plain(true, 7));
        assert_eq!(asked("follow=False&offset=", &headers), plain(false, 0));
        assert_eq!(asked("offset=-1", &headers), None);
        headers.insert(LAST_EVENT, "12".parse().unwrap());
        assert_eq!(asked("offset=7", &headers), plain(false, 7));
        headers.insert(ACCEPT, "text/html, text/event-stream;q=0.9".parse().unwrap());
        assert_eq!(asked("offset=7", &headers), Some(Asked { is_followed: true, offset: 12, events: true }));
        assert!(!follows(Some("follow=false"), &headers) && follows(None, &headers));
    }
}
