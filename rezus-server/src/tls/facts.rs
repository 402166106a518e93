//! What a certificate says.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rezus_core::base::Timestamp;
use rustls::pki_types::CertificateDer;
use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;

use super::Name;
use crate::peer::ClientCertificate;

/// What is read from a server's or an authority's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// When it ends.
    pub(super) ends: Timestamp,
    /// What it is for.
    pub(super) names: BTreeSet<Name>,
    /// Its own key's identifier (RFC 5280, section 4.2.1.2).
    pub(super) key: Option<Vec<u8>>,
    /// The identifier of the key that signed it (section 4.2.1.1).
    pub(super) signed_by: Option<Vec<u8>>,
}

impl Facts {
    /// Reads them; none if this is no certificate.
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
        let ends = certificate.validity().not_after.timestamp().saturating_mul(1_000);
        let mut facts =
            Self { ends: Timestamp::from_millis(ends), names: BTreeSet::new(), key: None, signed_by: None };
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => {
                    facts.names = names.general_names.iter().filter_map(name).collect();
                }
                ParsedExtension::SubjectKeyIdentifier(key) => facts.key = Some(key.0.to_vec()),
                ParsedExtension::AuthorityKeyIdentifier(by) => {
                    facts.signed_by = by.key_identifier.as_ref().map(|key| key.0.to_vec());
                }
                _ => {}
            }
        }
        Some(facts)
    }
}

fn name(name: &GeneralName<'_>) -> Option<Name> {
    match name {
        GeneralName::DNSName(name) => name.parse().ok(),
        GeneralName::IPAddress(octets) => match octets.len() {
            4 => <[u8; 4]>::try_from(*octets).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(*octets).ok().map(IpAddr::from),
        }
        .map(Name::Address),
        _ => None,
    }
}

/// Reads when the first certificate of a PEM text ends (RFC 5280, `notAfter`); none where there is none.
pub(crate) fn ends(pem: &[u8]) -> Option<Timestamp> {
    let pem = x509_parser::pem::Pem::iter_from_buffer(pem).next()?.ok()?;
    let seconds = pem.parse_x509().ok()?.validity().not_after.timestamp();
    Some(Timestamp::from_millis(seconds.saturating_mul(1_000)))
}

/// Computes the fingerprint of the key in the first certificate of a PEM text: the first half of the SHA-256 of its
/// `subjectPublicKeyInfo` (RFC 5280), in hexadecimal digits. A certificate that is renewed for the same key has the same one.
/// None where there is none.
pub(crate) fn fingerprint(pem: &[u8]) -> Option<String> {
    let pem = x509_parser::pem::Pem::iter_from_buffer(pem).next()?.ok()?;
    let digest = Sha256::digest(pem.parse_x509().ok()?.public_key().raw);
    let half = digest.first_chunk().map(|half| u128::from_be_bytes(*half))?;
    Some(format!("{half:032x}"))
}

/// Reads who a client's certificate says its holder is, as Kubernetes reads it (`x509.CommonNameUserConversion`); none if
/// it says no name.
pub(crate) fn holder(certificate: &CertificateDer<'_>) -> Option<ClientCertificate> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let common_name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    if common_name.is_empty() {
        return None;
    }
    let organizations = subject.iter_organization();
    let organizations = organizations.filter_map(|name| name.as_str().ok()).map(ToOwned::to_owned).collect();
    Some(ClientCertificate { common_name, organizations })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    /// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -subj /O=admins/O=tenant:prod/CN=ada`
    const TWO_GROUPS: [&str; 6] = [
        "MIIBwDCCAWWgAwIBAgIUE6E06KUvJ7lYSHcv8M2wyyshVJMwCgYIKoZIzj0EAwIwNTEPMA0GA1UECgwGYWRtaW5zMRQwEgYDVQQKDAt0ZW5h",
        "bnQ6cHJvZDEMMAoGA1UEAwwDYWRhMB4XDTI2MTEzMDIyMzYzNloXDTI2MTIwMjIyMzYzNlowNTEPMA0GA1UECgwGYWRtaW5zMRQwEgYDVQQK",
        "DAt0ZW5hbnQ6cHJvZDEMMAoGA1UEAwwDYWRhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEWmA5WA1mIBEiuAxq/Qwn13mOrL48kR/HMkEi",
        "fpUFZqO4Mttt9ZjeptSkd50827wIVXruRGQzb99WM/HVT4/g26NTMFEwHQYDVR0OBBYEFBpg1+tXQzZO0kUXzXCwE3SoZjuAMB8GA1UdIwQY",
        "MBaAFBpg1+tXQzZO0kUXzXCwE3SoZjuAMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAP60Flg1c4ksuOQ35PIVfjtQPq+Q",
        "DefXGlPFAoj7h7OvAiEAuTXSN+OtcJrjXyTE1Fpo45tpmf8oF2FAondpS5Atams=",
    ];

    /// `openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | sha256sum | head -c 32`
    const KEY: &str = "b267276e985b50c37bc83f1175b3156a";

    #[test]
    fn a_fingerprint_is_of_the_key() {
        let pem =
            format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", TWO_GROUPS.concat());
        assert_eq!(fingerprint(pem.as_bytes()).as_deref(), Some(KEY));
        assert_eq!(fingerprint(b"none"), None);
    }

    #[test]
    fn a_holder_has_a_name_and_any_number_of_groups() {
        let der = base64::engine::general_purpose::STANDARD.decode(TWO_GROUPS.concat()).unwrap();
        let certificate = CertificateDer::from(der);
        let holder = holder(&certificate).unwrap();
        assert_eq!(holder.common_name, "ada");
        assert_eq!(holder.organizations, ["admins", "tenant:prod"]);
        let facts = Facts::of(&certificate).unwrap();
        // It is its own authority.
        assert!(facts.key.is_some() && facts.key == facts.signed_by);
        assert!(facts.names.is_empty());
        assert_eq!(Facts::of(&CertificateDer::from(b"cut".to_vec())), None);
    }
}
