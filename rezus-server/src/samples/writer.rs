//! Writes what waits, many samples at a time.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use rezus_core::series::{Entry, Forwarder};
use tokio::time::sleep;

use super::Samples;
use super::seldom::Seldom;
use crate::error::Chain;
use crate::serve::Draining;

/// How long samples are gathered once there are some: so often the store syncs.
const GATHER: Duration = Duration::from_secs(1);

/// About how many samples are written at a time.
const BATCH: usize = 20_000;

/// The first and the longest wait after a write that failed.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

impl Samples {
    /// Writes what waits until the server is about to end, and then the rest of it. What is kept is handed to `forwarder` too.
    pub async fn write(self, forwarder: Option<Arc<dyn Forwarder>>, draining: Draining) {
        let failing = Seldom::default();
        let queue = &self.0.queue;
        loop {
            let ends = tokio::select! {
                biased;
                () = draining.begun() => true,
                () = queue.news() => false,
            };
            if !ends {
                tokio::select! {
                    () = sleep(GATHER) => {}
                    () = draining.begun() => {}
                }
            }
            while let Some(batch) = queue.take(BATCH) {
                if self.keep(&batch, &draining, &failing).await
                    && let Some(forwarder) = &forwarder
                    && let Err(error) = forwarder.append(&batch).await
                {
                    self.0.tally.not_forwarded(batch.len());
                    if failing.may() {
                        tracing::warn!(cause = %Chain(&error), "samples are kept, but not sent on");
                    }
                }
            }
            if ends {
                return;
            }
        }
    }

    /// Writes samples, again and again where that fails: those that come meanwhile wait, as far as there is room. Tells whether
    /// they were written before the end.
    async fn keep(&self, batch: &[Entry], draining: &Draining, failing: &Seldom) -> bool {
        let [mut wait, longest] = WAITS;
        loop {
            match self.0.store.append(batch).await {
                Ok(appended) => {
                    self.0.tally.appended(appended);
                    return true;
                }
                Err(error) => {
                    if failing.may() {
                        tracing::warn!(cause = %Chain(&error), "samples cannot be kept now: they wait");
                    }
                    tokio::select! {
                        biased;
                        () = draining.begun() => {
                            self.0.tally.lost(batch.len());
                            return false;
                        }
                        () = sleep(wait) => wait = (wait * 2).min(longest),
                    }
                }
            }
        }
    }
}

/// Sends samples on, where they are, until it is dropped.
pub async fn forward(forwarder: Option<Arc<dyn Forwarder>>) {
    let Some(forwarder) = forwarder else { return };
    let failing = Seldom::default();
    let tell = move |error: &(dyn Error + 'static)| {
        if failing.may() {
            tracing::warn!(cause = %Chain(error), "samples cannot be sent on as they should");
        }
    };
    forwarder.forward(&tell).await;
}
