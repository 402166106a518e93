//! The `node_exporter`s of one cluster while they are read, turn after turn.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{HOST, RETRY_AFTER};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rezus_core::base::{Clock, Timestamp};
use rezus_core::observed::facts::{Facts, MachineMetrics, NodeMetrics};
use rezus_core::observed::{Destinations, Exposition, ExpositionLimits, Failure, Phase, Reading, Session};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::page::Page;
use crate::reach::{connect, unreachable};
use crate::text::brief;

/// How long one machine may take.
const PAGE: Duration = Duration::from_secs(10);
/// How many machines are asked at a time.
const AT_A_TIME: usize = 8;

/// Where one machine's metrics are.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
    /// The host and the port as the URL has them.
    pub(super) authority: String,
    pub(super) path: String,
}

/// Reads the metrics of one cluster's machines.
#[derive(Debug)]
pub(super) struct MetricsSession {
    clock: Arc<dyn Clock>,
    /// Those that the last turn had no time for are first.
    addresses: Vec<Address>,
    destinations: Destinations,
}

impl MetricsSession {
    pub(super) fn new(clock: Arc<dyn Clock>, addresses: Vec<Address>, destinations: Destinations) -> Self {
        Self { clock, addresses, destinations }
    }

    async fn turn(&mut self, deadline: Instant) -> (Option<Facts>, Vec<(String, Failure)>) {
        let total = self.addresses.len();
        let mut waiting = self.addresses.iter();
        let mut asked = FuturesUnordered::new();
        let (mut machines, mut failures) = (Vec::new(), Vec::new());
        let mut started = 0;
        loop {
            while asked.len() < AT_A_TIME && Instant::now() < deadline {
                let Some(address) = waiting.next() else { break };
                started += 1;
                asked.push(self.ask(address, deadline));
            }
            match asked.next().await {
                Some((_, Ok(machine))) => machines.push(machine),
                Some((host, Err(failure))) => failures.push((host, failure)),
                None => break,
            }
        }
        drop(asked);
        self.addresses.rotate_left(if started < total { started } else { 0 });
        machines.sort_by(|a: &MachineMetrics, b| a.asked.cmp(&b.asked));
        failures.sort_by(|(a, _), (b, _)| a.cmp(b));
        if started < total {
            failures.push(("machines".to_owned(), Failure::Partial { done: started, total }));
        }
        if machines.is_empty() && total > 0 {
            let first = failures.into_iter().next();
            return (None, first.map(|(_, failure)| ("all".to_owned(), failure)).into_iter().collect());
        }
        (Some(Facts::NodeMetrics(NodeMetrics { machines })), failures)
    }

    async fn ask(&self, address: &Address, deadline: Instant) -> (String, Result<MachineMetrics, Failure>) {
        let limit = PAGE.min(deadline.saturating_duration_since(Instant::now()));
        let read = timeout(limit, get(address, &self.destinations)).await;
        let page = read.unwrap_or(Err(Failure::Timeout { after: limit }));
        let at: Timestamp = self.clock.now();
        (address.host.clone(), page.map(|page| page.tell(&address.host, at)))
    }
}

/// Reads one page, no more of it than is allowed, and keeps nothing of it but what is told.
async fn get(address: &Address, destinations: &Destinations) -> Result<Page, Failure> {
    let broken = |error: hyper::Error| unreachable(Phase::Http, &error.to_string());
    let stream = connect(&address.host, address.port, destinations).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // It ends with this function, whatever the other side does.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    // A compressed page would have to be counted as it is after decompression: none is asked for.
    let request = Request::get(&address.path)
        .header(HOST, &address.authority)
        .header("accept", "text/plain;version=0.0.4")
        .body(Empty::<Bytes>::new())
        .map_err(|_| Failure::Internal { detail: "a URL makes no request".to_owned() })?;
    let response = sender.send_request(request).await.map_err(broken)?;
    refusal(&response)?;
    let mut body = response.into_body();
    let mut text = Exposition::new(ExpositionLimits::DEFAULT);
    let mut page = Page::default();
    let mut start = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(broken)?.into_data() else { continue };
        start.extend_from_slice(&piece[..piece.len().min(64_usize.saturating_sub(start.len()))]);
        let pushed = text.push(&piece, |sample| page.take(&sample));
        pushed.map_err(|_| Failure::TooLarge { limit: ExpositionLimits::DEFAULT.body })?;
    }
    if text.finish().truncated || page.known == 0 {
        return Err(Failure::Malformed { start: brief(&String::from_utf8_lossy(&start)) });
    }
    Ok(page)
}

fn refusal<B>(response: &Response<B>) -> Result<(), Failure> {
    let status = response.status();
    Err(match status {
        StatusCode::OK => return Ok(()),
        StatusCode::UNAUTHORIZED => Failure::Unauthorized,
        StatusCode::FORBIDDEN => {
            Failure::Forbidden { verb: "get".to_owned(), resource: "metrics".to_owned() }
        }
        StatusCode::NOT_FOUND => Failure::NotInstalled { what: "node_exporter".to_owned() },
        StatusCode::TOO_MANY_REQUESTS => {
            let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
            let after = after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
            Failure::RateLimited { retry_after: after }
        }
        status if status.is_server_error() => unreachable(Phase::Http, status.as_str()),
        status => Failure::Malformed { start: format!("status {}", status.as_u16()) },
    })
}

#[async_trait]
impl Session for MetricsSession {
    async fn read(&mut self, budget: Duration) -> Reading {
        let started = self.clock.now();
        let (facts, failures) = self.turn(Instant::now() + budget).await;
        Reading { started, finished: self.clock.now(), facts, failures }
    }

    /// Machines are polled.
    async fn changed(&mut self) {
        pending::<()>().await;
    }
}
