//! Commits: atomic, compare-and-swap, all or nothing.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::sync::Arc;

use rezus_core::declared::store::{Change, CommitError, Revision, StateStore, TenantRecord, VersionMeta};
use rezus_core::declared::{Encryption, Freeze, Serial, VersionNumber};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::StateStoreFixture;
use crate::contract::poll::drop_after;
use crate::sample::{
    append_to, body_of, commit_body, compressible_bytes, decide, held_lock, new_version, noon_plus,
    random_bytes, remove, tenant,
};

/// Of many clients that decided on the same record, exactly one has its way; the others are told, and what they wanted
/// to write is nowhere. Tried for the creation of a tenant and for its later versions.
pub async fn of_concurrent_changes_exactly_one_is_made(fixture: &dyn StateStoreFixture) {
    const CLIENTS: u64 = 8;
    let prod = tenant("prod");
    let reader = fixture.open().await;
    for round in 1..=4_u64 {
        let decided = decide(reader.as_ref(), &prod).await;
        let start = Arc::new(Barrier::new(usize::try_from(CLIENTS).unwrap()));
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            // Half of the clients share a handle.
            let store = if client % 2 == 0 { fixture.open().await } else { Arc::clone(&reader) };
            let mut change = decided.clone();
            let body = format!("round {round}, client {client}");
            let text = body.clone();
            append_to(&mut change, |number| new_version(number, text.into(), Vec::new()));
            let start = Arc::clone(&start);
            clients.spawn(async move {
                start.wait().await;
                (body, store.commit(change).await)
            });
        }
        let mut winners = Vec::new();
        while let Some(outcome) = clients.join_next().await {
            match outcome.unwrap() {
                (body, Ok(())) => winners.push(body),
                (_, Err(error)) => assert!(matches!(error, CommitError::Conflict), "{error:?}"),
            }
        }
        assert_eq!(winners.len(), 1, "{winners:?} were all accepted in round {round}");
        let versions = reader.versions(&prod).await.unwrap();
        assert_eq!(u64::try_from(versions.len()).unwrap(), round);
        let newest = versions.last().unwrap().version;
        assert_eq!(body_of(reader.as_ref(), &prod, newest).await.unwrap(), winners[0].as_bytes());
    }
}

/// A change decided on another revision than the present one conflicts, and leaves everything as it was.
pub async fn a_change_that_comes_too_late_changes_nothing(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let creation = decide(store.as_ref(), &prod).await;
    commit_body(store.as_ref(), &prod, "first").await;
    let mut late = decide(store.as_ref(), &prod).await;
    append_to(&mut late, |number| new_version(number, "late".into(), Vec::new()));
    let mut removal = decide(store.as_ref(), &prod).await;
    removal.record = None;
    commit_body(store.as_ref(), &prod, "second").await;

    let before = everything(store.as_ref()).await;
    let of_another = Change { expected: Some(Revision(before[0].1.0.wrapping_add(1))), ..late.clone() };
    let of_none = Change { expected: None, ..late.clone() };
    for change in [creation, late, removal, of_another, of_none] {
        let outcome = store.commit(change.clone()).await;
        assert!(matches!(outcome, Err(CommitError::Conflict)), "{outcome:?} for {change:?}");
        assert_eq!(everything(store.as_ref()).await, before, "after {change:?}");
    }
    assert_eq!(store.read(&prod, VersionNumber::FIRST.next().next(), 0..9).await.unwrap(), None);
}

/// What is done to one tenant leaves others alone, in their records and revisions.
pub async fn what_is_done_to_one_tenant_leaves_others_alone(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, other) = (tenant("prod"), tenant("other"));
    commit_body(store.as_ref(), &other, "other's").await;
    commit_body(store.as_ref(), &prod, "first").await;
    let mut change = decide(store.as_ref(), &other).await;
    commit_body(store.as_ref(), &prod, "second").await;
    remove(store.as_ref(), &prod).await;
    append_to(&mut change, |number| new_version(number, "other's second".into(), Vec::new()));
    store.commit(change).await.unwrap();
    assert_eq!(store.versions(&other).await.unwrap().len(), 2);
    assert_eq!(body_of(store.as_ref(), &other, VersionNumber::FIRST).await.unwrap(), "other's");
}

