//! The fakes keep the laws of the ports, are stricter, and fail on demand.

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::access::AccountStore;
use rezus_core::declared::numbering::VersionMark;
use rezus_core::declared::store::{CommitError, HistoryStore, IndexStore, StateStore, StoreError};
use rezus_core::runs::store::RunStore;
use rezus_testkit::contract::account_store::AccountStoreFixture;
use rezus_testkit::contract::history_store::HistoryStoreFixture;
use rezus_testkit::contract::index_commit::IndexCommitFixture;
use rezus_testkit::contract::index_store::IndexStoreFixture;
use rezus_testkit::contract::run_store::RunStoreFixture;
use rezus_testkit::contract::state_store::StateStoreFixture;
use rezus_testkit::contract::version_mark::VersionMarkFixture;
use rezus_testkit::fake::{FakeAccountStore, FakeRunStore, FakeStateStore, Fault};
use rezus_testkit::sample::{
    self, append_to, commit_version, decide, indexed_body, new_version, tenant, version,
};

struct Fake(FakeStateStore);

#[async_trait]
impl StateStoreFixture for Fake {
    async fn open(&self) -> Arc<dyn StateStore> {
        Arc::new(self.0.handle())
    }
}

#[async_trait]
impl IndexStoreFixture for Fake {
    async fn open(&self) -> Arc<dyn IndexStore> {
        Arc::new(self.0.handle())
    }
}

#[async_trait]
impl IndexCommitFixture for Fake {
    async fn open(&self) -> (Arc<dyn StateStore>, Arc<dyn IndexStore>) {
        (Arc::new(self.0.handle()), Arc::new(self.0.handle()))
    }
}

#[async_trait]
impl HistoryStoreFixture for Fake {
    async fn open(&self) -> (Arc<dyn StateStore>, Arc<dyn HistoryStore>) {
        (Arc::new(self.0.handle()), Arc::new(self.0.handle()))
    }
}

#[async_trait]
impl VersionMarkFixture for Fake {
    async fn open(&self) -> Arc<dyn VersionMark> {
        Arc::new(self.0.handle())
    }
}

struct Accounts(FakeAccountStore);

#[async_trait]
impl AccountStoreFixture for Accounts {
    async fn open(&self) -> Arc<dyn AccountStore> {
        Arc::new(self.0.clone())
    }
}

struct Runs(FakeRunStore);

#[async_trait]
impl RunStoreFixture for Runs {
    async fn open(&self) -> Arc<dyn RunStore> {
        Arc::new(self.0.clone())
    }
}

rezus_testkit::run_store_contract!(Runs(FakeRunStore::new()));
rezus_testkit::account_store_contract!(Accounts(FakeAccountStore::new()));
rezus_testkit::history_store_contract!(Fake(FakeStateStore::new()));
rezus_testkit::state_store_contract!(Fake(FakeStateStore::new()));
rezus_testkit::version_mark_contract!(Fake(FakeStateStore::new()));
rezus_testkit::index_store_contract!(Fake(FakeStateStore::new()));
rezus_testkit::index_commit_contract!(Fake(FakeStateStore::new()));

mod lagging {
    use super::*;

    rezus_testkit::state_store_contract!(Fake(FakeStateStore::with_lagging_index()));
    rezus_testkit::index_store_contract!(Fake(FakeStateStore::with_lagging_index()));
}

#[tokio::test]
async fn a_lagging_index_stays_behind_until_it_is_replaced() {
    let store = FakeStateStore::with_lagging_index();
    let prod = tenant("prod");
    let (body, rows) = indexed_body(3, 1);
    commit_version(&store, &prod, |number| new_version(number, body.clone(), rows.clone())).await;
    assert_eq!(store.head(&prod).await.unwrap(), None);
    let head = rezus_core::declared::index::IndexHead {
        version: version(1),
        sha256: rezus_core::declared::Fingerprint::of(&body).sha256,
        format: 1,
        rows: 3,
        secret_rules: [1; 32],
    };
    store.replace(&prod, head, rows.clone().into()).await.unwrap();
    commit_version(&store, &prod, |number| new_version(number, body, rows)).await;
    assert_eq!(store.head(&prod).await.unwrap(), Some(head));
    sample::remove(&store, &prod).await;
    assert_eq!(store.head(&prod).await.unwrap(), None);
}

