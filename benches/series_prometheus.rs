//! A real Prometheus, whose samples come by remote write as ours come by `append`: the same ones, as many at a time.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prost::Message;
use rezus_benches::{Outcome, percentile, program, size, vm_kib};
use rezus_core::series::{Entry, Labels, NAME, TENANT};
use serde_json::Value;
use tokio::time::sleep;

use crate::series_samples::{MINUTE, START, entries, names};
use crate::{
    COLD_RUNS, Figures, HOT_RUNS, LIVE, LIVE_MINUTES, SERIES, TICKS, WEEK, WEEK_ASKED, WEEK_OF, megabytes,
};

pub(crate) const PROMETHEUS: &str = "prometheus";
const ADDRESS: &str = "127.0.0.1:19138";

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp: i64,
}

/// One that is running; it ends with the benchmark.
struct Prometheus {
    child: Child,
    client: reqwest::Client,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Measures all of it, where there is one.
pub(crate) async fn measure(scratch: &Path, scrapes: &[Vec<Entry>]) -> Outcome<Option<Figures>> {
    let Some(binary) = program(PROMETHEUS) else { return Ok(None) };
    let binary = binary.as_path();
    let directory = |name: &str| scratch.join(format!("prometheus-{name}"));
    let (hot, cold) = week(binary, &directory("week")).await?;
    let figures = Figures {
        durable: durable(binary, &directory("ingest")).await?,
        resident: live(binary, &directory("live")).await?,
        hot,
        cold,
        disk: disk(binary, &directory("disk"), scrapes).await?,
    };
    Ok(Some(figures))
}

async fn durable(binary: &Path, directory: &Path) -> Outcome<f64> {
    let prometheus = Prometheus::start(binary, directory).await?;
    let names = names(size(SERIES, 100));
    let (mut took, mut taken) = (Duration::ZERO, 0_u32);
    for tick in 0..size(TICKS, 3) {
        let body = body(&entries(&names, tick))?;
        let start = Instant::now();
        prometheus.write(body).await?;
        if tick > 0 {
            took += start.elapsed();
            taken += u32::try_from(names.len())?;
        }
    }
    Ok(f64::from(taken) / took.as_secs_f64())
}

async fn live(binary: &Path, directory: &Path) -> Outcome<f64> {
    let prometheus = Prometheus::start(binary, directory).await?;
    let names = names(size(LIVE, LIVE / 100));
    for minute in 0..size(LIVE_MINUTES, 3) {
        for names in names.chunks(10_000) {
            prometheus.write(body(&entries(names, minute))?).await?;
        }
    }
    megabytes(vm_kib(prometheus.child.id(), "VmRSS")?)
}

/// How long one hour of one series takes while it is in memory, and a week of some series after a start.
async fn week(binary: &Path, directory: &Path) -> Outcome<(Duration, Duration)> {
    let prometheus = Prometheus::start(binary, directory).await?;
    let (names, minutes) = (names(size(WEEK_OF, 100)), size(WEEK, 2 * 24 * 60));
    for minute in (0..minutes).step_by(10) {
        let all: Vec<Entry> = (minute..minute + 10).flat_map(|minute| entries(&names, minute)).collect();
        prometheus.write(body(&all)?).await?;
    }
    let last = (START + (minutes - 1) * MINUTE) / 1_000;
    let mut hot = Vec::new();
    for run in 0..size(HOT_RUNS, 10) {
        let query = selector(&names[run % names.len()]);
        let (took, found) = prometheus.range(&query, last - 3_600, last, 60).await?;
        if found != 1 {
            return Err(format!("{found} series instead of one").into());
        }
        hot.push(took);
    }
    let mut prometheus = Some(prometheus);
    let mut cold = Vec::new();
    let asked = size(WEEK_ASKED, 10);
    let metrics: Vec<String> = (0..asked).map(|nth| format!("{nth:02}")).collect();
    let query = format!(
        "{{__name__=~\"node_example_metric_0({})_.*\",machine=~\"prod-worker-00000.*\"}}",
        metrics.join("|")
    );
    for _ in 0..size(COLD_RUNS, 1) {
        drop(prometheus.take());
        let anew = Prometheus::start(binary, directory).await?;
        let (took, found) = anew.range(&query, last - 7 * 86_400, last, 3_600).await?;
        if found != asked {
            return Err(format!("{found} series instead of {asked}").into());
        }
        cold.push(took);
        prometheus = Some(anew);
    }
    Ok((percentile(&hot, 50), percentile(&cold, 50)))
}

/// Bytes on disk for each sample, of a block.
async fn disk(binary: &Path, directory: &Path, scrapes: &[Vec<Entry>]) -> Outcome<f64> {
    let prometheus = Prometheus::start(binary, directory).await?;
    let mut samples = 0_u32;
    for entries in scrapes {
        prometheus.write(body(entries)?).await?;
        samples += u32::try_from(entries.len())?;
    }
    if samples == 0 {
        return Ok(f64::NAN);
    }
    let url = format!("http://{ADDRESS}/api/v1/admin/tsdb/snapshot");
    let answer = prometheus.client.post(url).send().await?.error_for_status()?.bytes().await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let name = answer["data"]["name"].as_str().ok_or("a snapshot without a name")?;
    let bytes = bytes(&directory.join("snapshots").join(name))?;
    Ok(f64::from(u32::try_from(bytes)?) / f64::from(samples))
}

fn bytes(path: &Path) -> Outcome<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let file = entry.metadata()?;
        sum += if file.is_dir() { bytes(&entry.path())? } else { file.len() };
    }
    Ok(sum)
}

