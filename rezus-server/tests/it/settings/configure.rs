//! Configuring a tenant from the command line, and seeing it.

use rezus_server::config::Config;
use serde_json::json;

use super::{CONFIGURATION, TAR, archive, run, server, shown};
use crate::in_process::{InProcess, local};
use crate::server::{Server, Settings};

#[tokio::test]
async fn what_is_configured_is_shown_and_outlives_the_server() {
    let mut server = server().await;
    assert!(shown(&server, "prod").await.get("configuration").is_none());
    let dir = server.scratch().join("cfg");
    std::fs::create_dir_all(dir.join("modules/a")).unwrap();
    std::fs::write(dir.join("main.tf"), "# main").unwrap();
    std::fs::write(dir.join("modules/a/main.tf"), "# a").unwrap();
    let dir = dir.to_str().unwrap();
    let all = [
        "tenant",
        "configure",
        "prod",
        "--dir",
        dir,
        "--revision",
        "v1.2",
        "--var",
        "nodes=3",
        "--var",
        "text=a=b",
        "--secret-var",
        "token=file:/run/token",
        "--secret-var",
        "key=env:KEY",
        "--secret-env",
        "TF_ENCRYPTION=file:/run/enc",
        "--env",
        "AWS_PROFILE",
        "--env",
        "LANG",
        "--label",
        "env=prod",
        "--approval",
        "auto",
        "--protect",
        "destroy",
        "--drift",
        "1h",
        "--drift-mode",
        "full",
        "--binary",
        "/opt/tofu",
        "--plan-timeout",
        "5m",
        "--apply-timeout",
        "2h",
        "--grace",
        "90s",
        "--require-locks",
        "true",
    ];
    let printed = run(&server, &all).await.done();
    assert!(printed.contains("uploaded (sha256 ") && printed.contains("prod: configured"), "{printed}");
    let tenant = shown(&server, "prod").await;
    let digest = tenant["configuration"]["digest"].as_str().unwrap().to_owned();
    assert!(printed.contains(&digest) && digest.len() == 64, "{digest}");
    let expected = json!({
        "digest": digest, "revision": "v1.2", "fromFile": false,
        "variables": { "nodes": "3", "text": "a=b" },
        "secretVariables": { "token": { "file": "/run/token" }, "key": { "environment": "KEY" } },
        "secretEnvironment": { "TF_ENCRYPTION": { "file": "/run/enc" } },
        "environment": ["AWS_PROFILE", "LANG"], "binary": "/opt/tofu", "approval": "auto",
        "protectDestroy": true, "drift": "1h", "driftMode": "full", "planTimeout": "5m", "applyTimeout": "2h", "grace": "1m 30s",
    });
    assert_eq!(tenant["configuration"], expected);
    assert_eq!((&tenant["labels"], &tenant["requireLocks"]), (&json!({ "env": "prod" }), &json!(true)));

    let printed = run(&server, &["tenant", "show", "prod"]).await.done();
    for piece in [
        "archive ",
        "v1.2",
        "nodes=3",
        "token=file:/run/token",
        "key=env:KEY",
        "TF_ENCRYPTION=file:/run/enc",
        "AWS_PROFILE, LANG",
        "env=prod",
        "auto",
        "from destroy",
        "every 1h, full",
        "plan 5m, apply 2h, grace 1m 30s",
        "/opt/tofu",
    ] {
        assert!(printed.contains(piece), "{piece} is not in: {printed}");
    }

    // What is not named stays; the same files are the same archive.
    let some = [
        "tenant",
        "configure",
        "prod",
        "--dir",
        dir,
        "--unset-var",
        "text",
        "--unset-var",
        "key",
        "--secret-var",
        "nodes=file:/run/nodes",
        "--unset-secret-env",
        "TF_ENCRYPTION",
        "--env=",
        "--unlabel",
        "env",
        "--label",
        "tier=gold",
        "--approval",
        "manual",
        "--protect",
        "none",
        "--drift",
        "never",
        "--drift-mode",
        "refresh-only",
        "--binary=",
    ];
    run(&server, &some).await.done();
    server.terminate().await;
    server.start_again().await;
    let tenant = shown(&server, "prod").await;
    let expected = json!({
        "digest": digest, "fromFile": false, "variables": {},
        "secretVariables": { "token": { "file": "/run/token" }, "nodes": { "file": "/run/nodes" } },
        "secretEnvironment": {}, "environment": [], "approval": "manual", "protectDestroy": false,
        "driftMode": "refresh-only", "planTimeout": "5m", "applyTimeout": "2h", "grace": "1m 30s",
    });
    assert_eq!(tenant["configuration"], expected);
    assert_eq!((&tenant["labels"], &tenant["requireLocks"]), (&json!({ "tier": "gold" }), &json!(true)));

    run(&server, &["tenant", "configure", "prod", "--server-dir", "/"]).await.done();
    let configuration = &shown(&server, "prod").await["configuration"];
    assert_eq!((configuration["dir"].as_str(), configuration.get("digest")), (Some("/"), None));
    assert_eq!(configuration["planTimeout"], "5m");
    let audit = server.get("/rezus/v1/audit?limit=50").await.expect(200, "audit").items();
    for action in ["tenant.configuration", "tenant.configure"] {
        assert!(audit.iter().any(|row| row["action"] == action && row["tenant"] == "prod"), "{audit:?}");
    }
}

