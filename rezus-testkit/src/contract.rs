//! The laws of the ports. Every adapter passes the same ones, and so do the fakes; each law is a test of its own.
//!
//! A law is an async function over a fixture, and a macro makes a `#[tokio::test]` of each in a module of its own. The
//! expression in the macro is evaluated once for each law and gives a fixture with empty storage; it may `.await`.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use rezus_core::declared::store::StateStore;
//! use rezus_testkit::contract::state_store::StateStoreFixture;
//! use rezus_testkit::fake::FakeStateStore;
//!
//! struct Fixture(FakeStateStore);
//!
//! #[async_trait::async_trait]
//! impl StateStoreFixture for Fixture {
//!     async fn open(&self) -> Arc<dyn StateStore> {
//!         Arc::new(self.0.handle())
//!     }
//! }
//!
//! rezus_testkit::state_store_contract!(Fixture(FakeStateStore::new()));
//! # fn main() {}
//! ```
//!
//! | macro | fixture | laws |
//! | --- | --- | --- |
//! | [`state_store_contract!`](crate::state_store_contract) | [`StateStoreFixture`](state_store::StateStoreFixture) | [`state_store`] |
//! | [`index_store_contract!`](crate::index_store_contract) | [`IndexStoreFixture`](index_store::IndexStoreFixture) | [`index_store`] |
//! | [`history_store_contract!`](crate::history_store_contract) | [`HistoryStoreFixture`](history_store::HistoryStoreFixture) | [`history_store`] |
//! | [`version_mark_contract!`](crate::version_mark_contract) | [`VersionMarkFixture`](version_mark::VersionMarkFixture) | [`version_mark`] |
//! | [`account_store_contract!`](crate::account_store_contract) | [`AccountStoreFixture`](account_store::AccountStoreFixture) | [`account_store`] |
//! | [`run_store_contract!`](crate::run_store_contract) | [`RunStoreFixture`](run_store::RunStoreFixture) | [`run_store`] |
//! | [`cluster_scraper_contract!`](crate::cluster_scraper_contract) | [`ScraperFixture`](cluster_scraper::ScraperFixture) | [`cluster_scraper`] |
//! | [`executor_contract!`](crate::executor_contract) | [`ExecutorFixture`](executor::ExecutorFixture) | [`executor`] |
//! | [`time_series_contract!`](crate::time_series_contract) | [`TimeSeriesFixture`](time_series::TimeSeriesFixture) | [`time_series`] |
//! | [`durable_time_series_contract!`](crate::durable_time_series_contract) | [`TimeSeriesFixture`](time_series::TimeSeriesFixture) | [`time_series`]: of one that is durable |
//! | [`index_commit_contract!`](crate::index_commit_contract) | [`IndexCommitFixture`](index_commit::IndexCommitFixture) | [`index_commit`]: of a store that is both |

pub mod account_store;
pub mod cluster_scraper;
pub mod executor;
pub mod history_store;
pub mod index_commit;
pub mod index_store;
mod poll;
pub mod run_store;
pub mod state_store;
pub mod time_series;
pub mod version_mark;

/// Makes a test of each law named.
#[doc(hidden)]
#[macro_export]
macro_rules! __laws {
    ($module:ident, $laws:path, $fixture:expr, $($law:ident),+ $(,)?) => {
        mod $module {
            #[expect(unused_imports, reason = "the fixture's expression may need none of them")]
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $law() {
                    use $laws as laws;
                    let fixture = $fixture;
                    laws::$law(&fixture).await;
                }
            )+
        }
    };
}
