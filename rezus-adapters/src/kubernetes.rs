//! Clusters, by their Kubernetes API.
//!
//! Nodes and pods are watched; version, readiness, identity, leases and `metrics.k8s.io` are asked for in each turn. The client
//! is made of what the [`Target`] holds and of nothing else: no file is read, no program is run, no variable of the
//! environment has a say, and there is no request that is not a `GET`.
//!
//! kube reports what it cannot read to the log, whole: the log's filter must leave out its target `kube_client`.

use std::sync::Arc;

use rezus_core::base::Clock;
use rezus_core::observed::{ClusterScraper, Failure, Session, Source, Target};
use rustls::crypto::CryptoProvider;

use self::endpoint::Endpoint;
use self::identity::Identity;
use self::line::Turns;
use self::session::KubernetesSession;
use self::wire::Wire;

mod body;
mod endpoint;
mod identity;
mod line;
mod nodes;
mod objects;
mod pods;
mod poll;
mod session;
mod summary;
mod task;
mod text;
mod trouble;
mod watch;
mod wire;

/// Reads clusters by their Kubernetes API.
#[derive(Debug)]
pub struct KubernetesScraper {
    clock: Arc<dyn Clock>,
    provider: Arc<CryptoProvider>,
    turns: Turns,
}

impl KubernetesScraper {
    /// Makes one; its sessions take turns where they read much.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Self { clock, provider, turns: Turns::default() }
    }
}

impl ClusterScraper for KubernetesScraper {
    fn source(&self) -> Source {
        Source::Kubernetes
    }

    fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure> {
        let Target { endpoints, credential, destinations, .. } = target;
        let credential = credential.ok_or(Failure::CredentialMissing)?;
        let refused = |reason: &str| Failure::CredentialRejected {
            field: "server".to_owned(),
            reason: reason.to_owned(),
        };
        let [url] = endpoints.as_slice() else {
            return Err(refused("there is not one"));
        };
        let endpoint = Endpoint::parse(url, destinations)?;
        let identity = Identity::new(&credential, &self.provider)?;
        identity.check(self.clock.now())?;
        let wire = Arc::new(Wire::new(endpoint, identity, Arc::clone(&self.clock)));
        Ok(Box::new(KubernetesSession::new(wire, Arc::clone(&self.clock), self.turns.clone())))
    }
}
