//! What a certificate is for.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use rustls::pki_types::DnsName;

/// A name or an address that a server's certificate is for: a subject alternative name (RFC 5280, section 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A DNS name in lower case; its first label may be `*`.
    Dns(String),
    /// An address.
    Address(IpAddr),
}

/// What is no name for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no name for a certificate: write a host name or an IP address, without port and brackets")]
pub struct NameError(String);

impl Name {
    /// Whether it stands for many names.
    pub fn is_pattern(&self) -> bool {
        matches!(self, Self::Dns(name) if name.starts_with("*."))
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        match DnsName::try_from(text.strip_prefix("*.").unwrap_or(text)) {
            Ok(_) => Ok(Self::Dns(text.to_ascii_lowercase())),
            Err(_) => Err(NameError(text.to_owned())),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(name) => f.write_str(name),
            Self::Address(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_told_apart() {
        assert_eq!("Rezus.Example".parse(), Ok(Name::Dns("rezus.example".to_owned())));
        assert_eq!("*.example".parse(), Ok(Name::Dns("*.example".to_owned())));
        assert_eq!("::1".parse(), Ok(Name::Address(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]))));
        assert_eq!("192.0.2.7".parse(), Ok(Name::Address(IpAddr::from([192, 0, 2, 7]))));
        for bad in ["", "*", "*.", "a b", "https://rezus.example", "[::1]", "rezus.example:8443", "a..b"] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
