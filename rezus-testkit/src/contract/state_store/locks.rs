//! Locks: held in one tenant, remembered for a week after.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;
use std::time::Duration;

use rezus_core::declared::store::{CommitError, HeldLock, LOCK_MEMORY, LockTrace, ReleasedLock};
use rezus_core::declared::{LockId, LockInfo};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::StateStoreFixture;
use crate::sample::{
    NOON, append_to, commit_body, decide, held_lock, lock, lock_id, lock_info, new_version, noon_plus,
    released_lock, remove, tenant, unlock,
};

/// A lock shows in the record with all that its client said, by every handle, until it is let go.
pub async fn a_lock_that_is_held_shows_with_all_that_was_said_of_it(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let odd = HeldLock {
        info: LockInfo {
            id: LockId::parse("Ünïcode 'id' \"1\" \\ ; --").unwrap(),
            operation: String::new(),
            info: "line\nbreak \0 tab\t \u{1f512}".to_owned(),
            who: "o'brien@ünicode".to_owned(),
            version: "1.12.6".to_owned(),
            created: "2026-11-30T21:10:37.000000001+02:00".to_owned(),
            path: "C:\\states\\\"prod\"".to_owned(),
        },
        acquired_at: noon_plus(-1),
        acquired_by: "token \u{0}".to_owned(),
        acquired_head: None,
    };
    for held in [odd, held_lock("plain")] {
        let mut change = decide(store.as_ref(), &prod).await;
        change.record.as_mut().unwrap().lock = Some(held.clone());
        store.commit(change).await.unwrap();
        for handle in [&store, &fixture.open().await] {
            let (record, _) = handle.tenant(&prod).await.unwrap().unwrap();
            assert_eq!(record.lock.as_ref(), Some(&held));
            assert_eq!(handle.tenants().await.unwrap(), [record]);
            let trace = handle.trace_lock(&held.info.id, NOON).await.unwrap();
            assert_eq!(trace, Some(LockTrace::Held(prod.clone())));
        }
        commit_body(store.as_ref(), &prod, "written under the lock").await;
        assert_eq!(store.tenant(&prod).await.unwrap().unwrap().0.lock, Some(held.clone()));
        unlock(store.as_ref(), &prod, noon_plus(1)).await;
        assert_eq!(store.tenant(&prod).await.unwrap().unwrap().0.lock, None);
        let trace = store.trace_lock(&held.info.id, NOON).await.unwrap();
        let released = ReleasedLock { info: held.info, released_at: noon_plus(1), broken: false };
        assert_eq!(trace, Some(LockTrace::Released(prod.clone(), released)));
    }
}

/// While a lock's ID is held in one tenant no other gets it; after its release any does.
pub async fn a_locks_id_is_held_in_one_tenant_at_a_time(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (one, other) = (tenant("one"), tenant("other"));
    lock(store.as_ref(), &one, "the-id").await.unwrap();
    commit_body(store.as_ref(), &other, "state").await;
    let before = store.tenant(&other).await.unwrap();
    for name in [&other, &tenant("third")] {
        let outcome = lock(store.as_ref(), name, "the-id").await;
        assert!(matches!(outcome, Err(CommitError::LockIdHeld)), "{outcome:?}");
    }
    assert_eq!(store.tenant(&other).await.unwrap(), before);
    assert_eq!(store.tenant(&tenant("third")).await.unwrap(), None);
    lock(store.as_ref(), &other, "The-ID").await.unwrap();

    // The holder may change what else its record says.
    commit_body(store.as_ref(), &one, "state").await;
    unlock(store.as_ref(), &one, NOON).await;
    unlock(store.as_ref(), &other, NOON).await;
    lock(store.as_ref(), &other, "the-id").await.unwrap();
    assert!(matches!(lock(store.as_ref(), &one, "the-id").await, Err(CommitError::LockIdHeld)));
    remove(store.as_ref(), &other).await;
    lock(store.as_ref(), &one, "the-id").await.unwrap();
}

/// Of many clients that bring one ID to different tenants at once, exactly one gets it.
pub async fn a_locks_id_is_unique_under_concurrent_clients(fixture: &dyn StateStoreFixture) {
    let start = Arc::new(Barrier::new(8));
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let store = fixture.open().await;
        let start = Arc::clone(&start);
        clients.spawn(async move {
            start.wait().await;
            lock(store.as_ref(), &tenant(&format!("t-{client}")), "the-id").await
        });
    }
    let mut granted = 0;
    while let Some(outcome) = clients.join_next().await {
        match outcome.unwrap() {
            Ok(()) => granted += 1,
            Err(error) => assert!(matches!(error, CommitError::LockIdHeld), "{error:?}"),
        }
    }
    assert_eq!(granted, 1);
    let records = fixture.open().await.tenants().await.unwrap();
    assert_eq!(records.len(), 1, "{records:?}");
}

