//! The Talos API of a whole fake cluster: a real server of gRPC over mutual TLS for each machine.

mod model;
mod proto;
mod resources;
mod service;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rcgen::SanType;
use rezus_core::base::{Clock as _, TenantName, Timestamp};
use rezus_core::observed::{Credential, Destinations, Target};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tonic::service::Routes;
use zeroize::Zeroizing;

use super::{Authority, Validity};
use crate::clock::ManualClock;
use proto::cosi::state_server::StateServer;
use proto::machine::machine_service_server::MachineServiceServer;
use proto::time::time_service_server::TimeServiceServer;
use service::Connection;

pub use model::{Cluster, Door, Etcd, Machine};

/// A call that a machine was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which machine the client was connected to, counted from 0.
    pub index: usize,
    /// Whom the call was for, where it said so.
    pub node: Option<String>,
    /// The call (`Version`), or the type of the resource.
    pub method: String,
    /// The roles of the certificate that the client showed.
    pub roles: Vec<String>,
}

/// What all servers of a cluster share.
struct Shared {
    /// Shared by all who answer: thousands of machines are not copied for each call.
    cluster: Mutex<Arc<Cluster>>,
    calls: Mutex<Vec<Call>>,
    authority: Authority,
    clock: ManualClock,
    /// Tells the servers that a door has changed.
    doors: watch::Sender<()>,
    /// How many connections are open.
    open: watch::Sender<usize>,
}

impl Shared {
    fn door(&self, index: usize) -> Door {
        self.cluster().machines.get(index).map_or(Door::Closed, |machine| machine.door)
    }

    fn cluster(&self) -> Arc<Cluster> {
        Arc::clone(&self.cluster.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn log(&self, call: Call) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn credential_of(&self, role: &str, lifetime: Duration) -> Credential {
        let millis = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
        let until = Timestamp::from_millis(self.now().as_millis().saturating_add(millis));
        self.relabelled(role, Validity { from: Validity::ALWAYS.from, until })
    }

    /// Talos names keys by their kind.
    fn relabelled(&self, role: &str, validity: Validity) -> Credential {
        let mut credential = self.authority.credential(role, "", validity);
        let key = String::from_utf8_lossy(&credential.key).replace("PRIVATE KEY", "ED25519 PRIVATE KEY");
        credential.key = Zeroizing::new(key.into_bytes());
        credential
    }
}

/// A fake cluster. Its servers end with it.
pub struct FakeTalos {
    shared: Arc<Shared>,
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
    servers: Vec<JoinHandle<()>>,
}

impl std::fmt::Debug for FakeTalos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeTalos").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Drop for FakeTalos {
    fn drop(&mut self) {
        for server in &self.servers {
            server.abort();
        }
    }
}

impl FakeTalos {
    /// Starts a server for each machine of a cluster, on its address and a free port.
    ///
    /// # Panics
    ///
    /// When an address cannot be listened on.
    pub async fn start(cluster: Cluster, clock: ManualClock) -> Self {
        let addresses: Vec<IpAddr> = cluster.machines.iter().map(|machine| machine.address).collect();
        let authority = Authority::of_ed25519("talos");
        let shared = Arc::new(Shared {
            cluster: Mutex::new(Arc::new(cluster)),
            calls: Mutex::default(),
            authority,
            clock,
            doors: watch::Sender::new(()),
            open: watch::Sender::new(0),
        });
        let mut ports = Vec::new();
        let mut servers = Vec::new();
        for (index, address) in addresses.iter().enumerate() {
            let listener = TcpListener::bind((*address, 0)).await.expect("loopback can be listened on");
            ports.push(listener.local_addr().expect("a port").port());
            servers.push(tokio::spawn(serve(listener, index, Arc::clone(&shared))));
        }
        Self { shared, addresses, ports, servers }
    }

    /// Changes the cluster.
    pub fn change(&self, change: impl FnOnce(&mut Cluster)) {
        change(Arc::make_mut(&mut self.shared.cluster.lock().unwrap_or_else(PoisonError::into_inner)));
    }

    /// Changes how one machine's server treats connections that come from now on.
    ///
    /// # Panics
    ///
    /// When there is no such machine.
    pub fn door(&self, index: usize, door: Door) {
        self.change(|cluster| cluster.machines[index].door = door);
        self.shared.doors.send_replace(());
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        *self.shared.open.borrow()
    }

    /// Returns when no connection is open.
    pub async fn no_connection(&self) {
        drop(self.shared.open.subscribe().wait_for(|open| *open == 0).await);
    }

    /// Where a machine answers.
    ///
    /// # Panics
    ///
    /// When there is no such machine.
    pub fn endpoint(&self, index: usize) -> String {
        format!("{}:{}", self.addresses[index], self.ports[index])
    }

