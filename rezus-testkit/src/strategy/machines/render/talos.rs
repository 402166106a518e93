//! Talos configurations that are applied, and the data sources that they depend on.

use std::collections::BTreeSet;
use std::net::IpAddr;

use rezus_core::declared::resource::{AddressType, Role};
use serde_json::json;

use super::super::super::address::spell_key;
use super::super::super::model::Key;
use super::super::believed::{self, Said};
use super::super::plan::{ApplyKey, ApplyPlan, Data};
use super::{Builder, attribute_path, block, group_of_key, instance};

const APPLY: &str = "talos_machine_configuration_apply";
const CONFIGURATION: &str = "talos_machine_configuration";
const SOURCE: &str = "registry.opentofu.org/siderolabs/talos";

impl Builder {
    /// Applies configurations to a machine that nothing else knows.
    pub(super) fn bare(&mut self, applies: &[ApplyPlan]) {
        let number = self.next;
        self.next += 1;
        let node = format!("192.168.{}.{}", number / 256, number % 256);
        let mut said: Vec<Said> =
            applies.iter().enumerate().map(|(at, plan)| self.apply(number, at, &node, plan)).collect();
        said.sort_by(|a, b| a.address.cmp(&b.address));
        if said.is_empty() {
            return;
        }
        let mut main = said.remove(0);
        main.addresses = BTreeSet::from([(AddressType::InternalIp, node)]);
        self.model.machines.push(believed::machine(&main, said));
    }

    /// Applies a configuration to an address, and returns what that says of the machine there.
    pub(super) fn apply(&mut self, number: usize, at: usize, node: &str, plan: &ApplyPlan) -> Said {
        let key = match plan.key {
            ApplyKey::Name => format!("n{number}-{at}"),
            ApplyKey::Group => format!("edge/{number}{at}"),
            ApplyKey::Digits => format!("{}{at}", 100 + number),
        };
        let token = self.secret();
        let host = plan.hostname.then(|| format!("talos-{number}"));
        let role_line = plan.document.map(|role| format!("  type: {}\n", role.as_str())).unwrap_or_default();
        let host_lines =
            host.as_ref().map(|host| format!("  network:\n    hostname: {host}\n")).unwrap_or_default();
        let document = format!("version: v1alpha1\nmachine:\n  token: {token}\n{role_line}{host_lines}");
        let mut attributes = json!({
            "node": if plan.respelt { respelt(node) } else { node.to_owned() },
            "endpoint": "proxy.example",
            "machine_configuration_input": document,
            "apply_mode": "auto",
            "client_configuration": {"client_key": self.secret()},
        });
        attributes["machine_configuration"] = attributes["machine_configuration_input"].clone();
        let marks = [attribute_path("machine_configuration")];
        let mut apply = instance(Some(json!(key)), &attributes, &marks);
        apply["dependencies"] = json!(dependencies(plan.data));
        self.applies.push(apply);

        let address = format!("{APPLY}.this{}", spell_key(Some(&Key::Text(key.clone()))));
        let in_document = plan.document.map(|role| (role, -2));
        let by_data = match plan.data {
            Data::ControlPlane => Some((Role::ControlPlane, 10)),
            Data::Worker => Some((Role::Worker, 10)),
            Data::None | Data::Gone | Data::Both | Data::Mixed => None,
        };
        let is_ambiguous = matches!(plan.data, Data::Both | Data::Mixed);
        let mut problems = BTreeSet::new();
        if is_ambiguous && in_document.is_none() {
            problems.insert("role");
        }
        let by_host = host.clone().map(|host| (host, -5));
        let by_key = (plan.key != ApplyKey::Digits).then(|| (key.clone(), -10));
        let group = group_of_key(&key).map(|group| (group.to_owned(), -6));
        let mut described_by = BTreeSet::from([address.clone()]);
        described_by.extend(read_of(plan.data).iter().map(|rest| format!("data.{CONFIGURATION}.{rest}")));
        Said {
            address,
            provider: "talos",
            is_talos: true,
            key: Some(key),
            name: by_host.or(by_key),
            hostname: host.map(|host| (host, -5)),
            role: by_data.or(in_document),
            group: group.or_else(|| Some(("this".to_owned(), -20))),
            problems,
            described_by,
            ..Said::default()
        }
    }

    /// Adds what configurations depend on, and these themselves.
    pub(super) fn data_sources(&mut self) {
        let mut source = |role: Role| {
            let token = self.secret();
            let document = format!("machine:\n  token: {token}\n  type: {}\n", role.as_str());
            json!({
                "cluster_name": "c1", "cluster_endpoint": "https://kube.example:6443",
                "machine_type": role.as_str(), "machine_configuration": document,
            })
        };
        let (cp, worker) = (source(Role::ControlPlane), source(Role::Worker));
        let mixed = [
            instance(Some(json!(0)), &source(Role::Worker), &[]),
            instance(Some(json!(1)), &source(Role::ControlPlane), &[]),
        ];
        let place = ("", "data", SOURCE);
        let (cp, worker) = (instance(None, &cp, &[]), instance(None, &worker, &[]));
        self.blocks.push(block(place, CONFIGURATION, "cp", &[cp]));
        self.blocks.push(block(place, CONFIGURATION, "wk", &[worker]));
        self.blocks.push(block(place, CONFIGURATION, "mixed", &mixed));
        let applies = std::mem::take(&mut self.applies);
        self.blocks.push(block(("", "managed", SOURCE), APPLY, "this", &applies));
    }
}

fn dependencies(data: Data) -> Vec<String> {
    let names: &[&str] = match data {
        Data::None => &[],
        Data::Gone => &["gone"],
        Data::ControlPlane => &["cp"],
        Data::Worker => &["wk"],
        Data::Both => &["cp", "wk"],
        Data::Mixed => &["mixed"],
    };
    let mut dependencies = vec!["hcloud_network.noise0".to_owned()];
    dependencies.extend(names.iter().map(|name| format!("data.{CONFIGURATION}.{name}")));
    dependencies
}

/// Returns the instances that are read for it.
fn read_of(data: Data) -> &'static [&'static str] {
    match data {
        Data::None | Data::Gone => &[],
        Data::ControlPlane => &["cp"],
        Data::Worker => &["wk"],
        Data::Both => &["cp", "wk"],
        Data::Mixed => &["mixed[0]", "mixed[1]"],
    }
}

/// Spells an address as nobody does.
fn respelt(address: &str) -> String {
    match address.parse() {
        Ok(IpAddr::V4(v4)) => format!("[::FFFF:{v4}]"),
        Ok(IpAddr::V6(v6)) => {
            let segments: Vec<String> = v6.segments().iter().map(|part| format!("{part:04X}")).collect();
            format!("{}/64", segments.join(":"))
        }
        Err(_) => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_spelt_otherwise() {
        assert_eq!(respelt("10.0.0.7"), "[::FFFF:10.0.0.7]");
        assert_eq!(respelt("2001:db8::7"), "2001:0DB8:0000:0000:0000:0000:0000:0007/64");
        assert_eq!(respelt("x"), "x");
    }
}
