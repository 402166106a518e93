//! Clusters that are not there: the recordings that come with rezus, the demo that shows one, and the command that makes
//! more of them.

mod demo;
mod record;
mod shipped;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::projection::condition;

/// Where the API is.
const API: &str = "/apis/rezuscloud.io/v1alpha1";

/// The state that the recordings are of.
const STATE: &str = include_str!("../../../examples/backend/demo.tfstate");

/// How long anything here may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The recording of that name that comes with rezus.
fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/clusters/{name}.jsonl"))
}

/// Asks again and again until an answer is as it should be.
async fn wait_until(mut ask: impl AsyncFnMut() -> Value, is_it: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let waiting = async {
        loop {
            last = ask().await;
            if is_it(&last) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "it never came; the last was {last:#}");
    last
}

/// How each machine of a list is: its name, what its condition Ready says and why, and by what its node was found.
fn standings(list: &Value) -> Vec<[Value; 5]> {
    let of = |machine: &Value| {
        let ready = condition(machine, "Ready").cloned().unwrap_or_default();
        let status = &machine["status"];
        [
            machine["metadata"]["name"].clone(),
            ready["status"].clone(),
            ready["reason"].clone(),
            status["foundBy"].clone(),
            status["node"]["name"].clone(),
        ]
    };
    list["items"].as_array().unwrap().iter().map(of).collect()
}
