//! The address of a resource instance, spelt as OpenTofu spells it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use unicode_general_category::{GeneralCategory, get_general_category};

use crate::declared::index::{InstanceKey, Mode};

/// The address of a resource instance: `module.pool["eu/a"].oci_core_instance.node[0]`.
///
/// - what a person wrote is checked and brought to OpenTofu's own spelling ([`parse`](Self::parse)), so that equal
///   addresses are equal texts
/// - what a state says is taken as it is ([`of_instance`](Self::of_instance)): a state that the tools accept may hold
///   names that the language does not allow
///
/// Cheap to clone: whatever names an instance shares one text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceAddress(Arc<str>);

/// Why a text is no address, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a resource address such as module.pool[\"eu/a\"].oci_core_instance.node[0]: expected {expected} after {offset} \
     bytes"
)]
pub struct AddressError {
    /// Bytes before the fault.
    pub offset: usize,
    /// What should have been there.
    pub expected: &'static str,
}

impl ResourceAddress {
    /// Takes what a person wrote as an address: `[module.NAME[KEY].]... [data.]TYPE.NAME[KEY]`.
    ///
    /// # Errors
    ///
    /// [`AddressError`] says where the text departs from that, and what was expected.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let mut parser = Parser { text, at: 0, spelt: String::with_capacity(text.len()) };
        parser.address()?;
        Ok(Self(parser.spelt.into()))
    }

    /// Makes the address of an instance from what its state says.
    ///
    /// `module` is the address of the module instance, already spelt; empty for the root.
    pub fn of_instance(
        module: &str,
        mode: Mode,
        resource_type: &str,
        name: &str,
        key: Option<&InstanceKey>,
    ) -> Self {
        let mut text = String::with_capacity(module.len() + resource_type.len() + name.len() + 16);
        if !module.is_empty() {
            text.push_str(module);
            text.push('.');
        }
        if mode == Mode::Data {
            text.push_str("data.");
        }
        text.push_str(resource_type);
        text.push('.');
        text.push_str(name);
        if let Some(key) = key {
            push_key(&mut text, key);
        }
        Self(text.into())
    }

    /// Takes a text that was an address before, from where addresses are kept.
    pub fn from_kept(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the address as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ResourceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

fn push_key(text: &mut String, key: &InstanceKey) {
    match key {
        InstanceKey::Number(number) => {
            text.push('[');
            text.push_str(&number.to_string());
            text.push(']');
        }
        InstanceKey::Text(key) => {
            text.push_str("[\"");
            push_quoted(text, key);
            text.push_str("\"]");
        }
    }
}

/// Adds a key as `addrs.StringKey` spells it in OpenTofu (`toHCLQuotedString`).
fn push_quoted(text: &mut String, key: &str) {
    let mut rest = key.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '$' | '%' => {
                text.push(character);
                if rest.peek() == Some(&'{') {
                    text.push(character);
                }
            }
            ' '..='~' => text.push(character),
            _ if is_print(character) => text.push(character),
            _ if u32::from(character) > 0xffff => push_escape(text, 'U', 8, character),
            _ => push_escape(text, 'u', 4, character),
        }
    }
}

/// Adds a character by its number, in lower-case hexadecimal digits.
fn push_escape(text: &mut String, mark: char, digits: u32, character: char) {
    text.push('\\');
    text.push(mark);
    for place in (0..digits).rev() {
        let digit = (u32::from(character) >> (4 * place)) & 15;
        text.push(char::from_digit(digit, 16).unwrap_or('0'));
    }
}

/// Tells what Go's `unicode.IsPrint` tells: letters, marks, numbers, punctuation, symbols and U+0020.
fn is_print(character: char) -> bool {
    use GeneralCategory as C;
    character == ' '
        || !matches!(
            get_general_category(character),
            C::Control
                | C::Format
                | C::Surrogate
                | C::PrivateUse
                | C::Unassigned
                | C::LineSeparator
                | C::ParagraphSeparator
                | C::SpaceSeparator
        )
}

/// Reads an address and spells it anew.
struct Parser<'a> {
    text: &'a str,
    at: usize,
    spelt: String,
}

