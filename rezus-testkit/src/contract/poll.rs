//! Futures that are dropped half way.

use std::pin::pin;
use std::task::Poll;

/// Polls a future at most `polls` times and drops it; tells whether it had ended by then.
///
/// Between two polls other tasks and threads get their turn, so that what the future waits for comes about.
pub(super) async fn drop_after<F: Future>(polls: usize, future: F) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        let ended =
            std::future::poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await;
        if ended {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}
