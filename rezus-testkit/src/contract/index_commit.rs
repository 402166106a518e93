//! The laws of a store that is both `StateStore` and `IndexStore` and takes the index along when it commits.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;

use async_trait::async_trait;
use rezus_core::declared::Fingerprint;
use rezus_core::declared::index::{INDEX_FORMAT, IndexHead};
use rezus_core::declared::store::{CommitError, IndexStore, StateStore};

use super::poll::drop_after;
use crate::sample::{
    SECRET_RULES, append_to, commit_version, decide, encrypted_version, indexed_body, new_version,
    random_bytes, remove, tenant, tombstone, version,
};

/// Storage of its own for one law.
#[async_trait]
pub trait IndexCommitFixture: Send + Sync {
    /// Opens both ports on the same storage.
    async fn open(&self) -> (Arc<dyn StateStore>, Arc<dyn IndexStore>);
}

/// Makes a test of each law of a store that takes the index along, in a module `index_commit_laws`. See
/// [`contract`](crate::contract).
#[macro_export]
macro_rules! index_commit_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            index_commit_laws,
            $crate::contract::index_commit,
            $fixture,
            a_change_that_is_refused_leaves_the_index,
            a_change_without_a_version_leaves_the_index,
            a_commit_takes_its_rows_along,
            a_dropped_commit_takes_its_rows_along_or_nothing,
            a_removed_tenant_takes_its_index_along,
            of_an_envelope_no_index_is_made,
            of_a_tombstone_no_old_row_is_shown,
            the_index_is_never_behind_for_any_reader,
        );
    };
}

/// The head of an index built from version `number`, which is the body of that seed.
fn head(number: u64, rows: usize) -> IndexHead {
    head_of(number, rows, number)
}

fn head_of(number: u64, rows: usize, seed: u64) -> IndexHead {
    let (body, _) = indexed_body(u32::try_from(rows).unwrap(), seed);
    IndexHead {
        version: version(number),
        sha256: Fingerprint::of(&body).sha256,
        format: INDEX_FORMAT,
        rows: u64::try_from(rows).unwrap(),
        secret_rules: SECRET_RULES,
    }
}

/// Commits version `seed` with rows that can be told from others by it.
async fn commit_indexed(store: &dyn StateStore, name: &rezus_core::base::TenantName, count: u32, seed: u64) {
    let (body, rows) = indexed_body(count, seed);
    commit_version(store, name, |number| new_version(number, body, rows)).await;
}

/// The index is that of the newest version as soon as the commit has answered.
pub async fn a_commit_takes_its_rows_along(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let (prod, other) = (tenant("prod"), tenant("other"));
    commit_indexed(store.as_ref(), &other, 2, 99).await;
    for (number, count) in [(1, 5), (2, 0), (3, 7), (4, 3)] {
        commit_indexed(store.as_ref(), &prod, count, number).await;
        let (_, rows) = indexed_body(count, number);
        let (_, reopened) = fixture.open().await;
        for index in [&index, &reopened] {
            assert_eq!(index.head(&prod).await.unwrap(), Some(head(number, rows.len())));
            assert_eq!(index.rows(&prod).await.unwrap(), Some((head(number, rows.len()), rows.clone())));
            for row in &rows {
                let found = index.find(&prod, &row.address, None).await.unwrap();
                assert_eq!(found, Some((head(number, rows.len()), row.clone())));
            }
        }
    }
    let (_, others) = indexed_body(2, 99);
    assert_eq!(index.rows(&other).await.unwrap(), Some((head_of(1, 2, 99), others)));
}

/// A reader that has seen a version finds an index that is as new, while others write.
pub async fn the_index_is_never_behind_for_any_reader(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    commit_indexed(store.as_ref(), &prod, 10, 1).await;
    let (writer, _) = fixture.open().await;
    let name = prod.clone();
    let writing = tokio::spawn(async move {
        for number in 2..=15 {
            commit_indexed(writer.as_ref(), &name, 10, number).await;
        }
    });
    loop {
        let ended = writing.is_finished();
        let seen = store.tenant(&prod).await.unwrap().unwrap().0.head.unwrap().version;
        let (found, rows) = index.rows(&prod).await.unwrap().unwrap();
        assert!(found.version >= seen, "the index of {} is older than version {seen}", found.version);
        assert_eq!(rows, indexed_body(10, found.version.get()).1);
        if ended {
            break;
        }
    }
    writing.await.unwrap();
}

/// What changes only the record leaves the index as it is.
pub async fn a_change_without_a_version_leaves_the_index(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    commit_indexed(store.as_ref(), &prod, 4, 1).await;
    commit_indexed(store.as_ref(), &prod, 4, 2).await;
    let before = index.rows(&prod).await.unwrap();
    let mut change = decide(store.as_ref(), &prod).await;
    change.record.as_mut().unwrap().require_locks = true;
    store.commit(change).await.unwrap();
    store.set_pinned(&prod, version(2), true).await.unwrap();
    store.remove_versions(&prod, &[version(1)]).await.unwrap();
    assert_eq!(index.rows(&prod).await.unwrap(), before);
    assert_eq!(before.map(|(head, _)| head), Some(head(2, 4)));
}

