//! What the server holds.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use rezus_core::base::Timestamp;
use serde_json::Value;

/// How many changes are known to those who watch.
const KNOWN: usize = 10_000;

/// A change, as a watcher is told it.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) version: u64,
    pub(super) resource: &'static str,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub(super) kind: &'static str,
    pub(super) object: Arc<str>,
}

/// Objects, written out: tens of thousands of them are held at little cost.
#[derive(Debug)]
pub(super) struct World {
    pub(super) version: u64,
    pub(super) told: Option<u64>,
    pub(super) uid: String,
    pub(super) leases: BTreeMap<String, Timestamp>,
    objects: BTreeMap<&'static str, BTreeMap<String, Arc<str>>>,
    changes: VecDeque<Change>,
    /// Changes up to this one are forgotten.
    forgotten: u64,
}

impl Default for World {
    fn default() -> Self {
        Self {
            version: 1_000,
            told: None,
            uid: "6f0e3c7e-0000-4000-8000-00000000cafe".to_owned(),
            leases: BTreeMap::new(),
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
            forgotten: 0,
        }
    }
}

/// One page of a list.
pub(super) struct Page {
    pub(super) items: Vec<Arc<str>>,
    /// The last key, where there are more.
    pub(super) next: Option<String>,
}

fn place(object: &Value) -> Option<(&'static str, String)> {
    let name = object["metadata"]["name"].as_str()?;
    match object["kind"].as_str()? {
        "Node" => Some(("nodes", name.to_owned())),
        "Pod" => Some(("pods", format!("{}/{name}", object["metadata"]["namespace"].as_str()?))),
        _ => None,
    }
}

impl World {
    pub(super) fn put(&mut self, mut object: Value) {
        let (resource, key) = place(&object).expect("a Node or a Pod with a name");
        let version = self.next();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let object: Arc<str> = object.to_string().into();
        let before = self.objects.entry(resource).or_default().insert(key, Arc::clone(&object));
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.note(Change { version, resource, kind, object });
    }

    pub(super) fn get(&self, resource: &str, key: &str) -> Option<Value> {
        serde_json::from_str(self.objects.get(resource)?.get(key)?).ok()
    }

    pub(super) fn remove(&mut self, resource: &str, key: &str) {
        let version = self.next();
        let Some(mut object) = self.get(resource, key) else { return };
        let Some((resource, key)) = place(&object) else { return };
        object["metadata"]["resourceVersion"] = version.to_string().into();
        self.objects.entry(resource).or_default().remove(&key);
        self.note(Change { version, resource, kind: "DELETED", object: object.to_string().into() });
    }

    pub(super) fn renew(&mut self, name: &str, at: Timestamp) {
        self.version += 1;
        self.leases.insert(name.to_owned(), at);
    }

    pub(super) fn compact(&mut self) {
        self.version += 1;
        self.forgotten = self.version;
        self.changes.clear();
    }

    pub(super) fn names(&self, resource: &str) -> Vec<String> {
        self.objects.get(resource).map(|objects| objects.keys().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn page(&self, resource: &str, after: Option<&str>, limit: usize) -> Page {
        let Some(objects) = self.objects.get(resource) else {
            return Page { items: Vec::new(), next: None };
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut rest = objects.range::<str, _>((from, Bound::Unbounded)).peekable();
        let mut items = Vec::new();
        let mut last = None;
        while items.len() < limit
            && let Some((key, object)) = rest.next()
        {
            items.push(Arc::clone(object));
            last = Some(key.clone());
        }
        Page { items, next: last.filter(|_| rest.peek().is_some()) }
    }

    /// What came after a version; `None` where that is forgotten.
    pub(super) fn since(&self, resource: &str, version: u64) -> Option<Vec<Change>> {
        if version < self.forgotten {
            return None;
        }
        let later = self.changes.iter().rev().take_while(|change| change.version > version);
        let mut later: Vec<_> = later.filter(|change| change.resource == resource).cloned().collect();
        later.reverse();
        Some(later)
    }

    fn next(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    fn note(&mut self, change: Change) {
        if self.changes.len() == KNOWN
            && let Some(oldest) = self.changes.pop_front()
        {
            self.forgotten = oldest.version;
        }
        self.changes.push_back(change);
    }
}
