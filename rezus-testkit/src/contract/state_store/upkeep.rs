//! Pins, removal of versions, refusals, listings, restarts.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use rezus_core::declared::store::{
    CommitError, LOCK_MEMORY, LockTrace, REFUSALS_KEPT, REFUSALS_OF_NOBODY_KEPT, VersionMeta,
};
use rezus_core::declared::{Serial, VersionNumber};

use super::StateStoreFixture;
use crate::sample::{
    NOON, body_of, commit_body, commit_version, decide, lock, lock_id, new_version, noon_plus, random_bytes,
    refusal, remove, tenant, unlock, version,
};

/// A pin shows wherever the version does. A change that was decided before the pin conflicts, or leaves it on.
pub async fn a_pin_shows_everywhere_and_no_later_change_loses_it(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut metas = Vec::new();
    for text in ["first", "second", "third"] {
        metas.push(commit_body(store.as_ref(), &prod, text).await);
    }
    for number in [1, 3] {
        assert!(store.set_pinned(&prod, version(number), true).await.unwrap());
        assert!(store.set_pinned(&prod, version(number), true).await.unwrap(), "pinning twice is no error");
    }
    metas[0].pinned = true;
    metas[2].pinned = true;
    for handle in [&store, &fixture.open().await] {
        assert_eq!(handle.versions(&prod).await.unwrap(), metas);
        assert_eq!(handle.version(&prod, version(3)).await.unwrap().as_ref(), metas.last());
        assert_eq!(handle.tenant(&prod).await.unwrap().unwrap().0.head.as_ref(), metas.last());
    }

    assert!(store.set_pinned(&prod, version(3), false).await.unwrap());
    let mut decided_before = decide(store.as_ref(), &prod).await;
    decided_before.record.as_mut().unwrap().require_locks = true;
    assert!(store.set_pinned(&prod, version(3), true).await.unwrap());
    match store.commit(decided_before).await {
        Ok(()) | Err(CommitError::Conflict) => {}
        Err(CommitError::LockIdHeld | CommitError::NameIsLockId | CommitError::Store(_)) => {
            unreachable!("no lock, and a store that works")
        }
    }
    assert_eq!(store.versions(&prod).await.unwrap(), metas);
    assert_eq!(store.tenant(&prod).await.unwrap().unwrap().0.head.as_ref(), metas.last());

    assert!(store.set_pinned(&prod, version(1), false).await.unwrap());
    metas[0].pinned = false;
    assert_eq!(store.versions(&prod).await.unwrap(), metas);
}

/// Versions that are removed are gone with their bytes; the newest and the pinned stay, whatever is asked.
pub async fn removing_versions_spares_the_newest_and_the_pinned(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, other) = (tenant("prod"), tenant("other"));
    for number in 1..=8 {
        // Bodies that are the same, or nearly so, may share what they are kept as: removing one must not harm others.
        let body = if number % 2 == 0 { random_bytes(70_000, 2) } else { random_bytes(70_000, number) };
        commit_body(store.as_ref(), &prod, body).await;
        commit_body(store.as_ref(), &other, random_bytes(70_000, 2)).await;
    }
    assert!(store.set_pinned(&prod, version(2), true).await.unwrap());
    let before = store.versions(&prod).await.unwrap();

    let asked: Vec<VersionNumber> = [1, 2, 4, 4, 5, 8, 99, u64::MAX].map(version).into();
    assert_eq!(store.remove_versions(&prod, &asked).await.unwrap(), 3);
    assert_eq!(store.remove_versions(&prod, &asked).await.unwrap(), 0);
    assert_eq!(store.remove_versions(&prod, &[]).await.unwrap(), 0);
    let stays = |meta: &&VersionMeta| [2, 3, 6, 7, 8].contains(&meta.version.get());
    let kept: Vec<VersionMeta> = before.iter().filter(stays).cloned().collect();
    for store in [store, fixture.open().await] {
        assert_eq!(store.versions(&prod).await.unwrap(), kept);
        for number in 1..=8 {
            let read = body_of(store.as_ref(), &prod, version(number)).await;
            let meta = store.version(&prod, version(number)).await.unwrap();
            if kept.iter().any(|meta| meta.version == version(number)) {
                let seed = if number % 2 == 0 { 2 } else { number };
                assert!(read.unwrap() == random_bytes(70_000, seed), "version {number} is damaged");
            } else {
                assert_eq!((read, meta), (None, None), "version {number} is still there");
            }
            assert!(body_of(store.as_ref(), &other, version(number)).await.is_some());
        }
    }
}

