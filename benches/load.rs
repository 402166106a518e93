//! The real server under load: large states of many tenants at once, many writers of small ones, machines of a large
//! tenant, and its memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rezus_benches::{Client, Outcome, Promise, Row, Server, percentile, say, size};
use rezus_testkit::strategy::large_state;
use tokio::task::JoinSet;

/// How many tenants post large states at once, and how often each.
const POSTERS: usize = 10;
const POSTS_EACH: u64 = 3;

/// How many clients cycle at once.
const WRITERS: usize = 16;

/// How many tenants there are when memory is looked at.
const TENANTS: usize = 100;

/// How many machines one tenant has when they are all asked for.
const MACHINES: usize = 10_000;

/// How often one of them is read.
const SINGLE_READS: usize = 50;

const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// Instances of a state of 200 kB, and of one of 25 MB.
const SMALL: usize = 80;
const LARGE: usize = 10_000;

/// Once nobody asks anything, after how long memory is looked at.
const IDLE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Outcome<()> {
    if rezus_benches::is_listing() {
        return Ok(());
    }
    let Some(binary) = rezus_benches::server_binary(env!("CARGO_MANIFEST_DIR"))? else {
        say("!! SKIPPED: there is no server binary beside this benchmark; build it or set REZUS_SERVER_BIN");
        return Ok(());
    };
    let mut rows = large_states_at_once(&binary).await?;
    rows.extend(cycles(&binary).await?);
    rows.push(many_tenants(&binary).await?);
    rows.extend(many_machines(&binary).await?);
    rezus_benches::print("load", &rows);
    Ok(())
}

/// Has many tenants post large states at once while one client reads.
async fn large_states_at_once(binary: &Path) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let server = Server::start(binary, directory.path()).await?;
    let state = large_state(size(LARGE, SMALL), 1);
    let client = server.client()?;
    client.push("reader", &lock_id("reader", 0), large_state(SMALL, 2)).await?;
    let address = client.last_address("reader").await?;
    let before = server.vm_kib("VmRSS")?;
    let alone = reads(&client, &address, || false, size(2_000, 20)).await?;

    let posting = Arc::new(AtomicBool::new(true));
    let reader = tokio::spawn({
        let (client, address, posting) = (client.clone(), address.clone(), Arc::clone(&posting));
        async move { reads(&client, &address, || !posting.load(Ordering::Relaxed), usize::MAX).await }
    });
    let start = Instant::now();
    for serial in 1..=size(POSTS_EACH, 1) {
        let body = Bytes::from(rezus_benches::numbered(&state, serial)?);
        let mut posts = JoinSet::new();
        for poster in 0..POSTERS {
            let (client, body) = (server.client()?, body.clone());
            let tenant = format!("large-{poster}");
            posts.spawn(async move { client.push(&tenant, &lock_id(&tenant, serial), body).await });
        }
        while let Some(done) = posts.join_next().await {
            done??;
        }
    }
    let took = start.elapsed();
    posting.store(false, Ordering::Relaxed);
    let meanwhile = reader.await??;

    let peak = server.vm_kib("VmHWM")?;
    tokio::time::sleep(size(IDLE, Duration::ZERO)).await;
    let after = server.vm_kib("VmRSS")?;
    let posted =
        decimal(state.len()) * decimal(POSTERS) * f64::from(u32::try_from(size(POSTS_EACH, 1))?) / 1e6;
    let what = format!("{POSTERS} tenants post {} MB each at once", state.len() / 1_000_000);
    let rate = (posted / took.as_secs_f64(), " MB/s");
    let millis = |times: &[Duration], percent| percentile(times, percent).as_secs_f64() * 1e3;
    let read = |name: &str, percent, promise| {
        let (figure, its) = (millis(&meanwhile, percent), millis(&alone, percent));
        let rival = ("the same, nobody posts", format!("{its:.2} ms"));
        Row::figures(
            name,
            format!("{figure:.2} ms ({} reads)", meanwhile.len()),
            rival,
            (figure, " ms"),
            promise,
        )
    };
    Ok(vec![
        Row::alone(&what, format!("{:.1} s", took.as_secs_f64()), rate, Promise::Nothing),
        memory("most memory during that", peak, Promise::AtMost(512.0))?,
        read("one resource meanwhile, p50", 50, Promise::Nothing),
        read("one resource meanwhile, p99", 99, Promise::AtMost(50.0)),
        read("one resource meanwhile, longest", 100, Promise::Nothing),
        memory("resident before", before, Promise::Nothing)?,
        memory("resident 5 s after", after, Promise::Nothing)?,
    ])
}

