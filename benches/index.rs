//! Indexing a state of 50 MB: all that is derived from a body but its digests, against readers that derive less.

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use rezus_benches::{Contest, Outcome, Promise, Row};
use rezus_core::declared::document;
use rezus_testkit::strategy::{large_state, large_state_with_secrets};
use serde::de::IgnoredAny;

/// How many of the instances have a marked secret, where some have.
const SECRETS: usize = 300;

/// The rounds of the contest, and how often each reader runs in one.
const ROUNDS: usize = 9;
const RUNS: usize = 5;

const PASS: &str = "serde_json IgnoredAny";
const TREE: &str = "serde_json Value";

fn main() -> Outcome<()> {
    if let Some((job, file)) = rezus_benches::child_job() {
        return work_as_child(&job, &file);
    }
    let instances = rezus_benches::size(20_000, 500);
    let plain = large_state(instances, 1);
    let marked = large_state_with_secrets(instances, 1, SECRETS);
    let megabytes = |state: &[u8]| format!("{:.1} MB, {instances} instances", decimal(state.len()) / 1e6);

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("index");
    group.sample_size(20).throughput(Throughput::Bytes(u64::try_from(plain.len())?));
    group.bench_function("rezus", |bencher| bencher.iter(|| document::read(&plain).expect("a state")));
    group.bench_function("rezus, 300 secrets", |bencher| {
        bencher.iter(|| document::read(&marked).expect("a state"));
    });
    group.bench_function(PASS, |bencher| bencher.iter(|| pass(&plain).expect("JSON")));
    group.bench_function(TREE, |bencher| bencher.iter(|| tree(&plain).expect("JSON")));
    group.finish();
    criterion.final_summary();
    if rezus_benches::is_listing() {
        return Ok(());
    }

    let mut rows = Vec::new();
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    for (state, secrets) in [(&plain, ""), (&marked, ", 300 of them secret")] {
        let file = directory.path().join("state.json");
        std::fs::write(&file, state)?;
        let mut contest = Contest::default();
        let [ours, pass, tree] = ["index", "pass", "tree"].map(|job| {
            let file = file.clone();
            contest.add(move || Ok(Duration::from_nanos(rezus_benches::ask_child(job, &file)?)))
        });
        contest.run(rezus_benches::size(ROUNDS, 1))?;
        let work = format!("index {}{secrets}", megabytes(state));
        // Looking for secrets in every string comes on top of the pass: of a state that has some, that ratio is shown.
        let pass_promise = if secrets.is_empty() { Promise::AtMost(1.5) } else { Promise::Nothing };
        for (rival, name, promise) in [(pass, PASS, pass_promise), (tree, TREE, Promise::AtLeast(3.0))] {
            let (time, its) = (contest.median(ours), contest.median(rival));
            rows.push(Row::times(&work, time, name, its, contest.ratio(ours, rival), promise));
        }
        let peak = |job: &str| -> Outcome<f64> {
            let bytes = usize::try_from(rezus_benches::ask_child(job, &file)?)? * 1024;
            Ok(decimal(bytes) / decimal(state.len()))
        };
        let (ours, its) = (peak("memory of index")?, peak("memory of tree")?);
        let bodies = |value: f64| format!("{value:.2} bodies");
        let rival = (TREE, bodies(its));
        let work = "peak memory of that, body included";
        rows.push(Row::figures(work, bodies(ours), rival, (ours / its, "x"), Promise::Nothing));
    }
    rezus_benches::print("index", &rows);
    Ok(())
}

/// Validates and keeps nothing.
fn pass(state: &[u8]) -> Outcome<IgnoredAny> {
    Ok(serde_json::from_slice(state)?)
}

/// Makes a tree of all.
fn tree(state: &[u8]) -> Outcome<serde_json::Value> {
    Ok(serde_json::from_slice(state)?)
}

/// Does one job over the state in a file. Each reader has a process of its own: the allocator would else make one pay
/// for putting in order what another one freed.
fn work_as_child(job: &str, file: &Path) -> Outcome<()> {
    let state = std::fs::read(file)?;
    match job {
        "index" => answer_time(|| Ok(document::read(&state)?)),
        "pass" => answer_time(|| pass(&state)),
        "tree" => answer_time(|| tree(&state)),
        "memory of index" => {
            drop(std::hint::black_box(document::read(&state)?));
            rezus_benches::answer_peak()
        }
        "memory of tree" => {
            drop(std::hint::black_box(tree(&state)?));
            rezus_benches::answer_peak()
        }
        _ => Err(format!("{job} is no job").into()),
    }
}

/// Says how many nanoseconds a reader takes: the median of some runs after one that warms up.
fn answer_time<T>(read: impl Fn() -> Outcome<T>) -> Outcome<()> {
    drop(read()?);
    let times = (0..RUNS).map(|_| rezus_benches::timed(&read)).collect::<Outcome<Vec<_>>>()?;
    rezus_benches::say(&rezus_benches::percentile(&times, 50).as_nanos().to_string());
    Ok(())
}

/// Sizes here fit 32 bits.
fn decimal(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
