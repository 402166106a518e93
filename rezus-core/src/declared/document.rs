//! What a posted document is: a state in clear, an envelope of OpenTofu's state encryption, or nothing to be kept.
//!
//! Members are found as the tools' Go readers find them: names that differ only in the case of ASCII letters are the
//! same, the last of several wins, `null` says nothing, what is not known is passed over. What the tools would accept
//! is never refused for its content: a refused state is work that a user loses.

mod error;
mod member;
mod naming;
mod resources;
mod writer;

use std::ops::Range;

pub use error::{DocumentError, Place};
pub(in crate::declared) use member::{INSTANCE_MEMBERS, known};
pub(in crate::declared) use resources::{Parts, Watched};

use crate::declared::index::IndexRow;
use crate::declared::json::{Cursor, Kind};
use crate::declared::secrets::{self, SecretRules};
use crate::declared::{Lineage, Serial};
use resources::Resources;

/// The longest lineage that is kept, in bytes: tools make UUIDs.
const LONGEST_LINEAGE: usize = 1_024;

/// What a document is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// A state in clear, format version 4.
    Plain(PlainState),
    /// An envelope of OpenTofu's state encryption.
    Encrypted(Envelope),
}

/// What a state in clear says of itself, and where its instance objects are. No attribute value is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainState {
    /// The serial; 0 where the state has none.
    pub serial: Serial,
    /// The bytes of the serial's number in the document; `None` where the state has none.
    pub serial_span: Option<Range<usize>>,
    /// The lineage; empty where the state has none.
    pub lineage: Lineage,
    /// `terraform_version`: the version of the tool that wrote the state, be it OpenTofu or Terraform.
    pub writer: Option<String>,
    /// How many root outputs there are.
    pub outputs: u64,
    /// One row for each instance object, in the order of the document.
    pub rows: Vec<IndexRow>,
}

impl PlainState {
    /// Tells whether there is neither an instance object nor an output. Such a state may be overwritten by anything.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.outputs == 0
    }
}

/// What an envelope says in clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The serial of the state inside; early releases did not say.
    pub serial: Option<Serial>,
    /// The lineage of the state inside; early releases did not say.
    pub lineage: Option<Lineage>,
}

/// Reads a document, and masks by the built-in list of secrets and by what the state itself marks.
///
/// ```
/// use rezus_core::declared::document::{Document, read};
///
/// let body = br#"{"version":4,"serial":7,"lineage":"x","outputs":{},"resources":[]}"#;
/// let Ok(Document::Plain(state)) = read(body) else { unreachable!() };
/// assert_eq!(state.serial.get(), 7);
/// assert!(state.is_empty());
/// ```
///
/// # Errors
///
/// [`DocumentError`]; no message repeats content.
pub fn read(body: &[u8]) -> Result<Document, DocumentError> {
    read_with(body, &|_| &[])
}

/// Reads a document as [`read`] does, and masks by further rules as well.
///
/// # Errors
///
/// [`DocumentError`]; no message repeats content.
pub fn read_with(body: &[u8], rules: SecretRules<'_>) -> Result<Document, DocumentError> {
    let text = text_of(body)?;
    read_text(text, rules).map_err(|error| error.named(text))
}

fn read_text(text: &str, rules: SecretRules<'_>) -> Result<Document, DocumentError> {
    let mut top = Top::read(text, rules)?;
    if let Some(envelope) = top.envelope(text)? {
        return Ok(Document::Encrypted(envelope));
    }
    top.require_version_4(text)?;
    let found = top.resources.take().unwrap_or(Ok(Resources::default()))?;
    let outputs = top.outputs.take().unwrap_or(Ok(Outputs::default()))?;
    if let Some((kind, _)) = &top.check_results
        && *kind != Kind::Array
    {
        return Err(Place::Top.wrong("check_results", "an array"));
    }
    let serial = top.serial(text)?;
    let mut state = PlainState {
        serial: serial.unwrap_or(Serial::new(0)),
        serial_span: top.serial.take().map(|(_, span)| span),
        lineage: top.lineage(text)?.unwrap_or(Lineage::new("")),
        writer: top.writer(text)?,
        outputs: u64::try_from(outputs.names.len()).unwrap_or(u64::MAX),
        rows: found.rows,
    };
    secrets::mask(text, &mut state.rows, &found.parts, &outputs.sensitive(), rules)?;
    Ok(Document::Plain(state))
}

/// Returns the strings that a state in clear holds secret, as they stand there: to be kept out of what is written
/// elsewhere.
///
/// # Errors
///
/// [`DocumentError`] for what is no state in clear.
pub fn secret_strings(body: &[u8], rules: SecretRules<'_>) -> Result<Vec<String>, DocumentError> {
    let text = text_of(body)?;
    let mut top = Top::read(text, rules)?;
    top.require_version_4(text)?;
    let found = top.resources.take().unwrap_or(Ok(Resources::default()))?;
    let outputs = top.outputs.take().unwrap_or(Ok(Outputs::default()))?;
    secrets::strings(text, &found.rows, &found.parts, &outputs.sensitive(), rules)
}

