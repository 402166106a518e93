//! Where the fields of a spec come from, in little space.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::Source;
use crate::declared::ResourceAddress;
use crate::declared::index::{IndexRow, json_path};

/// Where a value was read. A state has very many of these: what several of them have in common, they share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The object, by its address.
    pub address: ResourceAddress,
    /// The deposed key, if it is an old generation.
    pub deposed: Option<Box<str>>,
    /// The object's position in the state.
    pub position: (u32, u32),
    /// Where in the object, and by which rule.
    pub place: Arc<Place>,
}

/// A place in objects of one shape, and the rule that reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The JSON path (RFC 9535) below the object: `.attributes.name`; empty for what is the object's own.
    pub below: Box<str>,
    /// The rule, in the mapping's words.
    pub rule: Box<str>,
}

/// Each place once.
#[derive(Debug, Default)]
pub(in crate::declared) struct Places {
    known: HashMap<Box<str>, Arc<Place>>,
    key: String,
}

/// Where each field of a spec comes from, by the API's name of the field (`addresses[0].address` for an element),
/// sorted.
///
/// A tenant may have thousands of machines of which hardly any is ever asked for this, so those whose fields were read
/// in the same places by the same rules share all of it but the objects.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    objects: Box<[Object]>,
    shape: Arc<Shape>,
}

#[derive(Clone, PartialEq, Eq)]
struct Object {
    address: ResourceAddress,
    deposed: Option<Box<str>>,
    position: (u32, u32),
}

/// What the fields are, and where in which of the objects each was read.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
struct Shape {
    entries: Vec<Entry>,
    /// Field, path below the object and rule of each entry, one behind the other.
    text: String,
}

/// Where the parts of an entry end in the text, and which object it is of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    object: u32,
    field: u32,
    below: u32,
    rule: u32,
}

/// Each shape once.
#[derive(Default)]
pub(in crate::declared) struct Shapes {
    known: HashSet<Arc<Shape>>,
    next: Shape,
}

impl Spot {
    pub(in crate::declared) fn new(row: &IndexRow, place: Arc<Place>) -> Self {
        Self {
            address: row.address.clone(),
            deposed: row.deposed.as_deref().map(Into::into),
            position: row.position,
            place,
        }
    }

    /// Returns the JSON path (RFC 9535) of the value in the state.
    pub fn path(&self) -> String {
        json_path(self.position) + &self.place.below
    }
}

impl Places {
    /// Returns the place below an object that `below` spells, and a rule reads.
    pub(in crate::declared) fn of(&mut self, rule: &str, below: impl FnOnce(&mut String)) -> Arc<Place> {
        self.key.clear();
        below(&mut self.key);
        let length = self.key.len();
        // Paths have no such character: it is escaped there.
        self.key.push('\0');
        self.key.push_str(rule);
        if let Some(place) = self.known.get(self.key.as_str()) {
            return Arc::clone(place);
        }
        let below = self.key.get(..length).unwrap_or_default();
        let place = Arc::new(Place { below: below.into(), rule: rule.into() });
        self.known.insert(self.key.as_str().into(), Arc::clone(&place));
        place
    }
}

impl Provenance {
    /// Returns where a field comes from.
    pub fn get(&self, field: &str) -> Option<Source> {
        self.iter().find(|(name, _)| *name == field).map(|(_, source)| source)
    }

