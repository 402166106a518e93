//! The configurations of `kubectl` and `talosctl` that are made from a state, and how long they are good.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::API;
use crate::in_process::InProcess;
use crate::projection::{block_of, condition, state_of};
use crate::tools;

const ADDRESS: &str = "talos_cluster_kubeconfig.this";

/// A certificate that ends at the beginning of a year's 9 January, and its key: PEM in base64.
pub(super) fn client(year: i32) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.not_after = rcgen::date_time_ymd(year, 1, 9);
    let certificate = params.self_signed(&key).unwrap().pem();
    (STANDARD.encode(certificate), STANDARD.encode(key.serialize_pem()))
}

/// A state with a kubeconfig whose client certificate ends on 9 January.
pub(super) fn state(serial: u64, year: i32) -> String {
    let (certificate, key) = client(year);
    let configuration = json!({
        "host": "https://192.0.2.10:6443",
        "ca_certificate": certificate,
        "client_certificate": certificate,
        "client_key": key,
    });
    of_attributes(serial, &json!({ "id": "c", "kubernetes_client_configuration": configuration }))
}

pub(super) fn of_attributes(serial: u64, attributes: &Value) -> String {
    let instance = json!({ "schema_version": 1, "attributes": attributes, "sensitive_attributes": [] });
    let provider = "provider[\"registry.opentofu.org/siderolabs/talos\"]";
    state_of("credentials", serial, &[block_of("talos_cluster_kubeconfig", "this", provider, &[instance])])
}

pub(super) async fn current(plane: &InProcess) -> (Value, Value, String) {
    let tenant = plane.get(&format!("{API}/tenants/web")).await.expect(200, "tenant").json();
    let condition = condition(&tenant, "CredentialsCurrent").unwrap_or_else(|| panic!("{tenant}"));
    (
        condition["status"].clone(),
        condition["reason"].clone(),
        condition["message"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn c13_the_end_of_a_certificate_is_told_beforehand() {
    let plane = InProcess::new();
    // It is the evening of 30 November 2026.
    plane.post("web", state(1, 2027)).await.expect(200, "POST");
    let (holds, reason, message) = current(&plane).await;
    assert_eq!((holds, reason), ("True".into(), "Valid".into()));
    assert!(
        message.contains("Kubernetes") && message.contains("good until 2027-01-09T00:00:00Z"),
        "{message}"
    );
    // Time passes, and nothing else: it is looked at again.
    for (days, expected) in [(11, "CredentialExpiring"), (30, "CredentialExpired")] {
        plane.clock.advance(Duration::from_hours(24 * days));
        plane.plane().catalogue.touch(&"web".parse().unwrap());
        let (holds, reason, message) = current(&plane).await;
        assert_eq!((holds, reason), ("False".into(), expected.into()), "{message}");
        assert!(message.contains("2027-01-09T") && message.contains("apply"), "{message}");
    }
    // A new version's certificate counts at once.
    plane.post("web", state(2, 2028)).await.expect(200, "POST");
    assert_eq!(current(&plane).await.1, "Valid");
}

#[tokio::test]
async fn what_cannot_be_used_is_named_and_never_given_out() {
    let plane = InProcess::new();
    let (certificate, key) = client(2030);
    let good = json!({
        "host": "https://192.0.2.10:6443", "ca_certificate": certificate, "client_certificate": certificate, "client_key": key,
    });
    for (serial, (field, value)) in (1..).zip([
        ("host", json!("http://192.0.2.10:6443")),
        ("client_key", json!("not base64!")),
        ("client_key", json!(STANDARD.encode("no pem"))),
        ("client_certificate", json!(7)),
        ("ca_certificate", Value::Null),
    ]) {
        let mut configuration = good.clone();
        configuration[field] = value;
        let body = of_attributes(serial, &json!({ "kubernetes_client_configuration": configuration }));
        plane.post("web", body).await.expect(200, "POST");
        let (holds, reason, message) = current(&plane).await;
        assert_eq!((holds, reason), ("False".into(), "CredentialRejected".into()), "{field}");
        assert!(message.contains(field) && message.contains(ADDRESS) && !message.contains(&key), "{message}");
        let refused = plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(404, field).message();
        assert!(refused.contains(field) && !refused.contains(&key), "{refused}");
    }
    // Kept out of the state: there is nothing to give.
    plane
        .post("web", of_attributes(9, &json!({ "kubernetes_client_configuration": null })))
        .await
        .expect(200, "POST");
    let (holds, reason, message) = current(&plane).await;
    assert_eq!((holds, reason), ("False".into(), "CredentialMissing".into()));
    assert!(message.contains("no Kubernetes credential") && message.contains("no Talos"), "{message}");
    for path in ["/tenants/web/kubeconfig", "/tenants/web/talosconfig", "/tenants/nobody/kubeconfig"] {
        plane.get(&format!("{API}{path}")).await.expect(404, path).message();
    }
    let encrypted = InProcess::new();
    let body = rezus_testkit::fixture::state("tofu-encrypted").body;
    encrypted.post("web", body).await.expect(200, "POST");
    for path in ["kubeconfig", "talosconfig"] {
        let answer = encrypted.get(&format!("{API}/tenants/web/{path}")).await.expect(409, path);
        assert_eq!(answer.json()["reason"], "Encrypted");
    }
}

#[tokio::test]
async fn kubectl_reads_the_kubeconfig_and_the_talosconfig_names_the_control_plane() {
    let plane = InProcess::new();
    let fixture = rezus_testkit::fixture::state("hcloud-talos");
    plane.post("web", fixture.body.clone()).await.expect(200, "POST");
    let answer = plane.get(&format!("{API}/tenants/web/kubeconfig")).await.expect(200, "kubeconfig");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let state: Value = serde_json::from_slice(&fixture.body).unwrap();
    let held = |kind: &str| {
        let blocks = state["resources"].as_array().unwrap();
        let block = blocks.iter().find(|block| block["type"] == kind).unwrap();
        block["instances"][0]["attributes"].clone()
    };
    let kubernetes = &held("talos_cluster_kubeconfig")["kubernetes_client_configuration"];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("kubeconfig");
    std::fs::write(&file, &answer.body).unwrap();
    match tools::find("kubectl") {
        None => tools::missing("kubectl", "that it reads the kubeconfig"),
        Some(kubectl) => {
            let command = ["config", "view", "--raw", "-o", "json", "--kubeconfig"];
            let read = std::process::Command::new(kubectl).args(command).arg(&file).output().unwrap();
            assert!(read.status.success(), "{read:?}");
            let read: Value = serde_json::from_slice(&read.stdout).unwrap();
            let (cluster, user) = (&read["clusters"][0]["cluster"], &read["users"][0]["user"]);
            assert_eq!(cluster["server"], kubernetes["host"]);
            assert_eq!(cluster["certificate-authority-data"], kubernetes["ca_certificate"]);
            assert_eq!(user["client-certificate-data"], kubernetes["client_certificate"]);
            assert_eq!(user["client-key-data"], kubernetes["client_key"]);
            assert_eq!(read["current-context"], "web");
        }
    }
    let talos = plane.get(&format!("{API}/tenants/web/talosconfig")).await.expect(200, "talosconfig");
    let text = String::from_utf8(talos.body.to_vec()).unwrap();
    let key =
        held("talos_machine_secrets")["client_configuration"]["client_key"].as_str().unwrap().to_owned();
    assert!(text.contains(&format!("    key: {key}\n")), "the key of the state");
    assert!(
        text.starts_with("context: \"") && text.contains("    endpoints: [\""),
        "{}",
        text.replace(&key, "KEY")
    );
}
