//! What failed calls say, by the names that failures have.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use rezus_core::observed::{Failure, Phase, TlsFault};
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error as TlsError};
use tonic::{Code, Status};

use super::verifier::InMaintenance;
use crate::text::brief;

/// The largest message that is read, in bytes.
pub(super) const LARGEST: usize = 4 << 20;

/// How servers refuse a client's certificate: after the handshake, as far as the client sees.
const REFUSALS: [AlertDescription; 8] = [
    AlertDescription::CertificateExpired,
    AlertDescription::UnknownCA,
    AlertDescription::BadCertificate,
    AlertDescription::CertificateRequired,
    AlertDescription::CertificateUnknown,
    AlertDescription::CertificateRevoked,
    AlertDescription::DecryptError,
    AlertDescription::AccessDenied,
];

/// Whom a failed call is put down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// The endpoint that was dialled did not get as far as asking anybody.
    Endpoint,
    /// The endpoint answers for itself alone: it is a worker.
    Worker,
    /// Whoever was asked did not answer.
    Silence,
    /// Whoever was asked answered, with a refusal or with something that is not used.
    Answer,
}

/// Why a call gave nothing.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) blame: Blame,
    pub(super) failure: Failure,
}

/// What the connector says of a connection that was not made.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotConnected(pub(super) Failure);

impl Fault {
    pub(super) fn answer(failure: Failure) -> Self {
        Self { blame: Blame::Answer, failure }
    }

    /// The call took longer than `after`.
    pub(super) fn timeout(after: Duration) -> Self {
        Self { blame: Blame::Silence, failure: Failure::Timeout { after } }
    }

    /// Tells what a call for `what` failed of, when it was given the time of `limit`.
    pub(super) fn of(status: &Status, what: &str, limit: Duration) -> Self {
        let message = status.message();
        if status.code() == Code::Cancelled && message == "Timeout expired" {
            return Self::timeout(limit);
        }
        if let Some(failure) = transport_failure(status) {
            return Self { blame: Blame::Endpoint, failure };
        }
        let what = || what.to_owned();
        match status.code() {
            Code::DeadlineExceeded => Self::timeout(limit),
            Code::PermissionDenied if message.contains("no request forwarding") => {
                let failure = Failure::Forbidden { verb: "forward".to_owned(), resource: what() };
                Self { blame: Blame::Worker, failure }
            }
            // A type or a namespace that this version of Talos does not know is refused in these words.
            Code::PermissionDenied if message.contains("is not supported") => {
                Self::answer(Failure::Unsupported { what: what() })
            }
            Code::PermissionDenied => {
                Self::answer(Failure::Forbidden { verb: "read".to_owned(), resource: what() })
            }
            Code::Unimplemented => Self::answer(Failure::Unsupported { what: what() }),
            Code::Unauthenticated => Self::answer(Failure::Unauthorized),
            // What this client refuses to read, and what a proxy's client refuses.
            Code::OutOfRange | Code::ResourceExhausted if message.contains("larg") => {
                Self::answer(Failure::TooLarge { limit: u64::try_from(LARGEST).unwrap_or(u64::MAX) })
            }
            Code::ResourceExhausted => Self::answer(Failure::RateLimited { retry_after: None }),
            Code::Unavailable => {
                let failure = Failure::Unreachable { phase: Phase::Tcp, detail: brief(message) };
                Self { blame: Blame::Silence, failure }
            }
            _ => Self::answer(Failure::Malformed { start: brief(message) }),
        }
    }
}

/// What the connection to the endpoint failed of; `None` where it is the peer that says something.
fn transport_failure(status: &Status) -> Option<Failure> {
    let mut cause = status.source()?;
    loop {
        if let Some(NotConnected(failure)) = cause.downcast_ref() {
            return Some(failure.clone());
        }
        if let Some(failure) = cause.downcast_ref::<TlsError>().map(of_tls) {
            return Some(failure);
        }
        // What an I/O error holds is not its source: that one's source is.
        let held = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(failure) = held.and_then(|held| held.downcast_ref::<TlsError>()).map(of_tls) {
            return Some(failure);
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    // HTTP/2 keeps the text of an I/O error alone.
    let text = cause.to_string();
    let alert = REFUSALS.into_iter().map(TlsError::AlertReceived).find(|alert| alert.to_string() == text);
    Some(alert.map_or_else(
        || Failure::Unreachable { phase: Phase::Http, detail: brief(&text) },
        |alert| of_tls(&alert),
    ))
}

/// What a handshake failed of.
pub(super) fn of_handshake(error: &io::Error) -> Failure {
    match error.get_ref().and_then(|held| held.downcast_ref::<TlsError>()) {
        Some(error) => of_tls(error),
        None => Failure::Unreachable { phase: Phase::Tls, detail: brief(&error.to_string()) },
    }
}

fn of_tls(error: &TlsError) -> Failure {
    let rejected = |fault, hint: &str| Failure::TlsRejected {
        fault,
        detail: if hint.is_empty() { brief(&error.to_string()) } else { hint.to_owned() },
    };
    let certificate = match error {
        TlsError::InvalidCertificate(certificate) => certificate,
        TlsError::AlertReceived(AlertDescription::CertificateExpired) => {
            return Failure::CredentialExpired { detail: "as the server says".to_owned() };
        }
        TlsError::AlertReceived(alert) if REFUSALS.contains(alert) => return Failure::Unauthorized,
        _ => return rejected(TlsFault::Other, ""),
    };
    match certificate {
        CertificateError::BadSignature => Failure::IdentityMismatch,
        CertificateError::UnknownIssuer => rejected(TlsFault::UnknownIssuer, ""),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            rejected(TlsFault::Expired, "it lives for a day: the machine's clock, or its apid, stands still")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            rejected(TlsFault::NotYetValid, "the machine's clock, or rezus', is wrong")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            rejected(TlsFault::NameMismatch, "machine.certSANs does not name this endpoint")
        }
        CertificateError::Other(other) if other.0.is::<InMaintenance>() => Failure::Maintenance,
        _ => rejected(TlsFault::Other, ""),
    }
}
