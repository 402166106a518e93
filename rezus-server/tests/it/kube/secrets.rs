//! With what a cluster is reached: held of one version only, and read in files where the state holds nothing.

use std::sync::Arc;
use std::time::Duration;

use rezus_core::base::TenantName;
use rezus_core::declared::mapping::Mappings;
use rezus_core::declared::reader::ReadError;
use serde_json::json;
use zeroize::Zeroizing;

use super::API;
use super::credentials::{client, current, of_attributes, state};
use crate::in_process::InProcess;
use crate::projection::condition;

fn web() -> TenantName {
    "web".parse().unwrap()
}

/// A kubeconfig whose client certificate ends on 9 January of a year.
fn kubeconfig(year: i32, user: &str) -> String {
    let (certificate, key) = client(year);
    format!(
        "current-context: c\ncontexts: [{{ name: c, context: {{ cluster: c, user: u }} }}]\n\
        clusters: [{{ name: c, cluster: {{ server: \"https://192.0.2.99:6443\", certificate-authority-data: {certificate} }} }}]\n\
        users: [{{ name: u, user: {{ client-certificate-data: {certificate}, client-key-data: {key}{user} }} }}]\n"
    )
}

/// Settings of `web`, or why they are refused.
async fn set(plane: &InProcess, body: serde_json::Value, code: u16) -> crate::answer::Answer {
    plane.send("PATCH", "/rezus/v1/tenants/web", body.to_string()).await.expect(code, "PATCH")
}

#[tokio::test]
async fn credentials_are_found_once_and_dropped_with_their_version() {
    let plane = InProcess::new();
    let secrets = plane.plane().secrets.clone();
    plane.post("web", state(1, 2027)).await.expect(200, "POST");
    let first = secrets.of(&web()).await.unwrap();
    assert!(Arc::ptr_eq(&first, &secrets.of(&web()).await.unwrap()), "found once");
    plane.get(&format!("{API}/tenants/web")).await.expect(200, "the Tenant");
    plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "kubeconfig");
    assert!(Arc::ptr_eq(&first, &secrets.of(&web()).await.unwrap()), "others find the same");
    let (old, before) = (Arc::downgrade(&first), first.kubernetes.clone().unwrap());
    drop(first);
    assert!(old.upgrade().is_some(), "it is held");
    plane.post("web", state(2, 2028)).await.expect(200, "POST");
    assert!(old.upgrade().is_none(), "it went with its version, before anybody asked for the next one");
    let second = secrets.of(&web()).await.unwrap();
    let after = second.kubernetes.clone().unwrap();
    assert!(before.client != after.client);
    let given = plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "kubeconfig");
    assert_eq!(&*given.body, after.kubeconfig("web").as_bytes());
    // A deletion, and a rollback to what was there.
    let old = Arc::downgrade(&second);
    drop(second);
    plane.send("DELETE", "/state/web", "").await.expect(200, "DELETE");
    assert!(old.upgrade().is_none());
    assert!(matches!(secrets.of(&web()).await, Err(ReadError::NoState(_))));
    let body = json!({ "version": 1 }).to_string();
    plane.send("POST", "/rezus/v1/tenants/web/rollback", body).await.expect(200, "rollback");
    let third = secrets.of(&web()).await.unwrap();
    assert!(third.kubernetes.as_ref() == Some(&before));
    let old = Arc::downgrade(&third);
    drop(third);
    plane.send("DELETE", "/rezus/v1/tenants/web?force=true", "").await.expect(204, "removed");
    assert!(old.upgrade().is_none());
    assert!(matches!(secrets.of(&web()).await, Err(ReadError::NoTenant(_))));
}

#[tokio::test]
async fn those_of_an_encrypted_state_are_known_while_its_version_is_the_newest() {
    let plane = InProcess::new();
    let secrets = plane.plane().secrets.clone();
    plane.post("web", rezus_testkit::fixture::state("tofu-encrypted").body).await.expect(200, "POST");
    assert!(matches!(secrets.of(&web()).await, Err(ReadError::Encrypted { .. })));
    let record = plane.plane().backend.store().tenant(&web()).await.unwrap().unwrap().0;
    let head = record.head.unwrap();
    let serial = head.serial.map_or(1, rezus_core::declared::Serial::get);
    let plain = Zeroizing::new(state(serial, 2030).into_bytes());
    let plaintexts = plane.plane().reader.plaintexts().clone();
    plaintexts.put(&web(), head, plain, &Mappings::default()).unwrap();
    let found = secrets.of(&web()).await.unwrap();
    assert!(found.kubernetes.is_some());
    plane.plane().catalogue.touch(&web());
    assert_eq!(current(&plane).await.1, "Valid");
    plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "kubeconfig");
}

