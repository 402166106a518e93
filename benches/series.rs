//! The time series: how much comes in, what it takes in memory and on disk, and how soon it is given; beside a real Prometheus
//! with the same samples, where one is installed.
//!
//! Prometheus is spoken to over HTTP on loopback, as there is no other way to it, and what that takes is part of its figures; ours
//! are of calls.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rezus_adapters::history::{History, HistorySettings, Sync};
use rezus_adapters::ring::{Ring, RingSettings, SeriesCaps};
use rezus_benches::{Outcome, Promise, Row, cpu_time, percentile, say, size, span};
use rezus_core::series::{TimeSeries as _, TimeSeriesSink};
use rezus_testkit::clock::ManualClock;

mod series_prometheus;
mod series_samples;
mod series_scrapes;
mod series_start;

use series_prometheus::PROMETHEUS;
use series_samples::{MINUTE, START, at, entries, hour_of_one, names, week_of_some};

/// How many series come in, and how often, where it is measured how fast they do.
const SERIES: usize = 10_000;
const TICKS: i64 = 200;

/// How many series are in memory, where that is measured, and for how many minutes.
const LIVE: usize = 200_000;
const LIVE_MINUTES: i64 = 130;

/// Of how many series there is a week, of how many of them it is asked for, and how often.
const WEEK_OF: usize = 1_000;
const WEEK_ASKED: usize = 100;
const WEEK: i64 = 8 * 24 * 60;
const COLD_RUNS: usize = 9;

/// How often one series' last hour is asked for.
const HOT_RUNS: usize = 2_000;

/// What is promised: samples a second, megabytes, milliseconds, bytes a sample.
const RING: f64 = 1_000_000.0;
const DURABLE: f64 = 200_000.0;
const MEMORY: f64 = 400.0;
const HOT: f64 = 1.0;
const COLD: f64 = 50.0;
const SEALED: f64 = 2.0;

fn main() -> Outcome<()> {
    if rezus_benches::is_listing() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        match rezus_benches::child_job() {
            Some((job, directory)) => work_as_child(&job, &directory).await,
            None => measure().await,
        }
    })
}

/// What is measured of rezus and of its rival.
#[derive(Clone, Copy, Debug)]
struct Figures {
    /// Samples taken a second, durably.
    durable: f64,
    /// Memory with many live series, in MB.
    resident: f64,
    /// An hour of one series, in memory.
    hot: Duration,
    /// A week of some, in a process that has just begun.
    cold: Duration,
    /// Bytes on disk for each sample.
    disk: f64,
}

async fn measure() -> Outcome<()> {
    let scratch = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let directory = |name: &str| scratch.path().join(name);
    let (mut rows, durable) = ingest(&directory("ingest")).await?;
    let scrapes = series_scrapes::scrape().await?;
    let (disk, of_disk) = series_scrapes::sealed(&directory("scraped"), &scrapes).await?;
    let resident = megabytes(rezus_benches::ask_child(
        &job("live", size(LIVE, LIVE / 100), size(LIVE_MINUTES, 3)),
        &directory("live"),
    )?)?;
    let hot = week(&directory("week")).await?;
    let cold = cold(&directory("week"))?;
    let ours = Figures { durable, resident, hot, cold, disk };
    let theirs = series_prometheus::measure(scratch.path(), &scrapes).await?;
    if theirs.is_none() {
        say(&format!("!! SKIPPED: there is no {PROMETHEUS} to compare with; install it"));
    }
    rows.extend(compare(ours, theirs, scrapes.len()));
    rows.extend(of_disk);
    rows.extend(series_start::start(&directory("expired")).await?);
    rezus_benches::print("series", &rows);
    Ok(())
}