impl Parser<'_> {
    fn address(&mut self) -> Result<(), AddressError> {
        let mut word = self.identifier("a resource type, \"module\" or \"data\"")?;
        while word == "module" {
            self.token('.', "a dot and the module's name")?;
            self.identifier("the module's name")?;
            self.key()?;
            self.token('.', "a dot and the resource in the module")?;
            word = self.identifier("a resource type, \"module\" or \"data\"")?;
        }
        if word == "data" {
            self.token('.', "a dot and the data source's type")?;
            self.identifier("the data source's type")?;
        }
        self.token('.', "a dot and the resource's name")?;
        self.identifier("the resource's name")?;
        self.key()?;
        if self.rest().is_empty() {
            Ok(())
        } else {
            Err(self.expected("the end, or an instance key in brackets"))
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn expected(&self, expected: &'static str) -> AddressError {
        AddressError { offset: self.at, expected }
    }

    /// Reads an HCL identifier: letters, digits, `_` and `-`, the first of them a letter or `_`.
    fn identifier(&mut self, expected: &'static str) -> Result<String, AddressError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default().to_owned();
        if !word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return Err(self.expected(expected));
        }
        self.at += end;
        self.spelt.push_str(&word);
        Ok(word)
    }

    fn token(&mut self, token: char, expected: &'static str) -> Result<(), AddressError> {
        if !self.rest().starts_with(token) {
            return Err(self.expected(expected));
        }
        self.at += token.len_utf8();
        self.spelt.push(token);
        Ok(())
    }

    /// Reads an instance key, if there is one.
    fn key(&mut self) -> Result<(), AddressError> {
        let Some(inner) = self.rest().strip_prefix('[') else {
            return Ok(());
        };
        let key = if inner.starts_with('"') {
            self.at += 2;
            InstanceKey::Text(self.quoted()?)
        } else {
            let end = inner.find(']').unwrap_or(inner.len());
            let number = inner.get(..end).and_then(|digits| digits.parse().ok());
            let Some(number) = number.filter(|_| !inner.starts_with('+')) else {
                self.at += 1;
                return Err(self.expected("a whole number or a text in double quotes"));
            };
            self.at += 1 + end;
            InstanceKey::Number(number)
        };
        if !self.rest().starts_with(']') {
            return Err(self.expected("a closing bracket"));
        }
        self.at += 1;
        push_key(&mut self.spelt, &key);
        Ok(())
    }

    /// Reads a quoted key behind its first quote, up to and with its last.
    fn quoted(&mut self) -> Result<String, AddressError> {
        let mut key = String::new();
        loop {
            let rest = self.rest();
            let mut characters = rest.chars();
            let Some(character) = characters.next() else {
                return Err(self.expected("a closing quote"));
            };
            let used = match character {
                '"' => {
                    self.at += 1;
                    return Ok(key);
                }
                '\\' => {
                    let (meaning, used) =
                        unescaped(rest).ok_or(self.expected("an escape such as \\n or \\u00e4"))?;
                    key.push(meaning);
                    used
                }
                '$' | '%' if characters.as_str().starts_with('{') => {
                    return Err(self.expected("a doubled $ or % before {"));
                }
                '$' | '%' if characters.as_str().starts_with([character]) && rest.get(2..3) == Some("{") => {
                    key.push(character);
                    key.push('{');
                    3
                }
                other => {
                    key.push(other);
                    other.len_utf8()
                }
            };
            self.at += used;
        }
    }
}

/// Decodes the escape that a text begins with, and tells how many bytes it takes.
fn unescaped(text: &str) -> Option<(char, usize)> {
    let digits = |count: usize| {
        let hex = text.get(2..2 + count).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?;
        Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, 2 + count))
    };
    match text.chars().nth(1)? {
        'n' => Some(('\n', 2)),
        'r' => Some(('\r', 2)),
        't' => Some(('\t', 2)),
        same @ ('"' | '\\') => Some((same, 2)),
        'u' => digits(4),
        'U' => digits(8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(key: &str) -> String {
        let key = InstanceKey::Text(key.to_owned());
        ResourceAddress::of_instance("", Mode::Managed, "a", "b", Some(&key)).to_string()
    }

    #[test]
    fn keys_are_spelt_as_opentofu_spells_them() {
        let cases = [
            ("eu/a", "eu/a"),
            ("", ""),
            ("a\n\r\t\"\\", r#"a\n\r\t\"\\"#),
            ("$ ${ %{ $${ $", "$ $${ %%{ $$${ $"),
            ("ä\u{301}漢😀٣€", "ä\u{301}漢😀٣€"),
            (
                "\0\u{7f}\u{a0}\u{200b}\u{202e}\u{2028}\u{3000}\u{feff}",
                r"\u0000\u007f\u00a0\u200b\u202e\u2028\u3000\ufeff",
            ),
            ("\u{e000}\u{f0000}\u{10ffff}", r"\ue000\U000f0000\U0010ffff"),
        ];
        for (key, spelt) in cases {
            assert_eq!(keyed(key), format!("a.b[\"{spelt}\"]"));
            assert_eq!(ResourceAddress::parse(&keyed(key)).map(|a| a.to_string()), Ok(keyed(key)));
        }
    }

    #[test]
    fn parts_make_an_address() {
        let of = |module: &str, mode, key: Option<InstanceKey>| {
            ResourceAddress::of_instance(module, mode, "x_y", "z", key.as_ref()).to_string()
        };
        assert_eq!(of("", Mode::Managed, None), "x_y.z");
        assert_eq!(of("", Mode::Data, Some(InstanceKey::Number(0))), "data.x_y.z[0]");
        assert_eq!(
            of("module.a[\"k\"].module.b[0]", Mode::Data, None),
            "module.a[\"k\"].module.b[0].data.x_y.z"
        );
    }

    #[test]
    fn what_a_person_writes_is_brought_to_one_spelling() {
        let spelt = |text: &str| ResourceAddress::parse(text).map(|address| address.to_string());
        assert_eq!(spelt(r#"a.b["\u0041\U0000000a"]"#), Ok(r#"a.b["A\n"]"#.to_owned()));
        assert_eq!(
            spelt(r#"module.m["x"].data.a.b-c[007]"#),
            Ok(r#"module.m["x"].data.a.b-c[7]"#.to_owned())
        );
    }

    #[test]
    fn what_is_no_address_is_told_where() {
        let cases = [
            ("", 0),
            ("a", 1),
            ("a.", 2),
            ("a.b.c", 3),
            ("module.m", 8),
            ("module.m.a", 10),
            ("a.b[", 4),
            ("a.b[x]", 4),
            ("a.b[\"x]", 7),
            ("a.b[\"x\"", 7),
            ("a.b[\"${x}\"]", 5),
            ("a.b[\"\\q\"]", 5),
            ("1.b", 0),
            ("a.b ", 3),
            ("data.a", 6),
        ];
        for (text, offset) in cases {
            assert_eq!(ResourceAddress::parse(text).map_err(|e| e.offset), Err(offset), "{text}");
        }
        let error = ResourceAddress::parse("a").unwrap_err().to_string();
        assert!(error.ends_with("expected a dot and the resource's name after 1 bytes"), "{error}");
    }
}