/// Returns the values that a state in clear holds secret, to look for them elsewhere.
///
/// # Errors
///
/// [`DocumentError`] for what is no state in clear.
pub(in crate::declared) fn needles(
    body: &[u8],
    rules: SecretRules<'_>,
) -> Result<secrets::Needles, DocumentError> {
    Ok(secrets::Needles::new(secret_strings(body, rules)?))
}

/// Takes bytes as text.
fn text_of(body: &[u8]) -> Result<&str, DocumentError> {
    if body.is_empty() {
        return Err(DocumentError::Empty);
    }
    if body.starts_with(b"\xef\xbb\xbf") {
        return Err(DocumentError::ByteOrderMark);
    }
    std::str::from_utf8(body).map_err(|error| DocumentError::NotUtf8 { offset: error.valid_up_to() })
}

/// Returns the place of an instance object.
pub(in crate::declared) fn instance_place((block, instance): (u32, u32)) -> Place {
    Place::Instance(block, instance)
}

/// A value of the top level: its kind and its bytes.
type Found = Option<(Kind, Range<usize>)>;

/// The top level of a document. What is wrong in `resources` or `outputs` waits until the document is known to be a
/// state.
#[derive(Default)]
struct Top {
    version: Found,
    terraform_version: Found,
    serial: Found,
    lineage: Found,
    check_results: Found,
    encryption_version: Found,
    encrypted_data: Found,
    format_version: Found,
    backend: Found,
    lock_id: Found,
    lock_operation: Found,
    resources: Option<Result<Resources, DocumentError>>,
    outputs: Option<Result<Outputs, DocumentError>>,
}

const TOP_MEMBERS: [&str; 13] = [
    "version",
    "terraform_version",
    "serial",
    "lineage",
    "outputs",
    "resources",
    "check_results",
    "encryption_version",
    "encrypted_data",
    "format_version",
    "backend",
    "ID",
    "Operation",
];

impl Top {
    fn read(text: &str, rules: SecretRules<'_>) -> Result<Self, DocumentError> {
        let mut cursor = Cursor::new(text);
        if cursor.peek()? != Kind::Object {
            cursor.skip_value()?;
            cursor.end()?;
            return Err(DocumentError::NotAState);
        }
        let mut top = Self::default();
        cursor.begin_object()?;
        while let Some(name) = cursor.next_member()? {
            let name = known(name, &TOP_MEMBERS);
            let kind = cursor.peek()?;
            match name {
                Some("resources") => {
                    top.resources =
                        deferred(&mut cursor, kind, |cursor, kind| resources::read(cursor, kind, rules))?;
                }
                Some("outputs") => top.outputs = deferred(&mut cursor, kind, Outputs::read)?,
                other => {
                    let span = cursor.skip_value()?;
                    if kind != Kind::Null
                        && let Some(slot) = other.and_then(|name| top.slot(name))
                    {
                        *slot = Some((kind, span));
                    }
                }
            }
        }
        cursor.end()?;
        Ok(top)
    }

    fn slot(&mut self, name: &str) -> Option<&mut Found> {
        Some(match name {
            "version" => &mut self.version,
            "terraform_version" => &mut self.terraform_version,
            "serial" => &mut self.serial,
            "lineage" => &mut self.lineage,
            "check_results" => &mut self.check_results,
            "encryption_version" => &mut self.encryption_version,
            "encrypted_data" => &mut self.encrypted_data,
            "format_version" => &mut self.format_version,
            "backend" => &mut self.backend,
            "ID" => &mut self.lock_id,
            "Operation" => &mut self.lock_operation,
            _ => return None,
        })
    }

    /// Returns the envelope, if the document is one: OpenTofu's marker is a version of the encryption and none of
    /// the state.
    fn envelope(&self, text: &str) -> Result<Option<Envelope>, DocumentError> {
        let is_number = |found: &Found| matches!(found, Some((Kind::Number, _)));
        let marked = matches!(&self.encryption_version, Some((Kind::String, span)) if span.len() > 2);
        let filled = matches!(&self.encrypted_data, Some((Kind::String, _)));
        if !marked || !filled || is_number(&self.version) {
            return Ok(None);
        }
        Ok(Some(Envelope { serial: self.serial(text)?, lineage: self.lineage(text)? }))
    }

    fn require_version_4(&self, text: &str) -> Result<(), DocumentError> {
        // A lock info has a `Version` too: that of the client.
        let is_lock_info = self.lock_id.is_some() && self.lock_operation.is_some();
        let Some((kind, span)) = &self.version else {
            return Err(if self.format_version.is_some() {
                DocumentError::ShownPlan
            } else if is_lock_info {
                DocumentError::LockInfo
            } else {
                DocumentError::NoVersion
            });
        };
        let spelt = text.get(span.clone()).unwrap_or_default();
        let number = (*kind == Kind::Number).then(|| spelt.parse().ok()).flatten();
        let writer = self.writer(text).ok().flatten();
        match number {
            Some(4) => Ok(()),
            None | Some(0) if is_lock_info => Err(DocumentError::LockInfo),
            None | Some(0) => Err(DocumentError::StrangeVersion),
            Some(3) if self.backend.is_some() => Err(DocumentError::BackendCache),
            Some(version @ 1..=3) => Err(DocumentError::LegacyVersion { version, writer }),
            Some(version) => Err(DocumentError::NewerVersion { version, writer }),
        }
    }

