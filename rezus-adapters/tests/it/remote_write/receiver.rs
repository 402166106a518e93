//! A receiver that answers as it is told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rezus_testkit::fake::cluster::Issued;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

#[derive(Debug, Default)]
struct State {
    /// What the next requests are answered; afterwards they are taken. An empty one hangs up.
    answers: VecDeque<String>,
    /// What, somewhere in a body, has it refused.
    poison: Option<String>,
    heads: Vec<String>,
    /// Nodes of the samples that were taken.
    taken: Vec<String>,
}

pub(super) struct Receiver {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<Mutex<State>>,
}

impl Receiver {
    pub(super) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// One that shows this certificate.
    pub(super) async fn start_tls(shown: &Issued) -> Self {
        let chain = vec![CertificateDer::from_pem_slice(shown.certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(shown.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(chain, key).unwrap();
        Self::start_with(Some(TlsAcceptor::from(Arc::new(config)))).await
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, shared).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, shared).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, scheme, state }
    }

    pub(super) fn url(&self) -> String {
        format!("{}://{}/api/v1/write?x=1", self.scheme, self.address)
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn answers(&self, answers: &[&str]) {
        self.state.lock().unwrap().answers.extend(answers.iter().map(|answer| (*answer).to_owned()));
    }

    pub(super) fn refuses(&self, poison: &str) {
        self.state.lock().unwrap().poison = Some(poison.to_owned());
    }

    /// How many requests came.
    pub(super) fn count(&self) -> usize {
        self.state.lock().unwrap().heads.len()
    }

    pub(super) fn heads(&self) -> Vec<String> {
        self.state.lock().unwrap().heads.clone()
    }

    pub(super) fn taken(&self) -> Vec<String> {
        self.state.lock().unwrap().taken.clone()
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<Mutex<State>>) {
    let mut read = Vec::new();
    let end = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length.expect("a length");
    while read.len() < end + length {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let body = snap::raw::Decoder::new().decompress_vec(&read[end..]).expect("a block of snappy");
    let body = String::from_utf8_lossy(&body).into_owned();
    let answer = {
        let mut state = state.lock().unwrap();
        state.heads.push(head);
        let is_poisoned = state.poison.as_ref().is_some_and(|poison| body.contains(poison));
        match state.answers.pop_front() {
            Some(answer) => answer,
            None if is_poisoned => "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_owned(),
            None => {
                // A label is two strings, each with its length before it.
                let nodes = body.split("node\u{12}").skip(1);
                let names =
                    nodes.map(|rest| rest.chars().skip(1).take_while(char::is_ascii_alphanumeric).collect());
                let names: Vec<String> = names.collect();
                state.taken.extend(names);
                "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
            }
        }
    };
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
}