/// A change without a version changes the record and its revision, and no version.
pub async fn settings_are_changed_without_a_version(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut creation = decide(store.as_ref(), &prod).await;
    let record = creation.record.as_mut().unwrap();
    (record.permanent, record.require_locks) = (false, true);
    record.freeze = Some(Freeze {
        by: "ana".to_owned(),
        reason: "an \"audit\"".to_owned(),
        at: noon_plus(7),
        clients: true,
    });
    let created = record.clone();
    store.commit(creation).await.unwrap();
    let (record, first_revision) = store.tenant(&prod).await.unwrap().unwrap();
    assert_eq!(record, created);
    commit_body(store.as_ref(), &prod, "state").await;
    let versions = store.versions(&prod).await.unwrap();

    let mut seen = vec![first_revision];
    for (require_locks, encryption) in
        [(false, Some(Encryption::Optional)), (true, Some(Encryption::Required)), (false, None)]
    {
        let mut change = decide(store.as_ref(), &prod).await;
        let changed = change.record.as_mut().unwrap();
        changed.require_locks = require_locks;
        changed.encryption = encryption;
        changed.freeze = changed.freeze.take().filter(|_| !require_locks);
        let wanted = change.record.clone().unwrap();
        store.commit(change).await.unwrap();
        let (record, revision) = store.tenant(&prod).await.unwrap().unwrap();
        assert_eq!(record, wanted);
        assert!(!seen.contains(&revision), "a revision that was there before says that nothing changed");
        seen.push(revision);
        assert_eq!(store.versions(&prod).await.unwrap(), versions);
    }
}

/// A tenant that is removed takes all its versions along. Created again it counts from 1, and no revision of the old
/// one fits it.
pub async fn a_removed_tenant_comes_back_as_a_new_one(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut old_revisions = Vec::new();
    for life in 1..=3 {
        for text in ["first", "second", "third"] {
            commit_body(store.as_ref(), &prod, format!("{text} of life {life}")).await;
            let (_, revision) = store.tenant(&prod).await.unwrap().unwrap();
            assert!(!old_revisions.contains(&revision), "{revision:?} was given out before");
            old_revisions.push(revision);
        }
        let late = decide(store.as_ref(), &prod).await;
        remove(store.as_ref(), &prod).await;
        assert_eq!(store.tenant(&prod).await.unwrap(), None);
        assert_eq!(store.tenants().await.unwrap(), []);
        assert_eq!(store.versions(&prod).await.unwrap(), []);
        assert_eq!(body_of(store.as_ref(), &prod, VersionNumber::FIRST).await, None);
        assert!(matches!(store.commit(late).await, Err(CommitError::Conflict)));
    }
    let mut change = decide(store.as_ref(), &prod).await;
    let first = append_to(&mut change, |number| new_version(number, "of the last life".into(), Vec::new()));
    assert_eq!(first.version, VersionNumber::FIRST);
    store.commit(change.clone()).await.unwrap();
    let (record, revision) = store.tenant(&prod).await.unwrap().unwrap();
    assert!(!old_revisions.contains(&revision));
    assert_eq!(record.highest_serial, Some(Serial::new(1)));
    for old in old_revisions {
        let late = Change { expected: Some(old), append: None, ..change.clone() };
        assert!(matches!(store.commit(late).await, Err(CommitError::Conflict)));
    }
    assert_eq!(store.versions(&prod).await.unwrap().len(), 1);
    assert_eq!(body_of(store.as_ref(), &prod, VersionNumber::FIRST).await.unwrap(), "of the last life");
}

