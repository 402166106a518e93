//! Who is at the other end of a connection.

use std::net::SocketAddr;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use rezus_core::declared::backend::Caller;
use tokio::net::{TcpListener, UnixListener};

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// An address.
    Address(SocketAddr),
    /// A process that may open the data directory's socket: an admin.
    Socket,
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self::Address(*stream.remote_addr())
    }
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(_: IncomingStream<'_, UnixListener>) -> Self {
        Self::Socket
    }
}

impl Peer {
    /// Returns what the peer may do. There are no identities yet: whoever is on this machine may do everything.
    pub fn caller(self, create_on_write: bool) -> Caller {
        match self {
            Self::Address(address) => {
                let is_local = address.ip().is_loopback();
                Caller {
                    name: address.ip().to_string(),
                    may_break_locks: is_local,
                    may_create_tenants: is_local && create_on_write,
                }
            }
            Self::Socket => Caller {
                name: "admin".to_owned(),
                may_break_locks: true,
                may_create_tenants: create_on_write,
            },
        }
    }
}
