//! Backups, and configurations that point at a server.

use super::run;
use crate::lock::{self, APPLY, state};
use crate::server::Server;
use crate::tool::{self, Form, Workspace};

#[tokio::test]
async fn a_backup_of_a_running_server_is_restored_to_the_same_states() {
    let server = Server::start().await;
    for tenant in ["db", "web"] {
        for serial in [1, 2, 3] {
            let target = format!("/state/{tenant}");
            server.send("POST", &target, state(tenant, serial)).await.expect(200, &target);
        }
    }
    server.send("LOCK", "/state/db", lock::info(&lock::id(1), APPLY)).await.expect(200, "LOCK");
    let (data, copy) = (server.data_dir(), server.scratch().join("copy"));
    let [data, copy] = [data, &copy].map(|path| path.to_str().unwrap());
    let restored_to = server.scratch().join("restored/data");
    let to = restored_to.to_str().unwrap();
    assert!(run(&["backup", copy, "--data-dir", data]).await.done().starts_with(copy));
    run(&["backup", copy, "--data-dir", data]).await.failed(64, copy);
    run(&["backup", "elsewhere", "--data-dir", "/nowhere"]).await.failed(1, "/nowhere");
    // What comes after the backup is not in it.
    server.send("POST", "/state/web", state("web", 4)).await.expect(200, "POST");

    run(&["restore", copy, "--data-dir", data]).await.failed(1, "in use");
    run(&["restore", "/dev/null", "--data-dir", to]).await.failed(1, "/dev/null");
    run(&["restore", copy, "--data-dir", to]).await.done();
    run(&["restore", copy, "--data-dir", to]).await.failed(64, "--force");
    run(&["restore", copy, "--data-dir", to, "--force"]).await.done();

    let restored = Server::start_in(&server, "restored").await;
    for tenant in ["db", "web"] {
        assert_eq!(restored.get(&format!("/state/{tenant}")).await.body, state(tenant, 3));
        let versions = restored.versions(tenant).await;
        assert_eq!(versions, server.versions(tenant).await[..3]);
        for version in 1..=3 {
            let path = format!("/rezus/v1/tenants/{tenant}/versions/{version}/body");
            assert_eq!(restored.get(&path).await.expect(200, &path).body, state(tenant, version));
        }
    }
    assert_eq!(restored.locks().await, [("db".to_owned(), lock::id(1))], "locks are data, too");
}

#[tokio::test]
async fn the_printed_backend_block_is_all_that_a_configuration_needs() {
    for tool in tool::installed() {
        let server = Server::start().await;
        let data = server.data_dir();
        let data = data.to_str().unwrap();
        for (tenant, form, arguments) in [
            ("by-path", Form::Path, &["backend-config", "by-path", "--data-dir", data][..]),
            ("by-query", Form::Query, &["backend-config", "by-query", "--query", "--data-dir", data]),
        ] {
            let block = run(arguments).await.done();
            let workspace = Workspace::new(&tool, &server, tenant, &block).await;
            workspace.apply("one").await.done();
            let version = &server.versions(tenant).await[0];
            assert_eq!(version["unlocked"], false, "{form:?} without a lock");
            assert_eq!(server.locks().await, []);
        }
    }
}

#[tokio::test]
async fn a_restore_reads_no_log_of_what_was_there_before() {
    let mut server = Server::start().await;
    server.send("POST", "/state/web", state("web", 1)).await.expect(200, "POST");
    let (data, copy) = (server.data_dir().to_owned(), server.scratch().join("copy"));
    let (data_text, copy) = (data.to_str().unwrap(), copy.to_str().unwrap());
    run(&["backup", copy, "--data-dir", data_text]).await.done();
    for serial in 2..=30 {
        server.send("POST", "/state/web", state("web", serial)).await.expect(200, "POST");
    }
    server.kill().await;
    // The database is lost, its log is not.
    std::fs::remove_file(data.join("rezus.db")).unwrap();
    assert!(data.join("rezus.db-wal").exists());
    run(&["serve", "--data-dir", data_text, "--plain", "127.0.0.1:0"]).await.failed(1, "rezus.db-wal");
    run(&["restore", copy, "--data-dir", data_text]).await.failed(64, "--force");
    run(&["restore", copy, "--data-dir", data_text, "--force"]).await.done();
    server.start_again().await;
    assert_eq!(server.versions("web").await.len(), 1);
    assert_eq!(server.get("/state/web").await.body, state("web", 1));
}

#[tokio::test]
async fn a_server_does_not_start_anew_where_a_database_was_lost() {
    let server = Server::start().await;
    for (left, says) in [
        ("rezus.db-wal", "rezus.db-wal"),
        ("rezus.db.before-restore", "before-restore"),
        ("rezus.db", "empty"),
    ] {
        let data = server.scratch().join(left).join("data");
        std::fs::create_dir_all(&data).unwrap();
        std::fs::write(data.join(left), "").unwrap();
        let data = data.to_str().unwrap();
        run(&["serve", "--data-dir", data, "--plain", "127.0.0.1:0"]).await.failed(1, says);
    }
}

#[tokio::test]
async fn a_restore_that_cannot_be_written_leaves_what_was_there() {
    let mut server = Server::start().await;
    server.send("POST", "/state/web", state("web", 1)).await.expect(200, "POST");
    let (data, copy) = (server.data_dir().to_owned(), server.scratch().join("copy"));
    let (data, copy) = (data.to_str().unwrap(), copy.to_str().unwrap());
    run(&["backup", copy, "--data-dir", data]).await.done();
    server.send("POST", "/state/web", state("web", 2)).await.expect(200, "POST");
    server.terminate().await;
    // No file may grow beyond 16 KiB, as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 32; exec \"$0\" restore \"$1\" --force --data-dir \"$2\"";
    let mut full = tokio::process::Command::new("/bin/sh");
    full.args(["-c", script, crate::server::PROGRAM, copy, data]).env_clear();
    let ended = full.output().await.unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    server.start_again().await;
    assert_eq!(server.get("/state/web").await.body, state("web", 2));
}

#[tokio::test]
async fn after_a_server_has_ended_its_file_alone_is_a_copy() {
    let mut server = Server::start().await;
    for serial in 1..=20 {
        server.send("POST", "/state/web", state("web", serial)).await.expect(200, "POST");
    }
    server.terminate().await;
    let copied = server.scratch().join("copied/data");
    std::fs::create_dir_all(&copied).unwrap();
    std::fs::copy(server.data_dir().join("rezus.db"), copied.join("rezus.db")).unwrap();
    let copied = Server::start_in(&server, "copied").await;
    assert_eq!(copied.versions("web").await.len(), 20);
}
