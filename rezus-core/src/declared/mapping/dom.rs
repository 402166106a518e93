//! An instance object as a tree that borrows from the state: what rules may look at, and what of it is hidden.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use crate::declared::document::{INSTANCE_MEMBERS, known};
use crate::declared::index::IndexRow;
use crate::declared::json::{Cursor, JsonError, Kind, Text, push_escaped};
use crate::declared::resource::Decimal;

/// How deep values may nest to be looked at; the rest of the object is none the worse for it.
const DEEPEST: usize = 64;

/// A value and whether it must not be shown.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) value: Value<'a>,
    pub(super) is_masked: bool,
}

/// What a value is.
#[derive(Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    Text(Text<'a>),
    /// A text of `attributes_flat`, with its name there.
    Flat {
        name: Cow<'a, str>,
        text: Text<'a>,
    },
    List(Vec<Node<'a>>),
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
    /// Nested too deep to be looked at.
    TooDeep,
}

/// Which members of `attributes` are of use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) is_all: bool,
    pub(super) names: HashSet<String>,
}

/// An instance object.
#[derive(Debug)]
pub(super) struct Object<'a> {
    pub(super) attributes: Node<'a>,
    pub(super) dependencies: Vec<Cow<'a, str>>,
    pub(super) schema_version: u64,
    /// Whether all of it must not be shown.
    pub(super) is_hidden: bool,
    /// Whether the instance key must not be shown.
    pub(super) is_key_hidden: bool,
    /// Whether the bytes are no instance object.
    pub(super) is_broken: bool,
}

impl<'a> Object<'a> {
    /// Reads an object's bytes.
    pub(super) fn read(bytes: &'a [u8], row: &IndexRow, wanted: &Wanted) -> Self {
        let read = || {
            let text = std::str::from_utf8(bytes).ok()?;
            Reader::new(text, row, wanted).object().ok()
        };
        read().unwrap_or_else(|| Self { is_broken: true, ..Self::empty() })
    }

    fn empty() -> Self {
        Self {
            attributes: Node { value: Value::Object(Vec::new()), is_masked: false },
            dependencies: Vec::new(),
            schema_version: 0,
            is_hidden: false,
            is_key_hidden: false,
            is_broken: false,
        }
    }
}

impl Node<'_> {
    /// Returns the member of an object; the last of several.
    pub(super) fn member(&self, name: &str) -> Option<(&str, &Self)> {
        let Value::Object(members) = &self.value else {
            return None;
        };
        let found = members.iter().rev().find(|(known, _)| known == name);
        found.map(|(name, node)| (&**name, node))
    }

    /// Returns the value that a dynamic wrapper, `{"value": V, "type": T}`, holds.
    pub(super) fn wrapped(&self) -> Option<&Self> {
        let Value::Object(members) = &self.value else {
            return None;
        };
        if members.len() != 2 {
            return None;
        }
        let (_, value) = self.member("value")?;
        let is_name = |text: &Text<'_>, names: &[&str]| names.contains(&text.raw());
        let is_type = match &self.member("type")?.1.value {
            Value::Text(text) => is_name(text, &["string", "number", "bool", "dynamic"]),
            Value::List(parts) => parts.first().is_some_and(|first| match &first.value {
                Value::Text(text) => is_name(text, &["list", "set", "map", "object", "tuple"]),
                _ => false,
            }),
            _ => false,
        };
        is_type.then_some(value)
    }

    /// Returns a scalar as text: numbers canonical, bools as words.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match &self.value {
            Value::Bool(value) => Some(if *value { "true" } else { "false" }.into()),
            Value::Number(digits) => Some(match Decimal::parse(digits) {
                Some(number) if number.as_str() != *digits => Cow::Owned(number.as_str().to_owned()),
                _ => Cow::Borrowed(*digits),
            }),
            Value::Text(text) | Value::Flat { text, .. } => Some(text.decode()),
            Value::Null | Value::List(_) | Value::Object(_) | Value::TooDeep => None,
        }
    }

    /// Returns what the value is, for a problem's reason; `None` for what counts as nothing.
    pub(super) fn kind(&self) -> Option<&'static str> {
        match &self.value {
            Value::Null => None,
            Value::List(list) if list.is_empty() => None,
            Value::Object(members) if members.is_empty() => None,
            Value::Text(text) | Value::Flat { text, .. } if text.raw().is_empty() => None,
            Value::Bool(_) => Some("a bool"),
            Value::Number(_) => Some("a number"),
            Value::Text(_) | Value::Flat { .. } => Some("a text"),
            Value::List(_) => Some("a list"),
            Value::Object(_) => Some("an object"),
            Value::TooDeep => Some("something nested too deep"),
        }
    }
}

