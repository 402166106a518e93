//! Addresses that are the cluster's, and not those of the machine that happens to hold them.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::parts::{self, Part};
use crate::declared::mapping::extract::{Field, Kind};
use crate::declared::resource::{AddressType, NodeAddress, Role};

/// The addresses that may have to be dropped from machines.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// From every machine that has another address.
    always: HashSet<IpAddr>,
    /// From every machine that has another address of the same kind and IP version.
    beside_alike: HashSet<IpAddr>,
}

impl Shared {
    pub(super) fn of(parts: &[Part<'_>]) -> Self {
        let named = parts.iter().flat_map(|part| &part.extract.shared_addresses);
        let mut shared =
            Self { always: named.filter_map(|text| parts::ip(text)).collect(), ..Self::default() };
        let endpoints: HashSet<IpAddr> = parts
            .iter()
            .filter_map(|part| part.found(Field::Endpoint))
            .filter_map(|found| host(&found.value))
            .collect();
        if endpoints.is_empty() {
            return shared;
        }
        let mut holders: HashMap<IpAddr, usize> = HashMap::new();
        let mut applied_to = HashSet::new();
        for part in parts.iter().filter(|part| part.is_machine()) {
            let ips: HashSet<_> =
                part.extract.addresses.iter().filter_map(|(a, _)| parts::ip(&a.address)).collect();
            for ip in ips.into_iter().filter(|ip| endpoints.contains(ip)) {
                if part.is_talos() {
                    applied_to.insert(ip);
                } else {
                    *holders.entry(ip).or_default() += 1;
                }
            }
        }
        let has_several_control_planes = control_planes(parts) > 1;
        for ip in endpoints.difference(&applied_to) {
            if holders.get(ip).is_some_and(|count| *count > 1) {
                shared.always.insert(*ip);
            } else if has_several_control_planes {
                shared.beside_alike.insert(*ip);
            }
        }
        shared
    }

    /// Tells whether nothing is to be dropped from any machine.
    pub(super) fn is_empty(&self) -> bool {
        self.always.is_empty() && self.beside_alike.is_empty()
    }

    /// Returns the places of the addresses to drop, of all that a machine has.
    pub(super) fn dropped(&self, addresses: &[&NodeAddress]) -> Vec<usize> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut kept: Vec<(usize, AddressType, IpAddr)> = Vec::new();
        let mut dropped = Vec::new();
        for (place, address) in addresses.iter().enumerate() {
            match parts::ip(&address.address) {
                Some(ip) if self.always.contains(&ip) => dropped.push(place),
                Some(ip) => kept.push((place, address.kind, ip)),
                None => {}
            }
        }
        if kept.is_empty() {
            return Vec::new();
        }
        for (place, kind, ip) in &kept {
            let is_alike = |(_, other_kind, other): &(usize, AddressType, IpAddr)| {
                other_kind == kind && other.is_ipv4() == ip.is_ipv4() && !self.beside_alike.contains(other)
            };
            if self.beside_alike.contains(ip) && kept.iter().any(is_alike) {
                dropped.push(*place);
            }
        }
        dropped.sort_unstable();
        dropped
    }
}

/// Counts the control planes: machines of which it is said, or Talos resources of which it is said, whichever are
/// more. Which of them are the same is not known yet.
fn control_planes(parts: &[Part<'_>]) -> usize {
    let is_one = |part: &&Part<'_>| {
        part.is_machine()
            && part.found(Field::Role).is_some_and(|found| found.value == Role::ControlPlane.as_str())
    };
    let nodes: HashSet<_> = parts
        .iter()
        .filter(is_one)
        .filter(|part| part.is_talos())
        .filter_map(|part| part.extract.addresses.iter().map(|(address, _)| &address.address).min())
        .collect();
    let machines = parts.iter().filter(is_one).filter(|part| part.extract.kind == Kind::Machine).count();
    machines.max(nodes.len())
}

/// Returns the host of an endpoint, where it is an IP address: of a URL, or of `host[:port]` alone.
fn host(endpoint: &str) -> Option<IpAddr> {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if let Some(ip) = parts::ip(authority) {
        return Some(ip);
    }
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    parts::ip(host)
}
