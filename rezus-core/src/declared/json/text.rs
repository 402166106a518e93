//! A string of a JSON text, decoded when asked.

use std::borrow::Cow;

use super::scan;

/// A string as it stands in the text, without its quotes; known to be well-formed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> Text<'a> {
    pub(super) fn new(raw: &'a str, escaped: bool) -> Self {
        Self { raw, escaped }
    }

    /// Takes the string that begins behind a quote, in a text that is known to be well-formed.
    pub(in crate::declared) fn until_quote(text: &'a str, start: usize) -> Self {
        let bytes = text.as_bytes();
        let mut end = scan::plain_end(bytes, start);
        while bytes.get(end) == Some(&b'\\') {
            end = scan::plain_end(bytes, end + 2);
        }
        Self { raw: text.get(start..end).unwrap_or_default(), escaped: true }
    }

    /// Returns what stands between the quotes.
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// Tells whether there is an escape in it: if not, [`raw`](Self::raw) is what the string means.
    pub fn is_escaped(self) -> bool {
        self.escaped
    }

    /// Returns what the string means. A lone surrogate becomes U+FFFD.
    pub fn decode(self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(decoded(self.raw)) } else { Cow::Borrowed(self.raw) }
    }
}

/// The length only: the text may be a secret.
impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Text({} bytes)", self.raw.len())
    }
}

fn decoded(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let mut tail = escape.chars();
        let simple = match tail.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                let (character, used) = unit_pair(escape);
                text.push(character);
                rest = escape.get(used..).unwrap_or_default();
                continue;
            }
            Some(other) => other,
            None => break,
        };
        text.push(simple);
        rest = tail.as_str();
    }
    text.push_str(rest);
    text
}

/// Decodes `uXXXX`, or `uXXXX\uXXXX` where the two make one character, and tells how many bytes that took.
fn unit_pair(escape: &str) -> (char, usize) {
    let unit = |at: usize| escape.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let first = unit(1).unwrap_or(0xfffd);
    if let Some(character) = char::from_u32(first) {
        return (character, 5);
    }
    if first < 0xdc00
        && escape.get(5..7) == Some("\\u")
        && let Some(second @ 0xdc00..=0xdfff) = unit(7)
    {
        let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return (char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER), 11);
    }
    (char::REPLACEMENT_CHARACTER, 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_what_go_takes_them_for() {
        let cases = [
            (r#"a\"\\\/\b\f\n\r\tz"#, "a\"\\/\u{8}\u{c}\n\r\tz"),
            (r"\u003cb\u003E \u00e4", "<b> ä"),
            (r"\ud83d\ude00!", "😀!"),
            (r"\ud83d", "\u{fffd}"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
            (r"\ude00\u0041", "\u{fffd}A"),
            (r"\ud83dx", "\u{fffd}x"),
        ];
        for (raw, meaning) in cases {
            assert_eq!(Text::new(raw, true).decode(), meaning, "{raw}");
        }
    }
}
