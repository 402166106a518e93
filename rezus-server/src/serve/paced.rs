//! A long answer's body, handed over in pieces and within a time: who leaves it unread holds neither memory nor a place for
//! longer.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use tokio::task::JoinHandle;

/// How many bytes are handed over at a time: the connection takes the next ones when it has room for them.
const PIECE: usize = 64 << 10;

/// A body that lets everything go when its time is over.
#[derive(Debug)]
pub(super) struct Paced<T> {
    left: Arc<Mutex<Option<Left<T>>>>,
    end: JoinHandle<()>,
}

/// What is still to be handed over, and what is held meanwhile.
#[derive(Debug)]
struct Left<T> {
    body: Body,
    /// The rest of the frame that is being handed over.
    frame: Bytes,
    _held: T,
}

/// A client read too slowly.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the answer was not read in time")]
struct TooSlow;

impl<T: Send + 'static> Paced<T> {
    /// Holds `held` until all of `body` is handed over, or `time` is over. In a runtime.
    pub(super) fn new(body: Body, held: T, time: Duration) -> Self {
        let left = Arc::new(Mutex::new(Some(Left { body, frame: Bytes::new(), _held: held })));
        let late = Arc::clone(&left);
        // Not by polling: a connection that cannot hand over anything does not ask.
        let end = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            drop(lock(&late).take());
        });
        Self { left, end }
    }
}

fn lock<T>(left: &Mutex<Option<Left<T>>>) -> MutexGuard<'_, Option<Left<T>>> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Drop for Paced<T> {
    fn drop(&mut self) {
        self.end.abort();
        drop(lock(&self.left).take());
    }
}

impl<T: Unpin> HttpBody for Paced<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut left = lock(&self.left);
        let Some(Left { body, frame, .. }) = &mut *left else {
            return Poll::Ready(Some(Err(axum::Error::new(TooSlow))));
        };
        if frame.is_empty() {
            match std::task::ready!(Pin::new(body).poll_frame(cx)) {
                Some(Ok(next)) => match next.into_data() {
                    Ok(data) => *frame = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = frame.split_to(frame.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.left).as_ref().is_some_and(|left| left.frame.is_empty() && left.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let left = lock(&self.left);
        let Some(Left { body, frame, .. }) = &*left else {
            return SizeHint::default();
        };
        let (mut hint, more) = (body.size_hint(), u64::try_from(frame.len()).unwrap_or(u64::MAX));
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper.saturating_add(more));
        }
        hint.set_lower(hint.lower().saturating_add(more));
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn all_is_handed_over_in_pieces_and_lets_go_at_the_end() {
        let held = Arc::new(());
        let text: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let mut body = Paced::new(Body::from(text.clone()), Arc::clone(&held), Duration::from_mins(1));
        let (mut read, mut pieces) = (Vec::new(), 0);
        while !body.is_end_stream() {
            let left = u64::try_from(text.len() - read.len()).unwrap();
            assert_eq!(body.size_hint().exact(), Some(left));
            read.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
            pieces += 1;
        }
        assert!(read == text);
        assert_eq!(pieces, 4);
        drop(body);
        assert_eq!(Arc::strong_count(&held), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_unread_is_let_go_without_being_asked_for() {
        let held = Arc::new(());
        let text = Bytes::from(vec![b'x'; 200_000]);
        let mut body = Paced::new(Body::from(text.clone()), Arc::clone(&held), Duration::from_secs(5));
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), PIECE);
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(Arc::strong_count(&held), 1);
        // Nobody else has the bytes any more.
        assert!(text.is_unique());
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("not read in time"), "{error}");
    }
}
