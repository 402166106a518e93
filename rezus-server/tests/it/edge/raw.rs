//! Requests as bytes, for clients that do what no library does.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{Server, Settings};

/// Settings by variables.
pub(super) fn with(variables: &[(&'static str, &str)]) -> Settings {
    let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Settings { variables, ..Settings::default() }
}

/// A connection on which so much was sent.
pub(super) async fn connection(server: &Server, sent: impl AsRef<[u8]>) -> TcpStream {
    let address = server.url().trim_start_matches("http://");
    let mut connection = TcpStream::connect(address).await.unwrap();
    connection.write_all(sent.as_ref()).await.unwrap();
    connection
}

/// The head of a request with these further lines.
pub(super) fn head(method: &str, target: &str, lines: &[&str]) -> String {
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

/// Reads until the other side closes, for no longer than this. `None` if it did not.
pub(super) async fn until_closed(
    connection: &mut (impl AsyncRead + Unpin),
    limit: Duration,
) -> Option<String> {
    let mut answer = Vec::new();
    tokio::time::timeout(limit, connection.read_to_end(&mut answer)).await.ok()?.unwrap();
    Some(String::from_utf8(answer).unwrap())
}

/// Reads an answer to its end.
pub(super) async fn answer(connection: &mut (impl AsyncRead + Unpin)) -> String {
    until_closed(connection, Duration::from_secs(20)).await.expect("an answer")
}

/// Fails unless the answer is a `Status` with this code; returns what it says.
#[track_caller]
pub(super) fn status(answer: &str, code: u16, what: &str) -> String {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{what}: {answer:?}"));
    assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{what}: {answer}");
    assert!(head.contains("x-request-id: "), "{what}: {head}");
    let status: serde_json::Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{what}: {answer}"));
    assert_eq!((&status["kind"], &status["code"]), (&"Status".into(), &code.into()), "{what}");
    status["message"].as_str().unwrap().to_owned()
}
