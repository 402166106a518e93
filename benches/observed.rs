//! Observing clusters: one that is large, and many that are small. The clusters are fakes in this process, on loopback over
//! real TLS, and live as clusters do: leases are renewed, kubelets report, pods come and go.
//!
//! What real clusters have and these have not: objects of several times that size, which is paid for when all of them are
//! listed, and a network in between.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use rezus_benches::{Client, Outcome, Promise, Row, Server, cpu_time, percentile, say, size};
use rezus_testkit::fake::cluster::FakeKubernetes;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

mod observed_clusters;

use observed_clusters::{Clusters, name_of};

/// The large cluster.
const NODES: usize = 5_000;
const PODS: usize = 50_000;

/// The small ones: how many, and how large each is.
const TENANTS: usize = 1_000;
const NODES_EACH: usize = 5;
const PODS_EACH: usize = 50;

/// So many small tenants are of one fake: what happens there happens to all of them.
const SHARED_BY: usize = 50;

/// How long all may take until they were read once, Talos on workers too.
const PATIENCE: Duration = Duration::from_mins(15);

/// How long after that it is waited, and how long is measured then.
const SETTLE: Duration = Duration::from_secs(30);
const STEADY: Duration = Duration::from_secs(90);

/// How many changes of one node's Ready are watched, and how long after one comes the next, at least.
const CHANGES: u32 = 20;
const BETWEEN: Duration = Duration::from_secs(2);

/// What is promised: so much of one core, in percent; memory in MB; and how soon a change is shown, in ms.
const CORE: f64 = 50.0;
const MEMORY: f64 = 300.0;
const SHOWN: f64 = 1_000.0;

/// The setting that has samples kept; what is measured first is what observing takes alone.
const KEPT: &str = "REZUS_SERIES__ENABLED";

const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// A lock's ID.
const LOCK: &str = "00000000-774b-3a8b-0000-observed";

#[tokio::main]
async fn main() -> Outcome<()> {
    if rezus_benches::is_listing() {
        return Ok(());
    }
    let Some(binary) = rezus_benches::server_binary(env!("CARGO_MANIFEST_DIR"))? else {
        say("!! SKIPPED: there is no server binary beside this benchmark; build it or set REZUS_SERVER_BIN");
        return Ok(());
    };
    let mut rows = large(&binary).await?;
    rows.extend(many(&binary).await?);
    rezus_benches::print("observed", &rows);
    Ok(())
}

/// Observes one tenant whose cluster is large.
async fn large(binary: &Path) -> Outcome<Vec<Row>> {
    let (nodes, pods) = (size(NODES, 20), size(PODS, 40));
    let clusters = Clusters::start(1, nodes, pods).await;
    let what = format!("1 tenant of {nodes} nodes and {pods} pods");
    let tenants = vec![("tenant-0000".to_owned(), 0)];
    observe(binary, &what, &clusters, &tenants).await
}

/// Observes many tenants whose clusters are small.
async fn many(binary: &Path) -> Outcome<Vec<Row>> {
    let count = size(TENANTS, 4);
    // The first is of none but the tenant whose node changes.
    let clusters = Clusters::start(1 + count.div_ceil(SHARED_BY), NODES_EACH, size(PODS_EACH, 5)).await;
    let at = |tenant: usize| if tenant == 0 { 0 } else { 1 + tenant / SHARED_BY };
    let tenants: Vec<_> = (0..count).map(|tenant| (format!("tenant-{tenant:04}"), at(tenant))).collect();
    let what = format!("{count} tenants of {NODES_EACH} nodes and {} pods each", size(PODS_EACH, 5));
    observe(binary, &what, &clusters, &tenants).await
}

