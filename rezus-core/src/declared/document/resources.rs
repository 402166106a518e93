//! The resource blocks of a state, and a row for each instance object.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use super::error::Place;
use super::{DocumentError, member};
use crate::declared::ResourceAddress;
use crate::declared::index::{IndexRow, InstanceKey, Mode};
use crate::declared::json::{Cursor, Kind};
use crate::declared::secrets::{self, RuleStep, SecretRules};

/// The rows, and for each where the parts are that may hold secrets.
#[derive(Default)]
pub(super) struct Resources {
    pub(super) rows: Vec<IndexRow>,
    pub(super) parts: Vec<Parts>,
}

/// Where in the document the parts of an instance object are.
#[derive(Clone, Debug, Default)]
pub(in crate::declared) struct Parts {
    /// `attributes`, unless null.
    pub(in crate::declared) attributes: Option<Range<usize>>,
    /// `attributes_flat`, unless null.
    pub(in crate::declared) flat: Option<Range<usize>>,
    /// `sensitive_attributes`, unless null or empty.
    pub(in crate::declared) marks: Option<Range<usize>>,
    /// Where rules for the type have to be tried.
    pub(in crate::declared) watched: Watched,
}

/// Where in `attributes` rules for a type may lead to something.
#[derive(Clone, Debug, Default)]
pub(in crate::declared) enum Watched {
    /// Nowhere.
    #[default]
    Nothing,
    /// Below these members: where the name begins and ends, and where the value begins.
    Members(Vec<(Range<usize>, usize)>),
    /// Anywhere.
    All,
}

/// What is known of an instance object before its block was read to the end.
#[derive(Default)]
struct Instance<'a> {
    key: Option<InstanceKey>,
    tainted: bool,
    deposed: Option<String>,
    provider: Option<Cow<'a, str>>,
    span: Range<usize>,
    parts: Parts,
}

#[derive(Default)]
struct Block<'a> {
    module: Cow<'a, str>,
    mode: Cow<'a, str>,
    resource_type: Cow<'a, str>,
    name: Cow<'a, str>,
    provider: Cow<'a, str>,
}

/// Reads `resources`.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    kind: Kind,
    rules: SecretRules<'_>,
) -> Result<Resources, DocumentError> {
    if kind != Kind::Array {
        return Err(Place::Top.wrong("resources", "an array"));
    }
    let mut found = Resources::default();
    let mut number = 0;
    cursor.begin_array()?;
    while cursor.next_element()? {
        read_block(cursor, number, rules, &mut found)?;
        number += 1;
    }
    refuse_duplicates(&found.rows)?;
    Ok(found)
}

fn read_block(
    cursor: &mut Cursor<'_>,
    number: u32,
    rules: SecretRules<'_>,
    found: &mut Resources,
) -> Result<(), DocumentError> {
    let place = Place::Block(number);
    if cursor.peek()? != Kind::Object {
        return Err(place.wrong("", "an object"));
    }
    let mut block = Block::default();
    let mut instances = Vec::new();
    cursor.begin_object()?;
    while let Some(name) = cursor.next_member()? {
        let names = ["module", "mode", "type", "name", "each", "provider", "instances"];
        let Some(name) = member::known(name, &names) else {
            cursor.skip_value()?;
            continue;
        };
        let mut ignored = Cow::Borrowed("");
        let slot = match name {
            "module" => &mut block.module,
            "mode" => &mut block.mode,
            "type" => &mut block.resource_type,
            "name" => &mut block.name,
            "provider" => &mut block.provider,
            "instances" => {
                instances = read_instances(cursor, number, &Watch::new(&block.resource_type, rules))?;
                continue;
            }
            _ => &mut ignored,
        };
        if let Some(text) = member::string(cursor, place, name)? {
            *slot = text;
        }
    }
    let mode = match &*block.mode {
        "managed" => Mode::Managed,
        "data" => Mode::Data,
        _ => return Err(place.wrong("mode", "\"managed\" or \"data\"")),
    };
    for (position, instance) in (0..).zip(instances) {
        found.rows.push(block.row(cursor, mode, (number, position), &instance));
        found.parts.push(instance.parts);
    }
    Ok(())
}

