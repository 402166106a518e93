//! Whoever takes the samples: one POST at a time, over TLS or, on networks one trusts, without.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::RemoteWriteConfig;
use crate::text::brief;

/// How long it may take until a connection stands, and until there is an answer.
const CONNECT: Duration = Duration::from_secs(10);
const ANSWER: Duration = Duration::from_secs(30);

/// How much of an answer is read, in bytes.
const BODY: usize = 16 << 10;

/// The longest file of a token, in bytes.
const TOKEN: u64 = 64 << 10;

/// Why nothing can be sent there.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    /// Of the URL nothing is repeated: it may hold a password.
    #[error("the URL for remote write {0}")]
    Url(&'static str),
    /// Two ways to say who one is.
    #[error("remote write takes a bearer token's file or one of basic authentication, not both")]
    TwoWays,
    /// Secrets would be sent in clear.
    #[error("remote write sends a token or a password to another machine over https alone")]
    InClear,
    /// Nobody could be believed.
    #[error("remote write over https needs a file of authorities, and the system has none")]
    NoAuthorities,
    /// The authorities cannot be read.
    #[error("the file of authorities {} cannot be used", path.display())]
    Authorities {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// Why a request came to nothing. It shows neither the URL nor who asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Nobody took it.
    #[error("the receiver of remote write does not answer: {0}")]
    Unreachable(String),
    /// It answered otherwise than with success.
    #[error("the receiver of remote write answered {status}: {said}")]
    Answered {
        /// How.
        status: u16,
        /// What it said, made harmless: 64 characters.
        said: String,
        /// How long it wants to be left alone.
        retry_after: Option<Duration>,
    },
    /// Who one is could not be read.
    #[error("the file {} cannot be read", path.display())]
    Secret {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What is to be sent could not be read, or not be taken out.
    #[error(transparent)]
    Queue(super::QueueError),
}

impl Trouble {
    /// Tells whether sending it again is of no use: any status of 4xx, but for those that are about the sender, the way or the
    /// moment, and not about the samples.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Answered { status: 400..=499, .. })
            && !matches!(self, Self::Answered { status: 401 | 403 | 404 | 407 | 408 | 429, .. })
    }

    /// Tells whether less of it may be taken: one sample may be at fault, or there are too many.
    pub(super) const fn is_of_samples(&self) -> bool {
        matches!(self, Self::Answered { status: 400 | 409 | 413 | 422, .. })
    }

    pub(super) const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Answered { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Who says who is asking.
#[derive(Clone, Debug)]
enum Proof {
    None,
    Bearer(PathBuf),
    Basic(PathBuf),
}

/// Whoever takes the samples.
pub(super) struct Receiver {
    host: String,
    port: u16,
    authority: HeaderValue,
    target: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    proof: Proof,
}

/// Nothing of its path: it may be a secret of its own.
impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

impl Receiver {
    pub(super) fn new(config: &RemoteWriteConfig) -> Result<Self, ReceiverError> {
        let wrong = ReceiverError::Url;
        let uri: Uri = config.url.trim().parse().map_err(|_| wrong("is none"))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("is neither http nor https")),
        };
        let authority = uri.authority().ok_or(wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("holds a user: name a file with `user:password` instead"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let proof = match (&config.bearer_token_file, &config.basic_auth_file) {
            (Some(_), Some(_)) => return Err(ReceiverError::TwoWays),
            (Some(path), None) => Proof::Bearer(path.clone()),
            (None, Some(path)) => Proof::Basic(path.clone()),
            (None, None) => Proof::None,
        };
        let is_here =
            host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if !is_tls && !is_here && !matches!(proof, Proof::None) {
            return Err(ReceiverError::InClear);
        }
        let tls = if is_tls {
            let name = ServerName::try_from(host.clone()).map_err(|_| wrong("has a host that is no name"))?;
            let authorities = config.ca_file.as_deref().ok_or(ReceiverError::NoAuthorities)?;
            Some((connector(authorities)?, name))
        } else {
            None
        };
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let target = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let authority =
            HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("has a host that is no name"))?;
        Ok(Self { host, port, authority, target, tls, proof })
    }

    /// Sends one request, on a connection of its own. An answer that leads elsewhere is not followed.
    pub(super) async fn post(&self, body: Vec<u8>) -> Result<(), Trouble> {
        let proof = self.proof().await?;
        let connect = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            stream.set_nodelay(true)?;
            let stream: Box<dyn Stream> = match &self.tls {
                Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
                None => Box::new(stream),
            };
            Ok::<_, io::Error>(stream)
        };
        let stream = timeout(CONNECT, connect).await.map_err(|_| late())?.map_err(|error| broken(&error))?;
        timeout(ANSWER, self.ask(stream, body, proof)).await.map_err(|_| late())?
    }

    async fn ask(
        &self,
        stream: Box<dyn Stream>,
        body: Vec<u8>,
        proof: Option<HeaderValue>,
    ) -> Result<(), Trouble> {
        let hand = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = hand.map_err(|error| broken(&error))?;
        // It ends with this function, whatever the other side does.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let request = Request::post(&self.target).body(Full::new(Bytes::from(body)));
        let mut request = request.map_err(|error| broken(&error))?;
        let headers = request.headers_mut();
        for (name, value) in [
            (HOST.as_str(), self.authority.clone()),
            (CONTENT_ENCODING.as_str(), HeaderValue::from_static("snappy")),
            (CONTENT_TYPE.as_str(), HeaderValue::from_static("application/x-protobuf")),
            ("x-prometheus-remote-write-version", HeaderValue::from_static("0.1.0")),
            (USER_AGENT.as_str(), HeaderValue::from_static(concat!("rezus/", env!("CARGO_PKG_VERSION")))),
        ] {
            if let Ok(name) = http::HeaderName::from_bytes(name.as_bytes()) {
                headers.insert(name, value);
            }
        }
        if let Some(proof) = proof {
            headers.insert(AUTHORIZATION, proof);
        }
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(());
        }
        let said = Limited::new(body, BODY).collect().await.map(http_body_util::Collected::to_bytes);
        let said = brief(String::from_utf8_lossy(&said.unwrap_or_default()).trim());
        let retry_after = asked(head.status, &head.headers);
        Err(Trouble::Answered { status: head.status.as_u16(), said, retry_after })
    }

    async fn proof(&self) -> Result<Option<HeaderValue>, Trouble> {
        let (path, is_bearer) = match &self.proof {
            Proof::None => return Ok(None),
            Proof::Bearer(path) => (path, true),
            Proof::Basic(path) => (path, false),
        };
        let file = path.clone();
        let read = tokio::task::spawn_blocking(move || secret(&file, is_bearer)).await;
        let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.map(Some).map_err(|source| Trouble::Secret { path: path.clone(), source })
    }
}

