//! Watchers: what each costs, and how soon all know of a change.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody as _};
use axum::http::Request;
use bytes::Bytes;
use rezus_benches::{Asked, Outcome, Promise, Protocol, Row, Server, percentile, size};
use rezus_server::compose;
use rezus_server::config::Config;
use rezus_server::data_dir::DataDir;
use rezus_server::serve::in_process;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::{ALLOCATOR, IDLE, MACHINES, all_machines, filled, machines_each, tenants};

/// How many watch.
const WATCHERS: usize = 1_000;

/// How many of them connect at a time.
const CONNECTING: usize = 50;

/// How many changes they are told of.
const CHANGES: usize = 21;

/// How long they may take to hear of one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns a state in which one machine differs from that of the serial before.
pub(crate) fn changed(state: &[u8], serial: u64) -> Outcome<Vec<u8>> {
    const FROM: &[u8] = b"\"server_type\": \"cx32\"";
    let to = if serial.is_multiple_of(2) { b"\"server_type\": \"cx42\"" } else { FROM };
    let mut changed = rezus_benches::numbered(state, serial)?;
    let at = changed.windows(FROM.len()).position(|window| window == FROM);
    let at = at.ok_or("a state without a server to change")?;
    changed[at..at + to.len()].copy_from_slice(to);
    Ok(changed)
}

/// Has many clients watch all machines of a real server, each on a connection of its own.
pub(crate) fn over_tls(binary: &Path) -> Outcome<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows = Vec::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        rows.extend(runtime.block_on(watchers(binary, protocol))?);
    }
    Ok(rows)
}

async fn watchers(binary: &Path, protocol: Protocol) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    // Started anew: memory that filling it took must not be there for watchers to use.
    filled(binary, directory.path()).await?.end().await?;
    let server = Server::start_guarded(binary, directory.path()).await?;
    let dial = server.dial()?;
    let list = dial.open(protocol).await?.fetch(&Asked::json(format!("{MACHINES}?limit=1"))).await?;
    let list: serde_json::Value = serde_json::from_slice(&list)?;
    let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list without a version")?;
    let target = format!(
        "{MACHINES}?watch=true&allowWatchBookmarks=true&timeoutSeconds=1800&resourceVersion={version}"
    );
    tokio::time::sleep(size(IDLE, Duration::ZERO)).await;
    let before = server.vm_kib("VmRSS")?;

    let count = size(WATCHERS, 10);
    let (tell, mut told) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let places = Arc::new(tokio::sync::Semaphore::new(CONNECTING));
    let (begun, mut beginning) = mpsc::unbounded_channel();
    for _ in 0..count {
        let (dial, target, tell) = (dial.clone(), target.clone(), tell.clone());
        let (places, begun) = (Arc::clone(&places), begun.clone());
        tasks.spawn(async move {
            let place = places.acquire().await?;
            let mut lines = dial.open(protocol).await?.watch(&target).await?;
            drop(place);
            begun.send(())?;
            while let Some(ended) = lines.next().await? {
                for _ in 0..ended {
                    tell.send(Instant::now())?;
                }
            }
            Outcome::Ok(())
        });
    }
    drop(begun);
    for _ in 0..count {
        if beginning.recv().await.is_none() {
            while let Some(ended) = tasks.join_next().await {
                ended??;
            }
            return Err("a watch ended".into());
        }
    }
    tokio::time::sleep(size(IDLE, Duration::ZERO)).await;
    let idle = server.vm_kib("VmRSS")?;
    // Bookmarks that came meanwhile are no changes.
    while told.try_recv().is_ok() {}

    let writer = server.client()?;
    let state = rezus_benches::machines_state(machines_each())?;
    let (mut each, mut all, mut since_sent) = (Vec::new(), Vec::new(), Vec::new());
    for serial in 2..=u64::try_from(size(CHANGES, 2))? + 1 {
        let state = Bytes::from(changed(&state, serial)?);
        writer.lock("tenant-00", "00000002-774b-3a8b-0000-change").await?;
        let sent = Instant::now();
        let written = async {
            writer.post("tenant-00", "00000002-774b-3a8b-0000-change", state).await?;
            Outcome::Ok(Instant::now())
        };
        let heard = async {
            let mut times = Vec::with_capacity(count);
            while times.len() < count {
                let next = tokio::time::timeout(PATIENCE, told.recv()).await;
                let at = next.map_err(|_| format!("{} of {count} heard of a change", times.len()))?;
                times.push(at.ok_or("all watches ended")?);
            }
            Outcome::Ok(times)
        };
        let (written, heard) = tokio::join!(written, heard);
        let (acknowledged, heard) = (written?, heard?);
        each.extend(heard.iter().map(|at| at.saturating_duration_since(acknowledged)));
        let last = heard.iter().max().copied().unwrap_or(sent);
        all.push(last.saturating_duration_since(acknowledged));
        since_sent.push(last.saturating_duration_since(sent));
        writer.unlock("tenant-00", "00000002-774b-3a8b-0000-change").await?;
        tokio::time::sleep(size(Duration::from_millis(300), Duration::ZERO)).await;
    }
    let millis = |times: &[Duration], percent| percentile(times, percent).as_secs_f64() * 1e3;
    let kilobytes =
        f64::from(u32::try_from(idle.saturating_sub(before))?) * 1.024 / f64::from(u32::try_from(count)?);
    let name = protocol.name();
    let late = |what: &str, times: &[Duration], promise| {
        let (figure, worst) = (millis(times, 50), millis(times, 100));
        let rival = ("its longest", format!("{worst:.1} ms"));
        Row::figures(&format!("{what}, {name}"), format!("{figure:.1} ms"), rival, (figure, " ms"), promise)
    };
    Ok(vec![
        Row::alone(
            &format!("memory of each of {count} idle watchers, {name}"),
            format!("{kilobytes:.1} kB"),
            (kilobytes, " kB"),
            Promise::AtMost(64.0),
        ),
        late(&format!("a change to one of {count} watchers, since its 200"), &each, Promise::Nothing),
        late(&format!("a change to all {count} watchers, since its 200"), &all, Promise::AtMost(100.0)),
        late(
            &format!("the same, since its {} kB were sent", state.len() / 1_000),
            &since_sent,
            Promise::Nothing,
        ),
    ])
}

