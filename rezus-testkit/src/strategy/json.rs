//! A JSON tree that keeps the order of members and the spelling of numbers, and its text in any layout.

use super::noise::Noise;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    /// A number, true, false or null, as spelt.
    Raw(String),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object; its members' order is that of the text.
    Object(Vec<(String, Self)>),
}

/// How a text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// Two spaces a level and a newline at the end: Terraform, and OpenTofu for local files.
    Indented,
    /// One line with a newline at its end: OpenTofu for remote states.
    Compact,
    /// One line and no newline.
    Bare,
    /// White space of every kind wherever it may be.
    Sparse,
}

/// Which characters a text escapes beyond those that it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escapes {
    /// `<`, `>`, `&`, U+2028 and U+2029, as Go does.
    Go,
    /// All that is not ASCII, astral ones as two surrogates, as Python does; and the slash.
    Ascii,
    /// None.
    Least,
}

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) layout: Layout,
    pub(super) escapes: Escapes,
    /// Of the white space of [`Layout::Sparse`].
    pub(super) seed: u64,
}

pub(super) fn text(text: &str) -> Json {
    Json::Text(text.to_owned())
}

pub(super) fn raw(text: &str) -> Json {
    Json::Raw(text.to_owned())
}

pub(super) fn number(number: usize) -> Json {
    Json::Raw(number.to_string())
}

pub(super) fn member(name: &str, value: Json) -> (String, Json) {
    (name.to_owned(), value)
}

/// Writes a value.
pub(super) fn write(value: &Json, style: Style) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new(), style, noise: Noise::new(style.seed) };
    writer.value(value, 0);
    match style.layout {
        Layout::Indented | Layout::Compact => writer.out.push(b'\n'),
        Layout::Bare => {}
        Layout::Sparse => writer.space(0),
    }
    writer.out
}

struct Writer {
    out: Vec<u8>,
    style: Style,
    noise: Noise,
}

impl Writer {
    /// Adds the white space between two tokens.
    fn space(&mut self, depth: usize) {
        match self.style.layout {
            Layout::Indented => {
                self.out.push(b'\n');
                self.out.extend(std::iter::repeat_n(b' ', depth * 2));
            }
            Layout::Compact | Layout::Bare => {}
            Layout::Sparse => {
                for _ in 0..self.noise.below(4) {
                    self.out.push(b" \t\r\n"[self.noise.below(4)]);
                }
            }
        }
    }

    fn value(&mut self, value: &Json, depth: usize) {
        match value {
            Json::Raw(raw) => self.out.extend_from_slice(raw.as_bytes()),
            Json::Text(text) => self.string(text),
            Json::List(elements) => {
                self.out.push(b'[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.space(depth + 1);
                    self.value(element, depth + 1);
                }
                if !elements.is_empty() {
                    self.space(depth);
                }
                self.out.push(b']');
            }
            Json::Object(members) => {
                self.out.push(b'{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        self.out.push(b',');
                    }
                    self.space(depth + 1);
                    self.string(name);
                    if self.style.layout == Layout::Sparse {
                        self.space(0);
                    }
                    self.out.push(b':');
                    match self.style.layout {
                        Layout::Indented => self.out.push(b' '),
                        Layout::Sparse => self.space(0),
                        Layout::Compact | Layout::Bare => {}
                    }
                    self.value(value, depth + 1);
                }
                if !members.is_empty() {
                    self.space(depth);
                }
                self.out.push(b'}');
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push(b'"');
        for character in text.chars() {
            let code = u32::from(character);
            let extra = match self.style.escapes {
                Escapes::Go => matches!(character, '<' | '>' | '&' | '\u{2028}' | '\u{2029}'),
                Escapes::Ascii => code > 0x7e,
                Escapes::Least => false,
            };
            match character {
                '"' => self.out.extend_from_slice(b"\\\""),
                '\\' => self.out.extend_from_slice(b"\\\\"),
                '\n' => self.out.extend_from_slice(b"\\n"),
                '\r' => self.out.extend_from_slice(b"\\r"),
                '\t' => self.out.extend_from_slice(b"\\t"),
                '/' if self.style.escapes == Escapes::Ascii => self.out.extend_from_slice(b"\\/"),
                _ if code < 0x20 || extra => {
                    for unit in character.encode_utf16(&mut [0; 2]) {
                        self.out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                    }
                }
                _ => self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.out.push(b'"');
    }
}
