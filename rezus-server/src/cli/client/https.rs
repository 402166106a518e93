//! A server behind TLS.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use axum::http::Request;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::ClientError;
use super::pieces::{Connection, Pieces};

/// A server at an `https` URL.
pub(super) struct Https {
    connector: TlsConnector,
    name: ServerName<'static>,
    host: String,
    port: u16,
}

impl fmt::Debug for Https {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Https").field("name", &self.name).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Https {
    /// Names the server; `ca_file` is of the authorities that it is believed by, the system's if absent.
    pub(super) fn new(url: &reqwest::Url, ca_file: Option<&Path>) -> Result<Self, ClientError> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = ca_file.or(crate::tls::system_authorities()) {
            roots.add_parsable_certificates(crate::tls::certificates(path)?);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(crate::tls::TlsError::from)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host.clone())
            .map_err(|error| Self::unreachable(&host, io::Error::new(io::ErrorKind::InvalidInput, error)))?;
        let port = url.port_or_known_default().unwrap_or(443);
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name, host, port })
    }

    /// Sends a request on a connection of its own; the answer's body is still to be read.
    pub(super) async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(u16, Pieces), ClientError> {
        let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
        if let Some(Ok(host)) = authority.map(|authority| authority.parse()) {
            request.headers_mut().insert("host", host);
        }
        // The form that servers expect of who is no proxy's client (RFC 9112, section 3.2.1).
        if let Some(target) = request.uri().path_and_query().cloned() {
            *request.uri_mut() = target.into();
        }
        let connect = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            self.connector.connect(self.name.clone(), stream).await
        };
        let stream = connect.await.map_err(|error| Self::unreachable(&self.host, error))?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(ClientError::Broken)?;
        let connection = Connection(tokio::spawn(connection));
        let answer = sender.send_request(request).await.map_err(ClientError::Broken)?;
        let code = answer.status().as_u16();
        Ok((code, Pieces::Https(answer.into_body(), connection)))
    }

    fn unreachable(host: &str, source: io::Error) -> ClientError {
        let is_certificate = source
            .get_ref()
            .is_some_and(|inner| matches!(inner.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))));
        let hint = if is_certificate {
            ": name the authority of its certificate with --ca-file; of one that rezus made it is tls/ca.pem in the data directory"
        } else {
            ""
        };
        ClientError::Unreachable { host: host.to_owned(), hint, source }
    }
}
