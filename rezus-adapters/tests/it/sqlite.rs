//! The SQLite file under the laws of its ports, and what only a file can show.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use rezus_adapters::sqlite::SqliteStore;
use rezus_core::access::AccountStore;
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::store::{HistoryStore, IndexStore, StateStore};
use rezus_core::runs::store::RunStore;
use rezus_testkit::contract::account_store::AccountStoreFixture;
use rezus_testkit::contract::history_store::HistoryStoreFixture;
use rezus_testkit::contract::index_commit::IndexCommitFixture;
use rezus_testkit::contract::index_store::IndexStoreFixture;
use rezus_testkit::contract::run_store::RunStoreFixture;
use rezus_testkit::contract::state_store::StateStoreFixture;
use rezus_testkit::contract::version_mark::VersionMarkFixture;
use tempfile::TempDir;

/// A directory of its own for one law. Each handle opens the file anew.
struct Fixture(TempDir);

impl Fixture {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("rezus.db")
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.path()).unwrap()
    }
}

#[async_trait]
impl StateStoreFixture for Fixture {
    async fn open(&self) -> Arc<dyn StateStore> {
        Arc::new(self.store())
    }
}

#[async_trait]
impl IndexStoreFixture for Fixture {
    async fn open(&self) -> Arc<dyn IndexStore> {
        Arc::new(self.store())
    }
}

#[async_trait]
impl IndexCommitFixture for Fixture {
    async fn open(&self) -> (Arc<dyn StateStore>, Arc<dyn IndexStore>) {
        let store = Arc::new(self.store());
        (Arc::<SqliteStore>::clone(&store), store)
    }
}

#[async_trait]
impl HistoryStoreFixture for Fixture {
    async fn open(&self) -> (Arc<dyn StateStore>, Arc<dyn HistoryStore>) {
        let store = Arc::new(self.store());
        (Arc::<SqliteStore>::clone(&store), store)
    }
}

#[async_trait]
impl VersionMarkFixture for Fixture {
    async fn open(&self) -> Arc<dyn VersionMark> {
        Arc::new(self.store())
    }
}

#[async_trait]
impl AccountStoreFixture for Fixture {
    async fn open(&self) -> Arc<dyn AccountStore> {
        Arc::new(self.store())
    }
}

#[async_trait]
impl RunStoreFixture for Fixture {
    async fn open(&self) -> Arc<dyn RunStore> {
        Arc::new(self.store())
    }
}

rezus_testkit::run_store_contract!(Fixture::new());
rezus_testkit::account_store_contract!(Fixture::new());
rezus_testkit::history_store_contract!(Fixture::new());
rezus_testkit::state_store_contract!(Fixture::new());
rezus_testkit::version_mark_contract!(Fixture::new());
rezus_testkit::index_store_contract!(Fixture::new());
rezus_testkit::index_commit_contract!(Fixture::new());
