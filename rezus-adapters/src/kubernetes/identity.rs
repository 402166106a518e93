//! What a client shows and whom it trusts, as TLS takes it.

use std::sync::Arc;

use rezus_core::base::Timestamp;
use rezus_core::observed::{Credential, Failure};
use rustls::client::Resumption;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

/// TLS for one credential, and from when until when that is of use.
pub(super) struct Identity {
    pub(super) connector: TlsConnector,
    not_before: Timestamp,
    not_after: Timestamp,
}

/// Nothing of the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({} to {})", self.not_before, self.not_after)
    }
}

fn rejected(field: &str, reason: &str) -> Failure {
    Failure::CredentialRejected { field: field.to_owned(), reason: reason.to_owned() }
}

impl Identity {
    /// Reads PEM. Sessions share what does not depend on the credential.
    pub(super) fn new(credential: &Credential, provider: &Arc<CryptoProvider>) -> Result<Self, Failure> {
        let mut roots = RootCertStore::empty();
        for root in certificates(&credential.ca, "ca")? {
            roots.add(root).map_err(|_| rejected("ca", "it is no certificate of an authority"))?;
        }
        let shown = certificates(&credential.certificate, "certificate")?;
        let (not_before, not_after) = validity(&shown[0])?;
        let key = PrivateKeyDer::from_pem_slice(&credential.key)
            .map_err(|_| rejected("key", "it is no key in PEM"))?;
        let mut config = ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()
            .map_err(|_| Failure::Internal { detail: "TLS has no version".to_owned() })?
            .with_root_certificates(roots)
            .with_client_auth_cert(shown, key)
            .map_err(|_| rejected("key", "it is of no use, or not the certificate's"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // A handshake in half a minute costs less than what is kept to spare it: 5 MB for a thousand servers.
        config.resumption = Resumption::disabled();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), not_before, not_after })
    }

    /// Tells whether the certificate is valid now: with one that is not, nobody is bothered.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), Failure> {
        let detail = if now < self.not_before {
            format!("valid from {}", self.not_before)
        } else if now > self.not_after {
            format!("valid until {}", self.not_after)
        } else {
            return Ok(());
        };
        Err(Failure::CredentialExpired { detail })
    }
}

fn certificates(pem: &[u8], field: &str) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    read.ok()
        .filter(|certificates| !certificates.is_empty())
        .ok_or_else(|| rejected(field, "it is no certificate in PEM"))
}

fn validity(certificate: &CertificateDer<'_>) -> Result<(Timestamp, Timestamp), Failure> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|_| rejected("certificate", "it is no certificate"))?;
    let validity = parsed.validity();
    let at = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1_000));
    Ok((at(validity.not_before.timestamp()), at(validity.not_after.timestamp())))
}