/// A change that is refused leaves the index as it is.
pub async fn a_change_that_is_refused_leaves_the_index(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    commit_indexed(store.as_ref(), &prod, 4, 1).await;
    let mut late = decide(store.as_ref(), &prod).await;
    commit_indexed(store.as_ref(), &prod, 4, 2).await;
    let before = index.rows(&prod).await.unwrap();
    let (body, rows) = indexed_body(9, 77);
    append_to(&mut late, |number| new_version(number, body, rows));
    assert!(matches!(store.commit(late).await, Err(CommitError::Conflict)));
    assert_eq!(index.rows(&prod).await.unwrap(), before);
}

/// A tenant's index goes with it, so that no row of a former life is taken for one of the next.
pub async fn a_removed_tenant_takes_its_index_along(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    commit_indexed(store.as_ref(), &prod, 4, 1).await;
    remove(store.as_ref(), &prod).await;
    assert_eq!(index.head(&prod).await.unwrap(), None);
    assert_eq!(index.rows(&prod).await.unwrap(), None);
    commit_indexed(store.as_ref(), &prod, 2, 8).await;
    assert_eq!(index.rows(&prod).await.unwrap(), Some((head_of(1, 2, 8), indexed_body(2, 8).1)));
    let (_, former) = indexed_body(4, 1);
    assert_eq!(index.find(&prod, &former[0].address, None).await.unwrap(), None);
}

/// Of an envelope nothing is known: the index never claims to be that version's. The one before may stay, and says of
/// which version it is.
pub async fn of_an_envelope_no_index_is_made(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    commit_version(store.as_ref(), &prod, |number| encrypted_version(number, random_bytes(500, 1))).await;
    assert_eq!(index.head(&prod).await.unwrap(), None);
    commit_indexed(store.as_ref(), &prod, 4, 2).await;
    commit_version(store.as_ref(), &prod, |number| encrypted_version(number, random_bytes(500, 2))).await;
    if let Some(found) = index.rows(&prod).await.unwrap() {
        assert_eq!(found, (head(2, 4), indexed_body(4, 2).1));
    }
    commit_indexed(store.as_ref(), &prod, 3, 4).await;
    assert_eq!(index.rows(&prod).await.unwrap(), Some((head(4, 3), indexed_body(3, 4).1)));
}

/// After a tombstone no row of the state before is the newest version's.
pub async fn of_a_tombstone_no_old_row_is_shown(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    commit_indexed(store.as_ref(), &prod, 4, 1).await;
    commit_version(store.as_ref(), &prod, tombstone).await;
    if let Some((found, rows)) = index.rows(&prod).await.unwrap() {
        let as_it_was = (head(1, 4), indexed_body(4, 1).1);
        assert!(
            (found.version, &rows) == (version(2), &Vec::new()) || (found, rows) == as_it_was,
            "{found:?} claims what version 2 does not hold"
        );
    }
    commit_indexed(store.as_ref(), &prod, 2, 3).await;
    assert_eq!(index.rows(&prod).await.unwrap(), Some((head(3, 2), indexed_body(2, 3).1)));
}

/// A commit whose future is dropped has written version and index, or neither.
pub async fn a_dropped_commit_takes_its_rows_along_or_nothing(fixture: &dyn IndexCommitFixture) {
    let (store, index) = fixture.open().await;
    let prod = tenant("prod");
    let mut seeds = vec![1];
    commit_indexed(store.as_ref(), &prod, 50, 1).await;
    for polls in 0..12_u64 {
        let seed = 100 + polls;
        let mut change = decide(store.as_ref(), &prod).await;
        let (body, rows) = indexed_body(50, seed);
        let number = append_to(&mut change, |number| new_version(number, body, rows)).version;
        let ended = drop_after(usize::try_from(polls).unwrap(), store.commit(change)).await;
        // What is accepted on top settles what became of the dropped one.
        loop {
            let mut change = decide(store.as_ref(), &prod).await;
            let record = change.record.as_mut().unwrap();
            record.require_locks = !record.require_locks;
            match store.commit(change).await {
                Ok(()) => break,
                Err(error) => assert!(matches!(error, CommitError::Conflict), "{error:?}"),
            }
        }
        let newest = store.tenant(&prod).await.unwrap().unwrap().0.head.unwrap().version;
        if newest == number {
            seeds.push(seed);
        }
        assert!(newest == number || !ended, "a commit that had answered is gone");
        let (found, rows) = index.rows(&prod).await.unwrap().unwrap();
        let kept = seeds[seeds.len() - 1];
        assert_eq!(found, head_of(newest.get(), 50, kept), "after {polls} polls");
        assert!(rows == indexed_body(50, kept).1, "after {polls} polls");
    }
}
