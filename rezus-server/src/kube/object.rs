//! The parts of a Kubernetes object, while it is put together.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rezus_core::base::Timestamp;
use rezus_core::declared::projection::{Lifetime, SpecFields};
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::value::RawValue;

use super::is_label_value;
use super::kinds::KindInfo;

/// One object.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Object {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    #[serde(flatten)]
    body: Body,
}

/// What comes behind the metadata.
#[derive(Clone, Debug, Default, Serialize)]
struct Body {
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Fields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    /// Of kinds that have neither.
    #[serde(flatten)]
    other: Fields,
}

#[derive(Clone, Debug, Default, Serialize)]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

/// One of `status.conditions` (API conventions, "Typical status properties").
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is said of the object.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `True`, `False` or `Unknown`.
    #[serde(rename = "status")]
    pub holds: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
    /// Since when it holds or does not.
    pub last_transition_time: String,
    /// Which plane says so: `state`, `run` or `collector`.
    pub source: &'static str,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    creation_timestamp: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<Cow<'static, str>, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

/// The fields that are present, each a JSON text of its own: numbers keep their digits.
#[derive(Clone, Debug, Default)]
struct Fields(Vec<(&'static str, Box<RawValue>)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (field, value) in &self.0 {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

impl Object {
    /// An object without spec and status.
    pub fn bare(kind: &KindInfo, name: &str) -> Self {
        let metadata = Metadata { name: name.to_owned(), ..Metadata::default() };
        Self { api_version: kind.api_version(), kind: kind.kind, metadata, body: Body::default() }
    }

    /// An object with a spec.
    pub fn new(kind: &KindInfo, name: &str, fields: SpecFields) -> Self {
        // The fields are JSON already.
        let raw = |(field, value)| RawValue::from_string(value).ok().map(|value| (field, value));
        let mut object = Self::bare(kind, name);
        object.body.spec = Some(Fields(fields.into_iter().filter_map(raw).collect()));
        object
    }

    /// Says who the object is, and since when.
    #[must_use]
    pub fn over_time(mut self, lifetime: Option<&Lifetime>) -> Self {
        if let Some(Lifetime { history, created_at, .. }) = lifetime {
            self.metadata.uid = Some(history.uid.clone());
            self.metadata.generation = Some(history.generation());
            self.metadata.creation_timestamp = Some(seconds(*created_at));
        }
        self
    }

    /// Says who an object is that has no history of its own.
    #[must_use]
    pub fn created(mut self, uid: String, at: Timestamp) -> Self {
        self.metadata.uid = Some(uid);
        self.metadata.creation_timestamp = Some(seconds(at));
        self
    }

    /// Says how often the object's spec has changed.
    #[must_use]
    pub fn of_generation(mut self, generation: u64) -> Self {
        self.metadata.generation = Some(generation);
        self
    }

    /// Puts the object into a namespace.
    #[must_use]
    pub fn within(mut self, namespace: &str) -> Self {
        self.metadata.namespace = Some(namespace.to_owned());
        self
    }

    /// Says at which resource version the object is shown.
    #[must_use]
    pub(super) fn at_version(mut self, version: &str) -> Self {
        self.metadata.resource_version = Some(version.to_owned());
        self
    }

    /// Adds a label, unless its value is none that Kubernetes takes.
    pub fn label(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| is_label_value(value)) {
            self.metadata.labels.insert(Cow::Borrowed(name), value.to_owned());
        }
    }

    /// Adds a label that somebody gave it, as it was checked then.
    pub fn given_label(&mut self, name: &str, value: &str) {
        self.metadata.labels.insert(Cow::Owned(name.to_owned()), value.to_owned());
    }

    /// Adds an annotation.
    pub fn annotate(&mut self, name: &'static str, value: String) {
        self.metadata.annotations.insert(name, value);
    }

    /// Adds a field to the spec, behind those it has.
    pub fn field(&mut self, name: &'static str, value: &impl Serialize) {
        if let Ok(value) = serde_json::value::to_raw_value(value) {
            self.body.spec.get_or_insert_default().0.push((name, value));
        }
    }

    /// Takes a field out of the spec.
    pub fn take_field(&mut self, name: &str) -> Option<Box<RawValue>> {
        let fields = &mut self.body.spec.as_mut()?.0;
        let place = fields.iter().position(|(field, _)| *field == name)?;
        Some(fields.remove(place).1)
    }

    /// Adds a member beside the metadata, for kinds that have no spec.
    pub fn member(&mut self, name: &'static str, value: &impl Serialize) {
        if let Ok(value) = serde_json::value::to_raw_value(value) {
            self.body.other.0.push((name, value));
        }
    }

    /// Sets `status.phase`.
    pub fn phase(&mut self, phase: &'static str) {
        self.body.status.get_or_insert_default().phase = Some(phase);
    }

    /// Adds conditions, behind those it has.
    pub fn conditions(&mut self, conditions: impl IntoIterator<Item = Condition>) {
        self.body.status.get_or_insert_default().conditions.extend(conditions);
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Its namespace; empty where it has none.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Its labels.
    pub fn labels(&self) -> impl Iterator<Item = (&Cow<'static, str>, &str)> {
        self.metadata.labels.iter().map(|(key, value)| (key, value.as_str()))
    }

    /// The metadata as JSON.
    pub(super) fn metadata_json(&self) -> String {
        // Texts and numbers: they can always be written.
        serde_json::to_string(&self.metadata).unwrap_or_default()
    }

    /// What comes behind the metadata: members, each with a comma before it.
    pub(super) fn body_json(&self) -> String {
        let members = serde_json::to_string(&self.body).unwrap_or_default();
        let members =
            members.strip_prefix('{').and_then(|members| members.strip_suffix('}')).unwrap_or_default();
        if members.is_empty() { String::new() } else { format!(",{members}") }
    }

    /// The same up to the end of the last of `status.conditions`: what was observed goes on from there. Of kinds whose status
    /// has nothing but conditions, and which have nothing behind it.
    pub(super) fn open_body_json(&self) -> String {
        let mut members = self.body_json();
        if members.ends_with("]}")
            && self.body.status.as_ref().is_some_and(|status| !status.conditions.is_empty())
        {
            members.truncate(members.len() - 2);
        } else {
            members.push_str(",\"status\":{\"conditions\":[");
        }
        members
    }
}

/// A time as Kubernetes has it in metadata: RFC 3339 to the second.
pub fn seconds(at: Timestamp) -> String {
    let text = at.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}
