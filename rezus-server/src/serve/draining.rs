//! The news that the server ends.

use tokio::sync::watch;

/// Tells whoever asks that the server is about to end. Clones tell the same.
///
/// Answers that go on until something happens (watches) wait for [`begun`](Self::begun) beside that, and then end as they
/// would in the end anyway. Others need not care: they have the grace.
#[derive(Clone, Debug)]
pub struct Draining(watch::Sender<bool>);

impl Draining {
    /// A server that goes on.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Says that the server is about to end.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Waits until the server is about to end; returns at once if it is already. Safe to be given up while waiting.
    pub async fn begun(&self) {
        // It cannot fail: a sender is here.
        drop(self.0.subscribe().wait_for(|begun| *begun).await);
    }
}

impl Default for Draining {
    fn default() -> Self {
        Self::new()
    }
}
