//! The floor under every answer over TLS: a server that gives out bytes that are ready, and does nothing else.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::Outcome;

/// Answers that are ready, by their number.
type Answers = Arc<RwLock<Vec<Bytes>>>;

/// A server of what is ready, on threads of its own.
#[derive(Debug)]
pub struct ReadyMade {
    address: SocketAddr,
    answers: Answers,
    _runtime: tokio::runtime::Runtime,
}

impl ReadyMade {
    /// Starts one with the certificate of the server it stands beside.
    ///
    /// # Errors
    ///
    /// When it cannot be started.
    pub fn start(tls: &Path) -> Outcome<Self> {
        let chain = CertificateDer::pem_file_iter(tls.join("server.pem"))?.collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_file(tls.join("server-key.pem"))?;
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()?
                .with_no_client_auth()
                .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let answers = Answers::default();
        let ready = Arc::clone(&answers);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, acceptor.clone(), Arc::clone(&ready)));
            }
        });
        Ok(Self { address, answers, _runtime: runtime })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Gets an answer ready, and returns the path it is at.
    pub fn put(&self, answer: Bytes) -> String {
        let mut answers = self.answers.write().unwrap_or_else(PoisonError::into_inner);
        answers.push(answer);
        format!("/{}", answers.len() - 1)
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, answers: Answers) -> Outcome<()> {
    stream.set_nodelay(true)?;
    let stream = acceptor.accept(stream).await?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let number = request.uri().path().trim_start_matches('/').parse::<usize>();
        let answers = answers.read().unwrap_or_else(PoisonError::into_inner);
        let answer = number.ok().and_then(|number| answers.get(number)).cloned();
        let mut response = Response::new(Full::new(answer.clone().unwrap_or_default()));
        if answer.is_none() {
            *response.status_mut() = hyper::StatusCode::NOT_FOUND;
        }
        std::future::ready(Ok::<_, Infallible>(response))
    });
    let stream = TokioIo::new(stream);
    if is_http2 {
        http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await?;
    } else {
        http1::Builder::new().serve_connection(stream, service).await?;
    }
    Ok(())
}
