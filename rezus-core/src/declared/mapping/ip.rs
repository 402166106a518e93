//! Addresses as states spell them, and as they are meant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reads an IP address; `/LEN` and brackets are stripped.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let host = match text.split_once('/') {
        Some((host, length)) if length.len() <= 3 && length.bytes().all(|b| b.is_ascii_digit()) => host,
        Some(_) => return None,
        None => text,
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    // A zone (`fe80::1%eth0`) is of this host's own.
    let host = host.split_once('%').map_or(host, |(host, _)| host);
    host.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// Tells whether an address can be another host's.
pub(super) fn is_usable(address: IpAddr) -> bool {
    let is_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets().first() == Some(&0),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    !(is_local || address.is_loopback() || address.is_unspecified() || address.is_multicast())
}

/// Tells whether an address is of a private range: RFC 1918, `100.64.0.0/10`, `fc00::/7`.
pub(super) fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || is_shared(v4),
        IpAddr::V6(v6) => is_unique_local(v6),
    }
}

fn is_shared(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 100 && second & 0xc0 == 64
}

fn is_unique_local(address: Ipv6Addr) -> bool {
    address.octets().first().is_some_and(|first| first & 0xfe == 0xfc)
}

/// Tells whether a text can be a host's name.
pub(super) fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_part)
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    name.len() <= 253 && name.split('.').all(is_label) && !name.eq_ignore_ascii_case("localhost")
}

/// Returns how a value is compared: IP addresses by their canonical spelling, all else as it is.
pub(super) fn comparable(text: &str) -> String {
    parse(text).map_or_else(|| text.to_owned(), |address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_canonical() {
        let cases = [
            ("10.0.0.1/24", Some("10.0.0.1")),
            ("[2001:DB8:0:0::1]", Some("2001:db8::1")),
            ("2001:db8::1/64", Some("2001:db8::1")),
            ("::ffff:1.2.3.4", Some("1.2.3.4")),
            (" fe80::1%eth0 ", Some("fe80::1")),
            ("10.0.0.1/x", None),
            ("10.0.0.01", None),
            ("node-1", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).map(|ip| ip.to_string()).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn ranges() {
        let usable = |text: &str| is_usable(parse(text).unwrap());
        for bad in
            ["0.0.0.0", "::", "127.0.0.1", "::1", "169.254.1.2", "fe80::1", "224.0.0.1", "255.255.255.255"]
        {
            assert!(!usable(bad), "{bad}");
        }
        let private = |text: &str| is_private(parse(text).unwrap());
        for inside in ["10.1.2.3", "172.31.0.1", "192.168.0.1", "100.64.0.1", "100.127.0.1", "fd00::1"] {
            assert!(usable(inside) && private(inside), "{inside}");
        }
        for outside in ["192.0.2.1", "198.51.100.1", "203.0.113.9", "2001:db8::1", "100.128.0.1", "8.8.8.8"] {
            assert!(usable(outside) && !private(outside), "{outside}");
        }
        assert!(is_name("edge-1.lyon.example") && !is_name("a b") && !is_name("localhost") && !is_name(""));
    }
}
