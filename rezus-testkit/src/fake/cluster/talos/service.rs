//! The services that the machines of a fake cluster have, as one connection to one of them sees them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tonic::{Code, Request, Response, Status};

use super::model::{Cluster, Etcd, Machine};
use super::proto::cosi::state_server::State as CosiState;
use super::proto::cosi::{GetRequest, GetResponse, ListRequest, ListResponse};
use super::proto::machine as api;
use super::proto::machine::machine_service_server::MachineService;
use super::proto::time::time_service_server::TimeService;
use super::proto::time::{Time, TimeResponse};
use super::{Call, Shared, resources};

/// Who answers on a connection, and to whom.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) shared: Arc<Shared>,
    /// Which machine the client is connected to.
    pub(super) index: usize,
    /// What its certificate says it may do.
    pub(super) roles: Vec<String>,
}

impl Connection {
    /// Finds whom a call is for, and whether it is answered.
    async fn route<T>(&self, request: &Request<T>, method: &str) -> Result<(Arc<Cluster>, Machine), Status> {
        let header = request.metadata().get("node").and_then(|node| node.to_str().ok()).map(str::to_owned);
        let call = Call {
            index: self.index,
            node: header.clone(),
            method: method.to_owned(),
            roles: self.roles.clone(),
        };
        self.shared.log(call);
        let cluster = self.shared.cluster();
        let here = cluster.machines.get(self.index).cloned().ok_or_else(|| Status::unavailable("gone"))?;
        let machine = match header {
            Some(node) if node != here.address.to_string() => {
                if !here.is_control_plane {
                    return Err(Status::permission_denied("no request forwarding"));
                }
                let address = node.parse::<IpAddr>().ok();
                let found = cluster.machines.iter().find(|machine| Some(machine.address) == address);
                let found = found.filter(|machine| !machine.is_dead);
                found.cloned().ok_or_else(|| {
                    Status::unavailable("connection error: desc = \"transport: dial tcp: no route to host\"")
                })?
            }
            _ => here,
        };
        tokio::time::sleep(machine.delay).await;
        if let Some((code, text)) = cluster.refused.get(method) {
            return Err(Status::new(Code::from_i32(*code), text));
        }
        Ok((cluster, machine))
    }

    /// The same of a call that only control planes answer, and that needs etcd there.
    async fn route_to_etcd<T>(
        &self,
        request: &Request<T>,
        method: &str,
    ) -> Result<(Arc<Cluster>, Machine), Status> {
        let (cluster, machine) = self.route(request, method).await?;
        if !machine.is_control_plane {
            return Err(Status::unimplemented(format!("{method} is only available on control plane nodes")));
        }
        match machine.etcd {
            Etcd::Up { .. } => Ok((cluster, machine)),
            // The client inside of Talos waits until etcd is ready.
            Etcd::None | Etcd::Down { .. } => std::future::pending().await,
        }
    }
}

#[tonic::async_trait]
impl MachineService for Connection {
    async fn version(&self, request: Request<()>) -> Result<Response<api::VersionResponse>, Status> {
        let (cluster, _) = self.route(&request, "Version").await?;
        let tag =
            if cluster.bloated.contains("Version") { "v".repeat(5 << 20) } else { "v1.13.9".to_owned() };
        let version = api::Version { version: Some(api::VersionInfo { tag }) };
        Ok(Response::new(api::VersionResponse { messages: vec![version] }))
    }

    async fn service_list(&self, request: Request<()>) -> Result<Response<api::ServiceListResponse>, Status> {
        let (_, machine) = self.route(&request, "ServiceList").await?;
        let service = |(id, state, healthy): (String, String, Option<bool>)| {
            let health = api::ServiceHealth {
                unknown: healthy.is_none(),
                healthy: healthy.unwrap_or(false),
                last_message: "what the check said".to_owned(),
            };
            api::ServiceInfo { id, state, health: Some(health) }
        };
        let services = machine.services.into_iter().map(service).collect();
        Ok(Response::new(api::ServiceListResponse { messages: vec![api::ServiceList { services }] }))
    }

    async fn system_stat(&self, request: Request<()>) -> Result<Response<api::SystemStatResponse>, Status> {
        self.route(&request, "SystemStat").await?;
        let stat = api::SystemStat { boot_time: 1_796_000_000 };
        Ok(Response::new(api::SystemStatResponse { messages: vec![stat] }))
    }

    async fn memory(&self, request: Request<()>) -> Result<Response<api::MemoryResponse>, Status> {
        self.route(&request, "Memory").await?;
        let meminfo = Some(api::MemInfo { memtotal: 8_000_000, memavailable: 5_000_000 });
        Ok(Response::new(api::MemoryResponse { messages: vec![api::Memory { meminfo }] }))
    }

    async fn load_avg(&self, request: Request<()>) -> Result<Response<api::LoadAvgResponse>, Status> {
        self.route(&request, "LoadAvg").await?;
        let load = api::LoadAvg { load1: 0.5, load5: 0.25, load15: 0.125 };
        Ok(Response::new(api::LoadAvgResponse { messages: vec![load] }))
    }

    async fn mounts(&self, request: Request<()>) -> Result<Response<api::MountsResponse>, Status> {
        let (_, machine) = self.route(&request, "Mounts").await?;
        let mount = |(filesystem, mounted_on, size, available)| api::MountStat {
            filesystem,
            size,
            available,
            mounted_on,
        };
        let stats = machine.mounts.into_iter().map(mount).collect();
        Ok(Response::new(api::MountsResponse { messages: vec![api::Mounts { stats }] }))
    }

