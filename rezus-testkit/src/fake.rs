//! Fakes of the ports: the behaviour of a real adapter in memory, stricter, and failing on demand.

mod account_store;
pub mod cluster;
mod executor;
mod performance;
mod rules;
mod run_store;
mod scraper;
mod script;
mod state_store;
mod storage;
mod time_series;

pub use account_store::FakeAccountStore;
pub use executor::{Preparation, ScriptedExecutor};
pub use run_store::FakeRunStore;
pub use scraper::{ScriptedScraper, Turn};
pub use script::{Act, OnInterrupt, Script, streams};
pub use state_store::FakeStateStore;
pub use storage::{Fault, InjectedFault};
pub use time_series::FakeTimeSeries;
