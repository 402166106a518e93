//! Puts new objects in the place of old ones, and tells what that changes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Change, Part};
use crate::kube::item::{Draft, Item, Packer};

/// What comes of it.
pub(super) struct Merged {
    pub(super) items: Arc<[Arc<Item>]>,
    pub(super) changes: Vec<Change>,
}

/// Replaces a part of `items`, which are sorted. The first change gets the version `next`.
pub(super) fn merge(items: &[Arc<Item>], part: Part<'_>, mut drafts: Vec<Draft>, next: u64) -> Merged {
    drafts.sort_by(|a, b| a.key().cmp(&b.key()));
    let (from, to) = range(items, part);
    let mut merged: Vec<Arc<Item>> = Vec::with_capacity(items.len() - (to - from) + drafts.len());
    merged.extend(items.iter().take(from).cloned());
    // Those of the same tenant are most like one another.
    let near = items.get(from).or_else(|| items.get(from.checked_sub(1)?));
    let packer = Packer::like(near.map(Arc::as_ref));
    let mut changes = Changes { list: Vec::new(), next, packer };
    let mut old = items.iter().take(to).skip(from).peekable();
    for draft in drafts {
        while let Some(gone) = old.next_if(|item| item.key() < draft.key()) {
            changes.gone(gone);
        }
        match old.next_if(|item| item.key().cmp(&draft.key()) == Ordering::Equal) {
            Some(item) if draft.is_shown_by(item) => merged.push(Arc::clone(item)),
            before => merged.push(changes.came(before, draft)),
        }
    }
    for gone in old {
        changes.gone(gone);
    }
    merged.extend(items.iter().skip(to).cloned());
    Merged { items: merged.into(), changes: changes.list }
}

struct Changes {
    list: Vec<Change>,
    next: u64,
    packer: Packer,
}

impl Changes {
    fn version(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn came(&mut self, before: Option<&Arc<Item>>, draft: Draft) -> Arc<Item> {
        let version = self.version();
        let item = Arc::new(self.packer.item(draft, version));
        let change = Change { version, before: before.cloned(), after: Some(Arc::clone(&item)) };
        self.list.push(change);
        item
    }

    fn gone(&mut self, item: &Arc<Item>) {
        let version = self.version();
        self.list.push(Change { version, before: Some(Arc::clone(item)), after: None });
    }
}

fn range(items: &[Arc<Item>], part: Part<'_>) -> (usize, usize) {
    let bounds = |key: &dyn Fn(&Item) -> Ordering| {
        let from = items.partition_point(|item| key(item) == Ordering::Less);
        let to = items.partition_point(|item| key(item) != Ordering::Greater);
        (from, to)
    };
    match part {
        Part::Whole => (0, items.len()),
        Part::Namespace(namespace) => bounds(&|item| item.namespace().cmp(namespace)),
        Part::Name(name) => bounds(&|item| item.key().cmp(&("", name))),
    }
}
