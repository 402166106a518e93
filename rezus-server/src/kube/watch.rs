//! Watches: one JSON object a line, for each change of what is selected.
//!
//! A watcher holds its place in the hub's log and nothing else. Whoever reads so slowly that its place falls out of the
//! log is told that its version has expired, and begins anew. Whose rights change is told nothing more: the watch ends, and
//! what they may see is looked at when they watch again.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use rezus_core::base::Clock;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

use super::catalogue::Catalogue;
use super::form::Writer;
use super::hub::{Change, Hub, OutOfWindow, Snapshot};
use super::item::Item;
use super::list::{Place, selects};
use super::query::{Options, Since};
use crate::auth::Auth;
use crate::compose::Plane;
use crate::error::ApiError;
use crate::serve::Draining;

/// How often a bookmark is sent, and how long before the end (kube-apiserver, `storage/cacher`).
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long a watch lasts that does not say how long: so much, and up to as much again (kube-apiserver,
/// `MinRequestTimeout`).
const LASTS: Duration = Duration::from_mins(30);

/// How many bytes of events are written at a time, and how many changes are looked at.
const CHUNK: usize = 64 << 10;
const CHANGES: usize = 512;

/// What was asked for of a watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) from: Since,
    pub(super) bookmarks: bool,
    pub(super) timeout: Option<Duration>,
}

/// Answers a watch. What is shown was brought up to date.
pub(super) async fn answer(
    plane: &Plane,
    place: Place,
    options: Options,
    terms: Terms,
    writer: Writer,
) -> Result<Response, ApiError> {
    let hub = plane.catalogue.hub().await?;
    let newest = hub.subscribe();
    let list = hub.snapshot(place.kind);
    let (stage, position) = match terms.from {
        Since::Present { not_before, .. } if not_before > list.version => (Stage::Live, not_before),
        Since::Present { is_marked, .. } => {
            let version = list.version;
            (Stage::Initial { list, next: 0, is_marked }, version)
        }
        Since::After(version) => (Stage::Live, version),
        Since::Now => (Stage::Live, list.version),
    };
    let mut accounts = plane.auth.book().subscribe();
    if place.sight.of().is_some_and(|identity| identity.token.is_some()) {
        // They may have changed since the request was let in.
        accounts.mark_changed();
    }
    let begun = Instant::now();
    let lasts = terms.timeout.map_or_else(
        || {
            // Not all at once: watches that began together shall not end together.
            let spread = u64::try_from(uuid::Uuid::new_v4().as_u128() % 1_800).unwrap_or(0);
            LASTS + Duration::from_secs(spread)
        },
        // Whoever watches proves again, once in so long, that they may.
        |timeout| timeout.min(2 * LASTS),
    );
    let end = begun + lasts;
    let watcher = Watcher {
        catalogue: plane.catalogue.clone(),
        auth: plane.auth.clone(),
        accounts,
        draining: plane.draining.clone(),
        clock: Arc::clone(&plane.clock),
        place,
        options,
        writer,
        newest,
        position,
        stage,
        has_columns: false,
        end,
        bookmark: terms.bookmarks.then(|| next_bookmark(begun, end)).flatten(),
    };
    let events = futures_util::stream::unfold(watcher, |mut watcher| async move {
        let chunk = watcher.next().await?;
        Some((Ok::<_, Infallible>(chunk), watcher))
    });
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(events)).into_response())
}

/// When the next bookmark is due: in a minute, or shortly before the end.
fn next_bookmark(now: Instant, end: Instant) -> Option<Instant> {
    let last = end.checked_sub(BOOKMARK_BEFORE_END)?;
    (last > now).then(|| last.min(now + BOOKMARK_EVERY))
}

struct Watcher {
    catalogue: Catalogue,
    auth: Auth,
    /// Tells when an account may have changed.
    accounts: watch::Receiver<u64>,
    draining: Draining,
    clock: Arc<dyn Clock>,
    place: Place,
    options: Options,
    writer: Writer,
    newest: watch::Receiver<u64>,
    /// Up to which resource version everything was told.
    position: u64,
    stage: Stage,
    /// Whether a table's columns were told.
    has_columns: bool,
    end: Instant,
    bookmark: Option<Instant>,
}

enum Stage {
    /// What was there when the watch began is told.
    Initial { list: Snapshot, next: usize, is_marked: bool },
    /// Changes are told as they come.
    Live,
    /// Everything is told.
    Over,
}

