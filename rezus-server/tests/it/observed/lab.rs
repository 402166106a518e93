//! A plane whose clusters tell what scripts say, in a time that passes when nobody works.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::observed::facts::Facts;
use rezus_core::observed::{ClusterScraper, Credential, Failure, Phase, Source};
use rezus_core::series::Window;
use rezus_server::collector::Scrapers;
use rezus_server::compose::{Plane, Stores};
use rezus_server::config::{AuthConfig, CollectorConfig, Config};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::cluster::{Authority, Validity};
use rezus_testkit::fake::{
    FakeAccountStore, FakeRunStore, FakeStateStore, FakeTimeSeries, ScriptedExecutor, ScriptedScraper, Turn,
};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{API, Declared, declared, parts};
use crate::in_process::{Events, InProcess, local};
use crate::kube::TABLE;
use crate::projection::{block_of, state_of};

/// How often Kubernetes is read where nothing else is set.
pub(super) const INTERVAL: Duration = Duration::from_secs(30);

/// A step of the clock.
const STEP: Duration = Duration::from_millis(100);

/// A plane, what its clusters tell, and who works for it.
#[derive(Debug)]
pub(super) struct Lab {
    pub(super) plane: InProcess,
    pub(super) kubernetes: ScriptedScraper,
    pub(super) talos: ScriptedScraper,
    collector: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.collector.abort();
        self.others.iter().for_each(JoinHandle::abort);
    }
}

/// Reads a tenant's name.
pub(super) fn name(tenant: &str) -> TenantName {
    tenant.parse().unwrap()
}

/// Nobody listens.
pub(super) fn gone() -> Turn {
    Turn::Fails(Failure::Unreachable { phase: Phase::Tcp, detail: "nobody listens".to_owned() })
}

/// A credential that opens nothing real.
fn credential() -> &'static Credential {
    static CREDENTIAL: OnceLock<Credential> = OnceLock::new();
    CREDENTIAL
        .get_or_init(|| Authority::new("kubernetes").credential("system:masters", "admin", Validity::ALWAYS))
}

/// What a state holds to reach a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Its Kubernetes API.
    Kubernetes,
    /// And its Talos API.
    Both,
    /// Nothing: the provider was told to keep it out of the state.
    Withheld,
    /// No such resource.
    None,
}

/// A state of these machines with their roles, and what it holds to reach them.
pub(super) fn state(serial: u64, machines: &[(&str, &str)], access: Access) -> String {
    let machine = |(name, role): &(&str, &str)| {
        let value = json!({
            "rezus_kind": "Machine", "name": name, "role": role, "node_group": role,
            "provider_id": format!("fake:///{name}"),
        });
        let both = json!({ "value": value, "type": ["object", {}] });
        json!({
            "index_key": name, "schema_version": 0, "sensitive_attributes": [],
            "attributes": { "id": name, "input": both, "output": both, "triggers_replace": null },
        })
    };
    let machines: Vec<Value> = machines.iter().map(machine).collect();
    let builtin = "provider[\"terraform.io/builtin/terraform\"]";
    let mut blocks = vec![block_of("terraform_data", "edge", builtin, &machines)];
    let provider = "provider[\"registry.opentofu.org/siderolabs/talos\"]";
    let mut add = |resource_type: &str, attributes: &Value| {
        let instance = json!({ "schema_version": 1, "attributes": attributes, "sensitive_attributes": [] });
        blocks.push(block_of(resource_type, "this", provider, &[instance]));
    };
    let mut configuration = parts(credential());
    configuration["host"] = "https://192.0.2.10:6443".into();
    if matches!(access, Access::Kubernetes | Access::Both) {
        add(
            "talos_cluster_kubeconfig",
            &json!({ "id": "c", "kubernetes_client_configuration": configuration }),
        );
    }
    if access == Access::Both {
        let attributes = json!({
            "cluster_name": "c", "endpoints": ["192.0.2.10"], "client_configuration": parts(credential()),
        });
        add("talos_client_configuration", &attributes);
    }
    if access == Access::Withheld {
        add("talos_cluster_kubeconfig", &json!({ "id": "c", "kubernetes_client_configuration": null }));
        add("talos_machine_secrets", &json!({ "id": "c", "client_configuration": null }));
    }
    state_of("observed", serial, &blocks)
}

impl Lab {
    /// A plane without tenants.
    pub(super) fn new() -> Self {
        Self::of(CollectorConfig::default())
    }

