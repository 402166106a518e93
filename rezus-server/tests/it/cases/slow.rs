//! Clients that stop in the middle, and a server that is told to.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::lock::{self, APPLY, state};
use crate::server::{Server, Settings};

/// A request that has been begun: `sent` bytes of its body are under way.
async fn begin(server: &Server, method: &str, target: &str, body: &str, sent: usize) -> TcpStream {
    let address = server.url().trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&body.as_bytes()[..sent]).await.unwrap();
    connection.flush().await.unwrap();
    connection
}

/// Reads an answer to its end and returns its status line.
async fn status_line(mut connection: TcpStream) -> String {
    let mut answer = Vec::new();
    let read = connection.read_to_end(&mut answer);
    let limit = std::time::Duration::from_secs(20);
    tokio::time::timeout(limit, read).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

fn with(variables: &[(&'static str, &str)]) -> Settings {
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Settings { variables, ..Settings::default() }
}

#[tokio::test]
async fn a_state_that_does_not_arrive_is_given_up() {
    let server = Server::start_with(with(&[("REZUS_STATE__IDLE", "1s")])).await;
    let stalled = begin(&server, "POST", "/state/web", &state("l", 1), 50).await;
    assert_eq!(status_line(stalled).await, "HTTP/1.1 400 Bad Request");
    let refusals = server.get("/rezus/v1/tenants/web/refusals").await.items();
    assert!(refusals[0]["reason"].as_str().unwrap().contains("50 of"), "{refusals:?}");
}

#[tokio::test]
async fn a_lock_that_does_not_arrive_is_given_up() {
    let server = Server::start_with(with(&[("REZUS_STATE__IDLE", "1s")])).await;
    for method in ["LOCK", "UNLOCK"] {
        let info = lock::info(&lock::id(1), APPLY);
        let stalled = begin(&server, method, "/state/web", &info, 50).await;
        assert_eq!(status_line(stalled).await, "HTTP/1.1 400 Bad Request", "{method}");
    }
}

/// Who finds no room is told to come back, instead of the server taking more than it has.
#[tokio::test]
async fn a_state_for_which_there_is_no_room_is_told_to_come_back() {
    let settings = with(&[("REZUS_STATE__IN_FLIGHT", "1KiB"), ("REZUS_STATE__WAIT", "1s")]);
    let server = Server::start_with(settings).await;
    let body = state("l", 1);
    let mut first = begin(&server, "POST", "/state/first", &body, 50).await;
    // The first has all the room there is once the server has begun to read it.
    let answer = loop {
        let answer = server.send("POST", "/state/second", body.clone()).await;
        if answer.code == 503 {
            break answer;
        }
        answer.expect(200, "before the first was read");
    };
    assert!(answer.header("retry-after").is_some());
    first.write_all(&body.as_bytes()[50..]).await.unwrap();
    assert_eq!(status_line(first).await, "HTTP/1.1 200 OK");
    server.send("POST", "/state/second", body).await.expect(200, "there is room again");
}

/// A server that is told to end finishes what it has begun.
#[tokio::test]
async fn a_write_under_way_is_finished_before_the_server_ends() {
    let mut server = Server::start().await;
    let body = state("l", 1);
    let mut under_way = begin(&server, "POST", "/state/web", &body, 50).await;
    // Answered on another connection, this tells that the first was taken off the listener's queue.
    server.get("/readyz").await.expect(200, "ready");
    server.ask_to_end();
    server.logged("stopping", 1).await;
    under_way.write_all(&body.as_bytes()[50..]).await.unwrap();
    assert_eq!(status_line(under_way).await, "HTTP/1.1 200 OK");
    assert!(server.ended().await.success());
    server.start_again().await;
    assert_eq!(server.get("/state/web").await.expect(200, "what was written").body, body);
}

/// Whoever waits for `ready` may end the server at once: from then on it ends in good order.
#[tokio::test]
async fn a_server_that_is_told_to_end_as_soon_as_it_is_ready_ends_in_order() {
    let mut server = Server::start().await;
    for start in 0..20 {
        let status = server.terminate().await;
        assert!(status.success(), "start {start}: {status}");
        server.start_again().await;
    }
}

/// Work that waited for threads which such work had taken stopped a server for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_compute_at_once_the_server_goes_on() {
    let variables = vec![("REZUS_LIMITS__IN_FLIGHT", "1000".to_owned())];
    let server = Server::start_with(Settings { variables, ..Settings::default() }).await;
    server.send("POST", "/state/web", state("l", 1)).await.expect(200, "POST");
    server.send("POST", "/state/web", state("l", 2)).await.expect(200, "POST");
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut asked = tokio::task::JoinSet::new();
    for number in 0..700 {
        let request = match number % 3 {
            0 => http.post(format!("{}/rezus/v1/tenants/web/index", server.url())),
            1 => http.get(format!("{}/rezus/v1/tenants/web/diff?from=1&to=2", server.url())),
            _ => http
                .post(format!("{}/rezus/v1/tenants/web/rollback", server.url()))
                .header("content-type", "application/json")
                .body("{\"version\":1}"),
        };
        let request = request.timeout(std::time::Duration::from_mins(1));
        asked.spawn(async move { (number, request.send().await) });
    }
    let mut rolled_back = 0;
    while let Some(answer) = asked.join_next().await {
        let (number, answer) = answer.unwrap();
        let code = answer.expect("an answer").status().as_u16();
        // Of many who change one tenant, those who lose too often are told to come back.
        assert!(code == 200 || (code == 503 && number % 3 == 2), "{code}");
        rolled_back += usize::from(number % 3 == 2 && code == 200);
    }
    server.get("/readyz").await.expect(200, "ready");
    assert_eq!(server.versions("web").await.len(), 2 + rolled_back);
}
