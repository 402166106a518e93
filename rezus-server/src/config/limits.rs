//! `[limits]`: how much of the server one client, or all of them, can have.

use std::time::Duration;

use serde::Deserialize;

use super::{ByteSize, Span};

/// `[limits]`
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// The longest URL, query included; a longer one is answered 414. Default `8KiB`.
    pub url: ByteSize,
    /// The longest head of a request, URL included; a longer one is answered 431. Default `64KiB`.
    pub head: ByteSize,
    /// The longest body of a request that carries no state; a longer one is answered 413. Default `1MiB`.
    pub body: ByteSize,
    /// How long a request may take until its answer begins, unless it carries a state or watches; one that takes longer
    /// is given up and answered 504. Default `60s`.
    pub deadline: Span,
    /// How long an answer may take to be read to its end, unless it is a state or a watch; one that takes longer is cut
    /// off. Default `2m`.
    pub answer: Span,
    /// How many requests of the state backend, and how many of everything else but watches, may be under way at a time;
    /// a further one is answered 429. Default 256.
    pub in_flight: usize,
    /// How many watches may be open at a time; a further one is answered 429. Default 5,000.
    pub watches: usize,
    /// How many connections one address may have open at a time, unless it is this machine's; a further one is closed.
    /// Default 256.
    pub connections_per_address: usize,
    /// How many requests may be under way on one HTTP/2 connection. Default 100.
    pub streams: u32,
    /// How long a TLS handshake may take. Default `10s`.
    pub handshake: Span,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            url: ByteSize(8 << 10),
            head: ByteSize(64 << 10),
            body: ByteSize(1 << 20),
            deadline: Span(Duration::from_mins(1)),
            answer: Span(Duration::from_mins(2)),
            in_flight: 256,
            watches: 5_000,
            connections_per_address: 256,
            streams: 100,
            handshake: Span(Duration::from_secs(10)),
        }
    }
}
