//! `[tls]`: where the certificate is from, and what it is for.

use std::path::PathBuf;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::Span;
use crate::tls::Name;

/// `[tls]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// A PEM file with the server's certificate, followed by those that lead to its root. Default none: the server makes
    /// a certificate and the authority that signs it, and keeps both in the data directory under `tls/`.
    pub certificate: Option<PathBuf>,
    /// A PEM file with that certificate's private key.
    pub key: Option<PathBuf>,
    /// A PEM file with the authorities whose client certificates are believed. Default the server's own authority, where
    /// it has one.
    pub client_ca: Option<PathBuf>,
    /// Names and addresses that the server's own certificate is for, beside `localhost`, the loopback addresses, the
    /// machine's name and the address that is bound: a list, or a text with commas between them. Default none.
    #[serde(deserialize_with = "names")]
    pub names: Vec<Name>,
    /// How often the files are looked at for changes. Default `5s`.
    pub reload: Span,
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            certificate: None,
            key: None,
            client_ca: None,
            names: Vec::new(),
            reload: Span(Duration::from_secs(5)),
        }
    }
}

/// A variable has no lists.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    List(Vec<String>),
    Text(String),
}

fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Name>, D::Error> {
    let names = match Names::deserialize(deserializer)? {
        Names::List(names) => names,
        Names::Text(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
    };
    let names: Result<_, _> = names.iter().filter(|name| !name.is_empty()).map(|name| name.parse()).collect();
    names.map_err(D::Error::custom)
}
