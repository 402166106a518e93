//! A Kubernetes API server with as much of it as a scraper reads.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rezus_core::base::{Clock, TenantName, Timestamp};
use rezus_core::observed::{Credential, Destinations, Target};
use serde_json::Value;
use tokio::sync::watch;

use super::{Authority, PeerFault, Validity};

mod answer;
mod listen;
mod objects;
mod world;

pub use objects::{node, pod};
use world::World;

/// A Kubernetes API server on `127.0.0.1`. It stops when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct FakeKubernetes {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.accepting.abort();
        self.shared.cut.send_modify(|count| *count += 1);
    }
}

#[derive(Debug)]
struct Shared {
    address: SocketAddr,
    authority: Authority,
    /// What is shown where nothing is wrong.
    tls: Arc<rustls::ServerConfig>,
    clock: Arc<dyn Clock>,
    world: Mutex<World>,
    /// Counts the changes of the world, for those who watch.
    moved: watch::Sender<u64>,
    behaviour: Mutex<Behaviour>,
    /// Counts how often all connections were cut.
    cut: watch::Sender<u64>,
    /// Whether anybody listens.
    listening: watch::Sender<bool>,
    /// Counts the connections that are open.
    open: watch::Sender<usize>,
    /// How much of endless answers was taken, in bytes.
    taken: AtomicU64,
    /// How often each path was asked for.
    asked: Mutex<BTreeMap<String, usize>>,
    /// How long a watcher hears nothing until it is told how far the server is.
    bookmarks: Mutex<Duration>,
}

/// A real server does so about once a minute: tests need not wait for that.
const BOOKMARKS: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, Default)]
struct Behaviour {
    fault: Option<PeerFault>,
    forbidden: BTreeSet<String>,
    hanging: BTreeSet<String>,
    no_metrics: bool,
    watch_gone: bool,
    failed_checks: BTreeSet<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeKubernetes {
    /// Starts one, whose clock is the one given.
    ///
    /// # Panics
    ///
    /// When nothing can listen on loopback.
    pub async fn start(clock: Arc<dyn Clock>) -> Self {
        let listener = listen::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.expect("a port");
        let authority = Authority::new("kubernetes");
        let tls = authority.server_config(&authority.loopback_server(Validity::ALWAYS), &["http/1.1"]);
        let shared = Arc::new(Shared {
            address: listener.local_addr().expect("an address"),
            authority,
            tls,
            clock,
            world: Mutex::new(World::default()),
            moved: watch::Sender::new(0),
            behaviour: Mutex::new(Behaviour::default()),
            cut: watch::Sender::new(0),
            listening: watch::Sender::new(true),
            open: watch::Sender::new(0),
            taken: AtomicU64::new(0),
            asked: Mutex::new(BTreeMap::new()),
            bookmarks: Mutex::new(BOOKMARKS),
        });
        let accepting = tokio::spawn(listen::accept(Arc::clone(&shared), listener));
        Self { inner: Arc::new(Inner { shared, accepting }) }
    }

    fn shared(&self) -> &Shared {
        &self.inner.shared
    }

    /// Returns its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.shared().address)
    }

    /// Returns its authority.
    pub fn authority(&self) -> &Authority {
        &self.shared().authority
    }

    /// Returns a credential of the group that may do everything.
    pub fn credential(&self) -> Credential {
        self.authority().credential("system:masters", "admin", Validity::ALWAYS)
    }

    /// Returns what a scraper is to read: this server, with a good credential, loopback allowed.
    ///
    /// # Panics
    ///
    /// When `tenant` is no name.
    pub fn target(&self, tenant: &str) -> Target {
        Target {
            tenant: TenantName::parse(tenant).expect("a name"),
            endpoints: vec![self.url()],
            credential: Some(self.credential()),
            destinations: Destinations { allowed: BTreeSet::from([IpAddr::V4(Ipv4Addr::LOCALHOST)]) },
        }
    }

    /// Adds an object or puts another one in its place; [`node`] and [`pod`] make some.
    ///
    /// # Panics
    ///
    /// When it is neither a Node nor a Pod with a name.
    pub fn put(&self, object: Value) {
        lock(&self.shared().world).put(object);
        self.moved();
    }

    /// Adds nodes `node-0000` ... and as many pods, spread over them, with fresh leases.
    pub fn fill(&self, nodes: usize, pods: usize) {
        let now = self.shared().clock.now();
        let mut world = lock(&self.shared().world);
        for index in 0..nodes {
            let name = format!("node-{index:04}");
            world.put(node(&name));
            world.renew(&name, now);
        }
        for index in 0..pods {
            let on = format!("node-{:04}", index % nodes.max(1));
            world.put(pod(&format!("space-{:02}", index % 20), &format!("pod-{index:05}"), &on));
        }
        drop(world);
        self.moved();
    }

