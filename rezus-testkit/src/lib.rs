//! What tests of rezus are made of: fakes of its ports, contract suites that every adapter passes, generators of whole
//! states with what a correct reader finds in them, fixtures and recordings of real programs.
//!
//! | module | holds |
//! | --- | --- |
//! | [`clock`] | a clock that tests set |
//! | [`fake`] | stores in memory, stricter than real ones, that fail on demand |
//! | [`contract`] | the laws of the ports, and macros that make a test of each |
//! | [`sample`] | small valid values: records, versions, rows, bodies |
//! | [`strategy`] | proptest strategies of states, and large states for benchmarks |
//! | [`fixture`] | the synthetic states under `fixtures/` and what a correct server makes of them |
//! | [`recording`] | the requests of real OpenTofu and Terraform under `recordings/` |
//! | [`canary`] | finds a secret in any bytes, however it is encoded |

pub mod canary;
pub mod clock;
pub mod contract;
pub mod fake;
pub mod fixture;
pub mod recording;
pub mod sample;
pub mod strategy;
