//! The port through which clusters are read.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::facts::Facts;
use super::{Failure, Source};
use crate::base::{TenantName, Timestamp};

/// What a client shows and whom it trusts: PEM each. Overwritten in memory once nobody holds it.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The authorities that the server's certificate is verified by.
    pub ca: Zeroizing<Vec<u8>>,
    /// The client's certificate.
    pub certificate: Zeroizing<Vec<u8>>,
    /// Its key: `PRIVATE KEY`, `EC PRIVATE KEY`, `RSA PRIVATE KEY`, or Talos' `ED25519 PRIVATE KEY`.
    pub key: Zeroizing<Vec<u8>>,
}

/// Nothing of it.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential")
    }
}

/// Where connections may go. What is never dialled unless it is allowed here: loopback, link-local (cloud metadata too),
/// multicast, unspecified and broadcast addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// Addresses that are dialled although they are of such a kind.
    pub allowed: BTreeSet<IpAddr>,
}

impl Destinations {
    /// Tells whether a connection may go to an address; it is what a name resolves to, not the name.
    ///
    /// # Errors
    ///
    /// The kind of address that it is: it is not dialled.
    pub fn check(&self, address: IpAddr) -> Result<(), &'static str> {
        let address = address.to_canonical();
        if self.allowed.contains(&address) {
            return Ok(());
        }
        let kind = match address {
            IpAddr::V4(v4) if v4.is_link_local() => "a link-local address",
            IpAddr::V4(v4) if v4.is_broadcast() => "a broadcast address",
            IpAddr::V6(v6) if v6.is_unicast_link_local() => "a link-local address",
            address if address.is_loopback() => "a loopback address",
            address if address.is_multicast() => "a multicast address",
            address if address.is_unspecified() => "an unspecified address",
            _ => return Ok(()),
        };
        Err(kind)
    }
}

/// A source of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whose cluster.
    pub tenant: TenantName,
    /// Where it answers. Kubernetes: one `https://` URL. Talos: addresses or names, with or without port, control planes
    /// first. Node metrics: one URL for each machine.
    pub endpoints: Vec<String>,
    /// With what; nothing for sources that ask for none.
    pub credential: Option<Credential>,
    /// Where connections may go.
    pub destinations: Destinations,
}

/// What one turn of reading gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reading {
    /// When it began.
    pub started: Timestamp,
    /// When it ended: the date of all it says.
    pub finished: Timestamp,
    /// What was read, as far as it came.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub facts: Option<Facts>,
    /// Why the rest was not: the part's name (`nodes`, `pods`, `usage`, `version`, a machine's name ...) and the cause. A
    /// source that could not be read at all has one failure, of the part `all`, and no facts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failures: Vec<(String, Failure)>,
}

/// Reads one source of clusters.
#[async_trait]
pub trait ClusterScraper: fmt::Debug + Send + Sync + 'static {
    /// Which one.
    fn source(&self) -> Source;

    /// Makes ready to read a target, without asking it anything.
    ///
    /// # Errors
    ///
    /// [`Failure`] where the target cannot be one: its credential is expired or none, its endpoint is refused.
    fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure>;
}

/// One target while it is read, turn after turn. It holds connections; dropping it closes them and forgets the credential.
///
/// *Contract:* no turn takes longer than its `budget` plus a second, whatever the peer does, holds more than a limit of
/// memory, or changes anything on the peer. A turn that is dropped midway leaves the session usable.
#[async_trait]
pub trait Session: fmt::Debug + Send {
    /// Reads once. What can be read is given although other parts cannot.
    async fn read(&mut self, budget: Duration) -> Reading;

    /// Returns when something changed that is worth another reading at once; never returns where nobody tells.
    async fn changed(&mut self);
}
