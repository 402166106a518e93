//! Who is let in over TLS.

use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get as route;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::lab::{Lab, PATIENCE, get, text};
use crate::peer::Peer;
use crate::tls::Authority;

async fn who(ConnectInfo(peer): ConnectInfo<Peer>) -> String {
    match peer {
        Peer::Tls { certificate: None, address } => format!("nobody from {}", address.ip()),
        Peer::Tls { certificate: Some(holder), .. } => {
            format!("{} of {}", holder.common_name, holder.organizations.join(","))
        }
        Peer::Address(_) | Peer::Socket => "not by TLS".to_owned(),
    }
}

async fn lab() -> Lab {
    Lab::with(|_| Router::new().route("/", route(who))).await
}

#[tokio::test]
async fn a_certificate_says_who_its_holder_is() {
    let lab = lab().await;
    let somebody = Lab::holder(lab.directory.path(), "ada", "admins");
    let nameless = Lab::holder(lab.directory.path(), "", "admins");
    for protocol in [&b"h2"[..], b"http/1.1", b"http/1.0"] {
        // A client that offers nothing known is refused by the handshake itself (RFC 7301, section 3.2).
        if protocol == b"http/1.0" {
            assert!(lab.connect(protocol, None).await.is_err());
            continue;
        }
        for (holder, expected) in [
            (None, "nobody from 127.0.0.1"),
            (Some(&somebody), "ada of admins"),
            (Some(&nameless), "nobody from 127.0.0.1"),
        ] {
            let answer = get(lab.connect(protocol, holder).await.unwrap()).await.unwrap();
            let version = if protocol == b"h2" { hyper::Version::HTTP_2 } else { hyper::Version::HTTP_11 };
            assert_eq!(answer.version(), version);
            assert_eq!(text(answer).await, expected);
        }
    }
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_no_certificate() {
    let lab = lab().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let now = crate::compose::now();
    drop(Authority::open_or_make(elsewhere.path(), now).unwrap());
    let stranger = Lab::holder(elsewhere.path(), "ada", "admins");
    // In TLS 1.3 the client has done its part before it learns of that.
    let heard = match lab.connect(b"http/1.1", Some(&stranger)).await {
        Ok(stream) => get(stream).await.err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    assert!(heard.is_some(), "a stranger was answered");
    let answer = get(lab.connect(b"http/1.1", None).await.unwrap()).await.unwrap();
    assert_eq!(text(answer).await, "nobody from 127.0.0.1");
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_given_up_and_keeps_nobody_waiting() {
    let lab = Lab::with_handshake(Duration::from_millis(300), |_| Router::new().route("/", route(who))).await;
    let mut silent = TcpStream::connect(lab.address).await.unwrap();
    let mut half = TcpStream::connect(lab.address).await.unwrap();
    // The head of a record that never comes.
    half.write_all(&[0x16, 3, 1, 2, 0]).await.unwrap();
    let answer = get(lab.connect(b"h2", None).await.unwrap()).await.unwrap();
    assert_eq!(text(answer).await, "nobody from 127.0.0.1");
    for stream in [&mut silent, &mut half] {
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
        closed.expect("it is closed").unwrap();
        assert_eq!(rest, b"");
    }
}