fn selector(labels: &Labels) -> String {
    let [name, tenant, machine] = [NAME, TENANT, "machine"].map(|name| labels.get(name));
    format!("{name}{{tenant=\"{tenant}\",machine=\"{machine}\"}}")
}

fn body(entries: &[Entry]) -> Outcome<Vec<u8>> {
    let series = entries.iter().map(|Entry { labels, sample }| TimeSeries {
        labels: labels
            .iter()
            .map(|(name, value)| Label { name: name.to_owned(), value: value.to_owned() })
            .collect(),
        samples: vec![Sample { value: sample.value, timestamp: sample.at.as_millis() }],
    });
    let request = WriteRequest { series: series.collect() };
    Ok(snap::raw::Encoder::new().compress_vec(&request.encode_to_vec())?)
}

impl Prometheus {
    async fn start(binary: &Path, directory: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(directory)?;
        let config: PathBuf = directory.with_extension("yml");
        std::fs::write(&config, "global: {}\n")?;
        let mut path = std::ffi::OsString::from("--storage.tsdb.path=");
        path.push(directory);
        let mut file = std::ffi::OsString::from("--config.file=");
        file.push(&config);
        let child = Command::new(binary)
            .args([file, path])
            .arg(format!("--web.listen-address={ADDRESS}"))
            .args([
                "--web.enable-remote-write-receiver",
                "--web.enable-admin-api",
                "--storage.tsdb.retention.time=10y",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let prometheus = Self { child, client: reqwest::Client::new() };
        for _ in 0..600 {
            let ready = prometheus.client.get(format!("http://{ADDRESS}/-/ready")).send().await;
            if ready.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(prometheus);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err("prometheus does not begin to serve".into())
    }

    async fn write(&self, body: Vec<u8>) -> Outcome<()> {
        let request = self
            .client
            .post(format!("http://{ADDRESS}/api/v1/write"))
            .header("Content-Encoding", "snappy")
            .header("Content-Type", "application/x-protobuf")
            .header("X-Prometheus-Remote-Write-Version", "0.1.0");
        let answer = request.body(body).send().await?;
        if answer.status().is_success() {
            return Ok(());
        }
        Err(format!("prometheus takes no samples: {}", answer.text().await?).into())
    }

    /// Asks for a range by seconds; returns how long that took, and how many series came.
    async fn range(&self, query: &str, from: i64, to: i64, step: i64) -> Outcome<(Duration, usize)> {
        let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
        let url =
            format!("http://{ADDRESS}/api/v1/query_range?query={query}&start={from}&end={to}&step={step}");
        let start = Instant::now();
        let answer = self.client.get(url).send().await?.bytes().await?;
        let took = start.elapsed();
        let answer: Value = serde_json::from_slice(&answer)?;
        Ok((took, answer["data"]["result"].as_array().ok_or("no result")?.len()))
    }
}
