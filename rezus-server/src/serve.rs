//! The listeners, from bind to graceful end.

mod connections;
mod crowds;
mod doors;
mod draining;
mod held;
mod limits;
mod open_files;
mod paced;
mod requests;
mod socket;
#[cfg(test)]
mod tests;

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use crate::auth::kubeconfig::Kept;
use crate::compose::{self, Composed, Plane};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::error::Chain;
use crate::peer::Peer;
use crate::tls::{Material, TlsError};
use connections::Terms;
use crowds::Crowds;

pub use draining::Draining;
pub use limits::{Limits, asks_to_watch, bounded as limited};
pub use socket::SocketPath;

/// Connections to the socket at a time: of this server's admins, who find room however busy the plain listener is.
const SOCKET_CONNECTIONS: usize = 64;

/// How long what waits to be written may take at the end, however long runs took before.
const WRITES: Duration = Duration::from_secs(3);

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could not be put together.
    #[error(transparent)]
    Start(#[from] compose::StartError),
    /// The data directory could not be made.
    #[error(transparent)]
    DataDir(#[from] crate::data_dir::DataDirError),
    /// The TLS listener has no certificate.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address of the TLS listener could not be bound.
    #[error(
        "cannot listen on {address}: choose another with --tls, port 0 for a free one, or go without: --no-tls"
    )]
    BindTls {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The address of the plain listener could not be bound.
    #[error("cannot listen on {address}: choose another with --plain, port 0 for a free one")]
    Bind {
        /// Which one.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The socket in the data directory could not be made.
    #[error("cannot make the socket {path}")]
    Socket {
        /// Where.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Nobody could get in.
    #[error("the admin kubeconfig cannot be had")]
    Kubeconfig(#[from] crate::auth::kubeconfig::KubeconfigError),
    /// Standard output is gone, and with it whoever waits for the addresses.
    #[error("cannot say on standard output where the server listens")]
    Stdout(#[source] io::Error),
    /// A signal's handler could not be set.
    #[error("cannot wait for signals")]
    Signal(#[source] io::Error),
}

/// A server that listens.
pub struct Running {
    url: String,
    tls: Option<Tls>,
    serving: Serving,
    signals: Signals,
    #[expect(dead_code, reason = "held while the server runs")]
    lock: crate::data_dir::DataDirLock,
}

/// The TLS listener, as others see it.
#[derive(Clone, Debug)]
struct Tls {
    address: SocketAddr,
    material: Arc<Material>,
}

/// What is under way.
struct Serving {
    plane: Plane,
    listeners: JoinSet<io::Result<()>>,
    grace: Duration,
}

/// What is bound: clients wait in its queue until it is served.
struct Bound {
    tls: Option<(TcpListener, Tls)>,
    plain: TcpListener,
    socket: UnixListener,
}

/// What tells the process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Running {
    /// Binds all listeners over a data directory, which is made where there is none, and serves them.
    ///
    /// # Errors
    ///
    /// [`ServeError`].
    pub async fn start(config: &Config) -> Result<Self, ServeError> {
        // Before anybody can know that the server is there: a signal would end the process on the spot otherwise.
        let signals = Signals::new().map_err(ServeError::Signal)?;
        let data_dir = DataDir::new(&config.server.data_dir);
        data_dir.create()?;
        let Composed { plane, lock } = compose::compose(config, &data_dir)?;
        let Bound { tls: bound_tls, plain, socket } = Bound::all(config, &data_dir, &plane).await?;
        let url = format!("http://{}", plain.local_addr().map_err(|source| bind_error(config, source))?);
        let tls = bound_tls.as_ref().map(|(_, tls)| tls.clone());
        // Set once: nobody else has this plane yet. The plain one first: clients need no authority for it.
        drop(plane.listeners.set(std::iter::once(url.clone()).chain(tls.iter().map(Tls::url)).collect()));
        // All addresses are known here, and nobody was told them yet: what names them is written at this point.
        let kubeconfig = data_dir.kubeconfig();
        let (reached, ca) = match &tls {
            Some(tls) => (tls.url(), Some(tls.material.ca_pem())),
            None => (url.clone(), None),
        };
        let kept = crate::auth::kubeconfig::ensure_admin(&plane.auth, &kubeconfig, &reached, ca).await?;
        say_who_is_let_in(&plane, &kubeconfig, kept);

        if let Err(error) = plane.catalogue.all(|_| true).await {
            tracing::warn!(cause = %Chain(&error), "not all tenants can be read now: they are read when they are asked for");
        }
        // Before anybody can ask for them.
        plane.runs.take_over().await;
        let mut serving = Serving { plane, listeners: JoinSet::new(), grace: config.server.shutdown_grace.0 };
        serving.serve(config, bound_tls, plain, socket);
        Ok(Self { url, tls, serving, signals, lock })
    }

    /// The plain listener's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The TLS listener's URL, as clients on this machine reach it. None without such a listener.
    pub fn tls_url(&self) -> Option<String> {
        self.tls.as_ref().map(Tls::url)
    }

    /// The TLS listener's certificate. None without such a listener.
    pub fn material(&self) -> Option<&Material> {
        self.tls.as_ref().map(|tls| tls.material.as_ref())
    }

    /// Says on standard output where the server listens, and that it is ready.
    ///
    /// # Errors
    ///
    /// [`ServeError::Stdout`].
    pub fn announce(&self) -> Result<(), ServeError> {
        let mut out = io::stdout().lock();
        let mut say = || {
            if let Some(tls) = &self.tls {
                writeln!(out, "listening on https://{}", tls.address)?;
            }
            writeln!(out, "listening on {}\nready", self.url)?;
            out.flush()
        };
        say().map_err(ServeError::Stdout)
    }

    /// Serves until the process is told to end, then lets requests under way finish, for as long as the grace lasts.
    /// Told so again, it ends at once.
    ///
    /// The runtime must then be ended without waiting ([`shutdown_background`]): threads that may block can still be at
    /// work that was cut off.
    ///
    /// [`shutdown_background`]: tokio::runtime::Runtime::shutdown_background
    pub async fn until_signal(mut self) {
        self.signals.next().await;
        tokio::select! {
            () = self.serving.end() => {}
            () = self.signals.next() => tracing::warn!("told twice to end: requests were cut off"),
        }
    }

    /// Ends the server: no new connections, requests under way get the grace.
    pub async fn end(mut self) {
        self.serving.end().await;
    }
}

impl Bound {
    async fn all(config: &Config, data_dir: &DataDir, plane: &Plane) -> Result<Self, ServeError> {
        let tls = if config.server.no_tls { None } else { Some(Self::tls(config, data_dir, plane).await?) };
        let plain = TcpListener::bind(config.server.plain).await;
        let plain = plain.map_err(|source| bind_error(config, source))?;
        let socket = socket::bind(&data_dir.socket())
            .map_err(|source| ServeError::Socket { path: data_dir.socket().display().to_string(), source })?;
        Ok(Self { tls, plain, socket })
    }

    async fn tls(
        config: &Config,
        data_dir: &DataDir,
        plane: &Plane,
    ) -> Result<(TcpListener, Tls), ServeError> {
        let wanted = config.server.tls;
        let material = Material::open(&config.tls, &data_dir.tls(), wanted.ip(), plane.clock.now())?;
        let failed = |source| ServeError::BindTls { address: wanted, source };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok((listener, Tls { address, material: Arc::new(material) }))
    }
}

impl Tls {
    /// The address that stands for all of a machine's is no address to connect to.
    fn url(&self) -> String {
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        format!("https://{}", SocketAddr::new(ip, self.address.port()))
    }
}

fn bind_error(config: &Config, source: io::Error) -> ServeError {
    ServeError::Bind { address: config.server.plain, source }
}

impl Serving {
    fn serve(
        &mut self,
        config: &Config,
        tls: Option<(TcpListener, Tls)>,
        plain: TcpListener,
        socket: UnixListener,
    ) {
        let plane = &self.plane;
        let router = compose::router(plane);
        let terms = Terms {
            connections: open_files::connections(config.server.max_connections),
            streams: config.limits.streams.max(1),
            head: usize::try_from(config.limits.head.0.saturating_mul(2)).unwrap_or(usize::MAX),
            draining: plane.draining.clone(),
        };
        if let Some((listener, Tls { material, .. })) = tls {
            let door = doors::Tls {
                material: Arc::clone(&material),
                handshake: config.limits.handshake.0,
                crowds: Crowds::new(config.limits.connections_per_address),
            };
            let open = move |stream, address| door.clone().open(stream, address);
            self.listeners.spawn(connections::serve(listener, router.clone(), terms.clone(), open));
            let follow = material.follow(Arc::clone(&plane.clock), config.tls.reload.0);
            self.listeners.spawn(until(plane.draining.clone(), follow));
        }
        self.listeners.spawn(connections::serve(plain, router.clone(), terms.clone(), doors::plain));
        let for_admins = Terms { connections: SOCKET_CONNECTIONS, ..terms };
        self.listeners.spawn(connections::serve(socket, router, for_admins, doors::socket));
        self.listeners.spawn(until(plane.draining.clone(), plane.catalogue.clone().run()));
        self.listeners.spawn(until(plane.draining.clone(), plane.catalogue.clone().run_observed()));
        self.listeners.spawn(until(plane.draining.clone(), plane.collector.clone().run()));
        self.listeners
            .spawn(to_the_end(plane.samples.clone().write(plane.forwarder.clone(), plane.draining.clone())));
        self.listeners.spawn(until(plane.draining.clone(), crate::samples::forward(plane.forwarder.clone())));
        self.listeners.spawn(until(plane.draining.clone(), plane.upkeep.clone().run()));
        self.listeners.spawn(until(plane.draining.clone(), crate::memory::give_back()));
        self.listeners.spawn(until(plane.draining.clone(), plane.runs.clone().serve()));
        self.listeners.spawn(until(plane.draining.clone(), plane.runs.clone().keep_schedule()));
        for _ in 0..config.runs.pull_slots.max(1) {
            self.listeners.spawn(until(plane.draining.clone(), plane.pulls.clone().serve()));
        }
        let upkeep = plane.auth.clone().upkeep(config.retention.sweep.0);
        self.listeners.spawn(until(plane.draining.clone(), upkeep));
        let sweep = plane.sweep.clone().run(config.retention.sweep.0);
        self.listeners.spawn(until(plane.draining.clone(), sweep));
        if let Some(dir) = &config.projection.mappings {
            let (dir, every) = (dir.clone(), config.projection.reload.0);
            let reload = crate::mapping_files::reload(dir, plane.projector.clone(), every);
            self.listeners.spawn(until(plane.draining.clone(), reload));
        }
    }

    async fn end(&mut self) {
        // The state of runs is still taken in while they end.
        let began = tokio::time::Instant::now();
        self.plane.runs.close(self.grace).await;
        tracing::info!("stopping: requests under way may finish");
        self.plane.draining.begin();
        // What was sampled is written whatever runs and requests take.
        let grace = self.grace.saturating_sub(began.elapsed()).max(WRITES);
        let all = async {
            while self.listeners.join_next().await.is_some() {}
            // What was begun for clients that have gone since.
            self.plane.intake.finished().await;
        };
        if tokio::time::timeout(grace, all).await.is_err() {
            tracing::warn!(
                grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX),
                "requests were cut off"
            );
            self.listeners.shutdown().await;
        }
        self.plane.auth.trail().flush().await;
    }
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Works, and sees by itself that the server is about to end.
async fn to_the_end(work: impl Future<Output = ()>) -> io::Result<()> {
    work.await;
    Ok(())
}

/// Works until the server is about to end.
async fn until(draining: Draining, work: impl Future<Output = ()>) -> io::Result<()> {
    tokio::select! {
        () = work => {}
        () = draining.begun() => {}
    }
    Ok(())
}

/// Says how one gets in, or that everybody is in.
fn say_who_is_let_in(plane: &Plane, kubeconfig: &std::path::Path, kept: Kept) {
    if !plane.auth.is_enabled() {
        tracing::warn!(
            "NO AUTHENTICATION: whoever can reach a listener on this machine may read every state, with its secrets, and do everything. Start without --no-auth (auth.enabled = false) to change that"
        );
    }
    let path = kubeconfig.display();
    match kept {
        Kept::Made => tracing::info!("admin kubeconfig: {path} (made now, with a new admin token)"),
        Kept::Updated => tracing::info!("admin kubeconfig: {path}"),
        Kept::LeftAlone if kubeconfig.exists() => tracing::warn!(
            "admin kubeconfig: {path} holds no admin's token that works, and is left alone since there are others: remove it, or put one in that `rezus-server token create --user admin` makes"
        ),
        Kept::LeftAlone => {}
    }
}

/// Returns a router that can be called without a listener, as whoever may open the data directory.
pub fn in_process(plane: &Plane) -> Router {
    compose::router(plane).layer(axum::Extension(axum::extract::ConnectInfo(Peer::Socket)))
}
