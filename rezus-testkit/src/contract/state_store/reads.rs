//! Reads: what was written is what is read.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use bytes::Bytes;
use rezus_core::base::Timestamp;
use rezus_core::declared::store::{Content, VersionMeta};
use rezus_core::declared::{Lineage, Serial, VersionNumber};

use super::StateStoreFixture;
use crate::sample::{
    NOON, body_of, commit_body, commit_version, compressible_bytes, encrypted_version, lock_id, new_version,
    random_bytes, tenant, tombstone, version,
};

/// What was never written is absent, and asking for it is no error.
pub async fn what_is_not_there_is_none(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (nobody, first) = (tenant("nobody"), VersionNumber::FIRST);
    assert_eq!(store.tenants().await.unwrap(), []);
    assert_eq!(store.tenant(&nobody).await.unwrap(), None);
    assert_eq!(store.versions(&nobody).await.unwrap(), []);
    assert_eq!(store.version(&nobody, first).await.unwrap(), None);
    assert_eq!(store.read(&nobody, first, 0..10).await.unwrap(), None);
    assert_eq!(store.trace_lock(&lock_id("nobody"), NOON).await.unwrap(), None);
    assert_eq!(store.refusals(&nobody).await.unwrap(), []);
    assert!(!store.set_pinned(&nobody, first, true).await.unwrap());
    assert_eq!(store.remove_versions(&nobody, &[first]).await.unwrap(), 0);
    assert_eq!(store.tenants().await.unwrap(), []);
}

/// What a commit wrote is seen by every read that begins afterwards, through any handle.
pub async fn a_write_is_read_by_every_handle(fixture: &dyn StateStoreFixture) {
    let (one, other) = (fixture.open().await, fixture.open().await);
    let prod = tenant("prod");
    for (writer, reader, text) in [(&one, &other, "first"), (&other, &one, "second"), (&one, &other, "third")]
    {
        let meta = commit_body(writer.as_ref(), &prod, text).await;
        for store in [reader, writer] {
            let (record, _) = store.tenant(&prod).await.unwrap().unwrap();
            assert_eq!(record.head.as_ref(), Some(&meta));
            assert_eq!(store.version(&prod, meta.version).await.unwrap().as_ref(), Some(&meta));
            assert_eq!(store.versions(&prod).await.unwrap().last(), Some(&meta));
            assert_eq!(body_of(store.as_ref(), &prod, meta.version).await.unwrap(), text);
        }
    }
}

/// A version never written or removed is `None`, whatever its neighbours are.
pub async fn a_tenant_without_versions_has_none(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (empty, prod) = (tenant("empty"), tenant("prod"));
    store.commit(crate::sample::decide(store.as_ref(), &empty).await).await.unwrap();
    let (record, _) = store.tenant(&empty).await.unwrap().unwrap();
    assert_eq!((record.head, record.highest_serial), (None, None));
    commit_body(store.as_ref(), &prod, "state").await;
    for (name, number) in [(&empty, 1), (&prod, 2), (&prod, u64::MAX)] {
        assert_eq!(store.version(name, version(number)).await.unwrap(), None, "{name} {number}");
        assert_eq!(store.read(name, version(number), 0..5).await.unwrap(), None, "{name} {number}");
        assert!(!store.set_pinned(name, version(number), true).await.unwrap(), "{name} {number}");
    }
    assert_eq!(store.versions(&empty).await.unwrap(), []);
}

/// Bodies of any size and content come back byte for byte; those around the sizes at which adapters change their ways
/// are tried one by one.
pub async fn bodies_are_kept_byte_for_byte(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut bodies: Vec<Bytes> = vec![Bytes::from_static(b"\0"), Bytes::from_static(b"\xff\xfe\r\n")];
    for length in [0, 1, 4095, 4096, 65_535, 65_536, 65_537, 131_072] {
        bodies.push(random_bytes(length, 7));
        bodies.push(compressible_bytes(length));
    }
    for body in &bodies {
        commit_body(store.as_ref(), &prod, body.clone()).await;
    }
    for (number, body) in (1..).zip(&bodies) {
        let read = body_of(store.as_ref(), &prod, version(number)).await.unwrap();
        assert_eq!(read.len(), body.len());
        assert!(read == body, "a body of {} bytes comes back changed", body.len());
    }
}

