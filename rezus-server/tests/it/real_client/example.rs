//! The example that people try first, applied by real clients: its machines are there at once.

use std::path::Path;
use std::process::Stdio;

use rezus_testkit::canary::Canary;
use serde_json::Value;
use tokio::process::Command;

use crate::server::{PROGRAM, Server};
use crate::tool::{self, Form, Workspace};

/// `examples/backend`, without the backend block that names the default server.
pub(crate) fn example() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/backend/main.tf");
    let text = std::fs::read_to_string(file).unwrap();
    let start = text.find("terraform {").unwrap();
    let end = start + text[start..].find("\n}\n").unwrap() + 3;
    format!("{}{}", &text[..start], &text[end..])
}

#[tokio::test]
async fn the_machines_of_the_example_are_listed_with_groups_and_roles_at_once_after_the_apply() {
    for tool in tool::installed() {
        let server = Server::start().await;
        let workspace = Workspace::new(&tool, &server, "example", "").await;
        let backend = Form::Path.block(server.url(), "demo");
        workspace.write("main.tf", &format!("{backend}{}", example()));
        workspace.run(&["init", "-input=false", "-reconfigure"]).await.done();
        workspace.run(&["apply", "-auto-approve", "-input=false"]).await.done();
        let list = "/apis/rezuscloud.io/v1alpha1/namespaces/demo/machines";
        let listed = server.get(list).await.expect(200, "list");
        assert!(Canary::new(["demo-only-join-token-5f2c9a"]).leaks(&listed.body).is_empty());
        let of = |machine: &Value| {
            let spec = &machine["spec"];
            let text = |field: &str| spec[field].as_str().unwrap().to_owned();
            (text("name"), text("role"), text("nodeGroup"), spec["cpus"].as_u64())
        };
        let found: Vec<_> = listed.items().iter().map(of).collect();
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["cp-1", "cp-2", "cp-3", "edge-berlin", "edge-lisbon", "edge-oslo"]);
        for (name, role, group, cpus) in &found {
            let (is_control_plane, expected) =
                (name.starts_with("cp-"), if name == "edge-oslo" { 8 } else { 4 });
            assert_eq!(role == "controlplane", is_control_plane, "{name}");
            assert_eq!(group == "control-plane", is_control_plane, "{name}: {group}");
            assert_eq!(*cpus, Some(expected), "{name}");
        }
        let mut command = Command::new(PROGRAM);
        command.args(["get", "machines", "--server", server.url()]).env_clear().stdin(Stdio::null());
        let printed = String::from_utf8(command.output().await.unwrap().stdout).unwrap();
        assert!(names.iter().all(|name| printed.contains(name)), "{printed}");

        // One goes, one changes.
        let workers = r#"workers={"edge-berlin"={zone="berlin",cpus=4,memory_mib=4096},"edge-lisbon"={zone="lisbon",cpus=4,memory_mib=8192}}"#;
        workspace.run(&["apply", "-auto-approve", "-input=false", "-var", workers]).await.done();
        assert_eq!(server.get(list).await.items().len(), 5);
        server.get(&format!("{list}/edge-oslo")).await.expect(404, "what is gone");
        let changed = server.get(&format!("{list}/edge-berlin")).await.expect(200, "changed").json();
        assert_eq!(changed["spec"]["memoryMiB"], 4_096);
        let history = server.get(&format!("{list}/edge-oslo/history")).await.expect(200, "history").items();
        assert_eq!(history.last().unwrap()["change"], "removed");
    }
}
