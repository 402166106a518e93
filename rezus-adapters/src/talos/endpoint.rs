//! Where an API answers.

use std::net::IpAddr;

use rezus_core::observed::Failure;

/// Where `apid` listens on every machine.
pub(super) const PORT: u16 = 50_000;

/// An address or a name, and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Endpoint {
    /// Without the brackets of IPv6.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Endpoint {
    /// Reads `HOST`, `HOST:PORT`, `[IPv6]:PORT` or a bare IPv6 address.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let refused = |reason: &str| Failure::CredentialRejected {
            field: "endpoints".to_owned(),
            reason: reason.to_owned(),
        };
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::of(address));
        }
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, port) = rest.split_once(']').ok_or_else(|| refused("a bracket is open"))?;
                let port = if port.is_empty() { None } else { Some(port.strip_prefix(':').unwrap_or(port)) };
                host.parse::<IpAddr>().map_err(|_| refused("no address in its brackets"))?;
                (host, port)
            }
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let fits = host.parse::<IpAddr>().is_ok()
            || (!host.is_empty() && host.len() <= 253 && host.chars().all(named));
        if !fits {
            return Err(refused("neither an address nor a name"));
        }
        let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| refused("no port")))?;
        Ok(Self { host: host.to_owned(), port })
    }

    /// Where a machine with that address answers.
    pub(super) fn of(address: IpAddr) -> Self {
        Self { host: address.to_string(), port: PORT }
    }

    /// Its address, where it is not a name.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.host.parse().ok()
    }

    /// As an authority of URLs.
    pub(super) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_hosts_with_or_without_port() {
        let read = |text: &str| Endpoint::parse(text).ok().map(|endpoint| endpoint.authority());
        for (text, expected) in [
            ("10.0.0.1", "10.0.0.1:50000"),
            ("10.0.0.1:6", "10.0.0.1:6"),
            ("cp.example.com", "cp.example.com:50000"),
            ("fd00::1", "[fd00::1]:50000"),
            ("[fd00::1]:6", "[fd00::1]:6"),
            ("[fd00::1]", "[fd00::1]:50000"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
        for text in
            ["", "https://a", "a/b", "a@b", "a:b", "a:99999", "[a", "[a]:1", "a b", "a\nb", "[fd00::1]x6y"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
