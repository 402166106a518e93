//! The clusters: what they are, how they live, and the states that declare them.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_adapters::clock::SystemClock;
use rezus_core::base::Clock as _;
use rezus_core::observed::Credential;
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::cluster::talos::{Cluster, FakeTalos};
use rezus_testkit::fake::cluster::{FakeKubernetes, Validity, node, pod};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::interval;

/// How many machines of each are control planes.
const CONTROL_PLANES: usize = 3;

/// How often a kubelet renews its lease, and how often it reports where nothing changed (`nodeLeaseDurationSeconds / 4`,
/// `nodeStatusReportFrequency`).
const LEASES: u32 = 10;
const REPORTS: usize = 300;

/// Of so many pods one is replaced in a second: each lives for somewhat more than a day and a quarter.
const REPLACED: usize = 100_000;

/// How long watchers hear nothing until they are told how far the API server is: as kube-apiserver has it.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// Clusters of the same size, all with the same machines by Talos.
pub(super) struct Clusters {
    kubernetes: Vec<FakeKubernetes>,
    talos: Arc<FakeTalos>,
    nodes: usize,
    /// They live as long as this does.
    _life: JoinSet<()>,
}

/// The name of a machine, and of its node.
pub(super) fn name_of(index: usize) -> String {
    format!("node-{index:04}")
}

fn address(index: usize) -> IpAddr {
    let high = u8::try_from(index / 200).unwrap_or(u8::MAX);
    let low = u8::try_from(index % 200).unwrap_or(u8::MAX);
    IpAddr::V4(Ipv4Addr::new(127, 1, high, low + 1))
}

impl Clusters {
    pub(super) async fn start(count: usize, nodes: usize, pods: usize) -> Self {
        let clock = ManualClock::at(SystemClock.now());
        let talos = Arc::new(FakeTalos::start(machines(nodes), clock.clone()).await);
        let mut life = JoinSet::new();
        let mut kubernetes = Vec::new();
        for _ in 0..count {
            let fake = FakeKubernetes::start(Arc::new(SystemClock)).await;
            fake.tell_bookmarks_after(BOOKMARKS);
            for index in 0..nodes {
                fake.put(node_of(index));
                fake.renew(&name_of(index), SystemClock.now());
            }
            for index in 0..pods {
                fake.put(pod_of(index, 0, nodes));
            }
            life.spawn(live(fake.clone(), nodes, pods));
            kubernetes.push(fake);
        }
        let followed = Arc::clone(&talos);
        life.spawn(async move {
            let mut ticks = interval(Duration::from_millis(100));
            loop {
                ticks.tick().await;
                clock.set(SystemClock.now());
                drop(followed.take_calls());
            }
        });
        Self { kubernetes, talos, nodes, _life: life }
    }

    /// How many nodes each has.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn kubernetes(&self, cluster: usize) -> &FakeKubernetes {
        &self.kubernetes[cluster]
    }

    /// The addresses that must be allowed.
    pub(super) fn destinations() -> BTreeSet<IpAddr> {
        let mut all: BTreeSet<_> = (0..CONTROL_PLANES).map(address).collect();
        all.insert(IpAddr::V4(Ipv4Addr::LOCALHOST));
        all
    }

    /// A state that declares a cluster's machines, and holds what opens it.
    pub(super) fn state(&self, cluster: usize) -> serde_json::Result<Vec<u8>> {
        let fake = &self.kubernetes[cluster];
        let mut kubernetes = parts(&fake.credential());
        kubernetes["host"] = fake.url().into();
        let talos = parts(&self.talos.credential("os:admin", Validity::ALWAYS));
        let endpoints: Vec<_> = (0..CONTROL_PLANES).map(|index| self.talos.endpoint(index)).collect();
        let provider = "provider[\"registry.opentofu.org/siderolabs/talos\"]";
        let builtin = "provider[\"terraform.io/builtin/terraform\"]";
        let kubeconfig = json!({ "id": "c", "kubernetes_client_configuration": kubernetes });
        let talosconfig = json!({ "id": "t", "cluster_name": "fake", "endpoints": endpoints, "client_configuration": talos });
        let instances: Vec<Value> = (0..self.nodes).map(machine_of).collect();
        serde_json::to_vec(&json!({
            "version": 4,
            "terraform_version": "1.11.4",
            "serial": 1,
            "lineage": "6f1d2a44-8c1b-4a0e-9d57-0b7c55c1e0aa",
            "outputs": {},
            "resources": [
                block("managed", "talos_cluster_kubeconfig", provider, &[instance(&kubeconfig)]),
                block("data", "talos_client_configuration", provider, &[instance(&talosconfig)]),
                block("managed", "terraform_data", builtin, &instances),
            ],
            "check_results": null,
        }))
    }
}

