//! Connections: how many at a time, how long the head of a request may take, and how they end.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use super::doors::{Opened, Protocol};
use super::draining::Draining;
use super::held::Held;
use super::requests::{Requests, UnderWay};
use crate::peer::Peer;

/// How long the head of a request may take, and a connection be idle in between: nobody holds a connection for nothing.
const HEAD: Duration = Duration::from_secs(10);

/// How long a connection on which no request is under way may take to hand over the last answer when the server ends.
const LINGER: Duration = Duration::from_secs(2);

/// How often a client of HTTP/2 is asked whether it is still there, and how long it may take to say so: a watch may be
/// silent for long.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);

/// How long a connection of HTTP/2 may be without a request. Clients of Kubernetes let go of theirs after as much.
const IDLE: Duration = Duration::from_secs(90);

/// How much of a body, or of an answer, waits in memory on a connection of HTTP/1.1.
const BUFFER: usize = 128 << 10;

/// How much of an answer waits in memory for a client that reads slowly, on each stream of HTTP/2.
const SEND_BUFFER: usize = 64 << 10;

/// How much a client may send on a stream of HTTP/2, and on all of a connection, before the server has read it.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = 512 << 10;

/// What a listener's connections are held to.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// How many at a time.
    pub(super) connections: usize,
    /// How many requests at a time on one connection of HTTP/2.
    pub(super) streams: u32,
    /// How many bytes the head of a request may have before it is no longer read. What is just too long is read, and
    /// answered by the router.
    pub(super) head: usize,
    /// Tells when they end.
    pub(super) draining: Draining,
}

/// Serves a listener until the server is about to end, then lets requests under way finish. Idle connections end at once.
///
/// A connection is opened by `open`, beside all others: one that cannot be is its client's affair. No more than so many are
/// there at a time; further ones wait with the operating system.
pub(super) async fn serve<L, S, O>(
    mut listener: L,
    router: Router,
    terms: Terms,
    open: impl Fn(L::Io, L::Addr) -> O,
) -> io::Result<()>
where
    L: Listener,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    O: Future<Output = io::Result<Opened<S>>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(terms.connections.clamp(1, Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = terms.draining.begun() => break,
            // Connections that have ended are forgotten here.
            Some(_) = connections.join_next() => {}
            next = accept(&places, &mut listener) => {
                let (place, stream, address) = next?;
                let (opened, router, terms) = (open(stream, address), router.clone(), terms.clone());
                connections.spawn(async move {
                    let opened = tokio::select! {
                        opened = opened => opened,
                        () = terms.draining.begun() => return,
                    };
                    match opened {
                        Ok(opened) => connection(opened, router, &terms).await,
                        Err(error) => tracing::debug!(cause = %error, "a connection was not opened"),
                    }
                    drop(place);
                });
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

async fn connection<S>(opened: Opened<S>, router: Router, terms: &Terms)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Opened { stream, peer, protocol, seat } = opened;
    let requests = Requests::default();
    let (under_way, stream) = (requests.clone(), TokioIo::new(stream));
    let service = service_fn(move |request| answer(router.clone(), request, peer.clone(), under_way.begin()));
    match protocol {
        Protocol::Http1 => {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(terms.head.max(BUFFER));
            let served = builder.serve_connection(stream, service);
            drive(pin!(served), http1::Connection::graceful_shutdown, &requests, &terms.draining, None).await;
        }
        Protocol::Http2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .keep_alive_interval(PING)
                .keep_alive_timeout(PONG)
                .max_concurrent_streams(terms.streams)
                .max_header_list_size(u32::try_from(terms.head).unwrap_or(u32::MAX))
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_send_buf_size(SEND_BUFFER);
            let served = builder.serve_connection(stream, service);
            let idle = Some(IDLE);
            drive(pin!(served), http2::Connection::graceful_shutdown, &requests, &terms.draining, idle).await;
        }
    }
    drop(seat);
}

async fn answer(
    router: Router,
    request: hyper::Request<Incoming>,
    peer: Peer,
    under_way: UnderWay,
) -> Result<Response<Held<UnderWay>>, Infallible> {
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(ConnectInfo(peer));
    let answer = router.oneshot(request).await?;
    Ok(answer.map(|body| Held::new(body, under_way)))
}

/// Works on a connection until it ends: of itself, because nothing was asked on it for `idle`, or with the server.
async fn drive<C>(
    mut served: Pin<&mut C>,
    end_gracefully: impl Fn(Pin<&mut C>),
    requests: &Requests,
    draining: &Draining,
    idle: Option<Duration>,
) where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::select! {
        // A connection that breaks is its client's affair.
        _ = served.as_mut() => return,
        () = draining.begun() => {}
        () = idled(requests, idle) => {}
    }
    end_gracefully(served.as_mut());
    while tokio::time::timeout(LINGER, served.as_mut()).await.is_err() && requests.under_way() {}
}

/// Waits until no request was under way, begun or ended for as long as `span`, or a little longer.
pub(super) async fn idled(requests: &Requests, span: Option<Duration>) {
    let Some(span) = span else { return std::future::pending().await };
    let mut last = None;
    while requests.under_way() || last != Some(requests.counts()) {
        last = Some(requests.counts());
        tokio::time::sleep(span).await;
    }
}