/// Bodies of some megabytes are kept, whether they compress or not.
pub async fn a_large_body_is_kept(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    for (number, body) in (1..).zip([random_bytes(3_000_001, 1), compressible_bytes(3_000_001)]) {
        commit_body(store.as_ref(), &prod, body.clone()).await;
        let read = fixture.open().await.read(&prod, version(number), 0..u64::MAX).await.unwrap().unwrap();
        assert!(read == body, "version {number} comes back changed");
        for start in [0, 1_499_999, 2_999_000] {
            let end = start + 1_001;
            let part = store.read(&prod, version(number), start..end).await.unwrap().unwrap();
            let range = usize::try_from(start).unwrap()..usize::try_from(end).unwrap();
            assert!(part == body[range], "{start}..{end} of version {number} is not what was written");
        }
    }
}

/// Any range of a body is read exactly; what lies beyond its end is cut off, and nothing there is no error.
pub async fn every_part_of_a_body_can_be_read(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut number = 0;
    for length in [0_usize, 1, 65_536, 200_003] {
        for body in [random_bytes(length, 3), compressible_bytes(length)] {
            number += 1;
            commit_body(store.as_ref(), &prod, body.clone()).await;
            let mut marks: Vec<usize> =
                vec![0, 1, 2, 4095, 4096, 4097, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 196_608];
            marks.extend([length.saturating_sub(1), length, length + 1, length + 70_000]);
            for &start in &marks {
                for &end in marks.iter().filter(|end| **end >= start) {
                    let range = u64::try_from(start).unwrap()..u64::try_from(end).unwrap();
                    let part = store.read(&prod, version(number), range.clone()).await.unwrap().unwrap();
                    let wanted = &body[start.min(length)..end.min(length)];
                    assert!(part == wanted, "{range:?} of {length} bytes is not what was written");
                }
            }
            let whole = store.read(&prod, version(number), 0..u64::MAX).await.unwrap().unwrap();
            assert!(whole == body);
            let beyond = store.read(&prod, version(number), u64::MAX - 1..u64::MAX).await.unwrap();
            assert_eq!(beyond, Some(Bytes::new()));
        }
    }
}

/// Versions are listed oldest first, all of them, tombstones and snapshots of operations included.
pub async fn versions_are_listed_oldest_first(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let (prod, other) = (tenant("prod"), tenant("prod-2"));
    let mut written = Vec::new();
    for number in 1..=12_u64 {
        let meta = if number % 5 == 0 {
            commit_version(store.as_ref(), &prod, tombstone).await
        } else {
            commit_body(store.as_ref(), &prod, format!("state {number}")).await
        };
        written.push(meta);
        commit_body(store.as_ref(), &other, "another tenant's").await;
    }
    assert_eq!(store.versions(&prod).await.unwrap(), written);
    assert_eq!(written.first().map(|meta| meta.version), Some(VersionNumber::FIRST));
    for meta in &written {
        assert_eq!(store.version(&prod, meta.version).await.unwrap().as_ref(), Some(meta));
    }
}

/// A tombstone is the newest version: it has no bytes and says nothing of itself.
pub async fn a_tombstone_is_a_version_without_bytes(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    commit_body(store.as_ref(), &prod, "state").await;
    let meta = commit_version(store.as_ref(), &prod, tombstone).await;
    let (record, _) = store.tenant(&prod).await.unwrap().unwrap();
    assert_eq!(record.head, Some(meta.clone()));
    assert_eq!(meta.content, Content::Tombstone);
    assert_eq!(record.highest_serial, Some(Serial::new(1)));
    assert_eq!(body_of(store.as_ref(), &prod, meta.version).await, Some(Bytes::new()));
    assert_eq!(body_of(store.as_ref(), &prod, VersionNumber::FIRST).await.unwrap(), "state");
}

