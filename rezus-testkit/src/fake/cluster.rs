//! Clusters that scrapers are tried on: servers on loopback over real TLS, whose content and faults a test sets.

mod authority;
mod fault;
mod kubernetes;
pub mod talos;

pub use authority::{Authority, Issued, Validity};
pub use fault::PeerFault;
pub use kubernetes::{FakeKubernetes, node, pod};
