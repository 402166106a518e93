//! What one machine knows of its whole cluster.

use std::net::IpAddr;

use rezus_core::observed::facts::{MachineKind, Member};
use sha2::{Digest as _, Sha256};

use super::fault::Fault;
use super::peer::{Kind, Peer};
use super::proto::specs;
use crate::text::{clean, some};

const MEMBERS: Kind = Kind("cluster", "Members.cluster.talos.dev");
const INFOS: Kind = Kind("cluster", "Infos.cluster.talos.dev");
/// How many addresses of one machine are read.
pub(super) const MOST_ADDRESSES: usize = 64;

/// The members as discovery knows them, sorted by node name.
pub(super) async fn members(peer: &Peer) -> Result<Vec<Member>, Fault> {
    let listed = peer.list::<specs::Member>(MEMBERS).await?;
    let mut members: Vec<Member> = listed.into_iter().map(|(id, spec)| member(&id, &spec)).collect();
    members.sort_by(|a, b| a.node_name.cmp(&b.node_name));
    Ok(members)
}

/// A fingerprint of the cluster's id, and its name.
pub(super) async fn info(peer: &Peer) -> Result<(Option<String>, Option<String>), Fault> {
    let info = peer.get::<specs::Info>(INFOS, "current").await?.unwrap_or_default();
    Ok((fingerprint(&info.cluster_id), some(&info.cluster_name)))
}

/// The first half of the SHA-256 in hexadecimal digits: the id itself is told to nobody, as it stands among the cluster's secrets in a
/// state.
fn fingerprint(id: &str) -> Option<String> {
    let digest = Sha256::digest(id);
    let half = digest.first_chunk().filter(|_| !id.is_empty()).map(|half| u128::from_be_bytes(*half))?;
    Some(format!("{half:032x}"))
}

fn member(id: &str, spec: &specs::Member) -> Member {
    use specs::member::MachineType;
    let kind = match spec.machine_type() {
        MachineType::Unknown => MachineKind::Unknown,
        MachineType::Init | MachineType::ControlPlane => MachineKind::ControlPlane,
        MachineType::Worker => MachineKind::Worker,
    };
    let addresses = spec.addresses.iter().take(MOST_ADDRESSES).filter_map(|address| address_of(&address.ip));
    Member {
        node_name: clean(id),
        node_id: clean(&spec.node_id),
        addresses: addresses.collect(),
        hostname: clean(&spec.hostname),
        kind,
        operating_system: clean(&spec.operating_system),
    }
}

/// An address of 4 or 16 bytes.
pub(super) fn address_of(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
