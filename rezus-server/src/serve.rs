//! The listeners, from bind to graceful end.

mod connections;
mod socket;

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::compose::{self, Composed, Plane};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::peer::Peer;

pub use socket::SocketPath;

/// Connections to the socket at a time: of this server's admins, who find room however busy the plain listener is.
const SOCKET_CONNECTIONS: usize = 64;

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could not be put together.
    #[error(transparent)]
    Start(#[from] compose::StartError),
    /// The data directory could not be made.
    #[error(transparent)]
    DataDir(#[from] crate::data_dir::DataDirError),
    /// An address could not be bound.
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
    serving: Serving,
    signals: Signals,
    #[expect(dead_code, reason = "held while the server runs")]
    lock: crate::data_dir::DataDirLock,
}

/// What is under way.
struct Serving {
    plane: Plane,
    stop: watch::Sender<bool>,
    listeners: JoinSet<io::Result<()>>,
    grace: Duration,
}

/// What tells the process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Running {
    /// Binds all listeners over a data directory, which is made where there is none.
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
        let address = config.server.plain;
        let bind = |source| ServeError::Bind { address, source };
        let plain = TcpListener::bind(address).await.map_err(bind)?;
        let url = format!("http://{}", plain.local_addr().map_err(bind)?);
        let socket = socket::bind(&data_dir.socket())
            .map_err(|source| ServeError::Socket { path: data_dir.socket().display().to_string(), source })?;
        // Set once: nobody else has this plane yet.
        drop(plane.listeners.set(vec![url.clone()]));

        let (stop, stopped) = watch::channel(false);
        let mut listeners = JoinSet::new();
        let router = compose::router(&plane);
        listeners.spawn(connections::serve(
            plain,
            router.clone(),
            config.server.max_connections,
            |address| Peer::Address(*address),
            stopped.clone(),
        ));
        let by_socket = |_: &tokio::net::unix::SocketAddr| Peer::Socket;
        listeners.spawn(connections::serve(socket, router, SOCKET_CONNECTIONS, by_socket, stopped.clone()));
        let sweep = plane.sweep.clone().run(config.retention.sweep.0);
        listeners.spawn(async move {
            tokio::select! {
                () = sweep => {}
                () = stopping(stopped) => {}
            }
            Ok(())
        });
        if let Some(dir) = &config.projection.mappings {
            let reload = crate::mapping_files::reload(
                dir.clone(),
                plane.projector.clone(),
                config.projection.reload.0,
            );
            let stopped = stop.subscribe();
            listeners.spawn(async move {
                tokio::select! {
                    () = reload => {}
                    () = stopping(stopped) => {}
                }
                Ok(())
            });
        }
        let serving = Serving { plane, stop, listeners, grace: config.server.shutdown_grace.0 };
        Ok(Self { url, serving, signals, lock })
    }

    /// The plain listener's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Says on standard output where the server listens, and that it is ready.
    ///
    /// # Errors
    ///
    /// [`ServeError::Stdout`].
    pub fn announce(&self) -> Result<(), ServeError> {
        let mut out = io::stdout().lock();
        writeln!(out, "listening on {}\nready", self.url)
            .and_then(|()| out.flush())
            .map_err(ServeError::Stdout)
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

impl Serving {
    async fn end(&mut self) {
        tracing::info!("stopping: requests under way may finish");
        self.stop.send_replace(true);
        let all = async {
            while self.listeners.join_next().await.is_some() {}
            // What was begun for clients that have gone since.
            self.plane.intake.finished().await;
        };
        if tokio::time::timeout(self.grace, all).await.is_err() {
            tracing::warn!(
                grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX),
                "requests were cut off"
            );
            self.listeners.shutdown().await;
        }
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

async fn stopping(mut stopped: watch::Receiver<bool>) {
    // An error means that the server is gone altogether.
    drop(stopped.wait_for(|stopped| *stopped).await);
}

/// Returns a router that can be called without a listener, as whoever may open the data directory.
pub fn in_process(plane: &Plane) -> Router {
    compose::router(plane).layer(axum::Extension(axum::extract::ConnectInfo(Peer::Socket)))
}
