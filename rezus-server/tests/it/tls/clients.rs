//! What real clients say to the TLS listener.

use std::process::Output;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::raw::{ca, connect, with};
use crate::lock::state;
use crate::server::{PROGRAM, Server};
use crate::{tool, tools};

const PATIENCE: Duration = Duration::from_mins(1);

async fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    let program = tools::find(program)?;
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.args(arguments).env_clear().kill_on_drop(true).stdin(std::process::Stdio::null());
    // Without a home of its own, kubectl keeps what it has learnt of the server where it stands.
    command.env("HOME", home.path());
    Some(tokio::time::timeout(PATIENCE, command.output()).await.expect("the client ends").unwrap())
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn curl_speaks_both_versions_and_wants_the_authority() {
    let server = Server::start_with(with(&[])).await;
    let authority = server.data_dir().join("tls/ca.pem").display().to_string();
    let url = format!("{}/version", server.tls_url());
    let show = ["-sS", "--noproxy", "*", "-w", " HTTP/%{http_version}"];
    for (options, expected) in [
        (&["--http2"][..], "HTTP/2"),
        (&["--http1.1"], "HTTP/1.1"),
        (&["--http1.1", "--tls-max", "1.2"], "HTTP/1.1"),
        (&["--http2", "--tls-max", "1.2"], "HTTP/2"),
    ] {
        let arguments = [&show[..], &["--cacert", &authority], options, &[&url]].concat();
        let Some(output) = run("curl", &arguments).await else {
            return tools::missing("curl", "the TLS listener with curl");
        };
        let said = text(&output);
        assert!(said.contains("+rezus.") && said.ends_with(expected), "{options:?}: {said}");
    }
    let output = run("curl", &[&show[..], &[&url]].concat()).await.unwrap();
    assert_eq!(output.status.code(), Some(60), "{}", text(&output));
    // TLS 1.1 and before are over.
    let old = ["--cacert", &authority, "--tls-max", "1.1", &url];
    assert!(!run("curl", &[&show[..], &old].concat()).await.unwrap().status.success());
}

#[tokio::test]
async fn kubectl_takes_the_authority() {
    let server = Server::start_with(with(&[])).await;
    let authority = server.data_dir().join("tls/ca.pem").display().to_string();
    // Else it is where the tests are.
    let cache = server.data_dir().join("kubectl").display().to_string();
    let arguments = [
        "--server",
        server.tls_url(),
        "--certificate-authority",
        &authority,
        "--token",
        "none",
        "--cache-dir",
        &cache,
        "get",
        "--raw",
        "/healthz",
    ];
    let Some(output) = run("kubectl", &arguments).await else {
        return tools::missing("kubectl", "the TLS listener with kubectl");
    };
    assert_eq!(text(&output), "ok");
}

#[tokio::test]
async fn a_real_client_keeps_its_state_over_tls() {
    let server = Server::start_with(with(&[])).await;
    let Some(tool) = tool::installed().into_iter().next() else {
        return tools::missing("tofu or terraform", "a state over TLS");
    };
    let block = tool::Form::Path.block(server.tls_url(), "web");
    let authority = format!("client_ca_certificate_pem = <<PEM\n{}PEM\n  }}\n}}", ca(&server));
    let block = block.trim_end().strip_suffix("}\n}").unwrap().to_owned() + &authority + "\n";
    let workspace = tool::Workspace::new(&tool, &server, "tls", &block).await;
    workspace.apply("one").await.done();
    workspace.apply("two").await.done();
    assert!(server.locks().await.is_empty());
    let state: serde_json::Value = serde_json::from_slice(&workspace.pull().await).unwrap();
    assert_eq!(state["outputs"]["value"]["value"], "two");
}

/// What is no TLS costs nobody else anything, and neither does a head that does not come.
#[tokio::test]
async fn clients_that_do_not_speak_hurt_nobody_else() {
    let server = Server::start_with(with(&[("REZUS_LIMITS__HANDSHAKE", "1s")])).await;
    let authority = ca(&server);
    let address = server.tls_url().trim_start_matches("https://");
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut slow = connect(&server, &authority, "localhost").await.unwrap();
    slow.write_all(b"GET /livez HTTP/1.1\r\nhost: loc").await.unwrap();

    let mut fine = connect(&server, &authority, "localhost").await.unwrap();
    fine.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    fine.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");

    let mut said = String::new();
    let closed = tokio::time::timeout(PATIENCE, plain.read_to_string(&mut said)).await;
    closed.expect("it is closed").unwrap();
    assert!(said.starts_with("HTTP/1.1 400 ") && said.ends_with("use https://\n"), "{said}");
    let mut nothing = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut nothing)).await;
    assert_eq!(closed.expect("it is closed").unwrap(), 0);
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(PATIENCE, slow.read_to_end(&mut rest)).await;
    drop(closed.expect("it is closed"));
    assert!(!rest.starts_with(b"HTTP/1.1 2"), "{rest:?}");
}

#[tokio::test]
async fn the_end_lets_a_download_over_tls_finish() {
    let mut server = Server::start_with(with(&[])).await;
    let body = crate::lock::state_with("l", 1, &"x".repeat(8 << 20));
    server.send("POST", "/state/web", body.clone()).await.expect(200, "a state");
    server.send("POST", "/state/small", state("l", 1)).await.expect(200, "a state");
    let mut download = connect(&server, &ca(&server), "localhost").await.unwrap();
    let mut idle = connect(&server, &ca(&server), "localhost").await.unwrap();
    let head = b"GET /state/web HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    download.write_all(head).await.unwrap();
    let mut first = [0; 15];
    download.read_exact(&mut first).await.unwrap();
    server.ask_to_end();
    server.logged("stopping", 1).await;
    let mut nothing = Vec::new();
    drop(tokio::time::timeout(PATIENCE, idle.read_to_end(&mut nothing)).await.expect("it is closed"));
    let mut rest = String::new();
    download.read_to_string(&mut rest).await.unwrap();
    assert!(rest.ends_with(&body), "{} bytes", rest.len());
    assert!(server.ended().await.success());
}

#[tokio::test]
async fn commands_reach_a_server_over_tls() {
    let server = Server::start_with(with(&[])).await;
    server.send("POST", "/state/web", state("l", 1)).await.expect(200, "a state");
    let authority = server.data_dir().join("tls/ca.pem").display().to_string();
    let token = server.scratch().join("token");
    std::fs::write(&token, "none\n").unwrap();
    let token = token.display().to_string();
    let list = ["tenant", "list", "-o", "json", "--server", server.tls_url()];
    let command = |more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(list).args(more).env_clear();
        async move { command.output().await.unwrap() }
    };
    let listed = command(&["--ca-file", &authority, "--token-file", &token]).await;
    let tenants: serde_json::Value =
        serde_json::from_slice(&listed.stdout).unwrap_or_else(|_| panic!("{}", text(&listed)));
    assert_eq!(tenants["items"][0]["name"], "web");
    for (more, said) in [(&[][..], "--ca-file"), (&["--ca-file", &token], &token)] {
        let failed = command(more).await;
        assert_eq!(failed.status.code(), Some(1), "{}", text(&failed));
        assert!(text(&failed).contains(said), "{}", text(&failed));
    }
}