    /// Changes an object that is there: `nodes` and its name, or `pods` and `namespace/name`.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub fn change(&self, resource: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut world = lock(&self.shared().world);
        let mut object = world.get(resource, name).expect("an object that is there");
        change(&mut object);
        world.put(object);
        drop(world);
        self.moved();
    }

    /// Sets the status of a node's condition `Ready`: `True`, `False` or `Unknown`.
    ///
    /// # Panics
    ///
    /// When there is no such node.
    pub fn set_ready(&self, name: &str, status: &str) {
        self.change("nodes", name, |node| objects::set_ready(node, status));
    }

    /// Removes an object: `nodes` and its name, or `pods` and `namespace/name`.
    pub fn remove(&self, resource: &str, name: &str) {
        lock(&self.shared().world).remove(resource, name);
        self.moved();
    }

    /// Sets when a node renewed its lease.
    pub fn renew(&self, name: &str, at: Timestamp) {
        lock(&self.shared().world).renew(name, at);
    }

    /// Removes a node's lease.
    pub fn remove_lease(&self, name: &str) {
        lock(&self.shared().world).leases.remove(name);
    }

    /// Lets lists tell an older version from now on, as one from an old copy does; `None` for their own again.
    pub fn tell_version(&self, version: Option<u64>) {
        lock(&self.shared().world).told = version;
    }

    /// Tells watchers how far it is after so long without a change, from the next time on. Half a second if this is never
    /// called, a minute on real servers.
    pub fn tell_bookmarks_after(&self, silence: Duration) {
        *lock(&self.shared().bookmarks) = silence;
    }

    /// Is another cluster from now on: another UID of `kube-system`.
    pub fn set_cluster_uid(&self, uid: &str) {
        uid.clone_into(&mut lock(&self.shared().world).uid);
    }

    /// Forgets all changes until now: who watches from before is told 410.
    pub fn compact(&self) {
        lock(&self.shared().world).compact();
        self.cut();
    }

    /// Misbehaves from now on, or no longer. All connections are cut; whether there is a listener, [`Self::settled`] waits
    /// for.
    pub fn set_fault(&self, fault: Option<PeerFault>) {
        lock(&self.shared().behaviour).fault = fault;
        self.cut();
    }

    /// Returns once the fault that was set is how the server behaves.
    pub async fn settled(&self) {
        let listens = lock(&self.shared().behaviour).fault != Some(PeerFault::NotAccepting);
        let mut listening = self.shared().listening.subscribe();
        // The sender lives as long as this handle.
        drop(listening.wait_for(|listening| *listening == listens).await);
    }

    /// Refuses a resource (403): `nodes`, `pods`, `leases`, `namespaces`, `metrics`, `summary`, `version` or
    /// `readyz`.
    pub fn forbid(&self, resource: &str) {
        lock(&self.shared().behaviour).forbidden.insert(resource.to_owned());
        self.cut();
    }

    /// Answers nothing for a resource.
    pub fn hang(&self, resource: &str) {
        lock(&self.shared().behaviour).hanging.insert(resource.to_owned());
        self.cut();
    }

    /// Has no metrics server: 404.
    pub fn uninstall_metrics(&self) {
        lock(&self.shared().behaviour).no_metrics = true;
    }

    /// Tells everybody who watches that it no longer knows (410), or no longer.
    pub fn set_watch_gone(&self, gone: bool) {
        lock(&self.shared().behaviour).watch_gone = gone;
        self.cut();
    }

    /// Fails a check of `/readyz`.
    pub fn fail_check(&self, name: &str) {
        lock(&self.shared().behaviour).failed_checks.insert(name.to_owned());
    }

    /// Refuses nothing and hangs nowhere any more.
    pub fn heal(&self) {
        *lock(&self.shared().behaviour) = Behaviour::default();
        self.cut();
    }

    /// Closes all connections.
    pub fn cut(&self) {
        self.shared().cut.send_modify(|count| *count += 1);
    }

    /// Returns how many connections are open.
    pub fn connections(&self) -> usize {
        *self.shared().open.borrow()
    }

    /// Returns once there are no more than so many connections.
    pub async fn no_more_connections_than(&self, many: usize) {
        let mut open = self.shared().open.subscribe();
        // The sender lives as long as this handle.
        drop(open.wait_for(|open| *open <= many).await);
    }

    /// Returns how much of endless answers was taken, in bytes; what is under way counts.
    pub fn taken(&self) -> u64 {
        self.shared().taken.load(Ordering::SeqCst)
    }

    /// Returns how often each path was asked for; watches have `?watch` behind it, requests that are no `GET` their method
    /// before it.
    pub fn asked(&self) -> BTreeMap<String, usize> {
        lock(&self.shared().asked).clone()
    }

    fn moved(&self) {
        self.shared().moved.send_modify(|count| *count += 1);
    }
}
