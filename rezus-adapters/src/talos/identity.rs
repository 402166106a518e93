//! Who rezus is to a cluster, and whom it trusts: a credential that was looked at before it is shown to anybody.

use std::fmt;
use std::sync::Arc;

use rezus_core::base::Timestamp;
use rezus_core::observed::{Credential, Failure};
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use x509_parser::certificate::X509Certificate;
use zeroize::Zeroizing;

use super::verifier::Verifier;

/// Who may have certificates made.
const ADMIN: &str = "os:admin";

/// A client's certificate with its key, and the authority of the servers.
pub(super) struct Identity {
    /// How connections are made.
    pub(super) config: Arc<ClientConfig>,
    /// When the certificate begins to be valid.
    pub(super) from: Timestamp,
    /// When it ends.
    pub(super) until: Timestamp,
    /// Whether it may have certificates made.
    pub(super) is_admin: bool,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity(until {})", self.until)
    }
}

impl Identity {
    /// Reads a credential, and makes sure that its parts belong together.
    pub(super) fn new(credential: &Credential) -> Result<Self, Failure> {
        let authorities =
            certificates(&credential.ca).ok_or_else(|| rejected("ca", "no certificate in PEM"))?;
        let chain = certificates(&credential.certificate)
            .ok_or_else(|| rejected("certificate", "no certificate in PEM"))?;
        let key = PrivateKeyDer::from_pem_slice(&relabelled(&credential.key))
            .map_err(|_| rejected("key", "no private key in PEM"))?;
        let leaf =
            chain.first().and_then(|leaf| parse(leaf)).ok_or_else(|| rejected("certificate", "not X.509"))?;
        // A server that refuses it says so only after the handshake, and in no way that can be told from a broken line.
        let signed = authorities.iter().filter_map(|authority| parse(authority)).any(|authority| {
            leaf.issuer() == authority.subject()
                && leaf.verify_signature(Some(authority.public_key())).is_ok()
        });
        if chain.len() == 1 && !signed {
            return Err(rejected("certificate", "not signed by the authority beside it"));
        }
        let second = |at: i64| Timestamp::from_millis(at.saturating_mul(1_000));
        let from = second(leaf.validity().not_before.timestamp());
        let until = second(leaf.validity().not_after.timestamp());
        let is_admin = leaf.subject().iter_organization().any(|role| role.as_str() == Ok(ADMIN));

        let mut roots = RootCertStore::empty();
        let (used, _) = roots.add_parsable_certificates(authorities.iter().cloned());
        if used == 0 {
            return Err(rejected("ca", "no authority"));
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|_| rejected("ca", "no authority"))?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| Failure::Internal { detail: "no version of TLS".to_owned() })?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier(verifier)))
            .with_client_auth_cert(chain.clone(), key)
            .map_err(|_| rejected("key", "not the certificate's, or of a kind that is not known"))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        // A handshake in a minute costs less than what is kept to spare it: 10 MB for a thousand clusters.
        config.resumption = Resumption::disabled();
        Ok(Self { config: Arc::new(config), from, until, is_admin })
    }

    /// Tells whether the certificate is valid now: a server tells it late and unclearly.
    pub(super) fn check(&self, now: Timestamp) -> Result<(), Failure> {
        let detail = if now < self.from {
            format!("only from {}", self.from)
        } else if now > self.until {
            format!("ended {}", self.until)
        } else {
            return Ok(());
        };
        Err(Failure::CredentialExpired { detail })
    }
}

fn rejected(field: &str, reason: &str) -> Failure {
    Failure::CredentialRejected { field: field.to_owned(), reason: reason.to_owned() }
}

/// The certificates of a PEM; `None` where there is none, or one that cannot be read.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().ok()?;
    (!found.is_empty()).then_some(found)
}

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    x509_parser::parse_x509_certificate(certificate).ok().map(|(_, certificate)| certificate)
}

/// Talos calls a key what it is, `ED25519 PRIVATE KEY`, though its bytes are PKCS#8 as any other's: by that name no reader
/// of PEM finds it.
fn relabelled(key: &[u8]) -> Zeroizing<Vec<u8>> {
    const LABEL: &[u8] = b"ED25519 PRIVATE KEY-----";
    let mut pem = Zeroizing::new(Vec::with_capacity(key.len()));
    let mut rest = key;
    while let Some((first, after)) = rest.split_first() {
        if rest.starts_with(LABEL) {
            rest = rest.get(b"ED25519 ".len()..).unwrap_or_default();
        } else {
            pem.push(*first);
            rest = after;
        }
    }
    pem
}
