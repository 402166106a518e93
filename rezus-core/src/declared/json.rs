//! A reader of JSON text that knows where it is: byte spans, full validation, no recursion and no tree.
//!
//! The grammar is RFC 8259's, to the letter. Two choices that the RFC leaves open are made as Go's `encoding/json`
//! makes them, since it is what reads the same bytes next: values nest 10,000 deep and no deeper, and an escaped lone
//! surrogate is accepted and stands for U+FFFD.

mod scan;
mod text;
mod token;
mod walk;

use std::ops::Range;

pub use text::Text;
pub(in crate::declared) use walk::push_escaped;
pub use walk::{Step, Walk};

/// How deep arrays and objects may nest; the limit of Go's `encoding/json`.
pub const MAX_DEPTH: usize = 10_000;

/// Why a text is no JSON, and where. Nothing of the text is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {offset}")]
pub struct JsonError {
    /// Bytes before the fault.
    pub offset: usize,
    /// What is wrong there.
    pub fault: &'static str,
}

/// What a value is, told by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `{`
    Object,
    /// `[`
    Array,
    /// `"`
    String,
    /// `-` or a digit
    Number,
    /// `true` or `false`
    Bool,
    /// `null`
    Null,
}

/// A member that was come by on the way.
pub(in crate::declared) struct Noted<'a> {
    /// The name, as it stands between its quotes.
    pub(in crate::declared) name: &'a [u8],
    /// Whether there is an escape in the name.
    pub(in crate::declared) escaped: bool,
    /// Where the name begins.
    pub(in crate::declared) name_at: usize,
    /// The text from the value on.
    pub(in crate::declared) value: &'a [u8],
    /// Where the value begins.
    pub(in crate::declared) value_at: usize,
}

/// A place in a JSON text, moved on by reading.
///
/// Before each value the caller either enters it ([`begin_object`](Self::begin_object),
/// [`begin_array`](Self::begin_array)), reads it, or skips it.
#[derive(Debug)]
pub struct Cursor<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Whether a container was entered and nothing read since: no comma is due.
    fresh: bool,
    /// The containers around the value that is being skipped: true for objects.
    around: Vec<bool>,
}