    /// The same, whose collector is set so.
    pub(super) fn of(collector: CollectorConfig) -> Self {
        let clock = ManualClock::default();
        let store = FakeStateStore::new();
        let stores = Stores {
            states: Arc::new(store.handle()),
            index: Arc::new(store.handle()),
            history: Arc::new(store.handle()),
            mark: Arc::new(store.handle()),
            accounts: Arc::new(FakeAccountStore::new()),
            runs: Arc::new(FakeRunStore::new()),
            series: Arc::new(FakeTimeSeries::new(&clock, Window::default())),
        };
        let scripted = |source| ScriptedScraper::new(source, Arc::new(clock.clone()));
        let (kubernetes, talos) = (scripted(Source::Kubernetes), scripted(Source::Talos));
        let both = |scraper: &ScriptedScraper| -> Scrapers {
            let live: Arc<dyn ClusterScraper> = Arc::new(scraper.clone());
            Scrapers { recorded: Arc::clone(&live), live }
        };
        let config = Config { auth: AuthConfig { enabled: false }, collector, ..Config::default() };
        let scrapers = vec![both(&kubernetes), both(&talos)];
        let executor = Arc::new(ScriptedExecutor::new());
        let plane = InProcess::reading(&config, stores, executor, scrapers, clock.clone(), None);
        let ticks = async move {
            loop {
                tokio::time::sleep(STEP).await;
                clock.advance(STEP);
            }
        };
        let Plane { catalogue, samples, draining, .. } = plane.plane();
        let others = vec![
            tokio::spawn(ticks),
            tokio::spawn(samples.clone().write(None, draining.clone())),
            tokio::spawn(catalogue.clone().run()),
            tokio::spawn(catalogue.clone().run_observed()),
        ];
        let collector = tokio::spawn(plane.plane().collector.clone().run());
        Self { plane, kubernetes, talos, collector, others }
    }

    /// The tenant `web` with these machines, all of them workers, of which Kubernetes tells this.
    pub(super) async fn web(machines: &[&str], facts: Facts) -> Self {
        let lab = Self::new();
        let machines: Vec<_> = machines.iter().map(|name| (*name, "worker")).collect();
        lab.tells("web", facts);
        lab.push("web", &state(1, &machines, Access::Kubernetes)).await;
        lab.pass(INTERVAL).await;
        lab
    }

    /// Kubernetes tells this of a tenant from now on.
    pub(super) fn tells(&self, tenant: &str, facts: Facts) {
        self.kubernetes.set(&name(tenant), Turn::Tells(Box::new(facts)));
    }

    /// A state is written.
    pub(super) async fn push(&self, tenant: &str, state: &str) {
        self.plane.post(tenant, state.to_owned()).await.expect(200, "POST");
        self.plane.plane().catalogue.look();
        self.plane.plane().collector.look();
    }

    /// Time passes.
    pub(super) async fn pass(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    /// The collector dies.
    pub(super) fn stop_collector(&self) {
        self.collector.abort();
    }

    /// Gets something of the API.
    pub(super) async fn get(&self, target: &str) -> Value {
        self.plane.get(&format!("{API}{target}")).await.expect(200, target).json()
    }

    /// The cells of a list's rows, by the names of its columns.
    pub(super) async fn rows(&self, target: &str) -> Vec<Value> {
        let target = format!("{API}{target}");
        let answer = self.plane.send_as(local(), "GET", &target, &[("accept", TABLE)], "").await;
        let table = answer.expect(200, &target).json();
        let names: Vec<&str> = table["columnDefinitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["name"].as_str().unwrap())
            .collect();
        let row = |row: &Value| -> Value {
            let cells = row["cells"].as_array().unwrap();
            names.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), cell.clone())).collect()
        };
        table["rows"].as_array().unwrap().iter().map(row).collect()
    }

    /// A machine of `web`.
    pub(super) async fn machine(&self, name: &str) -> Value {
        self.get(&format!("/namespaces/web/machines/{name}")).await
    }

    /// The tenant `web`.
    pub(super) async fn tenant(&self) -> Value {
        self.get("/tenants/web").await
    }

    /// What is declared in all of a tenant, as it is shown.
    pub(super) async fn declared(&self, tenant: &str) -> Vec<Declared> {
        let mut all = Vec::new();
        for target in [
            format!("namespaces/{tenant}/machines"),
            format!("namespaces/{tenant}/nodegroups"),
            "tenants".to_owned(),
        ] {
            all.extend(declared(&self.plane.get(&format!("{API}/{target}")).await.expect(200, &target).body));
        }
        all
    }

    /// Watches something from now on.
    pub(super) async fn watch(&self, target: &str) -> Events {
        let list = self.get(target).await;
        let since = list["metadata"]["resourceVersion"].as_str().unwrap();
        let target = format!("{API}{target}?watch=1&resourceVersion={since}");
        self.plane.watch(&target, "application/json").await
    }

    /// A number of the server's own metrics, of a source of a tenant.
    pub(super) async fn metric(&self, metric: &str, tenant: &str, source: &str) -> Option<f64> {
        let metrics = self.plane.get("/metrics").await.expect(200, "metrics");
        let text = String::from_utf8(metrics.body.to_vec()).unwrap();
        let labels = [format!("tenant=\"{tenant}\""), format!("source=\"{source}\"")];
        let is_it = |line: &&str| {
            line.starts_with(&format!("rezus_{metric}{{")) && labels.iter().all(|it| line.contains(it))
        };
        let line = text.lines().find(is_it)?;
        line.rsplit_once(' ')?.1.parse().ok()
    }
}
