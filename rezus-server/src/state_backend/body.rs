//! Bodies of requests: how much of them may be in memory, and what becomes of it there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::BodyExt as _;
use rezus_core::base::Timestamp;
use rezus_core::declared::backend::{Ingested, Refusal, Unlock, ingest};
use rezus_core::declared::compute::{Busy, Compute};
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::{Fingerprint, LockError, LockId, LockInfo};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument as _;

use super::buffer::Buffer;
use crate::config::StateConfig;
use crate::error::ApiError;

/// A lock info is a few hundred bytes.
const LOCK_INFO_LIMIT: u64 = 64 << 10;

/// The budget is counted in pieces of this many bytes.
const PIECE: u64 = 1 << 10;

/// More pieces of work than can ever be under way.
const MOST_WORK: u32 = 1 << 24;

/// Lets states in: so many bytes at a time, one body in any case. Further ones wait unread.
#[derive(Debug)]
pub struct Intake {
    max_body: u64,
    wait: Duration,
    pieces: u32,
    budget: Arc<Semaphore>,
    /// Reading a state is a core's work.
    cores: Arc<Semaphore>,
    /// What must come to its end, whether or not its client is still there.
    work: Arc<Semaphore>,
}

/// A body that is in memory, and its place in the budget.
#[derive(Debug)]
pub(super) struct Received {
    body: Bytes,
    content_md5: Option<[u8; 16]>,
    place: Place,
}

/// A state ready to be written, and its place in the budget, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    state: Ingested,
    #[expect(dead_code, reason = "held until the state is written")]
    place: Place,
}

/// Bytes of the budget. It goes wherever those bytes go.
type Place = OwnedSemaphorePermit;

/// Why a body is not in memory.
#[derive(Debug)]
pub(super) enum NotReceived {
    /// It cannot be accepted.
    Refused(Refusal),
    /// The budget did not come free in time.
    Busy,
}

impl Admitted {
    /// Returns the state.
    pub(super) fn state(&self) -> &Ingested {
        &self.state
    }
}