    /// By what a machine is asked through others.
    ///
    /// # Panics
    ///
    /// When there is no such machine.
    pub fn address(&self, index: usize) -> String {
        self.addresses[index].to_string()
    }

    /// A credential of a role, as a state holds it: the key is labelled as Talos does.
    pub fn credential(&self, role: &str, validity: Validity) -> Credential {
        self.shared.relabelled(role, validity)
    }

    /// The cluster as a target whose endpoints are some of its machines, with an administrator's credential.
    ///
    /// # Panics
    ///
    /// When there is no such machine.
    pub fn target(&self, endpoints: &[usize]) -> Target {
        Target {
            tenant: TenantName::parse("acme").expect("a name"),
            endpoints: endpoints.iter().map(|index| self.endpoint(*index)).collect(),
            credential: Some(self.credential("os:admin", Validity::ALWAYS)),
            destinations: Destinations { allowed: self.addresses.iter().copied().collect() },
        }
    }

    /// All calls since the last time, in order.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn serve(listener: TcpListener, index: usize, shared: Arc<Shared>) {
    let Ok(address) = listener.local_addr() else { return };
    let mut doors = shared.doors.subscribe();
    let mut listener = Some(listener);
    loop {
        if shared.door(index) == Door::Closed {
            listener = None;
            if doors.changed().await.is_err() {
                return;
            }
            continue;
        }
        if listener.is_none() {
            listener = TcpListener::bind(address).await.ok();
        }
        let Some(open) = &listener else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::select! {
            accepted = open.accept() => {
                if let Ok((stream, _)) = accepted {
                    let shared = Arc::clone(&shared);
                    tokio::spawn(async move {
                        shared.open.send_modify(|open| *open += 1);
                        connection(stream, index, &shared).await;
                        shared.open.send_modify(|open| *open -= 1);
                    });
                }
            }
            _ = doors.changed() => {}
        }
    }
}

/// Waits until the other side goes.
async fn silent(mut stream: impl AsyncRead + Unpin) {
    while stream.read(&mut [0; 1_024]).await.is_ok_and(|read| read > 0) {}
}

/// What a server shows by its door.
fn config(authority: &Authority, door: Door, address: IpAddr) -> Arc<ServerConfig> {
    let names = [SanType::IpAddress(address)];
    let other = [SanType::IpAddress(IpAddr::from([192, 0, 2, 1]))];
    let (name, names, validity) = match door {
        Door::Expired => ("apid", &names, Validity::PAST),
        Door::NotYetValid => ("apid", &names, Validity::FUTURE),
        Door::WrongName => ("apid", &other, Validity::ALWAYS),
        Door::Maintenance => ("maintenance-service.talos.dev", &names, Validity::ALWAYS),
        _ => ("apid", &names, Validity::ALWAYS),
    };
    let another = match door {
        Door::OtherAuthority | Door::KnowsNobody => Some(Authority::of_ed25519("talos")),
        Door::UnknownIssuer => Some(Authority::of_ed25519("somebody")),
        Door::Maintenance => Some(Authority::of_ed25519("")),
        _ => None,
    };
    let shows = another.as_ref().filter(|_| door != Door::KnowsNobody).unwrap_or(authority);
    let shown = shows.server(name, names, validity);
    let knows = another.as_ref().unwrap_or(authority);
    knows.server_config(&shown, &["h2"])
}

async fn connection(mut stream: TcpStream, index: usize, shared: &Arc<Shared>) {
    let door = shared.door(index);
    match door {
        Door::Silent => return silent(stream).await,
        Door::Closed | Door::HangsUp => return,
        Door::Html => {
            let _read = stream.read(&mut [0; 1_024]).await;
            let _sent = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n<html></html>").await;
            return;
        }
        _ => {}
    }
    let Ok(address) = stream.local_addr() else { return };
    let config = config(&shared.authority, door, address.ip());
    let Ok(stream) = TlsAcceptor::from(config).accept(stream).await else { return };
    if door == Door::SilentHttp {
        return silent(stream).await;
    }
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let roles = shown.and_then(|shown| x509_parser::parse_x509_certificate(shown).ok()).map(|(_, shown)| {
        let organizations = shown.subject().iter_organization();
        organizations.filter_map(|role| role.as_str().ok()).map(str::to_owned).collect()
    });
    let service = Connection { shared: Arc::clone(shared), index, roles: roles.unwrap_or_default() };
    let routes = Routes::new(MachineServiceServer::new(service.clone()))
        .add_service(TimeServiceServer::new(service.clone()))
        .add_service(StateServer::new(service))
        .prepare();
    let service = TowerToHyperService::new(routes);
    let builder = http2::Builder::new(TokioExecutor::new());
    let _ended = builder.serve_connection(TokioIo::new(stream), service).await;
}
