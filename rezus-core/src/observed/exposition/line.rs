//! One line of the text.

use std::borrow::Cow;

use super::ExpositionLimits;

/// Why a line is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineFault {
    /// The line is too long.
    #[error("the line is too long")]
    LongLine,
    /// It is not UTF-8.
    #[error("the line is not UTF-8")]
    NotUtf8,
    /// It does not begin with a metric's name, or the name is too long.
    #[error("the line does not begin with the name of a metric")]
    Name,
    /// The labels are not as they should be: no name, no quotes, no closing brace.
    #[error("the labels are not well-formed")]
    Labels,
    /// A label's name or value is too long.
    #[error("a label is too long")]
    LongLabel,
    /// There are too many labels.
    #[error("there are too many labels")]
    ManyLabels,
    /// One label stands there twice.
    #[error("a label is given twice")]
    Twice,
    /// A backslash before something else than `\`, `"` or `n`.
    #[error("a label's value has an unknown escape")]
    Escape,
    /// The value is no number.
    #[error("the value is no number")]
    Value,
    /// What follows the value is no time in milliseconds.
    #[error("what follows the value is no time in milliseconds")]
    Time,
}

/// One sample, borrowed from its line.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The metric.
    pub name: &'a str,
    /// Its labels, as they are written; no name stands there twice.
    pub labels: Labels<'a>,
    /// The value: `NaN` and infinities too.
    pub value: f64,
    /// When it was measured, in milliseconds since 1970, where the target says so.
    pub at_millis: Option<i64>,
}

impl<'a> Sample<'a> {
    /// The value of one label, `None` where it has none of this name.
    pub fn label(&self, name: &str) -> Option<Cow<'a, str>> {
        self.labels.iter().find_map(|(found, value)| (found == name).then_some(value))
    }
}

/// The labels of one sample: text that was found to be well-formed.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// Names and values, in the order in which they are written. A value is copied only where it has escapes.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> + use<'a> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            // It was read like this before, so an error cannot come up here; it would end the labels.
            let (name, raw, after) = next_label(rest).ok()??;
            rest = after;
            Some((name, unescaped(raw)))
        })
    }
}

/// Reads a line without its end.
pub(super) fn read<'a>(line: &'a [u8], limits: &ExpositionLimits) -> Result<Option<Sample<'a>>, LineFault> {
    if line.len() > limits.line {
        return Err(LineFault::LongLine);
    }
    let line = std::str::from_utf8(line).map_err(|_| LineFault::NotUtf8)?;
    let line = line.strip_suffix('\r').unwrap_or(line).trim_matches(BLANK);
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, rest) = name(line, true).ok_or(LineFault::Name)?;
    if name.len() > limits.name {
        return Err(LineFault::Name);
    }
    let rest = rest.trim_start_matches(BLANK);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside, limits)?,
        // Without braces something must tell the name from the value: `name1` is a name alone.
        None => (Labels(""), rest),
    };
    let mut words = rest.split(BLANK).filter(|word| !word.is_empty());
    let value = words.next().ok_or(LineFault::Value)?.parse().map_err(|_| LineFault::Value)?;
    let at_millis = words.next().map(str::parse).transpose().map_err(|_| LineFault::Time)?;
    match words.next() {
        None => Ok(Some(Sample { name, labels, value, at_millis })),
        Some(_) => Err(LineFault::Time),
    }
}

const BLANK: [char; 2] = [' ', '\t'];

/// Splits a metric's (`colons` too) or a label's name off.
fn name(text: &str, colons: bool) -> Option<(&str, &str)> {
    let in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || (colons && byte == b':');
    let end = text.bytes().position(|byte| !in_name(byte)).unwrap_or(text.len());
    let first = text.as_bytes().first()?;
    (end > 0 && !first.is_ascii_digit()).then(|| text.split_at(end))
}

/// Checks all labels; gives them and what follows the closing brace.
fn labels<'a>(inside: &'a str, limits: &ExpositionLimits) -> Result<(Labels<'a>, &'a str), LineFault> {
    let mut names = Vec::new();
    let mut rest = inside;
    while let Some((name, raw, after)) = next_label(rest)? {
        if name.len() > limits.name || raw.len() > limits.value {
            return Err(LineFault::LongLabel);
        }
        if names.len() == limits.labels {
            return Err(LineFault::ManyLabels);
        }
        if names.contains(&name) {
            return Err(LineFault::Twice);
        }
        names.push(name);
        rest = after;
    }
    let after = rest.trim_start_matches(BLANK).strip_prefix('}').ok_or(LineFault::Labels)?;
    Ok((Labels(inside), after))
}

/// A label's name, its value as it is written, and what follows it and its comma; nothing before the closing brace.
type Label<'a> = Option<(&'a str, &'a str, &'a str)>;

fn next_label(text: &str) -> Result<Label<'_>, LineFault> {
    let text = text.trim_start_matches(BLANK);
    if text.starts_with('}') || text.is_empty() {
        return Ok(None);
    }
    let (name, rest) = name(text, false).ok_or(LineFault::Labels)?;
    let rest = rest.trim_start_matches(BLANK).strip_prefix('=').ok_or(LineFault::Labels)?;
    let rest = rest.trim_start_matches(BLANK).strip_prefix('"').ok_or(LineFault::Labels)?;
    let end = end_of_value(rest)?;
    let (raw, rest) = (&rest[..end], rest[end + 1..].trim_start_matches(BLANK));
    match rest.strip_prefix(',') {
        Some(after) => Ok(Some((name, raw, after))),
        None if rest.starts_with('}') => Ok(Some((name, raw, rest))),
        None => Err(LineFault::Labels),
    }
}

/// Where the closing quote stands.
fn end_of_value(text: &str) -> Result<usize, LineFault> {
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &bytes[from..]).ok_or(LineFault::Labels)?;
        if bytes[at] == b'"' {
            return Ok(at);
        }
        match bytes.get(at + 1) {
            Some(b'\\' | b'"' | b'n') => from = at + 2,
            _ => return Err(LineFault::Escape),
        }
    }
}

fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut value = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        match (character, character == '\\') {
            (_, true) => value.extend(characters.next().map(|next| if next == 'n' { '\n' } else { next })),
            (character, false) => value.push(character),
        }
    }
    Cow::Owned(value)
}
