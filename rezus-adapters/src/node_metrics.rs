//! Reads `node_exporter` on the machines of a cluster: one GET of `http://HOST:9100/metrics` each.

mod page;
mod session;

use std::sync::Arc;

use hyper::Uri;
use rezus_core::base::Clock;
use rezus_core::observed::{ClusterScraper, Failure, Session, Source, Target};

use session::{Address, MetricsSession};

/// Reads `node_exporter`.
#[derive(Clone, Debug)]
pub struct NodeMetricsScraper {
    clock: Arc<dyn Clock>,
}

impl NodeMetricsScraper {
    /// Makes one that dates what it reads by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl ClusterScraper for NodeMetricsScraper {
    fn source(&self) -> Source {
        Source::NodeMetrics
    }

    /// Endpoints are `http://` URLs; a target without any has nothing to tell. No credential is used, nor shown to anybody.
    fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure> {
        let addresses = target.endpoints.iter().map(|url| address(url)).collect::<Result<_, _>>()?;
        Ok(Box::new(MetricsSession::new(Arc::clone(&self.clock), addresses, target.destinations)))
    }
}

fn address(url: &str) -> Result<Address, Failure> {
    let refused = |reason: &str| Failure::CredentialRejected {
        field: "endpoints".to_owned(),
        reason: reason.to_owned(),
    };
    let uri: Uri = url.parse().map_err(|_| refused("no URL"))?;
    if uri.scheme_str() != Some("http") {
        return Err(refused("not http"));
    }
    let authority = uri.authority().ok_or_else(|| refused("no host"))?;
    if authority.as_str().contains('@') {
        return Err(refused("a user's name"));
    }
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let path = uri.path_and_query().map_or("/metrics", |path| path.as_str());
    Ok(Address {
        host: host.to_owned(),
        port: authority.port_u16().unwrap_or(80),
        authority: authority.as_str().to_owned(),
        path: path.to_owned(),
    })
}
