//! Verifies what a server shows, and says of a machine that waits for its configuration what it is.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};

/// Whose certificate a machine in maintenance mode shows: it is signed by an authority that it made itself.
const MAINTENANCE: &str = "maintenance-service.talos.dev";

/// The certificate is one that nobody known signed, and says that it is of a machine in maintenance.
#[derive(Debug, thiserror::Error)]
#[error("the certificate says that the machine is in maintenance")]
pub(super) struct InMaintenance;

/// Accepts what the standard verifier accepts and nothing else; it only looks closer at what was refused.
#[derive(Debug)]
pub(super) struct Verifier(pub(super) Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)) if in_maintenance(end_entity) => {
                Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(InMaintenance)))))
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn in_maintenance(certificate: &CertificateDer<'_>) -> bool {
    x509_parser::parse_x509_certificate(certificate).is_ok_and(|(_, certificate)| {
        certificate.subject().iter_common_name().any(|name| name.as_str() == Ok(MAINTENANCE))
    })
}
