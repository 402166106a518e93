//! The laws of lists, changes and resource versions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::kube::item::Row;
use crate::kube::kinds::{MACHINE, NODE_GROUP};
use crate::kube::object::Object;

fn draft(namespace: &str, name: &str, text: &str) -> Draft {
    let mut object = Object::bare(&MACHINE, name).within(namespace);
    object.annotate("text", text.to_owned());
    Draft::new(&MACHINE, object, Vec::new(), Row::default().text(Some(name)))
}

type Shown = BTreeMap<(String, String), (u64, String)>;

fn shown(items: &[Arc<Item>]) -> Shown {
    let one = |item: &Arc<Item>| {
        let json: serde_json::Value = serde_json::from_slice(item.shown().json()).unwrap();
        assert_eq!(json["metadata"]["resourceVersion"], format!("{:016}", item.version()));
        let text = json["metadata"]["annotations"]["text"].as_str().unwrap().to_owned();
        ((item.namespace().to_owned(), item.name().to_owned()), (item.version(), text))
    };
    items.iter().map(one).collect()
}

fn follow(state: &mut Shown, batch: &Batch) {
    for change in &batch.changes {
        let (item, version) = (change.after.as_ref().or(change.before.as_ref()).unwrap(), change.version);
        let key = (item.namespace().to_owned(), item.name().to_owned());
        let known = state.get(&key).map(|(version, _)| *version);
        assert_eq!(known, change.before.as_ref().map(|item| item.version()), "{key:?} at {version}");
        match &change.after {
            Some(after) => {
                let (key, (version, text)) = shown(std::slice::from_ref(after)).pop_first().unwrap();
                assert_eq!(version, change.version);
                state.insert(key, (version, text));
            }
            None => {
                state.remove(&key);
            }
        }
    }
}

proptest! {
    /// Whoever lists at any moment and follows the changes knows what a later list shows.
    #[test]
    fn a_list_and_what_follows_it_is_the_later_list(
        steps in proptest::collection::vec(
            (0..3_usize, proptest::collection::btree_map(0..6_u8, 0..3_u8, 0..6), 0..3_u64), 1..12),
        at_most in 1..5_usize,
    ) {
        let hub = Hub::new(1_000);
        let mut lists = vec![hub.snapshot(&MACHINE)];
        let mut now = 1_000;
        for (tenant, objects, passed) in steps {
            let namespace = ["a", "b", "c"][tenant];
            now += passed;
            let drafts = objects.iter().map(|(name, text)| draft(namespace, &format!("m{name}"), &text.to_string()));
            hub.publish(&MACHINE, Part::Namespace(namespace), drafts.collect(), now);
            let list = hub.snapshot(&MACHINE);
            let keys: Vec<_> = list.items.iter().map(|item| item.key()).collect();
            prop_assert!(keys.is_sorted());
            prop_assert!(list.items.iter().all(|item| item.version() <= list.version));
            prop_assert!(list.version >= lists.last().unwrap().version);
            lists.push(list);
        }
        let last = lists.last().unwrap();
        for list in &lists {
            let (mut state, mut version) = (shown(&list.items), list.version);
            while version < last.version {
                let batch = hub.after(&MACHINE, version, at_most).unwrap();
                prop_assert!(batch.complete_to > version);
                prop_assert!(batch.changes.iter().all(|change| change.version > version));
                follow(&mut state, &batch);
                version = batch.complete_to;
            }
            prop_assert_eq!(&state, &shown(&last.items));
        }
    }
}

#[test]
fn what_is_shown_as_before_is_no_change() {
    let hub = Hub::new(10);
    assert_eq!(hub.publish(&MACHINE, Part::Whole, vec![draft("a", "x", "1"), draft("a", "y", "1")], 0), 2);
    assert_eq!(hub.newest(), 12);
    assert_eq!(hub.publish(&MACHINE, Part::Whole, vec![draft("a", "y", "1"), draft("a", "x", "1")], 99), 0);
    assert_eq!(hub.newest(), 12);
    assert_eq!(hub.publish(&MACHINE, Part::Whole, vec![draft("a", "y", "2")], 99), 2);
    assert_eq!(hub.newest(), 100);
}

