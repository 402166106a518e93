//! Many tenants that want their turn at once, and somebody who reads meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rezus_adapters::clock::SystemClock;
use rezus_adapters::ring::{Ring, RingSettings};
use rezus_adapters::sqlite::SqliteStore;
use rezus_benches::{Client, Outcome, Promise, Row, size, vm_kib};
use rezus_core::base::TenantName;
use rezus_core::declared::mapping::Mappings;
use rezus_core::runs::SecretText;
use rezus_core::runs::Stage;
use rezus_core::runs::executor::Answer;
use rezus_server::compose::{self, Plane, Stores};
use rezus_server::config::{AuthConfig, Config, RunsConfig};
use rezus_server::serve::in_process;
use rezus_testkit::fake::{Script, ScriptedExecutor};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::{memory, read, stand_in, start};

/// How many tenants there are, and how many of them have their turn at a time.
const TENANTS: usize = 200;
const PLACES: usize = 4;

/// How long each program takes.
const EACH: Duration = Duration::from_millis(50);

/// How many machines each tenant declares, and the one who is read of.
const MACHINES_EACH: usize = 10;
const MACHINES_READ: usize = 500;

/// How much memory a server may have meanwhile, in MB.
const MOST: f64 = 150.0;

/// The one who is read of.
const READ: &str = "read";

fn tenants() -> Vec<String> {
    (0..size(TENANTS, 6)).map(|number| format!("tenant-{number}")).collect()
}

/// Has programs end by script: the server is this process.
pub(crate) async fn scripted() -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let executor = ScriptedExecutor::new();
    executor.answer(|_| {
        let stdout = b"{}".to_vec().into();
        Ok(Answer { code: Some(0), stdout, stderr: SecretText::new(String::new()) })
    });
    let store = SqliteStore::open(&directory.path().join("rezus.db"))?;
    let (clock, mappings) = (Arc::new(SystemClock), Mappings::built_in());
    let shared = Arc::new(executor.clone());
    let config = Config {
        auth: AuthConfig { enabled: false },
        runs: RunsConfig { allow_without_auth: true, ..RunsConfig::default() },
        ..Config::default()
    };
    let series = Arc::new(Ring::new(RingSettings::default(), Arc::<SystemClock>::clone(&clock)));
    let plane = compose::plane(&config, Stores::of(store, series), shared, Vec::new(), clock, mappings);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    plane.listeners.set(vec![url.clone()]).map_err(|_| "the listeners are known before they are")?;
    let _served = serve(&plane, listener);
    let client = Client::new(&url)?;
    fill(&client, directory.path()).await?;
    for tenant in tenants() {
        // One each, for each ends in its own time.
        let script = Script::lines(planned()).wait(&tenant).exit(2);
        executor.set_script(Some(&tenant.parse()?), Stage::Plan, script);
    }
    let reading = Reading::start(Client::new(&url)?);
    let before = Instant::now();
    let version = ask_all(&client, &tenants()).await?;
    let asked = before.elapsed();
    let conductor = AbortOnDrop(tokio::spawn(conduct(executor.clone())));
    let took = ended(&client, &version).await?;
    drop(conductor);
    let reads = reading.end().await?;
    let order: Vec<TenantName> = executor.jobs().into_iter().map(|job| job.id.tenant).collect();
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    let mut rows = turns("by script", &order, asked, took)?;
    rows.push(read("one machine meanwhile, by script, p99", &reads, Promise::AtMost(10.0)));
    let peak = vm_kib(std::process::id(), "VmHWM")?;
    rows.push(memory("most memory of server and client, by script", peak, Promise::AtMost(MOST))?);
    Ok(rows)
}

/// Serves a plane as the server does, as far as runs are concerned.
fn serve(plane: &Plane, listener: TcpListener) -> Vec<AbortOnDrop> {
    let router = in_process(plane);
    let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    let shown = tokio::spawn(plane.catalogue.clone().run());
    let runs = tokio::spawn(plane.runs.clone().serve());
    [serving, shown, runs].map(AbortOnDrop).into()
}

/// Ends a task when it is dropped.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Has each program that waits end after its time.
async fn conduct(executor: ScriptedExecutor) {
    let mut seen = 0;
    loop {
        let jobs = executor.jobs();
        for job in jobs.iter().skip(seen) {
            let (executor, gate) = (executor.clone(), job.id.tenant.to_string());
            tokio::spawn(async move {
                tokio::time::sleep(EACH).await;
                executor.open_gate(&gate);
            });
        }
        seen = jobs.len();
        tokio::time::sleep(EACH / 10).await;
    }
}

/// What a plan of a few resources says.
fn planned() -> impl Iterator<Item = String> {
    const CREATES: usize = 20;
    let changes = (0..CREATES).map(|number| {
        format!(
            r#"{{"@level":"info","@message":"terraform_data.it[{number}]: Plan to create","change":{{"resource":{{"addr":"terraform_data.it[{number}]","resource_type":"terraform_data","resource_name":"it"}},"action":"create"}},"type":"planned_change"}}"#
        )
    });
    changes.chain([format!(
        r#"{{"@level":"info","@message":"Plan: {CREATES} to add","changes":{{"add":{CREATES},"change":0,"import":0,"remove":0,"operation":"plan"}},"type":"change_summary"}}"#
    )])
}