/// Our figures, with what is promised of them, and how they compare.
fn compare(ours: Figures, theirs: Option<Figures>, scrapes: usize) -> Vec<Row> {
    let row = |what: &str, figure: fn(Figures) -> f64, unit: &'static str, promise| {
        let (ours, theirs) = (figure(ours), theirs.map(figure));
        let show = |figure: f64| format!("{figure:.2}{unit}");
        let rival = theirs.map_or(("-", "-".to_owned()), |theirs| (PROMETHEUS, show(theirs)));
        let ratio = theirs.map(|theirs| format!(" ({:.2}x of {PROMETHEUS}'s)", ours / theirs));
        let work = format!("{what}{}", ratio.unwrap_or_default());
        Row::figures(&work, show(ours), rival, (ours, unit), promise)
    };
    let live = format!("{} live series with labels of 150 bytes: resident", size(LIVE, LIVE / 100));
    let week = format!("{} series, 7 days at 1 h, cold: p50", size(WEEK_ASKED, 10));
    let mut rows = vec![
        row(
            "samples taken a second, durably, of one core's time",
            |it| it.durable / 1e6,
            " M/s",
            Promise::AtLeast(DURABLE / 1e6),
        ),
        row(&live, |it| it.resident, " MB", Promise::AtMost(MEMORY)),
        row("one series, one hour, hot: p50", |it| it.hot.as_secs_f64() * 1e3, " ms", Promise::AtMost(HOT)),
        row(&week, |it| it.cold.as_secs_f64() * 1e3, " ms", Promise::AtMost(COLD)),
    ];
    if scrapes > 0 {
        let what = format!("a day's file of {scrapes} scrapes of node_exporter, labels and all");
        rows.push(row(&what, |it| it.disk, " B/sample", Promise::AtMost(SEALED)));
    }
    rows
}

/// KiB as MB.
pub(crate) fn megabytes(kib: u64) -> Outcome<f64> {
    Ok(f64::from(u32::try_from(kib)?) * 1024.0 / 1e6)
}

pub(crate) fn settings() -> HistorySettings {
    let caps = SeriesCaps { per_tenant: LIVE, total: 2 * LIVE };
    HistorySettings { ring: RingSettings { caps, ..RingSettings::default() }, ..HistorySettings::default() }
}

/// Measures how many samples a second a sink takes, by the wall's clock and by the processor's, a scrape of all series at a time.
async fn rate(sink: &dyn TimeSeriesSink, clock: &ManualClock) -> Outcome<(f64, f64)> {
    let (names, ticks) = (names(size(SERIES, 100)), size(TICKS, 3));
    let (mut wall, mut processor, mut taken) = (Duration::ZERO, Duration::ZERO, 0_u32);
    for tick in 0..ticks {
        clock.set(at(START + tick * MINUTE));
        let entries = entries(&names, tick);
        let (start, before) = (Instant::now(), cpu_time(std::process::id())?);
        let kept = sink.append(&entries).await?.kept;
        // The first one makes the series.
        if tick > 0 {
            wall += start.elapsed();
            processor += cpu_time(std::process::id())?.saturating_sub(before);
            taken += u32::try_from(kept)?;
        }
    }
    let rate = |time: Duration| f64::from(taken) / time.as_secs_f64().max(1e-3);
    Ok((rate(wall), rate(processor)))
}

/// How many samples a second are taken: rows of what is in memory and of what survives a loss of power, and the figure of
/// what survives the process.
async fn ingest(directory: &Path) -> Outcome<(Vec<Row>, f64)> {
    let clock = ManualClock::default();
    let row = |what: &str, rate: f64, promise| {
        let work = format!("samples taken a second, {} a call, {what}", size(SERIES, 100));
        Row::alone(&work, format!("{:.2} M/s", rate / 1e6), (rate, "/s"), promise)
    };
    let ring = Ring::new(settings().ring, Arc::new(clock.clone()));
    let mut rows = vec![row("in memory", rate(&ring, &clock).await?.0, Promise::AtLeast(RING))];
    let durable = async |sync| {
        let settings = HistorySettings { sync, ..settings() };
        let history = History::open(directory, settings, Arc::new(clock.clone()))?;
        let (wall, processor) = rate(&history, &clock).await?;
        drop(history);
        std::fs::remove_dir_all(directory)?;
        Outcome::Ok(wall.min(processor))
    };
    let process = durable(Sync::Process).await?;
    rows.push(row("safe from a loss of power", durable(Sync::Power).await?, Promise::Nothing));
    Ok((rows, process))
}

