//! The resource API over 10,000 machines, asked as Kubernetes clients ask: over TLS, with a token, on connections that are
//! kept. Lists against the same bytes served ready-made; watchers, how soon they know and what they cost; memory.
//!
//! For comparison, kube-apiserver 1.36 with etcd 3.6 took for as many custom resources, on such a machine and over HTTP/2:
//! all as a table 780 ms, a page of 500 60 ms, one object 13 ms, a label selector over all 400 ms; it and etcd had 816 MB
//! resident.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use rezus_benches::{
    Asked, Contest, Dial, Outcome, Promise, Protocol, ReadyMade, Row, Server, Wire, percentile, say, size,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::runtime::Runtime;

/// Counts what the hub's watchers hold, in this process.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

mod api_watch;

const MACHINES: &str = "/apis/rezuscloud.io/v1alpha1/machines";

/// How many tenants there are, and how many machines each has.
const TENANTS: usize = 20;
const MACHINES_EACH: usize = 500;

/// How many machines a client asks for at a time (kubectl, client-go, kube-rs).
const PAGE: usize = 500;

/// How often each answer is asked for.
const ROUNDS: usize = 15;

/// Once nobody asks anything, after how long memory is looked at.
const IDLE: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    if rezus_benches::is_listing() {
        return Ok(());
    }
    let Some(binary) = rezus_benches::server_binary(env!("CARGO_MANIFEST_DIR"))? else {
        say("!! SKIPPED: there is no server binary beside this benchmark; build it or set REZUS_SERVER_BIN");
        return Ok(());
    };
    say(
        "kube-apiserver 1.36 with as many custom resources, recorded on such a machine (median of 7, TLS, HTTP/2): all as \
         a table 780 ms, a page of 500 60 ms, one object 13 ms, a label selector over all 400 ms; 816 MB with its etcd",
    );
    // The client on one thread: its connection and whoever waits for the answer do not wake each other across cores.
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let server = client.block_on(filled(&binary, directory.path()))?;
    let floor = ReadyMade::start(&directory.path().join("tls"))?;
    let mut rows = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        rows.extend(answers(&client, &server, &floor, &directory.path().join("tls"), protocol)?);
    }
    rows.extend(without_change(&client, &server)?);
    drop((server, floor));
    rows.push(client.block_on(resident(&binary))?);
    rows.extend(api_watch::over_tls(&binary)?);
    rows.extend(client.block_on(api_watch::in_the_hub())?);
    rezus_benches::print("api", &rows);
    Ok(())
}

fn tenants() -> impl Iterator<Item = String> {
    (0..size(TENANTS, 2)).map(|number| format!("tenant-{number:02}"))
}

fn machines_each() -> usize {
    size(MACHINES_EACH, 100)
}

fn all_machines() -> usize {
    tenants().count() * machines_each()
}

/// Starts a server whose tenants declare all the machines, and asks for them once.
async fn filled(binary: &Path, data_dir: &Path) -> Outcome<Server> {
    let server = Server::start_guarded(binary, data_dir).await?;
    let client = server.client()?;
    let state = rezus_benches::machines_state(machines_each())?;
    for tenant in tenants() {
        client.push(&tenant, &format!("00000000-774b-3a8b-0000-{tenant}"), state.clone()).await?;
    }
    let listed: serde_json::Value = serde_json::from_slice(&client.send("GET", MACHINES, "").await?)?;
    let listed = listed["items"].as_array().map_or(0, Vec::len);
    if listed != all_machines() {
        return Err(format!("{listed} machines of {}", all_machines()).into());
    }
    Ok(server)
}

/// Asks for lists and single objects in turn with the same bytes from a server that has them ready.
fn answers(
    client: &Runtime,
    server: &Server,
    floor: &ReadyMade,
    tls: &Path,
    protocol: Protocol,
) -> Outcome<Vec<Row>> {
    let dial = server.dial()?;
    let ready = Dial::new(floor.address(), &tls.join("ca.pem"), None)?;
    let mut wire = client.block_on(dial.open(protocol))?;
    let page = format!("{MACHINES}?limit={PAGE}");
    let first: serde_json::Value =
        serde_json::from_slice(&client.block_on(wire.fetch(&Asked::json(&page)))?)?;
    let token = first["metadata"]["continue"].as_str();
    let following = format!("{page}{}", token.map(|token| format!("&continue={token}")).unwrap_or_default());
    let name = first["items"][0]["metadata"]["name"].as_str().ok_or("a page of nothing")?;
    let one = format!("{}/namespaces/tenant-00/machines/{name}", MACHINES.trim_end_matches("/machines"));
    let (selector, selected) = selector(client, &mut wire)?;
    let work = [
        ("all as a table".to_owned(), Asked::table(MACHINES), Promise::AtMost(60.0)),
        ("all as a table, gzip".to_owned(), Asked::table(MACHINES).packed(), Promise::AtMost(150.0)),
        ("all as JSON".to_owned(), Asked::json(MACHINES), Promise::Nothing),
        ("a page of 500 as a table".to_owned(), Asked::table(&page), Promise::AtMost(5.0)),
        ("the next page as a table".to_owned(), Asked::table(&following), Promise::AtMost(5.0)),
        ("a page of 500 as JSON".to_owned(), Asked::json(&page), Promise::AtMost(5.0)),
        ("one object".to_owned(), Asked::json(&one), Promise::AtMost(1.0)),
        (format!("label selector, {selected} of all"), Asked::json(&selector), Promise::AtMost(30.0)),
    ];
    let mut rows = Vec::new();
    for (what, asked, promise) in work {
        let body = client.block_on(wire.fetch(&asked))?;
        let kilobytes = body.len() / 1_000;
        let same = Asked::json(floor.put(body.clone()));
        let mut contest = Contest::default();
        let ours = contest.add(asking(client, client.block_on(dial.open(protocol))?, asked, body.len()));
        let theirs = contest.add(asking(client, client.block_on(ready.open(protocol))?, same, body.len()));
        contest.run(size(ROUNDS, 1))?;
        let millis = contest.median(ours).as_secs_f64() * 1e3;
        rows.push(Row::figures(
            &format!("{what} ({kilobytes} kB), {}", protocol.name()),
            format!("{millis:.2} ms"),
            ("the same bytes, ready-made", format!("{:.2} ms", contest.median(theirs).as_secs_f64() * 1e3)),
            (millis, " ms"),
            promise,
        ));
    }
    Ok(rows)
}

