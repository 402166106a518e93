//! Objects in the form in which they are given out: JSON that is ready, and what lists need to know of it.

mod packed;
mod piece;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use rezus_core::base::Timestamp;
use serde_json::value::RawValue;

use super::age::age;
use super::kinds::KindInfo;
use super::object::Object;
use packed::{Models, Packed};
pub use piece::Piece;

/// Stands for a resource version: as many digits as the microseconds since 1970 have until the year 2286.
const PLACEHOLDER: &str = "\"resourceVersion\":\"0000000000000000\"";

/// Stands before and after the moment of an age, which is written when it is shown. JSON has no such byte.
const AGE: char = '\u{1}';

/// Stands for a cell that what was observed fills.
const OBSERVED: char = '\u{2}';

/// An object that has no resource version yet.
#[derive(Clone, Debug)]
pub struct Draft {
    kind: &'static KindInfo,
    name: Box<str>,
    marks: Marks,
    text: String,
    parts: Parts,
    /// What it says of what was observed, where no object of its name says anything yet.
    piece: Option<Piece>,
}

/// An object as it is shown, at one resource version. There are many: it is kept small, and unpacked when it is read.
#[derive(Clone, Debug)]
pub struct Item {
    kind: &'static KindInfo,
    name: Box<str>,
    version: u64,
    marks: Arc<Marks>,
    text: Packed,
    parts: Parts,
    piece: Option<Packed>,
}

/// What objects are selected by, beside their names: many have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Marks {
    namespace: Box<str>,
    labels: Box<[(Cow<'static, str>, Box<str>)]>,
    fields: Box<[(&'static str, Box<str>)]>,
}

/// Where the parts of an object's text are: its JSON with [`PLACEHOLDER`], and then the cells of its row, in the order of
/// its kind's columns. Of an object that is observed the JSON ends within `status.conditions`: a [`Piece`] goes on from
/// there.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    metadata: Range<usize>,
    /// Where the resource version is.
    version: usize,
    /// Where the JSON ends.
    cells: usize,
}

/// Makes items. Those that it makes share what they have in common.
#[derive(Debug, Default)]
pub struct Packer {
    models: Models,
    pieces: Models,
    marks: HashSet<Arc<Marks>>,
}

/// An object's texts, to be written.
#[derive(Debug)]
pub struct Shown {
    text: Vec<u8>,
    parts: Parts,
}

/// Collects cells: JSON that is ready, but for ages.
#[derive(Debug, Default)]
pub struct Row(String);

impl Row {
    fn separate(&mut self) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
    }

    /// A text; `<none>` where there is none.
    #[must_use]
    pub fn text(mut self, text: Option<&str>) -> Self {
        self.separate();
        let text = text.filter(|text| !text.is_empty()).unwrap_or("<none>");
        // The first line alone: a cell is one.
        let line = text.lines().next().unwrap_or_default();
        // A text can always be written.
        self.0.push_str(&serde_json::to_string(line).unwrap_or_default());
        self
    }

    /// What is not known.
    #[must_use]
    pub fn unknown(self) -> Self {
        self.text(Some("<unknown>"))
    }

    /// A number.
    #[must_use]
    pub fn number(mut self, number: u64) -> Self {
        self.separate();
        self.0.push_str(&number.to_string());
        self
    }

    /// How long ago something was.
    #[must_use]
    pub fn age(mut self, since: Timestamp) -> Self {
        self.separate();
        // A text can always be written.
        let _ = write!(self.0, "{AGE}{}{AGE}", since.as_millis());
        self
    }

    /// What the next cell of a [`Piece`] says.
    #[must_use]
    pub fn observed(mut self) -> Self {
        self.separate();
        self.0.push(OBSERVED);
        self
    }
}

impl Draft {
    /// Makes ready what an object shows. `fields` are those its kind can be selected by, beside name and namespace.
    pub fn new(
        kind: &'static KindInfo,
        object: Object,
        fields: Vec<(&'static str, Option<String>)>,
        Row(cells): Row,
    ) -> Self {
        let object = object.at_version("0000000000000000");
        let mut text =
            format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}\",\"metadata\":", kind.api_version(), kind.kind);
        let start = text.len();
        text.push_str(&object.metadata_json());
        let metadata = start..text.len();
        if kind.is_observed() {
            text.push_str(&object.open_body_json());
        } else {
            text.push_str(&object.body_json());
            text.push('}');
        }
        // Quotes within texts are escaped, so nothing but the member itself reads like this.
        let member = text.find(PLACEHOLDER).unwrap_or(text.len());
        let parts = Parts { metadata, version: member + PLACEHOLDER.len() - 17, cells: text.len() };
        text.push_str(&cells);
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?.into())));
        let marks = Marks {
            namespace: object.namespace().into(),
            labels: object.labels().map(|(key, value)| (key.clone(), value.into())).collect(),
            fields: fields.collect(),
        };
        Self { kind, name: object.name().into(), marks, text, parts, piece: None }
    }

    /// Says what is to be said of what was observed as long as nobody says anything else.
    #[must_use]
    pub fn until_observed(mut self, piece: Piece) -> Self {
        self.piece = Some(piece);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is sorted by, and told from others of its kind.
    pub fn key(&self) -> (&str, &str) {
        (&self.marks.namespace, &self.name)
    }

    /// Tells whether nothing that is declared is shown otherwise than in an item.
    pub fn is_shown_by(&self, item: &Item) -> bool {
        self.parts == item.parts && self.text.as_bytes() == item.text.unpack()
    }
}

