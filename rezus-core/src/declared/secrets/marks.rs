//! `sensitive_attributes`: the paths that a state marks as secret.

use super::SecretKind;
use super::tree::{MARKS, RULES, Tree};
use crate::declared::document::{DocumentError, instance_place, known};
use crate::declared::json::{Cursor, Kind};

/// How many steps of a path are followed; a longer one hides all below.
const LONGEST: usize = 256;

/// One step of a path.
enum Step {
    /// An attribute, or an element of a map.
    Member(String),
    /// An element of a list.
    Element(u64),
    /// An element of a set, which has no place of its own.
    OfSet,
    /// An index that nothing can have.
    Nowhere,
}

/// Attributes that repeat another one of the same object, without its marks: type, the marked one, the copy.
const COPIES: [(&str, &str, &str); 1] = [("terraform_data", "input", "output")];

/// Reads the paths of an object into a tree.
pub(super) fn read(
    text: &str,
    resource_type: &str,
    position: (u32, u32),
    tree: &mut Tree,
) -> Result<(), DocumentError> {
    let copies = COPIES.iter().find(|(of, _, _)| *of == resource_type);
    let wrong = || {
        let place = instance_place(position);
        place.wrong("sensitive_attributes", "a list of paths, each a list of get_attr and index steps")
    };
    let mut cursor = Cursor::new(text);
    cursor.begin_array()?;
    while cursor.next_element()? {
        match cursor.peek()? {
            Kind::Array => {}
            Kind::Null => {
                cursor.skip_value()?;
                tree.end_mark(MARKS);
                continue;
            }
            _ => return Err(wrong()),
        }
        let (mut node, mut length, mut is_open) = (MARKS, 0, true);
        let mut twin = None;
        cursor.begin_array()?;
        while cursor.next_element()? {
            if cursor.peek()? != Kind::Object {
                return Err(wrong());
            }
            let step = step(&mut cursor, text)?.ok_or_else(wrong)?;
            length += 1;
            if !is_open {
                continue;
            }
            twin = match (&step, twin) {
                (Step::Member(name), None)
                    if length == 1 && copies.is_some_and(|(_, from, _)| from == name) =>
                {
                    copies.map(|(_, _, to)| tree.member(RULES, (*to).into()))
                }
                (Step::Member(name), Some(twin)) => Some(tree.member(twin, name.clone().into())),
                (Step::Element(index), Some(twin)) => Some(tree.element(twin, *index)),
                (_, twin) => twin,
            };
            match step {
                Step::Member(name) => node = tree.member(node, name.into()),
                Step::Element(index) => node = tree.element(node, index),
                Step::OfSet => is_open = false,
                Step::Nowhere => node = tree.nowhere(node),
            }
            is_open &= length < LONGEST;
        }
        tree.end_mark(node);
        if let Some(twin) = twin {
            tree.end_rule(twin, SecretKind::Credential);
        }
    }
    Ok(())
}

/// Reads one step; `None` for what is none.
fn step(cursor: &mut Cursor<'_>, text: &str) -> Result<Option<Step>, DocumentError> {
    let (mut kind, mut value) = (None, None);
    cursor.begin_object()?;
    while let Some(name) = cursor.next_member()? {
        match known(name, &["type", "value"]) {
            Some("type") if cursor.peek()? == Kind::String => {
                kind = Some(cursor.string()?.decode().into_owned());
            }
            Some("value") => value = Some(cursor.skip_value()?),
            _ => {
                cursor.skip_value()?;
            }
        }
    }
    let Some(value) = value.and_then(|span| text.get(span)) else {
        return Ok(None);
    };
    let mut value = Cursor::new(value);
    match kind.as_deref() {
        Some("get_attr") if value.peek()? == Kind::String => {
            Ok(Some(Step::Member(value.string()?.decode().into_owned())))
        }
        Some("index") if value.peek()? == Kind::Object => index(&mut value),
        _ => Ok(None),
    }
}

/// Reads the value of an index step: `{"value": V, "type": T}`.
fn index(cursor: &mut Cursor<'_>) -> Result<Option<Step>, DocumentError> {
    let (mut step, mut is_typed) = (None, false);
    cursor.begin_object()?;
    while let Some(name) = cursor.next_member()? {
        match known(name, &["value", "type"]) {
            Some("value") => {
                step = Some(match cursor.peek()? {
                    Kind::String => Step::Member(cursor.string()?.decode().into_owned()),
                    Kind::Number => whole(cursor.number()?).map_or(Step::Nowhere, Step::Element),
                    Kind::Null => {
                        cursor.skip_value()?;
                        Step::Nowhere
                    }
                    Kind::Object | Kind::Array | Kind::Bool => {
                        cursor.skip_value()?;
                        Step::OfSet
                    }
                });
            }
            Some("type") => {
                is_typed = matches!(cursor.peek()?, Kind::String | Kind::Array);
                cursor.skip_value()?;
            }
            _ => {
                cursor.skip_value()?;
            }
        }
    }
    Ok(step.filter(|_| is_typed))
}

/// Returns the index that a number spells, be it as `2.0`.
fn whole(spelt: &str) -> Option<u64> {
    if let Ok(index) = spelt.parse() {
        return Some(index);
    }
    let float: f64 = spelt.parse().ok()?;
    if float.fract() == 0.0 { format!("{float:.0}").parse().ok() } else { None }
}
