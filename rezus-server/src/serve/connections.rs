//! Connections: how many at a time, how long the head of a request may take, and how they end.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, Request};
use axum::serve::Listener;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::peer::Peer;

/// How long the head of a request may take, and a connection be idle in between: nobody holds a connection for nothing.
const HEAD: Duration = Duration::from_secs(10);

/// How long a connection on which no request is under way may take to hand over the last answer when the server ends.
const LINGER: Duration = Duration::from_secs(2);

/// Serves a listener until `stop` says true, then lets requests under way finish. Idle connections end at once.
///
/// No more than `limit` connections are open at a time; further ones wait with the operating system.
pub(super) async fn serve<L: Listener>(
    mut listener: L,
    router: Router,
    limit: usize,
    peer: impl Fn(&L::Addr) -> Peer,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = super::stopping(stop.clone()) => break,
            // Connections that have ended are forgotten here.
            Some(_) = connections.join_next() => {}
            next = accept(&places, &mut listener) => {
                let (place, stream, address) = next?;
                connections.spawn(connection(stream, peer(&address), router.clone(), stop.clone(), place));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
    Ok(())
}

async fn accept<L: Listener>(
    places: &Arc<Semaphore>,
    listener: &mut L,
) -> io::Result<(OwnedSemaphorePermit, L::Io, L::Addr)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await;
    Ok((place, stream, address))
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    router: Router,
    stop: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) {
    // Each request holds a clone until its answer's body is handed over.
    let requests = Arc::new(());
    let request = Arc::downgrade(&requests);
    let service = service_fn(move |incoming: hyper::Request<Incoming>| {
        let under_way = request.upgrade();
        let mut request: Request = incoming.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.clone().oneshot(request);
        async move { Ok::<_, Infallible>(answer.await?.map(|body| Answer { body, _under_way: under_way })) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A connection that breaks is its client's affair.
        _ = served.as_mut() => {}
        () = super::stopping(stop) => {
            served.as_mut().graceful_shutdown();
            while tokio::time::timeout(LINGER, served.as_mut()).await.is_err() && Arc::strong_count(&requests) > 1 {}
        }
    }
    drop(place);
}

/// An answer's body, under way until it is dropped.
struct Answer {
    body: Body,
    _under_way: Option<Arc<()>>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
