//! How connections end with the server, and without it.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get as route;
use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt as _;

use super::super::draining::Draining;
use super::super::requests::Requests;
use super::lab::{Lab, PATIENCE, get};

/// One event now, and the end when the server ends.
fn events(draining: &Draining) -> Router {
    let draining = draining.clone();
    let answer = || async move {
        let events = stream::unfold(0, move |number| {
            let draining = draining.clone();
            async move {
                if number == 0 {
                    return Some((Ok::<_, Infallible>(Bytes::from_static(b"first\n")), 1));
                }
                draining.begun().await;
                None
            }
        });
        Body::from_stream(events)
    };
    Router::new().route("/", route(answer))
}

#[tokio::test]
async fn watches_end_cleanly_with_the_server() {
    for protocol in [&b"h2"[..], b"http/1.1"] {
        let lab = Lab::with(events).await;
        let idle = lab.connect(protocol, None).await.unwrap();
        let mut answer = get(lab.connect(protocol, None).await.unwrap()).await.unwrap();
        let first = answer.body_mut().frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap(), "first\n");
        lab.draining.begin();
        let rest = tokio::time::timeout(PATIENCE, answer.into_body().collect()).await;
        // An error is a stream that was cut off.
        assert_eq!(rest.unwrap().unwrap().to_bytes(), "");
        let served = tokio::time::timeout(PATIENCE, lab.served).await;
        served.expect("no connection is left").unwrap().unwrap();
        drop(idle);
    }
}

#[tokio::test]
async fn an_answer_that_goes_on_is_waited_for() {
    let lab = Lab::with(|_| events(&Draining::new())).await;
    let mut answer = get(lab.connect(b"h2", None).await.unwrap()).await.unwrap();
    answer.body_mut().frame().await.unwrap().unwrap();
    lab.draining.begin();
    // Longer than a connection without a request is given.
    let served = tokio::time::timeout(Duration::from_secs(5), lab.served).await;
    assert!(served.is_err(), "it was cut off");
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_idle_when_nothing_was_asked_on_it_for_long() {
    let span = Duration::from_secs(90);
    let requests = Requests::default();
    let open = requests.begin();
    let idled = tokio::spawn({
        let requests = requests.clone();
        async move { super::super::connections::idled(&requests, Some(span)).await }
    });
    tokio::time::sleep(span * 10).await;
    assert!(!idled.is_finished(), "a request is under way");
    drop(open);
    tokio::time::sleep(span / 2).await;
    assert!(!idled.is_finished(), "it has just ended");
    drop(requests.begin());
    tokio::time::sleep(span).await;
    assert!(!idled.is_finished(), "another came");
    tokio::time::timeout(span * 2, idled).await.unwrap().unwrap();
}
