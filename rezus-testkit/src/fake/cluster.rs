//! Clusters that scrapers are tried on: servers on loopback over real TLS, whose content and faults a test sets.

mod authority;
pub mod talos;

pub use authority::{Authority, Issued, Validity};
