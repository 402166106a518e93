//! Puts new objects in the place of old ones, and tells what that changes.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Change, Part};
use crate::kube::item::{Draft, Item, Packer, Piece};

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

/// Has objects say what was observed of them. `pieces` are by name; nothing where none says anything else.
pub(super) fn observe(
    items: &[Arc<Item>],
    namespace: &str,
    pieces: &[(&str, Piece)],
    next: u64,
) -> Option<Merged> {
    let mut changes = Changes { list: Vec::new(), next, packer: Packer::default() };
    let mut places = Vec::new();
    for (name, piece) in pieces {
        let Ok(place) = items.binary_search_by(|item| item.key().cmp(&(namespace, *name))) else { continue };
        let Some(item) = items.get(place).filter(|item| !item.says(piece)) else { continue };
        if places.is_empty() {
            changes.packer = Packer::like(Some(item));
        }
        places.push((place, changes.observed(item, piece)));
    }
    if places.is_empty() {
        return None;
    }
    let mut merged = items.to_vec();
    for (place, item) in places {
        if let Some(old) = merged.get_mut(place) {
            *old = item;
        }
    }
    Some(Merged { items: merged.into(), changes: changes.list })
}

/// Adds objects to those that are there.
pub(super) fn add(items: &[Arc<Item>], drafts: Vec<Draft>, next: u64) -> Merged {
    let mut merged = items.to_vec();
    let mut changes =
        Changes { list: Vec::new(), next, packer: Packer::like(items.first().map(Arc::as_ref)) };
    for draft in drafts {
        match merged.binary_search_by(|item| item.key().cmp(&draft.key())) {
            Ok(place) => {
                if let Some(old) = merged.get_mut(place).filter(|old| !draft.is_shown_by(old)) {
                    *old = changes.came(Some(&Arc::clone(old)), draft);
                }
            }
            Err(place) => merged.insert(place, changes.came(None, draft)),
        }
    }
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
        let item = Arc::new(self.packer.item(draft, version, before.map(Arc::as_ref)));
        let change = Change { version, before: before.cloned(), after: Some(Arc::clone(&item)) };
        self.list.push(change);
        item
    }

    fn observed(&mut self, before: &Arc<Item>, piece: &Piece) -> Arc<Item> {
        let version = self.version();
        let item = Arc::new(self.packer.observed(before, piece, version));
        self.list.push(Change { version, before: Some(Arc::clone(before)), after: Some(Arc::clone(&item)) });
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