/// A version is marked as a snapshot by the change that appends the next one, and nothing else of it changes.
pub async fn a_snapshot_of_an_operation_is_marked(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let first = commit_body(store.as_ref(), &prod, "first").await;
    let mut change = decide(store.as_ref(), &prod).await;
    append_to(&mut change, |number| new_version(number, "second".into(), Vec::new()));
    change.mark_intermediate = Some(first.version);
    let second = change.append.as_ref().unwrap().meta.clone();
    store.commit(change).await.unwrap();
    let marked = VersionMeta { intermediate: true, ..first };
    for store in [store, fixture.open().await] {
        assert_eq!(store.versions(&prod).await.unwrap(), [marked.clone(), second.clone()]);
        assert_eq!(store.version(&prod, marked.version).await.unwrap(), Some(marked.clone()));
        let (record, _) = store.tenant(&prod).await.unwrap().unwrap();
        assert_eq!(record.head, Some(second.clone()));
        assert_eq!(body_of(store.as_ref(), &prod, marked.version).await.unwrap(), "first");
    }
}

/// A commit whose future is dropped, at any point, has happened wholly or not at all.
pub async fn a_dropped_commit_is_all_or_nothing(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    commit_body(store.as_ref(), &prod, "before").await;
    for polls in (0..12).chain([20, 40, 80]) {
        let body =
            if polls % 2 == 0 { random_bytes(300_000, 5) } else { compressible_bytes(300_000 + polls) };
        let mut change = decide(store.as_ref(), &prod).await;
        let number = append_to(&mut change, |number| new_version(number, body.clone(), Vec::new())).version;
        let record = change.record.as_mut().unwrap();
        record.lock = Some(held_lock(&format!("dropped-{polls}")));
        let held_before = store.tenant(&prod).await.unwrap().unwrap().0.lock;
        change.released = held_before.map(|held| rezus_core::declared::store::ReleasedLock {
            info: held.info,
            released_at: crate::sample::NOON,
            broken: false,
        });
        let ended = drop_after(polls, store.commit(change)).await;

        // A change that is accepted on top settles what became of the dropped one: either it came first, or it never
        // will.
        let settled = settle(store.as_ref(), &prod).await;
        let happened = settled.head.as_ref().unwrap().version == number;
        assert!(happened || !ended, "a commit that had answered is gone");
        let held = settled.lock.as_ref().map(|held| held.info.id.as_str());
        let is_its_lock = held == Some(format!("dropped-{polls}").as_str());
        assert_eq!(is_its_lock, happened, "after {polls} polls the lock and the version disagree");
        let versions = store.versions(&prod).await.unwrap();
        assert_eq!(versions.last(), settled.head.as_ref(), "after {polls} polls");
        let read = body_of(store.as_ref(), &prod, number).await;
        assert_eq!(read.is_some(), happened, "after {polls} polls the body and the version disagree");
        assert!(read.is_none_or(|read| read == body), "after {polls} polls the body is not what was written");
    }
}

/// Commits a change of a setting until it is accepted, and returns the record that it was decided on.
async fn settle(store: &dyn StateStore, tenant: &rezus_core::base::TenantName) -> TenantRecord {
    loop {
        let mut change = decide(store, tenant).await;
        let record = change.record.as_mut().unwrap();
        let found = record.clone();
        record.require_locks = !record.require_locks;
        match store.commit(change).await {
            Ok(()) => return found,
            Err(error) => assert!(matches!(error, CommitError::Conflict), "{error:?}"),
        }
    }
}

/// Returns all records with their revisions and versions.
async fn everything(store: &dyn StateStore) -> Vec<(TenantRecord, Revision, Vec<VersionMeta>)> {
    let mut all = Vec::new();
    for listed in store.tenants().await.unwrap() {
        let (record, revision) = store.tenant(&listed.name).await.unwrap().unwrap();
        assert_eq!(record, listed);
        let versions = store.versions(&record.name).await.unwrap();
        all.push((record, revision, versions));
    }
    all
}