/// Reads a file as the header that says who asks.
fn secret(path: &Path, is_bearer: bool) -> io::Result<HeaderValue> {
    if std::fs::metadata(path)?.len() > TOKEN {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long"));
    }
    let text = Zeroizing::new(std::fs::read_to_string(path)?);
    let text = text.trim();
    let header = if is_bearer {
        Zeroizing::new(format!("Bearer {text}"))
    } else {
        Zeroizing::new(format!("Basic {}", *Zeroizing::new(STANDARD.encode(text))))
    };
    let invalid = || io::Error::new(io::ErrorKind::InvalidData, "it is empty, or more than a line");
    let mut value = HeaderValue::from_str(&header).map_err(|_| invalid())?;
    value.set_sensitive(true);
    if text.is_empty() { Err(invalid()) } else { Ok(value) }
}

/// `Retry-After` in seconds, of an answer that may have one.
fn asked(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let may = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    may.then(|| Duration::from_secs(seconds))
}

fn late() -> Trouble {
    Trouble::Unreachable("it takes too long".to_owned())
}

/// The innermost cause says most: of a refused connection, of a certificate.
fn broken(error: &(dyn StdError + 'static)) -> Trouble {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    Trouble::Unreachable(brief(&innermost.to_string()))
}

/// TLS that believes these authorities.
fn connector(authorities: &Path) -> Result<TlsConnector, ReceiverError> {
    let fail = |source: Box<dyn StdError + Send + Sync>| ReceiverError::Authorities {
        path: authorities.to_owned(),
        source,
    };
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(authorities).and_then(Iterator::collect);
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(read.map_err(|error| fail(error.into()))?);
    if added == 0 {
        return Err(fail("there is no certificate in it".into()));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| fail(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str) -> RemoteWriteConfig {
        RemoteWriteConfig {
            url: url.to_owned(),
            bearer_token_file: None,
            basic_auth_file: None,
            ca_file: None,
            queue: PathBuf::new(),
            queue_bytes: 0,
        }
    }

    #[test]
    fn a_url_that_is_of_no_use_is_told_and_not_shown() {
        let error = |config: &RemoteWriteConfig| Receiver::new(config).unwrap_err().to_string();
        for (url, why) in [
            ("https://user:hunter2@prometheus.example/api/v1/write", "a user"),
            ("ftp://prometheus.example", "neither http nor https"),
            ("hunter2", "neither http nor https"),
            ("https://prometheus.example", "needs a file of authorities"),
        ] {
            let error = error(&config(url));
            assert!(error.contains(why) && !error.contains("hunter2"), "{url}: {error}");
        }
        let token = Some(PathBuf::from("/token"));
        let clear =
            RemoteWriteConfig { bearer_token_file: token.clone(), ..config("http://192.0.2.1/write") };
        assert!(error(&clear).contains("https alone"));
        assert!(
            Receiver::new(&RemoteWriteConfig { url: "http://[::1]:9090/write".to_owned(), ..clear }).is_ok()
        );
        let both = RemoteWriteConfig {
            bearer_token_file: token.clone(),
            basic_auth_file: token,
            ..config("http://127.0.0.1/write")
        };
        assert!(error(&both).contains("not both"));
    }

    #[test]
    fn what_is_sent_again_and_what_is_not() {
        let of = |status| Trouble::Answered { status, said: String::new(), retry_after: None };
        for status in [400, 409, 413, 415, 422] {
            assert!(of(status).is_final(), "{status}");
        }
        for status in [302, 401, 403, 404, 407, 408, 429, 500, 503] {
            assert!(!of(status).is_final() && !of(status).is_of_samples(), "{status}");
        }
        assert!(!Trouble::Unreachable(String::new()).is_final());
    }

    #[test]
    fn a_secret_is_one_line_and_not_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "hunter2-hunter2\n").unwrap();
        let bearer = secret(&path, true).unwrap();
        assert_eq!(bearer, "Bearer hunter2-hunter2");
        assert!(!format!("{bearer:?}").contains("hunter2"));
        std::fs::write(&path, "user:hunter2").unwrap();
        assert_eq!(secret(&path, false).unwrap(), "Basic dXNlcjpodW50ZXIy");
        for bad in ["", "\n", "one\ntwo"] {
            std::fs::write(&path, bad).unwrap();
            assert!(secret(&path, true).is_err(), "{bad:?}");
        }
    }
}
