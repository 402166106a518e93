//! States that declare machines, with the resources around them that a projection joins.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// How many machines a resource block has.
const BLOCK: usize = 50;

/// One machine in so many has a floating IP.
const FLOATING: usize = 4;

const HCLOUD: &str = "provider[\"registry.opentofu.org/hetznercloud/hcloud\"]";
const OPENSTACK: &str = "provider[\"registry.terraform.io/terraform-provider-openstack/openstack\"]";
const TALOS: &str = "provider[\"registry.opentofu.org/siderolabs/talos\"]";

/// Returns a state of so many machines, as OpenTofu writes it: half of them of hcloud, each with its network and every
/// fourth with a floating IP through an assignment; half of `OpenStack`, each with a port and every fourth with a
/// floating IP at that port. A Talos configuration of 1 kB is applied to each. 20,000 of them make about 92 MB.
///
/// # Errors
///
/// None that is known: serialisation's.
pub fn machines_state(machines: usize) -> serde_json::Result<Vec<u8>> {
    let mut blocks = Vec::new();
    for (number, start) in (0..machines).step_by(BLOCK).enumerate() {
        let all: Vec<_> = (start..machines.min(start + BLOCK)).collect();
        let with_floating: Vec<_> = all.iter().copied().filter(|at| at % FLOATING == 0).collect();
        let name = format!("pool-{number}");
        let mut add = |resource_type: &str, provider, of: &[usize], attributes: fn(usize) -> Value| {
            if !of.is_empty() {
                blocks.push(block((resource_type, &name), provider, of, attributes));
            }
        };
        if number % 2 == 0 {
            add("hcloud_server", HCLOUD, &all, hcloud_server);
            add("hcloud_server_network", HCLOUD, &all, hcloud_server_network);
            add("hcloud_floating_ip", HCLOUD, &with_floating, hcloud_floating_ip);
            add("hcloud_floating_ip_assignment", HCLOUD, &with_floating, hcloud_floating_ip_assignment);
        } else {
            add("openstack_compute_instance_v2", OPENSTACK, &all, openstack_instance);
            add("openstack_networking_port_v2", OPENSTACK, &all, openstack_port);
            add("openstack_networking_floatingip_v2", OPENSTACK, &with_floating, openstack_floating_ip);
        }
        add("talos_machine_configuration_apply", TALOS, &all, talos_apply);
    }
    state(&blocks)
}

/// Returns a state of so many hcloud servers and nothing else: 20,000 of them make about 35 MB.
///
/// # Errors
///
/// None that is known: serialisation's.
pub fn servers_state(servers: usize) -> serde_json::Result<Vec<u8>> {
    let of: Vec<_> = (0..servers).collect();
    let blocks = of.chunks(BLOCK).enumerate();
    let blocks = blocks
        .map(|(number, of)| block(("hcloud_server", &format!("pool-{number}")), HCLOUD, of, hcloud_server));
    state(&blocks.collect::<Vec<_>>())
}

fn state(blocks: &[Value]) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec_pretty(&json!({
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": 1,
        "lineage": "6f1d2a44-8c1b-4a0e-9d57-0b7c55c1e0aa",
        "outputs": {},
        "resources": blocks,
        "check_results": null,
    }))
}

fn block(
    (resource_type, name): (&str, &str),
    provider: &str,
    of: &[usize],
    attributes: fn(usize) -> Value,
) -> Value {
    let instance = |at: &usize| {
        json!({
            "index_key": format!("node/{at}"),
            "schema_version": 0,
            "attributes": attributes(*at),
            "sensitive_attributes": [],
            "private": "eyJzY2hlbWFfdmVyc2lvbiI6IjAifQ==",
        })
    };
    json!({
        "mode": "managed",
        "type": resource_type,
        "name": name,
        "provider": provider,
        "instances": of.iter().map(instance).collect::<Vec<_>>(),
    })
}

fn role(at: usize) -> &'static str {
    if at < 3 { "controlplane" } else { "worker" }
}

/// An address of the machine: each has another one.
fn ip(network: &str, at: usize) -> String {
    format!("{network}.{}.{}", 1 + at / 250, 1 + at % 250)
}

fn uuid(kind: usize, at: usize) -> String {
    format!("{kind:08x}-5f0a-4f4c-a690-{at:012x}")
}

fn hcloud_server(at: usize) -> Value {
    json!({
        "allow_deprecated_images": false,
        "backup_window": "",
        "backups": false,
        "datacenter": "fsn1-dc14",
        "delete_protection": false,
        "firewall_ids": [],
        "id": (90_000_000 + at).to_string(),
        "ignore_remote_firewall_ids": false,
        "image": "201234567",
        "ipv4_address": ip("78.46", at),
        "ipv6_address": format!("2a01:4f8:{at:x}::1"),
        "ipv6_network": format!("2a01:4f8:{at:x}::/64"),
        "iso": null,
        "keep_disk": false,
        "labels": { "cluster": "cobalt", "pool": format!("pool-{}", at / BLOCK), "role": role(at) },
        "location": "fsn1",
        "name": format!("cobalt-{at}"),
        "network": [],
        "placement_group_id": 700_001,
        "primary_disk_size": 80,
        "public_net": [{ "ipv4": 0, "ipv4_enabled": true, "ipv6": 0, "ipv6_enabled": true }],
        "rebuild_protection": false,
        "rescue": null,
        "server_type": "cx32",
        "shutdown_before_deletion": false,
        "ssh_keys": null,
        "status": "running",
        "timeouts": null,
        "user_data": "IrBwGiaU2Sml9ICzFJ/atzu7y84=",
    })
}