impl Packer {
    /// A packer of objects that are like an item.
    pub fn like(item: Option<&Item>) -> Self {
        let pieces = Models::of(item.and_then(|item| item.piece.as_ref()));
        Self { models: Models::of(item.map(|item| &item.text)), pieces, marks: HashSet::new() }
    }

    /// Makes an item of a draft. What the item before it says of what was observed stays.
    pub fn item(&mut self, draft: Draft, version: u64, before: Option<&Item>) -> Item {
        let Draft { kind, name, marks, text, parts, piece } = draft;
        let same = self.marks.get(&marks).cloned();
        let marks = same.unwrap_or_else(|| Arc::new(marks));
        self.marks.insert(Arc::clone(&marks));
        let kept = before.and_then(|before| before.piece.clone());
        let piece = kept.or_else(|| piece.map(|piece| self.pieces.pack(piece.as_bytes())));
        Item { kind, name, version, marks, text: self.models.pack(text.as_bytes()), parts, piece }
    }

    /// Makes the item that says something else of what was observed, and all else as it was.
    pub fn observed(&mut self, item: &Item, piece: &Piece, version: u64) -> Item {
        Item { version, piece: Some(self.pieces.pack(piece.as_bytes())), ..item.clone() }
    }
}

impl Item {
    /// The same at another resource version.
    #[must_use]
    pub fn moved_to(&self, version: u64) -> Self {
        Self { version, ..self.clone() }
    }

    /// What it is sorted by, and told from others of its kind.
    pub fn key(&self) -> (&str, &str) {
        (&self.marks.namespace, &self.name)
    }

    /// Its kind.
    pub fn kind(&self) -> &'static KindInfo {
        self.kind
    }

    /// Its namespace; empty where its kind has none.
    pub fn namespace(&self) -> &str {
        &self.marks.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its resource version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What it shows.
    pub fn shown(&self) -> Shown {
        let mut text = self.text.unpack();
        // Sixteen digits suffice, so nothing else moves.
        let digits = format!("{:016}", self.version);
        let at = self.parts.version;
        if let Some(place) = text.get_mut(at..at + digits.len()) {
            place.copy_from_slice(digits.as_bytes());
        }
        let mut parts = self.parts.clone();
        if self.kind.is_observed() {
            let piece = self.piece.as_ref().map(Packed::unpack).unwrap_or_default();
            parts.cells = piece::join(&mut text, parts.cells, &piece);
        }
        Shown { text, parts }
    }

    /// Tells whether this is what it says of what was observed.
    pub fn says(&self, piece: &Piece) -> bool {
        self.piece.as_ref().is_some_and(|kept| kept.unpack() == piece.as_bytes())
    }

    /// How many bytes its texts keep in memory, at most.
    pub fn size(&self) -> usize {
        self.text.size() + self.piece.as_ref().map_or(0, Packed::size)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.marks.labels.iter().find(|(name, _)| *name == key).map(|(_, value)| &**value)
    }

    /// The value of a field that can be selected by.
    pub fn field(&self, label: &str) -> Option<&str> {
        match label {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.marks.namespace),
            label => self.marks.fields.iter().find(|(name, _)| *name == label).map(|(_, value)| &**value),
        }
    }
}

impl Shown {
    /// The whole object as JSON.
    pub fn json(&self) -> &[u8] {
        self.text.get(..self.parts.cells).unwrap_or_default()
    }

    /// What is declared of it, as JSON.
    pub fn spec(&self) -> Option<&RawValue> {
        spec(self.json())
    }

    /// Its UID.
    pub fn uid(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Metadata {
            uid: String,
        }
        serde_json::from_slice(self.metadata()).ok().map(|Metadata { uid }| uid)
    }

    /// Its metadata as JSON.
    pub fn metadata(&self) -> &[u8] {
        self.text.get(self.parts.metadata.clone()).unwrap_or_default()
    }

    /// Writes the cells of its row as they are at `now`, with commas between.
    pub fn write_cells(&self, now: Timestamp, out: &mut Vec<u8>) {
        let cells = self.text.get(self.parts.cells..).unwrap_or_default();
        for (place, part) in cells.split(|byte| char::from(*byte) == AGE).enumerate() {
            if place % 2 == 0 {
                out.extend_from_slice(part);
                continue;
            }
            let since = std::str::from_utf8(part).ok().and_then(|millis| millis.parse().ok());
            let since = Timestamp::from_millis(since.unwrap_or_default());
            // An age is digits, letters and `<`, `>`: nothing that JSON escapes.
            out.push(b'"');
            out.extend_from_slice(age(since, now).as_bytes());
            out.push(b'"');
        }
    }
}

/// Finds the spec in an object's JSON, whose status may be cut off.
fn spec(json: &[u8]) -> Option<&RawValue> {
    let text = std::str::from_utf8(json).ok()?;
    // Quotes within texts are escaped, so nothing but the member itself reads like this.
    let (_, rest) = text.split_once(",\"spec\":")?;
    serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>().next()?.ok()
}
