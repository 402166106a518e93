//! How bodies of requests arrive: never slower than they must, and never left lying where nobody wants them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep};

use crate::config::StateConfig;

/// Of a body that nobody wants, at least so much is read: whoever sends more learns nothing but that it was too much.
const UNWANTED: u64 = 1 << 30;

/// Bounds the time that bodies of requests may take, and reads what of them an answer left unread: a client that is
/// still sending when the connection is closed does not see the answer, and tries again.
pub fn bounded(routes: Router, limits: &StateConfig) -> Router {
    let limits = Limits {
        pace: Pace { idle: limits.idle.0, min_rate: limits.min_rate.0 },
        // More than is accepted, so that what is too large is told that.
        unwanted: limits.max_body.0.saturating_mul(4).max(UNWANTED),
    };
    routes.layer(middleware::from_fn_with_state(limits, bound))
}

#[derive(Clone, Copy, Debug)]
struct Limits {
    pace: Pace,
    unwanted: u64,
}

async fn bound(State(limits): State<Limits>, request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let waits_to_be_asked = expects_continue(request.headers());
    let (back, mut unread) = oneshot::channel();
    let request = request.map(|body| Body::new(Paced::new(Arrival::new(body, limits.pace), back)));
    let response = next.run(request).await;
    if let Ok(rest) = unread.try_recv() {
        // Whoever waits to be asked for a body is still to send the first byte, and reads the answer instead.
        if rest.began.is_some() || !waits_to_be_asked {
            rest.discard(limits.unwanted).await;
        }
    }
    response
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// How slowly a body may arrive.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The longest pause, and the time to begin in.
    idle: Duration,
    /// Bytes a second; 0 for no minimum.
    min_rate: u64,
}

impl Pace {
    /// Returns when more must have come of a body that began and paused then, and brought so many bytes.
    fn deadline(self, began: Instant, last: Instant, received: u64) -> Instant {
        let pause_ends = last + self.idle;
        let earned = received.saturating_mul(1_000).checked_div(self.min_rate).map(Duration::from_millis);
        // Without an end in sight of the calendar there is none by rate either.
        let ends = earned.and_then(|earned| began.checked_add(self.idle)?.checked_add(earned));
        ends.map_or(pause_ends, |ends| ends.min(pause_ends))
    }
}

/// A body came too slowly.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body arrives too slowly")]
struct TooSlow;

/// A body on its way. Its time runs from when it is first asked for.
struct Arrival {
    body: Body,
    pace: Pace,
    began: Option<Instant>,
    last: Instant,
    received: u64,
    timer: Pin<Box<Sleep>>,
    over: bool,
}

impl Arrival {
    fn new(body: Body, pace: Pace) -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(now + pace.idle));
        Self { body, pace, began: None, last: now, received: 0, timer, over: false }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let began = *self.began.get_or_insert_with(|| {
            self.last = Instant::now();
            self.last
        });
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            match &frame {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Bytes::len);
                    self.received += u64::try_from(bytes).unwrap_or(u64::MAX);
                    self.last = Instant::now();
                }
                Some(Err(_)) | None => self.over = true,
            }
            return Poll::Ready(frame);
        }
        let deadline = self.pace.deadline(began, self.last, self.received);
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        ready!(self.timer.as_mut().poll(context));
        self.over = true;
        Poll::Ready(Some(Err(axum::Error::new(TooSlow))))
    }

    /// Reads on without keeping anything.
    async fn discard(mut self, limit: u64) {
        while self.received < limit {
            match std::future::poll_fn(|context| self.poll(context)).await {
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            }
        }
    }
}

/// A body that goes back to where it came from if it is dropped before its end.
struct Paced {
    arrival: Option<Arrival>,
    back: Option<oneshot::Sender<Arrival>>,
}

impl Paced {
    fn new(arrival: Arrival, back: oneshot::Sender<Arrival>) -> Self {
        Self { arrival: Some(arrival), back: Some(back) }
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.arrival.as_mut().map_or(Poll::Ready(None), |arrival| arrival.poll(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.arrival.as_ref().is_none_or(|arrival| arrival.over || arrival.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.arrival.as_ref().map_or_else(SizeHint::default, |arrival| arrival.body.size_hint())
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        if self.is_end_stream() {
            return;
        }
        if let (Some(arrival), Some(back)) = (self.arrival.take(), self.back.take()) {
            // Nobody waits for it where the request itself is gone.
            drop(back.send(arrival));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_the_pause_and_what_it_brought_at_the_least_rate() {
        let pace = Pace { idle: IDLE, min_rate: 1_000 };
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        // Nothing yet; a trickle; enough for the pause to be what counts.
        assert_eq!(pace.deadline(began, began, 0), after(30));
        assert_eq!(pace.deadline(began, after(29), 29), after(30) + Duration::from_millis(29));
        assert_eq!(pace.deadline(began, after(10), 1_000_000), after(40));
        assert_eq!(pace.deadline(began, after(10), u64::MAX), after(40));
        let any = Pace { idle: IDLE, min_rate: 0 };
        assert_eq!(any.deadline(began, after(3_600), 1), after(3_630));
    }

    /// A byte every 20 seconds never pauses for 30.
    #[tokio::test(start_paused = true)]
    async fn a_trickle_is_given_up() {
        let bytes = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        });
        let started = Instant::now();
        let mut arrival = Arrival::new(Body::from_stream(bytes), Pace { idle: IDLE, min_rate: 64 << 10 });
        let outcome = loop {
            match std::future::poll_fn(|context| arrival.poll(context)).await {
                Some(Ok(_)) => {}
                end => break end,
            }
        };
        assert!(outcome.unwrap().is_err());
        assert!(started.elapsed() < IDLE + Duration::from_secs(1), "{:?}", started.elapsed());
    }
}