/// Has a shell stand for the tool, below the real server.
pub(crate) async fn with_children(binary: &Path) -> Outcome<Vec<Row>> {
    let directory = rezus_benches::scratch(env!("CARGO_TARGET_TMPDIR"))?;
    let (said, began) = (directory.path().join("said"), directory.path().join("began"));
    std::fs::write(&said, planned().map(|line| line + "\n").collect::<String>())?;
    let init = format!("echo \"${{TF_HTTP_ADDRESS##*/}}\" >> '{}'", began.display());
    let plan = format!("sleep {}; cat '{}'; exit 2", EACH.as_secs_f64(), said.display());
    let tool = stand_in(directory.path(), &init, &plan)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let server = start(binary, &directory.path().join("data"), &tool, &[("PATH", &path)]).await?;
    let client = server.client()?;
    fill(&client, directory.path()).await?;
    let reading = Reading::start(server.client()?);
    let before = Instant::now();
    let version = ask_all(&client, &tenants()).await?;
    let asked = before.elapsed();
    let took = ended(&client, &version).await?;
    let reads = reading.end().await?;
    let peak = server.vm_kib("VmHWM")?;
    let order: Vec<String> = std::fs::read_to_string(&began)?.lines().map(str::to_owned).collect();
    let mut rows = turns("with children", &order, asked, took)?;
    rows.push(read("one machine meanwhile, with children, p99", &reads, Promise::Nothing));
    rows.push(memory("most memory of the server, with children", peak, Promise::AtMost(MOST))?);
    Ok(rows)
}

/// Has every tenant declare machines, and have a configuration.
async fn fill(client: &Client, directory: &Path) -> Outcome<()> {
    let configuration = directory.join("configuration");
    std::fs::create_dir(&configuration)?;
    std::fs::write(configuration.join("main.tf"), "resource \"terraform_data\" \"it\" {\n  count = 20\n}\n")?;
    let state = rezus_benches::machines_state(MACHINES_EACH)?;
    for tenant in tenants() {
        client.configure(&tenant, &configuration).await?;
        client.push(&tenant, &format!("00000000-774b-3a8b-0000-{tenant}"), state.clone()).await?;
    }
    let state = rezus_benches::machines_state(size(MACHINES_READ, MACHINES_EACH))?;
    client.push(READ, "00000000-774b-3a8b-0000-000000000000", state).await
}

/// Asks for a run of each tenant, and returns the version of what is shown before the first of them was.
async fn ask_all(client: &Client, tenants: &[String]) -> Outcome<String> {
    let target = "/apis/rezuscloud.io/v1alpha1/runs?limit=1";
    let list: serde_json::Value = serde_json::from_slice(&client.send("GET", target, "").await?)?;
    for tenant in tenants {
        client.ask_run(tenant, "plan").await?;
    }
    Ok(list["metadata"]["resourceVersion"].as_str().ok_or("a list without a version")?.to_owned())
}

/// Waits until all have ended as they should, and returns how long that was.
async fn ended(client: &Client, version: &str) -> Outcome<Duration> {
    let start = Instant::now();
    let ended = client.watch_runs(None, version, tenants().len()).await?;
    match ended.iter().find(|(_, status)| status["phase"] != "Planned") {
        None => Ok(start.elapsed()),
        Some((name, status)) => Err(format!("the run {name} is not planned: {status}").into()),
    }
}

/// Says how long it took until all had their turn, and in which order.
fn turns(how: &str, order: &[String], asked: Duration, took: Duration) -> Outcome<Vec<Row>> {
    let tenants = tenants();
    if order.len() != tenants.len() {
        return Err(format!("{} programs were started for {} runs", order.len(), tenants.len()).into());
    }
    let mut moved = 0;
    for (asked, tenant) in tenants.iter().enumerate() {
        let place = order.iter().position(|it| it == tenant).ok_or("a tenant had no turn")?;
        moved = moved.max(place.abs_diff(asked));
    }
    let count = u32::try_from(tenants.len())?;
    let rounds = count.div_ceil(u32::try_from(PLACES)?);
    let ideal = EACH * rounds;
    let what = format!("{count} tenants at once, {PLACES} places, {how}");
    let asked = format!("{:.2} s (and {:.2} s to ask for them)", took.as_secs_f64(), asked.as_secs_f64());
    let ratio = took.as_secs_f64() / ideal.as_secs_f64();
    let rival = ("nothing but the programs", format!("{:.2} s", ideal.as_secs_f64()));
    let most = f64::from(u32::try_from(PLACES)?);
    Ok(vec![
        Row::figures(&what, asked, rival, (ratio, "x"), Promise::Nothing),
        Row::alone(
            &format!("furthest from its place in the order, {how}"),
            moved.to_string(),
            (f64::from(u32::try_from(moved)?), " places"),
            Promise::AtMost(most),
        ),
    ])
}

/// Somebody who reads one machine again and again.
struct Reading {
    is_over: Arc<AtomicBool>,
    times: JoinHandle<Outcome<Vec<Duration>>>,
}

impl Reading {
    fn start(client: Client) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let times = tokio::spawn(async move {
            let target = format!("/apis/rezuscloud.io/v1alpha1/namespaces/{READ}/machines/cobalt-0");
            client.send("GET", &target, "").await?;
            let mut times = Vec::new();
            while !over.load(Ordering::Relaxed) {
                let start = Instant::now();
                client.send("GET", &target, "").await?;
                times.push(start.elapsed());
            }
            Ok(times)
        });
        Self { is_over, times }
    }

    async fn end(self) -> Outcome<Vec<Duration>> {
        self.is_over.store(true, Ordering::Relaxed);
        self.times.await?
    }
}
