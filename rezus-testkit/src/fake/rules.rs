//! What a change must be: the rules that a caller of `StateStore::commit` keeps, checked so that breaking one fails a
//! test where a real store would write nonsense.

use std::collections::HashSet;

use rezus_core::declared::store::{Change, Content, NewVersion, TenantRecord};
use rezus_core::declared::{Fingerprint, Serial, VersionNumber, index::IndexRow};

/// Checks what can be told from the change alone.
pub(super) fn check_shape(change: &Change) {
    let Some(record) = &change.record else {
        assert!(
            change.append.is_none(),
            "misuse of commit: a change that removes the tenant appends a version"
        );
        assert!(
            change.mark_intermediate.is_none(),
            "misuse of commit: a removed tenant has no version to mark"
        );
        assert!(change.expected.is_some(), "misuse of commit: a tenant that was not there is removed");
        return;
    };
    assert_eq!(record.name, change.tenant, "misuse of commit: the record is another tenant's");
    assert!(
        record.head.is_none() || record.permanent,
        "misuse of commit: a tenant that was written must be permanent"
    );
    if let Some(released) = &change.released {
        let still_held = record.lock.as_ref().is_some_and(|lock| lock.info.id == released.info.id);
        assert!(!still_held, "misuse of commit: the lock that is released is still in the record");
    }
    let Some(append) = &change.append else { return };
    assert_eq!(
        record.head.as_ref(),
        Some(&append.meta),
        "misuse of commit: the record's head is not the version that is appended"
    );
    check_version(append);
}

/// Checks a version that is to be appended.
fn check_version(append: &NewVersion) {
    let NewVersion { meta, body, rows, secret_rules: _ } = append;
    assert_eq!(
        u64::try_from(body.len()),
        Ok(meta.size_bytes),
        "misuse of commit: size_bytes is not the body's length"
    );
    assert_eq!(meta.fingerprint, Fingerprint::of(body), "misuse of commit: the digests are not the body's");
    assert!(
        !meta.intermediate,
        "misuse of commit: no operation can have written a later version than a new one"
    );
    assert!(
        meta.rollback_of.is_none_or(|of| of < meta.version),
        "misuse of commit: a rollback brings back an earlier version"
    );
    match meta.content {
        Content::Plain { objects, empty } => {
            assert_eq!(u64::try_from(rows.len()), Ok(objects), "misuse of commit: one row for each object");
            assert!(!empty || objects == 0, "misuse of commit: an empty state has no objects");
        }
        Content::Encrypted => assert!(rows.is_empty(), "misuse of commit: an envelope has no rows"),
        Content::Tombstone => {
            assert!(
                rows.is_empty() && body.is_empty(),
                "misuse of commit: a tombstone has no rows and no body"
            );
            assert!(
                meta.serial.is_none() && meta.lineage.is_none() && meta.writer.is_none(),
                "misuse of commit: a tombstone says nothing of itself"
            );
        }
    }
    check_rows(rows);
    for row in rows.iter() {
        assert!(row.span.end <= meta.size_bytes, "misuse of commit: {} lies outside the body", row.address);
    }
}

/// Checks the rows of one index.
pub(super) fn check_rows(rows: &[IndexRow]) {
    let mut objects = HashSet::new();
    let mut positions = HashSet::new();
    for row in rows {
        assert!(
            objects.insert((&row.address, &row.deposed)),
            "misuse of the index: two rows for {} with deposed key {:?}",
            row.address,
            row.deposed
        );
        assert!(positions.insert(row.position), "misuse of the index: two rows at {}", row.json_path());
        assert!(row.span.start < row.span.end, "misuse of the index: {} is empty", row.address);
    }
}

/// Checks a change against the record it was decided on.
pub(super) fn check_decision(
    change: &Change,
    present: Option<&TenantRecord>,
    is_version: impl Fn(VersionNumber) -> bool,
) {
    let lock_before = present.and_then(|record| record.lock.as_ref());
    let lock_after = change.record.as_ref().and_then(|record| record.lock.as_ref());
    let let_go = lock_before
        .filter(|before| lock_after.is_none_or(|after| after.info.id != before.info.id))
        .map(|before| &before.info.id);
    let released = change.released.as_ref().map(|released| &released.info.id);
    assert_eq!(
        let_go, released,
        "misuse of commit: the lock that goes (left) is not the one released (right)"
    );

    let Some(record) = &change.record else { return };
    let head_before = present.and_then(|record| record.head.as_ref());
    let highest_before = present.and_then(|record| record.highest_serial);
    if let Some(present) = present {
        assert_eq!(record.created_at, present.created_at, "misuse of commit: a tenant is created once");
        assert!(
            record.permanent || !present.permanent,
            "misuse of commit: a permanent tenant stays permanent"
        );
    }
    if let Some(append) = &change.append {
        let next = head_before.map_or(VersionNumber::FIRST, |head| head.version.next());
        assert_eq!(
            append.meta.version, next,
            "misuse of commit: the version's number does not follow the last"
        );
        let highest: Option<Serial> = highest_before.max(append.meta.serial);
        assert_eq!(
            record.highest_serial, highest,
            "misuse of commit: highest_serial is not that of all versions"
        );
    } else {
        assert_eq!(
            record.head.as_ref().map(|head| head.version),
            head_before.map(|head| head.version),
            "misuse of commit: the head moves, and no version is appended"
        );
        assert_eq!(
            record.highest_serial, highest_before,
            "misuse of commit: highest_serial moves, and no version is appended"
        );
    }
    if let Some(marked) = change.mark_intermediate {
        assert!(is_version(marked), "misuse of commit: version {marked} is marked and does not exist");
        assert!(
            record.head.as_ref().is_some_and(|head| marked < head.version),
            "misuse of commit: version {marked} is marked intermediate, and none follows it"
        );
    }
}
