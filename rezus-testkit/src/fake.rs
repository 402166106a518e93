//! Fakes of the ports: the behaviour of a real adapter in memory, stricter, and failing on demand.

mod account_store;
mod rules;
mod state_store;
mod storage;

pub use account_store::FakeAccountStore;
pub use state_store::FakeStateStore;
pub use storage::{Fault, InjectedFault};
