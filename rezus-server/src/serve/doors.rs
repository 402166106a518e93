//! What happens between an accepted connection and its first request.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::crowds::{Crowds, Seat};
use crate::peer::Peer;
use crate::tls::{self, Material};

/// After how many seconds of silence a client's system is asked whether it is still there, and asked again.
const SILENCE: u32 = 30;

/// For how many milliseconds what is sent may be left unread.
const UNREAD: u32 = 90_000;

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
        notice_silence(&stream)?;
        let acceptor = TlsAcceptor::from(self.material.server_config());
        let handshake = async move {
            let stream = refuse_plain(stream).await?;
            acceptor.accept(stream).await
        };
        let stream = tokio::time::timeout(self.handshake, handshake).await??;
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

/// Finds out about clients that went away without a word: a watch that says nothing would be kept for them for ever.
fn notice_silence(stream: &TcpStream) -> nix::Result<()> {
    setsockopt(stream, sockopt::KeepAlive, &true)?;
    setsockopt(stream, sockopt::TcpKeepIdle, &SILENCE)?;
    setsockopt(stream, sockopt::TcpKeepInterval, &SILENCE)?;
    setsockopt(stream, sockopt::TcpKeepCount, &3)?;
    // Also about those that are there and read nothing (tcp(7), `TCP_USER_TIMEOUT`, in milliseconds).
    setsockopt(stream, sockopt::TcpUserTimeout, &UNREAD)
}

/// Tells clients that speak HTTP without TLS what is wrong, in words that they understand.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<TcpStream> {
    let mut first = [0];
    stream.peek(&mut first).await?;
    // A record of TLS does not begin with a letter (RFC 8446, section 5.1); a request does.
    if !first[0].is_ascii_alphabetic() {
        return Ok(stream);
    }
    let message = "this listener speaks TLS: use https://\n";
    let length = message.len();
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close";
    stream.write_all(format!("{head}\r\ncontent-length: {length}\r\n\r\n{message}").as_bytes()).await?;
    stream.shutdown().await?;
    // What is left unread when a connection is closed can take the answer with it.
    let mut rest = [0; 1_024];
    while stream.read(&mut rest).await? > 0 {}
    Err(io::Error::other("HTTP without TLS"))
}
