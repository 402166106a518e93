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
    run(&["backup", copy, "--data-dir", data]).await.failed(1, copy);
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
