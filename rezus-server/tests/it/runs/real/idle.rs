//! A log followed through a proxy that ends what is silent for too long.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::task::JoinHandle;

use super::lab::Lab;
use super::scripted::ScriptedTofu;
use crate::access::admin;
use crate::runs::logs::bytes_of;
use crate::server::PROGRAM;
use crate::tools;

/// How long a connection may be silent, and how long the program is: of a drill in full what proxies come with.
const FULL: (Duration, Duration) = (Duration::from_mins(1), Duration::from_secs(125));
const SHORT: (Duration, Duration) = (Duration::from_secs(20), Duration::from_secs(45));

/// Passes on what comes, and ends connections on which nothing came either way for a while.
struct Proxy {
    url: String,
    ended: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    async fn start(target: String, silence: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let ended = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&ended);
        let task = tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let (to, counted) = (TcpStream::connect(&target).await.unwrap(), Arc::clone(&counted));
                tokio::spawn(async move {
                    if pass(from, to, silence).await {
                        counted.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        Self { url, ended, task }
    }

    fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }
}

/// Passes bytes on, and tells whether it ended that because there were none.
async fn pass(mut from: TcpStream, mut to: TcpStream, silence: Duration) -> bool {
    let (mut asked, mut answered) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let piece = async {
            tokio::select! {
                read = from.read(&mut asked) => (read.unwrap_or(0), true),
                read = to.read(&mut answered) => (read.unwrap_or(0), false),
            }
        };
        let Ok((length, is_asked)) = tokio::time::timeout(silence, piece).await else { return true };
        let passed = match (length, is_asked) {
            (0, _) => return false,
            (_, true) => to.write_all(&asked[..length]).await,
            (_, false) => from.write_all(&answered[..length]).await,
        };
        if passed.is_err() {
            return false;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_is_followed_through_a_proxy_that_ends_what_is_silent() {
    let (limit, silence) = if tools::drills_are_full() { FULL } else { SHORT };
    let tofu = ScriptedTofu::new();
    // What the program says comes as soon as somebody writes it here.
    let pipe = tofu.folder().join("said");
    let mkfifo = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(mkfifo.success());
    tofu.plans(b"", "", "{}");
    let program = tofu.program();
    let lab = Lab::over("idle", "# nothing\n", &[], &["--binary", program.to_str().unwrap()]).await;
    let run = lab.run("plan", &[]).await.run();
    lab.said(&run, "Initializing").await;
    let server = lab.server.url().strip_prefix("http://").unwrap().to_owned();
    // One for each of the two who follow, so that it is known whose connection was ended.
    let (of_events, of_command) =
        (Proxy::start(server.clone(), limit).await, Proxy::start(server, limit).await);

    let path = format!("/apis/rezuscloud.io/v1alpha1/namespaces/{}/runs/{run}/log", lab.tenant);
    let token = lab.server.scratch().join("token");
    std::fs::write(&token, admin::token(lab.server.data_dir())).unwrap();
    let mut events = Command::new("curl");
    events.args([
        "--silent",
        "--show-error",
        "--no-buffer",
        "--noproxy",
        "*",
        "-H",
        "accept: text/event-stream",
    ]);
    events.arg("-H").arg(format!("authorization: Bearer {}", std::fs::read_to_string(&token).unwrap()));
    events.arg(format!("{}{path}", of_events.url));
    let mut command = Command::new(PROGRAM);
    command.args(["run", "logs", &lab.tenant, &run, "--follow", "--server", &of_command.url]);
    command.arg("--token-file").arg(&token);
    let [events, command] = [events, command].map(|mut command| {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().unwrap()
    });

    // This is the time that is tried.
    tokio::time::sleep(silence).await;
    assert!(of_command.ended() > 0, "nothing was ended");
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "the rest\n")).await.unwrap().unwrap();
    lab.ended(&run).await;
    let (events, command) =
        (events.wait_with_output().await.unwrap(), command.wait_with_output().await.unwrap());
    let stored = lab.log(&run).await.unwrap();
    assert!(stored.contains("Initializing") && stored.contains("the rest"), "{stored}");
    assert!(events.status.success() && command.status.success(), "{events:?} {command:?}");
    assert_eq!(of_events.ended(), 0, "events are never silent for so long");
    let (told, _, is_over) = bytes_of(&events.stdout);
    assert_eq!((String::from_utf8(told).unwrap(), is_over), (stored.clone(), true));
    assert_eq!(String::from_utf8(command.stdout).unwrap(), stored);
}