/// Has many watch the routes themselves, in this process: what they hold beside their connections, and what is held of
/// each machine.
pub(crate) async fn in_the_hub() -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let data_dir = DataDir::new(directory.path());
    data_dir.create()?;
    let composed = compose::compose(&Config::default(), &data_dir)?;
    let router = in_process(&composed.plane);
    let send = |request: Request<Body>| {
        let router = router.clone();
        async move {
            let Ok(answer) = router.oneshot(request).await;
            if answer.status().is_success() { Ok(answer) } else { Err(format!("{}", answer.status())) }
        }
    };
    let held = || {
        let stats = ALLOCATOR.stats();
        stats.bytes_allocated.wrapping_sub(stats.bytes_deallocated)
    };
    let state = rezus_benches::machines_state(machines_each())?;
    let empty = held();
    for tenant in tenants() {
        send(Request::post(format!("/state/{tenant}")).body(Body::from(state.clone()))?).await?;
    }
    let list = send(Request::get(MACHINES).body(Body::empty())?).await?;
    let list = axum::body::to_bytes(list.into_body(), usize::MAX).await?;
    let target = {
        let list: serde_json::Value = serde_json::from_slice(&list)?;
        let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list without a version")?;
        format!("{MACHINES}?watch=true&allowWatchBookmarks=true&resourceVersion={version}")
    };
    drop(list);
    let machines = f64::from(u32::try_from(all_machines())?);
    let each = f64::from(u32::try_from(held().saturating_sub(empty))?) / machines / 1e3;
    let count = size(WATCHERS, 10);
    let mut watches = Vec::with_capacity(count);
    let before = held();
    for _ in 0..count {
        let mut body = send(Request::get(&target).body(Body::empty())?).await?.into_body();
        // Until it waits: what it holds then is what an idle one holds.
        let mut context = Context::from_waker(Waker::noop());
        if !matches!(pin!(&mut body).poll_frame(&mut context), Poll::Pending) {
            return Err("a watch told something that did not change".into());
        }
        watches.push(body);
    }
    let megabytes = f64::from(u32::try_from(held().saturating_sub(before))?) / 1e6;
    drop(watches);
    let what = format!("memory of {count} idle watchers in the hub");
    Ok(vec![
        Row::alone(&what, format!("{megabytes:.2} MB"), (megabytes, " MB"), Promise::AtMost(20.0)),
        Row::alone(
            "memory in use for each machine, projected and shown",
            format!("{each:.2} kB"),
            (each, " kB"),
            Promise::Nothing,
        ),
    ])
}