#[tokio::test]
async fn c14_a_file_counts_where_the_state_holds_nothing() {
    let plane = InProcess::new();
    let withheld = |serial| of_attributes(serial, &json!({ "kubernetes_client_configuration": null }));
    plane.post("web", withheld(1)).await.expect(200, "POST");
    let (holds, reason, message) = current(&plane).await;
    assert_eq!((holds, reason), ("False".into(), "CredentialMissing".into()));
    assert!(message.contains("--kubeconfig-file"), "{message}");
    let file = plane.directory().join("kubeconfig");
    std::fs::write(&file, kubeconfig(2027, "")).unwrap();
    let shown = set(&plane, json!({ "kubeconfigFile": file }), 200).await.json();
    assert_eq!(shown["kubeconfigFile"], json!(file));
    assert_eq!(current(&plane).await.1, "Valid");
    let given = plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "kubeconfig");
    assert!(String::from_utf8_lossy(&given.body).contains("https://192.0.2.99:6443"));
    // Its end is told beforehand, and another file in its place counts at once.
    plane.clock.advance(Duration::from_hours(24 * 11));
    plane.plane().catalogue.touch(&web());
    let (_, reason, message) = current(&plane).await;
    assert_eq!(reason, "CredentialExpiring");
    assert!(message.contains("2027-01-09T") && message.contains("replace the file"), "{message}");
    std::fs::write(&file, kubeconfig(2030, "")).unwrap();
    plane.plane().catalogue.touch(&web());
    assert_eq!(current(&plane).await.1, "Valid");
    // What turns into something else is not used, and nothing of it is told.
    std::fs::write(&file, kubeconfig(2030, ", exec: { command: /bin/marker-7c1d }")).unwrap();
    plane.plane().catalogue.touch(&web());
    let (_, reason, message) = current(&plane).await;
    assert_eq!(reason, "CredentialRejected");
    assert!(message.contains("exec of the file") && !message.contains("marker-7c1d"), "{message}");
    let refused = plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(404, "exec").message();
    assert!(refused.contains("exec of the file"), "{refused}");
    // The state's own win.
    plane.post("web", state(2, 2030)).await.expect(200, "POST");
    assert_eq!(current(&plane).await.1, "Valid");
    let given = plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "kubeconfig");
    assert!(String::from_utf8_lossy(&given.body).contains("https://192.0.2.10:6443"));
    plane.post("web", withheld(3)).await.expect(200, "POST");
    let shown = set(&plane, json!({ "kubeconfigFile": null }), 200).await.json();
    assert!(shown.get("kubeconfigFile").is_none());
    assert_eq!(current(&plane).await.1, "CredentialMissing");
}

#[tokio::test]
async fn a_file_counts_where_there_is_no_state_or_none_that_can_be_read() {
    let plane = InProcess::new();
    plane.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "web");
    let file = plane.directory().join("kubeconfig");
    std::fs::write(&file, kubeconfig(2030, "")).unwrap();
    set(&plane, json!({ "kubeconfigFile": file }), 200).await;
    plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "no state");
    assert_eq!(current(&plane).await.1, "Valid");
    plane.post("web", rezus_testkit::fixture::state("tofu-encrypted").body).await.expect(200, "POST");
    plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "encrypted");
    assert_eq!(current(&plane).await.1, "Valid");
    plane.get(&format!("{API}/tenants/web/talosconfig")).await.expect(404, "no talosconfig is named");
    std::fs::remove_file(&file).unwrap();
    plane.plane().catalogue.touch(&web());
    assert_eq!(current(&plane).await.1, "CredentialRejected");
}

#[tokio::test]
async fn files_that_give_nothing_are_refused_when_they_are_named() {
    let plane = InProcess::new();
    plane.send("POST", "/rezus/v1/tenants", r#"{"name":"web"}"#).await.expect(201, "web");
    let directory = plane.directory().to_owned();
    let written = |name: &str, text: &str| {
        std::fs::write(directory.join(name), text).unwrap();
        directory.join(name)
    };
    let other = kubeconfig(2030, ", client-key: /etc/shadow");
    for (key, path, code, piece) in [
        ("kubeconfigFile", directory.join("none"), 422, "no such file"),
        ("kubeconfigFile", directory.clone(), 422, "it is no file"),
        ("kubeconfigFile", "relative".into(), 422, "a path of the server's machine"),
        ("kubeconfigFile", written("large", &" ".repeat((1 << 20) + 1)), 422, "longer than 1 MiB"),
        (
            "kubeconfigFile",
            written("exec", &kubeconfig(2030, ", exec: {}")),
            422,
            "exec: it has a program run",
        ),
        ("kubeconfigFile", written("other", &other), 422, "client-key: it names another file"),
        ("talosconfigFile", written("empty", "context: x\n"), 422, "no such context"),
    ] {
        let message = set(&plane, json!({ key: path }), code).await.message();
        assert!(message.starts_with(key) && message.contains(piece), "{message}");
    }
    set(&plane, json!({ "kubeconfigFile": 7 }), 400).await;
    let tenant = plane.get("/rezus/v1/tenants/web").await.json();
    assert!(tenant.get("kubeconfigFile").is_none());
    let shown = plane.get(&format!("{API}/tenants/web")).await.json();
    assert!(condition(&shown, "CredentialsCurrent").is_none(), "no cluster is declared");
}
