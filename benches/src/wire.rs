//! A lean client over TLS: one connection that is kept, whose answers are read and not looked at.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::Outcome;

/// How much the server may send on a stream of HTTP/2, and on all of a connection, before it was read: as client-go has
/// it (`golang.org/x/net/http2`, `transportDefaultStreamFlow`, `transportDefaultConnFlow`).
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// What is spoken on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, with windows as wide as those of client-go.
    Http2,
}

impl Protocol {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// Where a server listens with TLS, whom it is known by, and what opens it.
#[derive(Clone)]
pub struct Dial {
    address: SocketAddr,
    roots: Arc<RootCertStore>,
    authorization: Option<HeaderValue>,
}

/// One connection.
pub struct Wire {
    sender: Sender,
    address: SocketAddr,
    authorization: Option<HeaderValue>,
}

enum Sender {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
}

/// What is asked for, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Path and query.
    pub target: String,
    /// The header `Accept`.
    pub accept: &'static str,
    /// Whether the answer may come packed.
    pub gzip: bool,
}

impl Asked {
    /// Asks for JSON that is not packed.
    pub fn json(target: impl Into<String>) -> Self {
        Self { target: target.into(), accept: "application/json", gzip: false }
    }

    /// Asks for a table that is not packed.
    pub fn table(target: impl Into<String>) -> Self {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        Self { target: target.into(), accept, gzip: false }
    }

    /// Takes it packed.
    #[must_use]
    pub fn packed(self) -> Self {
        Self { gzip: true, ..self }
    }
}

impl Dial {
    /// Dials a server whose authority is in a PEM file.
    ///
    /// # Errors
    ///
    /// When the file holds no certificate, or the token is none that fits a header.
    pub fn new(address: SocketAddr, authority: &Path, token: Option<&str>) -> Outcome<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(authority)? {
            roots.add(certificate?)?;
        }
        let mut authorization =
            token.map(|token| HeaderValue::try_from(format!("Bearer {token}"))).transpose()?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Ok(Self { address, roots: Arc::new(roots), authorization })
    }

    /// Opens a connection, driven by the runtime that it is opened on.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub async fn open(&self, protocol: Protocol) -> Outcome<Wire> {
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_root_certificates(Arc::clone(&self.roots))
                .with_no_client_auth();
        config.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec()],
        };
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let stream = TokioIo::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?);
        let sender = match protocol {
            Protocol::Http1 => {
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                Sender::One(sender)
            }
            Protocol::Http2 => {
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .handshake(stream)
                    .await?;
                tokio::spawn(connection);
                Sender::Two(sender)
            }
        };
        Ok(Wire { sender, address: self.address, authorization: self.authorization.clone() })
    }
}

/// Without the token.
impl std::fmt::Debug for Dial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dial").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Without the token.
impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Wire {
    /// Sends a request, and returns the answer once its head is there.
    ///
    /// # Errors
    ///
    /// When there is no answer, or it is not of success.
    pub async fn send(&mut self, asked: &Asked) -> Outcome<Response<Incoming>> {
        let (address, target) = (self.address, &asked.target);
        let mut request = match self.sender {
            Sender::One(_) => Request::get(target).header(HOST, address.to_string()),
            Sender::Two(_) => Request::get(format!("https://{address}{target}")),
        };
        request = request.header(ACCEPT, asked.accept);
        if asked.gzip {
            request = request.header(ACCEPT_ENCODING, "gzip");
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Empty::new())?;
        let answer = match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
            Sender::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request).await?
            }
        };
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        Err(format!("{target}: {status}: {}", String::from_utf8_lossy(&body)).into())
    }

    /// Returns an answer's body.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn fetch(&mut self, asked: &Asked) -> Outcome<Bytes> {
        Ok(self.send(asked).await?.into_body().collect().await?.to_bytes())
    }

    /// Returns how long an answer took, from before it was asked for until its last byte was read, and its length.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn time(&mut self, asked: &Asked) -> Outcome<(Duration, usize)> {
        let start = Instant::now();
        let mut body = self.send(asked).await?.into_body();
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            length += frame?.data_ref().map_or(0, bytes::Buf::remaining);
        }
        Ok((start.elapsed(), length))
    }

    /// Begins to watch, and returns the lines to come.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn watch(mut self, target: &str) -> Outcome<Lines> {
        let body = self.send(&Asked::json(target)).await?.into_body();
        Ok(Lines { body, _wire: self })
    }
}

/// The lines of a watch.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    /// A connection ends with its last sender.
    _wire: Wire,
}

impl Lines {
    /// Waits for something, and returns how many lines ended in it; `None` at the end.
    ///
    /// # Errors
    ///
    /// When the connection breaks.
    pub async fn next(&mut self) -> Outcome<Option<usize>> {
        let Some(frame) = self.body.frame().await.transpose()? else {
            return Ok(None);
        };
        let data = frame.data_ref().map_or(&[][..], |data| data.chunk());
        Ok(Some(memchr::memchr_iter(b'\n', data).count()))
    }
}
