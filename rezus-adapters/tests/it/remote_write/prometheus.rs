//! A real Prometheus on loopback that scrapes nothing and takes what is written to it.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rezus_core::base::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::PATIENCE;

pub(super) struct Prometheus {
    child: Child,
    port: u16,
    directory: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Prometheus {
    /// Starts one; nothing where it is not installed, which is said loudly, and fails where everything must be tried.
    pub(super) async fn start() -> Option<Self> {
        let is_there =
            Command::new("prometheus").arg("--version").output().is_ok_and(|it| it.status.success());
        if !is_there {
            let said = "NOT TRIED: remote write to a real Prometheus: prometheus is not installed";
            drop(writeln!(std::io::stderr(), "{said}"));
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{said}");
            return None;
        }
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("p.yml"), "global: {}\n").unwrap();
        // Free when it is looked for, and nobody else's soon after.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = launch(&directory, port);
        let prometheus = Self { child, port, directory };
        prometheus.ready().await;
        Some(prometheus)
    }

    pub(super) fn write_url(&self) -> String {
        format!("http://127.0.0.1:{}/api/v1/write", self.port)
    }

    pub(super) fn stop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }

    pub(super) async fn start_again(&mut self) {
        self.child = launch(&self.directory, self.port);
        self.ready().await;
    }

    async fn ready(&self) {
        let ready = async {
            while !self.get("/-/ready").await.is_some_and(|answer| answer.contains(" 200 ")) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, ready).await.expect("Prometheus becomes ready");
    }

    /// The samples of the only series that a selector has, of so many seconds before a time: when, in milliseconds, and what.
    pub(super) async fn samples(&self, selector: &str, until: Timestamp, seconds: u32) -> Vec<(i64, f64)> {
        let found = self.query(&format!("{selector}[{seconds}s]"), until).await;
        let [only] = found.as_array().unwrap().as_slice() else { panic!("{selector}: {found}") };
        let sample = |pair: &Value| {
            let seconds = pair[0].to_string();
            let millis = seconds.parse::<f64>().unwrap() * 1_000.0;
            let at: i64 = format!("{millis:.0}").parse().unwrap();
            (at, number(&pair[1]))
        };
        only["values"].as_array().unwrap().iter().map(sample).collect()
    }

    /// The value of an expression at a time; nothing where it has none.
    pub(super) async fn instant(&self, expression: &str, at: Timestamp) -> Option<f64> {
        let found = self.query(expression, at).await;
        found.as_array().unwrap().first().map(|series| number(&series["value"][1]))
    }

    async fn query(&self, expression: &str, at: Timestamp) -> Value {
        let mut encoded = String::new();
        for byte in expression.bytes() {
            std::fmt::Write::write_fmt(&mut encoded, format_args!("%{byte:02X}")).unwrap();
        }
        let path = format!("/api/v1/query?time={}&query={encoded}", at.as_millis() / 1_000);
        let answer = self.get(&path).await.expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        assert_eq!(body["status"], "success", "{body}");
        body["data"]["result"].clone()
    }

    async fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        Some(answer)
    }
}

/// `+Inf`, `-Inf` and `NaN` are what they say.
fn number(value: &Value) -> f64 {
    value.as_str().unwrap().trim_start_matches('+').parse().unwrap()
}

fn launch(directory: &TempDir, port: u16) -> Child {
    let path = |name: &str| directory.path().join(name).display().to_string();
    Command::new("prometheus")
        .args([
            format!("--config.file={}", path("p.yml")),
            format!("--storage.tsdb.path={}", path("data")),
            format!("--web.listen-address=127.0.0.1:{port}"),
            "--web.enable-remote-write-receiver".to_owned(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}