#[tokio::test]
async fn a_fault_before_a_write_undoes_it_and_one_after_it_does_not() {
    let store = FakeStateStore::new();
    let prod = tenant("prod");
    for (fault, versions) in [(Fault::BeforeWrite, 0), (Fault::AfterWrite, 1)] {
        let mut change = decide(&store, &prod).await;
        append_to(&mut change, |number| new_version(number, "state".into(), Vec::new()));
        store.handle().fail_next(fault);
        let error = store.commit(change).await.unwrap_err();
        assert!(matches!(error, CommitError::Store(StoreError::Unavailable { .. })), "{error:?}");
        assert_eq!(store.versions(&prod).await.unwrap().len(), versions, "{fault:?}");
    }
    store.fail_next(Fault::Read);
    assert!(matches!(store.versions(&prod).await, Err(StoreError::Unavailable { .. })));
    assert_eq!(store.versions(&prod).await.unwrap().len(), 1);
    assert_eq!(sample::body_of(&store, &prod, version(1)).await.unwrap(), "state");
    assert_eq!(store.bytes_read(), 5);
}

#[tokio::test]
async fn misuse_of_commit_is_told() {
    type Spoil = fn(&mut rezus_core::declared::store::Change);
    let cases: [(&str, Spoil); 7] = [
        ("does not follow the last", |change| {
            let new = change.append.as_mut().unwrap();
            new.meta.version = version(7);
            change.record.as_mut().unwrap().head = Some(new.meta.clone());
        }),
        ("head is not the version", |change| {
            change.append.as_mut().unwrap().meta.forced = true;
        }),
        ("size_bytes", |change| {
            change.append.as_mut().unwrap().body = "longer than it says".into();
        }),
        ("another tenant's", |change| change.tenant = tenant("other")),
        ("highest_serial", |change| {
            change.record.as_mut().unwrap().highest_serial = None;
        }),
        ("the lock that goes", |change| {
            change.record.as_mut().unwrap().lock = None;
        }),
        ("the head moves", |change| change.append = None),
    ];
    for (message, spoil) in cases {
        let store = FakeStateStore::new();
        let prod = tenant("prod");
        sample::lock(&store, &prod, "the-id").await.unwrap();
        let mut change = decide(&store, &prod).await;
        append_to(&mut change, |number| new_version(number, "state".into(), Vec::new()));
        spoil(&mut change);
        let handle = store.handle();
        let panic = tokio::spawn(async move { handle.commit(change).await }).await.unwrap_err().into_panic();
        let text = panic
            .downcast_ref::<String>()
            .map_or_else(|| *panic.downcast_ref::<&str>().unwrap(), String::as_str);
        assert!(text.contains("misuse") && text.contains(message), "{text}");
        assert_eq!(store.versions(&prod).await.unwrap(), [], "{message}");
    }
}

/// A law that no macro lists is never run.
#[test]
fn every_law_is_listed_in_its_macro() {
    let contract = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract");
    let sources = ["state_store", "index_store", "index_commit", "history_store", "run_store"];
    for name in sources {
        let main = std::fs::read_to_string(contract.join(format!("{name}.rs"))).unwrap();
        let parts = std::fs::read_dir(contract.join(name)).into_iter().flatten();
        let mut all = main.clone();
        for part in parts {
            all += &std::fs::read_to_string(part.unwrap().path()).unwrap();
        }
        let laws = all.split("\npub async fn ").skip(1).map(|rest| rest.split('(').next().unwrap());
        for law in laws {
            assert!(main.contains(&format!("            {law},\n")), "{name}_contract! does not list {law}");
        }
    }
}
