//! An instance object as it may be shown: its secret places replaced, all else as the state spells it.

use std::collections::{HashMap, HashSet};

use crate::declared::document::{INSTANCE_MEMBERS, known};
use crate::declared::json::{Cursor, JsonError, Kind, Step, Walk};

/// What stands for a value that must not be shown, as JSON text.
pub const SENSITIVE: &str = "\"(sensitive)\"";

/// Members that are shown even of an object that is hidden as a whole: none of them comes from a provider.
const ALWAYS_SHOWN: [&str; 4] = ["index_key", "status", "deposed", "schema_version"];

/// How many levels are indented; those below stand under each other.
const DEEPEST_INDENT: usize = 100;

/// Returns one instance object as compact JSON, with `"(sensitive)"` in place of what `masked` points to.
///
/// - `object`: the bytes of a row's span
/// - `masked`: the row's pointers; an empty one leaves only what is not the provider's
/// - `private` is left out always
/// - numbers and strings stay as they are spelt; of members that the tools take for the same one the last is shown,
///   under the name that the tools give it
///
/// # Errors
///
/// [`JsonError`] when the bytes are no JSON; they are no row's then.
pub fn show(object: &[u8], masked: &[String]) -> Result<String, JsonError> {
    let text = std::str::from_utf8(object)
        .map_err(|error| JsonError { offset: error.valid_up_to(), fault: "not UTF-8" })?;
    let masked: HashSet<&str> = masked.iter().map(String::as_str).collect();
    let is_hidden = masked.contains("");
    let mut cursor = Cursor::new(text);
    if cursor.peek()? != Kind::Object {
        cursor.skip_value()?;
        cursor.end()?;
        return Ok(if is_hidden { SENSITIVE.to_owned() } else { text.trim_ascii().to_owned() });
    }
    let effective = effective_members(cursor)?;
    let mut writer = Writer::with_capacity(text.len());
    let mut walk = Walk::new(text);
    let mut member = 0;
    while let Some(step) = walk.next_step()? {
        match step {
            Step::Name(name) if walk.depth() == 1 => {
                let found = known(name, &INSTANCE_MEMBERS);
                let is_effective = found.is_none_or(|found| effective.get(found) == Some(&member));
                member += 1;
                let is_shown = is_effective && found != Some("private") && !(is_hidden && found.is_none());
                if !is_shown {
                    walk.skip_member()?;
                    continue;
                }
                writer.name(found.unwrap_or(name.raw()));
                if is_hidden && !found.is_some_and(|found| ALWAYS_SHOWN.contains(&found)) {
                    walk.skip_member()?;
                    writer.value(SENSITIVE);
                    continue;
                }
                match found {
                    Some(found) => walk.enter_as(found),
                    None => walk.enter(name),
                }
            }
            Step::Name(name) => {
                writer.name(name.raw());
                walk.enter(name);
            }
            Step::Close(is_object) => writer.close(is_object),
            Step::Open(_) if masked.contains(walk.pointer()) && !walk.pointer().is_empty() => {
                walk.skip_opened()?;
                writer.value(SENSITIVE);
            }
            Step::Open(is_object) => writer.open(is_object),
            Step::String(_) | Step::Other(_) if masked.contains(walk.pointer()) => writer.value(SENSITIVE),
            Step::String(text) => writer.string(text.raw()),
            Step::Other(text) => writer.value(text),
        }
    }
    Ok(writer.text)
}

/// Returns JSON text indented by two spaces a level, token by token; what is no JSON is returned as it is.
pub fn pretty(json: &str) -> String {
    indented(json).unwrap_or_else(|_| json.to_owned())
}

fn indented(json: &str) -> Result<String, JsonError> {
    let mut writer = Writer { is_indented: true, ..Writer::with_capacity(json.len() * 2) };
    rewrite(json, &mut writer)?;
    Ok(writer.text)
}

fn rewrite(json: &str, writer: &mut Writer) -> Result<(), JsonError> {
    let mut walk = Walk::new(json);
    while let Some(step) = walk.next_step()? {
        match step {
            Step::Name(name) => writer.name(name.raw()),
            Step::Open(is_object) => writer.open(is_object),
            Step::Close(is_object) => writer.close(is_object),
            Step::String(text) => writer.string(text.raw()),
            Step::Other(text) => writer.value(text),
        }
    }
    Ok(())
}

