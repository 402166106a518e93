//! Sends samples on by Prometheus' remote write, version 1.0.
//!
//! What is appended is put into a queue on disk, and is sent from there: for as long as nobody takes it, it stays, also over
//! a restart, until the queue is full and its oldest samples are dropped. What was sent and not yet taken from the queue
//! when the process was killed is sent once more.
//! <https://prometheus.io/docs/specs/prw/remote_write_spec/>

mod queue;
mod receiver;
mod wire;

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::series::{Appended, Entry, Forwarded, Forwarder, SeriesError, TimeSeriesSink};
use tokio::sync::Notify;
use tokio::time::sleep;

pub use queue::QueueError;
use queue::{Batch, Queue, Waiting};
use receiver::Receiver;
pub use receiver::{ReceiverError, Trouble};

/// How many samples a request has at most.
const SAMPLES: usize = 2_000;

/// The first and the longest wait after a request that came to nothing.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];

/// The longest wait that a receiver may ask for.
const LONGEST_ASKED: Duration = Duration::from_mins(5);

/// Whom to tell what goes wrong.
type Tell<'t> = &'t (dyn for<'e> Fn(&'e (dyn Error + 'static)) + Send + Sync);

/// Where samples are sent, and how.
#[derive(Clone, Debug)]
pub struct RemoteWriteConfig {
    /// An `http` or `https` URL, without a user.
    pub url: String,
    /// A file whose content is the bearer token; read anew for each request.
    pub bearer_token_file: Option<PathBuf>,
    /// A file that holds `user:password`; read anew for each request.
    pub basic_auth_file: Option<PathBuf>,
    /// A PEM file with the authorities that the receiver's certificate is verified by; of need for `https`.
    pub ca_file: Option<PathBuf>,
    /// The file of the queue.
    pub queue: PathBuf,
    /// How many bytes of samples wait at most; beyond it the oldest are dropped.
    pub queue_bytes: u64,
}

/// Why samples cannot be sent at all.
#[derive(Debug, thiserror::Error)]
pub enum RemoteWriteError {
    /// Where they would be sent is nowhere.
    #[error(transparent)]
    Receiver(#[from] ReceiverError),
    /// The queue cannot be opened.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// A queue, and a receiver. Clones share them.
#[derive(Clone, Debug)]
pub struct RemoteWrite(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: Mutex<Queue>,
    /// How much waited when the queue was last worked on: whoever asks does not wait for a disk.
    waiting: Mutex<Waiting>,
    receiver: Receiver,
    clock: Arc<dyn Clock>,
    news: Notify,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    retried: AtomicU64,
    /// In milliseconds since 1970; zero before the first.
    succeeded_at: AtomicI64,
}

impl RemoteWrite {
    /// Opens the queue. Nothing is sent until [`RemoteWrite::forward`](Forwarder::forward) is called.
    ///
    /// # Errors
    ///
    /// [`RemoteWriteError`].
    pub fn open(config: &RemoteWriteConfig, clock: Arc<dyn Clock>) -> Result<Self, RemoteWriteError> {
        let receiver = Receiver::new(config)?;
        let queue = Queue::open(&config.queue, config.queue_bytes)?;
        Ok(Self(Arc::new(Inner {
            waiting: Mutex::new(queue.waiting()),
            queue: Mutex::new(queue),
            receiver,
            clock,
            news: Notify::new(),
            counts: Counts::default(),
        })))
    }

    /// Takes from the queue what need not be sent again.
    async fn done(&self, batch: Batch, tell: Tell<'_>) {
        if let Err(error) = self.on_queue(move |queue| queue.done(&batch)).await {
            tell(&Trouble::Queue(error));
            sleep(WAITS[0]).await;
        }
    }

    /// Works on the queue, on a thread that may block.
    async fn on_queue<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Queue) -> Result<T, QueueError> + Send + 'static,
    ) -> Result<T, QueueError> {
        let inner = Arc::clone(&self.0);
        let work = move || {
            let mut queue = inner.queue.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = work(&mut queue);
            *inner.waiting.lock().unwrap_or_else(PoisonError::into_inner) = queue.waiting();
            outcome
        };
        tokio::task::spawn_blocking(work).await.unwrap_or(Err(QueueError::Closed))
    }
}

#[async_trait]
impl Forwarder for RemoteWrite {
    fn forwarded(&self) -> Forwarded {
        let Counts { sent, refused, dropped, retried, succeeded_at } = &self.0.counts;
        let waiting = *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let at = succeeded_at.load(Ordering::Relaxed);
        Forwarded {
            sent: sent.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            dropped: dropped.load(Ordering::Relaxed),
            retried: retried.load(Ordering::Relaxed),
            pending: waiting.samples,
            pending_bytes: waiting.bytes,
            succeeded_at: (at != 0).then(|| Timestamp::from_millis(at)),
        }
    }

    async fn forward(&self, tell: Tell<'_>) {
        let Inner { receiver, counts, news, .. } = &*self.0;
        let [first, longest] = WAITS;
        let (mut wait, mut rows) = (first, usize::MAX);
        loop {
            let found = self.on_queue(move |queue| queue.first(rows, SAMPLES)).await;
            let batch = match found {
                Ok(Some(batch)) => batch,
                Ok(None) => {
                    news.notified().await;
                    continue;
                }
                Err(error) => {
                    tell(&Trouble::Queue(error));
                    sleep(longest).await;
                    continue;
                }
            };
            let Some(body) = wire::merged(&batch.rows) else {
                // What cannot be read now never will be: of several the one is looked for.
                if batch.rows.len() > 1 {
                    rows = batch.rows.len() / 2;
                } else {
                    counts.dropped.fetch_add(batch.samples, Ordering::Relaxed);
                    self.done(batch, tell).await;
                }
                continue;
            };
            let outcome = receiver.post(body).await;
            let (samples, count) = (batch.samples, batch.rows.len());
            match outcome {
                Ok(()) => {
                    counts.sent.fetch_add(samples, Ordering::Relaxed);
                    counts.succeeded_at.store(self.0.clock.now().as_millis(), Ordering::Relaxed);
                    (wait, rows) = (first, rows.saturating_mul(2));
                    self.done(batch, tell).await;
                }
                // One sample that is refused has all refused that are sent with it.
                Err(trouble) if trouble.is_of_samples() && count > 1 => rows = count / 2,
                Err(trouble) if trouble.is_final() => {
                    tell(&trouble);
                    counts.refused.fetch_add(samples, Ordering::Relaxed);
                    (wait, rows) = (first, rows.saturating_mul(2));
                    self.done(batch, tell).await;
                }
                Err(trouble) => {
                    tell(&trouble);
                    counts.retried.fetch_add(1, Ordering::Relaxed);
                    sleep(trouble.retry_after().map_or(wait, |asked| asked.clamp(wait, LONGEST_ASKED))).await;
                    wait = (wait * 2).min(longest);
                }
            }
        }
    }
}

#[async_trait]
impl TimeSeriesSink for RemoteWrite {
    /// Puts samples into the queue; they are on disk once this returns. Nobody waits for the receiver.
    async fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError> {
        let rows = entries.chunks(SAMPLES).map(wire::packed).collect::<Vec<_>>();
        let dropped = self.on_queue(move |queue| queue.put(&rows)).await;
        let dropped =
            dropped.map_err(|error| SeriesError::Unavailable { doing: "kept", source: Box::new(error) })?;
        self.0.counts.dropped.fetch_add(dropped, Ordering::Relaxed);
        self.0.news.notify_one();
        Ok(Appended { kept: u64::try_from(entries.len()).unwrap_or(u64::MAX), ..Appended::default() })
    }
}
