//! Whether states in clear are refused: of one tenant, of all, and by the configuration file.

use rezus_core::declared::Encryption;
use rezus_server::config::{Config, StateConfig};
use rezus_testkit::fixture;
use serde_json::json;

use super::{run, server, shown};
use crate::in_process::InProcess;
use crate::projection::{condition, state_of};

const TENANT: &str = "/rezus/v1/tenants/web";

async fn set(plane: &InProcess, encryption: serde_json::Value, code: u16) -> crate::answer::Answer {
    let body = json!({ "encryption": encryption }).to_string();
    plane.send("PATCH", TENANT, body).await.expect(code, "PATCH")
}

#[tokio::test]
async fn states_in_clear_are_refused_where_encryption_is_required() {
    let plane = InProcess::new();
    plane.post("web", state_of("a", 1, &[])).await.expect(200, "by default");
    assert_eq!(plane.tenant("web").await["encryption"], "optional");
    assert_eq!(set(&plane, json!("required"), 200).await.json()["encryption"], "required");
    // What was sent before, and its answer lost.
    plane.post("web", state_of("a", 1, &[])).await.expect(200, "the current version's bytes");
    let refused = plane.post("web", state_of("a", 2, &[])).await.expect(422, "in clear").message();
    assert!(
        refused.contains("requires encrypted states") && refused.contains("--encryption optional"),
        "{refused}"
    );
    // Not by force either, nor by going back.
    plane.lock("web", "177fbbaf-774b-3a8b-0000-000000000001", "state-push").await.expect(200, "LOCK");
    let pushed = state_of("b", 9, &[]);
    plane
        .post_under("web", "177fbbaf-774b-3a8b-0000-000000000001", pushed)
        .await
        .expect(422, "state push -force");
    plane.unlock("web", "177fbbaf-774b-3a8b-0000-000000000001").await.expect(200, "UNLOCK");
    assert_eq!(plane.refusals("web").await[0]["code"], 422);
    let kube = plane.get("/apis/rezuscloud.io/v1alpha1/tenants/web").await.json();
    let refusal = condition(&kube, "WriteRefused").unwrap();
    assert!(refusal["message"].as_str().unwrap().contains("requires encrypted states"), "{refusal}");
    plane.post("web", fixture::state("tofu-encrypted").body).await.expect(200, "an envelope");
    let back = json!({ "version": 1 }).to_string();
    let back = plane.send("POST", "/rezus/v1/tenants/web/rollback", back).await.expect(422, "rollback");
    assert!(back.message().contains("requires encrypted states"));
    assert_eq!(plane.versions("web").await.len(), 2);
    plane.send("DELETE", "/state/web", "").await.expect(200, "a deletion is no state");
    set(&plane, json!(null), 200).await;
    plane.post("web", state_of("a", 3, &[])).await.expect(200, "as the server has it");
    for wrong in [json!("always"), json!(true)] {
        assert!(set(&plane, wrong, 400).await.message().contains("encryption is required, optional"));
    }
}

#[tokio::test]
async fn what_the_server_asks_counts_where_nothing_is_set() {
    let state = StateConfig { encryption: Encryption::Required, ..StateConfig::default() };
    let tenants = "[fixed]\nencryption = \"optional\"\n";
    let plane = InProcess::configured(Config {
        state,
        tenants: toml::from_str(tenants).unwrap(),
        ..Config::default()
    });
    plane.post("web", state_of("a", 1, &[])).await.expect(422, "even the first one");
    plane.post("fixed", state_of("a", 1, &[])).await.expect(200, "the configuration file's own");
    let body = r#"{"encryption":"required"}"#;
    let refused = plane.send("PATCH", "/rezus/v1/tenants/fixed", body).await.expect(409, "fixed");
    assert!(refused.message().contains("[tenants.fixed]"));
    plane.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "web");
    assert_eq!(plane.tenant("web").await["encryption"], "required");
    set(&plane, json!("optional"), 200).await;
    plane.post("web", state_of("a", 1, &[])).await.expect(200, "set of this one");
}

#[tokio::test]
async fn it_is_set_and_shown_by_commands() {
    let server = server().await;
    let configure = async |arguments: &[&str]| {
        run(&server, &[&["tenant", "configure", "prod"], arguments].concat()).await
    };
    let file = server.scratch().join("talosconfig");
    let part = |label: &str| {
        use base64::Engine as _;
        let pem = format!("-----BEGIN {label}-----\nAA==\n-----END {label}-----\n");
        base64::engine::general_purpose::STANDARD.encode(pem)
    };
    let (certificate, key) = (part("CERTIFICATE"), part("ED25519 PRIVATE KEY"));
    let text = format!(
        "context: c\ncontexts: {{ c: {{ endpoints: [192.0.2.1], ca: {certificate}, crt: {certificate}, key: {key} }} }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    configure(&["--encryption", "required", "--talosconfig-file", file]).await.done();
    let tenant = shown(&server, "prod").await;
    assert_eq!((&tenant["encryption"], &tenant["talosconfigFile"]), (&json!("required"), &json!(file)));
    let printed = run(&server, &["tenant", "show", "prod"]).await.done();
    assert!(printed.contains("required") && printed.contains(file) && !printed.contains(&key), "{printed}");
    configure(&["--kubeconfig-file", file]).await.failed(1, "kubeconfigFile");
    configure(&["--encryption", "default", "--talosconfig-file="]).await.done();
    let tenant = shown(&server, "prod").await;
    assert_eq!((&tenant["encryption"], tenant.get("talosconfigFile")), (&json!("optional"), None));
}
