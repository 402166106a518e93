//! A real `node_exporter`, scraped each second; what it told becomes a day of minutes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::history::History;
use rezus_benches::{Outcome, Promise, Row, program, say, size};
use rezus_core::observed::{Exposition, ExpositionLimits};
use rezus_core::series::{Entry, Labels, NAME, Sample, TENANT, TimeSeriesSink as _};
use rezus_testkit::clock::ManualClock;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::series_samples::{MINUTE, START, at};

const EXPORTER: &str = "prometheus-node-exporter";
const ADDRESS: &str = "127.0.0.1:19137";

/// How many seconds it is scraped for; `REZUS_BENCH_SCRAPES` says otherwise.
const SCRAPES: u32 = 600;

/// Ends the exporter, however the benchmark ends.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Keeps what was scraped, and lets a day pass; says how many bytes of its file a sample has, and what else there is on disk.
pub(crate) async fn sealed(directory: &Path, scrapes: &[Vec<Entry>]) -> Outcome<(f64, Vec<Row>)> {
    if scrapes.is_empty() {
        return Ok((f64::NAN, Vec::new()));
    }
    let clock = ManualClock::at(at(START));
    let history = History::open(directory, crate::settings(), Arc::new(clock.clone()))?;
    let mut kept = 0_u32;
    let mut tail = 0;
    for (minute, entries) in (0_i64..).zip(scrapes) {
        clock.set(at(START + minute * MINUTE));
        kept += u32::try_from(history.append(entries).await?.kept)?;
        // The first tail is as long as one gets.
        if minute <= 119 {
            tail = u64::from(kept);
        }
    }
    drop(history);
    // Closed, so that logs are moved into their files.
    let tail_bytes = first_file(directory, "tail-")?;
    let history = History::open(directory, crate::settings(), Arc::new(clock.clone()))?;
    while history.tend().await?.more {}
    clock.set(at(START + 24 * 60 * MINUTE + 15 * MINUTE));
    while history.tend().await?.more {}
    let per_sample = |bytes: u64, samples: f64| Outcome::Ok(f64::from(u32::try_from(bytes)?) / samples);
    let sealed = per_sample(first_file(directory, "raw-")?, f64::from(kept))?;
    let rolled =
        per_sample(first_file(directory, "fine-")? + first_file(directory, "coarse-")?, f64::from(kept))?;
    let tail = per_sample(tail_bytes, f64::from(u32::try_from(tail)?))?;
    let row = |what: &str, figure: f64| {
        Row::alone(what, format!("{figure:.2} B"), (figure, " B/sample"), Promise::Nothing)
    };
    Ok((
        sealed,
        vec![
            row("its rollups in two tiers, for each sample", rolled),
            row("the tail until it is sealed", tail),
        ],
    ))
}

/// The size of the first file of a kind.
fn first_file(directory: &Path, kind: &str) -> Outcome<u64> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        if name.starts_with(kind) && path.extension().is_some_and(|ending| ending == "db") {
            files.push((name, entry.metadata()?.len()));
        }
    }
    files.sort();
    Ok(files.first().ok_or_else(|| format!("no file {kind}*.db"))?.1)
}

/// Scrapes; nothing where there is none to be scraped.
pub(crate) async fn scrape() -> Outcome<Vec<Vec<Entry>>> {
    let Some(binary) = program(EXPORTER) else {
        say(&format!("!! SKIPPED: there is no {EXPORTER} to scrape; install it"));
        return Ok(Vec::new());
    };
    let mut exporter = Command::new(binary);
    exporter.arg(format!("--web.listen-address={ADDRESS}")).stdout(Stdio::null()).stderr(Stdio::null());
    let _exporter = Exporter(exporter.spawn()?);
    let client = reqwest::Client::new();
    let url = format!("http://{ADDRESS}/metrics");
    for _ in 0..100 {
        if client.get(&url).send().await.is_ok() {
            break;
        }
        sleep(Duration::from_millis(100)).await;
    }
    let asked = std::env::var("REZUS_BENCH_SCRAPES").ok().and_then(|text| text.parse().ok());
    let count = size(asked.unwrap_or(SCRAPES), 5);
    say(&format!("{EXPORTER} is scraped for {count} s"));
    let mut each = interval(size(Duration::from_secs(1), Duration::from_millis(10)));
    each.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut scrapes = Vec::new();
    for minute in 0..i64::from(count) {
        each.tick().await;
        let page = client.get(&url).send().await?.error_for_status()?.bytes().await?;
        let mut entries = Vec::new();
        let mut text = Exposition::new(ExpositionLimits::DEFAULT);
        text.push(&page, |sample| {
            let own = [(NAME, sample.name), (TENANT, "prod"), ("machine", "worker-1")];
            let mut pairs: Vec<(String, String)> =
                own.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            pairs.extend(sample.labels.iter().map(|(name, value)| (name.to_owned(), value.into_owned())));
            if let Ok(labels) = Labels::new(pairs) {
                let sample = Sample { at: at(START + minute * MINUTE), value: sample.value };
                entries.push(Entry { labels, sample });
            }
        })?;
        scrapes.push(entries);
    }
    Ok(scrapes)
}
