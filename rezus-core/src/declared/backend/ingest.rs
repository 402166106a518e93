//! Makes a version out of a body: digests, what the document says, the index. Pure, and the expensive half of a write.

use std::sync::Arc;

use bytes::Bytes;

use crate::declared::Fingerprint;
use crate::declared::backend::refusal::Refusal;
use crate::declared::backend::rules::Candidate;
use crate::declared::document::{self, Document};
use crate::declared::index::IndexRow;
use crate::declared::store::Content;

/// A body that was checked and can be kept.
#[derive(Clone)]
pub struct Ingested {
    pub(super) body: Bytes,
    pub(super) candidate: Candidate,
    pub(super) rows: Arc<[IndexRow]>,
}

/// Sizes only: the body holds secrets.
impl std::fmt::Debug for Ingested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, rows) = (self.body.len(), self.rows.len());
        write!(f, "Ingested({bytes} bytes, {rows} rows, {:?})", self.candidate)
    }
}

/// Digesting and reading are independent; above this size in bytes they run on two threads.
const WORTH_A_THREAD: usize = 1 << 20;

/// Checks a body and derives all that is kept of it. Takes about 5 ns a byte, most of it for MD5: call it where
/// blocking is allowed.
///
/// `content_md5` is the digest that the client sent, if any.
///
/// # Errors
///
/// [`Refusal::DigestMismatch`] and [`Refusal::Document`].
pub fn ingest(body: Bytes, content_md5: Option<[u8; 16]>) -> Result<Ingested, Refusal> {
    let (fingerprint, document) = if body.len() < WORTH_A_THREAD {
        (Fingerprint::of(&body), document::read(&body))
    } else {
        std::thread::scope(|scope| {
            // MD5 alone takes as long as all the rest.
            let md5 = scope.spawn(|| Fingerprint::md5_of(&body));
            let document = document::read(&body);
            let sha256 = Fingerprint::sha256_of(&body);
            let md5 = md5.join().unwrap_or_else(|_| Fingerprint::md5_of(&body));
            (Fingerprint { sha256, md5 }, document)
        })
    };
    if content_md5.is_some_and(|expected| expected != fingerprint.md5) {
        return Err(Refusal::DigestMismatch);
    }
    let size_bytes = u64::try_from(body.len()).unwrap_or(u64::MAX);
    let (candidate, rows) = match document.map_err(Refusal::Document)? {
        Document::Plain(state) => {
            let candidate = Candidate {
                serial: Some(state.serial),
                lineage: Some(state.lineage.clone()),
                writer: state.writer.clone(),
                fingerprint,
                size_bytes,
                content: Content::Plain {
                    objects: u64::try_from(state.rows.len()).unwrap_or(u64::MAX),
                    empty: state.is_empty(),
                },
            };
            (candidate, state.rows)
        }
        Document::Encrypted(envelope) => {
            let candidate = Candidate {
                serial: envelope.serial,
                lineage: envelope.lineage,
                writer: None,
                fingerprint,
                size_bytes,
                content: Content::Encrypted,
            };
            (candidate, Vec::new())
        }
    };
    Ok(Ingested { body, candidate, rows: rows.into() })
}
