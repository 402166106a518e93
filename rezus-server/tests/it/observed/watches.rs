//! What is observed reaches those who watch.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::lab::{INTERVAL, Lab, name};
use super::live::{self, Kubernetes};
use super::{facts, peers, says};
use crate::server::Server;
use crate::tools;

#[tokio::test(start_paused = true)]
async fn a_status_that_changes_reaches_a_watch_and_leaves_the_generation() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let before = lab.machine("a").await;
    let mut events = lab.watch("/namespaces/web/machines").await;
    lab.tells("web", facts::kubernetes(vec![facts::ailing("a")]));
    let event = events.next().await;
    let object = &event["object"];
    assert_eq!((&event["type"], says(object, "Ready")), (&"MODIFIED".into(), ("False", "NodeNotReady")));
    let same = ["generation", "uid", "creationTimestamp"];
    assert!(same.iter().all(|member| object["metadata"][member] == before["metadata"][member]), "{object:#}");
    assert!(object["metadata"]["generation"].is_u64() && object["spec"] == before["spec"], "{object:#}");
    assert_ne!(object["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
    lab.tells("web", facts::nodes(&["a"]));
    assert_eq!(says(&events.next().await["object"], "Ready"), ("True", "Ready"));
}

#[tokio::test(start_paused = true)]
async fn turns_that_tell_the_same_are_no_event() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    let mut events = lab.watch("/namespaces/web/machines").await;
    let turns = lab.kubernetes.turns(&name("web"));
    // Less than what is shown may be older than what is known.
    lab.pass(INTERVAL * 8).await;
    assert!(lab.kubernetes.turns(&name("web")) >= turns + 7);
    lab.tells("web", facts::kubernetes(vec![facts::ailing("a")]));
    assert_eq!(says(&events.next().await["object"], "Ready"), ("False", "NodeNotReady"));
}

#[tokio::test(start_paused = true)]
async fn each_transition_is_an_event_of_its_object() {
    let lab = Lab::web(&["a"], facts::nodes(&["a"])).await;
    lab.tells("web", facts::kubernetes(vec![facts::ailing("a")]));
    lab.pass(INTERVAL).await;
    lab.tells("web", facts::nodes(&["a"]));
    lab.pass(INTERVAL).await;
    let events = lab.plane.get("/api/v1/namespaces/web/events").await.expect(200, "events").items();
    let uid = lab.machine("a").await["metadata"]["uid"].clone();
    let of_machine = |event: &&Value| event["involvedObject"]["uid"] == uid;
    let told: Vec<_> =
        events.iter().filter(of_machine).map(|event| (&event["type"], &event["reason"])).collect();
    let told: Vec<_> =
        told.iter().map(|(kind, reason)| (kind.as_str().unwrap(), reason.as_str().unwrap())).collect();
    assert!(
        told.contains(&("Warning", "NodeNotReady")) && told.contains(&("Normal", "Ready")),
        "{events:#?}"
    );
}

/// `kubectl` for a server that asks nobody who they are.
fn kubectl(server: &Server, arguments: &[&str]) -> Option<Command> {
    let mut command = Command::new(tools::find("kubectl")?);
    command.args(["--server", server.url(), "--namespace", "web"]).args(arguments);
    command.env_clear().env("HOME", server.scratch()).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

#[tokio::test]
async fn kubectl_waits_for_a_machine_and_sees_it_change() {
    let server = live::server("1s").await;
    let kubernetes = Kubernetes::start().await;
    peers::tenant(&server, "web", 1, &kubernetes.api.url(), &kubernetes.api.credential()).await;
    let wait = ["wait", "--for=condition=Ready", "machines/a", "--timeout=120s"];
    let (Some(mut wait), Some(mut watch)) =
        (kubectl(&server, &wait), kubectl(&server, &["get", "machines", "--watch", "--no-headers"]))
    else {
        return tools::missing("kubectl", "waits and watches of what is observed");
    };
    let ask = || live::machine(&server, "web", "a");
    let before = live::until("missing", ask, |it| says(it, "Ready") == ("False", "Missing")).await;
    let mut watch = watch.spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.contains("False"), "{first}");
    let waiting = wait.spawn().unwrap();
    kubernetes.join("a");
    let output = waiting.wait_with_output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("condition met"), "{said}{output:?}");
    let changed = lines.next_line().await.unwrap().unwrap();
    assert!(changed.contains("True"), "{changed}");
    let after = live::machine(&server, "web", "a").await;
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    watch.kill().await.unwrap();
}
