//! What the mappings found in the objects of a state, in one order, and addresses as they are compared.

use std::net::IpAddr;

use crate::declared::index::{IndexRow, Mode};
use crate::declared::mapping::extract::{Extract, Field, Found, Kind};
use crate::declared::resource::{AddressType, NodeAddress};

/// What was found in one object or one element of it, and the object's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    pub(super) row: &'a IndexRow,
    pub(super) extract: &'a Extract,
}

/// What machines are recognised by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Mark {
    Ip(IpAddr),
    Name(String),
}

/// Returns all parts of current objects, sorted by address and element. What names a row that there is not is left
/// out.
pub(super) fn sorted<'a>(rows: &'a [IndexRow], extracts: &'a [Extract]) -> Vec<Part<'a>> {
    let part = |extract: &'a Extract| rows.get(extract.row).map(|row| Part { row, extract });
    let mut parts: Vec<_> =
        extracts.iter().filter_map(part).filter(|part| part.row.deposed.is_none()).collect();
    parts.sort_by(|a, b| a.order().cmp(&b.order()));
    parts
}

impl<'a> Part<'a> {
    pub(super) fn order(&self) -> (&str, Option<&str>, Kind) {
        (self.row.address.as_str(), self.extract.element.as_deref(), self.extract.kind)
    }

    /// Tells whether it can be a machine, be it by itself or for want of another.
    pub(super) fn is_machine(&self) -> bool {
        self.row.mode == Mode::Managed && matches!(self.extract.kind, Kind::Machine | Kind::TalosMachine)
    }

    pub(super) fn is_talos(&self) -> bool {
        self.is_machine() && self.extract.kind == Kind::TalosMachine
    }

    /// Returns what was found for a field, unless it is empty.
    pub(super) fn found(&self, field: Field) -> Option<&'a Found> {
        self.extract.fields.get(&field).filter(|found| !found.value.is_empty())
    }
}

/// Reads an IP address in any spelling; one that is embedded in IPv6 is the same as the IPv4 address itself.
pub(super) fn ip(text: &str) -> Option<IpAddr> {
    let text = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    text.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

impl Mark {
    /// Reads an address or a host's name; `None` for no text at all.
    pub(super) fn of(text: &str) -> Option<Self> {
        if let Some(ip) = ip(text) {
            return Some(Self::Ip(ip));
        }
        let name = text.trim_end_matches('.').to_ascii_lowercase();
        (!name.is_empty()).then_some(Self::Name(name))
    }
}

/// Returns an address in its canonical spelling.
pub(super) fn canonical(address: &NodeAddress) -> NodeAddress {
    let spelt = match address.kind {
        AddressType::InternalIp | AddressType::ExternalIp => ip(&address.address).map(|ip| ip.to_string()),
        AddressType::Hostname => None,
    };
    NodeAddress { kind: address.kind, address: spelt.unwrap_or_else(|| address.address.clone()) }
}
