//! A POST of 50 MB from body to durable: digests, validation, index, compression and commit, against a commit of the
//! same bytes as they are.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, SamplingMode, Throughput};
use rezus_adapters::clock::SystemClock;
use rezus_adapters::sqlite::SqliteStore;
use rezus_benches::{Contest, Outcome, Promise, Row};
use rezus_core::base::TenantName;
use rezus_core::declared::backend::{Caller, Ingested, StateBackend, ingest};
use rezus_core::declared::compute::Inline;
use rezus_core::declared::mapping::{Mappings, MappingsInForce};
use rezus_testkit::strategy::large_state;
use rusqlite::Connection;
use tokio::runtime::Runtime;

/// The rounds of the contest.
const ROUNDS: usize = 11;

const RIVAL: &str = "raw body, one SQLite blob";

fn main() -> Outcome<()> {
    if let Some((job, file)) = rezus_benches::child_job() {
        return work_as_child(&job, &file);
    }
    let large = State::new(rezus_benches::size(20_000, 500));
    let small = State::new(80);
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;

    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("post");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).throughput(Throughput::Bytes(large.bytes()?));
    let mut backend = Backend::open(&directory.path().join("criterion.db"))?;
    let mut blobs = Blobs::open(&directory.path().join("criterion-rival.db"))?;
    group.bench_function("rezus", |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| backend.post(&large).expect("a write")).sum());
    });
    group.bench_function(RIVAL, |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| blobs.post(&large).expect("a write")).sum());
    });
    group.finish();
    criterion.final_summary();
    if rezus_benches::is_listing() {
        return Ok(());
    }

    let mut rows = Vec::new();
    for (state, promise) in [(&large, Promise::AtMost(1.0)), (&small, Promise::Nothing)] {
        let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
        let mut backend = Backend::open(&directory.path().join("rezus.db"))?;
        let mut blobs = Blobs::open(&directory.path().join("rival.db"))?;
        let mappings = Mappings::built_in();
        let mut contest = Contest::default();
        let ours = contest.add(|| backend.post(state));
        let rival = contest.add(|| blobs.post(state));
        let ingest = contest.add(|| rezus_benches::timed(|| Ok(ingest(state.body(1)?, None, &mappings)?)));
        contest.run(rezus_benches::size(ROUNDS, 1))?;
        let work = format!("POST {}", state.size());
        let (time, its) = (contest.median(ours), contest.median(rival));
        rows.push(Row::times(&work, time, RIVAL, its, contest.ratio(ours, rival), promise));
        let (part, ratio) = (contest.median(ingest), contest.ratio(ingest, ours));
        rows.push(Row::times(
            "of that, digests and index",
            part,
            "all of the POST",
            time,
            ratio,
            Promise::Nothing,
        ));
    }
    let file = directory.path().join("state.json");
    std::fs::write(&file, &large.template)?;
    for (job, what) in
        [("ingest", "peak memory of digests and index"), ("post", "peak memory of the whole POST")]
    {
        let peak = rezus_benches::ask_child(job, &file)?;
        let bodies = decimal(peak)? * 1024.0 / decimal(large.bytes()?)?;
        let figure = format!("{:.0} MB", decimal(peak)? * 1024.0 / 1e6);
        let body = ("the body", large.size());
        rows.push(Row::figures(what, figure, body, (bodies, "x"), Promise::AtMost(4.0)));
    }
    rezus_benches::print("post", &rows);
    Ok(())
}

/// A state of which each body is another version.
struct State {
    template: Vec<u8>,
}

impl State {
    fn new(instances: usize) -> Self {
        Self { template: large_state(instances, 1) }
    }

    fn body(&self, serial: u64) -> Outcome<Bytes> {
        Ok(rezus_benches::numbered(&self.template, serial)?.into())
    }

    fn bytes(&self) -> Outcome<u64> {
        Ok(u64::try_from(self.template.len())?)
    }

    fn size(&self) -> String {
        let kilobytes = self.template.len() / 1000;
        if kilobytes < 1000 { format!("{kilobytes} kB") } else { format!("{} MB", kilobytes / 1000) }
    }
}

/// The state backend over a file.
struct Backend {
    runtime: Runtime,
    rules: StateBackend,
    mappings: Mappings,
    tenant: TenantName,
    caller: Caller,
    serial: u64,
}

impl Backend {
    fn open(file: &Path) -> Outcome<Self> {
        let (store, mappings) = (SqliteStore::open(file)?, Mappings::built_in());
        Ok(Self {
            runtime: Runtime::new()?,
            rules: StateBackend::new(
                Arc::new(store),
                Arc::new(SystemClock),
                Arc::new(Inline),
                MappingsInForce::new(mappings.clone()),
            ),
            mappings,
            tenant: TenantName::parse("large")?,
            caller: Caller { name: "bench".to_owned(), may_break_locks: false, may_create_tenants: true },
            serial: 10,
        })
    }

    fn post(&mut self, state: &State) -> Outcome<Duration> {
        self.serial += 1;
        let body = state.body(self.serial)?;
        rezus_benches::timed(|| {
            let state: Ingested = ingest(body, None, &self.mappings)?;
            Ok(self.runtime.block_on(self.rules.post(&self.tenant, None, &state, &self.caller))?)
        })
    }
}

/// The rival: a row for each body, as durable as ours.
struct Blobs {
    connection: Connection,
    serial: u64,
}

impl Blobs {
    fn open(file: &Path) -> Outcome<Self> {
        let connection = Connection::open(file)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute("CREATE TABLE states (serial INTEGER PRIMARY KEY, body BLOB NOT NULL)", [])?;
        Ok(Self { connection, serial: 10 })
    }

    fn post(&mut self, state: &State) -> Outcome<Duration> {
        self.serial += 1;
        let body = state.body(self.serial)?;
        rezus_benches::timed(|| {
            let transaction = self.connection.transaction()?;
            transaction
                .prepare_cached("INSERT INTO states VALUES (?1, ?2)")?
                .execute((i64::try_from(self.serial)?, &body[..]))?;
            Ok(transaction.commit()?)
        })
    }
}

/// Works on one body that was read from a file, and tells the most memory that took, the body included.
fn work_as_child(job: &str, file: &Path) -> Outcome<()> {
    let body = Bytes::from(std::fs::read(file)?);
    match job {
        "ingest" => drop(std::hint::black_box(ingest(body, None, &Mappings::built_in())?)),
        "post" => {
            let backend = Backend::open(&file.with_extension("db"))?;
            let state = ingest(body, None, &backend.mappings)?;
            backend.runtime.block_on(backend.rules.post(&backend.tenant, None, &state, &backend.caller))?;
        }
        _ => return Err(format!("{job} is no job").into()),
    }
    rezus_benches::answer_peak()
}

/// Sizes here fit 32 bits.
fn decimal(count: u64) -> Outcome<f64> {
    Ok(f64::from(u32::try_from(count)?))
}