/// Every fact of a version comes back exactly: in the record, in the list, alone, and after reopening.
pub async fn every_fact_of_a_version_is_kept(fixture: &dyn StateStoreFixture) {
    let store = fixture.open().await;
    let prod = tenant("prod");
    let mut written: Vec<VersionMeta> = Vec::new();
    for change in odd_versions() {
        let meta = commit_version(store.as_ref(), &prod, |number| {
            let body = Bytes::from(format!("state {number}"));
            let mut new = new_version(number, body, Vec::new());
            change(&mut new.meta);
            if new.meta.content == Content::Encrypted {
                new.meta.writer = None;
            }
            new
        })
        .await;
        written.push(meta);
    }
    written.push(commit_version(store.as_ref(), &prod, tombstone).await);
    written.push(commit_version(store.as_ref(), &prod, |n| encrypted_version(n, random_bytes(99, 9))).await);
    for store in [store, fixture.open().await] {
        assert_eq!(store.versions(&prod).await.unwrap(), written);
        for meta in &written {
            assert_eq!(store.version(&prod, meta.version).await.unwrap().as_ref(), Some(meta));
        }
        let (record, _) = store.tenant(&prod).await.unwrap().unwrap();
        assert_eq!(record.head.as_ref(), written.last());
        assert_eq!(record.highest_serial, Some(Serial::new(u64::MAX)));
    }
}

/// Gives a version a fact that is easily lost.
type OddVersion = Box<dyn Fn(&mut VersionMeta) + Send>;

/// Changes that each give a version another fact that is easily lost.
fn odd_versions() -> Vec<OddVersion> {
    let plain = |objects, empty| Content::Plain { objects, empty };
    let mut odd: Vec<OddVersion> = vec![
        Box::new(|meta| meta.serial = Some(Serial::new(0))),
        Box::new(|meta| meta.serial = Some(Serial::new(9_007_199_254_740_993))),
        Box::new(|meta| meta.serial = Some(Serial::new(9_223_372_036_854_775_807))),
        Box::new(|meta| meta.serial = Some(Serial::new(9_223_372_036_854_775_808))),
        Box::new(|meta| meta.serial = Some(Serial::new(u64::MAX))),
        Box::new(|meta| meta.serial = None),
        Box::new(|meta| meta.lineage = None),
        Box::new(|meta| meta.writer = None),
        Box::new(move |meta| meta.content = plain(0, true)),
        Box::new(move |meta| meta.content = plain(0, false)),
        Box::new(|meta| meta.content = Content::Encrypted),
        Box::new(|meta| {
            meta.content = Content::Encrypted;
            (meta.serial, meta.lineage) = (None, None);
        }),
        Box::new(|meta| meta.written_at = Timestamp::from_millis(-1)),
        Box::new(|meta| meta.written_at = Timestamp::from_millis(253_402_300_799_999)),
        Box::new(|meta| meta.lock_id = Some(lock_id("ÄÖ 'x' \"y\" \u{202e}"))),
        Box::new(|meta| meta.lock_id = Some(lock_id(&"ß".repeat(256)))),
        Box::new(|meta| meta.forced = true),
        Box::new(|meta| meta.unlocked = false),
        Box::new(|meta| meta.pinned = true),
        Box::new(|meta| meta.rollback_of = Some(VersionNumber::FIRST)),
    ];
    for text in
        ["", " ", "1.12.6-beta1+x", "'; DROP TABLE x; --", "a\0b", "\u{10ffff}\u{fffd}\n\t\"\\", "null"]
    {
        odd.push(Box::new(move |meta| meta.lineage = Some(Lineage::new(text))));
        odd.push(Box::new(move |meta| meta.writer = Some(text.to_owned())));
        odd.push(Box::new(move |meta| text.clone_into(&mut meta.written_by)));
        odd.push(Box::new(move |meta| meta.lock_operation = Some(text.to_owned())));
    }
    odd
}
