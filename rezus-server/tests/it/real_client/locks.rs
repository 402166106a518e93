//! Two who want to write at once.

use crate::lock;
use crate::server::Server;
use crate::tool::{self, Form, Workspace};

const SOMEBODY: &str = "11111111-2222-4333-8444-555555555555";

async fn hold(server: &Server, tenant: &str) {
    let info = lock::info(SOMEBODY, lock::APPLY).replace("root@vm", "ops@bastion");
    server.send("LOCK", &format!("/state/{tenant}"), info).await.expect(200, "somebody's lock");
}

async fn second_writers(form: Form) {
    for tool in tool::installed() {
        let server = Server::start().await;
        let block = form.block(server.url(), "shared");
        let first = Workspace::new(&tool, &server, "first", &block).await;
        let second = Workspace::new(&tool, &server, "second", &block).await;
        let under_way = first.apply_slowly("one").await;
        let locks = server.locks().await;
        let [(_, id)] = locks.as_slice() else { panic!("one lock is held: {locks:?}") };
        second.apply("two").await.failed_with(id);
        assert_eq!(server.locks().await, locks, "the refused writer did not touch the lock");
        first.let_go().await;
        Workspace::ended(under_way).await.done();
        assert_eq!(server.locks().await, []);
        second.apply("two").await.done();
        assert_eq!(server.locks().await, []);
        let serials: Vec<u64> = server
            .versions("shared")
            .await
            .iter()
            .map(|version| version["serial"].as_u64().unwrap())
            .collect();
        assert!(serials.is_sorted_by(|earlier, later| earlier < later), "{serials:?}");
    }
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_whose_lock_it_is_under_a_path() {
    second_writers(Form::Path).await;
}

#[tokio::test]
async fn a_second_writer_is_refused_and_told_whose_lock_it_is_under_a_query() {
    second_writers(Form::Query).await;
}

#[tokio::test]
async fn a_writer_that_waits_gives_up_or_gets_the_lock() {
    for tool in tool::installed() {
        for form in [Form::Path, Form::Query] {
            let mut server = Server::start().await;
            let workspace = Workspace::new(&tool, &server, "waits", &form.block(server.url(), "waits")).await;
            hold(&server, "waits").await;
            let apply = ["apply", "-auto-approve", "-input=false"];
            let gives_up = workspace.run(&[&apply[..], &["-lock-timeout=3s"]].concat()).await;
            gives_up.failed_with(SOMEBODY);
            let refused = server.get("/rezus/v1/tenants/waits/refusals").await.items().len();
            assert!(refused > 1, "it asked more than once");

            let waits = workspace.start(&[&apply[..], &["-lock-timeout=60s"]].concat());
            // A line of this run's, not of the ones before.
            server.logged(" refused ", refused + 1).await;
            server
                .send("UNLOCK", "/state/waits", lock::info(SOMEBODY, ""))
                .await
                .expect(200, "somebody is done");
            Workspace::ended(waits).await.done();
            assert_eq!(server.locks().await, []);
            assert_eq!(server.versions("waits").await.len(), 1);
        }
    }
}

#[tokio::test]
async fn force_unlock_releases_the_lock_it_names() {
    for tool in tool::installed() {
        for form in [Form::Path, Form::Query] {
            let server = Server::start().await;
            let workspace =
                Workspace::new(&tool, &server, "forced", &form.block(server.url(), "forced")).await;
            workspace.apply("one").await.done();
            if tool.name == "tofu" {
                // Terraform sends no ID at all, so that any will do.
                hold(&server, "forced").await;
                let wrong = "99999999-2222-4333-8444-555555555555";
                workspace.run(&["force-unlock", "-force", wrong]).await.failed_with("409");
                assert_eq!(server.locks().await.len(), 1);
                server.send("UNLOCK", "/state/forced", "").await.expect(200, "the lock is broken");
            }
            hold(&server, "forced").await;
            workspace.apply("two").await.failed_with(SOMEBODY);
            workspace.run(&["force-unlock", "-force", SOMEBODY]).await.done();
            assert_eq!(server.locks().await, []);
            workspace.apply("two").await.done();
        }
    }
}

/// Whose lock was broken under it cannot save: what it did is in `errored.tfstate`, and the server says so.
#[tokio::test]
async fn a_writer_whose_lock_was_broken_is_refused_and_can_push_what_it_did() {
    for tool in tool::installed() {
        let server = Server::start().await;
        let workspace =
            Workspace::new(&tool, &server, "broken", &Form::Path.block(server.url(), "broken")).await;
        let under_way = workspace.apply_slowly("one").await;
        server.send("DELETE", "/rezus/v1/tenants/broken/locks", "").await.expect(200, "the lock is broken");
        workspace.let_go().await;
        Workspace::ended(under_way).await.failed_with("423");
        server.get("/state/broken").await.expect(404, "nothing was saved");
        let refusals = server.get("/rezus/v1/tenants/broken/refusals").await.items();
        assert!(
            refusals
                .iter()
                .any(|refusal| refusal["reason"].as_str().unwrap().starts_with("lock no longer held")),
            "{refusals:?}"
        );
        workspace.run(&["state", "push", "errored.tfstate"]).await.done();
        let stored = server.get("/state/broken").await.expect(200, "what it did").json();
        assert_eq!(stored["resources"].as_array().unwrap().len(), 3);
        assert_eq!(server.locks().await, []);
    }
}