    fn serial(&self, text: &str) -> Result<Option<Serial>, DocumentError> {
        let Some((_, span)) = &self.serial else {
            return Ok(None);
        };
        let serial = text.get(span.clone()).and_then(|number| number.parse().ok());
        serial
            .map(Some)
            .ok_or_else(|| Place::Top.wrong("serial", "a whole number from 0 to 18446744073709551615"))
    }

    fn lineage(&self, text: &str) -> Result<Option<Lineage>, DocumentError> {
        let lineage = string_at(text, &self.lineage, "lineage")?;
        match lineage.as_ref().map(String::len) {
            Some(length) if length > LONGEST_LINEAGE => Err(DocumentError::LongLineage { length }),
            _ => Ok(lineage.map(Lineage::new)),
        }
    }

    fn writer(&self, text: &str) -> Result<Option<String>, DocumentError> {
        let version = string_at(text, &self.terraform_version, "terraform_version")?;
        match version.filter(|version| !version.is_empty()) {
            Some(version) if !writer::is_version(&version) => {
                Err(Place::Top.wrong("terraform_version", "a version such as 1.12.6"))
            }
            version => Ok(version),
        }
    }
}

fn string_at(text: &str, found: &Found, member: &'static str) -> Result<Option<String>, DocumentError> {
    let Some((kind, span)) = found else {
        return Ok(None);
    };
    if *kind != Kind::String {
        return Err(Place::Top.wrong(member, "a string"));
    }
    let string = Cursor::new(text.get(span.clone()).unwrap_or_default()).string()?;
    Ok(Some(string.decode().into_owned()))
}

/// Reads a member by `reader`; where that finds well-formed JSON that it cannot take, skips the value and keeps the
/// complaint.
fn deferred<'a, T>(
    cursor: &mut Cursor<'a>,
    kind: Kind,
    reader: impl FnOnce(&mut Cursor<'a>, Kind) -> Result<T, DocumentError>,
) -> Result<Option<Result<T, DocumentError>>, DocumentError> {
    if kind == Kind::Null {
        cursor.skip_value()?;
        return Ok(None);
    }
    let (start, depth) = (cursor.offset(), cursor.depth());
    match reader(cursor, kind) {
        Err(error) if !error.is_malformed() => {
            cursor.back_to(start, cursor.depth() - depth);
            cursor.skip_value()?;
            Ok(Some(Err(error)))
        }
        Ok(found) => Ok(Some(Ok(found))),
        Err(error) => Err(error),
    }
}

/// The root outputs.
#[derive(Default)]
struct Outputs {
    /// Names, and where the values of sensitive ones are.
    names: std::collections::BTreeMap<String, Option<Range<usize>>>,
}

impl Outputs {
    fn read(cursor: &mut Cursor<'_>, kind: Kind) -> Result<Self, DocumentError> {
        if kind != Kind::Object {
            return Err(Place::Top.wrong("outputs", "an object"));
        }
        let mut outputs = Self::default();
        cursor.begin_object()?;
        while let Some(name) = cursor.next_member()? {
            let value = Self::output(cursor)?;
            outputs.names.insert(name.decode().into_owned(), value);
        }
        Ok(outputs)
    }

    /// Reads one output, and returns where its value is if that is sensitive.
    fn output(cursor: &mut Cursor<'_>) -> Result<Option<Range<usize>>, DocumentError> {
        if cursor.peek()? != Kind::Object {
            return Err(Place::Output.wrong("", "an object"));
        }
        let (mut value, mut is_typed, mut is_sensitive) = (None, false, false);
        cursor.begin_object()?;
        while let Some(name) = cursor.next_member()? {
            match known(name, &["value", "type", "sensitive"]) {
                Some("value") => value = Some(cursor.skip_value()?),
                Some("type") => {
                    is_typed = matches!(cursor.peek()?, Kind::String | Kind::Array);
                    cursor.skip_value()?;
                }
                Some("sensitive") => {
                    is_sensitive = member::flag(cursor, Place::Output, "sensitive")?.unwrap_or(is_sensitive);
                }
                _ => {
                    cursor.skip_value()?;
                }
            }
        }
        if !is_typed {
            return Err(Place::Output.wrong("type", "a type constraint"));
        }
        if value.is_none() {
            return Err(Place::Output.wrong("value", "a value"));
        }
        Ok(value.filter(|_| is_sensitive))
    }

    fn sensitive(&self) -> Vec<Range<usize>> {
        self.names.values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
