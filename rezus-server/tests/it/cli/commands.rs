//! Every subcommand once: through the socket of a running server, by a server's URL, and on a directory without one.

use std::path::Path;

use super::{Ran, run_with};
use crate::lock::{self, APPLY, state};
use crate::server::Server;

/// A way to the data, and files to push.
struct Way<'a> {
    target: [String; 2],
    scratch: &'a Path,
}

impl Way<'_> {
    async fn with_input(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let target = self.target.iter().map(String::as_str);
        let all: Vec<&str> = arguments.iter().copied().chain(target).collect();
        run_with(&all, &[], input).await
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        self.with_input(arguments, b"").await
    }

    fn file(&self, name: &str, content: &str) -> String {
        let path = self.scratch.join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Pieces of a table's lines, in order, each found in a line of its own.
#[track_caller]
fn has_rows(table: &str, heads: &[&str], rows: &[&[&str]]) {
    let mut lines = table.lines();
    let first: Vec<&str> = lines.next().unwrap_or_default().split("   ").map(str::trim).collect();
    let first: Vec<&str> = first.into_iter().filter(|head| !head.is_empty()).collect();
    assert_eq!(first, heads, "{table}");
    for (line, row) in lines.by_ref().zip(rows) {
        assert!(row.iter().all(|piece| line.contains(piece)), "{row:?} is not in: {line}");
    }
    assert!(table.lines().count() > rows.len(), "{table}");
}

async fn every_state_command(way: &Way<'_>) {
    let first = way.file("first", &state("l", 1));
    way.run(&["tenant", "create", "web"]).await.done();
    way.run(&["tenant", "create", "web"]).await.failed(1, "exists already");
    assert_eq!(way.run(&["state", "push", "web", &first]).await.done(), "web: version 1 with serial 1\n");
    let second = state("l", 2);
    let pushed = way.with_input(&["state", "push", "web", "-"], second.as_bytes()).await;
    assert_eq!(pushed.done(), "web: version 2 with serial 2\n");
    way.run(&["state", "push", "web", &first])
        .await
        .failed(1, "serial 1 is lower than the current version's serial 2");
    way.run(&["state", "push", "web", "nowhere"]).await.failed(1, "nowhere cannot be read");

    let listed = way.run(&["state", "list", "web"]).await.done();
    let row: &[&str] = &["terraform_data.one", "terraform_data", "builtin/terraform"];
    has_rows(&listed, &["ADDRESS", "TYPE", "PROVIDER", "MARKS"], &[row]);
    assert!(listed.contains("Refused since:") && listed.contains("serial 1 is lower"), "{listed}");
    let listed = way.run(&["state", "list", "web", "-o", "json"]).await.json();
    assert_eq!(listed["items"][0]["address"], "terraform_data.one");
    let shown = way.run(&["state", "show", "web", "terraform_data.one"]).await.done();
    assert!(shown.contains("Version:") && shown.contains("marker-2"), "{shown}");
    let shown = way.run(&["state", "show", "web", "terraform_data.one", "-o", "json"]).await.json();
    assert_eq!((&shown["version"], &shown["object"]["attributes"]["id"]), (&2.into(), &"marker-2".into()));
    way.run(&["state", "show", "web", "terraform_data.two"]).await.failed(1, "terraform_data.two");

    assert_eq!(way.run(&["state", "get", "web"]).await.done(), second);
    assert_eq!(way.run(&["state", "get", "web", "--version", "1"]).await.done(), state("l", 1));
    way.run(&["state", "get", "web", "--version", "9"]).await.failed(1, "no version 9");
    way.run(&["state", "get", "nobody"]).await.failed(1, "nobody");

    let refusals = way.run(&["state", "refusals", "web"]).await.done();
    let row: &[&str] = &["POST", "409", "serial 1 is lower"];
    has_rows(&refusals, &["AGE", "OPERATION", "CODE", "WHO", "REASON"], &[row]);
    let refusals = way.run(&["state", "refusals", "web", "-o", "json"]).await.json();
    assert_eq!(refusals["items"].as_array().unwrap().len(), 1);

    let forced = way.run(&["state", "push", "--force", "web", &first]).await.done();
    assert_eq!(forced, "web: version 3 with serial 1\n");
    way.run(&["state", "pin", "web", "2"]).await.done();
    let heads = ["VERSION", "SERIAL", "RESOURCES", "SIZE", "AGE", "BY", "OPERATION", "MARKS"];
    let versions = way.run(&["state", "versions", "web"]).await.done();
    has_rows(&versions, &heads, &[&["3", "state-push", "forced"], &["2", "pinned"], &["1"]]);
    way.run(&["state", "pin", "web", "2", "--remove"]).await.done();
    let versions = way.run(&["state", "versions", "web", "--intermediate", "-o", "json"]).await.json();
    assert_eq!(versions["items"].as_array().unwrap().len(), 3);
    assert_eq!(versions["items"][1]["pinned"], false);
    way.run(&["state", "pin", "web", "9"]).await.failed(1, "no version 9");

    let back = way.run(&["state", "rollback", "web", "2"]).await.done();
    assert_eq!(back, "web: version 2 is back as version 4 with serial 3\n");
    way.run(&["state", "rollback", "web", "4"]).await.failed(1, "is the current one");
    let diff = way.run(&["state", "diff", "web", "1", "2"]).await.done();
    assert!(diff.contains("~ terraform_data.one") && diff.contains("id"), "{diff}");
    let diff = way.run(&["state", "diff", "web", "2", "4", "-o", "json"]).await.json();
    assert_eq!(diff["items"].as_array().map(Vec::len), Some(0), "{diff}");
    way.run(&["state", "diff", "web", "1", "9"]).await.failed(1, "no version 9");
    for arguments in [&["state", "prune", "--dry-run"][..], &["state", "prune"]] {
        let pruned = way.run(arguments).await.done();
        assert!(pruned.starts_with("no version is past its retention\nthe database has "), "{pruned}");
    }
}

async fn every_other_command(way: &Way<'_>, url: &str) {
    let rebuilt = way.run(&["index", "rebuild", "web"]).await.done();
    assert_eq!(rebuilt, "web: 1 objects indexed\n");
    let rebuilt = way.run(&["index", "rebuild"]).await.done();
    assert!(rebuilt.contains("web: 1 objects indexed\n"), "{rebuilt}");

    let heads = ["TENANT", "VERSION", "SERIAL", "RESOURCES", "SIZE", "WRITTEN", "LOCKED BY", "LAST REFUSAL"];
    let tenants = way.run(&["tenant", "list"]).await.done();
    has_rows(&tenants, &heads, &[&["locked", "root@vm"], &["web", "4", "3"]]);
    assert_eq!(way.run(&["tenant", "list", "-o", "json"]).await.json()["items"].as_array().unwrap().len(), 2);
    let shown = way.run(&["tenant", "show", "web"]).await.done();
    for piece in ["Tenant:        web", "Version:       4 (serial 3)", "Lock:          free"] {
        assert!(shown.contains(piece), "{shown}");
    }
    way.run(&["tenant", "require-locks", "web"]).await.done();
    assert_eq!(way.run(&["tenant", "show", "web", "-o", "json"]).await.json()["requireLocks"], true);
    way.run(&["tenant", "require-locks", "web", "off"]).await.done();
    assert_eq!(way.run(&["tenant", "show", "web", "-o", "json"]).await.json()["requireLocks"], false);

    std::fs::create_dir_all(way.scratch.join("configuration")).unwrap();
    let main = way.file("configuration/main.tf", "# nothing");
    let dir = Path::new(&main).parent().unwrap().to_str().unwrap();
    way.run(&["tenant", "configure", "web", "--dir", dir, "--label", "env=prod"]).await.done();
    let shown = way.run(&["tenant", "show", "web"]).await.done();
    assert!(shown.contains("Labels:        env=prod") && shown.contains("archive "), "{shown}");
    way.run(&["tenant", "freeze", "web", "--reason", "audit"]).await.done();
    let frozen = way.run(&["lock", "list", "web"]).await.done();
    has_rows(
        &frozen,
        &["TENANT", "WHO", "OPERATION", "AGE", "FROM", "HOLDER", "ID", "REASON"],
        &[&["freeze", "audit"]],
    );
    way.run(&["tenant", "unfreeze", "web"]).await.done();

    let heads = ["TENANT", "WHO", "OPERATION", "AGE", "FROM", "HOLDER", "ID", "REASON"];
    let locks = way.run(&["lock", "list"]).await.done();
    has_rows(&locks, &heads, &[&["locked", "root@vm", APPLY, "127.0.0.1", &lock::id(1)]]);
    let locks = way.run(&["lock", "list", "locked", "-o", "json"]).await.json();
    assert_eq!(locks["items"][0]["id"], lock::id(1));
    way.run(&["lock", "break", "locked", "--id", &lock::id(2)]).await.failed(1, "root@vm");
    let broken = way.run(&["lock", "break", "locked", "--id", &lock::id(1)]).await.done();
    assert_eq!(broken, format!("locked: broke the lock of root@vm ({APPLY}, {})\n", lock::id(1)));
    assert_eq!(way.run(&["lock", "break", "web"]).await.done(), "web: no lock was held\n");
    assert_eq!(way.run(&["lock", "list"]).await.done().lines().count(), 1);

    let block = way.run(&["backend-config", "web"]).await.done();
    for name in ["address        = ", "lock_address   = ", "unlock_address = "] {
        assert!(block.contains(&format!("{name}\"{url}/state/web\"\n")), "{block}");
    }
    let block =
        way.run(&["backend-config", "web", "--query", "--url", "https://rezus.example/"]).await.done();
    assert_eq!(block.matches("\"https://rezus.example/state?ID=web\"").count(), 3, "{block}");

    way.run(&["tenant", "delete", "web"]).await.failed(1, "still declares 1 objects");
    way.run(&["tenant", "delete", "web", "--force"]).await.done();
    way.run(&["tenant", "show", "web"]).await.failed(1, "there is no tenant web");
    way.run(&["state", "list", "web"]).await.failed(1, "web");
}

/// A server with one lock, whose tenant has no state.
async fn server_with_a_lock() -> Server {
    let server = Server::start().await;
    server.send("LOCK", "/state/locked", lock::info(&lock::id(1), APPLY)).await.expect(200, "LOCK");
    server
}

#[tokio::test]
async fn every_command_works_through_the_socket_of_a_running_server() {
    let server = server_with_a_lock().await;
    let directory = server.data_dir().to_str().unwrap().to_owned();
    let way = Way { target: ["--data-dir".to_owned(), directory], scratch: server.scratch() };
    every_state_command(&way).await;
    every_other_command(&way, server.url()).await;
}

#[tokio::test]
async fn every_command_works_by_the_url_of_a_server() {
    let server = server_with_a_lock().await;
    let way = Way { target: ["--server".to_owned(), server.url().to_owned()], scratch: server.scratch() };
    every_state_command(&way).await;
    every_other_command(&way, server.url()).await;
}

#[tokio::test]
async fn every_command_works_on_a_directory_without_a_server() {
    let mut server = server_with_a_lock().await;
    assert!(server.terminate().await.success());
    let directory = server.data_dir().to_str().unwrap().to_owned();
    let way = Way { target: ["--data-dir".to_owned(), directory], scratch: server.scratch() };
    every_state_command(&way).await;
    every_other_command(&way, "http://127.0.0.1:8080").await;
    // What was done without a server is there when one is started.
    server.start_again().await;
    assert!(server.get("/rezus/v1/tenants").await.items().is_empty());
}
