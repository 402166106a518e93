//! What machines are compared by, in one form each.

use std::fmt;
use std::net::IpAddr;

/// One thing that a machine is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// An id or a name, lower case.
    Text(String),
    /// A UUID.
    Uuid(u128),
    /// An address.
    Ip(IpAddr),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Ip(address) => address.fmt(f),
            Self::Uuid(uuid) => {
                let group = |from: u32, bits: u32| uuid << from >> (128 - bits);
                let (first, second, third) = (group(0, 32), group(32, 16), group(48, 16));
                write!(f, "{first:08x}-{second:04x}-{third:04x}-{:04x}-{:012x}", group(64, 16), group(80, 48))
            }
        }
    }
}

/// An id of a provider, whole with its scheme where it has one, and the part that a state would hold.
///
/// `aws:///ZONE/ID`, `openstack:///UUID`, `proxmox://REGION/VMID`, `scaleway://instance/ZONE/ID` and the like end in the id;
/// `azure://ID` and `gce://PROJECT/ZONE/NAME` are ids as a whole, since their last part is a name that others may have too;
/// Alibaba's `REGION.ID` has no scheme.
pub(super) fn provider_id(text: &str) -> Vec<Key> {
    let text = text.trim().to_lowercase();
    let (scheme, rest) =
        text.split_once("://").map_or((None, text.as_str()), |(scheme, rest)| (Some(scheme), rest));
    let rest = rest.trim_matches('/');
    let last = rest.rsplit('/').next().unwrap_or(rest);
    let google = rest.strip_prefix("projects/").map(|rest| rest.replacen("/zones/", "/", 1));
    let id = match scheme {
        Some("azure" | "gce") => rest.to_owned(),
        None if rest.starts_with("subscriptions/") => rest.to_owned(),
        None if google.is_some() => google.unwrap_or_default().replacen("/instances/", "/", 1),
        Some(_) => last.to_owned(),
        None => last.rsplit('.').next().unwrap_or(last).to_owned(),
    };
    let whole = scheme.map_or_else(|| last.to_owned(), |scheme| format!("{scheme}://{rest}"));
    let mut keys = vec![Key::Text(id), Key::Text(whole)];
    keys.dedup();
    keys.retain(|key| !matches!(key, Key::Text(text) if text.is_empty()));
    keys
}

/// A UUID, unless it is one that boards come with from the factory.
pub(super) fn uuid(text: &str) -> Option<u128> {
    const JUNK: [u128; 3] = [0, u128::MAX, 0x0300_0200_0400_0500_0006_0007_0008_0009];

    let digits = text.trim().chars().filter(|character| *character != '-').collect::<String>();
    let plain = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let uuid = plain.then(|| u128::from_str_radix(&digits, 16).ok()).flatten()?;
    (!JUNK.contains(&uuid)).then_some(uuid)
}

/// The UUID as `VMware` and old firmware write it: the first three groups with their bytes turned round.
pub(super) fn mixed_endian(uuid: u128) -> u128 {
    let mut bytes = uuid.to_be_bytes();
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    u128::from_be_bytes(bytes)
}

/// An address of IP, or a name, with or without a port; nothing for what says nothing about which machine it is.
pub(super) fn address(text: &str) -> Option<Key> {
    let text = text.trim();
    let host = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => match text.split_once(':') {
            Some((host, port)) if !port.contains(':') => host,
            _ => text,
        },
    };
    if let Ok(address) = host.split('%').next().unwrap_or(host).parse::<IpAddr>() {
        return ip(address);
    }
    let name = host.trim_end_matches('.').to_lowercase();
    (!name.is_empty() && name != "localhost").then_some(Key::Text(name))
}

/// An address, v4 where it is one in v6's clothes. What each machine has, or Talos itself gave, is none.
pub(super) fn ip(address: IpAddr) -> Option<Key> {
    /// `fdae:41e4:649b:9303::/64`, `SideroLink`.
    const SIDERO_LINK: [u16; 4] = [0xfdae, 0x41e4, 0x649b, 0x9303];

    let address = address.to_canonical();
    let local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local() || v6.segments()[..4] == SIDERO_LINK,
    };
    let nobody = local || address.is_loopback() || address.is_unspecified() || address.is_multicast();
    (!nobody).then_some(Key::Ip(address))
}

/// The first label of a name, as Talos makes a node's name of it: lower case, other characters dropped.
pub(super) fn hostname(text: &str) -> Option<Key> {
    let name = text.to_lowercase();
    let kept = name.chars().filter(|character| matches!(character, 'a'..='z' | '0'..='9' | '-' | '.'));
    let kept = kept.collect::<String>();
    let label = kept.trim_matches(['-', '.']).split('.').next().unwrap_or_default();
    (!label.is_empty()).then(|| Key::Text(label.to_owned()))
}