/// What is counted of a tenant does not fall back when versions are removed: numbers and serials are given once.
pub async fn removing_versions_moves_neither_counter_nor_highest_serial(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    for serial in [5, 900, 7] {
        commit_version(store.as_ref(), &prod, |number| {
            let mut new = new_version(number, format!("serial {serial}").into(), Vec::new());
            new.meta.serial = Some(Serial::new(serial));
            new
        })
        .await;
    }
    assert_eq!(store.remove_versions(&prod, &[version(1), version(2), version(3)]).await.unwrap(), 2);
    let (record, _) = store.tenant(&prod).await.unwrap().unwrap();
    assert_eq!(record.highest_serial, Some(Serial::new(900)));
    assert_eq!(record.head.map(|head| head.version), Some(version(3)));
    assert_eq!(commit_body(store.as_ref(), &prod, "next").await.version, version(4));
    assert_eq!(store.remove_versions(&prod, &[version(3)]).await.unwrap(), 1);
    let left: Vec<VersionNumber> =
        store.versions(&prod).await.unwrap().iter().map(|meta| meta.version).collect();
    assert_eq!(left, [version(4)]);
}

/// Refusals come back newest first, and only the newest are kept; those of one tenant push out no other's.
pub async fn refusals_are_kept_newest_first_and_no_more_than_a_hundred(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (busy, quiet) = (tenant("busy"), tenant("quiet"));
    store.record_refusal(&quiet, refusal(1)).await.unwrap();
    let count = u16::try_from(REFUSALS_KEPT).unwrap() + 7;
    for number in 1..=count {
        let mut refused = refusal(number);
        // Several within one millisecond keep their order.
        refused.at = noon_plus_thirds(number);
        store.record_refusal(&busy, refused).await.unwrap();
    }
    for store in [store, fixture.open().await] {
        let kept = store.refusals(&busy).await.unwrap();
        let heads: Vec<u64> = kept.iter().filter_map(|kept| kept.head).map(VersionNumber::get).collect();
        let expected: Vec<u64> = (8..=u64::from(count)).rev().collect();
        assert_eq!(heads, expected);
        let mut newest = refusal(count);
        newest.at = noon_plus_thirds(count);
        assert_eq!(kept.first(), Some(&newest));
        assert_eq!(store.refusals(&quiet).await.unwrap(), [refusal(1)]);
    }
}

fn noon_plus_thirds(number: u16) -> rezus_core::base::Timestamp {
    noon_plus(i64::from(number / 3))
}

/// A refusal is kept where there is no tenant: that is what is refused most. Every fact of it comes back, and no tenant
/// comes into being.
pub async fn refusals_are_kept_for_tenants_that_do_not_exist(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let nobody = tenant("nobody");
    let mut odd = refusal(2);
    (odd.head, odd.code) = (None, 422);
    "o'brien \"x\"".clone_into(&mut odd.who);
    "rollback".clone_into(&mut odd.operation);
    "line\nbreak, \u{1f512}".clone_into(&mut odd.reason);
    store.record_refusal(&nobody, refusal(1)).await.unwrap();
    store.record_refusal(&nobody, odd.clone()).await.unwrap();
    let expected = [odd, refusal(1)];
    assert_eq!(store.refusals(&nobody).await.unwrap(), expected);
    assert_eq!(store.tenant(&nobody).await.unwrap(), None);
    assert_eq!(store.tenants().await.unwrap(), []);
    commit_body(store.as_ref(), &nobody, "now it exists").await;
    assert_eq!(store.refusals(&nobody).await.unwrap(), expected);
}

/// Tenants are listed by name, in the order of their bytes, each with its whole record.
pub async fn tenants_are_listed_by_name(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let long = "x".repeat(63);
    let mut names = ["prod", "a", "prod-2", "prod1", "9", "a-b", "ab", "a1", &long];
    for name in names {
        commit_body(store.as_ref(), &tenant(name), format!("state of {name}")).await;
    }
    lock(store.as_ref(), &tenant("locked"), "the-id").await.unwrap();
    remove(store.as_ref(), &tenant("ab")).await;
    names.sort_unstable();
    let mut expected: Vec<&str> = names.into_iter().filter(|name| *name != "ab").chain(["locked"]).collect();
    expected.sort_unstable();
    let records = store.tenants().await.unwrap();
    let listed: Vec<&str> = records.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(listed, expected);
    for listed in &records {
        let (record, _) = store.tenant(&listed.name).await.unwrap().unwrap();
        assert_eq!(&record, listed);
    }
}

