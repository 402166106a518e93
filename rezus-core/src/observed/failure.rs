//! Why something could not be read, each cause by its own name.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How far a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The name was not resolved.
    Dns,
    /// Nobody accepted the connection.
    Tcp,
    /// Accepted, and then no handshake.
    Tls,
    /// A handshake, and then no answer to the request.
    Http,
}

/// What was wrong with the certificate that a server showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsFault {
    /// Nobody known signed it: another authority, a machine in maintenance, or somebody in between.
    UnknownIssuer,
    /// It is no longer valid.
    Expired,
    /// It is not valid yet.
    NotYetValid,
    /// It is for other names.
    NameMismatch,
    /// It, or what was said with it, is otherwise not right.
    Other,
}

/// Why a source, or a part of it, could not be read. None of them holds anything secret, nor more than 64 characters of what
/// a peer sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// Nobody answers there.
    #[error("it does not answer ({phase:?}): {detail}")]
    Unreachable {
        /// How far it came.
        phase: Phase,
        /// What the system says, sanitized.
        detail: String,
    },
    /// The server's certificate was refused.
    #[error("its certificate was refused ({fault:?}): {detail}")]
    TlsRejected {
        /// Why.
        fault: TlsFault,
        /// What the verifier says, and a hint.
        detail: String,
    },
    /// The certificate is signed by another authority of the same name: the cluster was made anew, or its authority was
    /// exchanged, and the state is of before.
    #[error(
        "its certificate is of another authority of the same name: the cluster was made anew, or its authority exchanged; apply the tenant once, so that the state has the new one"
    )]
    IdentityMismatch,
    /// Another cluster tells of itself than the one that is known; it is believed when it does so for a minute or so.
    #[error(
        "another cluster answers than the one that is known: it is believed when it does so for a minute or so, without the other in between"
    )]
    AnotherCluster,
    /// The machine waits for its configuration; who says so has proved nothing.
    #[error("the machine is in maintenance mode, as it says itself (unverified)")]
    Maintenance,
    /// The client's certificate is not valid now.
    #[error("the client certificate is not valid now ({detail}): apply the tenant once to renew it")]
    CredentialExpired {
        /// Since or from when.
        detail: String,
    },
    /// The credential is none that is used.
    #[error("the credential is not used: {field}: {reason}")]
    CredentialRejected {
        /// Which part.
        field: String,
        /// Why.
        reason: String,
    },
    /// There is no credential.
    #[error("neither the state nor a file holds a credential for it")]
    CredentialMissing,
    /// It does not know the client (401).
    #[error("it does not know the client")]
    Unauthorized,
    /// The client may not read this (403).
    #[error("the client may not {verb} {resource}")]
    Forbidden {
        /// What was tried.
        verb: String,
        /// On what.
        resource: String,
    },
    /// It asks for fewer requests.
    #[error("it asks for fewer requests")]
    RateLimited {
        /// When to come again, where it says so.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        retry_after: Option<Duration>,
    },
    /// The cluster has no such thing.
    #[error("{what} is not installed")]
    NotInstalled {
        /// What.
        what: String,
    },
    /// This version of it cannot tell.
    #[error("{what} is not told by this version")]
    Unsupported {
        /// What.
        what: String,
    },
    /// It sent more than is read.
    #[error("it sent more than {limit} bytes")]
    TooLarge {
        /// How much is read at most, in bytes.
        limit: u64,
    },
    /// It sent something else.
    #[error("it sent something else than expected: {start:?}")]
    Malformed {
        /// How it begins, sanitized.
        start: String,
    },
    /// It took too long.
    #[error("it took longer than {} s", after.as_secs())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// There was no time for all of it; the next turn begins with what is left.
    #[error("there was time for {done} of {total}")]
    Partial {
        /// How many were read.
        done: usize,
        /// Of how many.
        total: usize,
    },
    /// It answers from an old copy of its data.
    #[error("it answers from an old copy of its data")]
    StaleCache,
    /// It is switched off.
    #[error("the collector is switched off")]
    Disabled,
    /// Something in rezus went wrong.
    #[error("the scrape itself failed: {detail}")]
    Internal {
        /// What, sanitized.
        detail: String,
    },
}

impl Failure {
    /// The one word for it, as conditions have it for their reason.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "Unreachable",
            Self::TlsRejected { .. } => "TlsRejected",
            Self::IdentityMismatch => "IdentityMismatch",
            Self::AnotherCluster => "AnotherCluster",
            Self::Maintenance => "Maintenance",
            Self::CredentialExpired { .. } => "CredentialExpired",
            Self::CredentialRejected { .. } => "CredentialRejected",
            Self::CredentialMissing => "CredentialMissing",
            Self::Unauthorized => "Unauthorized",
            Self::Forbidden { .. } => "Forbidden",
            Self::RateLimited { .. } => "RateLimited",
            Self::NotInstalled { .. } => "NotInstalled",
            Self::Unsupported { .. } => "Unsupported",
            Self::TooLarge { .. } => "TooLarge",
            Self::Malformed { .. } => "Malformed",
            Self::Timeout { .. } => "Timeout",
            Self::Partial { .. } => "Partial",
            Self::StaleCache => "StaleCache",
            Self::Disabled => "Disabled",
            Self::Internal { .. } => "ScrapeFailed",
        }
    }

    /// Tells whether trying again soon is of no use: the next turns come later and later.
    pub const fn backs_off(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::TlsRejected { .. }
                | Self::IdentityMismatch
                | Self::Maintenance
                | Self::CredentialExpired { .. }
                | Self::CredentialRejected { .. }
                | Self::CredentialMissing
                | Self::Unauthorized
                | Self::RateLimited { .. }
                | Self::Timeout { .. }
        )
    }
}
