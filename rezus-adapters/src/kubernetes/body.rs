//! The body of a response, as far as it is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use rezus_core::observed::{Failure, Phase};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};

use super::task::Task;
use super::text;
use super::trouble::{self, Trouble};

/// How much is read, and for how long. There is no compression (no request asks for it), so what is counted is what is kept.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// So many bytes, all by a point in time that is so far away.
    Whole { bytes: u64, within: Duration },
    /// Lines without end of so many bytes each, with no longer silence between two pieces.
    Lines { bytes: u64, silence: Duration },
}

impl Limit {
    const fn bytes(self) -> u64 {
        match self {
            Self::Whole { bytes, .. } | Self::Lines { bytes, .. } => bytes,
        }
    }

    const fn patience(self) -> Duration {
        match self {
            Self::Whole { within, .. } => within,
            Self::Lines { silence, .. } => silence,
        }
    }
}

/// A body within its limits; the connection lives as long as it does.
#[derive(Debug)]
pub(super) struct Bounded {
    inner: Incoming,
    limit: Limit,
    /// Of the whole, or of the line that has not ended.
    read: u64,
    begun: bool,
    /// Whether it has to be JSON.
    json: bool,
    timer: Pin<Box<Sleep>>,
    _connection: Arc<Task>,
    turn: Option<OwnedSemaphorePermit>,
}

impl Bounded {
    pub(super) fn new(inner: Incoming, limit: Limit, json: bool, connection: Arc<Task>) -> Self {
        let timer = Box::pin(tokio::time::sleep(limit.patience()));
        Self { inner, limit, read: 0, begun: false, json, timer, _connection: connection, turn: None }
    }

    /// Holds a turn until it is read; what was waited for that does not count.
    pub(super) fn hold(&mut self, turn: Option<OwnedSemaphorePermit>) {
        self.turn = turn;
        self.timer.as_mut().reset(Instant::now() + self.limit.patience());
    }

    fn count(&mut self, data: &Bytes) -> Result<(), Trouble> {
        if !self.begun && self.json {
            // A load balancer's page is told from JSON here, before anybody reads it or logs it.
            match data.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{') => self.begun = true,
                Some(_) => return Err(Failure::Malformed { start: text::start(data) }.into()),
                None => {}
            }
        }
        let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
        self.read = self.read.saturating_add(length);
        let bytes = self.limit.bytes();
        if let Limit::Lines { silence, .. } = self.limit {
            self.timer.as_mut().reset(Instant::now() + silence);
            if let Some(end) = data.iter().rposition(|byte| *byte == b'\n') {
                self.read = u64::try_from(data.len() - end - 1).unwrap_or(u64::MAX);
            }
        }
        if self.read > bytes { Err(Failure::TooLarge { limit: bytes }.into()) } else { Ok(()) }
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        if self.timer.as_mut().poll(cx).is_ready() {
            let after = self.limit.patience();
            return Poll::Ready(Some(Err(Failure::Timeout { after }.into())));
        }
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(trouble::of_error(&error, Phase::Http)))),
            Some(Ok(frame)) => frame,
        };
        let counted = frame.data_ref().map_or(Ok(()), |data| self.count(data));
        Poll::Ready(Some(counted.map(|()| match self.limit {
            Limit::Whole { .. } => frame,
            // Who waits for the next line holds the last piece: a copy is as large as what came, and the connection's buffer
            // is free to be read into again.
            Limit::Lines { .. } => frame.map_data(|data| Bytes::copy_from_slice(&data)),
        })))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
