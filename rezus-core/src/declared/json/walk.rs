//! A walk through all of a value, which knows the JSON pointer of where it is.

use crate::declared::json::{Cursor, JsonError, Kind, Text};

/// What a walk comes to next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// An object or array begins: true for an object.
    Open(bool),
    /// An object or array ends: true for an object.
    Close(bool),
    /// The name of a member, whose value is next. The pointer is still that of the object.
    Name(Text<'a>),
    /// A string.
    String(Text<'a>),
    /// A number, `true`, `false` or `null`, as it is spelt.
    Other(&'a str),
}

/// A walk through one value: each of its parts once, in the order of the text, without recursion.
///
/// After [`Step::Open`], [`Step::String`] and [`Step::Other`] the pointer is that of this value; after
/// [`Step::Close`], of the value that ended.
#[derive(Debug)]
pub struct Walk<'a> {
    cursor: Cursor<'a>,
    pointer: String,
    open: Vec<Frame>,
    /// Where the container of the last [`Step::Open`] begins.
    opened_at: usize,
    done: bool,
}

#[derive(Debug)]
struct Frame {
    is_object: bool,
    /// Bytes of the container's own pointer.
    pointer: usize,
    /// Elements seen; or 1 while a member's value is due.
    seen: usize,
}

impl<'a> Walk<'a> {
    /// Stands before the value that is all of a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            cursor: Cursor::new(text),
            pointer: String::new(),
            open: Vec::new(),
            opened_at: 0,
            done: false,
        }
    }

    /// Begins every pointer with another one: that of the value itself.
    #[must_use]
    pub fn below(mut self, pointer: &str) -> Self {
        pointer.clone_into(&mut self.pointer);
        self
    }

    /// Returns the JSON pointer (RFC 6901) of where the walk is.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns how many containers are around the place.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns the next step; `None` behind the value.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where the text is no JSON.
    pub fn next_step(&mut self) -> Result<Option<Step<'a>>, JsonError> {
        match self.open.last_mut() {
            None if self.done => return Ok(None),
            None => {}
            Some(frame) if frame.is_object => {
                if frame.seen == 0 {
                    self.pointer.truncate(frame.pointer);
                    let Some(name) = self.cursor.next_member()? else {
                        return Ok(Some(self.close()));
                    };
                    frame.seen = 1;
                    return Ok(Some(Step::Name(name)));
                }
                frame.seen = 0;
            }
            Some(frame) => {
                self.pointer.truncate(frame.pointer);
                if !self.cursor.next_element()? {
                    return Ok(Some(self.close()));
                }
                self.pointer.push('/');
                self.pointer.push_str(&frame.seen.to_string());
                frame.seen += 1;
            }
        }
        self.value().map(Some)
    }

    /// Takes the name that [`Step::Name`] gave into the pointer. Not done by itself: a caller that skips the value
    /// has no need of it.
    pub fn enter(&mut self, name: Text<'_>) {
        self.enter_as(&name.decode());
    }

    /// Takes another name than the one that [`Step::Name`] gave into the pointer.
    pub(in crate::declared) fn enter_as(&mut self, name: &str) {
        self.pointer.push('/');
        push_escaped(&mut self.pointer, name);
    }

    /// Skips the member's value after [`Step::Name`], and returns its text.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where the text is no JSON.
    pub fn skip_member(&mut self) -> Result<&'a str, JsonError> {
        if let Some(frame) = self.open.last_mut() {
            frame.seen = 0;
        }
        let span = self.cursor.skip_value()?;
        Ok(self.cursor.slice(span))
    }

    /// Skips to behind the container that the last step, [`Step::Open`], entered, and returns its text.
    ///
    /// # Errors
    ///
    /// [`JsonError`] where the text is no JSON.
    pub fn skip_opened(&mut self) -> Result<&'a str, JsonError> {
        self.open.pop();
        self.cursor.back_to(self.opened_at, 1);
        let span = self.cursor.skip_value()?;
        self.done = self.open.is_empty();
        Ok(self.cursor.slice(span))
    }

    fn close(&mut self) -> Step<'a> {
        let is_object = self.open.pop().is_some_and(|frame| frame.is_object);
        self.done = self.open.is_empty();
        Step::Close(is_object)
    }

    fn value(&mut self) -> Result<Step<'a>, JsonError> {
        let is_object = match self.cursor.peek()? {
            Kind::String => {
                self.done = self.open.is_empty();
                return self.cursor.string().map(Step::String);
            }
            Kind::Number | Kind::Bool | Kind::Null => {
                self.done = self.open.is_empty();
                let span = self.cursor.skip_value()?;
                return Ok(Step::Other(self.cursor.slice(span)));
            }
            Kind::Object => true,
            Kind::Array => false,
        };
        self.opened_at = self.cursor.offset();
        if is_object {
            self.cursor.begin_object()?;
        } else {
            self.cursor.begin_array()?;
        }
        self.open.push(Frame { is_object, pointer: self.pointer.len(), seen: 0 });
        Ok(Step::Open(is_object))
    }
}

/// Adds a member's name to a JSON pointer (RFC 6901, section 3).
pub(in crate::declared) fn push_escaped(pointer: &mut String, name: &str) {
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<String> {
        let mut walk = Walk::new(text);
        let mut found = Vec::new();
        while let Some(step) = walk.next_step().unwrap() {
            match step {
                Step::Name(name) => walk.enter(name),
                Step::Open(_) => found.push(format!("{} open", walk.pointer())),
                Step::Close(_) => found.push(format!("{} close", walk.pointer())),
                Step::String(text) => found.push(format!("{} {}", walk.pointer(), text.raw())),
                Step::Other(text) => found.push(format!("{} {text}", walk.pointer())),
            }
        }
        found
    }

    #[test]
    fn every_value_is_met_with_its_pointer() {
        let text = r#"{"a/b~":[1,{"":null}],"c":"x","d":{}}"#;
        let expected = [
            " open",
            "/a~1b~0 open",
            "/a~1b~0/0 1",
            "/a~1b~0/1 open",
            "/a~1b~0/1/ null",
            "/a~1b~0/1 close",
            "/a~1b~0 close",
            "/c x",
            "/d open",
            "/d close",
            " close",
        ];
        assert_eq!(places(text), expected);
        assert_eq!(places(" 1 "), [" 1"]);
    }

    #[test]
    fn what_was_opened_or_named_can_be_skipped() {
        let mut walk = Walk::new(r#"[{"a":[1]},{"b":[2],"c":3}]"#);
        walk.next_step().unwrap();
        walk.next_step().unwrap();
        assert_eq!(walk.skip_opened().unwrap(), r#"{"a":[1]}"#);
        assert_eq!(walk.next_step().unwrap(), Some(Step::Open(true)));
        assert_eq!(walk.pointer(), "/1");
        walk.next_step().unwrap();
        assert_eq!(walk.skip_member().unwrap(), "[2]");
        let Some(Step::Name(name)) = walk.next_step().unwrap() else { panic!() };
        walk.enter(name);
        assert_eq!(walk.next_step().unwrap(), Some(Step::Other("3")));
        assert_eq!(walk.pointer(), "/1/c");
    }
}
