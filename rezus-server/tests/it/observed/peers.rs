//! Clusters that do harm, each in its way, beside such as are well: over real connections, read by a real server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::clock::SystemClock;
use rezus_core::observed::Credential;
use rezus_testkit::fake::cluster::{FakeKubernetes, PeerFault};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::live::{self, Kubernetes};
use super::says;
use crate::projection::{block_of, machines, state_of};
use crate::server::Server;
use crate::tools;

/// How many clusters are well.
const WELL: usize = 49;

/// How often each is read, in seconds.
const EVERY: f64 = 2.0;

/// How often it is looked how old their news is, a second apart, where drills are run in full.
const LOOKS: usize = 60;

/// Writes a state of one machine with what opens a Kubernetes API, and lets the server ask loopback for it.
pub(super) async fn tenant(server: &Server, name: &str, serial: u64, url: &str, credential: &Credential) {
    let mut configuration = super::parts(credential);
    configuration["host"] = url.into();
    let attributes = json!({ "id": "c", "kubernetes_client_configuration": configuration });
    let instance = json!({ "schema_version": 1, "attributes": attributes, "sensitive_attributes": [] });
    let provider = "provider[\"registry.opentofu.org/siderolabs/talos\"]";
    let kubeconfig = block_of("talos_cluster_kubeconfig", "this", provider, &[instance]);
    let input = json!({ "name": "a", "role": "worker", "provider_id": "fake:///a" });
    let declared: Value = serde_json::from_str(&machines(serial, &[("a", input)])).unwrap();
    let state = state_of("peers", serial, &[declared["resources"][0].clone(), kubeconfig]);
    server.send("POST", &format!("/state/{name}"), state).await.expect(200, "POST");
    let change = json!({ "destinations": ["127.0.0.1"] }).to_string();
    server.send("PATCH", &format!("/rezus/v1/tenants/{name}"), change).await.expect(200, "PATCH");
}

/// An address where connections are neither accepted nor refused: its queue is full.
async fn black_hole() -> (TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await
    {
        waiting.push(stream.unwrap());
    }
    (listener, waiting)
}

/// How old the news of each cluster that is well is, in seconds.
async fn ages(server: &Server) -> Vec<f64> {
    let metrics = server.send("GET", "/metrics", "").await.expect(200, "metrics");
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    let lines = text.lines().filter(|line| {
        line.starts_with("rezus_observation_age_seconds{")
            && line.contains("tenant=\"well-")
            && line.contains("source=\"kubernetes\"")
    });
    let ages: Vec<f64> = lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(ages.len(), WELL, "{text}");
    ages
}

/// The largest the server's memory was, in KiB.
fn peak(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[tokio::test]
async fn d01_peers_that_do_harm_are_told_as_such_and_cost_the_others_nothing() {
    let server = live::server("2s").await;
    let kubernetes = Kubernetes::start().await;
    kubernetes.join("a");
    let admin = kubernetes.api.credential();
    for number in 0..WELL {
        tenant(&server, &format!("well-{number}"), 1, &kubernetes.api.url(), &admin).await;
    }
    let faults = [
        ("silent-tls", PeerFault::SilentTls),
        ("silent-http", PeerFault::SilentHttp),
        ("drip", PeerFault::Drip),
        ("half-open", PeerFault::HalfOpen),
        ("endless", PeerFault::Endless),
    ];
    let mut harmful = Vec::new();
    for (name, fault) in faults {
        let api = FakeKubernetes::start(Arc::new(SystemClock)).await;
        api.set_fault(Some(fault));
        tenant(&server, name, 1, &api.url(), &api.credential()).await;
        harmful.push((name, api));
    }
    let (hole, _waiting) = black_hole().await;
    let url = format!("https://{}", hole.local_addr().unwrap());
    tenant(&server, "black-hole", 1, &url, &admin).await;

    let names = faults.iter().map(|(name, _)| *name).chain(["black-hole"]);
    for name in names {
        let ask = || live::tenant(&server, name);
        let told = live::until(name, ask, |it| says(it, "KubernetesReachable").0 == "False").await;
        let reason = says(&told, "KubernetesReachable").1;
        let wanted: &[&str] =
            if name == "endless" { &["TooLarge", "Timeout"] } else { &["Timeout", "Unreachable"] };
        assert!(wanted.contains(&reason), "{name}: {told:#}");
        let machine = live::machine(&server, name, "a").await;
        assert_eq!(says(&machine, "Ready"), ("Unknown", "NotObserved"), "{name}");
    }
    if tools::drills_are_full() {
        let mut oldest = 0.0_f64;
        for _ in 0..LOOKS {
            oldest = ages(&server).await.into_iter().fold(oldest, f64::max);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tools::say(&format!(
            "news of {WELL} clusters was never older than {oldest:.1} s, read each {EVERY} s"
        ));
        assert!(oldest < 2.0 * EVERY, "{oldest} s");
    }
    // The news of those that are well goes on coming.
    for (status, wanted) in [("False", ("False", "NodeNotReady")), ("True", ("True", "Ready"))] {
        kubernetes.api.set_ready("a", status);
        for number in 0..WELL {
            let name = format!("well-{number}");
            let ask = || live::machine(&server, &name, "a");
            live::until(&name, ask, |machine| says(machine, "Ready") == wanted).await;
        }
    }
    let (_, endless) = &harmful[4];
    assert!(endless.taken() < 500 << 20, "{} bytes were taken", endless.taken());
    assert!(peak(&server) < 400 << 10, "{} KiB", peak(&server));
}
