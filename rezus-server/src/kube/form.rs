//! Writes objects in the form that was asked for: as they are, as rows of a table, as their metadata alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use rezus_core::base::Timestamp;

use super::accept::Form;
use super::item::{Item, Shown};
use super::kinds::{Column, KindInfo, PROVIDER};
use super::query::RowObject;

/// How objects are written.
#[derive(Clone, Debug)]
pub struct Writer {
    kind: &'static KindInfo,
    form: Form,
    rows: RowObject,
    /// Who uses which mapping, where providers are shown as rows: tenants and machines.
    usage: Arc<Usage>,
}

/// How many tenants and machines use each mapping, as far as a caller sees.
pub type Usage = BTreeMap<String, (u64, u64)>;

/// `metadata` of a list.
#[derive(Clone, Debug, Default)]
pub struct ListMetadata {
    /// Of the list as a whole.
    pub version: u64,
    /// Where it goes on.
    pub rest: Option<String>,
    /// How many objects follow, where that is known.
    pub remaining: Option<usize>,
}

impl ListMetadata {
    fn write(&self, out: &mut Vec<u8>) {
        put(out, "{\"resourceVersion\":\"");
        put(out, &self.version.to_string());
        put(out, "\"");
        if let Some(token) = &self.rest {
            // Letters, digits, `-` and `_`.
            put(out, ",\"continue\":\"");
            put(out, token);
            put(out, "\"");
        }
        if let Some(count) = self.remaining {
            put(out, ",\"remainingItemCount\":");
            put(out, &count.to_string());
        }
        put(out, "}");
    }
}

/// How many bytes of a list are written at a time: who reads slowly has no more of it in memory.
const PIECE: usize = 256 << 10;

/// A list that is being written.
#[derive(Debug)]
pub struct Pieces {
    writer: Writer,
    items: Vec<Arc<Item>>,
    metadata: ListMetadata,
    now: Timestamp,
    next: usize,
    is_over: bool,
}

impl Pieces {
    /// Tells whether all of it was written.
    pub fn is_over(&self) -> bool {
        self.is_over
    }
}

impl Iterator for Pieces {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.is_over {
            return None;
        }
        // A little more than is needed: the last object is not cut.
        let mut out = Vec::with_capacity(if self.items.len() > 64 { PIECE + 8_192 } else { 16_384 });
        if self.next == 0 {
            self.writer.begin_list(&mut out, &self.metadata);
        }
        while let Some(item) = self.items.get(self.next).filter(|_| out.len() < PIECE) {
            if self.next > 0 {
                put(&mut out, ",");
            }
            self.writer.listed(&mut out, item, self.now);
            self.next += 1;
        }
        if self.next == self.items.len() {
            put(&mut out, "]}");
            self.is_over = true;
        }
        Some(out)
    }
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

impl Writer {
    /// A writer of objects of a kind.
    pub fn new(kind: &'static KindInfo, form: Form, rows: RowObject, usage: Usage) -> Self {
        Self { kind, form, rows, usage: Arc::new(usage) }
    }

    /// Writes a list, piece by piece.
    pub fn list(self, items: Vec<Arc<Item>>, metadata: ListMetadata, now: Timestamp) -> Pieces {
        Pieces { writer: self, items, metadata, now, next: 0, is_over: false }
    }

    /// Writes what comes before the first object of a list.
    fn begin_list(&self, out: &mut Vec<u8>, metadata: &ListMetadata) {
        match self.form {
            Form::Table => self.begin_table(out, true, |out| metadata.write(out)),
            Form::PartialObjectMetadata | Form::PartialObjectMetadataList => {
                put(
                    out,
                    "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":",
                );
                metadata.write(out);
                put(out, ",\"items\":[");
            }
            Form::Json | Form::AggregatedDiscovery => {
                put(out, "{\"kind\":\"");
                put(out, self.kind.kind);
                put(out, "List\",\"apiVersion\":\"");
                put(out, self.kind.api_version());
                put(out, "\",\"metadata\":");
                metadata.write(out);
                put(out, ",\"items\":[");
            }
        }
    }

