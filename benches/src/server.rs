//! The real server as a process, and a client that keeps its connection.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Body, Method, Response};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::{Dial, Outcome, process};

/// How long a server may take to be ready.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server process, ended when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    url: String,
    guarded: Option<Guarded>,
}

/// How one gets in where callers must show who they are.
#[derive(Clone)]
struct Guarded {
    address: SocketAddr,
    authority: PathBuf,
    token: String,
}

/// Without the token.
impl std::fmt::Debug for Guarded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guarded").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Starts a server over a data directory, on a port of its own, open to this machine, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub async fn start(binary: &Path, data_dir: &Path) -> Outcome<Self> {
        Self::start_with(binary, data_dir, &[]).await
    }

    /// Does the same with these variables in its environment.
    ///
    /// # Errors
    ///
    /// When it does not become ready.
    pub async fn start_with(binary: &Path, data_dir: &Path, environment: &[(&str, &OsStr)]) -> Outcome<Self> {
        let (child, urls) = begin(binary, data_dir, &["--no-tls", "--no-auth"], environment).await?;
        let url = urls.into_iter().find(|url| url.starts_with("http://"));
        Ok(Self { child, url: url.ok_or("the server did not say where it listens")?, guarded: None })
    }

    /// Starts a server as it is for others: with TLS, and callers must show a token.
    ///
    /// # Errors
    ///
    /// When it does not become ready, or there is no token in its `admin.kubeconfig`.
    pub async fn start_guarded(binary: &Path, data_dir: &Path) -> Outcome<Self> {
        let (child, urls) = begin(binary, data_dir, &["--tls", "127.0.0.1:0"], &[]).await?;
        let find = |scheme: &str| urls.iter().find_map(|url| url.strip_prefix(scheme));
        let (Some(plain), Some(secure)) = (find("http://"), find("https://")) else {
            return Err("the server did not say where it listens".into());
        };
        let kubeconfig = std::fs::read_to_string(data_dir.join("admin.kubeconfig"))?;
        let user = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("user: "));
        let user: serde_json::Value = serde_json::from_str(user.ok_or("no user in admin.kubeconfig")?)?;
        let token = user["token"].as_str().ok_or("no token in admin.kubeconfig")?.to_owned();
        let authority = data_dir.join("tls").join("ca.pem");
        let guarded = Some(Guarded { address: secure.parse()?, authority, token });
        Ok(Self { child, url: format!("http://{plain}"), guarded })
    }

    /// How connections with TLS are opened.
    ///
    /// # Errors
    ///
    /// When the server has no TLS.
    pub fn dial(&self) -> Outcome<Dial> {
        let Guarded { address, authority, token } = self.guarded.as_ref().ok_or("a server without TLS")?;
        Dial::new(*address, authority, Some(token))
    }

    /// The URL of the listener without TLS.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a client with a connection of its own.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn client(&self) -> Outcome<Client> {
        let token = self.guarded.as_ref().map(|guarded| guarded.token.clone());
        Ok(Client { token, ..Client::new(&self.url)? })
    }

    /// Returns a memory figure of the process in KiB, as [`vm_kib`](crate::vm_kib) does.
    ///
    /// # Errors
    ///
    /// When the process is gone.
    pub fn vm_kib(&self, figure: &str) -> Outcome<u64> {
        process::vm_kib(self.id()?, figure)
    }

    /// Returns the number of the process.
    ///
    /// # Errors
    ///
    /// When it is gone.
    pub fn id(&self) -> Outcome<u32> {
        Ok(self.child.id().ok_or("the server has ended")?)
    }

    /// Kills the server, and returns once it has let go of its data directory.
    ///
    /// # Errors
    ///
    /// When it cannot be killed.
    pub async fn end(mut self) -> Outcome<()> {
        Ok(self.child.kill().await?)
    }
}

