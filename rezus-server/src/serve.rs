//! The listeners, from bind to graceful end.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::compose::{self, Composed, Plane};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::peer::Peer;

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
    plane: Plane,
    url: String,
    stop: watch::Sender<bool>,
    listeners: JoinSet<io::Result<()>>,
    grace: Duration,
    terminate: Signal,
    interrupt: Signal,
    #[expect(dead_code, reason = "held while the server runs")]
    lock: crate::data_dir::DataDirLock,
}

impl Running {
    /// Binds all listeners over a data directory, which is made where there is none.
    ///
    /// # Errors
    ///
    /// [`ServeError`].
    pub async fn start(config: &Config) -> Result<Self, ServeError> {
        // Before anybody can know that the server is there: a signal would end the process on the spot otherwise.
        let terminate = signal(SignalKind::terminate()).map_err(ServeError::Signal)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signal)?;
        let data_dir = DataDir::new(&config.server.data_dir);
        data_dir.create()?;
        let Composed { plane, lock } = compose::compose(config, &data_dir)?;
        let address = config.server.plain;
        let bind = |source| ServeError::Bind { address, source };
        let plain = TcpListener::bind(address).await.map_err(bind)?;
        let url = format!("http://{}", plain.local_addr().map_err(bind)?);
        let socket = bind_socket(&data_dir.socket())
            .map_err(|source| ServeError::Socket { path: data_dir.socket().display().to_string(), source })?;
        // Set once: nobody else has this plane yet.
        drop(plane.listeners.set(vec![url.clone()]));

        let (stop, stopped) = watch::channel(false);
        let mut listeners = JoinSet::new();
        let router = compose::router(&plane);
        let plain_router = router.clone().into_make_service_with_connect_info::<Peer>();
        let until = stopping(stopped.clone());
        listeners.spawn(async move { axum::serve(plain, plain_router).with_graceful_shutdown(until).await });
        let until = stopping(stopped.clone());
        let socket_router = router.into_make_service_with_connect_info::<Peer>();
        listeners
            .spawn(async move { axum::serve(socket, socket_router).with_graceful_shutdown(until).await });
        let sweep = plane.sweep.clone().run(config.retention.sweep.0);
        let until = stopping(stopped);
        listeners.spawn(async move {
            tokio::select! {
                () = sweep => {}
                () = until => {}
            }
            Ok(())
        });
        Ok(Self {
            plane,
            url,
            stop,
            listeners,
            grace: config.server.shutdown_grace.0,
            terminate,
            interrupt,
            lock,
        })
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
    pub async fn until_signal(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
        self.end().await;
    }

    /// Ends the server: no new connections, requests under way get the grace.
    pub async fn end(mut self) {
        tracing::info!("stopping: requests under way may finish");
        self.stop.send_replace(true);
        let all = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(self.grace, all).await.is_err() {
            tracing::warn!(
                grace_ms = u64::try_from(self.grace.as_millis()).unwrap_or(u64::MAX),
                "requests were cut off"
            );
            self.listeners.shutdown().await;
        }
        drop(self.plane);
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

/// Binds the socket, closed to all others. The caller holds the data directory: whatever is there is a left-over.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Returns a router that can be called without a listener, as whoever may open the data directory.
pub fn in_process(plane: &Plane) -> Router {
    compose::router(plane).layer(axum::Extension(axum::extract::ConnectInfo(Peer::Socket)))
}
