//! Settings that cannot be: each is named, and nothing is changed.

use serde_json::{Value, json};

use super::{CONFIGURATION, TAR, archive, run, server};
use crate::in_process::{InProcess, local};

async fn plane() -> InProcess {
    let plane = InProcess::new();
    plane.send("POST", "/rezus/v1/tenants", r#"{"name":"prod"}"#).await.expect(201, "prod");
    plane
}

const TENANT: &str = "/rezus/v1/tenants/prod";

fn variables(count: usize) -> Value {
    (0..count).map(|number| (format!("v{number}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
}

#[tokio::test]
async fn what_cannot_be_set_is_named_and_changes_nothing() {
    let plane = plane().await;
    let before = plane.get(TENANT).await.json();
    let early = plane.send("PATCH", TENANT, r#"{"approval":"auto"}"#).await.expect(422, "no configuration");
    assert!(early.message().contains("has no configuration yet"));
    assert_eq!(plane.get(TENANT).await.json(), before);
    plane.send_as(local(), "PUT", CONFIGURATION, &TAR, archive(&["main.tf"])).await.expect(200, "upload");
    let before = plane.get(TENANT).await.json();
    let file = json!({ "file": "/x" });
    for (body, code, piece) in [
        (json!({ "colour": "red" }), 400, "\"colour\" is nothing that can be set"),
        (json!({ "requireLocks": "yes" }), 400, "requireLocks is true or false"),
        (json!({ "dir": "relative" }), 422, "dir: a path"),
        (json!({ "dir": "/srv/../etc" }), 422, "dir: a path"),
        (json!({ "dir": "/nowhere/at/all" }), 422, "dir is no directory"),
        (json!({ "dir": null }), 400, "dir is a path"),
        (json!({ "revision": "a\nb" }), 422, "revision is a text"),
        (json!({ "variables": { "a b": "1" } }), 422, "variables: a variable's name"),
        (json!({ "variables": { "a": 1 } }), 400, "variables is an object of texts"),
        (json!({ "variables": [] }), 400, "variables is an object of texts"),
        (json!({ "variables": variables(1_001) }), 422, "variables may have 1000"),
        (json!({ "variables": { "a": "1" }, "secretVariables": { "a": file } }), 422, "a is among variables"),
        (json!({ "secretVariables": { "a": "value" } }), 400, "secretVariables is an object of"),
        (json!({ "secretVariables": { "a": { "file": "x" } } }), 422, "secretVariables: a path"),
        (json!({ "secretVariables": { "a": { "environment": "A B" } } }), 422, "secretVariables: the name"),
        (json!({ "secretEnvironment": { "TF_HTTP_PASSWORD": file } }), 422, "secretEnvironment: variables"),
        (json!({ "environment": ["REZUS_X"] }), 422, "environment: variables that begin with"),
        (json!({ "environment": "PATH" }), 400, "environment is a list"),
        (json!({ "binary": "tofu" }), 422, "binary: a path"),
        (json!({ "approval": "never" }), 400, "approval is manual or auto"),
        (json!({ "protectDestroy": 1 }), 400, "protectDestroy is true or false"),
        (json!({ "driftMode": "all" }), 400, "driftMode is refresh-only or full"),
        (json!({ "drift": "often" }), 400, "drift is a length of time"),
        (json!({ "drift": "0s" }), 422, "drift: a length of time"),
        (json!({ "planTimeout": null }), 400, "planTimeout is a length of time"),
        (json!({ "applyTimeout": "-1h" }), 400, "applyTimeout is a length of time"),
        (json!({ "grace": 5 }), 400, "grace is a length of time"),
        (json!({ "collect": "on" }), 400, "collect is true, false"),
        (json!({ "destinations": ["localhost"] }), 400, "destinations is a list of IP addresses"),
        (json!({ "destinations": null }), 400, "destinations is a list of IP addresses"),
        (json!({ "nodeMetrics": 0 }), 400, "nodeMetrics is the port"),
        (json!({ "recording": "relative" }), 422, "recording: a path"),
        (json!({ "labels": { "a b": "1" } }), 422, "labels: a label's key"),
        (json!({ "labels": { "rezuscloud.io/tenant": "x" } }), 422, "labels under rezuscloud.io/"),
        (json!({ "labels": { "env": "a b" } }), 422, "labels: a label's value"),
        (json!({ "labels": { "env": 1 } }), 400, "labels is an object of texts"),
        (json!({ "requireLocks": true, "revision": "ok", "grace": "0s" }), 422, "grace"),
        (json!([]), 400, "no object"),
    ] {
        let message = plane.send("PATCH", TENANT, body.to_string()).await.expect(code, piece).message();
        assert!(message.contains(piece), "{piece} is not in: {message}");
        assert_eq!(plane.get(TENANT).await.json(), before, "{body}");
    }
    let refused = plane.send("PATCH", "/rezus/v1/tenants/nobody", r#"{"labels":{"a":"b"}}"#).await;
    assert!(refused.expect(404, "no tenant").message().contains("tenant create nobody"));
}

#[tokio::test]
async fn commands_tell_what_is_wrong() {
    let server = server().await;
    let configure = async |arguments: &[&str]| {
        run(&server, &[&["tenant", "configure", "prod"], arguments].concat()).await
    };
    configure(&[]).await.failed(64, "nothing to change");
    configure(&["--var", "nodes"]).await.failed(64, "--var takes a name");
    configure(&["--label", "=x"]).await.failed(64, "--label takes a name");
    configure(&["--secret-env", "A=plain"]).await.failed(64, "--secret-env takes where");
    configure(&["--label", "rezuscloud.io/role=x"]).await.failed(1, "set by rezus itself");
    configure(&["--approval", "auto"]).await.failed(1, "has no configuration yet");
    configure(&["--dir", "/nowhere/at/all"]).await.failed(1, "/nowhere/at/all cannot be read");
    let empty = server.scratch().join("empty");
    std::fs::create_dir(&empty).unwrap();
    configure(&["--dir", empty.to_str().unwrap()]).await.failed(64, "holds no .tf");
    let nobody = run(&server, &["tenant", "configure", "nobody", "--label", "a=b"]).await;
    nobody.failed(1, "tenant create nobody");
    run(&server, &["tenant", "freeze", "prod", "--reason", " "]).await.failed(1, "reason is a text");
}
