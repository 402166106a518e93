//! A real Prometheus that scrapes nothing: what it has was written to it.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use prost::Message;
use rezus_core::series::Entry;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::tools;

/// It is ready in less, or never.
const PATIENCE: Duration = Duration::from_secs(30);

/// A Prometheus on loopback, which ends with this.
pub(super) struct Prometheus {
    url: String,
    http: reqwest::Client,
    #[expect(dead_code, reason = "it ends with its handle")]
    child: Child,
    #[expect(dead_code, reason = "its data goes away with it")]
    directory: TempDir,
}

/// Remote write, version 1.
#[derive(Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

impl Prometheus {
    /// Starts the one that is installed; says loudly what is not tried where none is.
    pub(super) async fn start(untried: &str) -> Option<Self> {
        let Some(program) = tools::find("prometheus") else {
            tools::missing("prometheus", untried);
            return None;
        };
        let directory = TempDir::new().unwrap();
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        std::fs::write(directory.path().join("prometheus.yml"), "scrape_configs: []\n").unwrap();
        // It cannot tell which free port it took, so one is found for it; somebody else may be faster.
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
            let mut child = launch(&program, directory.path(), &address);
            let url = format!("http://{address}");
            if is_ready(&http, &url, &mut child).await {
                return Some(Self { url, http, child, directory });
            }
        }
        panic!("prometheus does not start");
    }

    /// Which it is.
    pub(super) async fn version(&self) -> String {
        let (_, build) = self.get("/api/v1/status/buildinfo").await;
        build["data"]["version"].as_str().unwrap().to_owned()
    }

    /// Writes samples, those of each series in the order of time.
    pub(super) async fn write(&self, entries: &[Entry]) {
        let mut timeseries: Vec<TimeSeries> = Vec::new();
        let mut entries: Vec<&Entry> = entries.iter().collect();
        entries.sort_by(|a, b| (&a.labels, a.sample.at).cmp(&(&b.labels, b.sample.at)));
        for series in entries.chunk_by(|a, b| a.labels == b.labels) {
            let label =
                |(name, value): (&str, &str)| Label { name: name.to_owned(), value: value.to_owned() };
            let sample =
                |entry: &&Entry| Sample { value: entry.sample.value, timestamp: entry.sample.at.as_millis() };
            timeseries.push(TimeSeries {
                labels: series[0].labels.iter().map(label).collect(),
                samples: series.iter().map(sample).collect(),
            });
        }
        let body = WriteRequest { timeseries }.encode_to_vec();
        let body = snap::raw::Encoder::new().compress_vec(&body).unwrap();
        let request = self.http.post(format!("{}/api/v1/write", self.url)).body(body);
        let request = request
            .header("content-encoding", "snappy")
            .header("content-type", "application/x-protobuf")
            .header("x-prometheus-remote-write-version", "0.1.0");
        let answer = request.send().await.unwrap();
        let status = answer.status();
        assert!(status.is_success(), "{status}: {}", answer.text().await.unwrap());
    }

    /// Asks for something; returns the code and the answer.
    pub(super) async fn get(&self, target: &str) -> (u16, Value) {
        let answer = self.http.get(format!("{}{target}", self.url)).send().await.unwrap();
        let code = answer.status().as_u16();
        (code, answer.json().await.unwrap())
    }
}

/// Waits until it answers, or has ended.
async fn is_ready(http: &reqwest::Client, url: &str, child: &mut Child) -> bool {
    let ready = async {
        loop {
            let answer = http.get(format!("{url}/-/ready")).send().await;
            if answer.is_ok_and(|answer| answer.status() == 200) {
                return true;
            }
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ready).await.expect("prometheus is ready in time")
}

fn launch(program: &Path, directory: &Path, address: &str) -> Child {
    let mut command = Command::new(program);
    command
        .arg(format!("--config.file={}", directory.join("prometheus.yml").display()))
        .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
        .arg(format!("--web.listen-address={address}"))
        .args(["--web.enable-remote-write-receiver", "--log.level=error"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    command.spawn().unwrap()
}
