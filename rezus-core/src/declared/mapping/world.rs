//! All objects that rules may look at: read when first needed, and found by the values that they have.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

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

/// The objects of a state, or those of them that are at hand.
pub(super) struct World<'a> {
    pub(super) mappings: &'a Inner,
    rows: Vec<(&'a IndexRow, &'a [u8])>,
    objects: Vec<OnceCell<Object<'a>>>,
    by_type: HashMap<String, Vec<usize>>,
    indexes: RefCell<HashMap<usize, Rc<Index>>>,
    blocks: OnceCell<Index>,
    pub(super) kept: RefCell<HashMap<KeptKey, Rc<Kept>>>,
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
        let mut objects = Vec::new();
        objects.resize_with(rows.len(), OnceCell::new);
        let (indexes, kept) = (RefCell::default(), RefCell::default());
        Self { mappings, rows, objects, by_type, indexes, blocks: OnceCell::new(), kept }
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
        let nothing = Wanted::default();
        let wanted = self.mappings.wanted.get(&*type_name(row)).unwrap_or(&nothing);
        Some(Object::read(bytes, row, wanted))
    }

    /// Returns an object that others look at; it is read once.
    pub(super) fn object(&self, at: usize) -> Option<&Object<'a>> {
        let cell = self.objects.get(at)?;
        if cell.get().is_none() {
            let object = self.read(at)?;
            return Some(cell.get_or_init(|| object));
        }
        cell.get()
    }

    /// Returns the rows that have a value at the join's first path; those whose objects are too large to tell are
    /// not among them.
    pub(super) fn index(&self, join: &Join) -> Rc<Index> {
        if let Some(index) = self.indexes.borrow().get(&join.number) {
            return Rc::clone(index);
        }
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
        let index = Rc::new(index);
        self.indexes.borrow_mut().insert(join.number, Rc::clone(&index));
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
