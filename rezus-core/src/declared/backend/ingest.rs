//! Makes a version out of a body: digests, what the document says, the index. Pure, and the expensive half of a write.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::declared::Fingerprint;
use crate::declared::backend::refusal::Refusal;
use crate::declared::backend::rules::Candidate;
use crate::declared::document::{self, Document};
use crate::declared::index::IndexRow;
use crate::declared::mapping::Mappings;
use crate::declared::store::Content;

/// A body that was checked and can be kept.
#[derive(Clone)]
pub struct Ingested {
    pub(super) body: Bytes,
    pub(super) candidate: Candidate,
    pub(super) rows: Arc<[IndexRow]>,
    /// The digest of the rules by which the rows were masked.
    pub(super) secret_rules: [u8; 32],
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
/// `content_md5` is the digest that the client sent, if any; `mappings` say which places hold secrets besides those that
/// are known without them.
///
/// # Errors
///
/// [`Refusal::DigestMismatch`] and [`Refusal::Document`].
pub fn ingest(body: Bytes, content_md5: Option<[u8; 16]>, mappings: &Mappings) -> Result<Ingested, Refusal> {
    let read = || document::read_with(&body, &|resource_type| mappings.secret_rules(resource_type));
    let (fingerprint, document) = if body.len() < WORTH_A_THREAD {
        (Fingerprint::of(&body), read())
    } else {
        std::thread::scope(|scope| {
            // MD5 alone takes as long as all the rest.
            let md5 = scope.spawn(|| Fingerprint::md5_of(&body));
            let document = read();
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
    Ok(Ingested { body, candidate, rows: rows.into(), secret_rules: mappings.secrets_digest() })
}

/// Returns the state with another serial: only the bytes of that number change. Where a state has none, which the tools
/// read as 0, the member is put first.
pub(super) fn renumbered(body: &Bytes, serial: u64) -> Result<Bytes, Refusal> {
    let span = match document::read(body).map_err(Refusal::Document)? {
        Document::Plain(state) => state.serial_span,
        Document::Encrypted(_) => unreachable!("an encrypted version was refused before its bytes were read"),
    };
    let (span, text) = span.map_or_else(
        || {
            let behind_brace = body.iter().position(|byte| *byte == b'{').map_or(0, |place| place + 1);
            (behind_brace..behind_brace, format!("\"serial\":{serial},"))
        },
        |span| (span, serial.to_string()),
    );
    let mut renumbered = BytesMut::with_capacity(body.len() + text.len());
    renumbered.extend_from_slice(&body[..span.start]);
    renumbered.extend_from_slice(text.as_bytes());
    renumbered.extend_from_slice(&body[span.end..]);
    Ok(renumbered.freeze())
}