struct Reader<'a, 'r> {
    cursor: Cursor<'a>,
    wanted: &'r Wanted,
    masked: HashSet<&'r str>,
    pointer: String,
}

impl<'a, 'r> Reader<'a, 'r> {
    fn new(text: &'a str, row: &'r IndexRow, wanted: &'r Wanted) -> Self {
        let masked = row.masked.iter().map(String::as_str).collect();
        Self { cursor: Cursor::new(text), wanted, masked, pointer: String::new() }
    }

    fn object(mut self) -> Result<Object<'a>, JsonError> {
        let mut object = Object { is_hidden: self.is_masked(""), ..Object::empty() };
        object.is_key_hidden = self.is_masked("/index_key");
        if self.cursor.peek()? != Kind::Object {
            self.cursor.skip_value()?;
            return Ok(object);
        }
        let (mut attributes, mut flat) = (None, None);
        self.cursor.begin_object()?;
        while let Some(name) = self.cursor.next_member()? {
            let kind = self.cursor.peek()?;
            match known(name, &INSTANCE_MEMBERS) {
                Some("attributes") if kind == Kind::Object => attributes = Some(self.attributes()?),
                Some("attributes_flat") if kind == Kind::Object => flat = Some(self.flat()?),
                Some("schema_version") if kind == Kind::Number => {
                    object.schema_version = self.cursor.number()?.parse().unwrap_or(0);
                }
                Some("dependencies") if kind == Kind::Array => object.dependencies = self.dependencies()?,
                Some("attributes") => {
                    attributes = None;
                    self.cursor.skip_value()?;
                }
                _ => {
                    self.cursor.skip_value()?;
                }
            }
        }
        if let Some(found) = attributes.or(flat) {
            object.attributes = found;
        }
        object.attributes.is_masked |= object.is_hidden;
        if object.is_hidden || self.is_masked("/dependencies") {
            object.dependencies.clear();
        }
        Ok(object)
    }

    fn is_masked(&self, pointer: &str) -> bool {
        self.masked.contains(pointer)
    }

    fn dependencies(&mut self) -> Result<Vec<Cow<'a, str>>, JsonError> {
        let mut found = Vec::new();
        self.cursor.begin_array()?;
        while self.cursor.next_element()? {
            if self.cursor.peek()? == Kind::String {
                found.push(self.cursor.string()?.decode());
            } else {
                self.cursor.skip_value()?;
            }
        }
        Ok(found)
    }

    fn attributes(&mut self) -> Result<Node<'a>, JsonError> {
        "/attributes".clone_into(&mut self.pointer);
        let is_masked = self.is_masked("/attributes");
        let mut members = Vec::new();
        self.cursor.begin_object()?;
        while let Some(name) = self.cursor.next_member()? {
            let name = name.decode();
            if self.wanted.is_all || self.wanted.names.contains(&*name) {
                let node = self.named(&name, 1)?;
                members.push((name, node));
            } else {
                self.cursor.skip_value()?;
            }
        }
        Ok(Node { value: Value::Object(members), is_masked })
    }

    /// Reads the value of a member.
    fn named(&mut self, name: &str, depth: usize) -> Result<Node<'a>, JsonError> {
        let length = self.pointer.len();
        if !self.masked.is_empty() {
            self.pointer.push('/');
            push_escaped(&mut self.pointer, name);
        }
        let node = self.value(depth);
        self.pointer.truncate(length);
        node
    }

    /// Reads a value: no deeper than [`DEEPEST`].
    fn value(&mut self, depth: usize) -> Result<Node<'a>, JsonError> {
        let is_masked = !self.masked.is_empty() && self.masked.contains(self.pointer.as_str());
        let value = match self.cursor.peek()? {
            Kind::Object | Kind::Array if depth >= DEEPEST => {
                self.cursor.skip_value()?;
                Value::TooDeep
            }
            Kind::Object => {
                let mut members = Vec::new();
                self.cursor.begin_object()?;
                while let Some(name) = self.cursor.next_member()? {
                    let name = name.decode();
                    let node = self.named(&name, depth + 1)?;
                    members.push((name, node));
                }
                Value::Object(members)
            }
            Kind::Array => {
                let mut list = Vec::new();
                self.cursor.begin_array()?;
                while self.cursor.next_element()? {
                    let name = if self.masked.is_empty() { String::new() } else { list.len().to_string() };
                    list.push(self.named(&name, depth + 1)?);
                }
                Value::List(list)
            }
            Kind::String => Value::Text(self.cursor.string()?),
            Kind::Number => Value::Number(self.cursor.number()?),
            Kind::Bool => {
                let span = self.cursor.skip_value()?;
                Value::Bool(self.cursor.bytes(span) == b"true")
            }
            Kind::Null => {
                self.cursor.skip_value()?;
                Value::Null
            }
        };
        Ok(Node { value, is_masked })
    }

    fn flat(&mut self) -> Result<Node<'a>, JsonError> {
        let is_masked = self.is_masked("/attributes_flat");
        let mut leaves = BTreeMap::new();
        self.cursor.begin_object()?;
        while let Some(name) = self.cursor.next_member()? {
            let name = name.decode();
            if self.cursor.peek()? != Kind::String {
                self.cursor.skip_value()?;
                continue;
            }
            let text = self.cursor.string()?;
            let mut pointer = "/attributes_flat/".to_owned();
            push_escaped(&mut pointer, &name);
            leaves.insert(name, (text, self.is_masked(&pointer)));
        }
        let mut top = Vec::new();
        for (name, (text, is_masked)) in leaves {
            top.push(Leaf { rest_at: 0, name, text, is_masked });
        }
        Ok(Node { is_masked, ..grown(top, 0) })
    }
}