impl Block<'_> {
    fn row(
        &self,
        cursor: &Cursor<'_>,
        mode: Mode,
        position: (u32, u32),
        instance: &Instance<'_>,
    ) -> IndexRow {
        let key = instance.key.as_ref();
        IndexRow {
            address: ResourceAddress::of_instance(&self.module, mode, &self.resource_type, &self.name, key),
            deposed: instance.deposed.clone(),
            module: self.module.clone().into_owned(),
            mode,
            resource_type: self.resource_type.clone().into_owned(),
            name: self.name.clone().into_owned(),
            key: instance.key.clone(),
            provider: instance
                .provider
                .as_ref()
                .filter(|p| !p.is_empty())
                .unwrap_or(&self.provider)
                .clone()
                .into_owned(),
            tainted: instance.tainted,
            position,
            span: offset(instance.span.start)..offset(instance.span.end),
            checksum: crc32fast::hash(cursor.bytes(instance.span.clone())),
            masked: Vec::new(),
        }
    }
}

/// The members of `attributes` where the rules for a type begin.
enum Watch<'r> {
    Names(Vec<&'r str>),
    /// The type is not known yet, or a rule begins with any member.
    All,
}

impl<'r> Watch<'r> {
    fn new(resource_type: &str, rules: SecretRules<'r>) -> Self {
        if resource_type.is_empty() {
            return Self::All;
        }
        let rules = secrets::known_rules(resource_type, rules);
        let names = rules.into_iter().flatten().map(|rule| match rule.path.first() {
            Some(RuleStep::Member(name)) => Some(&**name),
            Some(RuleStep::Any) | None => None,
        });
        names.collect::<Option<_>>().map_or(Self::All, Self::Names)
    }

    /// Skips `attributes`, and tells what is at the watched names; `None` where all of it is null.
    fn attributes(&self, cursor: &mut Cursor<'_>) -> Result<(Option<Range<usize>>, Watched), DocumentError> {
        let names = match self {
            Self::Names(names) if names.is_empty() => return Ok((unless_null(cursor)?, Watched::Nothing)),
            Self::Names(names) if cursor.peek()? == Kind::Object => names,
            Self::Names(_) | Self::All => return Ok((unless_null(cursor)?, Watched::All)),
        };
        let mut members = Vec::new();
        let mut is_escaped = false;
        let span = cursor.skip_noting(|member| {
            is_escaped |= member.escaped;
            let is_blank =
                || [&b"null"[..], b"\"\"", b"[]", b"{}"].iter().any(|blank| member.value.starts_with(blank));
            if names.iter().any(|watched| member.name == watched.as_bytes()) && !is_blank() {
                members.push((member.name_at..member.name_at + member.name.len(), member.value_at));
            }
        })?;
        let watched = match (is_escaped, members.is_empty()) {
            (true, _) => Watched::All,
            (false, true) => Watched::Nothing,
            (false, false) => Watched::Members(members),
        };
        Ok((Some(span), watched))
    }
}

fn offset(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

fn read_instances<'a>(
    cursor: &mut Cursor<'a>,
    block: u32,
    watch: &Watch<'_>,
) -> Result<Vec<Instance<'a>>, DocumentError> {
    let mut instances = Vec::new();
    match cursor.peek()? {
        Kind::Array => {}
        Kind::Null => {
            cursor.skip_value()?;
            return Ok(instances);
        }
        _ => return Err(Place::Block(block).wrong("instances", "an array")),
    }
    let mut number = 0;
    cursor.begin_array()?;
    while cursor.next_element()? {
        instances.push(read_instance(cursor, Place::Instance(block, number), watch)?);
        number += 1;
    }
    Ok(instances)
}

