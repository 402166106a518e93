//! Connections to endpoints: made when the first call needs them, kept while the identity is the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rezus_core::observed::{Destinations, Failure, Phase};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::transport::{Channel, Uri};

use super::endpoint::Endpoint;
use super::fault::{NotConnected, of_handshake};
use crate::reach::{connect, unreachable};

/// How long a handshake may take: no other limit ends one with a server that keeps silent.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Holds the channels that one identity has.
pub(super) struct Dialer {
    config: Arc<ClientConfig>,
    destinations: Arc<Destinations>,
    channels: Mutex<BTreeMap<Endpoint, Channel>>,
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dialer")
    }
}

impl Dialer {
    pub(super) fn new(config: Arc<ClientConfig>, destinations: Arc<Destinations>) -> Self {
        Self { config, destinations, channels: Mutex::default() }
    }

    /// Returns the channel to an endpoint. Nothing is dialled before the first call.
    pub(super) fn channel(&self, endpoint: &Endpoint) -> Result<Channel, Failure> {
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(endpoint) {
            return Ok(channel.clone());
        }
        let internal = |_| Failure::Internal { detail: "an endpoint is no authority of a URL".to_owned() };
        let origin: Uri = format!("https://{}", endpoint.authority()).parse().map_err(internal)?;
        let (config, destinations) = (Arc::clone(&self.config), Arc::clone(&self.destinations));
        let to = endpoint.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let (config, destinations, to) = (Arc::clone(&config), Arc::clone(&destinations), to.clone());
            async move { shake_hands(&to, config, &destinations).await.map(TokioIo::new).map_err(NotConnected) }
        });
        // No pings of HTTP/2: apid takes more than one in five minutes for an attack, and hangs up.
        let channel = Channel::builder(origin).connect_with_connector_lazy(connector);
        channels.insert(endpoint.clone(), channel.clone());
        Ok(channel)
    }

    /// Closes the connection to an endpoint: one that went silent would be waited for by every call to come.
    pub(super) fn forget(&self, endpoint: &Endpoint) {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).remove(endpoint);
    }

    /// Closes all connections: until the next turn they would only be kept, and there are many clusters.
    pub(super) fn close(&self) {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

async fn shake_hands(
    endpoint: &Endpoint,
    config: Arc<ClientConfig>,
    destinations: &Destinations,
) -> Result<TlsStream<TcpStream>, Failure> {
    let stream = connect(&endpoint.host, endpoint.port, destinations).await?;
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|_| Failure::Internal { detail: "an endpoint is no name of a server".to_owned() })?;
    let stream = timeout(HANDSHAKE, TlsConnector::from(config).connect(name, stream))
        .await
        .map_err(|_| unreachable(Phase::Tls, "accepted, and then no handshake"))?
        .map_err(|error| of_handshake(&error))?;
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(Failure::Malformed { start: "a server without HTTP/2".to_owned() });
    }
    Ok(stream)
}
