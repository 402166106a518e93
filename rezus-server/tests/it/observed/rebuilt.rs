//! A cluster that is built anew under a real server: first the state is of before, then it is refreshed.

use std::time::Duration;

use rezus_core::observed::Credential;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::live::{Kubernetes, server};
use super::peers::tenant;
use super::{API, says};
use crate::server::Server;

/// How long anything may take: a server that showed another authority is asked again after half a minute, unless the state
/// changes.
const PATIENCE: Duration = Duration::from_mins(2);

/// Waits until the tenant is so.
async fn until(server: &Server, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = Instant::now() + PATIENCE;
    loop {
        let shown = server.send("GET", &format!("{API}/tenants/anew"), "").await;
        if shown.code == 200 && is_so(&shown.json()) {
            return shown.json();
        }
        assert!(Instant::now() < end, "{what}: {}", String::from_utf8_lossy(&shown.body));
        sleep(Duration::from_millis(200)).await;
    }
}

/// A cluster of one node, and what opens it.
async fn cluster(uid: &str) -> (Kubernetes, String, Credential) {
    let cluster = Kubernetes::start().await;
    cluster.api.set_cluster_uid(uid);
    cluster.join("a");
    let (url, credential) = (cluster.api.url(), cluster.api.credential());
    (cluster, url, credential)
}

#[tokio::test]
async fn a_cluster_built_anew_is_a_mismatch_until_the_state_knows_it_and_another_incarnation_then() {
    let (_old, old_url, old) = cluster("uid-of-the-old-one").await;
    let (_new, new_url, new) = cluster("uid-of-the-new-one").await;
    let server = server("1s").await;
    let is_ready = |tenant: &Value, number: u64| {
        says(tenant, "Ready").0 == "True" && tenant["status"]["incarnation"] == number
    };
    tenant(&server, "anew", 1, &old_url, &old).await;
    until(&server, "the old one", |tenant| is_ready(tenant, 1)).await;

    // It is another one by now, whose authority has the same name; the state does not know.
    tenant(&server, "anew", 2, &new_url, &old).await;
    let is_mismatch = |tenant: &Value| says(tenant, "KubernetesReachable") == ("False", "IdentityMismatch");
    let shown = until(&server, "the mismatch", is_mismatch).await;
    assert_eq!(shown["status"]["incarnation"], 1);

    tenant(&server, "anew", 3, &new_url, &new).await;
    until(&server, "the new one", |tenant| is_ready(tenant, 2)).await;
    // The samples of both are there, each by its number.
    let end = Instant::now() + PATIENCE;
    loop {
        let target = format!("{API}/tenants/anew/metrics?name=rezus_cluster_info&range=1h");
        let answer = server.send("GET", &target, "").await.expect(200, "metrics").json();
        let series = answer["series"].as_array().unwrap().iter().map(|series| &series["labels"]);
        let mut told: Vec<_> = series
            .map(|labels| (labels["cluster"].as_str().unwrap(), labels["incarnation"].as_str()))
            .collect();
        told.sort_unstable_by_key(|(_, number)| *number);
        if told.len() == 2 {
            assert_eq!(told, [("uid-of-the-old-one", None), ("uid-of-the-new-one", Some("2"))]);
            break;
        }
        assert!(Instant::now() < end, "{answer:#}");
        sleep(Duration::from_millis(500)).await;
    }
}
