//! Users who prove who they are by a certificate, with the real kubectl.

use std::path::Path;
use std::process::Output;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tokio::process::Command;

use super::commands::done;
use crate::server::{Server, Settings};
use crate::tools;

/// Writes a certificate for a user of a group, and its key, signed by the authority whose files are in `authority`.
fn issue(authority: &Path, files: &Path, user: &str, group: &str) {
    let read = |file| std::fs::read_to_string(authority.join(file)).unwrap();
    let signer = KeyPair::from_pem(&read("ca-key.pem")).unwrap();
    let issuer = Issuer::from_ca_cert_pem(&read("ca.pem"), signer).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, group);
    params.distinguished_name.push(DnType::CommonName, user);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    std::fs::write(files.join("certificate.pem"), certificate.pem()).unwrap();
    std::fs::write(files.join("key.pem"), key.serialize_pem()).unwrap();
}

/// Writes the files of an authority that the server knows nothing of.
fn another_authority(directory: &Path) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    std::fs::write(directory.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(directory.join("ca-key.pem"), key.serialize_pem()).unwrap();
}

async fn kubectl(program: &Path, server: &Server, files: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(["--server", server.tls_url(), "--certificate-authority"]);
    command.arg(server.data_dir().join("tls/ca.pem"));
    command.arg("--client-certificate").arg(files.join("certificate.pem"));
    command.arg("--client-key").arg(files.join("key.pem")).args(arguments);
    command.env_clear().env("HOME", files).stdin(std::process::Stdio::null());
    command.output().await.unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn a_certificate_of_the_servers_authority_is_the_user_it_names_and_no_other_is() {
    let Some(program) = tools::find("kubectl") else {
        return tools::missing("kubectl", "client certificates with kubectl");
    };
    let server = Server::start_with(Settings { tls: true, auth: true, ..Settings::default() }).await;
    let data = server.data_dir().to_str().unwrap();
    let socket = ["--data-dir", data];
    for tenant in ["web", "db"] {
        done(&["tenant", "create", tenant], &socket).await;
    }
    done(&["user", "create", "ada", "--role", "view", "--tenant", "web"], &socket).await;
    let (own, files) = (server.data_dir().join("tls"), tempfile::tempdir().unwrap());
    let files = files.path();

    issue(&own, files, "ada", "operators");
    let who = text(&kubectl(&program, &server, files, &["auth", "whoami"]).await);
    assert!(who.contains("ada") && who.contains("operators"), "{who}");
    let listed = text(&kubectl(&program, &server, files, &["get", "tenants", "-o", "name"]).await);
    assert_eq!(listed, "tenant.rezuscloud.io/web\n");
    let refused = kubectl(&program, &server, files, &["get", "machines", "-n", "db"]).await;
    assert!(!refused.status.success() && text(&refused).contains("Forbidden"), "{}", text(&refused));

    // A group's certificate counts once something is granted to the group.
    issue(&own, files, "grace", "operators");
    let unknown = kubectl(&program, &server, files, &["get", "tenants"]).await;
    assert!(!unknown.status.success() && text(&unknown).contains("logged in"), "{}", text(&unknown));
    done(&["group", "grant", "operators", "--role", "view"], &socket).await;
    let listed = text(&kubectl(&program, &server, files, &["get", "tenants", "-o", "name"]).await);
    assert_eq!(listed, "tenant.rezuscloud.io/db\ntenant.rezuscloud.io/web\n");

    // The same name by another authority is nobody: the handshake fails.
    let other = tempfile::tempdir().unwrap();
    another_authority(other.path());
    issue(other.path(), files, "ada", "operators");
    let stranger = kubectl(&program, &server, files, &["get", "--raw", "/version"]).await;
    assert!(!stranger.status.success(), "{}", text(&stranger));
}