/// Observes these tenants, each of the cluster of that number, and measures what it costs and how soon changes are seen.
async fn observe(
    binary: &Path,
    what: &str,
    clusters: &Clusters,
    tenants: &[(String, usize)],
) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let server = Server::start(binary, directory.path()).await?;
    declare(&server.client()?, clusters, tenants).await?;
    server.end().await?;
    // Started anew: what writing took is not what observing takes.
    let began = Instant::now();
    let server = Server::start_with(binary, directory.path(), &[(KEPT, OsStr::new("false"))]).await?;
    let client = server.client()?;
    let machines = tenants.len() * clusters.nodes();
    all_are_seen(&client, machines).await?;
    let seen = began.elapsed();
    let process = server.id()?;
    say(&format!("{what}: all was read after {:.0} s", seen.as_secs_f64()));

    sleep(size(SETTLE, Duration::ZERO)).await;
    let (start, before) = (Instant::now(), cpu_time(process)?);
    let mut resident = 0;
    while start.elapsed() < size(STEADY, Duration::from_secs(1)) {
        sleep(size(Duration::from_secs(5), Duration::from_secs(1))).await;
        resident = server.vm_kib("VmRSS")?.max(resident);
    }
    let share =
        (cpu_time(process)?.saturating_sub(before)).as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    let changes = changes(&client, &tenants[0].0, clusters.kubernetes(0)).await?;

    let millis = |percent| percentile(&changes, percent).as_secs_f64() * 1e3;
    let megabytes = |kib: u64| Outcome::Ok(f64::from(u32::try_from(kib)?) * 1024.0 / 1e6);
    let (resident, most) = (megabytes(resident)?, megabytes(server.vm_kib("VmHWM")?)?);
    server.end().await?;
    // What benches/series.rs promises of samples comes on top.
    let server = Server::start(binary, directory.path()).await?;
    all_are_seen(&server.client()?, machines).await?;
    sleep(size(SETTLE, Duration::ZERO)).await;
    let sampled = megabytes(server.vm_kib("VmRSS")?)?;
    let late = |name: &str, percent| {
        let took = millis(percent);
        let work = format!("{what}: a node's Ready, to a watcher, {name} of {}", changes.len());
        Row::alone(&work, format!("{took:.0} ms"), (took, " ms"), Promise::AtMost(SHOWN))
    };
    let memory = |name: &str, figure: f64, promise| {
        Row::alone(&format!("{what}: {name}"), format!("{figure:.1} MB"), (figure, " MB"), promise)
    };
    let cpu = format!("{what}: processor, of one core");
    Ok(vec![
        Row::alone(&cpu, format!("{share:.1} %"), (share, " %"), Promise::AtMost(CORE)),
        memory("most resident meanwhile", resident, Promise::AtMost(MEMORY)),
        memory("most memory since its start", most, Promise::Nothing),
        memory("resident where samples are kept too", sampled, Promise::Nothing),
        late("p50", 50),
        late("longest", 100),
    ])
}

/// Has the tenants declare the machines of their clusters, and what opens those.
async fn declare(client: &Client, clusters: &Clusters, tenants: &[(String, usize)]) -> Outcome<()> {
    let settings = json!({ "destinations": Clusters::destinations() });
    for (tenant, cluster) in tenants {
        client.push(tenant, LOCK, clusters.state(*cluster)?).await?;
        client.exchange("PATCH", &format!("/rezus/v1/tenants/{tenant}"), &settings).await?;
    }
    Ok(())
}

/// Returns once each machine's node was seen ready, and its Talos API was read.
async fn all_are_seen(client: &Client, machines: usize) -> Outcome<()> {
    let mut last = (0, 0);
    let waiting = async {
        loop {
            let list: Value =
                serde_json::from_slice(&client.send("GET", &format!("{API}/machines"), "").await?)?;
            let items = list["items"].as_array().ok_or("no list")?;
            let count = |is_it: &dyn Fn(&&Value) -> bool| items.iter().filter(is_it).count();
            let ready = count(&|item| ready(item) == Some("True"));
            let talos = count(&|item| item["status"]["talos"].is_object());
            if (ready, talos) == (machines, machines) {
                return Outcome::Ok(());
            }
            if last != (ready, talos) {
                say(&format!("of {machines} machines {ready} are ready, {talos} read by Talos"));
                last = (ready, talos);
            }
            sleep(size(Duration::from_secs(15), Duration::from_secs(1))).await;
        }
    };
    match timeout(PATIENCE, waiting).await {
        Ok(ended) => ended,
        Err(_) => Err("not all machines were seen in time".into()),
    }
}

/// What a machine's condition Ready says.
fn ready(machine: &Value) -> Option<&str> {
    let mut conditions = machine["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == "Ready")?["status"].as_str()
}

/// Changes one node's Ready again and again; returns how long it took each time until a watcher of the machines was told.
async fn changes(client: &Client, tenant: &str, cluster: &FakeKubernetes) -> Outcome<Vec<Duration>> {
    let path = format!("{API}/namespaces/{tenant}/machines");
    let list: Value = serde_json::from_slice(&client.send("GET", &format!("{path}?limit=1"), "").await?)?;
    let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list without a version")?;
    let mut body = client.open("GET", &format!("{path}?watch=true&resourceVersion={version}"), "").await?;
    let node = name_of(0);
    let mut read: Vec<u8> = Vec::new();
    let mut times = Vec::new();
    for number in 0..size(CHANGES, 2) {
        let status = if number % 2 == 0 { "False" } else { "True" };
        let sent = Instant::now();
        cluster.set_ready(&node, status);
        let told = async {
            loop {
                while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = read.drain(..=end).collect();
                    let event: Value = serde_json::from_slice(&line)?;
                    let machine = &event["object"];
                    if machine["spec"]["name"] == node && ready(machine) == Some(status) {
                        return Outcome::Ok(());
                    }
                }
                read.extend_from_slice(&body.chunk().await?.ok_or("the watch ended")?);
            }
        };
        timeout(Duration::from_mins(1), told).await.map_err(|_| "a change was never shown")??;
        times.push(sent.elapsed());
        // Not in step with any schedule.
        sleep(size(BETWEEN + Duration::from_millis(137) * number, Duration::from_millis(500))).await;
    }
    Ok(times)
}
