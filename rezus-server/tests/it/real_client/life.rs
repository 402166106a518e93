//! A state from its first `init` to `destroy`, by every command that writes one.

use serde_json::Value;

use crate::lock;
use crate::server::Server;
use crate::tool::{self, Form, Tool, Workspace};

/// What the server must hold after a command: no lock, and what the client itself reads.
async fn is_settled(server: &Server, workspace: &Workspace, tool: &Tool, tenant: &str, what: &str) {
    assert_eq!(server.locks().await, [], "locks after {what}");
    let stored = server.get(&format!("/state/{tenant}")).await.expect(200, what).body;
    let pulled = workspace.pull().await;
    if tool.name == "terraform" {
        // It prints a line break after the bytes.
        let is_pulled = pulled.strip_suffix(b"\n").is_some_and(|pulled| stored == pulled);
        assert!(is_pulled, "{what}: the stored bytes are not those that the client reads");
    } else {
        // OpenTofu sends a state on one line and prints it on many.
        let (stored, pulled): (Value, Value) =
            (serde_json::from_slice(&stored).unwrap(), serde_json::from_slice(&pulled).unwrap());
        assert_eq!(stored, pulled, "{what}");
    }
}

async fn newest(server: &Server, tenant: &str) -> Value {
    server.versions(tenant).await.last().expect("a version").clone()
}

async fn whole_life(form: Form) {
    for tool in tool::installed() {
        let server = Server::start().await;
        let tenant = "life";
        let workspace = Workspace::new(&tool, &server, "life", &form.block(server.url(), tenant)).await;
        let settled = async |what: &str| is_settled(&server, &workspace, &tool, tenant, what).await;

        workspace.run(&["plan", "-input=false"]).await.done();
        assert!(server.get("/rezus/v1/tenants").await.items().is_empty(), "a plan leaves no tenant behind");
        workspace.apply("one").await.done();
        settled("the first apply").await;
        let first = newest(&server, tenant).await;
        assert_eq!(first["resources"], 3);
        assert_eq!((&first["unlocked"], &first["forced"]), (&false.into(), &false.into()));
        assert_eq!(first["lockOperation"], lock::APPLY);
        workspace.apply("one").await.done();
        assert_eq!(server.versions(tenant).await.len(), 1, "an apply that changes nothing writes nothing");

        saved_plans(&workspace).await;
        settled("saved plans").await;

        let mut serial = newest(&server, tenant).await["serial"].as_u64().unwrap();
        for (arguments, operation) in [
            (&["state", "mv", "terraform_data.one", "terraform_data.uno"][..], "state-mv"),
            (&["state", "mv", "terraform_data.uno", "terraform_data.one"], "state-mv"),
            (&["taint", "terraform_data.one"], "taint"),
            (&["untaint", "terraform_data.one"], "untaint"),
            (&["state", "rm", "terraform_data.two[1]"], "state-rm"),
        ] {
            workspace.run(arguments).await.done();
            settled(operation).await;
            let version = newest(&server, tenant).await;
            serial += 1;
            assert_eq!((&version["serial"], &version["lockOperation"]), (&serial.into(), &operation.into()));
            assert_eq!(version["forced"], false, "{operation}");
        }

        pushes(&server, &workspace, tenant).await;
        settled("pushes").await;

        let unlocked = ["apply", "-auto-approve", "-input=false", "-lock=false", "-var", "value=unlocked"];
        workspace.run(&unlocked).await.done();
        settled("an apply without a lock").await;
        assert_eq!(newest(&server, tenant).await["unlocked"], true);

        workspace.run(&["destroy", "-auto-approve", "-input=false"]).await.done();
        settled("destroy").await;
        assert_eq!(newest(&server, tenant).await["resources"], 0);
        assert!(
            server.get("/rezus/v1/tenants/life/refusals").await.items().is_empty(),
            "nothing was refused"
        );
    }
}

