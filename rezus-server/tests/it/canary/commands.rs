//! No secret of a state is in anything that a command prints.

use std::collections::BTreeSet;
use std::process::Stdio;

use rezus_server::cli;
use serde_json::json;
use tokio::process::Command;

use super::{ADDRESS, MACHINE, TENANT, cases, check, server, state};
use crate::lock::{APPLY, PUSH, id, info};
use crate::server::{PROGRAM, Server};

/// Arguments for each subcommand.
fn arguments(command: &str, server: &Server) -> Option<Vec<String>> {
    let file = |name: &str| server.scratch().join(name).display().to_string();
    let words: &[&str] = match command {
        "state show" => &[TENANT, ADDRESS],
        // Exempt is what prints or copies the states as they are; of these the refusals are looked at.
        "state get" => &["nobody"],
        "backup" => return Some(vec![file("taken")]),
        "restore" => return Some(vec![file("torn.tfstate")]),
        "state push" => return Some(vec![TENANT.to_owned(), file("torn.tfstate")]),
        "state versions" => &[TENANT, "--intermediate"],
        "state list" | "state refusals" | "tenant show" | "backend-config" | "tenant require-locks" => {
            &[TENANT]
        }
        "tenant configure" => &[
            TENANT,
            "--server-dir",
            "/",
            "--secret-var",
            "token=file:/run/token",
            "--collect",
            "on",
            "--allow-destination",
            "127.0.0.1",
            "--node-metrics",
            "9100",
        ],
        // Nothing is read of it.
        "record" => {
            let words = [TENANT, "--for", "1s", "--output", &file("recording")];
            return Some(words.map(str::to_owned).to_vec());
        }
        "tenant freeze" => &[TENANT, "--reason", "audit"],
        "state diff" | "diff" => &[TENANT, "1", "2"],
        "get" => &["machines", "--tenant", TENANT],
        "explain" | "metrics" => &[TENANT, MACHINE],
        "project" => return Some(vec![file("whole.tfstate")]),
        // The expectation beside the state is another: all that is found is printed.
        "mappings check" | "mappings test" | "mappings list" => return Some(vec![file("mappings")]),
        "state pin" | "state rollback" => &[TENANT, "1"],
        "state prune" => &["--dry-run"],
        "tenant list" | "lock list" | "index rebuild" | "token list" | "user list" | "group list"
        | "audit" | "run list" => &[],
        "token create" => &["--backend", TENANT],
        "token revoke" => &["nothing"],
        "user show" | "user remove" | "user groups" => &["ana"],
        "user create" | "user grant" | "user revoke" | "group grant" | "group revoke" => {
            &["ana", "--role", "view"]
        }
        "tenant create" => &["another"],
        // The first is refused: the state declares something.
        // Runs are refused: everybody could run programs as the server.
        "tenant delete" | "lock break" | "tenant unfreeze" | "run plan" | "run apply" | "run destroy"
        | "run drift" => &[TENANT],
        "run show" | "run logs" | "run approve" | "run cancel" | "run dismiss" => &[TENANT, "nothing"],
        "completions" => &["bash"],
        // These run until they are ended; their output is what the other tests read.
        "serve" | "demo" | "supervise" => &["--help"],
        _ => return None,
    };
    Some(words.iter().map(|word| (*word).to_owned()).collect())
}

/// The names of all subcommands that do something.
fn commands() -> BTreeSet<String> {
    fn leaves(command: &clap::Command, path: &str, found: &mut BTreeSet<String>) {
        let mut is_leaf = true;
        for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
            is_leaf = false;
            leaves(sub, format!("{path} {}", sub.get_name()).trim(), found);
        }
        if is_leaf {
            found.insert(path.to_owned());
        }
    }
    let mut found = BTreeSet::new();
    leaves(&cli::command(), "", &mut found);
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_command_prints_a_secret() {
    let server = server().await;
    std::fs::write(server.scratch().join("torn.tfstate"), &state(9, "torn")[..900]).unwrap();
    std::fs::write(server.scratch().join("taken"), "a file").unwrap();
    std::fs::write(server.scratch().join("whole.tfstate"), state(1, "project")).unwrap();
    let mappings = server.scratch().join("mappings");
    std::fs::create_dir(&mappings).unwrap();
    std::fs::write(mappings.join("web.tfstate"), state(1, "found")).unwrap();
    let expected = json!({ "kind": "Machine", "metadata": { "name": MACHINE }, "spec": {} });
    std::fs::write(mappings.join("web.expect.json"), json!({ "items": [expected] }).to_string()).unwrap();
    server.send("LOCK", &format!("/state/{TENANT}"), info(&id(1), PUSH)).await.expect(200, "LOCK");
    server.send("POST", &format!("/state/{TENANT}"), state(7, "refused")).await.expect(423, "POST");
    server.send("UNLOCK", &format!("/state/{TENANT}"), info(&id(1), APPLY)).await.expect(200, "UNLOCK");
    for name in commands() {
        let arguments = arguments(&name, &server).unwrap_or_else(|| panic!("`{name}` has no case"));
        for output in ["table", "json"] {
            let mut command = Command::new(PROGRAM);
            command.args(name.split(' ')).args(&arguments).stdin(Stdio::null());
            let takes_output = [
                "state list",
                "state show",
                "state versions",
                "state refusals",
                "state diff",
                "tenant list",
                "tenant show",
                "lock list",
                "token list",
                "user list",
                "user show",
                "group list",
                "audit",
                "get",
                "project",
                "run list",
                "run show",
            ];
            if takes_output.contains(&name.as_str()) {
                command.args(["-o", output]);
            }
            if name == "diff" && output == "json" {
                command.arg("--json");
            }
            let takes_no_target =
                ["completions", "serve", "demo", "supervise", "project"].contains(&name.as_str());
            if !takes_no_target && !name.starts_with("mappings ") {
                command.arg("--data-dir").arg(server.data_dir());
            }
            let printed = command.output().await.unwrap();
            check(&printed.stdout, &format!("`{name}` on standard output"));
            check(&printed.stderr, &format!("`{name}` on standard error"));
            assert!(!printed.stdout.is_empty() || !printed.stderr.is_empty(), "`{name}` says nothing");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_listing_and_no_refusal_to_project_prints_a_secret() {
    let server = server().await;
    let data_dir = server.data_dir().to_str().unwrap().to_owned();
    let run = async |arguments: &[&str]| {
        let printed = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().await.unwrap();
        check(&printed.stdout, &format!("{arguments:?} on standard output"));
        check(&printed.stderr, &format!("{arguments:?} on standard error"));
        printed
    };
    for kind in ["tenants", "nodegroups", "machines", "providers"] {
        for output in ["table", "wide", "json"] {
            let listed = run(&["get", kind, "-o", output, "--data-dir", &data_dir]).await;
            assert!(listed.status.success() && listed.stdout.len() > 20, "{kind} {output}");
        }
    }
    for (number, (_, body)) in cases("POST", "/state/{tenant}").unwrap().into_iter().enumerate() {
        let file = server.scratch().join(format!("{number}.tfstate"));
        std::fs::write(&file, body).unwrap();
        for output in ["table", "wide", "json", "yaml"] {
            let ran = run(&["project", file.to_str().unwrap(), "-o", output]).await;
            assert!(matches!(ran.status.code(), Some(0 | 2)), "{number}: {:?}", ran.status);
        }
    }
}
