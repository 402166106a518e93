//! What goes wrong between here and an API server, and what it is called.

use std::error::Error;
use std::io;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use rezus_core::observed::{Failure, Phase, TlsFault};
use rustls::{AlertDescription, CertificateError};

use super::text;

/// Why a request came to nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// A failure that is told.
    #[error("{0}")]
    Failed(Failure),
    /// What was asked for is too long ago (410): all is listed anew, and nothing is wrong.
    #[error("it no longer knows what came since")]
    Gone,
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What was asked, as a refusal names it.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// `get`, `list` or `watch`.
    pub(super) verb: &'static str,
    /// `nodes`, `leases`, `readyz` ...
    pub(super) resource: String,
}

/// A failure of a phase of a connection.
pub(super) fn unreachable(phase: Phase, detail: &str) -> Failure {
    Failure::Unreachable { phase, detail: text::clean(detail) }
}

/// What an error means, wherever in its chain of sources the cause is; `phase` is how far the connection had come.
pub(super) fn of_error(error: &(dyn Error + 'static), phase: Phase) -> Trouble {
    find(error).unwrap_or_else(|| {
        let mut deepest = error;
        while let Some(source) = deepest.source() {
            deepest = source;
        }
        unreachable(phase, &deepest.to_string()).into()
    })
}

fn find(error: &(dyn Error + 'static)) -> Option<Trouble> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(trouble) = error.downcast_ref::<Trouble>() {
            return Some(trouble.clone());
        }
        if let Some(tls) = error.downcast_ref::<rustls::Error>() {
            return Some(of_tls(tls).into());
        }
        if error.is::<serde_json::Error>() {
            // What serde says may quote what was sent.
            return Some(Failure::Malformed { start: "JSON of another shape".to_owned() }.into());
        }
        // The source of such an error is the source of what it holds: what it holds is passed over.
        if let Some(held) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && let Some(trouble) = find(held)
        {
            return Some(trouble);
        }
        next = error.source();
    }
    None
}

fn of_tls(error: &rustls::Error) -> Failure {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => Failure::IdentityMismatch,
        rustls::Error::InvalidCertificate(fault) => {
            let (fault, hint) = match fault {
                CertificateError::UnknownIssuer => {
                    (TlsFault::UnknownIssuer, "another authority than the credential's signed it")
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    (TlsFault::Expired, "is a clock wrong?")
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    (TlsFault::NotYetValid, "is a clock wrong?")
                }
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                    (TlsFault::NameMismatch, "is the address missing in certSANs?")
                }
                _ => (TlsFault::Other, "what else it may be is not known"),
            };
            Failure::TlsRejected { fault, detail: text::clean(&format!("{error}; {hint}")) }
        }
        // TLS 1.3: the server looks at the client's certificate when the client believes to be through.
        rustls::Error::AlertReceived(AlertDescription::CertificateExpired) => {
            Failure::CredentialExpired { detail: "the server says so".to_owned() }
        }
        rustls::Error::AlertReceived(
            AlertDescription::AccessDenied
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateRequired
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown
            | AlertDescription::DecryptError
            | AlertDescription::UnknownCA
            | AlertDescription::UnsupportedCertificate,
        ) => Failure::Unauthorized,
        other => unreachable(Phase::Tls, &other.to_string()),
    }
}

/// What a response's status means; `None` where its body is what was asked for.
pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, asked: &Asked) -> Option<Trouble> {
    if status.is_success() {
        return None;
    }
    let Asked { verb, resource } = asked;
    Some(match status {
        StatusCode::UNAUTHORIZED => Failure::Unauthorized.into(),
        StatusCode::FORBIDDEN => {
            Failure::Forbidden { verb: (*verb).to_owned(), resource: resource.clone() }.into()
        }
        StatusCode::NOT_FOUND => Failure::NotInstalled { what: resource.clone() }.into(),
        StatusCode::GONE => Trouble::Gone,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let told = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
            let seconds = told.and_then(|seconds| seconds.trim().parse().ok());
            Failure::RateLimited { retry_after: seconds.map(Duration::from_secs) }.into()
        }
        status if status.is_server_error() => {
            unreachable(Phase::Http, &format!("it answered {}", status.as_u16())).into()
        }
        status => Failure::Malformed { start: format!("HTTP {}", status.as_u16()) }.into(),
    })
}

/// What a status inside of a stream of events means.
pub(super) fn of_code(code: u16, asked: &Asked) -> Trouble {
    StatusCode::from_u16(code)
        .ok()
        .and_then(|status| of_status(status, &HeaderMap::new(), asked))
        .unwrap_or_else(|| unreachable(Phase::Http, "it ended the stream with an error").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_however_deep_it_is() {
        let tls = rustls::Error::InvalidCertificate(CertificateError::BadSignature);
        let wrapped = io::Error::other(io::Error::new(io::ErrorKind::InvalidData, tls));
        assert!(matches!(of_error(&wrapped, Phase::Tls), Trouble::Failed(Failure::IdentityMismatch)));
        let plain = io::Error::from(io::ErrorKind::ConnectionReset);
        let Trouble::Failed(Failure::Unreachable { phase: Phase::Http, detail }) =
            of_error(&plain, Phase::Http)
        else {
            panic!("a reset is no answer");
        };
        assert!(detail.contains("reset"), "{detail}");
    }

    #[test]
    fn what_json_quotes_is_not_told() {
        let error = serde_json::from_str::<u8>("\"hidden\"").unwrap_err();
        let told = format!("{:?}", of_error(&error, Phase::Http));
        assert!(told.contains("Malformed") && !told.contains("hidden"), "{told}");
    }
}
