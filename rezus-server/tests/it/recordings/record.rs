//! `record`: what comes of a cluster that is there is shown as well when it is gone.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rezus_adapters::clock::SystemClock;
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::observed::{Recording, Source};
use rezus_testkit::canary::Canary;
use rezus_testkit::fake::cluster::FakeKubernetes;
use serde_json::{Value, json};

use super::{API, standings, wait_until};
use crate::cli::run;
use crate::projection::{block_of, machines};
use crate::server::{Server, Settings};

/// A state that declares three machines, of which the cluster has two, and what opens that.
fn state(cluster: &FakeKubernetes, secrets: &mut Vec<Vec<u8>>) -> String {
    let credential = cluster.credential();
    let pem = [&credential.ca, &credential.certificate, &credential.key];
    secrets.extend(pem.map(|pem| pem.to_vec()));
    let [ca, certificate, key] = pem.map(|pem| STANDARD.encode(pem.as_slice()));
    let configuration = json!({
        "host": cluster.url(), "ca_certificate": ca, "client_certificate": certificate, "client_key": key,
    });
    let attributes = json!({ "id": "c", "kubernetes_client_configuration": configuration });
    let instance = json!({ "schema_version": 1, "attributes": attributes, "sensitive_attributes": [] });
    let provider = "provider[\"registry.opentofu.org/siderolabs/talos\"]";
    let access = block_of("talos_cluster_kubeconfig", "this", provider, &[instance]);
    let machine = |name: &'static str| {
        (name, json!({ "name": name, "role": "worker", "provider_id": format!("fake://zone/{name}") }))
    };
    let all = ["node-0000", "node-0001", "node-0002"].map(machine);
    let mut state: Value = serde_json::from_str(&machines(1, &all)).unwrap();
    state["resources"].as_array_mut().unwrap().push(access);
    state.to_string()
}

async fn machines_of(server: &Server, tenant: &str) -> Value {
    server.get(&format!("{API}/namespaces/{tenant}/machines")).await.expect(200, "machines").json()
}

fn are_seen(list: &Value) -> bool {
    let mut items = list["items"].as_array().unwrap().iter();
    items.all(|item| item["status"]["observedAt"].is_string() || item["status"]["health"] == "Missing")
}

#[tokio::test]
async fn a_recording_of_a_cluster_shows_the_same_as_the_cluster_and_nothing_that_opens_it() {
    let now: Timestamp = SystemClock.now();
    let cluster = FakeKubernetes::start(Arc::new(SystemClock)).await;
    cluster.fill(2, 3);
    for name in ["node-0000", "node-0001"] {
        cluster.renew(name, now);
    }
    cluster.set_ready("node-0001", "False");
    let variables = vec![("REZUS_COLLECTOR__KUBERNETES", "1s".to_owned())];
    let server = Server::start_with(Settings { variables, ..Settings::default() }).await;
    let mut secrets = Vec::new();
    let state = state(&cluster, &mut secrets);
    server.send("POST", "/state/there", state.clone()).await.expect(200, "POST");
    let at = ["--server", server.url()];
    let allow = ["tenant", "configure", "there", "--allow-destination", "127.0.0.1"];
    run(&[&allow[..], &at].concat()).await.done();
    wait_until(async || machines_of(&server, "there").await, are_seen).await;

    let file = server.scratch().join("there.jsonl").display().to_string();
    let said = run(&[&["record", "there", "--for", "5s", "-o", &file][..], &at].concat()).await.done();
    assert!(said.contains(&file), "{said}");
    let text = std::fs::read_to_string(&file).unwrap();
    let recording = Recording::parse(&text).unwrap();
    assert!(recording.sources().contains(&Source::Kubernetes), "{text}");
    assert!(text.lines().count() > 2, "{text}");
    assert!(text.contains("node-0001"), "{text}");
    let lines = |pem: &Vec<u8>| -> Vec<String> {
        let text = std::str::from_utf8(pem).unwrap();
        text.lines().filter(|line| line.len() >= 16 && !line.starts_with('-')).map(str::to_owned).collect()
    };
    let lines: Vec<String> = secrets.iter().flat_map(lines).collect();
    assert!(lines.len() > 10);
    assert_eq!(Canary::new(&lines).leaks(text.as_bytes()), []);
    assert_eq!(Canary::new(&secrets).leaks(text.as_bytes()), []);

    // The cluster is gone; what was recorded of it is shown of another tenant that declares the same.
    let was = standings(&machines_of(&server, "there").await);
    let ready: Vec<&Value> = was.iter().map(|[_, ready, ..]| ready).collect();
    assert_eq!(ready, ["True", "False", "False"], "{was:?}");
    drop(cluster);
    server.send("POST", "/state/gone", state).await.expect(200, "POST");
    let replay = ["tenant", "configure", "gone", "--recording", &file];
    run(&[&replay[..], &at].concat()).await.done();
    wait_until(async || machines_of(&server, "gone").await, |list| standings(list) == was).await;
}