/// Starts a server process, and returns the URLs that it says it listens on once it is ready.
async fn begin(
    binary: &Path,
    data_dir: &Path,
    arguments: &[&str],
    environment: &[(&str, &OsStr)],
) -> Outcome<(Child, Vec<String>)> {
    let mut command = Command::new(binary);
    command.arg("serve").arg("--data-dir").arg(data_dir).args(["--plain", "127.0.0.1:0"]).args(arguments);
    command.env_clear().env("REZUS_LOG__LEVEL", "warn").envs(environment.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no standard output")?).lines();
    let ready = async {
        let mut urls = Vec::new();
        while let Some(line) = lines.next_line().await? {
            match line.strip_prefix("listening on ") {
                Some(listening) => urls.push(listening.to_owned()),
                None if line == "ready" => return Ok(urls),
                None => {}
            }
        }
        Err(std::io::Error::other("the server ended before it was ready"))
    };
    let urls = tokio::time::timeout(PATIENCE, ready).await??;
    Ok((child, urls))
}

/// A client of one server.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// Without the token.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a client of the server at a URL.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn new(url: &str) -> Outcome<Self> {
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(1).build()?;
        Ok(Self { http, url: url.to_owned(), token: None })
    }

    /// Sends a request and returns the answer's body.
    ///
    /// # Errors
    ///
    /// When there is no answer, or it is not of success.
    pub async fn send(&self, method: &str, target: &str, body: impl Into<Body>) -> Outcome<Vec<u8>> {
        Ok(self.open(method, target, body).await?.bytes().await?.into())
    }

    /// Sends a JSON object and returns the one that is answered.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send), or when the answer is no JSON.
    pub async fn exchange(&self, method: &str, target: &str, body: &Value) -> Outcome<Value> {
        Ok(serde_json::from_slice(&self.send(method, target, body.to_string()).await?)?)
    }

    /// Sends a request and returns the answer, whose body is still to come.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn open(&self, method: &str, target: &str, body: impl Into<Body>) -> Outcome<Response> {
        let method = Method::from_bytes(method.as_bytes())?;
        let mut request = self.http.request(method, format!("{}{target}", self.url));
        request = request.header(CONTENT_TYPE, "application/json");
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let answer = request.body(body).send().await?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.bytes().await?;
        Err(format!("{target}: {status}: {}", String::from_utf8_lossy(&body)).into())
    }

    /// Takes a tenant's lock.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub async fn lock(&self, tenant: &str, id: &str) -> Outcome<()> {
        self.send("LOCK", &format!("/state/{tenant}"), lock_info(id)).await.map(drop)
    }

    /// Releases a tenant's lock.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub async fn unlock(&self, tenant: &str, id: &str) -> Outcome<()> {
        self.send("UNLOCK", &format!("/state/{tenant}"), lock_info(id)).await.map(drop)
    }

    /// Writes a state under a lock, as the clients do.
    ///
    /// # Errors
    ///
    /// When it is refused.
    pub async fn post(&self, tenant: &str, id: &str, state: impl Into<Body>) -> Outcome<()> {
        self.send("POST", &format!("/state/{tenant}?ID={id}"), state).await.map(drop)
    }

    /// Locks, writes and unlocks.
    ///
    /// # Errors
    ///
    /// When any of it is refused.
    pub async fn push(&self, tenant: &str, id: &str, state: impl Into<Body>) -> Outcome<()> {
        self.lock(tenant, id).await?;
        self.post(tenant, id, state).await?;
        self.unlock(tenant, id).await
    }

    /// Returns the server's list of a tenant's resource instances, in the order of its state.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn listing(&self, tenant: &str) -> Outcome<Vec<serde_json::Value>> {
        let listing = self.send("GET", &format!("/rezus/v1/tenants/{tenant}/resources"), "").await?;
        let listing: serde_json::Value = serde_json::from_slice(&listing)?;
        Ok(listing["items"].as_array().ok_or("no listing")?.clone())
    }

    /// Returns the address of a tenant's last resource instance.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub async fn last_address(&self, tenant: &str) -> Outcome<String> {
        let listing = self.listing(tenant).await?;
        Ok(listing
            .last()
            .and_then(|item| item["address"].as_str())
            .ok_or("there are no instances")?
            .to_owned())
    }

    /// Reads one resource instance of a tenant.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub async fn resource(&self, tenant: &str, address: &str) -> Outcome<Vec<u8>> {
        let address: String = form_urlencoded::byte_serialize(address.as_bytes()).collect();
        self.send("GET", &format!("/rezus/v1/tenants/{tenant}/resources?address={address}"), "").await
    }
}

fn lock_info(id: &str) -> String {
    let info = serde_json::json!({
        "ID": id,
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": "bench@localhost",
        "Version": "1.11.4",
        "Created": "2026-11-30T16:54:37.540115051Z",
        "Path": "",
    });
    info.to_string()
}

/// Returns the server's binary: the one that `REZUS_SERVER_BIN` names, else the one that lies where this benchmark was
/// built, brought up to date by `cargo build` with the same profile's settings. `None` in a smoke run without one.
///
/// # Errors
///
/// When it cannot be built.
pub fn server_binary(manifest_dir: &str) -> Outcome<Option<PathBuf>> {
    if let Some(named) = std::env::var_os("REZUS_SERVER_BIN") {
        return Ok(Some(named.into()));
    }
    let here = std::env::current_exe()?;
    let profile_dir =
        here.parent().and_then(Path::parent).ok_or("the benchmark lies in no target directory")?;
    let binary = profile_dir.join("rezus-server");
    if crate::is_smoke() {
        return Ok(binary.is_file().then_some(binary));
    }
    let target_dir = profile_dir.parent().ok_or("the benchmark lies in no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = std::process::Command::new(cargo);
    build.args(["build", "--release", "--package", "rezus-server", "--manifest-path"]);
    build.arg(Path::new(manifest_dir).join("Cargo.toml")).arg("--target-dir").arg(target_dir);
    let status = build.stdin(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("the server cannot be built: {status}").into());
    }
    Ok(Some(target_dir.join("release").join("rezus-server")))
}
