//! A mapping file as a tree of YAML values that know their lines.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

use super::MappingError;

/// How many bytes a file may have.
const MOST_BYTES: usize = 256 * 1024;

/// A value and its line.
#[derive(Clone, Debug)]
pub(super) struct Yaml {
    pub(super) line: u64,
    pub(super) value: Value,
}

/// What a value is; numbers and bools are their text.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Null,
    Text(String),
    List(Vec<Yaml>),
    Map(Vec<(Yaml, Yaml)>),
}

/// Reads a file.
pub(super) fn read(file: &str, text: &str) -> Result<Yaml, MappingError> {
    let error = |line: u64, reason: String| MappingError { file: file.to_owned(), line, reason };
    if text.len() > MOST_BYTES {
        return Err(error(1, format!("longer than {MOST_BYTES} bytes")));
    }
    let options = serde_saphyr::options! {
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Spanned<Value>>(text, options).map(Yaml::from).map_err(|fault| {
        let line = fault.location().map_or(1, |location| location.line());
        let reason = fault.to_string();
        let reason = reason.lines().next().unwrap_or_default().to_owned();
        error(line, format!("not readable as YAML: {reason}"))
    })
}

impl Yaml {
    /// Returns the text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Returns what the value is, for a message.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

impl From<Spanned<Value>> for Yaml {
    fn from(spanned: Spanned<Value>) -> Self {
        Self { line: spanned.referenced.line(), value: spanned.value }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Text(v.to_string()))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(Value::Text(v.to_string()))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(Value::Text(v.to_string()))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Value::Text(v.to_string()))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::Text(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::Text(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element::<Spanned<Value>>()? {
            values.push(Yaml::from(value));
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(name) = map.next_key::<Spanned<Value>>()? {
            let value = map.next_value::<Spanned<Value>>()?;
            values.push((Yaml::from(name), Yaml::from(value)));
        }
        Ok(Value::Map(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_lines() {
        let yaml = read("f", "a: 1\nb:\n  - x\n  - {c: true, d: ~}\n").unwrap();
        let Value::Map(members) = &yaml.value else { panic!() };
        assert_eq!((members[1].0.line, members[1].0.text()), (2, Some("b")));
        let Value::List(list) = &members[1].1.value else { panic!() };
        assert_eq!((list[0].line, list[0].text()), (3, Some("x")));
        let Value::Map(inner) = &list[1].value else { panic!() };
        assert_eq!((inner[0].1.line, inner[0].1.text(), inner[1].1.kind()), (4, Some("true"), "nothing"));
    }

    #[test]
    fn what_is_no_yaml_is_said_with_its_line() {
        let error = read("f.yaml", "a: 1\na: [\n").unwrap_err();
        assert!(error.line >= 2, "{error}");
        assert!(error.to_string().starts_with("f.yaml:"), "{error}");
        assert_eq!(read("f", "a: 1\nb: 2\na: 3\n").unwrap_err().line, 3);
        assert!(read("f", &"x".repeat(MOST_BYTES + 1)).is_err());
    }
}
