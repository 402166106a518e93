//! Connections over TLS, and certificates from elsewhere.

use std::io;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::server::{Server, Settings};

/// Settings of a server with a TLS listener that looks at its files often.
pub(super) fn with(variables: &[(&'static str, &str)]) -> Settings {
    let variables = [&[("REZUS_TLS__RELOAD", "100ms")], variables].concat();
    let variables = variables.into_iter().map(|(name, value)| (name, value.to_owned())).collect();
    Settings { variables, tls: true, ..Settings::default() }
}

/// The server's own authority.
pub(super) fn ca(server: &Server) -> String {
    std::fs::read_to_string(server.data_dir().join("tls/ca.pem")).unwrap()
}

/// Connects under a name, believing one authority.
pub(super) async fn connect(server: &Server, ca_pem: &str, name: &str) -> io::Result<TlsStream<TcpStream>> {
    speaking(&[], server, ca_pem, name).await
}

/// Opens a connection of HTTP/2.
pub(super) async fn http2(server: &Server) -> http2::SendRequest<Full<Bytes>> {
    let stream = speaking(&[b"h2"], server, &ca(server), "localhost").await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn speaking(
    protocols: &[&[u8]],
    server: &Server,
    ca_pem: &str,
    name: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let stream = TcpStream::connect(server.tls_url().trim_start_matches("https://")).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The certificate that a server shows.
pub(super) async fn shown(server: &Server, ca_pem: &str, name: &str) -> Vec<u8> {
    let stream = connect(server, ca_pem, name).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

/// Writes `NAME.pem` and `NAME-key.pem`, and `NAME-ca.pem` of who signed them, for a host name.
pub(super) fn certificate(directory: &Path, file: &str, host: &str) {
    let write = |ending: &str, text: String| {
        std::fs::write(directory.join(format!("{file}{ending}")), text).unwrap();
    };
    let mut authority = CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {file}"));
    let signer = KeyPair::generate().unwrap();
    write("-ca.pem", authority.self_signed(&signer).unwrap().pem());
    let issuer = Issuer::new(authority, signer);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new([host.to_owned()]).unwrap();
    write(".pem", params.signed_by(&key, &issuer).unwrap().pem());
    write("-key.pem", key.serialize_pem());
}
