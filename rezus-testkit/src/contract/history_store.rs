//! The laws of `HistoryStore`, of a store that is a `StateStore` too.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::declared::Fingerprint;
use rezus_core::declared::projection::{History, ResourceKind};
use rezus_core::declared::projector::Lifetime;
use rezus_core::declared::store::{HistoryEntry, HistoryHead, HistoryStore, StateStore};

use crate::sample::{commit_body, noon_plus, remove, tenant, version};

/// Storage of its own for one law.
#[async_trait]
pub trait HistoryStoreFixture: Send + Sync {
    /// Opens both ports on the same storage.
    async fn open(&self) -> (Arc<dyn StateStore>, Arc<dyn HistoryStore>);
}

/// Makes a test of each law of `HistoryStore`, in a module `history_store_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! history_store_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            history_store_laws,
            $crate::contract::history_store,
            $fixture,
            a_removed_tenant_loses_its_history,
            a_table_is_swapped_at_once_and_kept,
            tables_of_tenants_are_apart,
        );
    };
}

fn head(number: u64) -> HistoryHead {
    HistoryHead { version: version(number), sha256: Fingerprint::of(&number.to_le_bytes()).sha256 }
}

/// Entries that can be told from others by their seed, not sorted.
fn entries(seed: u64) -> Vec<HistoryEntry> {
    let entry = |kind, name: &str| HistoryEntry {
        kind,
        name: name.to_owned(),
        lifetime: Lifetime {
            history: History {
                uid: format!("uid of {name} {seed}"),
                first_version: version(seed),
                changed_version: version(seed + 1),
                digest: Fingerprint::of(name.as_bytes()).sha256,
            },
            created_at: noon_plus(-1),
            changed_at: noon_plus(i64::try_from(seed).unwrap()),
        },
    };
    vec![
        entry(ResourceKind::Machine, "same"),
        entry(ResourceKind::NodeGroup, "same"),
        entry(ResourceKind::Machine, "a"),
        entry(ResourceKind::Cluster, ""),
    ]
}

fn sorted(mut entries: Vec<HistoryEntry>) -> Vec<HistoryEntry> {
    entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    entries
}

/// Every handle sees the last table put, sorted, and nothing of the ones before.
pub async fn a_table_is_swapped_at_once_and_kept(fixture: &dyn HistoryStoreFixture) {
    let (_, store) = fixture.open().await;
    let prod = tenant("prod");
    assert_eq!(store.history(&prod).await.unwrap(), None);
    for (number, table) in [(1, entries(1)), (2, entries(5)), (3, Vec::new()), (4, entries(7))] {
        store.put_history(&prod, head(number), table.clone()).await.unwrap();
        for handle in [&store, &fixture.open().await.1] {
            assert_eq!(handle.history(&prod).await.unwrap(), Some((head(number), sorted(table.clone()))));
        }
    }
}

/// What is put for one tenant is nothing to another.
pub async fn tables_of_tenants_are_apart(fixture: &dyn HistoryStoreFixture) {
    let (_, store) = fixture.open().await;
    let (prod, test) = (tenant("prod"), tenant("test"));
    store.put_history(&prod, head(1), entries(1)).await.unwrap();
    store.put_history(&test, head(2), entries(2)).await.unwrap();
    store.put_history(&test, head(3), Vec::new()).await.unwrap();
    assert_eq!(store.history(&prod).await.unwrap(), Some((head(1), sorted(entries(1)))));
}

/// Who comes under a removed tenant's name is nobody of the former one.
pub async fn a_removed_tenant_loses_its_history(fixture: &dyn HistoryStoreFixture) {
    let (states, store) = fixture.open().await;
    let (prod, test) = (tenant("prod"), tenant("test"));
    for name in [&prod, &test] {
        commit_body(states.as_ref(), name, "written").await;
        store.put_history(name, head(1), entries(1)).await.unwrap();
    }
    remove(states.as_ref(), &prod).await;
    assert_eq!(store.history(&prod).await.unwrap(), None);
    assert_eq!(store.history(&test).await.unwrap(), Some((head(1), sorted(entries(1)))));
}