/// An entry of `attributes_flat`, and where the part of its name begins that was not used yet.
struct Leaf<'a> {
    rest_at: usize,
    name: Cow<'a, str>,
    text: Text<'a>,
    is_masked: bool,
}

impl<'a> Leaf<'a> {
    fn rest(&self) -> &str {
        self.name.get(self.rest_at..).unwrap_or_default()
    }

    fn into_node(self) -> Node<'a> {
        Node { value: Value::Flat { name: self.name, text: self.text }, is_masked: self.is_masked }
    }
}

/// Makes a tree of flat entries: `a.#` tells a list, `a.%` a map whose keys may hold dots. No deeper than
/// [`DEEPEST`].
fn grown(leaves: Vec<Leaf<'_>>, depth: usize) -> Node<'_> {
    let is_list = leaves.iter().any(|leaf| leaf.rest() == "#");
    let is_map = leaves.iter().any(|leaf| leaf.rest() == "%") || depth >= DEEPEST;
    let mut groups: BTreeMap<(u64, String), Vec<Leaf<'_>>> = BTreeMap::new();
    for mut leaf in leaves {
        let rest = leaf.rest();
        if matches!(rest, "#" | "%") {
            continue;
        }
        let part = if is_map { rest } else { rest.split('.').next().unwrap_or_default() }.to_owned();
        let order = if is_list { part.parse().unwrap_or(u64::MAX) } else { 0 };
        leaf.rest_at = (leaf.rest_at + part.len() + 1).min(leaf.name.len());
        groups.entry((order, part)).or_default().push(leaf);
    }
    let mut members = Vec::new();
    for ((_, part), mut group) in groups {
        let is_leaf = group.len() == 1 && group.first().is_some_and(|leaf| leaf.rest().is_empty());
        let node = match group.pop() {
            Some(leaf) if is_leaf => leaf.into_node(),
            Some(leaf) => {
                group.push(leaf);
                group.retain(|leaf| !leaf.rest().is_empty());
                grown(group, depth + 1)
            }
            None => continue,
        };
        members.push((Cow::Owned(part), node));
    }
    let value = if is_list {
        Value::List(members.into_iter().map(|(_, node)| node).collect())
    } else {
        Value::Object(members)
    };
    Node { value, is_masked: false }
}
