//! What happens between an accepted connection and its first request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::crowds::{Crowds, Seat};
use crate::peer::Peer;
use crate::tls::{self, Material};

/// A connection that requests can come on.
#[derive(Debug)]
pub(super) struct Opened<S> {
    pub(super) stream: S,
    pub(super) peer: Peer,
    pub(super) protocol: Protocol,
    /// Its place among those from the same address.
    pub(super) seat: Option<Seat>,
}

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// The plain listener.
pub(super) async fn plain(stream: TcpStream, address: SocketAddr) -> io::Result<Opened<TcpStream>> {
    stream.set_nodelay(true)?;
    Ok(Opened { stream, peer: Peer::Address(address), protocol: Protocol::Http1, seat: None })
}

/// The socket in the data directory.
pub(super) async fn socket(
    stream: UnixStream,
    _: tokio::net::unix::SocketAddr,
) -> io::Result<Opened<UnixStream>> {
    Ok(Opened { stream, peer: Peer::Socket, protocol: Protocol::Http1, seat: None })
}

/// The TLS listener.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    pub(super) material: Arc<Material>,
    /// How long a handshake may take.
    pub(super) handshake: Duration,
    pub(super) crowds: Crowds,
}

impl Tls {
    pub(super) async fn open(
        self,
        stream: TcpStream,
        address: SocketAddr,
    ) -> io::Result<Opened<TlsStream<TcpStream>>> {
        let seat = self.crowds.seat(address.ip())?;
        // Events are small and must not wait for each other.
        stream.set_nodelay(true)?;
        let acceptor = TlsAcceptor::from(self.material.server_config());
        let stream = tokio::time::timeout(self.handshake, acceptor.accept(stream)).await??;
        let (_, session) = stream.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first).and_then(tls::holder);
        let protocol = match session.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            // A client that names no protocol speaks the one that was there before there were several.
            _ => Protocol::Http1,
        };
        let peer = Peer::Tls { address, certificate: certificate.map(Arc::new) };
        Ok(Opened { stream, peer, protocol, seat })
    }
}
