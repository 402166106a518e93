//! The laws of `HistoryStore`, of a store that is a `StateStore` too.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::declared::Fingerprint;
use rezus_core::declared::projection::{History, Lifetime, ResourceKind};
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
            a_table_that_was_made_of_another_than_is_there_changes_nothing,
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
    let mut before = None;
    for (number, table) in [(1, entries(1)), (2, entries(5)), (3, Vec::new()), (4, entries(7))] {
        assert!(store.put_history(&prod, before, head(number), table.clone()).await.unwrap());
        before = Some(head(number));
        for handle in [&store, &fixture.open().await.1] {
            assert_eq!(handle.history(&prod).await.unwrap(), Some((head(number), sorted(table.clone()))));
        }
    }
}

/// Of two that carry a table on at once, the second changes nothing, whichever has the later version.
pub async fn a_table_that_was_made_of_another_than_is_there_changes_nothing(
    fixture: &dyn HistoryStoreFixture,
) {
    let (_, store) = fixture.open().await;
    let prod = tenant("prod");
    assert!(!store.put_history(&prod, Some(head(1)), head(2), entries(2)).await.unwrap());
    assert_eq!(store.history(&prod).await.unwrap(), None);
    assert!(store.put_history(&prod, None, head(2), entries(2)).await.unwrap());
    let other = HistoryHead { sha256: head(1).sha256, ..head(2) };
    for before in [None, Some(head(1)), Some(other)] {
        for late in [head(1), head(3)] {
            assert!(!store.put_history(&prod, before, late, entries(3)).await.unwrap());
        }
    }
    assert_eq!(store.history(&prod).await.unwrap(), Some((head(2), sorted(entries(2)))));
}

/// What is put for one tenant is nothing to another.
pub async fn tables_of_tenants_are_apart(fixture: &dyn HistoryStoreFixture) {
    let (_, store) = fixture.open().await;
    let (prod, test) = (tenant("prod"), tenant("test"));
    assert!(store.put_history(&prod, None, head(1), entries(1)).await.unwrap());
    assert!(store.put_history(&test, None, head(2), entries(2)).await.unwrap());
    assert!(store.put_history(&test, Some(head(2)), head(3), Vec::new()).await.unwrap());
    assert_eq!(store.history(&prod).await.unwrap(), Some((head(1), sorted(entries(1)))));
}

/// Who comes under a removed tenant's name is nobody of the former one.
pub async fn a_removed_tenant_loses_its_history(fixture: &dyn HistoryStoreFixture) {
    let (states, store) = fixture.open().await;
    let (prod, test) = (tenant("prod"), tenant("test"));
    for name in [&prod, &test] {
        commit_body(states.as_ref(), name, "written").await;
        assert!(store.put_history(name, None, head(1), entries(1)).await.unwrap());
    }
    remove(states.as_ref(), &prod).await;
    assert_eq!(store.history(&prod).await.unwrap(), None);
    assert_eq!(store.history(&test).await.unwrap(), Some((head(1), sorted(entries(1)))));
}
