//! Connections: who is let in, and what they are shown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::SanType;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::super::{Authority, PeerFault, Validity};
use super::{Shared, answer, lock};

/// Listens where somebody may have listened before.
pub(super) async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Accepts until it is ended.
pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener) {
    let address = shared.address;
    let mut listener = Some(listener);
    let mut cut = shared.cut.subscribe();
    loop {
        let fault = lock(&shared.behaviour).fault;
        if fault == Some(PeerFault::NotAccepting) {
            listener = None;
            // A connection that was not taken out of the queue is refused with the listener.
            drop(cut.changed().await);
            continue;
        }
        if listener.is_none() {
            listener = bind(address).await.ok();
        }
        let Some(open) = &listener else {
            tokio::task::yield_now().await;
            continue;
        };
        tokio::select! {
            accepted = open.accept() => {
                if let Ok((stream, _)) = accepted {
                    tokio::spawn(connection(Arc::clone(&shared), stream));
                }
            }
            _ = cut.changed() => {}
        }
    }
}

/// Counts a connection for as long as it is there.
struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    let mut cut = shared.cut.subscribe();
    cut.mark_unchanged();
    shared.open.send_modify(|open| *open += 1);
    let counted = Counted(Arc::clone(&shared));
    let fault = lock(&shared.behaviour).fault;
    tokio::select! {
        () = serve(&shared, stream, fault) => {}
        _ = cut.changed() => {}
    }
    drop(counted);
}

async fn serve(shared: &Arc<Shared>, stream: TcpStream, fault: Option<PeerFault>) {
    if fault == Some(PeerFault::SilentTls) {
        // Until the other side goes.
        while stream.readable().await.is_ok() {
            let mut taken = [0; 1024];
            if matches!(stream.try_read(&mut taken), Ok(0)) {
                return;
            }
        }
        return;
    }
    let Ok(stream) = TlsAcceptor::from(shown(shared, fault)).accept(stream).await else { return };
    let service = service_fn(|request| {
        let shared = Arc::clone(shared);
        async move { Ok::<_, io::Error>(answer::answer(&shared, &request, fault).await) }
    });
    // A client that goes is none of our troubles.
    drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// What the server shows of itself.
fn shown(shared: &Shared, fault: Option<PeerFault>) -> Arc<ServerConfig> {
    let authority = &shared.authority;
    let certificate = match fault {
        Some(PeerFault::SameNamedAuthority) => Authority::new("kubernetes").loopback_server(Validity::ALWAYS),
        Some(PeerFault::UnknownAuthority) => Authority::new("somebody").loopback_server(Validity::ALWAYS),
        Some(PeerFault::Expired) => authority.loopback_server(Validity::PAST),
        Some(PeerFault::NotYetValid) => authority.loopback_server(Validity::FUTURE),
        Some(PeerFault::WrongName) => {
            let name = SanType::DnsName("other.example".try_into().expect("a name"));
            authority.server("other", &[name], Validity::ALWAYS)
        }
        _ => return Arc::clone(&shared.tls),
    };
    authority.server_config(&certificate, &["http/1.1"])
}
