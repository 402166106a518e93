//! What the etcd of one control plane says: of itself, of the members, and of alarms.

use rezus_core::observed::facts::{EtcdAlarm, EtcdMember, EtcdStatus};

use super::fault::Fault;
use super::peer::{ETCD, Kind, Peer};
use super::proto::machine::etcd_member_alarm::AlarmType;
use super::proto::machine::{EtcdMember as Listed, EtcdMemberListRequest};
use super::proto::specs;
use crate::text::clean;

const LOCAL: Kind = Kind("etcd", "EtcdMembers.etcd.talos.dev");
/// How many members, URLs of one, errors and alarms are read.
const MOST: usize = 64;

/// What the member says of itself: it needs no quorum.
pub(super) async fn status(peer: &Peer) -> Result<Option<EtcdStatus>, Fault> {
    let mut client = peer.machines();
    let send = |request| async move { client.etcd_status(request).await };
    let answer = peer.call("etcd status", ETCD, (), send).await?;
    let Some(status) = answer.messages.into_iter().find_map(|message| message.member_status) else {
        return Ok(None);
    };
    Ok(Some(EtcdStatus {
        member_id: status.member_id,
        leader: status.leader,
        raft_term: status.raft_term,
        raft_index: status.raft_index,
        raft_applied_index: status.raft_applied_index,
        db_size: u64::try_from(status.db_size).unwrap_or(0),
        db_size_in_use: u64::try_from(status.db_size_in_use).unwrap_or(0),
        is_learner: status.is_learner,
        errors: status.errors.iter().take(MOST).map(|error| clean(error)).collect(),
    }))
}

/// Which member the machine is, once it has joined.
pub(super) async fn local(peer: &Peer) -> Result<Option<u64>, Fault> {
    let member = peer.get::<specs::EtcdMember>(LOCAL, "local").await?;
    Ok(member.and_then(|member| u64::from_str_radix(&member.member_id, 16).ok()))
}

/// The members, sorted by id: an answer proves a quorum.
pub(super) async fn members(peer: &Peer) -> Result<Vec<EtcdMember>, Fault> {
    let mut client = peer.machines();
    let send = |request| async move { client.etcd_member_list(request).await };
    let request = EtcdMemberListRequest { query_local: true };
    let answer = peer.call("etcd members", ETCD, request, send).await?;
    let listed = answer.messages.into_iter().flat_map(|message| message.members).take(MOST);
    let mut members: Vec<EtcdMember> = listed.map(|listed| member(&listed)).collect();
    members.sort_by_key(|member| member.id);
    Ok(members)
}

/// The alarms that are raised. To ask writes to etcd's log, so it is done where there are any.
pub(super) async fn alarms(peer: &Peer) -> Result<Vec<EtcdAlarm>, Fault> {
    let mut client = peer.machines();
    let send = |request| async move { client.etcd_alarm_list(request).await };
    let answer = peer.call("etcd alarms", ETCD, (), send).await?;
    let listed = answer.messages.into_iter().flat_map(|message| message.member_alarms).take(MOST);
    let raised = listed.filter_map(|alarm| {
        let name = match alarm.alarm() {
            AlarmType::None => return None,
            AlarmType::Nospace => "NOSPACE",
            AlarmType::Corrupt => "CORRUPT",
        };
        Some(EtcdAlarm { member_id: alarm.member_id, alarm: name.to_owned() })
    });
    Ok(raised.collect())
}

fn member(listed: &Listed) -> EtcdMember {
    EtcdMember {
        id: listed.id,
        hostname: clean(&listed.hostname),
        peer_urls: listed.peer_urls.iter().take(MOST).map(|url| clean(url)).collect(),
        is_learner: listed.is_learner,
    }
}