impl Intake {
    /// Makes an intake with these limits.
    pub fn new(limits: &StateConfig) -> Self {
        let pieces = u32::try_from(limits.in_flight.0.div_ceil(PIECE)).unwrap_or(u32::MAX).max(1);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            max_body: limits.max_body.0,
            wait: limits.wait.0,
            pieces,
            budget: Arc::new(Semaphore::new(permits(pieces))),
            cores: Arc::new(Semaphore::new(cores)),
            work: Arc::new(Semaphore::new(permits(MOST_WORK))),
        }
    }

    /// Returns how many bytes of states are in memory, to a piece of 1 KiB each.
    pub fn in_flight(&self) -> u64 {
        let free = u64::try_from(self.budget.available_permits()).unwrap_or(u64::MAX);
        u64::from(self.pieces).saturating_sub(free) * PIECE
    }

    /// Reads a state's body into memory once there is room for it.
    ///
    /// # Errors
    ///
    /// [`NotReceived`].
    pub(super) async fn receive(&self, headers: &HeaderMap, body: Body) -> Result<Received, NotReceived> {
        let content_md5 = content_md5(headers).map_err(NotReceived::Refused)?;
        let announced = content_length(headers);
        if announced.is_some_and(|length| length > self.max_body) {
            return Err(NotReceived::Refused(Refusal::TooLarge { limit: self.max_body }));
        }
        // A body of unknown length may need all the room there is.
        let place = self.place(announced.unwrap_or(self.max_body)).await.ok_or(NotReceived::Busy)?;
        let body = collect(announced, body, self.max_body).await.map_err(NotReceived::Refused)?;
        Ok(Received { body, content_md5, place })
    }

    /// Checks and indexes a body, on a thread that may block and on as many at a time as there are cores.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if there is no such thread any more: the server is ending.
    pub(super) async fn ingest(
        &self,
        received: Received,
        mappings: Mappings,
    ) -> Result<Result<Admitted, Refusal>, ApiError> {
        let Received { body, content_md5, place } = received;
        self.on_a_core(move || ingest(body, content_md5, &mappings).map(|state| Admitted { state, place }))
            .await
    }

    /// Computes over so many bytes of states: once there is room for them in memory, on a thread that may block, and on
    /// as many at a time as there are cores. What has begun comes to its end and keeps its room until then, also when
    /// nobody waits for it any more.
    ///
    /// The work must not wait for anything: whoever waits holds up all that compute.
    ///
    /// # Errors
    ///
    /// [`ApiError`]: 503 if there was no room in time.
    pub(crate) async fn compute<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let busy = || ApiError::busy("too many states are being worked on at once: try again");
        let place = self.place(bytes).await.ok_or_else(busy)?;
        self.on_a_core(move || {
            let result = work();
            drop(place);
            result
        })
        .await
    }

    /// Does work that has so many bytes of states in memory, once there is room for them. What it computes of them it
    /// does [on a core](Self::on_a_core).
    ///
    /// # Errors
    ///
    /// [`ApiError`]: 503 if there was no room in time.
    pub(crate) async fn with_room<T>(
        &self,
        bytes: u64,
        work: impl Future<Output = T>,
    ) -> Result<T, ApiError> {
        let busy = || ApiError::busy("too many states are being worked on at once: try again");
        let place = self.place(bytes).await.ok_or_else(busy)?;
        let result = work.await;
        drop(place);
        Ok(result)
    }

    /// Computes on a thread that may block, and on as many at a time as there are cores.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the work panicked, or the server is ending.
    pub(crate) async fn on_a_core<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let core = Arc::clone(&self.cores).acquire_owned().await.map_err(ApiError::internal)?;
        let span = tracing::Span::current();
        let work = move || {
            let result = span.in_scope(work);
            drop(core);
            result
        };
        tokio::task::spawn_blocking(work).await.map_err(ApiError::internal)
    }

    /// Takes room for so many bytes, or for as many as there is room for at all; `None` if there is none in time.
    async fn place(&self, bytes: u64) -> Option<Place> {
        let pieces = u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX).clamp(1, self.pieces);
        let place = Arc::clone(&self.budget).acquire_many_owned(pieces);
        tokio::time::timeout(self.wait, place).await.ok()?.ok()
    }

    /// Does work that comes to its end also when the request that wants it is dropped, as it is when its client goes.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if the work panicked, or the server is ending.
    pub(crate) async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ApiError> {
        let under_way = Arc::clone(&self.work).acquire_owned().await.map_err(ApiError::internal)?;
        let work = async move {
            let result = work.await;
            drop(under_way);
            result
        };
        tokio::spawn(work.in_current_span()).await.map_err(ApiError::internal)
    }

    /// Waits until no work is under way.
    pub(crate) async fn finished(&self) {
        // An error means that there is nothing left to wait for either.
        drop(self.work.acquire_many(MOST_WORK).await);
    }
}

/// Long computing shares room and cores with the bodies of states.
#[async_trait]
impl Compute for Intake {
    async fn run(&self, bytes: u64, work: Box<dyn FnOnce() + Send>) -> Result<(), Busy> {
        self.compute(bytes, work).await.map_err(|error| {
            tracing::warn!(code = error.code().as_u16(), "a computation over states was not done");
            Busy
        })
    }
}

fn permits(count: u32) -> usize {
    usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS)
}

