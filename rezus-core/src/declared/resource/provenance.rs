//! Where the fields of a spec come from, in little space.

use std::collections::BTreeMap;
use std::fmt;

use super::Source;
use crate::declared::ResourceAddress;

/// Where each field of a spec comes from, by the API's name of the field (`addresses[0].address` for an element),
/// sorted.
///
/// A tenant may have thousands of machines of which hardly any is ever asked for this, so all is kept as one text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    objects: Box<[Object]>,
    entries: Box<[Entry]>,
    /// Field, path below the object and rule of each entry, one behind the other.
    text: Box<str>,
}

#[derive(Clone, PartialEq, Eq)]
struct Object {
    address: ResourceAddress,
    deposed: Option<String>,
    /// Its JSON path.
    path: Box<str>,
}

/// Where the parts of an entry end in the text, and which object it is of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    object: u32,
    field: u32,
    path: u32,
    rule: u32,
}

impl Provenance {
    /// Returns where a field comes from.
    pub fn get(&self, field: &str) -> Option<Source> {
        self.iter().find(|(name, _)| *name == field).map(|(_, source)| source)
    }

    /// Returns all fields with their sources, sorted by field.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Source)> {
        let starts = std::iter::once(0).chain(self.entries.iter().map(|entry| entry.rule));
        self.entries.iter().zip(starts).filter_map(|(entry, start)| self.entry(start, *entry))
    }

    /// Returns how many fields there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Tells whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn entry(&self, start: u32, entry: Entry) -> Option<(&str, Source)> {
        let place = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
        let text = |from: u32, to: u32| self.text.get(place(from)..place(to));
        let object = self.objects.get(place(entry.object))?;
        let source = Source {
            address: object.address.clone(),
            deposed: object.deposed.clone(),
            path: format!("{}{}", object.path, text(entry.field, entry.path)?),
            rule: text(entry.path, entry.rule)?.to_owned(),
        };
        Some((text(start, entry.field)?, source))
    }
}

impl FromIterator<(String, Source)> for Provenance {
    fn from_iter<I: IntoIterator<Item = (String, Source)>>(iter: I) -> Self {
        let sources = BTreeMap::from_iter(iter);
        Self::of_sorted(sources.iter().map(|(field, source)| (&**field, source)))
    }
}

impl Provenance {
    /// Takes fields that are sorted, each once.
    pub(in crate::declared) fn of_sorted<'a>(sources: impl Iterator<Item = (&'a str, &'a Source)>) -> Self {
        let mut objects: Vec<Object> = Vec::new();
        let (mut entries, mut text) = (Vec::new(), String::new());
        let offset = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        for (field, source) in sources {
            let (path, below) = split(&source.path);
            let is_same = |object: &Object| {
                object.address == source.address && object.deposed == source.deposed && *object.path == *path
            };
            let object = objects.iter().position(is_same).unwrap_or(objects.len());
            let mut entry = Entry { object: offset(object), field: 0, path: 0, rule: 0 };
            for (part, end) in
                [(field, &mut entry.field), (below, &mut entry.path), (&source.rule, &mut entry.rule)]
            {
                text.push_str(part);
                *end = offset(text.len());
            }
            entries.push(entry);
            if object == objects.len() {
                let (address, deposed) = (source.address.clone(), source.deposed.clone());
                objects.push(Object { path: path.into(), address, deposed });
            }
        }
        Self { objects: objects.into(), entries: entries.into(), text: text.into() }
    }
}

/// Splits a JSON path behind the object: `$.resources[3].instances[0]`.
fn split(path: &str) -> (&str, &str) {
    let end = path.match_indices(']').nth(1).map_or(0, |(at, _)| at + 1);
    path.split_at_checked(end).unwrap_or(("", path))
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
    fn what_was_put_in_comes_out() {
        let source = |address: &str, path: &str, rule: &str| Source {
            address: ResourceAddress::from_kept(address),
            deposed: address.is_empty().then(|| "d".to_owned()),
            path: path.to_owned(),
            rule: rule.to_owned(),
        };
        let all = [
            ("name", source("a.b", "$.resources[3].instances[0].attributes.x[1]", "$.x[*]")),
            ("addresses[0].address", source("a.b", "$.resources[3].instances[0]", "")),
            ("ä", source("", "odd", "ü")),
            ("zone", source("a.b", "$.resources[4].instances[0].attributes", "r")),
            ("", source("c.d", "", "")),
        ];
        let provenance: Provenance =
            all.iter().map(|(field, source)| ((*field).to_owned(), source.clone())).collect();
        for (field, source) in &all {
            assert_eq!(provenance.get(field).as_ref(), Some(source), "{field}");
        }
        assert_eq!((provenance.get("x"), provenance.len()), (None, all.len()));
        assert!(provenance.iter().is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