    /// Writes one object of a list.
    fn listed(&self, out: &mut Vec<u8>, item: &Item, now: Timestamp) {
        match self.form {
            Form::Table => self.row(out, item, now),
            Form::PartialObjectMetadata | Form::PartialObjectMetadataList => partial(out, &item.shown()),
            Form::Json | Form::AggregatedDiscovery => out.extend_from_slice(item.shown().json()),
        }
    }

    /// Writes one object; a table of it has column definitions if `with_columns`.
    pub fn one(&self, item: &Item, now: Timestamp, with_columns: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(4_096);
        match self.form {
            Form::Table => {
                let metadata = ListMetadata { version: item.version(), ..ListMetadata::default() };
                self.begin_table(&mut out, with_columns, |out| metadata.write(out));
                self.row(&mut out, item, now);
                put(&mut out, "]}");
            }
            Form::PartialObjectMetadata | Form::PartialObjectMetadataList => {
                partial(&mut out, &item.shown());
            }
            Form::Json | Form::AggregatedDiscovery => out.extend_from_slice(item.shown().json()),
        }
        out
    }

    /// Writes the object of a bookmark: nothing but a resource version, and whether initial events end here.
    pub fn bookmark(&self, version: u64, ends_initial: bool, with_columns: bool) -> Vec<u8> {
        let annotations =
            if ends_initial { ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}" } else { "" };
        let metadata = format!("{{\"resourceVersion\":\"{version}\"{annotations}}}");
        let mut out = Vec::new();
        match self.form {
            Form::Table => {
                let list = ListMetadata { version, ..ListMetadata::default() };
                self.begin_table(&mut out, with_columns, |out| list.write(out));
                let cells = vec!["\"\""; self.kind.columns.len()].join(",");
                put(
                    &mut out,
                    &format!(
                        "{{\"cells\":[{cells}],\"object\":{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata}}}}}]}}"
                    ),
                );
            }
            Form::PartialObjectMetadata | Form::PartialObjectMetadataList => put(
                &mut out,
                &format!(
                    "{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata}}}"
                ),
            ),
            Form::Json | Form::AggregatedDiscovery => put(
                &mut out,
                &format!(
                    "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata}}}",
                    self.kind.kind,
                    self.kind.api_version()
                ),
            ),
        }
        out
    }

    fn begin_table(&self, out: &mut Vec<u8>, with_columns: bool, metadata: impl Fn(&mut Vec<u8>)) {
        put(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
        metadata(out);
        put(out, ",\"columnDefinitions\":[");
        if with_columns {
            separated(out, self.kind.columns, definition);
        }
        put(out, "],\"rows\":[");
    }

    fn row(&self, out: &mut Vec<u8>, item: &Item, now: Timestamp) {
        let shown = item.shown();
        put(out, "{\"cells\":[");
        shown.write_cells(now, out);
        if self.kind.is(&PROVIDER) {
            let (tenants, machines) = self.usage.get(item.name()).copied().unwrap_or_default();
            put(out, &format!(",{tenants},{machines}"));
        }
        put(out, "]");
        match self.rows {
            RowObject::Metadata => {
                put(out, ",\"object\":");
                partial(out, &shown);
            }
            RowObject::Object => {
                put(out, ",\"object\":");
                out.extend_from_slice(shown.json());
            }
            RowObject::Nothing => {}
        }
        put(out, "}");
    }
}

fn separated<'i, I>(out: &mut Vec<u8>, items: &'i [I], write: impl Fn(&mut Vec<u8>, &'i I)) {
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            put(out, ",");
        }
        write(out, item);
    }
}

fn partial(out: &mut Vec<u8>, shown: &Shown) {
    put(out, "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
    out.extend_from_slice(shown.metadata());
    put(out, "}");
}

/// The table's own words: nothing in them needs to be escaped.
fn definition(out: &mut Vec<u8>, column: &Column) {
    let Column { name, cells, format, description, wide } = column;
    let priority = u8::from(*wide);
    put(
        out,
        &format!(
            "{{\"name\":\"{name}\",\"type\":\"{cells}\",\"format\":\"{format}\",\"description\":\"{description}\",\"priority\":{priority}}}"
        ),
    );
}