    async fn etcd_status(&self, request: Request<()>) -> Result<Response<api::EtcdStatusResponse>, Status> {
        let (cluster, machine) = self.route_to_etcd(&request, "EtcdStatus").await?;
        let mut errors: Vec<String> = Vec::new();
        for (id, alarm) in &cluster.alarms {
            let name = if *alarm == 1 { "NOSPACE" } else { "CORRUPT" };
            errors.push(format!("memberID:{id} alarm:{name}"));
        }
        if !cluster.has_quorum {
            errors.push("etcdserver: no leader".to_owned());
        }
        let status = api::EtcdMemberStatus {
            db_size: 20_000_000,
            db_size_in_use: 10_000_000,
            leader: cluster.leader(),
            raft_index: 1_000,
            raft_term: 7,
            raft_applied_index: 998,
            errors,
            is_learner: matches!(machine.etcd, Etcd::Up { is_learner: true, .. }),
            member_id: machine.etcd.id().unwrap_or(0),
        };
        let status = api::EtcdStatus { member_status: Some(status) };
        Ok(Response::new(api::EtcdStatusResponse { messages: vec![status] }))
    }

    async fn etcd_member_list(
        &self,
        request: Request<api::EtcdMemberListRequest>,
    ) -> Result<Response<api::EtcdMemberListResponse>, Status> {
        let (cluster, _) = self.route_to_etcd(&request, "EtcdMemberList").await?;
        if !cluster.has_quorum {
            return std::future::pending().await;
        }
        let members = cluster.machines.iter().filter_map(|machine| {
            Some(api::EtcdMember {
                id: machine.etcd.id()?,
                hostname: machine.name.clone(),
                peer_urls: vec![format!("https://{}:2380", machine.address)],
                is_learner: matches!(machine.etcd, Etcd::Up { is_learner: true, .. }),
            })
        });
        let members = api::EtcdMembers { members: members.collect() };
        Ok(Response::new(api::EtcdMemberListResponse { messages: vec![members] }))
    }

    async fn etcd_alarm_list(
        &self,
        request: Request<()>,
    ) -> Result<Response<api::EtcdAlarmListResponse>, Status> {
        let (cluster, _) = self.route_to_etcd(&request, "EtcdAlarmList").await?;
        if !cluster.has_quorum {
            return std::future::pending().await;
        }
        let alarm =
            |(member_id, alarm): &(u64, i32)| api::EtcdMemberAlarm { member_id: *member_id, alarm: *alarm };
        let member_alarms = cluster.alarms.iter().map(alarm).collect();
        Ok(Response::new(api::EtcdAlarmListResponse { messages: vec![api::EtcdAlarm { member_alarms }] }))
    }

    async fn generate_client_configuration(
        &self,
        request: Request<api::GenerateClientConfigurationRequest>,
    ) -> Result<Response<api::GenerateClientConfigurationResponse>, Status> {
        let (_, machine) = self.route(&request, "GenerateClientConfiguration").await?;
        if !machine.is_control_plane {
            return Err(Status::unimplemented("it is only available on control plane nodes"));
        }
        if !self.roles.iter().any(|role| role == "os:admin") {
            return Err(Status::permission_denied("not authorized"));
        }
        let request = request.into_inner();
        let role = request.roles.first().ok_or_else(|| Status::invalid_argument("no role"))?;
        let seconds = request.crt_ttl.map_or(0, |lifetime| lifetime.seconds);
        let lifetime = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let credential = self.shared.credential_of(role, lifetime);
        let made = api::GenerateClientConfiguration {
            ca: credential.ca.to_vec(),
            crt: credential.certificate.to_vec(),
            key: credential.key.to_vec(),
        };
        Ok(Response::new(api::GenerateClientConfigurationResponse { messages: vec![made] }))
    }
}

#[tonic::async_trait]
impl TimeService for Connection {
    async fn time(&self, request: Request<()>) -> Result<Response<TimeResponse>, Status> {
        let (_, machine) = self.route(&request, "Time").await?;
        let millis = self.shared.now().as_millis() + machine.ahead_ms;
        let nanos = i32::try_from(millis.rem_euclid(1_000) * 1_000_000).unwrap_or(0);
        let localtime = Some(prost_types::Timestamp { seconds: millis.div_euclid(1_000), nanos });
        Ok(Response::new(TimeResponse { messages: vec![Time { localtime }] }))
    }
}

#[tonic::async_trait]
impl CosiState for Connection {
    async fn get(&self, request: Request<GetRequest>) -> Result<Response<GetResponse>, Status> {
        let kind = request.get_ref().r#type.clone();
        let (cluster, machine) = self.route(&request, &kind).await?;
        let found = resources::get(&cluster, &machine, &kind, &request.get_ref().id);
        let resource = found.ok_or_else(|| Status::not_found("resource doesn't exist"))?;
        Ok(Response::new(GetResponse { resource: Some(resource) }))
    }

    type ListStream = stream::Iter<std::vec::IntoIter<Result<ListResponse, Status>>>;

    async fn list(&self, request: Request<ListRequest>) -> Result<Response<Self::ListStream>, Status> {
        let kind = request.get_ref().r#type.clone();
        let (cluster, _) = self.route(&request, &kind).await?;
        let members = resources::members(&cluster, &kind).into_iter();
        let messages: Vec<_> =
            members.map(|resource| Ok(ListResponse { resource: Some(resource) })).collect();
        Ok(Response::new(stream::iter(messages)))
    }
}
