//! A TLS listener with routes of a test's own, and clients for it.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::connections::{self, Terms};
use super::super::crowds::Crowds;
use super::super::doors::Tls;
use super::super::draining::Draining;
use crate::config::TlsConfig;
use crate::tls::Material;

/// No wait in these tests is longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Lab {
    pub(super) address: SocketAddr,
    pub(super) draining: Draining,
    pub(super) served: JoinHandle<io::Result<()>>,
    pub(super) directory: TempDir,
    material: Arc<Material>,
}

pub(super) struct Holder {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Lab {
    pub(super) async fn with(router: impl FnOnce(&Draining) -> Router) -> Self {
        Self::with_handshake(PATIENCE, router).await
    }

    pub(super) async fn with_handshake(
        handshake: Duration,
        router: impl FnOnce(&Draining) -> Router,
    ) -> Self {
        let directory = TempDir::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let now = crate::compose::now();
        let material = Material::open(&TlsConfig::default(), directory.path(), address.ip(), now).unwrap();
        let material = Arc::new(material);
        let draining = Draining::new();
        let terms = Terms { connections: 10_000, streams: 100, head: 64 << 10, draining: draining.clone() };
        let door = Tls { material: Arc::clone(&material), handshake, crowds: Crowds::new(4) };
        let open = move |stream, address| door.clone().open(stream, address);
        let served = tokio::spawn(connections::serve(listener, router(&draining), terms, open));
        Self { address, draining, served, directory, material }
    }

    pub(super) fn ca_pem(&self) -> &str {
        self.material.ca_pem()
    }

    pub(super) async fn connect(
        &self,
        protocol: &[u8],
        holder: Option<&Holder>,
    ) -> io::Result<TlsStream<TcpStream>> {
        connect(self.address, self.ca_pem(), protocol, holder).await
    }

    /// A certificate signed by the authority in a directory.
    pub(super) fn holder(authority: &Path, common_name: &str, organization: &str) -> Holder {
        let read = |file| std::fs::read_to_string(authority.join(file)).unwrap();
        let signer = KeyPair::from_pem(&read("ca-key.pem")).unwrap();
        let issuer = Issuer::from_ca_cert_pem(&read("ca.pem"), signer).unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, common_name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        Holder { chain: vec![certificate.der().clone()], key }
    }
}

pub(super) async fn connect(
    address: SocketAddr,
    ca_pem: &str,
    protocol: &[u8],
    holder: Option<&Holder>,
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca_pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let mut config = match holder {
        None => config.with_no_client_auth(),
        Some(holder) => config.with_client_auth_cert(holder.chain.clone(), holder.key.clone_key()).unwrap(),
    };
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Gets `/` over this connection; the answer's body is read by the caller.
pub(super) async fn get(stream: TlsStream<TcpStream>) -> hyper::Result<hyper::Response<Incoming>> {
    let speaks_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let request = hyper::Request::builder().uri("https://localhost/").header("host", "localhost");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let stream = TokioIo::new(stream);
    if speaks_http2 {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
        tokio::spawn(connection);
        let answer = sender.send_request(request).await;
        // The connection ends with its last sender.
        tokio::spawn(async move {
            tokio::time::sleep(PATIENCE).await;
            drop(sender);
        });
        answer
    } else {
        let (mut sender, connection) = http1::handshake(stream).await?;
        tokio::spawn(connection);
        sender.send_request(request).await
    }
}

pub(super) async fn text(answer: hyper::Response<Incoming>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}
