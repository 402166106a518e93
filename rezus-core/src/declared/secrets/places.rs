//! The places of an instance object where a secret turns up.

use std::collections::HashSet;

use super::needles::Needles;
use super::tree::Found;
use super::{RuleStep, SecretKind, SecretRule};
use crate::declared::document::{INSTANCE_MEMBERS, known};
use crate::declared::json::{Cursor, JsonError, Step, Walk, push_escaped};

/// Members of an instance object that are the tools' own words, or part of its address, or never shown.
const NOT_SEARCHED: [&str; 10] = [
    "index_key",
    "status",
    "deposed",
    "provider",
    "schema_version",
    "identity_schema_version",
    "private",
    "dependencies",
    "depends_on",
    "create_before_destroy",
];

/// Returns how many bytes of pointers an object of some length may have: more than that hides all of it. Deep nesting
/// would else make an index far larger than the state.
pub(super) fn most_bytes(object: usize) -> usize {
    object.max(64 * 1024)
}

/// Returns the pointers of those strings of an instance object that contain a secret. A member's name that does
/// hides the object that has the member.
pub(in crate::declared) fn search(object: &str, needles: &Needles) -> Result<Vec<String>, JsonError> {
    let mut pointers: Vec<String> = Vec::new();
    let mut bytes = 0;
    let mut walk = Walk::new(object);
    while let Some(step) = walk.next_step()? {
        let is_hit = match step {
            Step::Name(name) => {
                let member = if walk.depth() == 1 { known(name, &INSTANCE_MEMBERS) } else { None };
                if member.is_some_and(|member| NOT_SEARCHED.contains(&member)) {
                    walk.skip_member()?;
                    continue;
                }
                if member.is_none() && needles.are_in(&name.decode()) {
                    pointers.push(walk.pointer().to_owned());
                    bytes += walk.pointer().len();
                }
                match member {
                    Some(member) => walk.enter_as(member),
                    None => walk.enter(name),
                }
                false
            }
            Step::String(text) => needles.are_in(&text.decode()),
            Step::Open(_) | Step::Close(_) | Step::Other(_) => false,
        };
        if is_hit {
            pointers.push(walk.pointer().to_owned());
            bytes += walk.pointer().len();
        }
        if bytes > most_bytes(object.len()) {
            return Ok(vec![String::new()]);
        }
    }
    Ok(pointers)
}

/// Finds what rules lead to in `attributes_flat`, where the way is the name: `a.0.b`.
pub(super) fn flat(text: &str, known: &[&[SecretRule]]) -> Result<Found, JsonError> {
    let mut found = Found::default();
    let mut cursor = Cursor::new(text);
    cursor.begin_object()?;
    while let Some(name) = cursor.next_member()? {
        let name = name.decode();
        let first = name.split('.').next().unwrap_or_default();
        let rules = known.iter().copied().flatten();
        let hit = rules.filter(|rule| rule.path.first() == Some(&RuleStep::Member(first.to_owned().into())));
        // How the rest of the name fits the rest of the path cannot be told: names of members may hold dots.
        let kind = hit.map(|rule| if rule.path.len() == 1 { rule.kind } else { SecretKind::Document }).max();
        let value = cursor.skip_value()?;
        let Some(kind) = kind else { continue };
        let mut pointer = "/attributes_flat/".to_owned();
        push_escaped(&mut pointer, &name);
        found.pointers.push(pointer);
        let mut value = Cursor::new(text.get(value).unwrap_or_default());
        if kind == SecretKind::Credential
            && let Ok(value) = value.string()
        {
            found.strings.push(value.decode().into_owned());
        }
    }
    Ok(found)
}

/// Sorts pointers, and leaves out those below another one.
pub(in crate::declared) fn pruned(pointers: Vec<String>, object: usize) -> Vec<String> {
    if pointers.len() < 2 {
        return pointers;
    }
    let all: HashSet<String> = pointers.into_iter().collect();
    if all.contains("") || all.iter().map(String::len).sum::<usize>() > most_bytes(object) {
        return vec![String::new()];
    }
    let is_below = |pointer: &str| {
        let mut slashes = pointer.match_indices('/').skip(1);
        slashes.any(|(at, _)| pointer.get(..at).is_some_and(|above| all.contains(above)))
    };
    let mut kept: Vec<String> = all.iter().filter(|pointer| !is_below(pointer)).cloned().collect();
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_below_another_are_left_out() {
        let pointers = ["/a/b", "/a-b", "/a", "/a/b/c", "/c", "/c", "/ab"].map(str::to_owned).into();
        assert_eq!(pruned(pointers, 0), ["/a", "/a-b", "/ab", "/c"]);
        assert_eq!(pruned(vec!["/a".to_owned(), String::new()], 0), [""]);
        assert_eq!(pruned(vec!["/a".to_owned(), "x".repeat(70_000)], 10), [""]);
    }

    #[test]
    fn strings_and_names_are_searched_and_the_tools_own_members_are_not() {
        let needles = Needles::new(["secret".to_owned()]);
        let object = r#"{"index_key":"secret","private":"secret","Attributes":{"a/b":[1,"my secret"],"c":{"secret":1}},
            "identity":"secret","new":{"x":"\u0073ecret"},"sensitive_attributes":[["secret"]]}"#;
        let found = pruned(search(object, &needles).unwrap(), object.len());
        let expected =
            ["/attributes/a~1b/1", "/attributes/c", "/identity", "/new/x", "/sensitive_attributes/0/0"];
        assert_eq!(found, expected);
        assert_eq!(search(r#"{"a secret member":1}"#, &needles), Ok(vec![String::new()]));
    }
}