fn hcloud_server_network(at: usize) -> Value {
    json!({
        "alias_ips": [],
        "id": format!("{}-4000001", 90_000_000 + at),
        "ip": ip("10.50", at),
        "mac_address": format!("86:00:{:02x}:{:02x}:{:02x}:2d", at >> 16, (at >> 8) & 0xff, at & 0xff),
        "network_id": 4_000_001,
        "server_id": 90_000_000 + at,
        "subnet_id": "4000001-10.50.0.0/16",
    })
}

fn hcloud_floating_ip(at: usize) -> Value {
    json!({
        "delete_protection": false,
        "description": "",
        "home_location": "fsn1",
        "id": (600_000 + at).to_string(),
        "ip_address": ip("88.198", at),
        "ip_network": null,
        "labels": {},
        "name": format!("float-{at}"),
        "server_id": 0,
        "type": "ipv4",
    })
}

fn hcloud_floating_ip_assignment(at: usize) -> Value {
    json!({
        "floating_ip_id": 600_000 + at,
        "id": (600_000 + at).to_string(),
        "server_id": 90_000_000 + at,
    })
}

fn openstack_instance(at: usize) -> Value {
    let labels =
        json!({ "cluster": "cobalt", "node_group": format!("pool-{}", at / BLOCK), "role": role(at) });
    json!({
        "access_ip_v4": ip("10.30", at),
        "access_ip_v6": "",
        "admin_pass": null,
        "all_metadata": labels,
        "all_tags": [],
        "availability_zone": "nova",
        "block_device": [],
        "config_drive": null,
        "created": "2026-04-01 08:00:00 +0000 UTC",
        "flavor_id": "838241b8-bf2b-4fc3-ac47-ed54f746d3fd",
        "flavor_name": "m1.xlarge",
        "force_delete": false,
        "id": uuid(1, at),
        "image_id": "74ad4b88-7209-4c93-a9e8-e024afdb5a78",
        "image_name": "talos-v1.11.2-openstack",
        "key_pair": "",
        "metadata": labels,
        "name": format!("cobalt-{at}"),
        "network": [{
            "access_network": true,
            "fixed_ip_v4": ip("10.30", at),
            "fixed_ip_v6": "",
            "mac": "fa:16:74:74:72:0f",
            "name": "talos-mgmt",
            "port": "",
            "uuid": "7f18f538-1575-4fbd-a735-ba240cd260c0",
        }],
        "personality": [],
        "power_state": "active",
        "region": "RegionOne",
        "scheduler_hints": [],
        "security_groups": ["default", "talos"],
        "stop_before_destroy": false,
        "tags": [],
        "timeouts": null,
        "user_data": "d264a1f24d93c3039c0080c98d72b64336de8722",
    })
}

fn openstack_port(at: usize) -> Value {
    json!({
        "admin_state_up": true,
        "all_fixed_ips": [ip("10.30", at)],
        "all_security_group_ids": ["5be43e77-c573-48e1-a18a-5b815fc2a449"],
        "all_tags": [],
        "allowed_address_pairs": [],
        "description": "",
        "device_id": uuid(1, at),
        "device_owner": "compute:nova",
        "fixed_ip": [],
        "id": uuid(2, at),
        "mac_address": "fa:16:93:f4:62:4c",
        "name": "",
        "network_id": "7f18f538-1575-4fbd-a735-ba240cd260c0",
        "region": "RegionOne",
    })
}

fn openstack_floating_ip(at: usize) -> Value {
    json!({
        "address": ip("185.56", at),
        "all_tags": [],
        "description": "",
        "fixed_ip": ip("10.30", at),
        "id": uuid(3, at),
        "pool": "public",
        "port_id": uuid(2, at),
        "region": "RegionOne",
        "tags": [],
    })
}

fn talos_apply(at: usize) -> Value {
    let kind = role(at);
    let mut configuration = format!(
        "version: v1alpha1\nmachine:\n    type: {kind}\n    network:\n        hostname: cobalt-{at}\n    install:\n        \
         disk: /dev/sda\n        image: ghcr.io/siderolabs/installer:v1.11.2\n    sysctls:\n"
    );
    for number in 0..24 {
        let _ = writeln!(configuration, "        net.core.setting_{number}: \"{at}\"");
    }
    let network = if (at / BLOCK).is_multiple_of(2) { "10.50" } else { "10.30" };
    json!({
        "apply_mode": "auto",
        "client_configuration": {
            "ca_certificate": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "client_certificate": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "client_key": "Y2FuYXJ5LTAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMQ==",
        },
        "config_patches": null,
        "endpoint": ip(network, at),
        "id": "machine_configuration_apply",
        "machine_configuration": configuration,
        "machine_configuration_input": null,
        "node": ip(network, at),
        "on_destroy": null,
        "timeouts": null,
    })
}
