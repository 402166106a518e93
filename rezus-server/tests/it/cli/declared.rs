//! `get`, `diff` and `explain`: what is declared, by each of the ways to a server.

use serde_json::json;

use super::{Ran, run};
use crate::projection::machines;
use crate::server::Server;

/// A server with two versions: `a` stays, `b` goes, `c` comes, and `a` moves to another zone.
async fn server() -> Server {
    let server = Server::start().await;
    let a = |zone: &str| json!({ "name": "a", "role": "worker", "zone": zone, "internal_ips": ["10.0.0.1"] });
    let first = machines(1, &[("a", a("one")), ("b", json!({ "name": "b" }))]);
    let second = machines(2, &[("a", a("two")), ("c", json!({ "name": "c" }))]);
    for body in [first, second] {
        server.send("POST", "/state/web", body).await.expect(200, "POST");
    }
    server
}

async fn every_command(target: &[&str]) {
    let run = async |arguments: &[&str]| -> Ran { run(&[arguments, target].concat()).await };
    let listed = run(&["get", "machines"]).await.done();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 3, "{listed}");
    assert!(
        lines[1].contains("web") && lines[1].contains("worker") && lines[1].contains("10.0.0.1"),
        "{listed}"
    );
    let then = run(&["get", "machines", "--tenant", "web", "--version", "1", "-o", "json"]).await.json();
    let names: Vec<_> = then["items"].as_array().unwrap().iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["a", "b"]);
    let one = run(&["get", "machine", "a", "-t", "web", "-o", "json"]).await.json();
    assert_eq!((&one["kind"], &one["spec"]["zone"]), (&"Machine".into(), &"two".into()));
    let wide = run(&["get", "mc", "-o", "wide"]).await.done();
    assert!(wide.contains("terraform_data.edge[\"a\"]") && wide.contains("two"), "{wide}");
    for (kind, piece) in [("tenants", "web"), ("nodegroups", "edge"), ("providers", "hcloud")] {
        assert!(run(&["get", kind]).await.done().contains(piece), "{kind}");
    }
    run(&["get", "machines", "nobody"]).await.failed(1, "nobody");
    run(&["get", "machines", "--tenant", "nobody"]).await.failed(1, "nobody");
    run(&["get", "machines", "--tenant", "web", "--version", "9"]).await.failed(1, "no version 9");
    run(&["get", "machines", "--version", "1"]).await.failed(64, "--tenant");
    run(&["get", "tenants", "--tenant", "web"]).await.failed(64, "belong to no tenant");

    let diff = run(&["diff", "web", "1", "2"]).await.done();
    for line in ["~ Machine a", "    zone: one -> two", "- Machine b", "+ Machine c"] {
        assert!(diff.lines().any(|found| found == line), "{line} is not in: {diff}");
    }
    let same = run(&["diff", "web", "2", "2"]).await;
    assert!(same.done().contains("declare the same"));
    run(&["diff", "web", "1", "9"]).await.failed(1, "no version 9");

    let explained = run(&["explain", "web", "a", "zone"]).await.done();
    let path = "$.resources[0].instances[0].attributes.input.value.zone";
    assert!(explained.contains("terraform_data.edge[\"a\"]") && explained.contains(path), "{explained}");
    assert_eq!(explained.lines().count(), 2);
    assert!(run(&["explain", "web", "b", "--version", "1"]).await.done().contains("name"));
    run(&["explain", "web", "a", "colour"]).await.failed(1, "no such field; it has: ");
    run(&["explain", "web", "b"]).await.failed(1, "\"b\" not found");
}

#[tokio::test]
async fn what_is_declared_is_listed_and_compared_and_explained_with_a_server_and_without() {
    let mut server = server().await;
    let directory = server.data_dir().to_str().unwrap().to_owned();
    every_command(&["--server", server.url()]).await;
    every_command(&["--data-dir", &directory]).await;
    assert!(server.terminate().await.success());
    every_command(&["--data-dir", &directory]).await;
}
