//! How commands reach a server: through the socket of the one that runs on the data directory, by URL, or by opening
//! the directory where none runs. The requests are the same.

mod https;
mod pieces;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use serde_json::Value;
use tower::ServiceExt as _;

use super::Target;
use crate::auth::Trail;
use crate::compose::{self, StartError};
use crate::config::{Config, ConfigError};
use crate::data_dir::{DataDir, DataDirError, DataDirLock};
use crate::serve::{self, SocketPath};
use https::Https;
pub(super) use pieces::Pieces;

/// A way to a server.
#[derive(Debug)]
pub(super) struct Client(Way);

#[derive(Debug)]
enum Way {
    Http {
        client: reqwest::Client,
        base: String,
        token: Option<String>,
        /// The way to the server's socket, by which the client connects when it first sends.
        #[expect(dead_code, reason = "held while the client connects through it")]
        socket: Option<SocketPath>,
    },
    Https {
        server: Https,
        base: String,
        token: Option<String>,
    },
    InProcess {
        router: Router,
        trail: Arc<Trail>,
        #[expect(dead_code, reason = "held while the data is open")]
        lock: DataDirLock,
    },
}

/// An answer, whatever it says.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) body: Bytes,
}

/// Why there is no answer, or not the one that was wanted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] StartError),
    /// The settings for it cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server that runs on the data directory cannot be reached.
    #[error("the server that runs on {path} does not answer on its socket")]
    Socket {
        /// Which data directory.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The token cannot be read.
    #[error("the token file {} cannot be read", path.display())]
    Token {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The server cannot be reached, or broke off.
    #[error("the server cannot be reached")]
    Http(#[source] reqwest::Error),
    /// The server behind TLS cannot be reached.
    #[error("the server at {host} cannot be reached{hint}")]
    Unreachable {
        /// Which one.
        host: String,
        /// What may help.
        hint: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The connection to it broke.
    #[error("the server broke off")]
    Broken(#[source] hyper::Error),
    /// The file of authorities cannot be used.
    #[error(transparent)]
    Authorities(#[from] crate::tls::TlsError),
    /// The server said no.
    #[error("{message}")]
    Refused {
        /// The status of the answer.
        code: u16,
        /// What it said.
        message: String,
    },
    /// The answer is not one of rezus.
    #[error("the answer is not one of rezus (status {0}): is this the right URL?")]
    Strange(u16),
}

impl Client {
    /// Finds the way that a command's target means.
    pub(super) async fn open(target: &Target) -> Result<Self, ClientError> {
        match &target.server {
            Some(url) => {
                let read = |path: &PathBuf| {
                    std::fs::read_to_string(path)
                        .map(|token| token.trim().to_owned())
                        .map_err(|source| ClientError::Token { path: path.clone(), source })
                };
                let token = target.token_file.as_ref().map(read).transpose()?;
                match reqwest::Url::parse(url) {
                    Ok(parsed) if parsed.scheme() == "https" => {
                        let server = Https::new(&parsed, target.ca_file.as_deref())?;
                        Ok(Self(Way::Https { server, base: url.trim_end_matches('/').to_owned(), token }))
                    }
                    _ => Self::by_url(url, token),
                }
            }
            None => Self::by_directory(&DataDir::new(&target.data_dir()), target.config.as_deref()).await,
        }
    }

    /// Asks the server at a URL without TLS.
    pub(super) fn by_url(url: &str, token: Option<String>) -> Result<Self, ClientError> {
        let builder = reqwest::Client::builder();
        // A proxy of the machine's is none for the machine itself.
        let builder = if is_loopback(url) { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(ClientError::Http)?;
        Ok(Self(Way::Http { client, base: url.trim_end_matches('/').to_owned(), token, socket: None }))
    }

    async fn by_directory(data_dir: &DataDir, config: Option<&Path>) -> Result<Self, ClientError> {
        if !data_dir.database().exists() {
            return Err(StartError::from(DataDirError::Absent(data_dir.path().to_owned())).into());
        }
        // As the server would have them: how long versions are kept, how large a state may be.
        let config = Config::load(config, std::env::vars())?;
        match compose::compose(&config, data_dir) {
            Ok(composed) => {
                let router = serve::in_process(&composed.plane);
                let trail = Arc::clone(composed.plane.auth.trail());
                Ok(Self(Way::InProcess { router, trail, lock: composed.lock }))
            }
            Err(StartError::DataDir(DataDirError::InUse(_))) => Self::by_socket(data_dir).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Asks the server that holds the directory. One that has just been started may not listen yet.
    pub(super) async fn by_socket(data_dir: &DataDir) -> Result<Self, ClientError> {
        let failed = |source| ClientError::Socket { path: data_dir.path().display().to_string(), source };
        let socket = SocketPath::to(&data_dir.socket()).map_err(failed)?;
        for patience in (0..25).rev() {
            match tokio::net::UnixStream::connect(socket.path()).await {
                Ok(_) => break,
                Err(_) if patience > 0 => tokio::time::sleep(Duration::from_millis(200)).await,
                Err(source) => return Err(failed(source)),
            }
        }
        let client = reqwest::Client::builder().no_proxy().unix_socket(socket.path()).build();
        let client = client.map_err(ClientError::Http)?;
        let base = "http://localhost".to_owned();
        Ok(Self(Way::Http { client, base, token: None, socket: Some(socket) }))
    }

    /// Sends a request and returns the answer, whatever it is.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, ClientError> {
        self.send_as("application/json", method, path, query, body).await
    }

    /// Sends a request whose body is of this type.
    pub(super) async fn send_as(
        &self,
        content_type: &'static str,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: Bytes,
    ) -> Result<Answer, ClientError> {
        let (code, pieces) = self.open_answer(content_type, method, path, query, body).await?;
        let body = pieces.rest().await;
        if let Way::InProcess { trail, .. } = &self.0 {
            // Nobody writes the trail in this process but this.
            trail.flush().await;
        }
        Ok(Answer { code, body: body? })
    }

    /// Gets an answer that is read as it comes.
    pub(super) async fn stream(&self, path: &str, query: &[(&str, &str)]) -> Result<Pieces, ClientError> {
        let (code, pieces) = self.open_answer("application/json", "GET", path, query, Bytes::new()).await?;
        if (200..300).contains(&code) {
            Ok(pieces)
        } else {
            Err(Answer { code, body: pieces.rest().await? }.refusal())
        }
    }

    /// Tells whether a server answers, rather than this process itself.
    pub(super) const fn is_served(&self) -> bool {
        !matches!(self.0, Way::InProcess { .. })
    }

    async fn open_answer(
        &self,
        content_type: &'static str,
        method: &str,
        path: &str,
        query: &[(&str, &str)],
        body: Bytes,
    ) -> Result<(u16, Pieces), ClientError> {
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        match &self.0 {
            Way::Http { client, base, token, .. } => {
                let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap_or_default();
                let mut request = client
                    .request(method, format!("{base}{target}"))
                    .header("content-type", content_type)
                    .body(body);
                if let Some(token) = token {
                    request = request.bearer_auth(token);
                }
                let answer = request.send().await.map_err(ClientError::Http)?;
                Ok((answer.status().as_u16(), Pieces::Http(answer)))
            }
            Way::Https { server, base, token } => {
                let mut request = axum::http::Request::builder()
                    .method(method)
                    .uri(format!("{base}{target}"))
                    .header("content-type", content_type);
                if let Some(token) = token {
                    request = request.header("authorization", format!("Bearer {token}"));
                }
                let request = request.body(body.into()).map_err(|_| ClientError::Strange(400))?;
                server.send(request).await
            }
            Way::InProcess { router, .. } => {
                let request = axum::http::Request::builder()
                    .method(method)
                    .uri(target)
                    .header("content-type", content_type)
                    .header("content-length", body.len())
                    .body(Body::from(body))
                    .map_err(|_| ClientError::Strange(400))?;
                let answer = router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
                Ok((answer.status().as_u16(), Pieces::InProcess(answer.into_body())))
            }
        }
    }

    /// Gets a JSON answer.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, ClientError> {
        self.send("GET", path, query, Bytes::new()).await?.json()
    }

    /// Posts a JSON body and returns the JSON answer.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.send("POST", path, &[], body.to_string().into()).await?.json()
    }

    /// Changes settings and returns what they are now.
    pub(super) async fn patch(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.send("PATCH", path, &[], body.to_string().into()).await?.json()
    }

    /// Gets the names of a list's items.
    pub(super) async fn names(&self, path: &str) -> Result<Vec<String>, ClientError> {
        let list = self.get(path, &[]).await?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(items.iter().filter_map(|item| item["name"].as_str()).map(ToOwned::to_owned).collect())
    }
}

/// Tells whether a URL leads to this machine.
fn is_loopback(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        None => false,
    }
}

impl Answer {
    /// Returns the body of a success.
    pub(super) fn success(self) -> Result<Bytes, ClientError> {
        if (200..300).contains(&self.code) { Ok(self.body) } else { Err(self.refusal()) }
    }

    /// Returns the body of a success as JSON.
    pub(super) fn json(self) -> Result<Value, ClientError> {
        let code = self.code;
        let body = self.success()?;
        if body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&body).map_err(|_| ClientError::Strange(code))
    }

    /// Reads what an answer other than success says: a `Status`, or the lock that is in the way.
    fn refusal(&self) -> ClientError {
        if self.code == 401 {
            let message = "the server wants a token that works: name a file that holds one with --token-file, or ask through the data directory with --data-dir";
            return ClientError::Refused { code: self.code, message: message.to_owned() };
        }
        let Ok(body) = serde_json::from_slice::<Value>(&self.body) else {
            return ClientError::Strange(self.code);
        };
        let message = match (body["message"].as_str(), body["ID"].as_str()) {
            (Some(message), _) => message.to_owned(),
            (None, Some(id)) => format!(
                "the state is locked by {} since {} with {} (lock {id})",
                body["Who"].as_str().unwrap_or("somebody"),
                body["Created"].as_str().unwrap_or("some time"),
                body["Operation"].as_str().unwrap_or("something"),
            ),
            (None, None) => return ClientError::Strange(self.code),
        };
        ClientError::Refused { code: self.code, message }
    }
}