fn block(mode: &str, resource_type: &str, provider: &str, instances: &[Value]) -> Value {
    json!({ "mode": mode, "type": resource_type, "name": "this", "provider": provider, "instances": instances })
}

fn instance(attributes: &Value) -> Value {
    json!({ "schema_version": 1, "attributes": attributes, "sensitive_attributes": [] })
}

/// As states hold them: PEM in base64.
fn parts(credential: &Credential) -> Value {
    let encoded = |pem: &[u8]| STANDARD.encode(pem);
    json!({
        "ca_certificate": encoded(&credential.ca),
        "client_certificate": encoded(&credential.certificate),
        "client_key": encoded(&credential.key),
    })
}

fn role(index: usize) -> &'static str {
    if index < CONTROL_PLANES { "controlplane" } else { "worker" }
}

/// The resource that declares a machine, by hand.
fn machine_of(index: usize) -> Value {
    let name = name_of(index);
    let value = json!({
        "rezus_kind": "Machine",
        "name": name,
        "role": role(index),
        "node_group": role(index),
        "provider_id": format!("fake://zone/{name}"),
        "internal_ips": [address(index)],
        "instance_type": "fake.large",
        "region": "eu",
        "zone": format!("zone-{}", index % 3),
        "cpus": 8,
        "memory_mib": 16_384,
    });
    let typed = json!({ "value": value, "type": ["object", {}] });
    let mut declared =
        instance(&json!({ "id": name, "input": typed, "output": typed, "triggers_replace": null }));
    declared["index_key"] = name.into();
    declared
}

fn node_of(index: usize) -> Value {
    let name = name_of(index);
    let mut node = node(&name);
    node["status"]["addresses"][0]["address"] = address(index).to_string().into();
    node["status"]["nodeInfo"]["systemUUID"] = format!("uuid of {name}").into();
    if index < CONTROL_PLANES {
        node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = "".into();
    }
    node
}

/// The pod in a place; each that comes there has another name.
fn pod_of(place: usize, number: usize, nodes: usize) -> Value {
    pod(&format!("space-{:02}", place % 20), &pod_name(place, number), &name_of(place % nodes))
}

fn pod_name(place: usize, number: usize) -> String {
    format!("pod-{place:05}-{number}")
}

/// The machines as Talos has them.
fn machines(nodes: usize) -> Cluster {
    let mut cluster = Cluster::new(CONTROL_PLANES, 1);
    if let Some(worker) = cluster.machines.last().cloned() {
        cluster.machines.resize(nodes, worker);
    }
    for (index, machine) in cluster.machines.iter_mut().enumerate() {
        machine.address = address(index);
        machine.name = name_of(index);
        machine.node_id = format!("id-{index:04}");
    }
    cluster
}

/// Lets a cluster live: leases are renewed, kubelets report by turns, pods are replaced by others.
async fn live(fake: FakeKubernetes, nodes: usize, pods: usize) {
    let mut seconds = interval(Duration::from_secs(1));
    let (mut reports, mut replacements) = (Share::new(nodes, REPORTS), Share::new(pods, REPLACED));
    for second in 0_u32.. {
        seconds.tick().await;
        if second % LEASES == 0 {
            let now = SystemClock.now();
            (0..nodes).for_each(|index| fake.renew(&name_of(index), now));
        }
        for (index, _) in reports.due() {
            fake.change("nodes", &name_of(index), |node| {
                for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
                    condition["lastHeartbeatTime"] = SystemClock.now().to_string().into();
                }
            });
        }
        for (place, round) in replacements.due() {
            let space = format!("space-{:02}", place % 20);
            fake.remove("pods", &format!("{space}/{}", pod_name(place, round)));
            let mut starting = pod_of(place, round + 1, nodes);
            let running = starting["status"].clone();
            starting["status"] = json!({ "phase": "Pending" });
            fake.put(starting.clone());
            starting["status"] = running;
            fake.put(starting);
        }
    }
}

/// Whose turn it is, of so many, when each has one within so many seconds.
struct Share {
    all: usize,
    within: usize,
    owed: usize,
    next: usize,
}

impl Share {
    fn new(all: usize, within: usize) -> Self {
        Self { all, within, owed: 0, next: 0 }
    }

    /// Those of one more second: which, and how often it was its turn before.
    fn due(&mut self) -> Vec<(usize, usize)> {
        self.owed += self.all;
        let count = self.owed / self.within;
        self.owed %= self.within;
        let turns = (self.next..self.next + count).map(|turn| (turn % self.all, turn / self.all)).collect();
        self.next += count;
        turns
    }
}
