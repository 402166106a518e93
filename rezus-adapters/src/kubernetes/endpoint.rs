//! Where an API server is, and whether it is gone to.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::Uri;
use rezus_core::observed::{Destinations, Failure, Phase};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::trouble::unreachable;

/// `https://host:port` with nothing behind it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    host: String,
    port: u16,
    pub(super) name: ServerName<'static>,
    destinations: Destinations,
}

fn refused(reason: impl Into<String>) -> Failure {
    Failure::CredentialRejected { field: "server".to_owned(), reason: reason.into() }
}

impl Endpoint {
    /// Reads a URL; an address in it is checked at once, a name when it is resolved.
    pub(super) fn parse(url: &str, destinations: Destinations) -> Result<Self, Failure> {
        let uri: Uri = url.trim().parse().map_err(|_| refused("it is no URL"))?;
        if uri.scheme_str() != Some("https") {
            return Err(refused("it is not https"));
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(refused("it has a path"));
        }
        let authority = uri.authority().ok_or_else(|| refused("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("it has a user"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host.clone()).map_err(|_| refused("its host is no name"))?;
        if let Ok(address) = host.parse::<IpAddr>() {
            destinations.check(address).map_err(|kind| refused(format!("it is {kind}")))?;
        }
        let port = authority.port_u16().unwrap_or(443);
        Ok(Self { host, port, name, destinations })
    }

    /// Returns what requests say for `Host`.
    pub(super) fn host(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Connects to the first address that accepts, of those that are gone to.
    pub(super) async fn dial(&self, until: Instant) -> Result<TcpStream, Failure> {
        let addresses = self.resolve(until).await?;
        let mut last = unreachable(Phase::Tcp, "there was no time");
        for (tried, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
            let share = until.saturating_duration_since(Instant::now()) / left;
            last = match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // A socket that cannot do without the delay works too.
                    drop(stream.set_nodelay(true));
                    return Ok(stream);
                }
                Ok(Err(error)) => unreachable(Phase::Tcp, &error.to_string()),
                Err(_) => unreachable(Phase::Tcp, "nobody accepts"),
            };
        }
        Err(last)
    }

    async fn resolve(&self, until: Instant) -> Result<Vec<SocketAddr>, Failure> {
        let looked = timeout_at(until, tokio::net::lookup_host((self.host.as_str(), self.port)));
        let found: Vec<_> = match looked.await {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(error)) => return Err(unreachable(Phase::Dns, &error.to_string())),
            Err(_) => return Err(unreachable(Phase::Dns, "no answer")),
        };
        let mut kind = None;
        let allowed: Vec<_> = found
            .into_iter()
            .filter(|address| self.destinations.check(address.ip()).map_err(|why| kind = Some(why)).is_ok())
            .collect();
        match (allowed.is_empty(), kind) {
            (false, _) => Ok(allowed),
            (true, Some(kind)) => Err(refused(format!("its name is that of {kind}"))),
            (true, None) => Err(unreachable(Phase::Dns, "the name has no address")),
        }
    }
}

/// How long it may take until a connection stands, and until its handshake is done.
pub(super) const CONNECT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(url: &str) -> String {
        match Endpoint::parse(url, Destinations::default()) {
            Err(Failure::CredentialRejected { field, reason }) if field == "server" => reason,
            other => panic!("{url}: {other:?}"),
        }
    }

    #[test]
    fn only_https_without_anything_else_to_where_may_be_gone() {
        assert_eq!(reason("http://10.0.0.1:6443"), "it is not https");
        assert_eq!(reason("10.0.0.1:6443"), "it is not https");
        assert_eq!(reason("https://10.0.0.1:6443/api?x"), "it has a path");
        assert_eq!(reason("https://a@10.0.0.1"), "it has a user");
        assert_eq!(reason("https://169.254.169.254"), "it is a link-local address");
        assert_eq!(reason("https://[::1]:6443"), "it is a loopback address");
        assert_eq!(reason("https://[::ffff:127.0.0.1]:6443"), "it is a loopback address");
        let good = Endpoint::parse("https://[2001:db8::1]:6443/", Destinations::default()).unwrap();
        assert_eq!(good.host(), "[2001:db8::1]:6443");
        assert_eq!(Endpoint::parse("https://api.example.com", Destinations::default()).unwrap().port, 443);
    }

    #[tokio::test]
    async fn a_name_is_refused_by_what_it_resolves_to() {
        let endpoint = Endpoint::parse("https://localhost:6443", Destinations::default()).unwrap();
        let failure = endpoint.dial(Instant::now() + CONNECT).await.unwrap_err();
        assert_eq!(failure, refused("its name is that of a loopback address"));
    }
}