/// Asks once each time it is called. Ages and versions may change an answer's length by little.
fn asking(
    client: &Runtime,
    mut wire: Wire,
    asked: Asked,
    length: usize,
) -> impl FnMut() -> Outcome<Duration> {
    move || {
        let (took, read) = client.block_on(wire.time(&asked))?;
        if read.abs_diff(length) > 1_000 + length / 20 {
            return Err(format!("{}: {read} bytes after {length}", asked.target).into());
        }
        Ok(took)
    }
}

/// A label selector that chooses four of each tenant's ten node groups, and how many machines that are.
fn selector(client: &Runtime, wire: &mut Wire) -> Outcome<(String, usize)> {
    let groups = "rezuscloud.io%2Fnode-group+in+(pool-0,pool-1,pool-2,pool-3)";
    let target = format!("{MACHINES}?labelSelector={groups}");
    let chosen: serde_json::Value =
        serde_json::from_slice(&client.block_on(wire.fetch(&Asked::json(&target)))?)?;
    let chosen = chosen["items"].as_array().map_or(0, Vec::len);
    if chosen * 3 < all_machines() {
        return Err(format!("{chosen} machines are selected: less than a third").into());
    }
    Ok((target, chosen))
}

/// Compares a list after nothing changed with one after a write, and counts the projections that each made.
fn without_change(client: &Runtime, server: &Server) -> Outcome<Vec<Row>> {
    let writer = server.client()?;
    let mut wire = client.block_on(server.dial()?.open(Protocol::Http1))?;
    let asked = Asked::json(MACHINES);
    let state = rezus_benches::machines_state(machines_each())?;
    let (mut after_write, mut after_nothing) = (Vec::new(), Vec::new());
    let (mut by_writes, mut by_nothing) = (0.0, 0.0);
    let writes = u32::try_from(size(ROUNDS, 1))?;
    for serial in 2..u64::from(writes) + 2 {
        let changed = Bytes::from(api_watch::changed(&state, serial)?);
        let before = client.block_on(projections(&writer))?;
        client.block_on(writer.push("tenant-00", "00000001-774b-3a8b-0000-write", changed))?;
        after_write.push(client.block_on(wire.time(&asked))?.0);
        let between = client.block_on(projections(&writer))?;
        after_nothing.push(client.block_on(wire.time(&asked))?.0);
        let after = client.block_on(projections(&writer))?;
        by_writes += between - before;
        by_nothing += after - between;
    }
    let millis = |times: &[Duration]| percentile(times, 50).as_secs_f64() * 1e3;
    let (ours, theirs) = (millis(&after_nothing), millis(&after_write));
    Ok(vec![
        Row::figures(
            "all as JSON after no change",
            format!("{ours:.2} ms"),
            ("after a write of one tenant", format!("{theirs:.2} ms")),
            (ours, " ms"),
            Promise::Nothing,
        ),
        Row::alone(
            "projections for lists after no change",
            format!("{by_nothing} for {writes} lists"),
            (by_nothing, ""),
            Promise::AtMost(0.0),
        ),
        Row::alone(
            "projections for lists after a write, and for those who watch",
            format!("{by_writes} for {writes} writes"),
            (by_writes / f64::from(writes), " each"),
            Promise::AtMost(1.0),
        ),
    ])
}

/// How often the server projected a version since it started.
async fn projections(client: &rezus_benches::Client) -> Outcome<f64> {
    let metrics = String::from_utf8(client.send("GET", "/metrics", "").await?)?;
    let line = metrics.lines().find_map(|line| line.strip_prefix("rezus_projections_total "));
    Ok(line.ok_or("the server does not count its projections")?.trim().parse()?)
}

/// Looks at the memory of a server that has served all machines of one large tenant in every form.
async fn resident(binary: &Path) -> Outcome<Row> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let machines = all_machines();
    let server = Server::start_guarded(binary, directory.path()).await?;
    let state = rezus_benches::machines_state(machines)?;
    server.client()?.push("large", "00000000-774b-3a8b-0000-large", state).await?;
    server.end().await?;
    // Started anew: what writing took is not what keeping takes.
    let server = Server::start_guarded(binary, directory.path()).await?;
    let mut wire = server.dial()?.open(Protocol::Http1).await?;
    for asked in [Asked::table(MACHINES), Asked::json(MACHINES), Asked::table(MACHINES).packed()] {
        wire.time(&asked).await?;
    }
    tokio::time::sleep(size(IDLE, Duration::ZERO)).await;
    let megabytes = megabytes(server.vm_kib("VmRSS")?)?;
    let what = format!("resident with {machines} machines of one tenant, listed in three forms");
    Ok(Row::alone(&what, format!("{megabytes:.1} MB"), (megabytes, " MB"), Promise::AtMost(120.0)))
}

fn megabytes(kib: u64) -> Outcome<f64> {
    Ok(f64::from(u32::try_from(kib)?) * 1024.0 / 1e6)
}
