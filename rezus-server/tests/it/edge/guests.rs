//! Who is let in, and how many at a time.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use super::raw::{answer, connection, status, until_closed, with};
use crate::in_process::InProcess;
use crate::lock::state;
use crate::server::Server;

fn get(target: &str, lines: &[&str]) -> String {
    format!("GET {target} HTTP/1.1\r\nconnection: close\r\n{}\r\n\r\n", lines.join("\r\n"))
}

/// A page in this machine's browser can send here what it likes, but not under a name of this machine.
#[tokio::test]
async fn the_plain_listener_answers_only_to_names_of_this_machine_and_its_own_pages() {
    let server = Server::start().await;
    server.send("POST", "/state/web", state("l", 1)).await.expect(200, "a state");
    for target in ["/state/web", "/rezus/v1/tenants", "/healthz", "/metrics", "/nowhere"] {
        for lines in [
            &["host: rezus.example:8080"][..],
            &["host: 127.0.0.1.nip.io"],
            &["host: localhost", "host: rezus.example"],
            &["host: localhost", "origin: https://rezus.example"],
            &["host: localhost", "origin: null"],
        ] {
            let said = answer(&mut connection(&server, get(target, lines)).await).await;
            let said = status(&said, 403, &format!("{target} {lines:?}"));
            assert!(said.contains("plain listener"), "{said}");
        }
    }
    let absolute = get("http://rezus.example/state/web", &["host: localhost"]);
    status(&answer(&mut connection(&server, absolute).await).await, 403, "the address itself names another");

    for lines in [
        &["host: localhost:8080"][..],
        &["host: 127.0.0.1"],
        &["host: [::1]:9"],
        &["host: LocalHost", "origin: http://localhost:3000"],
        &["host: 127.0.0.1:8080", "origin: http://[::1]"],
    ] {
        let said = answer(&mut connection(&server, get("/state/web", lines)).await).await;
        assert!(said.starts_with("HTTP/1.1 200 "), "{lines:?}: {said}");
    }
    let old = "GET /state/web HTTP/1.0\r\n\r\n";
    let said = answer(&mut connection(&server, old).await).await;
    assert!(said.starts_with("HTTP/1.0 200 "), "{said}");
}

/// Whoever can open the socket is no browser.
#[tokio::test]
async fn the_socket_takes_any_name() {
    let server = Server::start().await;
    let mut client = UnixStream::connect(server.data_dir().join("rezus.sock")).await.unwrap();
    let request = get("/rezus/v1/tenants", &["host: rezus.sock", "origin: null"]);
    client.write_all(request.as_bytes()).await.unwrap();
    let said = answer(&mut client).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
}

/// The path of a socket has room for about a hundred bytes; that of a data directory may be longer.
#[tokio::test]
async fn a_data_directory_with_a_long_path_has_its_socket_too() {
    let other = Server::start().await;
    let server = Server::start_in(&other, &"long".repeat(40)).await;
    let socket = server.data_dir().join("rezus.sock");
    assert!(socket.as_os_str().len() > 160, "{}", socket.display());
    let short = rezus_server::serve::SocketPath::to(&socket).unwrap();
    let mut client = UnixStream::connect(short.path()).await.unwrap();
    client.write_all(get("/readyz", &["host: x"]).as_bytes()).await.unwrap();
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200 "));
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_their_turn() {
    let server = Server::start_with(with(&[("REZUS_SERVER__MAX_CONNECTIONS", "2")])).await;
    let first = connection(&server, "GET /").await;
    let _second = connection(&server, "GET /").await;
    // The server counts a connection once it has taken it, in the order they came.
    let mut third = connection(&server, get("/livez", &["host: localhost"])).await;
    assert_eq!(until_closed(&mut third, Duration::from_secs(1)).await, None, "no room yet");
    drop(first);
    assert!(answer(&mut third).await.starts_with("HTTP/1.1 200 "));
    // The socket has room of its own.
    let mut client = UnixStream::connect(server.data_dir().join("rezus.sock")).await.unwrap();
    client.write_all(get("/livez", &["host: x"]).as_bytes()).await.unwrap();
    assert!(answer(&mut client).await.starts_with("HTTP/1.1 200 "));
}

/// Scrapes at the same time took each other's series away.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scrapes_at_the_same_time_all_see_every_tenant() {
    const TENANTS: usize = 50;
    let server = Arc::new(InProcess::new());
    for number in 0..TENANTS {
        server.post(&format!("t{number}"), state("l", 1)).await.expect(200, "a state");
    }
    let scrapes = (0..8).map(|_| {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            for _ in 0..40 {
                let text = server.get("/metrics").await.expect(200, "metrics").body;
                let text = String::from_utf8(text.to_vec()).unwrap();
                for family in
                    ["rezus_state_size_bytes{", "rezus_state_version{", "rezus_state_written_at_seconds{"]
                {
                    assert_eq!(text.matches(family).count(), TENANTS, "{family}");
                }
                assert_eq!(text.matches("# EOF").count(), 1);
                assert!(text.ends_with("# EOF\n"), "{text}");
            }
        })
    });
    for scrape in futures_util::future::join_all(scrapes).await {
        scrape.unwrap();
    }
}