fn read_instance<'a>(
    cursor: &mut Cursor<'a>,
    place: Place,
    watch: &Watch<'_>,
) -> Result<Instance<'a>, DocumentError> {
    let mut instance = Instance::default();
    match cursor.peek()? {
        Kind::Object => {}
        Kind::Null => {
            instance.span = cursor.skip_value()?;
            return Ok(instance);
        }
        _ => return Err(place.wrong("", "an object")),
    }
    let start = cursor.offset();
    cursor.begin_object()?;
    while let Some(name) = cursor.next_member()? {
        match member::known(name, &member::INSTANCE_MEMBERS) {
            Some("index_key") => instance.key = member::instance_key(cursor, place)?,
            Some("status") => match member::string(cursor, place, "status")?.as_deref() {
                None => {}
                Some("") => instance.tainted = false,
                Some("tainted") => instance.tainted = true,
                Some(_) => return Err(place.wrong("status", "\"tainted\" or absent")),
            },
            Some("deposed") => match member::string(cursor, place, "deposed")? {
                None => {}
                Some(key) if key.is_empty() => instance.deposed = None,
                Some(key) if key.len() == 8 => instance.deposed = Some(key.into_owned()),
                Some(_) => return Err(place.wrong("deposed", "a string of 8 characters")),
            },
            Some("provider") => {
                if let Some(provider) = member::string(cursor, place, "provider")? {
                    instance.provider = Some(provider);
                }
            }
            Some("schema_version") => {
                member::unsigned(cursor, place, "schema_version")?;
            }
            Some("create_before_destroy") => {
                member::flag(cursor, place, "create_before_destroy")?;
            }
            Some("dependencies") => member::strings(cursor, place, "dependencies")?,
            Some("attributes") => {
                (instance.parts.attributes, instance.parts.watched) = watch.attributes(cursor)?;
            }
            Some("attributes_flat") => instance.parts.flat = flat(cursor, place)?,
            Some("sensitive_attributes") => {
                instance.parts.marks = match cursor.peek()? {
                    Kind::Array => Some(cursor.skip_value()?).filter(|span| span.len() > "[]".len()),
                    Kind::Null => unless_null(cursor)?,
                    _ => return Err(place.wrong("sensitive_attributes", "an array of paths")),
                }
            }
            Some("private") => {
                if !matches!(cursor.peek()?, Kind::String | Kind::Null | Kind::Array) {
                    return Err(place.wrong("private", "a string"));
                }
                cursor.skip_value()?;
            }
            // Members that only some tools know are none of our business: to the others they are unknown.
            _ => {
                cursor.skip_value()?;
            }
        }
    }
    instance.span = start..cursor.offset();
    Ok(instance)
}

/// Skips a value; `None` for null.
fn unless_null(cursor: &mut Cursor<'_>) -> Result<Option<Range<usize>>, DocumentError> {
    let kind = cursor.peek()?;
    let span = cursor.skip_value()?;
    Ok((kind != Kind::Null).then_some(span))
}

/// Checks `attributes_flat`: strings by name.
fn flat(cursor: &mut Cursor<'_>, place: Place) -> Result<Option<Range<usize>>, DocumentError> {
    match cursor.peek()? {
        Kind::Object => {}
        Kind::Null => return unless_null(cursor),
        _ => return Err(place.wrong("attributes_flat", "an object of strings")),
    }
    let start = cursor.offset();
    cursor.begin_object()?;
    while cursor.next_member()?.is_some() {
        if !matches!(cursor.peek()?, Kind::String | Kind::Null) {
            return Err(place.wrong("attributes_flat", "an object of strings"));
        }
        cursor.skip_value()?;
    }
    Ok(Some(start..cursor.offset()))
}

fn refuse_duplicates(rows: &[IndexRow]) -> Result<(), DocumentError> {
    let mut seen = HashSet::with_capacity(rows.len());
    match rows.iter().find(|row| !seen.insert((&row.address, &row.deposed))) {
        None => Ok(()),
        Some(row) => {
            Err(DocumentError::Duplicate { address: row.address.clone(), deposed: row.deposed.clone() })
        }
    }
}
