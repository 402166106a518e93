//! Reads clusters through the Talos API of their machines: gRPC over mutual TLS, on port 50000 of each.
//!
//! A turn reads the members through one endpoint, and then asks each machine for itself, by the `node` header that a control
//! plane forwards calls by. Control planes are asked in every turn, workers every five minutes; a machine's clock is compared
//! every ten minutes. A machine that does not answer costs nobody else anything, and a turn that runs out of time goes on
//! with the rest in the next.
//!
//! What is shown to machines is a certificate of `os:reader` for a day that the cluster makes for the tenant's administrator
//! (`GenerateClientConfiguration`), or the one given where it makes none.

mod cluster;
mod dial;
mod endpoint;
mod etcd;
mod fault;
mod identity;
mod machine;
mod peer;
mod proto;
mod reader;
mod record;
mod session;
mod verifier;

use std::sync::Arc;

use rezus_core::base::Clock;
use rezus_core::observed::{ClusterScraper, Failure, Session, Source, Target};

use endpoint::Endpoint;
use session::TalosSession;

/// Reads the Talos API.
#[derive(Clone, Debug)]
pub struct TalosScraper {
    clock: Arc<dyn Clock>,
}

impl TalosScraper {
    /// Makes one that dates what it reads, and judges certificates of clients, by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock }
    }
}

impl ClusterScraper for TalosScraper {
    fn source(&self) -> Source {
        Source::Talos
    }

    /// An endpoint that may not be dialled is refused when it is dialled, beside others that may.
    fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure> {
        let credential = target.credential.ok_or(Failure::CredentialMissing)?;
        let mut endpoints = Vec::new();
        for endpoint in &target.endpoints {
            let endpoint = Endpoint::parse(endpoint)?;
            if !endpoints.contains(&endpoint) {
                endpoints.push(endpoint);
            }
        }
        if endpoints.is_empty() {
            let (field, reason) = ("endpoints".to_owned(), "there is none".to_owned());
            return Err(Failure::CredentialRejected { field, reason });
        }
        let session = TalosSession::new(Arc::clone(&self.clock), endpoints, target.destinations, credential)?;
        Ok(Box::new(session))
    }
}