/// A saved plan is applied once; once another state was written, not at all.
async fn saved_plans(workspace: &Workspace) {
    workspace.run(&["plan", "-input=false", "-out=plan", "-var", "value=planned"]).await.done();
    workspace.run(&["plan", "-input=false", "-out=rival", "-var", "value=rival"]).await.done();
    workspace.run(&["apply", "-input=false", "plan"]).await.done();
    workspace.run(&["apply", "-input=false", "plan"]).await.failed_with("Saved plan is stale");
    workspace.run(&["apply", "-input=false", "rival"]).await.failed_with("Saved plan is stale");
}

/// `state push` and its refusals, which are the client's own; by force it gets past them, and past the server's.
async fn pushes(server: &Server, workspace: &Workspace, tenant: &str) {
    let before = newest(server, tenant).await["serial"].as_u64().unwrap();
    workspace.write_changed("newer", |state| state["serial"] = (before + 5).into()).await;
    workspace.write_changed("older", |state| state["serial"] = (before - 1).into()).await;
    workspace
        .write_changed("other", |state| {
            state["lineage"] = "11111111-2222-4333-8444-555555555555".into();
            state["serial"] = 1.into();
        })
        .await;
    workspace.run(&["state", "push", "newer"]).await.done();
    // The client may add one of its own to the serial that it was given.
    let version = newest(server, tenant).await;
    assert!(version["serial"].as_u64().unwrap() >= before + 5, "{version}");
    assert_eq!(version["forced"], false);
    for file in ["older", "other"] {
        workspace.run(&["state", "push", file]).await.failed_with("cannot import state with");
        workspace.run(&["state", "push", "-force", file]).await.done();
        let version = newest(server, tenant).await;
        assert_eq!(
            (&version["forced"], &version["lockOperation"]),
            (&true.into(), &lock::PUSH.into()),
            "{file}"
        );
    }
    assert_eq!(newest(server, tenant).await["lineage"], "11111111-2222-4333-8444-555555555555");
}

#[tokio::test]
async fn a_state_lives_from_init_to_destroy_under_a_path() {
    whole_life(Form::Path).await;
}

#[tokio::test]
async fn a_state_lives_from_init_to_destroy_under_a_query() {
    whole_life(Form::Query).await;
}

#[tokio::test]
async fn a_state_lives_from_init_to_destroy_by_put_post_and_delete() {
    whole_life(Form::Verbs).await;
}

#[tokio::test]
async fn a_plan_made_before_a_rollback_is_stale_after_it() {
    for tool in tool::installed() {
        let server = Server::start().await;
        let backend = Form::Path.block(server.url(), "back");
        let workspace = Workspace::new(&tool, &server, "back", &backend).await;
        workspace.apply("one").await.done();
        workspace.run(&["plan", "-input=false", "-out=plan", "-var", "value=planned"]).await.done();
        workspace.apply("two").await.done();
        let rollback = server.send("POST", "/rezus/v1/tenants/back/rollback", r#"{"version":1}"#).await;
        assert_eq!(rollback.expect(200, "rollback").json()["serial"], 3);
        is_settled(&server, &workspace, &tool, "back", "a rollback").await;
        workspace.run(&["apply", "-input=false", "plan"]).await.failed_with("Saved plan is stale");
        workspace.apply("three").await.done();
        assert_eq!(newest(&server, "back").await["serial"], 4);
    }
}

#[tokio::test]
async fn a_local_state_moves_in() {
    for tool in tool::installed() {
        let server = Server::start().await;
        let workspace = Workspace::new(&tool, &server, "moves", "").await;
        workspace.apply("one").await.done();
        workspace.write("backend.tf", &Form::Path.block(server.url(), "moves"));
        workspace.run(&["init", "-input=false", "-migrate-state", "-force-copy"]).await.done();
        is_settled(&server, &workspace, &tool, "moves", "the migration").await;
        workspace.apply("one").await.done();
        assert_eq!(server.versions("moves").await.len(), 1, "nothing is left to do");
    }
}