#[test]
fn a_version_out_of_the_window_is_told() {
    let hub = Hub::new(10);
    assert_eq!(hub.after(&MACHINE, 9, 5).unwrap_err(), OutOfWindow { oldest: 10, newest: 10 });
    assert_eq!(hub.after(&MACHINE, 11, 5).unwrap_err(), OutOfWindow { oldest: 10, newest: 10 });
    assert_eq!(hub.after(&MACHINE, 10, 5).unwrap().complete_to, 10);
    for round in 0..=KEPT_CHANGES {
        hub.publish(&MACHINE, Part::Whole, vec![draft("a", "x", &round.to_string())], 0);
    }
    let oldest = hub.after(&MACHINE, 10, 5).unwrap_err().oldest;
    assert_eq!(oldest, 11);
    assert_eq!(hub.after(&MACHINE, oldest, 1).unwrap().changes.len(), 1);
    // Another kind's changes are none of this one's, and yet it is known to be complete.
    let batch = hub.after(&NODE_GROUP, oldest, usize::MAX).unwrap();
    assert_eq!((batch.changes.len(), batch.complete_to), (0, hub.newest()));
}

#[test]
fn lists_are_known_again_while_nothing_changed_or_they_are_kept() {
    let hub = Hub::new(10);
    hub.publish(&MACHINE, Part::Whole, vec![draft("a", "x", "1")], 0);
    let first = hub.snapshot(&MACHINE);
    hub.publish(&NODE_GROUP, Part::Whole, Vec::new(), 0);
    assert!(Arc::ptr_eq(&hub.snapshot_at(&MACHINE, first.version).unwrap().items, &first.items));
    assert!(hub.snapshot_at(&MACHINE, first.version + 1).is_none());
    hub.publish(&MACHINE, Part::Whole, vec![draft("a", "x", "2")], 0);
    assert!(hub.snapshot_at(&MACHINE, first.version).is_none());
    hub.keep(&MACHINE, &first);
    assert!(Arc::ptr_eq(&hub.snapshot_at(&MACHINE, first.version).unwrap().items, &first.items));
    assert!(hub.snapshot_at(&NODE_GROUP, 9).is_none());
}

#[test]
fn the_log_keeps_no_more_bytes_than_it_may() {
    let hub = Hub::new(1);
    let large = "x".repeat(1 << 20);
    for round in 0..40_u64 {
        hub.publish(&MACHINE, Part::Whole, vec![draft("a", "m", &format!("{round}{large}"))], round);
    }
    let window = hub.after(&MACHINE, 1, 1_000).unwrap_err();
    let kept = hub.after(&MACHINE, window.oldest, 1_000).unwrap().changes;
    // A little more than two times 1 MiB each: the object before and the one after.
    assert_eq!(kept.len(), 31);
    assert_eq!(kept.last().unwrap().version, hub.newest());
}

#[test]
fn lists_that_are_kept_have_no_more_objects_together_than_they_may() {
    let hub = Hub::new(1_000);
    hub.publish(&MACHINE, Part::Whole, vec![draft("a", "m", "")], 1_000);
    let item = Arc::clone(&hub.snapshot(&MACHINE).items[0]);
    for version in 1..=3 {
        let items = vec![Arc::clone(&item); KEPT_OBJECTS / 2].into();
        hub.keep(&MACHINE, &Snapshot { version, items });
    }
    let is_kept = [1, 2, 3].map(|version| hub.snapshot_at(&MACHINE, version).is_some());
    assert_eq!(is_kept, [false, true, true]);
    // One that is larger than all may be is kept all the same: its reader could not go on otherwise.
    let items = vec![item; KEPT_OBJECTS + 1].into();
    hub.keep(&MACHINE, &Snapshot { version: 4, items });
    assert!(hub.snapshot_at(&MACHINE, 4).is_some() && hub.snapshot_at(&MACHINE, 3).is_none());
}
