//! Each rule of the projection, on extracts made by hand.

mod changes;
mod cluster;
mod laws;
mod machines;
mod names;
mod sharing;

use super::*;
use crate::declared::index::{InstanceKey, Mode};
use crate::declared::mapping::extract::{Field, Found, Kind};
use crate::declared::resource::{AddressType, NodeAddress, Place, Role, Spot};

/// A state, as rows and as what mappings found in it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub(super) rows: Vec<IndexRow>,
    pub(super) extracts: Vec<Extract>,
}

impl State {
    /// Adds an object in which nothing was found.
    pub(super) fn object(mut self, address: &str) -> Self {
        self.rows.push(row(address, self.rows.len()));
        self
    }

    /// Adds an object; the last methods change it.
    pub(super) fn with(mut self, kind: Kind, address: &str, fields: &[(Field, &str)], ips: &[&str]) -> Self {
        self = self.object(address);
        let row = self.rows.len() - 1;
        let source = |rule: &str| {
            let below = format!(".attributes.{rule}").into();
            Spot::new(&self.rows[row], Arc::new(Place { below, rule: rule.into() }))
        };
        let found = |(field, value): &(Field, &str)| {
            (
                *field,
                Found { value: (*value).to_owned(), source: source(&format!("{field:?}")), precedence: 0 },
            )
        };
        let address_of = |text: &&str| {
            let kind = match ip_kind(text) {
                Some(kind) => kind,
                None => AddressType::Hostname,
            };
            (NodeAddress { kind, address: (*text).to_owned() }, source("ip"))
        };
        self.extracts.push(Extract {
            row,
            element: None,
            kind,
            mapping: address_type(address).split('_').next().unwrap_or_default().into(),
            fields: fields.iter().map(found).collect(),
            addresses: ips.iter().map(address_of).collect(),
            shared_addresses: Vec::new(),
            problems: Vec::new(),
            read: vec![row],
        });
        self
    }

    pub(super) fn machine(self, address: &str, fields: &[(Field, &str)], ips: &[&str]) -> Self {
        self.with(Kind::Machine, address, fields, ips)
    }

    pub(super) fn talos(self, address: &str, fields: &[(Field, &str)], ips: &[&str]) -> Self {
        self.with(Kind::TalosMachine, address, fields, ips)
    }

    pub(super) fn cluster(self, address: &str, fields: &[(Field, &str)]) -> Self {
        self.with(Kind::Cluster, address, fields, &[])
    }

    /// Changes the last extract.
    pub(super) fn change(mut self, change: impl FnOnce(&mut Extract)) -> Self {
        change(self.extracts.last_mut().unwrap());
        self
    }

    /// Changes the last row.
    pub(super) fn change_row(mut self, change: impl FnOnce(&mut IndexRow)) -> Self {
        change(self.rows.last_mut().unwrap());
        self
    }

    pub(super) fn precedence(self, field: Field, precedence: i32) -> Self {
        self.change(|extract| extract.fields.get_mut(&field).unwrap().precedence = precedence)
    }

    /// Projects, and checks what holds of every projection.
    pub(super) fn project(&self) -> Projection {
        let known = |row: &IndexRow| {
            if row.resource_type.starts_with("acme") || row.resource_type == "a_thing" {
                Known::Unknown
            } else {
                Known::Mapped
            }
        };
        let projection = from_extracts(VersionNumber::FIRST, &self.rows, &self.extracts, known);
        for machine in &projection.machines {
            assert_eq!(self.alone(machine).as_ref(), Some(machine), "a single read differs");
            assert!(super::names::is_label(&machine.object_name), "{}", machine.object_name);
            assert_eq!(machine.fed_by[0].0, machine.address);
        }
        let turned = self.turned();
        let other = from_extracts(VersionNumber::FIRST, &turned.rows, &turned.extracts, known);
        assert_eq!(other, projection, "the order matters");
        projection
    }

    /// Returns the same state, its rows and extracts in the reverse order.
    fn turned(&self) -> Self {
        let turn = |row: usize| self.rows.len() - 1 - row;
        let mut turned = self.clone();
        turned.rows.reverse();
        turned.extracts.reverse();
        for extract in &mut turned.extracts {
            extract.row = turn(extract.row);
            extract.read.iter_mut().for_each(|row| *row = turn(*row));
        }
        turned
    }

    /// Projects one machine from the objects that feed it.
    fn alone(&self, machine: &Machine) -> Option<Machine> {
        let is_fed = |row: &&IndexRow| machine.fed_by.contains(&(row.address.clone(), row.deposed.clone()));
        let rows: Vec<IndexRow> = self.rows.iter().filter(is_fed).cloned().collect();
        let place = |old: usize| rows.iter().position(|row| row.position == self.rows[old].position);
        let moved = self.extracts.iter().filter_map(|extract| {
            let read = extract.read.iter().map(|row| place(*row)).collect::<Option<_>>()?;
            Some(Extract { row: place(extract.row)?, read, ..extract.clone() })
        });
        machine_from_extracts(&rows, &moved.collect::<Vec<_>>(), &machine.key())
    }
}

fn address_type(address: &str) -> &str {
    let head = address.split('[').next().unwrap_or_default();
    head.rsplit('.').nth(1).unwrap_or(head)
}

fn ip_kind(text: &str) -> Option<AddressType> {
    let ip = super::parts::ip(text)?;
    let is_internal = ip.to_string().starts_with("10.") || ip.to_string().starts_with("fd");
    Some(if is_internal { AddressType::InternalIp } else { AddressType::ExternalIp })
}

fn row(address: &str, number: usize) -> IndexRow {
    let (head, key) =
        address.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')).unwrap_or((address, ""));
    let key = match key.parse() {
        Ok(number) => Some(InstanceKey::Number(number)),
        Err(_) if key.is_empty() => None,
        Err(_) => Some(InstanceKey::Text(key.trim_matches('"').to_owned())),
    };
    IndexRow {
        address: ResourceAddress::from_kept(address),
        deposed: None,
        module: String::new(),
        mode: if address.starts_with("data.") { Mode::Data } else { Mode::Managed },
        resource_type: address_type(address).to_owned(),
        name: head.rsplit('.').next().unwrap_or_default().to_owned(),
        key,
        provider: "provider[\"registry.opentofu.org/acme/cloud\"]".to_owned(),
        tainted: false,
        position: (u32::try_from(number).unwrap(), 0),
        span: 0..0,
        checksum: 0,
        masked: Vec::new(),
    }
}

/// Returns the problems of a machine as `field: reason`.
fn problems(machine: &Machine) -> Vec<String> {
    machine.problems.iter().map(|problem| format!("{}: {}", problem.field, problem.reason)).collect()
}

fn addresses(machine: &Machine) -> Vec<&str> {
    machine.addresses.iter().map(|address| &*address.address).collect()
}

fn at<'p>(projection: &'p Projection, address: &str) -> &'p Machine {
    projection.machines.iter().find(|machine| machine.address.as_str() == address).unwrap()
}