/// Returns the position of the last of each known member.
fn effective_members(mut cursor: Cursor<'_>) -> Result<HashMap<&'static str, usize>, JsonError> {
    let mut effective = HashMap::new();
    let mut position = 0;
    cursor.begin_object()?;
    while let Some(name) = cursor.next_member()? {
        if let Some(found) = known(name, &INSTANCE_MEMBERS) {
            effective.insert(found, position);
        }
        position += 1;
        cursor.skip_value()?;
    }
    cursor.end()?;
    Ok(effective)
}

/// Writes JSON text, token by token.
struct Writer {
    text: String,
    /// For each open container, whether something is in it.
    filled: Vec<bool>,
    is_after_name: bool,
    is_indented: bool,
}

impl Writer {
    fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            filled: Vec::new(),
            is_after_name: false,
            is_indented: false,
        }
    }

    fn name(&mut self, raw: &str) {
        self.before();
        self.quote(raw);
        self.text.push(':');
        if self.is_indented {
            self.text.push(' ');
        }
        self.is_after_name = true;
    }

    fn string(&mut self, raw: &str) {
        self.before();
        self.quote(raw);
    }

    fn value(&mut self, text: &str) {
        self.before();
        self.text.push_str(text);
    }

    fn open(&mut self, is_object: bool) {
        self.before();
        self.text.push(if is_object { '{' } else { '[' });
        self.filled.push(false);
    }

    fn close(&mut self, is_object: bool) {
        if self.filled.pop() == Some(true) {
            self.line();
        }
        self.text.push(if is_object { '}' } else { ']' });
    }

    fn quote(&mut self, raw: &str) {
        self.text.push('"');
        self.text.push_str(raw);
        self.text.push('"');
    }

    fn before(&mut self) {
        if std::mem::take(&mut self.is_after_name) {
            return;
        }
        let Some(filled) = self.filled.last_mut() else {
            return;
        };
        if std::mem::replace(filled, true) {
            self.text.push(',');
        }
        self.line();
    }

    fn line(&mut self) {
        if self.is_indented {
            self.text.push('\n');
            for _ in 0..self.filled.len().min(DEEPEST_INDENT) {
                self.text.push_str("  ");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(object: &str, masked: &[&str]) -> String {
        let masked: Vec<String> = masked.iter().map(|pointer| (*pointer).to_owned()).collect();
        show(object.as_bytes(), &masked).unwrap()
    }

    #[test]
    fn secret_places_are_replaced_and_the_rest_is_kept_as_spelt() {
        let object = r#"{ "index_key" : "k" , "attributes": { "n" : 1.50e1, "p/w": "x", "l": [ 1, {"a":[ ]}, "\u003c" ] },
            "private": "never" }"#;
        assert_eq!(
            shown(object, &["/attributes/p~1w", "/attributes/l/1"]),
            r#"{"index_key":"k","attributes":{"n":1.50e1,"p/w":"(sensitive)","l":[1,"(sensitive)","\u003c"]}}"#
        );
        assert_eq!(shown(object, &["/attributes"]), r#"{"index_key":"k","attributes":"(sensitive)"}"#);
    }

    #[test]
    fn an_object_that_is_hidden_shows_what_is_not_the_providers() {
        let object = r#"{"index_key":0,"status":"tainted","schema_version":1,"attributes":{"a":1},"new":1,"dependencies":["a.b"]}"#;
        let expected = r#"{"index_key":0,"status":"tainted","schema_version":1,"attributes":"(sensitive)","dependencies":"(sensitive)"}"#;
        assert_eq!(shown(object, &[""]), expected);
    }

    #[test]
    fn of_members_that_are_the_same_the_last_is_shown() {
        let object = r#"{"attributes":{"secret":1},"Private":1,"ATTRIBUTES":{"a":2},"x":3}"#;
        assert_eq!(shown(object, &["/attributes/a"]), r#"{"attributes":{"a":"(sensitive)"},"x":3}"#);
        assert_eq!(shown(" null ", &[]), "null");
        assert!(show(b"{\"a\":", &[]).is_err());
    }

    #[test]
    fn indentation_changes_no_token() {
        let text = r#"{"a":[1.0,{"b":{}},[]],"c":"\u003c"}"#;
        let expected =
            "{\n  \"a\": [\n    1.0,\n    {\n      \"b\": {}\n    },\n    []\n  ],\n  \"c\": \"\\u003c\"\n}";
        assert_eq!(pretty(text), expected);
        assert_eq!(pretty("no JSON"), "no JSON");
    }
}
