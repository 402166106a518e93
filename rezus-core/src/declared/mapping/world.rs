//! All objects that rules may look at: read when first needed, and found by the values that they have.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::context::{block_address, type_name};
use super::dom::{Object, Wanted};
use super::eval::{Kept, Want};
use super::rule::Join;
use super::visit::{Base, Visit};
use super::{Inner, ip};
use crate::declared::index::IndexRow;

/// Rows by the comparable text of a value.
pub(super) type Index = HashMap<String, Vec<usize>>;
/// What was found by following dependencies: by rule, block and module.
pub(super) type KeptKey = (usize, String, String, Want);

/// The objects of a state, or those of them that are at hand; several threads may look at them.
pub(super) struct World<'a> {
    pub(super) mappings: &'a Inner,
    rows: Vec<(&'a IndexRow, &'a [u8])>,
    objects: Vec<OnceLock<Object<'a>>>,
    by_type: HashMap<String, Vec<usize>>,
    indexes: Vec<OnceLock<Index>>,
    blocks: OnceLock<Index>,
    kept: Mutex<HashMap<KeptKey, Arc<Kept>>>,
}

impl<'a> World<'a> {
    pub(super) fn new(mappings: &'a Inner, rows: Vec<(&'a IndexRow, &'a [u8])>) -> Self {
        let mut by_type: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, (row, _)) in rows.iter().enumerate() {
            let name = type_name(row);
            if row.deposed.is_none() && mappings.used.contains(&*name) {
                by_type.entry(name.into_owned()).or_default().push(at);
            }
        }
        for found in by_type.values_mut() {
            found.sort_by_key(|at| rows.get(*at).map(|(row, _)| row.position));
        }
        let (mut objects, mut indexes) = (Vec::new(), Vec::new());
        objects.resize_with(rows.len(), OnceLock::new);
        indexes.resize_with(mappings.joins, OnceLock::new);
        Self { mappings, rows, objects, by_type, indexes, blocks: OnceLock::new(), kept: Mutex::default() }
    }

    pub(super) fn row(&self, at: usize) -> Option<&'a IndexRow> {
        self.rows.get(at).map(|(row, _)| *row)
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Reads an object that no other one looks at.
    pub(super) fn read(&self, at: usize) -> Option<Object<'a>> {
        let (row, bytes) = self.rows.get(at)?;
        Some(self.read_row(row, bytes))
    }

    fn read_row(&self, row: &IndexRow, bytes: &'a [u8]) -> Object<'a> {
        let nothing = Wanted::default();
        let wanted = self.mappings.wanted.get(&*type_name(row)).unwrap_or(&nothing);
        Object::read(bytes, row, wanted)
    }

    /// Returns an object that others look at; it is read once.
    pub(super) fn object(&self, at: usize) -> Option<&Object<'a>> {
        let (cell, (row, bytes)) = (self.objects.get(at)?, self.rows.get(at)?);
        Some(cell.get_or_init(|| self.read_row(row, bytes)))
    }

    /// Returns what was found by following dependencies, if it was.
    pub(super) fn kept(&self, key: &KeptKey) -> Option<Arc<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// Keeps what was found by following dependencies: whoever does finds the same.
    pub(super) fn keep(&self, key: KeptKey, kept: Arc<Kept>) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(key, kept);
    }

    /// Returns the rows that have a value at the join's first path; those whose objects are too large to tell are
    /// not among them.
    pub(super) fn index(&self, join: &Join) -> Option<&Index> {
        self.indexes.get(join.number).map(|index| index.get_or_init(|| self.indexed(join)))
    }

    fn indexed(&self, join: &Join) -> Index {
        let mut index = Index::new();
        if let Some((theirs, _)) = join.pairs.first() {
            for at in join.types.iter().filter_map(|name| self.by_type.get(name)).flatten() {
                let (Some(object), Some(row)) = (self.object(*at), self.row(*at)) else { continue };
                let mut visit = Visit::new();
                let root = visit.root(&object.attributes, *at);
                let texts = visit.quiet_texts(theirs, Base { root, element: None });
                let keys: BTreeSet<String> =
                    texts.iter().map(|text| join_key(join, &row.module, &ip::comparable(text))).collect();
                for key in keys {
                    index.entry(key).or_default().push(*at);
                }
            }
        }
        index
    }

    /// Returns the rows of a block of the configuration, in the order of the state.
    pub(super) fn block(&self, address: &str) -> &[usize] {
        let blocks = self.blocks.get_or_init(|| {
            let mut blocks = Index::new();
            for (at, row) in self.by_type.values().flatten().filter_map(|at| Some((*at, self.row(*at)?))) {
                blocks.entry(block_address(row)).or_default().push(at);
            }
            blocks
        });
        blocks.get(address).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Returns what a value is found by.
pub(super) fn join_key(join: &Join, module: &str, value: &str) -> String {
    if join.is_same_module { format!("{module}\n{value}") } else { value.to_owned() }
}