    /// Returns all fields with their sources, sorted by field.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Source)> {
        let entries = &self.shape.entries;
        let starts = std::iter::once(0).chain(entries.iter().map(|entry| entry.rule));
        entries.iter().zip(starts).filter_map(|(entry, start)| self.entry(start, *entry))
    }

    /// Returns how many fields there are.
    pub fn len(&self) -> usize {
        self.shape.entries.len()
    }

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.shape.entries.is_empty()
    }

    fn entry(&self, start: u32, entry: Entry) -> Option<(&str, Source)> {
        let place = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
        let text = |from: u32, to: u32| self.shape.text.get(place(from)..place(to));
        let object = self.objects.get(place(entry.object))?;
        let source = Source {
            address: object.address.clone(),
            deposed: object.deposed.as_deref().map(ToOwned::to_owned),
            path: json_path(object.position) + text(entry.field, entry.below)?,
            rule: text(entry.below, entry.rule)?.to_owned(),
        };
        Some((text(start, entry.field)?, source))
    }

    /// Takes fields that are sorted, each once.
    pub(in crate::declared) fn of_sorted<'a>(
        spots: impl Iterator<Item = (&'a str, &'a Spot)>,
        shapes: &mut Shapes,
    ) -> Self {
        let mut objects: Vec<Object> = Vec::new();
        let offset = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let Shape { entries, text } = &mut shapes.next;
        entries.clear();
        text.clear();
        for (field, spot) in spots {
            let is_same = |object: &Object| {
                object.address == spot.address
                    && object.deposed == spot.deposed
                    && object.position == spot.position
            };
            let object = objects.iter().position(is_same).unwrap_or(objects.len());
            let mut entry = Entry { object: offset(object), field: 0, below: 0, rule: 0 };
            let parts = [
                (field, &mut entry.field),
                (&*spot.place.below, &mut entry.below),
                (&*spot.place.rule, &mut entry.rule),
            ];
            for (part, end) in parts {
                text.push_str(part);
                *end = offset(text.len());
            }
            entries.push(entry);
            if object == objects.len() {
                let (address, deposed) = (spot.address.clone(), spot.deposed.clone());
                objects.push(Object { address, deposed, position: spot.position });
            }
        }
        Self { objects: objects.into(), shape: shapes.shared() }
    }
}

impl Shapes {
    fn shared(&mut self) -> Arc<Shape> {
        if let Some(shape) = self.known.get(&self.next) {
            return Arc::clone(shape);
        }
        let shape = Arc::new(self.next.clone());
        self.known.insert(Arc::clone(&shape));
        shape
    }
}

impl fmt::Debug for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shapes({})", self.known.len())
    }
}

impl fmt::Debug for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out_and_what_is_alike_is_shared() {
        let (mut places, mut shapes) = (Places::default(), Shapes::default());
        let mut spot = |address: &str, position, below: &str, rule: &str| Spot {
            address: ResourceAddress::from_kept(address),
            deposed: address.is_empty().then(|| "d".into()),
            position,
            place: places.of(rule, |text| text.push_str(below)),
        };
        let mut all = |number: u32| {
            vec![
                ("", spot("c.d", (0, 0), "", "")),
                ("addresses[0].address", spot("a.b", (number, 0), "", "")),
                ("name", spot("a.b", (number, 0), ".attributes.x[1]", "$.x[*]")),
                ("zone", spot("a.b", (number, 1), ".attributes", "r")),
                ("ä", spot("", (1, 2), ".odd", "ü")),
            ]
        };
        let (first, second) = (all(3), all(4));
        let of = |spots: &[(&'static str, Spot)], shapes: &mut Shapes| {
            Provenance::of_sorted(spots.iter().map(|(field, spot)| (*field, spot)), shapes)
        };
        let (one, other) = (of(&first, &mut shapes), of(&second, &mut shapes));
        for (provenance, spots) in [(&one, first), (&other, second)] {
            for (field, spot) in &spots {
                let source = Source {
                    address: spot.address.clone(),
                    deposed: spot.deposed.as_deref().map(ToOwned::to_owned),
                    path: spot.path(),
                    rule: spot.place.rule.to_string(),
                };
                assert_eq!(provenance.get(field), Some(source), "{field}");
            }
            assert_eq!((provenance.get("x"), provenance.len()), (None, spots.len()));
            assert!(provenance.iter().is_sorted_by(|(a, _), (b, _)| a < b));
        }
        assert!(Arc::ptr_eq(&one.shape, &other.shape) && one != other);
        let name = one.get("name").map(|source| source.path);
        assert_eq!(name.as_deref(), Some("$.resources[3].instances[0].attributes.x[1]"));
    }
}