impl Watcher {
    /// The next lines; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let catalogue = self.catalogue.clone();
        let hub = catalogue.hub().await.ok()?;
        loop {
            if !self.may_go_on().await {
                return None;
            }
            let lines = match &self.stage {
                Stage::Over => return None,
                Stage::Initial { .. } => self.initial(),
                Stage::Live => match self.changes(hub) {
                    Ok(lines) => lines,
                    Err(window) => return Some(self.expired(window)),
                },
            };
            if !lines.is_empty() {
                return Some(lines.into());
            }
            if !matches!(self.stage, Stage::Live) || self.position < hub.newest() {
                continue;
            }
            let due = self.bookmark.unwrap_or(self.end);
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                // What came of it is looked at above.
                changed = self.accounts.changed() => {
                    changed.ok()?;
                    self.accounts.mark_changed();
                }
                // The client goes on with another server from where it is.
                () = self.draining.begun() => return None,
                () = tokio::time::sleep_until(due) => {
                    let now = Instant::now();
                    if now >= self.end {
                        return None;
                    }
                    self.bookmark = next_bookmark(now, self.end);
                    let mut out = Vec::new();
                    let object = self.writer.bookmark(self.position, false, !self.has_columns);
                    line(&mut out, "BOOKMARK", &object);
                    self.has_columns = true;
                    return Some(out.into());
                }
            }
        }
    }

    /// Tells whether whoever watches has the rights with which they began.
    async fn may_go_on(&mut self) -> bool {
        if !self.accounts.has_changed().unwrap_or(true) {
            return true;
        }
        self.accounts.mark_unchanged();
        match self.place.sight.of() {
            Some(identity) => self.auth.is_as_before(identity).await,
            None => false,
        }
    }

    /// Some of what was there when the watch began.
    fn initial(&mut self) -> Vec<u8> {
        let Stage::Initial { list, next, is_marked } = std::mem::replace(&mut self.stage, Stage::Live) else {
            return Vec::new();
        };
        let (mut out, mut at) = (Vec::new(), next);
        while let Some(item) = list.items.get(at).filter(|_| out.len() < CHUNK) {
            if self.is_told(item) {
                self.tell(&mut out, "ADDED", item);
            }
            at += 1;
        }
        if at < list.items.len() {
            self.stage = Stage::Initial { list, next: at, is_marked };
        } else if is_marked {
            let object = self.writer.bookmark(list.version, true, !self.has_columns);
            line(&mut out, "BOOKMARK", &object);
            self.has_columns = true;
        }
        out
    }

    /// What changed since.
    fn changes(&mut self, hub: &Hub) -> Result<Vec<u8>, OutOfWindow> {
        // What comes while this is read wakes the watcher again.
        self.newest.mark_unchanged();
        let batch = hub.after(self.place.kind, self.position, CHANGES)?;
        let mut out = Vec::new();
        for change in &batch.changes {
            self.change(&mut out, change);
        }
        self.position = batch.complete_to;
        Ok(out)
    }

    fn change(&mut self, out: &mut Vec<u8>, change: &Change) {
        let before = change.before.as_deref().filter(|item| self.is_told(item));
        let after = change.after.as_deref().filter(|item| self.is_told(item));
        match (before, after) {
            (None, Some(item)) => self.tell(out, "ADDED", item),
            (Some(_), Some(item)) => self.tell(out, "MODIFIED", item),
            // As it was last, at the version in which it went: the place to go on from.
            (Some(item), None) => self.tell(out, "DELETED", &item.moved_to(change.version)),
            (None, None) => {}
        }
    }

    fn is_told(&self, item: &Item) -> bool {
        self.place.holds(item) && selects(&self.options, item)
    }

    fn tell(&mut self, out: &mut Vec<u8>, kind: &str, item: &Item) {
        let object = self.writer.one(item, self.clock.now(), !self.has_columns);
        self.has_columns = true;
        line(out, kind, &object);
    }

    /// The last line: the version that was asked for is none to go on from.
    fn expired(&mut self, window: OutOfWindow) -> Bytes {
        self.stage = Stage::Over;
        let status =
            ApiError::expired(format!("too old resource version: {} ({})", self.position, window.oldest));
        let mut out = Vec::new();
        line(&mut out, "ERROR", status.to_status().as_bytes());
        out.into()
    }
}

fn line(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}