impl<'a> Cursor<'a> {
    /// Stands at the start of a text.
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0, fresh: false, around: Vec::new() }
    }

    /// Returns how many bytes are behind.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Skips white space and tells what the next value is.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where no value begins.
    pub fn peek(&mut self) -> Result<Kind, JsonError> {
        self.skip_space();
        match self.byte() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            _ => Err(self.fault("expected a value")),
        }
    }

    /// Enters an object.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where none begins.
    pub fn begin_object(&mut self) -> Result<(), JsonError> {
        self.begin(b'{', "expected an object")
    }

    /// Enters an array.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where none begins.
    pub fn begin_array(&mut self) -> Result<(), JsonError> {
        self.begin(b'[', "expected an array")
    }

    /// Returns the name of the entered object's next member, and stands before its value; `None` leaves the object.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where neither a member nor the end follows.
    #[inline]
    pub fn next_member(&mut self) -> Result<Option<Text<'a>>, JsonError> {
        if !self.advance(b'}', "expected a comma or the end of the object")? {
            return Ok(None);
        }
        let name = self.name()?;
        Ok(Some(name))
    }

    /// Tells whether the entered array has another element, and stands before it; false leaves the array.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where neither an element nor the end follows.
    #[inline]
    pub fn next_element(&mut self) -> Result<bool, JsonError> {
        self.advance(b']', "expected a comma or the end of the array")
    }

    /// Reads a string.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where none begins, or for one that is not well-formed.
    pub fn string(&mut self) -> Result<Text<'a>, JsonError> {
        self.skip_space();
        self.fresh = false;
        self.string_here("expected a string")
    }

    /// Reads a number, as it is spelt.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where none begins, or for one that is not well-formed.
    pub fn number(&mut self) -> Result<&'a str, JsonError> {
        let span = self.skip_value()?;
        match self.text.as_bytes().get(span.start) {
            Some(b'-' | b'0'..=b'9') => Ok(self.slice(span)),
            _ => Err(JsonError { offset: span.start, fault: "expected a number" }),
        }
    }

    /// Skips the next value, validating all of it, and returns its bytes.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where no value begins, or for one that is not well-formed.
    pub fn skip_value(&mut self) -> Result<Range<usize>, JsonError> {
        self.skip_noting(|_| {})
    }

    /// Skips the next value as [`skip_value`](Self::skip_value) does; of an object, gives each member on.
    pub(in crate::declared) fn skip_noting(
        &mut self,
        mut note: impl FnMut(Noted<'a>),
    ) -> Result<Range<usize>, JsonError> {
        self.skip_space();
        self.fresh = false;
        self.around.clear();
        let start = self.at;
        let mut in_object = false;
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.skip_string("expected a value")?;
                }
                Some(open @ (b'{' | b'[')) => {
                    self.descend(self.around.len() + 1)?;
                    self.around.push(in_object);
                    in_object = open == b'{';
                    self.skip_space();
                    let close = if in_object { b'}' } else { b']' };
                    if self.byte() != Some(close) {
                        if in_object {
                            self.skip_noted(&mut note)?;
                        }
                        continue;
                    }
                    self.at += 1;
                    in_object = self.around.pop().unwrap_or(false);
                }
                _ => self.scalar()?,
            }
            loop {
                if self.around.is_empty() {
                    return Ok(start..self.at);
                }
                self.skip_space();
                match self.byte() {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_space();
                        if in_object {
                            self.skip_noted(&mut note)?;
                        }
                        break;
                    }
                    Some(b'}') if in_object => {
                        self.at += 1;
                        in_object = self.around.pop().unwrap_or(false);
                    }
                    Some(b']') if !in_object => {
                        self.at += 1;
                        in_object = self.around.pop().unwrap_or(false);
                    }
                    _ if in_object => return Err(self.fault("expected a comma or the end of the object")),
                    _ => return Err(self.fault("expected a comma or the end of the array")),
                }
            }
        }
    }

    /// Checks that nothing but white space is left.
    ///
    /// # Errors
    ///
    /// [`JsonError`] at the first other byte.
    pub fn end(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault("expected the end of the text")) }
    }

    /// Returns the bytes of a span that reading returned.
    pub(in crate::declared) fn bytes(&self, span: Range<usize>) -> &'a [u8] {
        self.slice(span).as_bytes()
    }

    /// Returns how many containers were entered and not left.
    pub(in crate::declared) fn depth(&self) -> usize {
        self.depth
    }

    /// Goes back to a value that was begun or skipped, which was `levels` containers up.
    pub(in crate::declared) fn back_to(&mut self, offset: usize, levels: usize) {
        self.at = offset;
        self.depth = self.depth.saturating_sub(levels);
    }

    /// Returns the text of a span that reading returned.
    fn slice(&self, span: Range<usize>) -> &'a str {
        self.text.get(span).unwrap_or_default()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn fault(&self, fault: &'static str) -> JsonError {
        if self.at >= self.text.len() {
            return JsonError { offset: self.text.len(), fault: "the text ends too early" };
        }
        JsonError { offset: self.at, fault }
    }

    /// Steps over an opening byte, which makes `inner` containers below those that were entered.
    fn descend(&mut self, inner: usize) -> Result<(), JsonError> {
        if self.depth + inner > MAX_DEPTH {
            return Err(self.fault("nested too deep"));
        }
        self.at += 1;
        Ok(())
    }

    fn begin(&mut self, open: u8, fault: &'static str) -> Result<(), JsonError> {
        self.skip_space();
        if self.byte() != Some(open) {
            return Err(self.fault(fault));
        }
        self.descend(1)?;
        self.depth += 1;
        self.fresh = true;
        Ok(())
    }

    /// Steps over the comma that is due, or out of the container.
    fn advance(&mut self, close: u8, fault: &'static str) -> Result<bool, JsonError> {
        self.skip_space();
        let next = self.byte();
        if next == Some(close) {
            self.at += 1;
            self.depth = self.depth.saturating_sub(1);
            self.fresh = false;
            return Ok(false);
        }
        if self.fresh {
            self.fresh = false;
            return Ok(true);
        }
        if next != Some(b',') {
            return Err(self.fault(fault));
        }
        self.at += 1;
        self.skip_space();
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
