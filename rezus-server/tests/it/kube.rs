//! The Kubernetes API: what lists, watches and refusals look like on the wire.

mod any_request;
mod credentials;
mod lists;
mod pages;
mod refused_writes;
mod restarts;
mod secrets;
mod watches;

use serde_json::{Value, json};

use crate::in_process::InProcess;
use crate::projection::machines;

/// Where the API is.
const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// How kubectl asks for tables.
pub(crate) const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";

/// The tenant `web` with machines `a`, `b` (workers in a group each) and `c` (a control plane), and `other` with `x`.
async fn two_tenants() -> InProcess {
    let plane = InProcess::new();
    plane.post("web", web(1, "one")).await.expect(200, "POST");
    plane
        .post("other", machines(1, &[("x", json!({ "name": "x", "role": "worker" }))]))
        .await
        .expect(200, "POST");
    plane
}

/// The state of `web`; the zone of `a` can be told.
fn web(serial: u64, zone: &str) -> String {
    let a = json!({
        "name": "a", "role": "worker", "node_group": "pool", "zone": zone, "internal_ips": ["10.0.0.1"], "cpus": 4,
    });
    let b = json!({ "name": "b", "role": "worker", "node_group": "rest", "external_ips": ["198.51.100.2"] });
    let c = json!({ "name": "c", "role": "controlplane", "hostname": "c.example" });
    machines(serial, &[("a", a), ("b", b), ("c", c)])
}

/// Gets something in a form.
async fn get_as(plane: &InProcess, accept: &str, target: &str) -> crate::answer::Answer {
    plane.send_as(crate::in_process::local(), "GET", target, &[("accept", accept)], "").await
}

/// The names of objects.
fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}