#[tokio::test]
async fn no_secret_is_read_to_be_shown() {
    let secret = "configure-canary-8c1f5a";
    let variables = vec![("PROVIDER_TOKEN", secret.to_owned()), ("REZUS_LOG__LEVEL", "trace".to_owned())];
    let server = Server::start_with(Settings { variables, ..Settings::default() }).await;
    let file = server.scratch().join("token");
    std::fs::write(&file, secret).unwrap();
    run(&server, &["tenant", "create", "prod"]).await.done();
    let source = format!("token=file:{}", file.display());
    let set = [
        "tenant",
        "configure",
        "prod",
        "--server-dir",
        "/",
        "--secret-var",
        &source,
        "--secret-env",
        "AWS_TOKEN=env:PROVIDER_TOKEN",
    ];
    run(&server, &set).await.done();
    let tenant = shown(&server, "prod").await.to_string();
    assert!(tenant.contains("PROVIDER_TOKEN") && !tenant.contains(secret), "{tenant}");
    let printed = run(&server, &["tenant", "show", "prod"]).await.done();
    assert!(printed.contains("AWS_TOKEN=env:PROVIDER_TOKEN") && !printed.contains(secret), "{printed}");
    let kube = server.get("/apis/rezuscloud.io/v1alpha1/tenants/prod").await.expect(200, "the Tenant");
    assert!(!String::from_utf8_lossy(&kube.body).contains(secret));
    // Given in place of where it is, it is refused and not repeated.
    let misplaced = format!("token={secret}");
    let refused = run(&server, &["tenant", "configure", "prod", "--secret-var", &misplaced]).await;
    assert!(!format!("{refused:?}").contains(secret), "{refused:?}");
    refused.failed(64, "NAME=file:PATH");
    let body = json!({ "secretVariables": { "token": secret } }).to_string();
    let refused = server.send("PATCH", "/rezus/v1/tenants/prod", body).await.expect(400, "the secret itself");
    assert!(refused.message().contains("secretVariables") && !refused.message().contains(secret));
    assert!(!server.log().contains(secret));
}

#[tokio::test]
async fn a_removed_tenant_takes_its_settings_along() {
    let plane = InProcess::new();
    let create = async || {
        plane.send("POST", "/rezus/v1/tenants", r#"{"name":"prod"}"#).await.expect(201, "create");
    };
    create().await;
    plane.send_as(local(), "PUT", CONFIGURATION, &TAR, archive(&["main.tf"])).await.expect(200, "upload");
    plane.send("PATCH", "/rezus/v1/tenants/prod", r#"{"labels":{"a":"b"}}"#).await.expect(200, "label");
    let count = |table: &str| -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        plane.database().query_row(&count, [], |row| row.get(0)).unwrap()
    };
    assert_eq!((count("tenant_settings"), count("archives")), (1, 1));
    plane.send("DELETE", "/rezus/v1/tenants/prod", "").await.expect(204, "removed");
    assert_eq!((count("tenant_settings"), count("archives")), (0, 0));
    create().await;
    let tenant = plane.get("/rezus/v1/tenants/prod").await.json();
    assert_eq!((tenant.get("configuration"), tenant.get("labels")), (None, None));
}

#[tokio::test]
async fn what_the_configuration_file_says_wins() {
    let mut config = Config::default();
    let section = "dir = \"/srv/prod\"\ndrift = \"6h\"\n[variables]\nnodes = \"3\"\n";
    let tenants = format!("[prod]\n{}", section.replace("[variables]", "[prod.variables]"));
    config.tenants = toml::from_str(&tenants).unwrap();
    let plane = InProcess::configured(config);
    for tenant in ["prod", "test"] {
        let body = json!({ "name": tenant }).to_string();
        plane.send("POST", "/rezus/v1/tenants", body).await.expect(201, tenant);
    }
    let configuration = async |tenant: &str| {
        plane.get(&format!("/rezus/v1/tenants/{tenant}")).await.json()["configuration"].clone()
    };
    let of_file = configuration("prod").await;
    assert_eq!(
        (&of_file["dir"], &of_file["fromFile"], &of_file["drift"], &of_file["variables"]),
        (&json!("/srv/prod"), &json!(true), &json!("6h"), &json!({ "nodes": "3" }))
    );
    let listed = plane.get("/rezus/v1/tenants").await.items();
    assert_eq!(listed[0]["configuration"], of_file);
    let refused = plane.send("PATCH", "/rezus/v1/tenants/prod", r#"{"approval":"auto"}"#).await;
    assert!(refused.expect(409, "what the file says").message().contains("[tenants.prod]"));
    let refused = plane.send_as(local(), "PUT", CONFIGURATION, &TAR, archive(&["main.tf"])).await;
    assert!(refused.expect(409, "an archive").message().contains("[tenants.prod]"));
    assert_eq!(configuration("prod").await, of_file);
    // Labels are nothing that runs are made with.
    plane.send("PATCH", "/rezus/v1/tenants/prod", r#"{"labels":{"a":"b"}}"#).await.expect(200, "a label");
    assert!(configuration("test").await.is_null());
    let other = CONFIGURATION.replace("prod", "test");
    plane.send_as(local(), "PUT", &other, &TAR, archive(&["main.tf"])).await.expect(200, "another tenant");
    assert_eq!(configuration("test").await["fromFile"], false);
}