/// Reads one resource again and again, until told to stop or often enough, and returns how long each read took.
async fn reads(
    client: &Client,
    address: &str,
    is_over: impl Fn() -> bool,
    most: usize,
) -> Outcome<Vec<Duration>> {
    let mut times = Vec::new();
    while times.len() < most && !is_over() {
        let start = Instant::now();
        client.resource("reader", address).await?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// Compares many clients that lock, write and unlock with one.
async fn cycles(binary: &Path) -> Outcome<Vec<Row>> {
    let state = Arc::new(large_state(SMALL, 3));
    let mut rates = Vec::new();
    for writers in [1, WRITERS] {
        let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
        let server = Server::start(binary, directory.path()).await?;
        let start = Instant::now();
        let span = size(Duration::from_secs(5), Duration::from_millis(100));
        let mut all = JoinSet::new();
        for writer in 0..writers {
            let (client, state) = (server.client()?, Arc::clone(&state));
            all.spawn(async move {
                let tenant = format!("writer-{writer}");
                let mut done = 0_u64;
                while start.elapsed() < span {
                    done += 1;
                    let body = rezus_benches::numbered(&state, done)?;
                    client.push(&tenant, &lock_id(&tenant, done), body).await?;
                }
                Outcome::Ok(done)
            });
        }
        let (mut done, mut errors) = (0, 0);
        while let Some(outcome) = all.join_next().await {
            match outcome? {
                Ok(cycles) => done += cycles,
                Err(error) => {
                    say(&format!("a writer's error: {error}"));
                    errors += 1;
                }
            }
        }
        rates.push((f64::from(u32::try_from(done)?) / start.elapsed().as_secs_f64(), errors));
    }
    let [(one, errors_of_one), (many, errors_of_many)] = rates[..] else {
        return Err("two runs were asked for".into());
    };
    let what = format!("LOCK, POST of {} kB, UNLOCK: {WRITERS} clients at once", state.len() / 1000);
    let rival = ("one client", format!("{one:.0} cycles/s"));
    let errors = f64::from(errors_of_one + errors_of_many);
    Ok(vec![
        Row::figures(&what, format!("{many:.0} cycles/s"), rival, (many / one, "x"), Promise::AtLeast(1.0)),
        Row::alone("errors of any of them", errors.to_string(), (errors, ""), Promise::AtMost(0.0)),
    ])
}

/// Looks at a server's memory when it keeps many small states and what each declares.
async fn many_tenants(binary: &Path) -> Outcome<Row> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let server = Server::start(binary, directory.path()).await?;
    let client = server.client()?;
    let state = large_state(SMALL, 4);
    for number in 0..size(TENANTS, 5) {
        let tenant = format!("tenant-{number}");
        client.push(&tenant, &lock_id(&tenant, 0), state.clone()).await?;
        let address = client.last_address(&tenant).await?;
        client.resource(&tenant, &address).await?;
        let listed = items(&client, &format!("/namespaces/{tenant}/machines")).await?;
        if listed != SMALL {
            return Err(format!("{tenant} has {listed} machines").into());
        }
    }
    tokio::time::sleep(size(IDLE, Duration::ZERO)).await;
    let what = format!("resident with {TENANTS} tenants of {} kB, projected", state.len() / 1000);
    memory(&what, server.vm_kib("VmRSS")?, Promise::AtMost(40.0))
}

/// Has one tenant declare many machines, asks for all of them once and then for single ones, and looks at memory.
async fn many_machines(binary: &Path) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let machines = size(MACHINES, SMALL);
    let state = rezus_benches::machines_state(machines)?;
    let megabytes = state.len() / 1_000_000;
    let server = Server::start(binary, directory.path()).await?;
    server.client()?.push("large", &lock_id("large", 0), state).await?;
    server.end().await?;

    // Started anew: what writing took is not what keeping takes.
    let server = Server::start(binary, directory.path()).await?;
    let client = server.client()?;
    let start = Instant::now();
    let listed = items(&client, "/machines").await?;
    let first = start.elapsed();
    if listed != machines {
        return Err(format!("{listed} machines of {machines}").into());
    }
    tokio::time::sleep(size(IDLE, Duration::ZERO)).await;
    let resident = server.vm_kib("VmRSS")?;
    let peak = server.vm_kib("VmHWM")?;

    let start = Instant::now();
    items(&client, "/machines").await?;
    let again = start.elapsed();
    let mut singles = Vec::new();
    for number in rezus_benches::every(machines, size(SINGLE_READS, 5)) {
        let start = Instant::now();
        client.send("GET", &format!("{API}/namespaces/large/machines/cobalt-{number}"), "").await?;
        singles.push(start.elapsed());
    }
    let after = server.vm_kib("VmRSS")?;
    let what = format!("{machines} machines of one tenant ({megabytes} MB)");
    let millis = |name: &str, time: Duration| {
        let time = time.as_secs_f64() * 1e3;
        Row::alone(name, format!("{time:.2} ms"), (time, " ms"), Promise::Nothing)
    };
    Ok(vec![
        memory(&format!("resident with {what}, served once"), resident, Promise::AtMost(120.0))?,
        memory("most memory during that", peak, Promise::Nothing)?,
        memory("resident when they were served again, and single ones", after, Promise::Nothing)?,
        millis(&format!("list {what}, first"), first),
        millis("list them again", again),
        millis("get one of them, p50", percentile(&singles, 50)),
    ])
}

/// Asks for a list of the resource API and returns how many items it has.
async fn items(client: &Client, path: &str) -> Outcome<usize> {
    let list: serde_json::Value =
        serde_json::from_slice(&client.send("GET", &format!("{API}{path}"), "").await?)?;
    Ok(list["items"].as_array().ok_or("no list")?.len())
}

fn memory(what: &str, kib: u64, promise: Promise) -> Outcome<Row> {
    let megabytes = f64::from(u32::try_from(kib)?) * 1024.0 / 1e6;
    Ok(Row::alone(what, format!("{megabytes:.1} MB"), (megabytes, " MB"), promise))
}

/// A lock's ID as the clients make them: another one each time.
fn lock_id(tenant: &str, number: u64) -> String {
    format!("{number:08x}-774b-3a8b-0000-{tenant}")
}

/// Sizes here fit 32 bits.
fn decimal(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
