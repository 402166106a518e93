//! Bodies of requests: how much of them may be in memory, how long they may take.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use rezus_core::base::Timestamp;
use rezus_core::declared::backend::{Ingested, Refusal, Unlock, ingest};
use rezus_core::declared::{Fingerprint, LockError, LockInfo};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::StateConfig;
use crate::error::ApiError;

/// A lock info is a few hundred bytes.
const LOCK_INFO_LIMIT: u64 = 64 << 10;

/// The budget is counted in pieces of this many bytes.
const PIECE: u64 = 1 << 10;

/// Lets states in: so many bytes at a time, one body in any case. Further ones wait unread.
#[derive(Debug)]
pub struct Intake {
    max_body: u64,
    wait: Duration,
    idle: Duration,
    pieces: u32,
    budget: Arc<Semaphore>,
    /// Checking and indexing a state is a core's work.
    cores: Arc<Semaphore>,
}

/// A body that is in memory, and its place in the budget.
#[derive(Debug)]
pub(super) struct Received {
    body: Bytes,
    content_md5: Option<[u8; 16]>,
    place: OwnedSemaphorePermit,
}

/// A state ready to be written, and its place in the budget, given back when this is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    state: Ingested,
    #[expect(dead_code, reason = "held until the state is written")]
    place: OwnedSemaphorePermit,
}

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
        let places =
            |count: u32| usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS).min(Semaphore::MAX_PERMITS);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            max_body: limits.max_body.0,
            wait: limits.wait.0,
            idle: limits.idle.0,
            pieces,
            budget: Arc::new(Semaphore::new(places(pieces))),
            cores: Arc::new(Semaphore::new(cores)),
        }
    }

    /// Returns how many bytes of bodies are in memory, to a piece of 1 KiB each.
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
            discard(body, self.idle).await;
            return Err(NotReceived::Refused(Refusal::TooLarge { limit: self.max_body }));
        }
        // A body of unknown length may need all the room there is.
        let pieces = announced.unwrap_or(self.max_body).div_ceil(PIECE).max(1);
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX).min(self.pieces);
        let place = Arc::clone(&self.budget).acquire_many_owned(pieces);
        let Ok(Ok(place)) = tokio::time::timeout(self.wait, place).await else {
            return Err(NotReceived::Busy);
        };
        let body = collect(announced, body, self.max_body, self.idle).await.map_err(NotReceived::Refused)?;
        Ok(Received { body, content_md5, place })
    }

    /// Checks and indexes a body, on a thread that may block and on as many at a time as there are cores.
    ///
    /// # Errors
    ///
    /// [`ApiError`] if there is no such thread any more: the server is ending.
    pub(super) async fn ingest(&self, received: Received) -> Result<Result<Admitted, Refusal>, ApiError> {
        let core = Arc::clone(&self.cores).acquire_owned().await.map_err(ApiError::internal)?;
        let Received { body, content_md5, place } = received;
        let ingested = tokio::task::spawn_blocking(move || {
            let ingested = ingest(body, content_md5);
            drop(core);
            ingested
        });
        let ingested = ingested.await.map_err(ApiError::internal)?;
        Ok(ingested.map(|state| Admitted { state, place }))
    }
}

/// Reads a body that is no longer than `limit` and never pauses for longer than `idle`.
async fn collect(
    announced: Option<u64>,
    mut body: Body,
    limit: u64,
    idle: Duration,
) -> Result<Bytes, Refusal> {
    let capacity = announced.unwrap_or(64 << 10).min(limit);
    let mut bytes = BytesMut::with_capacity(usize::try_from(capacity).unwrap_or(0));
    let length = |bytes: &BytesMut| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    loop {
        match tokio::time::timeout(idle, body.frame()).await {
            Ok(Some(Ok(frame))) => bytes.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Ok(None) => return Ok(bytes.freeze()),
            Ok(Some(Err(_))) | Err(_) => {
                let got = length(&bytes);
                return Err(Refusal::Incomplete { got, expected: announced.unwrap_or(got) });
            }
        }
        if length(&bytes) > limit {
            drop(bytes);
            discard(body, idle).await;
            return Err(Refusal::TooLarge { limit });
        }
    }
}

/// Reads a body to its end without keeping it: a client that is still sending does not read an answer.
async fn discard(mut body: Body, idle: Duration) {
    while let Ok(Some(Ok(_))) = tokio::time::timeout(idle, body.frame()).await {}
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

async fn small_body(request: Request, idle: Duration) -> Result<Bytes, Refusal> {
    let (parts, body) = request.into_parts();
    let expected = content_md5(&parts.headers)?;
    let announced = content_length(&parts.headers);
    let body = collect(announced, body, LOCK_INFO_LIMIT, idle).await.map_err(|refusal| match refusal {
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
pub(super) async fn lock_info(request: Request, idle: Duration, now: Timestamp) -> Result<LockInfo, Refusal> {
    let body = small_body(request, idle).await?;
    LockInfo::from_json(&body, now).map_err(Refusal::LockInfo)
}

/// Reads the body of an UNLOCK: a lock info, or nothing at all (`terraform force-unlock`).
///
/// # Errors
///
/// [`Refusal`] if it is neither.
pub(super) async fn unlock(request: Request, idle: Duration, now: Timestamp) -> Result<Unlock, Refusal> {
    let body = small_body(request, idle).await?;
    if body.is_empty() {
        return Ok(Unlock::Any);
    }
    let info = LockInfo::from_json(&body, now).map_err(Refusal::LockInfo)?;
    Ok(Unlock::Id(info.id))
}
