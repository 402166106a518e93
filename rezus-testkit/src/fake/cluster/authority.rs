//! The authority of a fake cluster, and what it signs.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType, SignatureAlgorithm,
};
use rezus_core::base::Timestamp;
use rezus_core::observed::Credential;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use zeroize::Zeroizing;

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// `NotBefore`, to the second.
    pub from: Timestamp,
    /// `NotAfter`, to the second.
    pub until: Timestamp,
}

impl Validity {
    /// Decades.
    pub const ALWAYS: Self = Self {
        // 2001-09-09 to 2096-10-02.
        from: Timestamp::from_millis(1_000_000_000_000),
        until: Timestamp::from_millis(4_000_000_000_000),
    };
    /// Ended in 2015.
    pub const PAST: Self = Self {
        from: Timestamp::from_millis(1_400_000_000_000),
        until: Timestamp::from_millis(1_430_000_000_000),
    };
    /// Begins in 2080.
    pub const FUTURE: Self = Self {
        from: Timestamp::from_millis(3_480_000_000_000),
        until: Timestamp::from_millis(3_900_000_000_000),
    };
}

/// A certificate and its key, PEM each.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its key: `PRIVATE KEY`.
    pub key: String,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Issued")
    }
}

/// An authority, and the kind of keys that it and those have to whom it gives certificates. Two of one name are what a cluster that was made anew looks like.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    keys: &'static SignatureAlgorithm,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

impl Authority {
    /// Makes one with keys of P-256 whose subject is an organization: Talos makes `kubernetes` so.
    ///
    /// # Panics
    ///
    /// When no certificate can be made: a fault of the test.
    pub fn new(organization: &str) -> Self {
        Self::with_keys(organization, &rcgen::PKCS_ECDSA_P256_SHA256)
    }

    /// Makes one with Ed25519 keys: Talos makes its own, `talos`, so.
    ///
    /// # Panics
    ///
    /// When no certificate can be made.
    pub fn of_ed25519(organization: &str) -> Self {
        Self::with_keys(organization, &rcgen::PKCS_ED25519)
    }

    fn with_keys(organization: &str, keys: &'static SignatureAlgorithm) -> Self {
        let mut params = parameters(Validity::ALWAYS);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate_for(keys).expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("an authority"), keys }
    }

    /// Returns its certificate, PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Makes a certificate of a client; Kubernetes and Talos read groups and roles from the organization.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn client(&self, organization: &str, name: &str, validity: Validity) -> Issued {
        let mut params = parameters(validity);
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    /// Makes a certificate of a server with the names and addresses given.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn server(&self, name: &str, alternatives: &[SanType], validity: Validity) -> Issued {
        let mut params = parameters(validity);
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = alternatives.to_vec();
        self.sign(&params)
    }

    /// Makes a certificate of a server at `127.0.0.1` and `localhost`.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    pub fn loopback_server(&self, validity: Validity) -> Issued {
        let localhost = "localhost".try_into().expect("a name");
        let alternatives = [SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)), SanType::DnsName(localhost)];
        self.server("localhost", &alternatives, validity)
    }

    /// Returns what a client shows and trusts whose authority this is.
    ///
    /// # Panics
    ///
    /// When no certificate can be made.
    pub fn credential(&self, organization: &str, name: &str, validity: Validity) -> Credential {
        let client = self.client(organization, name, validity);
        Credential {
            ca: Zeroizing::new(self.certificate().into_bytes()),
            certificate: Zeroizing::new(client.certificate.into_bytes()),
            key: Zeroizing::new(client.key.into_bytes()),
        }
    }

    /// Returns the TLS settings of a server that shows `shown` and asks clients for a certificate of this authority,
    /// by the protocols of ALPN given.
    ///
    /// # Panics
    ///
    /// When `shown` is none.
    pub fn server_config(&self, shown: &Issued, protocols: &[&str]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("an authority");
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let clients = clients.build().expect("a verifier");
        let certificate =
            CertificateDer::from_pem_slice(shown.certificate.as_bytes()).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).expect("a key");
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_client_cert_verifier(clients)
            .with_single_cert(vec![certificate], key)
            .expect("a certificate with its key");
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    fn sign(&self, params: &CertificateParams) -> Issued {
        let key = KeyPair::generate_for(self.keys).expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

fn parameters(validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    // Its type of time is of a crate that is no dependency of ours.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(validity.from);
    params.not_after = epoch + since_epoch(validity.until);
    params
}

fn since_epoch(at: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(at.as_millis()).unwrap_or(0) / 1_000)
}
