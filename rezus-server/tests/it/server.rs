//! The real program, started for a test and ended with it.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::answer::Answer;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rezus-server");

/// No wait in these tests is longer: what takes more has failed.
const PATIENCE: Duration = Duration::from_mins(1);

/// How a server is to be started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Variables of its environment, which is otherwise empty.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// The largest file it may write, in units of 512 bytes: writes beyond fail as on a full disk.
    pub(crate) file_blocks: Option<u64>,
    /// Whether it has a TLS listener.
    pub(crate) tls: bool,
    /// Whether callers must prove who they are.
    pub(crate) auth: bool,
}

/// A server process over a data directory.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    url: String,
    tls_url: Option<String>,
    log: watch::Sender<String>,
    directory: Arc<TempDir>,
    data_dir: PathBuf,
    settings: Settings,
    http: reqwest::Client,
}

impl Server {
    /// Starts a server over a new data directory.
    pub(crate) async fn start() -> Self {
        Self::start_with(Settings::default()).await
    }

    /// Starts a server over a new data directory, with these settings.
    pub(crate) async fn start_with(settings: Settings) -> Self {
        let directory = TempDir::new().unwrap();
        let data_dir = directory.path().join("data");
        Self::start_over(Arc::new(directory), data_dir, settings).await
    }

    /// Starts a server over the data directory `data` below `name` in another's scratch directory.
    pub(crate) async fn start_in(other: &Self, name: &str) -> Self {
        let data_dir = other.scratch().join(name).join("data");
        Self::start_over(Arc::clone(&other.directory), data_dir, Settings::default()).await
    }

    async fn start_over(directory: Arc<TempDir>, data_dir: PathBuf, settings: Settings) -> Self {
        let log = watch::Sender::new(String::new());
        let tls = settings.tls.then_some("127.0.0.1:0");
        let (child, Urls { plain: url, tls: tls_url }) =
            launch(&data_dir, "127.0.0.1:0", tls, &settings, &log).await;
        // A proxy of the machine's is none for loopback.
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { child, url, tls_url, log, directory, data_dir, settings, http }
    }

    /// `http://ADDRESS`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// `https://ADDRESS`, of a server with a TLS listener.
    pub(crate) fn tls_url(&self) -> &str {
        self.tls_url.as_deref().expect("a TLS listener")
    }

    /// Where it keeps its data.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// A directory beside its data that goes away with it.
    pub(crate) fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("the server runs")
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        self.log.borrow().clone()
    }

    /// Waits until it has logged `text` so many times, counted from its first start.
    pub(crate) async fn logged(&mut self, text: &str, times: usize) {
        let mut log = self.log.subscribe();
        let logged = async { drop(log.wait_for(|log| log.matches(text).count() >= times).await.unwrap()) };
        if tokio::time::timeout(PATIENCE, logged).await.is_err() {
            let status = self.child.try_wait();
            panic!("{text:?} was not logged {times} times; ended: {status:?}; the log is:\n{}", self.log());
        }
    }

    /// Kills it as a power cut would.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks it to end.
    pub(crate) fn ask_to_end(&self) {
        let pid = Pid::from_raw(i32::try_from(self.pid()).unwrap());
        kill(pid, Signal::SIGTERM).unwrap();
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("the server ends").unwrap()
    }

    /// Asks it to end and waits until it has.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        self.ask_to_end();
        self.ended().await
    }

    /// Starts it again, at the same address, over the same data. It must have ended before.
    pub(crate) async fn start_again(&mut self) {
        let address = self.url.trim_start_matches("http://").to_owned();
        let tls = self.tls_url.as_ref().map(|url| url.trim_start_matches("https://"));
        let (child, urls) = launch(&self.data_dir, &address, tls, &self.settings, &self.log).await;
        self.child = child;
        self.url = urls.plain;
        self.tls_url = urls.tls;
    }

    /// Starts it again with other settings.
    pub(crate) async fn start_again_with(&mut self, settings: Settings) {
        self.settings = settings;
        self.start_again().await;
    }

    /// Sends a request with these headers.
    pub(crate) async fn send_with(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let mut request = self.http.request(method, format!("{}{target}", self.url)).timeout(PATIENCE);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.into()).send().await.unwrap();
        Answer {
            code: answer.status().as_u16(),
            headers: answer.headers().clone(),
            body: answer.bytes().await.unwrap(),
        }
    }

    /// Sends a request as clients do.
    pub(crate) async fn send(&self, method: &str, target: &str, body: impl Into<Bytes>) -> Answer {
        self.send_with(method, target, &[("content-type", "application/json")], body).await
    }

    /// Gets something.
    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.send("GET", target, Bytes::new()).await
    }

    /// Returns tenant and ID of all locks that are held.
    pub(crate) async fn locks(&self) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let locks = self.get("/rezus/v1/locks").await.expect(200, "locks").items();
        locks.iter().map(|lock| (text(&lock["tenant"]), text(&lock["id"]))).collect()
    }

    /// Returns all versions of a tenant, oldest first.
    pub(crate) async fn versions(&self, tenant: &str) -> Vec<Value> {
        let path = format!("/rezus/v1/tenants/{tenant}/versions?intermediate=true");
        self.get(&path).await.expect(200, "versions").items()
    }
}

/// Where it listens.
#[derive(Debug)]
struct Urls {
    plain: String,
    tls: Option<String>,
}

/// Starts the program and waits until it says that it is ready.
async fn launch(
    data_dir: &Path,
    address: &str,
    tls: Option<&str>,
    settings: &Settings,
    log: &watch::Sender<String>,
) -> (Child, Urls) {
    let mut command = match settings.file_blocks {
        None => Command::new(PROGRAM),
        Some(blocks) => {
            let mut command = Command::new("/bin/sh");
            // The signal that would end it is ignored from here on, so that the write itself fails.
            let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
            command.args(["-c", &script, PROGRAM]);
            command
        }
    };
    command.arg("serve").arg("--data-dir").arg(data_dir).args(["--plain", address]);
    match tls {
        Some(address) => command.args(["--tls", address]),
        None => command.arg("--no-tls"),
    };
    if !settings.auth {
        command.arg("--no-auth");
    }
    command.env_clear().envs(settings.variables.iter().map(|(name, value)| (*name, value.as_str())));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();

    keep(BufReader::new(child.stderr.take().unwrap()).lines(), log.clone());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = async {
        let (mut plain, mut tls) = (None, None);
        while let Some(line) = lines.next_line().await.unwrap() {
            match line.strip_prefix("listening on ") {
                Some(url) if url.starts_with("https://") => tls = Some(url.to_owned()),
                Some(url) => plain = Some(url.to_owned()),
                None => {}
            }
            if line == "ready" {
                return plain.map(|plain| Urls { plain, tls });
            }
        }
        None
    };
    let urls = tokio::time::timeout(PATIENCE, ready).await.expect("the server says that it is ready");
    let Some(urls) = urls else {
        let status = child.wait().await;
        panic!("the server ended before it was ready ({status:?}):\n{}", log.borrow().as_str());
    };
    keep(lines, log.clone());
    (child, urls)
}

/// Keeps what is said from here on.
fn keep(mut lines: Lines<impl AsyncBufRead + Unpin + Send + 'static>, log: watch::Sender<String>) {
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            log.send_modify(|log| {
                log.push_str(&line);
                log.push('\n');
            });
        }
    });
}
