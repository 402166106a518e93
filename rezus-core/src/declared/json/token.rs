//! Single tokens: strings, names, numbers, words, white space.

use super::{Cursor, JsonError, Noted, Text, scan};

impl<'a> Cursor<'a> {
    /// Reads a member's name and the colon.
    pub(super) fn name(&mut self) -> Result<Text<'a>, JsonError> {
        let start = self.at + 1;
        let (end, escaped) = self.skip_name()?;
        Ok(Text::new(self.slice(start..end), escaped))
    }

    pub(super) fn string_here(&mut self, fault: &'static str) -> Result<Text<'a>, JsonError> {
        let start = self.at + 1;
        let (end, escaped) = self.skip_string(fault)?;
        Ok(Text::new(self.slice(start..end), escaped))
    }

    /// Steps over a member's name and the colon, and gives them on if they are of the value itself.
    #[inline]
    pub(super) fn skip_noted(&mut self, note: &mut impl FnMut(Noted<'a>)) -> Result<(), JsonError> {
        let start = self.at + 1;
        let (end, escaped) = self.skip_name()?;
        if self.around.len() == 1 {
            let bytes = self.text.as_bytes();
            note(Noted {
                name: &bytes[start..end],
                escaped,
                name_at: start,
                value: &bytes[self.at..],
                value_at: self.at,
            });
        }
        Ok(())
    }

    /// Steps over a member's name and the colon; returns what [`skip_string`](Self::skip_string) does.
    #[inline]
    pub(super) fn skip_name(&mut self) -> Result<(usize, bool), JsonError> {
        let name = self.skip_string("expected a member's name")?;
        if self.byte() != Some(b':') {
            self.skip_space();
            if self.byte() != Some(b':') {
                return Err(self.fault("expected a colon"));
            }
        }
        self.at += 1;
        if self.byte() == Some(b' ') {
            self.at += 1;
        }
        self.skip_space();
        Ok(name)
    }

    /// Steps over a string; returns where its last quote is, and whether there is an escape in it.
    #[inline]
    pub(super) fn skip_string(&mut self, fault: &'static str) -> Result<(usize, bool), JsonError> {
        if self.byte() != Some(b'"') {
            return Err(self.fault(fault));
        }
        let bytes = self.text.as_bytes();
        let end = scan::plain_end(bytes, self.at + 1);
        if bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok((end, false));
        }
        let end = Self::escaped_end(bytes, end)?;
        self.at = end + 1;
        Ok((end, true))
    }

    /// Returns where a string ends whose first plain part ended at `at` with something else than a quote.
    #[cold]
    pub(super) fn escaped_end(bytes: &[u8], mut at: usize) -> Result<usize, JsonError> {
        loop {
            match bytes.get(at) {
                Some(b'"') => return Ok(at),
                Some(b'\\') => {
                    at = scan::escape_end(bytes, at)
                        .map_err(|offset| JsonError { offset, fault: "no such escape" })?;
                    at = scan::plain_end(bytes, at);
                }
                Some(_) => {
                    return Err(JsonError { offset: at, fault: "a control character in a string" });
                }
                None => {
                    return Err(JsonError { offset: at, fault: "the text ends too early" });
                }
            }
        }
    }

    /// Steps over a number, `true`, `false` or `null`.
    pub(super) fn scalar(&mut self) -> Result<(), JsonError> {
        let bytes = self.text.as_bytes();
        let word: &[u8] = match self.byte() {
            Some(b'-' | b'0'..=b'9') => {
                self.at = scan::number_end(bytes, self.at).map_err(|at| {
                    self.at = at;
                    self.fault("a number that is cut short")
                })?;
                return Ok(());
            }
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return Err(self.fault("expected a value")),
        };
        if !bytes[self.at..].starts_with(word) {
            return Err(self.fault("expected a value"));
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        if !matches!(self.byte(), Some(b'!'..)) {
            self.at = scan::space_end(self.text.as_bytes(), self.at);
        }
    }
}