/// Makes the week, and asks for what is in memory of it.
async fn week(directory: &Path) -> Outcome<Duration> {
    let clock = ManualClock::at(at(START));
    let history = History::open(directory, settings(), Arc::new(clock.clone()))?;
    let (names, minutes) = (names(size(WEEK_OF, 100)), size(WEEK, 2 * 24 * 60));
    for minute in (0..minutes).step_by(10) {
        clock.set(at(START + (minute + 9) * MINUTE));
        for minute in minute..minute + 10 {
            history.append(&entries(&names, minute)).await?;
        }
        while history.tend().await?.more {}
    }
    let mut times = Vec::new();
    for run in 0..size(HOT_RUNS, 10) {
        let name = &names[run % names.len()];
        let start = Instant::now();
        let found = history.select(&hour_of_one(name, minutes - 1)).await?;
        times.push(start.elapsed());
        if found.len() != 1 || found[0].samples.len() != 61 {
            return Err(format!("{} series instead of an hour of one", found.len()).into());
        }
    }
    say(&format!("one series, one hour, hot: p99 {}", span(percentile(&times, 99))));
    Ok(percentile(&times, 50))
}

/// Asks for the week in a process that has just begun.
fn cold(directory: &Path) -> Outcome<Duration> {
    let mut times = Vec::new();
    for _ in 0..size(COLD_RUNS, 1) {
        times.push(Duration::from_micros(rezus_benches::ask_child(
            &job("week", size(WEEK_ASKED, 10), size(WEEK, 2 * 24 * 60)),
            directory,
        )?));
    }
    Ok(percentile(&times, 50))
}

/// A job for a process of its own, which is not told whether it is a measurement.
fn job(name: &str, series: usize, minutes: i64) -> String {
    format!("{name} {series} {minutes}")
}

async fn work_as_child(job: &str, directory: &Path) -> Outcome<()> {
    let words: Vec<&str> = job.split(' ').collect();
    let [name, series, minutes] = words.as_slice() else { return Err(format!("no such job: {job}").into()) };
    let (series, minutes): (usize, i64) = (series.parse()?, minutes.parse()?);
    let answer = match *name {
        "live" => live(directory, series, minutes).await?,
        "week" => cold_week(directory, series, minutes).await?,
        _ => return Err(format!("no such job: {job}").into()),
    };
    say(&answer.to_string());
    Ok(())
}

/// Takes minutes of many series; returns what is resident then, in KiB.
async fn live(directory: &Path, series: usize, minutes: i64) -> Outcome<u64> {
    let clock = ManualClock::at(at(START));
    let history = History::open(directory, settings(), Arc::new(clock.clone()))?;
    let names = names(series);
    for minute in 0..minutes {
        clock.set(at(START + minute * MINUTE));
        // As they come: machine by machine.
        for names in names.chunks(1_000) {
            history.append(&entries(names, minute)).await?;
        }
    }
    drop(history.tend().await?);
    rezus_benches::vm_kib(std::process::id(), "VmRSS")
}

/// Opens what is there, and asks for a week of it; returns how long that took, in microseconds.
async fn cold_week(directory: &Path, series: usize, minutes: i64) -> Outcome<u64> {
    let clock = ManualClock::at(at(START + (minutes - 1) * MINUTE));
    let history = History::open(directory, settings(), Arc::new(clock))?;
    let start = Instant::now();
    let found = history.select(&week_of_some(series, minutes - 1)).await?;
    let took = start.elapsed();
    let given: usize = found.iter().map(|series| series.rolled.len()).sum();
    if found.len() != series || given == 0 {
        return Err(format!("{} series, {given} rollups", found.len()).into());
    }
    Ok(u64::try_from(took.as_micros())?)
}
