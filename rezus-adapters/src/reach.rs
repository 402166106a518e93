//! Reaches hosts, as far as a target's destinations allow it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rezus_core::observed::{Destinations, Failure, Phase};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::text::brief;

/// How long a name may take to resolve, and a connection to be accepted.
const CONNECT: Duration = Duration::from_secs(5);
/// How many addresses of one name are tried.
const MOST_ADDRESSES: usize = 8;

/// Dials what the host resolves to: the addresses that were looked at, not the name again.
pub(crate) async fn connect(
    host: &str,
    port: u16,
    destinations: &Destinations,
) -> Result<TcpStream, Failure> {
    let mut failure = unreachable(Phase::Dns, "the name has no address");
    for address in resolve(host, port).await? {
        if let Err(kind) = destinations.check(address.ip()) {
            let (field, reason) = ("endpoints".to_owned(), format!("{kind} is not dialled"));
            failure = Failure::CredentialRejected { field, reason };
            continue;
        }
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Requests are small and wait for their answers.
                stream.set_nodelay(true).map_err(|error| unreachable(Phase::Tcp, &error.to_string()))?;
                return Ok(stream);
            }
            Ok(Err(error)) => failure = unreachable(Phase::Tcp, &error.to_string()),
            // The next one would have as long again.
            Err(_) => return Err(unreachable(Phase::Tcp, "nobody accepts the connection in time")),
        }
    }
    Err(failure)
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = timeout(CONNECT, tokio::net::lookup_host((host, port)))
        .await
        .map_err(|_| unreachable(Phase::Dns, "the name does not resolve in time"))?
        .map_err(|error| unreachable(Phase::Dns, &error.to_string()))?;
    Ok(found.take(MOST_ADDRESSES).collect())
}

/// Nobody answers, as the system says in `detail`.
pub(crate) fn unreachable(phase: Phase, detail: &str) -> Failure {
    Failure::Unreachable { phase, detail: brief(detail) }
}