/// A lock's ID is traced while it is held and for [`LOCK_MEMORY`] after, and then forgotten.
pub async fn a_lock_is_held_then_released_then_forgotten(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, id) = (tenant("prod"), lock_id("the-id"));
    let after = |span: Duration, millis| {
        let end = noon_plus(i64::try_from(span.as_millis()).unwrap() + millis);
        assert!(end > NOON);
        end
    };
    lock(store.as_ref(), &prod, "the-id").await.unwrap();
    let late = after(LOCK_MEMORY * 3, 0);
    assert_eq!(store.trace_lock(&id, late).await.unwrap(), Some(LockTrace::Held(prod.clone())));

    unlock(store.as_ref(), &prod, NOON).await;
    let released = LockTrace::Released(prod.clone(), released_lock("the-id", NOON));
    for now in [NOON, noon_plus(-5_000), after(LOCK_MEMORY, -1), after(LOCK_MEMORY, 0)] {
        assert_eq!(store.trace_lock(&id, now).await.unwrap().as_ref(), Some(&released), "at {now}");
    }
    assert_eq!(store.trace_lock(&lock_id("The-ID"), NOON).await.unwrap(), None);
    assert_eq!(fixture.open().await.trace_lock(&id, NOON).await.unwrap(), Some(released));
    assert_eq!(store.trace_lock(&id, after(LOCK_MEMORY, 1)).await.unwrap(), None);
}

/// Whether the holder let go or another broke the lock is remembered.
pub async fn a_forced_unlock_is_remembered_as_broken(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    lock(store.as_ref(), &prod, "the-id").await.unwrap();
    let mut change = decide(store.as_ref(), &prod).await;
    let held = change.record.as_mut().unwrap().lock.take().unwrap();
    let broken = ReleasedLock { info: held.info, released_at: NOON, broken: true };
    change.released = Some(broken.clone());
    store.commit(change).await.unwrap();
    let trace = store.trace_lock(&lock_id("the-id"), NOON).await.unwrap();
    assert_eq!(trace, Some(LockTrace::Released(prod, broken)));
}

/// Where an ID was released in several tenants, or is held again, the trace is the one that matters now.
pub async fn held_comes_before_released_and_the_last_release_before_earlier_ones(
    fixture: &dyn StateStoreFixture,
) {
    let store = fixture.open().await;
    let (one, other, id) = (tenant("one"), tenant("other"), lock_id("the-id"));
    for (name, at) in [(&other, 1), (&one, 2), (&other, 3), (&one, 4), (&one, 5)] {
        lock(store.as_ref(), name, "the-id").await.unwrap();
        let held = store.trace_lock(&id, noon_plus(10)).await.unwrap();
        assert_eq!(held, Some(LockTrace::Held((*name).clone())));
        unlock(store.as_ref(), name, noon_plus(at)).await;
        let released = store.trace_lock(&id, noon_plus(10)).await.unwrap();
        let expected = LockTrace::Released((*name).clone(), released_lock("the-id", noon_plus(at)));
        assert_eq!(released, Some(expected));
    }
}

/// The lock of a tenant that vanishes with its lock, or was removed later, is remembered all the same.
pub async fn a_removed_tenants_lock_is_remembered(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (with_it, before_it) = (tenant("with-it"), tenant("before-it"));
    lock(store.as_ref(), &with_it, "with-it-id").await.unwrap();
    remove(store.as_ref(), &with_it).await;
    lock(store.as_ref(), &before_it, "before-it-id").await.unwrap();
    unlock(store.as_ref(), &before_it, NOON).await;
    remove(store.as_ref(), &before_it).await;
    assert_eq!(store.tenants().await.unwrap(), []);
    for store in [store, fixture.open().await] {
        for (name, id) in [(&with_it, "with-it-id"), (&before_it, "before-it-id")] {
            let trace = store.trace_lock(&lock_id(id), NOON).await.unwrap();
            let released = ReleasedLock { info: lock_info(id), released_at: NOON, broken: false };
            assert_eq!(trace, Some(LockTrace::Released(name.clone(), released)));
        }
    }
}

/// A lock's ID is no tenant's name, whichever comes first: with `?ID=` the two could not be told apart.
pub async fn a_locks_id_is_never_a_tenants_name(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, test) = (tenant("prod"), tenant("test"));
    commit_body(store.as_ref(), &prod, "written").await;
    for (name, id) in [(&test, "prod"), (&prod, "prod"), (&test, "test")] {
        let refused = lock(store.as_ref(), name, id).await;
        assert!(matches!(refused, Err(CommitError::NameIsLockId)), "{id} in {name}: {refused:?}");
    }
    assert_eq!(store.tenant(&test).await.unwrap(), None);

    lock(store.as_ref(), &prod, "test").await.unwrap();
    let mut change = decide(store.as_ref(), &test).await;
    append_to(&mut change, |number| new_version(number, "written".into(), Vec::new()));
    let refused = store.commit(change).await;
    assert!(matches!(refused, Err(CommitError::NameIsLockId)), "{refused:?}");
    assert_eq!(store.tenant(&test).await.unwrap(), None);
    unlock(store.as_ref(), &prod, noon_plus(1)).await;
    commit_body(store.as_ref(), &test, "written").await;
}