/// After a restart everything is as it was: records, revisions, versions, bytes, pins, locks, traces, refusals.
pub async fn reopening_keeps_everything(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, held) = (tenant("prod"), tenant("held"));
    for number in 1..=5 {
        commit_body(store.as_ref(), &prod, random_bytes(30_000, number)).await;
    }
    store.set_pinned(&prod, version(2), true).await.unwrap();
    store.remove_versions(&prod, &[version(1)]).await.unwrap();
    lock(store.as_ref(), &prod, "released-id").await.unwrap();
    unlock(store.as_ref(), &prod, NOON).await;
    lock(store.as_ref(), &held, "held-id").await.unwrap();
    store.record_refusal(&prod, refusal(3)).await.unwrap();

    let records = store.tenants().await.unwrap();
    let before = store.tenant(&prod).await.unwrap();
    let versions = store.versions(&prod).await.unwrap();
    let decided_before = decide(store.as_ref(), &prod).await;
    let released = store.trace_lock(&lock_id("released-id"), NOON).await.unwrap();
    assert!(released.is_some());
    drop(store);

    let store = fixture.open().await;
    assert_eq!(store.tenants().await.unwrap(), records);
    assert_eq!(store.tenant(&prod).await.unwrap(), before);
    assert_eq!(store.versions(&prod).await.unwrap(), versions);
    for number in 2..=5 {
        let read = body_of(store.as_ref(), &prod, version(number)).await.unwrap();
        assert!(read == random_bytes(30_000, number));
    }
    assert_eq!(store.trace_lock(&lock_id("released-id"), NOON).await.unwrap(), released);
    assert!(store.trace_lock(&lock_id("held-id"), NOON).await.unwrap().is_some());
    assert_eq!(store.refusals(&prod).await.unwrap(), [refusal(3)]);
    store.commit(decided_before).await.unwrap();
}

/// Tidying up changes nothing that anybody reads, but for refusals of names that are no tenants: those are forgotten once
/// they are older than [`LOCK_MEMORY`].
pub async fn tidying_up_forgets_old_refusals_of_nobody_and_nothing_else(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, nobody, gone) = (tenant("prod"), tenant("nobody"), tenant("gone"));
    for number in 1..=6 {
        commit_body(store.as_ref(), &prod, random_bytes(100_000, number)).await;
    }
    commit_body(store.as_ref(), &gone, random_bytes(100_000, 9)).await;
    remove(store.as_ref(), &gone).await;
    store.remove_versions(&prod, &[version(1), version(2), version(4)]).await.unwrap();
    store.set_pinned(&prod, version(3), true).await.unwrap();
    lock(store.as_ref(), &prod, "the-id").await.unwrap();
    for name in [&prod, &nobody, &gone] {
        for number in [0, 5_000] {
            store.record_refusal(name, refusal(number)).await.unwrap();
        }
    }
    let before = (store.tenant(&prod).await.unwrap(), store.versions(&prod).await.unwrap());

    let memory = i64::try_from(LOCK_MEMORY.as_millis()).unwrap();
    let both = [refusal(5_000), refusal(0)];
    for (after, kept) in [(0, 2), (memory, 2), (memory + 1, 1), (memory + 5_000, 1), (memory + 5_001, 0)] {
        store.tidy(noon_plus(after)).await.unwrap();
        store.ready().await.unwrap();
        let space = store.space().await.unwrap();
        assert!(space.free_bytes <= space.total_bytes, "{space:?}");
        assert_eq!(store.refusals(&prod).await.unwrap(), both, "of a tenant, {after} ms after");
        for name in [&nobody, &gone] {
            assert_eq!(store.refusals(name).await.unwrap(), both[..kept], "of {name}, {after} ms after");
        }
        let found = (store.tenant(&prod).await.unwrap(), store.versions(&prod).await.unwrap());
        assert_eq!(found, before);
        for number in [3, 5, 6] {
            let read = body_of(store.as_ref(), &prod, version(number)).await.unwrap();
            assert!(read == random_bytes(100_000, number), "version {number} is damaged");
        }
    }
    let trace = store.trace_lock(&lock_id("the-id"), NOON).await.unwrap();
    assert_eq!(trace, Some(LockTrace::Held(prod)));
}

/// Of names that are no tenants few refusals are kept in all: anybody can make up names.
pub async fn refusals_of_made_up_names_are_few(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    commit_body(store.as_ref(), &prod, "written").await;
    store.record_refusal(&prod, refusal(0)).await.unwrap();
    let name = |number: u16| tenant(&format!("made-up-{number}"));
    let names = u16::try_from(REFUSALS_OF_NOBODY_KEPT + 5).unwrap();
    for number in 0..names {
        store.record_refusal(&name(number), refusal(number)).await.unwrap();
    }
    let mut kept = 0;
    for number in 0..names {
        let refusals = store.refusals(&name(number)).await.unwrap();
        assert_eq!(refusals.is_empty(), number < 5, "made-up-{number}");
        kept += refusals.len();
    }
    assert_eq!(kept, REFUSALS_OF_NOBODY_KEPT);
    assert_eq!(store.refusals(&prod).await.unwrap(), [refusal(0)]);
}