/// Reads a body that is no longer than `limit`.
async fn collect(announced: Option<u64>, mut body: Body, limit: u64) -> Result<Bytes, Refusal> {
    let mut bytes = Buffer::new(announced.unwrap_or(64 << 10).min(limit));
    loop {
        match body.frame().await {
            Some(Ok(frame)) => bytes.extend(frame.data_ref().unwrap_or(&Bytes::new())),
            None => return Ok(bytes.finish()),
            Some(Err(_)) => {
                let got = bytes.length();
                return Err(Refusal::Incomplete { got, expected: announced.unwrap_or(got) });
            }
        }
        if bytes.length() > limit {
            return Err(Refusal::TooLarge { limit });
        }
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Reads `Content-MD5` (RFC 1864): 16 bytes in base64.
fn content_md5(headers: &HeaderMap) -> Result<Option<[u8; 16]>, Refusal> {
    let Some(value) = headers.get("content-md5") else {
        return Ok(None);
    };
    let digest = STANDARD.decode(value.as_bytes()).map_err(|_| Refusal::BadDigest)?;
    digest.try_into().map(Some).map_err(|_| Refusal::BadDigest)
}

async fn small_body(request: Request) -> Result<Bytes, Refusal> {
    let (parts, body) = request.into_parts();
    let expected = content_md5(&parts.headers)?;
    let announced = content_length(&parts.headers);
    let body = collect(announced, body, LOCK_INFO_LIMIT).await.map_err(|refusal| match refusal {
        Refusal::TooLarge { .. } => Refusal::LockInfo(LockError::NotLockInfo),
        other => other,
    })?;
    if expected.is_some_and(|expected| Fingerprint::of(&body).md5 != expected) {
        return Err(Refusal::DigestMismatch);
    }
    Ok(body)
}

/// Reads the body of a LOCK.
///
/// # Errors
///
/// [`Refusal`] if it is no lock info.
pub(super) async fn lock_info(request: Request, now: Timestamp) -> Result<LockInfo, Refusal> {
    let body = small_body(request).await?;
    LockInfo::from_json(&body, now).map_err(Refusal::LockInfo)
}

/// Reads which lock an UNLOCK means: that of the lock info in its body; without a body, the one that the address
/// names; without either (`terraform force-unlock`), whichever is held.
///
/// # Errors
///
/// [`Refusal`] if the body is neither a lock info nor empty.
pub(super) async fn unlock(
    request: Request,
    addressed: Option<LockId>,
    now: Timestamp,
) -> Result<Unlock, Refusal> {
    let body = small_body(request).await?;
    if body.is_empty() {
        return Ok(addressed.map_or(Unlock::Any, Unlock::Id));
    }
    let info = LockInfo::from_json(&body, now).map_err(Refusal::LockInfo)?;
    Ok(Unlock::Id(info.id))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::config::{ByteSize, Span};

    fn intake() -> Intake {
        let wait = Span(Duration::from_millis(200));
        Intake::new(&StateConfig { in_flight: ByteSize(8 * PIECE), wait, ..StateConfig::default() })
    }

    #[tokio::test]
    async fn work_has_its_room_for_as_long_as_it_lasts_and_no_other_has_it() {
        let intake = Arc::new(intake());
        let (finish, until) = mpsc::channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let working = Arc::clone(&intake);
        let request = tokio::spawn(async move {
            let work = move || {
                begun.send(()).unwrap();
                until.recv().unwrap();
            };
            working.compute(6 * PIECE, work).await.unwrap();
        });
        has_begun.await.unwrap();
        assert_eq!(intake.compute(2 * PIECE, || 7).await.unwrap(), 7);
        let refused = intake.compute(3 * PIECE, || 7).await.unwrap_err();
        assert_eq!(refused.code().as_u16(), 503);

        // Nobody waits for it any more; its bytes are in memory all the same.
        request.abort();
        assert!(request.await.unwrap_err().is_cancelled());
        assert_eq!(intake.in_flight(), 6 * PIECE);
        finish.send(()).unwrap();
        // More than there is room for at all takes all of it.
        assert_eq!(intake.compute(1_000 * PIECE, || 7).await.unwrap(), 7);
        assert_eq!(intake.in_flight(), 0);
    }

    #[tokio::test]
    async fn work_that_panics_gives_its_room_back() {
        let intake = intake();
        let refused = intake.compute(PIECE, || assert!(intake_is_broken(), "on purpose")).await.unwrap_err();
        assert_eq!(refused.code().as_u16(), 500);
        assert_eq!(intake.in_flight(), 0);
    }

    fn intake_is_broken() -> bool {
        std::env::args().count() == 0
    }
}
