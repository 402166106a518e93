//! Requests to one API server, on connections that are ours from the name to the last byte.
//!
//! kube's own client would dial whatever a name resolves to, wait for a handshake for half a minute, retry by itself and read
//! bodies without end. Here every wait has its limit, and a refusal is typed where it happens.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, DATE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, Version};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::Body;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::observed::{Failure, Phase};
use tokio::time::{Instant, timeout_at};

use super::body::{Bounded, Limit};
use super::endpoint::{CONNECT, Endpoint};
use super::identity::Identity;
use super::task::Task;
use super::trouble::{self, Asked, Trouble, unreachable};

/// How long an answer may take to begin.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

/// What one connection keeps of what it reads, at most; it begins with 8 KiB.
const BUFFER: usize = 64 * 1024;

/// One API server.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) endpoint: Endpoint,
    pub(super) identity: Identity,
    clock: Arc<dyn Clock>,
    /// `Date` of the last answer, and our own time when it came.
    date: Mutex<Option<(Timestamp, Timestamp)>>,
}

/// A connection. Its task ends with it and with the bodies that still come by it.
pub(super) struct Link {
    sender: SendRequest<Body>,
    task: Arc<Task>,
}

/// How a response is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) limit: Limit,
    pub(super) json: bool,
    /// A status other than success whose body is of use.
    pub(super) also: Option<http::StatusCode>,
}

impl Wire {
    pub(super) fn new(endpoint: Endpoint, identity: Identity, clock: Arc<dyn Clock>) -> Self {
        Self { endpoint, identity, clock, date: Mutex::new(None) }
    }

    /// Returns the server's own time when it last answered.
    pub(super) fn date(&self) -> Option<Timestamp> {
        self.date.lock().unwrap_or_else(PoisonError::into_inner).map(|(date, _)| date)
    }

    /// Returns how far the server's clock was ahead of ours when it last answered, in milliseconds.
    pub(super) fn skew_ms(&self) -> Option<i64> {
        let date = *self.date.lock().unwrap_or_else(PoisonError::into_inner);
        date.map(|(date, came)| date.as_millis().saturating_sub(came.as_millis()))
    }

    /// Returns the server's present time, as far as it is known: ours may be wrong.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.skew_ms().map_or(now, |ahead| Timestamp::from_millis(now.as_millis().saturating_add(ahead)))
    }

    /// Connects; each phase takes no longer than it may, and all of them not beyond `until`.
    pub(super) async fn connect(&self, until: Instant) -> Result<Link, Trouble> {
        let stream = self.endpoint.dial(until.min(Instant::now() + CONNECT)).await?;
        let hello = self.identity.connector.connect(self.endpoint.name.clone(), stream);
        let stream = match timeout_at(until.min(Instant::now() + CONNECT), hello).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(trouble::of_error(&error, Phase::Tls)),
            Err(_) => return Err(unreachable(Phase::Tls, "it accepted, and then said nothing").into()),
        };
        let hand = http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = hand.map_err(|error| trouble::of_error(&error, Phase::Http))?;
        // Whoever waits for an answer is told what became of the connection.
        let task = Task::spawn(async move { drop(connection.await) });
        Ok(Link { sender, task: Arc::new(task) })
    }

    /// Asks on a connection, and waits until the answer begins.
    pub(super) async fn exchange(
        &self,
        link: &mut Link,
        mut request: Request<Body>,
        asked: &Asked,
        reading: Reading,
        until: Instant,
    ) -> Result<Response<Bounded>, Trouble> {
        self.address(&mut request)?;
        let answer = async {
            link.sender.ready().await?;
            link.sender.send_request(request).await
        };
        let response = match timeout_at(until.min(Instant::now() + ANSWER), answer).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(trouble::of_error(&error, Phase::Http)),
            Err(_) => {
                return Err(unreachable(Phase::Http, "it took the request, and then said nothing").into());
            }
        };
        self.note_date(&response);
        let expected = reading.also == Some(response.status());
        if let Some(trouble) = trouble::of_status(response.status(), response.headers(), asked)
            && !expected
        {
            return Err(trouble);
        }
        let Reading { limit, json, .. } = reading;
        let connection = Arc::clone(&link.task);
        Ok(response.map(|body| Bounded::new(body, limit, json, connection)))
    }

    /// Makes a request one to this server: of a method that reads, in the form of HTTP/1.1.
    fn address(&self, request: &mut Request<Body>) -> Result<(), Trouble> {
        if request.method() != Method::GET {
            return Err(Failure::Internal { detail: "only reads are sent".to_owned() }.into());
        }
        let host = HeaderValue::from_str(&self.endpoint.host())
            .map_err(|_| Failure::Internal { detail: "the host is no header".to_owned() })?;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(USER_AGENT, HeaderValue::from_static("rezus"));
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("application/json"));
        *request.version_mut() = Version::HTTP_11;
        Ok(())
    }

    fn note_date(&self, response: &Response<hyper::body::Incoming>) {
        let told = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = told.and_then(|date| DateTimeParser::new().parse_timestamp(date).ok()) {
            let at = Timestamp::from_millis(date.as_millisecond());
            *self.date.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, self.clock.now()));
        }
    }
}
