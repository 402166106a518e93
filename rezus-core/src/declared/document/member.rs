//! Members of a state's objects, read as Go's `encoding/json` reads them into the tools' own structures.

use std::borrow::Cow;

use super::DocumentError;
use super::error::Place;
use crate::declared::index::InstanceKey;
use crate::declared::json::{Cursor, Kind, Text};

/// The members of an instance object that the tools define.
pub(in crate::declared) const INSTANCE_MEMBERS: [&str; 15] = [
    "index_key",
    "status",
    "deposed",
    "provider",
    "schema_version",
    "attributes",
    "attributes_flat",
    "sensitive_attributes",
    "identity_schema_version",
    "identity",
    "private",
    "dependencies",
    "depends_on",
    "create_before_destroy",
    "skip_destroy",
];

/// Returns which of some names a member's name is: the same, or the same but for the case of ASCII letters.
pub(in crate::declared) fn known(name: Text<'_>, names: &[&'static str]) -> Option<&'static str> {
    let name = name.decode();
    let exact = names.iter().find(|known| **known == name);
    exact.or_else(|| names.iter().find(|known| known.eq_ignore_ascii_case(&name))).copied()
}

/// Reads a string; `None` for null.
pub(super) fn string<'a>(
    cursor: &mut Cursor<'a>,
    place: Place,
    member: &'static str,
) -> Result<Option<Cow<'a, str>>, DocumentError> {
    match cursor.peek()? {
        Kind::String => Ok(Some(cursor.string()?.decode())),
        Kind::Null => skip(cursor),
        _ => Err(place.wrong(member, "a string")),
    }
}

/// Reads a bool; `None` for null.
pub(super) fn flag(
    cursor: &mut Cursor<'_>,
    place: Place,
    member: &'static str,
) -> Result<Option<bool>, DocumentError> {
    match cursor.peek()? {
        Kind::Bool => Ok(Some(cursor.skip_value()?.len() == "true".len())),
        Kind::Null => skip(cursor),
        _ => Err(place.wrong(member, "true or false")),
    }
}

/// Reads a whole number without a sign, spelt as one; `None` for null.
pub(super) fn unsigned(
    cursor: &mut Cursor<'_>,
    place: Place,
    member: &'static str,
) -> Result<Option<u64>, DocumentError> {
    let wrong = || place.wrong(member, "a whole number, 0 or more");
    match cursor.peek()? {
        Kind::Number => cursor.number()?.parse().map(Some).map_err(|_| wrong()),
        Kind::Null => skip(cursor),
        _ => Err(wrong()),
    }
}

/// Reads an instance key: the tools take any number for its whole part.
pub(super) fn instance_key(
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Result<Option<InstanceKey>, DocumentError> {
    let wrong = || place.wrong("index_key", "a number that fits 64 bits, or a string");
    match cursor.peek()? {
        Kind::String => Ok(Some(InstanceKey::Text(cursor.string()?.decode().into_owned()))),
        Kind::Number => {
            let spelt = cursor.number()?;
            whole(spelt).map(|number| Some(InstanceKey::Number(number))).ok_or_else(wrong)
        }
        Kind::Null => skip(cursor),
        _ => Err(wrong()),
    }
}

/// Checks an array of strings; null is none, and nulls in it are passed over.
pub(super) fn strings(
    cursor: &mut Cursor<'_>,
    place: Place,
    member: &'static str,
) -> Result<(), DocumentError> {
    match cursor.peek()? {
        Kind::Array => {}
        Kind::Null => return skip(cursor).map(|_: Option<()>| ()),
        _ => return Err(place.wrong(member, "an array of strings")),
    }
    cursor.begin_array()?;
    while cursor.next_element()? {
        if !matches!(cursor.peek()?, Kind::String | Kind::Null) {
            return Err(place.wrong(member, "an array of strings"));
        }
        cursor.skip_value()?;
    }
    Ok(())
}

fn skip<T>(cursor: &mut Cursor<'_>) -> Result<Option<T>, DocumentError> {
    cursor.skip_value()?;
    Ok(None)
}

/// Returns the whole part of a number, by way of a 64-bit float as in the tools.
fn whole(spelt: &str) -> Option<i64> {
    if spelt.len() < 16
        && let Ok(number) = spelt.parse()
    {
        return Some(number);
    }
    let float: f64 = spelt.parse().ok()?;
    format!("{:.0}", float.trunc()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_for_their_whole_part() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("-0.0", Some(0)),
            ("2.0", Some(2)),
            ("1e1", Some(10)),
            ("1.9", Some(1)),
            ("-1", Some(-1)),
            ("9007199254740993", Some(9_007_199_254_740_992)),
            ("1e40", None),
            ("1e400", None),
        ];
        for (spelt, number) in cases {
            assert_eq!(whole(spelt), number, "{spelt}");
        }
    }
}
