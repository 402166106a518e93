//! A server that goes away and comes back, and one that does not take what it is given.

use crate::server::{Server, Settings};
use crate::tool::{self, Form, Workspace};

const FORMS: [Form; 2] = [Form::Path, Form::Query];

#[tokio::test]
async fn a_plan_outlives_a_restart_of_the_server() {
    for tool in tool::installed() {
        for form in FORMS {
            let mut server = Server::start().await;
            let workspace =
                Workspace::new(&tool, &server, "restart", &form.block(server.url(), "restart")).await;
            workspace.apply("one").await.done();
            workspace.run(&["plan", "-input=false", "-out=plan", "-var", "value=two"]).await.done();
            let stored = server.get("/state/restart").await.expect(200, "before").body;
            assert!(server.terminate().await.success(), "it ends when it is told to");
            server.start_again().await;
            assert!(server.get("/state/restart").await.expect(200, "after").body == stored);
            workspace.run(&["apply", "-input=false", "plan"]).await.done();
            assert_eq!(server.versions("restart").await.len(), 2);
            assert_eq!(server.locks().await, []);
        }
    }
}

#[tokio::test]
async fn a_client_goes_on_under_its_lock_after_the_server_was_killed() {
    for tool in tool::installed() {
        for form in FORMS {
            let mut server = Server::start().await;
            let workspace =
                Workspace::new(&tool, &server, "killed", &form.block(server.url(), "killed")).await;
            workspace.apply("one").await.done();
            let under_way = workspace.apply_slowly("two").await;
            let locks = server.locks().await;
            server.kill().await;
            server.start_again().await;
            assert_eq!(server.locks().await, locks, "the lock is still the client's");
            workspace.let_go().await;
            Workspace::ended(under_way).await.done();
            assert_eq!(server.locks().await, []);
            let pulled = workspace.pull().await;
            let pulled: serde_json::Value = serde_json::from_slice(&pulled).unwrap();
            assert_eq!(pulled["outputs"]["value"]["value"], "two");
            assert_eq!(server.get("/state/killed").await.json(), pulled);
        }
    }
}

/// The client sends again what was cut off: it does not notice that the server was away.
#[tokio::test]
async fn a_client_waits_for_a_server_that_is_away_when_it_saves() {
    for tool in tool::installed() {
        let mut server = Server::start().await;
        let workspace = Workspace::new(&tool, &server, "away", &Form::Path.block(server.url(), "away")).await;
        let under_way = workspace.apply_slowly("one").await;
        server.kill().await;
        workspace.let_go().await;
        // Its first retry comes after a second; the server is back long before the last.
        server.start_again().await;
        Workspace::ended(under_way).await.done();
        assert_eq!(server.locks().await, []);
        assert_eq!(server.versions("away").await.len(), 1);
    }
}

#[tokio::test]
async fn a_state_over_the_limit_can_be_pushed_once_the_limit_is_raised() {
    for tool in tool::installed() {
        for form in FORMS {
            let limit = |limit: &str| Settings {
                variables: vec![("REZUS_STATE__MAX_BODY", limit.to_owned())],
                ..Settings::default()
            };
            let mut server = Server::start_with(limit("8KiB")).await;
            let workspace = Workspace::new(&tool, &server, "large", &form.block(server.url(), "large")).await;
            workspace.apply("one").await.done();
            let small = server.get("/state/large").await.expect(200, "the small state").body;
            let large = "x".repeat(20_000);
            workspace.apply(&large).await.failed_with("413");
            assert_eq!(server.locks().await, [], "the client let its lock go");
            assert!(server.get("/state/large").await.expect(200, "the small state").body == small);
            let refusal = server.get("/rezus/v1/tenants/large").await.json()["refusal"].clone();
            assert_eq!(refusal["code"], 413);
            assert!(refusal["reason"].as_str().unwrap().contains("8192"), "{refusal}");

            assert!(server.terminate().await.success());
            server.start_again_with(limit("1MiB")).await;
            workspace.run(&["state", "push", "errored.tfstate"]).await.done();
            let before = server.versions("large").await.len();
            workspace.apply(&large).await.done();
            assert_eq!(server.versions("large").await.len(), before, "nothing is left to do");
            assert!(server.get("/rezus/v1/tenants/large").await.json()["refusal"].is_null());
        }
    }
}
