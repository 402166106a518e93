//! Which certificate is shown.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::raw::{ca, certificate, connect, shown, with};
use crate::server::{PROGRAM, Server};

#[tokio::test]
async fn a_server_makes_an_authority_once_and_a_certificate_for_the_names_it_has() {
    let mut server = Server::start_with(with(&[])).await;
    let tls = server.data_dir().join("tls");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&tls), 0o700);
    for file in ["ca.pem", "ca-key.pem", "server.pem", "server-key.pem"] {
        assert_eq!(mode(&tls.join(file)), 0o600, "{file}");
    }
    let authority = ca(&server);
    let first = shown(&server, &authority, "localhost").await;
    assert_eq!(shown(&server, &authority, "127.0.0.1").await, first);
    assert!(connect(&server, &authority, "rezus.example").await.is_err(), "a name that it does not have");

    server.terminate().await;
    server.start_again().await;
    assert_eq!(ca(&server), authority);
    assert_eq!(shown(&server, &authority, "localhost").await, first, "it is kept over a restart");

    server.terminate().await;
    server.start_again_with(with(&[("REZUS_TLS__NAMES", "rezus.example,192.0.2.7")])).await;
    let second = shown(&server, &authority, "rezus.example").await;
    assert_ne!(second, first);
    assert_eq!(shown(&server, &authority, "192.0.2.7").await, second);
    assert_eq!(shown(&server, &authority, "localhost").await, second);

    // Whoever finds its own certificate damaged needs no help.
    fs::write(tls.join("server.pem"), "cut").unwrap();
    server.logged("TLS files came into force", 1).await;
    assert_ne!(shown(&server, &authority, "localhost").await, second);
    let log = server.log();
    for key in ["ca-key.pem", "server-key.pem"] {
        let key = fs::read_to_string(tls.join(key)).unwrap();
        let secret = key.lines().nth(1).unwrap();
        assert!(!log.contains(secret), "{log}");
    }
}

#[tokio::test]
async fn files_that_change_come_into_force_and_bad_ones_do_not() {
    let scratch = tempfile::tempdir().unwrap();
    let path = |file: &str| scratch.path().join(file).display().to_string();
    for (file, host) in [("live", "one.example"), ("two", "two.example")] {
        certificate(scratch.path(), file, host);
    }
    let first_ca = fs::read_to_string(path("live-ca.pem")).unwrap();
    let second_ca = fs::read_to_string(path("two-ca.pem")).unwrap();
    let files =
        with(&[("REZUS_TLS__CERTIFICATE", &path("live.pem")), ("REZUS_TLS__KEY", &path("live-key.pem"))]);
    let mut server = Server::start_with(files).await;
    assert!(!server.data_dir().join("tls").exists(), "it has no authority of its own");
    let first = shown(&server, &first_ca, "one.example").await;
    let mut open = connect(&server, &first_ca, "one.example").await.unwrap();

    fs::write(path("live.pem"), "-----BEGIN CERTIFICATE-----\ncut").unwrap();
    server.logged("TLS files cannot be used", 1).await;
    assert!(server.log().contains(&path("live.pem")), "{}", server.log());
    assert_eq!(shown(&server, &first_ca, "one.example").await, first);
    // The certificate of another key.
    fs::copy(path("two.pem"), path("live.pem")).unwrap();
    server.logged("the key is not the certificate's", 1).await;
    assert_eq!(shown(&server, &first_ca, "one.example").await, first);
    assert_eq!(server.log().matches("TLS files cannot be used").count(), 2, "each is said once");

    fs::copy(path("two-key.pem"), path("live-key.pem")).unwrap();
    server.logged("TLS files came into force", 1).await;
    assert_ne!(shown(&server, &second_ca, "two.example").await, first);
    assert!(connect(&server, &first_ca, "one.example").await.is_err());

    open.write_all(b"GET /livez HTTP/1.1\r\nhost: one.example\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

/// Runs `serve` where it cannot start, and returns what it says.
async fn refused(server: &Server, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let data_dir = server.scratch().join("other");
    let mut command = tokio::process::Command::new(PROGRAM);
    command.args(["serve", "--plain", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(arguments);
    command.env_clear().envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[tokio::test]
async fn a_server_without_its_certificate_or_address_does_not_start_and_says_why() {
    let server = Server::start_with(with(&[])).await;
    let taken = server.tls_url().trim_start_matches("https://");
    let said = refused(&server, &["--tls", taken], &[]).await;
    assert!(said.contains(taken) && said.contains("--tls"), "{said}");

    certificate(server.scratch(), "given", "one.example");
    let path = |file: &str| server.scratch().join(file).display().to_string();
    let (pem, key, none) = (path("given.pem"), path("given-key.pem"), path("none.pem"));
    let anywhere = &["--tls", "127.0.0.1:0"][..];
    for (variables, named) in [
        (&[("REZUS_TLS__CERTIFICATE", pem.as_str())][..], "tls.key"),
        (&[("REZUS_TLS__CERTIFICATE", &pem), ("REZUS_TLS__KEY", &none)], none.as_str()),
        (&[("REZUS_TLS__CERTIFICATE", &pem), ("REZUS_TLS__KEY", &pem)], &pem),
        (&[("REZUS_TLS__CERTIFICATE", &key), ("REZUS_TLS__KEY", &key)], &key),
        (&[("REZUS_TLS__CLIENT_CA", &none)], &none),
        (&[("REZUS_TLS__CLIENT_CA", &key)], &key),
        (&[("REZUS_TLS__NAMES", "no name")], "no name"),
    ] {
        let said = refused(&server, anywhere, variables).await;
        assert!(said.contains(named), "{variables:?}: {said}");
        assert!(!said.contains("PRIVATE"), "{said}");
    }
}
