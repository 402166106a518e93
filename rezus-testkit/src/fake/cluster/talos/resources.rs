//! The resources that the machines of a fake cluster have.

use std::net::IpAddr;

use prost::Message as _;

use super::model::{Cluster, Machine};
use super::proto::cosi::{Metadata, Resource, Spec};
use super::proto::specs;

/// How many members are told where the list is to be too large.
const FAR_TOO_MANY: usize = 100_000;

/// A machine's resource; `None` where it has none such. Types that Talos does not have are refused before.
pub(super) fn get(cluster: &Cluster, machine: &Machine, kind: &str, id: &str) -> Option<Resource> {
    let spec = match (kind, id) {
        ("MachineStatuses.runtime.talos.dev", "machine") => {
            let unmet = machine
                .unmet
                .iter()
                .map(|(name, reason)| specs::UnmetCondition { name: name.clone(), reason: reason.clone() });
            let status =
                specs::MachineStatusStatus { ready: machine.is_ready, unmet_conditions: unmet.collect() };
            specs::MachineStatus { stage: machine.stage, status: Some(status) }.encode_to_vec()
        }
        ("Nodenames.kubernetes.talos.dev", "nodename") => {
            specs::Nodename { nodename: machine.name.clone() }.encode_to_vec()
        }
        ("Identities.cluster.talos.dev", "local") => {
            specs::Identity { node_id: machine.node_id.clone() }.encode_to_vec()
        }
        ("Infos.cluster.talos.dev", "current") => {
            specs::Info { cluster_id: cluster.id.clone(), cluster_name: cluster.name.clone() }.encode_to_vec()
        }
        ("EtcdMembers.etcd.talos.dev", "local") => {
            specs::EtcdMember { member_id: format!("{:016x}", machine.etcd.id()?) }.encode_to_vec()
        }
        ("NodeAddresses.net.talos.dev", "current") => {
            let address = specs::NetIpPrefix { ip: bytes(machine.address) };
            specs::NodeAddress { addresses: vec![address] }.encode_to_vec()
        }
        ("SystemInformations.hardware.talos.dev", "systeminformation") => {
            specs::SystemInformation { uuid: format!("uuid of {}", machine.name) }.encode_to_vec()
        }
        ("PlatformMetadatas.talos.dev", "platformmetadata") => {
            let provider_id = format!("fake:///{}", machine.name);
            specs::PlatformMetadata { instance_id: machine.name.clone(), provider_id }.encode_to_vec()
        }
        ("TimeStatuses.v1alpha1.talos.dev", "node") => specs::TimeStatus { synced: true }.encode_to_vec(),
        _ => return None,
    };
    Some(resource(cluster, kind, id, spec))
}

/// The members as every machine knows them.
pub(super) fn members(cluster: &Cluster, kind: &str) -> Vec<Resource> {
    let found = cluster.machines.iter().filter(|machine| cluster.has_discovery && machine.is_discovered);
    let found = found.map(|machine| {
        let member = specs::Member {
            node_id: machine.node_id.clone(),
            addresses: vec![specs::NetIp { ip: bytes(machine.address) }],
            hostname: format!("{}.example.com", machine.name),
            machine_type: if machine.is_control_plane { 2 } else { 3 },
            operating_system: "Talos (v1.13.9)".to_owned(),
        };
        resource(cluster, kind, &machine.name, member.encode_to_vec())
    });
    let found: Vec<Resource> = found.collect();
    if cluster.bloated.contains(kind) {
        return found.iter().cycle().take(FAR_TOO_MANY).cloned().collect();
    }
    found
}

fn resource(cluster: &Cluster, kind: &str, id: &str, spec: Vec<u8>) -> Resource {
    let garbled = cluster.garbled.contains(kind);
    let metadata = Metadata { namespace: String::new(), r#type: kind.to_owned(), id: id.to_owned() };
    // A field of a length that does not follow.
    let proto_spec = if garbled { vec![0x0a, 0xff] } else { spec };
    Resource { metadata: Some(metadata), spec: Some(Spec { proto_spec }) }
}

fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}
