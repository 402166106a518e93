//! Objects in the form in which they are given out: JSON that is ready, and what lists need to know of it.

use std::ops::Range;

use bytes::Bytes;
use rezus_core::base::Timestamp;

use super::age::age;
use super::kinds::KindInfo;
use super::object::Object;

/// Stands for a resource version that is not known yet: as many digits as the microseconds since 1970 have until the
/// year 2286.
const PLACEHOLDER: &str = "\"resourceVersion\":\"0000000000000000\"";

/// An object that has no resource version yet.
#[derive(Clone, Debug)]
pub struct Draft {
    kind: &'static KindInfo,
    namespace: Box<str>,
    name: Box<str>,
    json: String,
    metadata: Range<usize>,
    version_at: Range<usize>,
    labels: Box<[(Box<str>, Box<str>)]>,
    fields: Box<[(&'static str, Box<str>)]>,
    cells: Cells,
}

/// An object as it is shown, at one resource version.
#[derive(Debug)]
pub struct Item {
    kind: &'static KindInfo,
    namespace: Box<str>,
    name: Box<str>,
    version: u64,
    json: Bytes,
    metadata: Range<usize>,
    version_at: Range<usize>,
    labels: Box<[(Box<str>, Box<str>)]>,
    fields: Box<[(&'static str, Box<str>)]>,
    cells: Cells,
}

/// The cells of an object's row, in the order of its kind's columns: JSON that is ready, but for ages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    text: Box<str>,
    /// Where an age stands, and since when.
    ages: Box<[(usize, Timestamp)]>,
}

/// Collects cells.
#[derive(Debug, Default)]
pub struct Row {
    text: String,
    ages: Vec<(usize, Timestamp)>,
}

impl Row {
    fn separate(&mut self) {
        if !self.text.is_empty() || !self.ages.is_empty() {
            self.text.push(',');
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
        self.text.push_str(&serde_json::to_string(line).unwrap_or_default());
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
        self.text.push_str(&number.to_string());
        self
    }

    /// How long ago something was.
    #[must_use]
    pub fn age(mut self, since: Timestamp) -> Self {
        self.separate();
        self.ages.push((self.text.len(), since));
        self
    }
}

impl From<Row> for Cells {
    fn from(row: Row) -> Self {
        Self { text: row.text.into(), ages: row.ages.into() }
    }
}

impl Cells {
    /// Writes the cells as they are at `now`, with commas between.
    pub fn write(&self, now: Timestamp, out: &mut Vec<u8>) {
        let mut from = 0;
        for (at, since) in &self.ages {
            out.extend_from_slice(self.text.get(from..*at).unwrap_or_default().as_bytes());
            // An age is digits, letters and `<`, `>`: nothing that JSON escapes.
            out.push(b'"');
            out.extend_from_slice(age(*since, now).as_bytes());
            out.push(b'"');
            from = *at;
        }
        out.extend_from_slice(self.text.get(from..).unwrap_or_default().as_bytes());
    }
}

impl Draft {
    /// Makes ready what an object shows. `fields` are those its kind can be selected by, beside name and namespace.
    pub fn new(
        kind: &'static KindInfo,
        object: Object,
        fields: Vec<(&'static str, Option<String>)>,
        cells: Row,
    ) -> Self {
        let object = object.at_version("0000000000000000");
        let mut json =
            format!("{{\"apiVersion\":\"{}\",\"kind\":\"{}\",\"metadata\":", kind.api_version(), kind.kind);
        let start = json.len();
        json.push_str(&object.metadata_json());
        let metadata = start..json.len();
        json.push_str(&object.body_json());
        json.push('}');
        // Quotes within texts are escaped, so nothing but the member itself reads like this.
        let member = json.find(PLACEHOLDER).unwrap_or(json.len());
        let digits = member + PLACEHOLDER.len() - 17;
        let version_at = digits..digits + 16;
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?.into())));
        Self {
            kind,
            namespace: object.namespace().into(),
            name: object.name().into(),
            json,
            metadata,
            version_at,
            labels: object.labels().map(|(key, value)| (key.into(), value.into())).collect(),
            fields: fields.collect(),
            cells: cells.into(),
        }
    }

    /// What it is sorted by, and told from others of its kind.
    pub fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Tells whether nothing is shown otherwise than in an item.
    pub fn is_shown_by(&self, item: &Item) -> bool {
        let (old, new) = (&item.json[..], self.json.as_bytes());
        let same = |range: Range<usize>| old.get(range.clone()) == new.get(range);
        old.len() == new.len()
            && self.version_at == item.version_at
            && self.cells == item.cells
            && same(0..self.version_at.start)
            && same(self.version_at.end..new.len())
    }

    /// Gives it a resource version.
    pub fn at(self, version: u64) -> Item {
        let Self { kind, namespace, name, json, metadata, version_at, labels, fields, cells } = self;
        let json = Bytes::from(json);
        let bare =
            Item { kind, namespace, name, version: 0, json, metadata, version_at, labels, fields, cells };
        bare.moved_to(version)
    }
}

impl Item {
    /// The same at another resource version.
    #[must_use]
    pub fn moved_to(&self, version: u64) -> Self {
        let Range { start, end } = self.version_at;
        // Sixteen digits suffice, and the item's length never changes.
        let digits = format!("{version:016}");
        let mut json = Vec::with_capacity(self.json.len());
        json.extend_from_slice(self.json.get(..start).unwrap_or_default());
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(self.json.get(end..).unwrap_or_default());
        Self {
            kind: self.kind,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            version,
            json: json.into(),
            metadata: self.metadata.clone(),
            version_at: self.version_at.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            cells: self.cells.clone(),
        }
    }

    /// What it is sorted by, and told from others of its kind.
    pub fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Its kind.
    pub fn kind(&self) -> &'static KindInfo {
        self.kind
    }

    /// Its namespace; empty where its kind has none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its resource version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The whole object as JSON.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Its metadata as JSON.
    pub fn metadata(&self) -> &[u8] {
        self.json.get(self.metadata.clone()).unwrap_or_default()
    }

    /// The cells of its row.
    pub fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.iter().find(|(name, _)| **name == *key).map(|(_, value)| &**value)
    }

    /// The value of a field that can be selected by.
    pub fn field(&self, label: &str) -> Option<&str> {
        match label {
            "metadata.name" => Some(&self.name),
            "metadata.namespace" => Some(&self.namespace),
            label => self.fields.iter().find(|(name, _)| *name == label).map(|(_, value)| &**value),
        }
    }
}
