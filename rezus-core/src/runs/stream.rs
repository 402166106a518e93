//! What tofu and terraform say with `-json`: one object a line, and now and then something else.
//!
//! Source: the machine-readable UI of both, as recorded of OpenTofu 1.12.6 and Terraform 1.11.4. Members that are not
//! known are passed over, types that are not known are [`Event::Other`], and a line that is no such object is text.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::Redactor;
use super::executor::ToolKind;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    /// The first line: which program it is, and its version.
    Version {
        /// Which program.
        tool: ToolKind,
        /// Its version.
        version: String,
    },
    /// A change that was planned.
    Planned(Change),
    /// A resource that is not as the state has it.
    Drift(Change),
    /// How many resources are, or were, changed.
    Summary(Summary),
    /// An operation on a resource began.
    Started(Hook),
    /// It goes on.
    Progress(Hook),
    /// It was done.
    Completed(Hook),
    /// It failed.
    Errored(Hook),
    /// A warning or an error.
    Diagnostic(Diagnostic),
    /// Anything else.
    Other,
}

/// A planned change, or a drift.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The resource instance.
    pub address: String,
    /// Its resource type.
    pub resource_type: String,
    /// `create`, `read`, `update`, `replace`, `delete`, `move`, `import`, `forget`, `noop` ...
    pub action: String,
    /// Why it is replaced or deleted, in the tool's word: `cannot_update`, `tainted`, `requested` ...
    pub reason: Option<String>,
}

impl Change {
    /// Why, in the words that the tools have for it in a plan that is shown (`action_reason` of `show -json`). Of a
    /// replacement the stream has shorter ones. Source: "JSON Output Format" and "Machine-Readable UI" of both.
    pub fn action_reason(&self) -> Option<&str> {
        Some(match self.reason.as_deref()? {
            "tainted" => "replace_because_tainted",
            "cannot_update" => "replace_because_cannot_update",
            "requested" => "replace_by_request",
            "replace_triggered_by" => "replace_by_triggers",
            reason => reason,
        })
    }
}

/// How many resources are changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// `plan`, `apply` or `destroy`.
    pub operation: String,
    /// Created, replaced ones included.
    pub add: u64,
    /// Changed in place.
    pub change: u64,
    /// Destroyed, replaced ones included.
    pub remove: u64,
    /// Taken into the state.
    pub import: u64,
    /// Taken out of the state and left alone.
    pub forget: u64,
}

/// An operation on a resource instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    /// The resource instance.
    pub address: String,
    /// Its resource type.
    pub resource_type: String,
    /// `create`, `update`, `delete`, `read` ...
    pub action: String,
    /// The provider's ID of it, where that is told.
    pub id: Option<String>,
}

/// A warning or an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Whether it is an error; a warning otherwise.
    pub is_error: bool,
    /// In a few words.
    pub summary: String,
    /// In more words; often empty.
    pub detail: String,
    /// The resource instance it is about.
    pub address: Option<String>,
    /// Where in the configuration: a file and a line.
    #[serde(default)]
    pub place: Option<String>,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(rename = "@level", borrow)]
    level: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "@message", borrow)]
    message: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
    tofu: Option<String>,
    terraform: Option<String>,
    change: Option<WireChange>,
    changes: Option<WireCounts>,
    hook: Option<WireHook>,
    diagnostic: Option<WireDiagnostic>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireResource {
    addr: String,
    resource_type: String,
}

#[derive(Deserialize)]
struct WireChange {
    #[serde(default)]
    resource: WireResource,
    #[serde(default)]
    action: String,
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireCounts {
    operation: String,
    add: u64,
    change: u64,
    remove: u64,
    import: u64,
    forget: u64,
}

#[derive(Deserialize)]
struct WireHook {
    #[serde(default)]
    resource: WireResource,
    #[serde(default)]
    action: String,
    id_value: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireDiagnostic {
    severity: String,
    summary: String,
    detail: String,
    address: Option<String>,
    range: Option<WireRange>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WireRange {
    filename: String,
    start: WirePosition,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WirePosition {
    line: u64,
}

impl WireRange {
    fn place(&self) -> String {
        format!("{} line {}", self.filename, self.start.line)
    }
}

impl From<WireChange> for Change {
    fn from(wire: WireChange) -> Self {
        Self {
            address: wire.resource.addr,
            resource_type: wire.resource.resource_type,
            action: wire.action,
            reason: wire.reason,
        }
    }
}

impl From<WireHook> for Hook {
    fn from(wire: WireHook) -> Self {
        Self {
            address: wire.resource.addr,
            resource_type: wire.resource.resource_type,
            action: wire.action,
            id: wire.id_value,
        }
    }
}

impl Event {
    /// Returns it without secrets, however it was written.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let clean = |text: String| redactor.redact(&text);
        let change = |it: Change| Change {
            address: clean(it.address),
            resource_type: it.resource_type,
            action: it.action,
            reason: it.reason,
        };
        let hook = |it: Hook| Hook { address: clean(it.address), id: it.id.map(clean), ..it };
        match self {
            Self::Planned(it) => Self::Planned(change(it)),
            Self::Drift(it) => Self::Drift(change(it)),
            Self::Started(it) => Self::Started(hook(it)),
            Self::Progress(it) => Self::Progress(hook(it)),
            Self::Completed(it) => Self::Completed(hook(it)),
            Self::Errored(it) => Self::Errored(hook(it)),
            Self::Diagnostic(it) => Self::Diagnostic(Diagnostic {
                is_error: it.is_error,
                summary: clean(it.summary),
                detail: clean(it.detail),
                address: it.address.map(clean),
                place: it.place.map(clean),
            }),
            Self::Version { .. } | Self::Summary(_) | Self::Other => self,
        }
    }
}

/// Reads a line, without its line feed. `None` for text: what is no JSON object, or one without a message.
pub fn parse(line: &str) -> Option<Event> {
    read(line).map(Wire::event)
}

fn read(line: &str) -> Option<Wire<'_>> {
    if !line.starts_with('{') {
        return None;
    }
    serde_json::from_str::<Wire<'_>>(line).ok().filter(|wire| wire.message.is_some())
}

impl Wire<'_> {
    fn event(self) -> Event {
        let Some(kind) = &self.kind else {
            return Event::Other;
        };
        let event = match kind.as_ref() {
            "version" => match (self.tofu, self.terraform) {
                (Some(version), _) => Some(Event::Version { tool: ToolKind::Tofu, version }),
                (None, Some(version)) => Some(Event::Version { tool: ToolKind::Terraform, version }),
                (None, None) => None,
            },
            "planned_change" => self.change.map(|change| Event::Planned(change.into())),
            "resource_drift" => self.change.map(|change| Event::Drift(change.into())),
            "change_summary" => self.changes.map(|counts| {
                let WireCounts { operation, add, change, remove, import, forget } = counts;
                Event::Summary(Summary { operation, add, change, remove, import, forget })
            }),
            "apply_start" => self.hook.map(|hook| Event::Started(hook.into())),
            "apply_progress" => self.hook.map(|hook| Event::Progress(hook.into())),
            "apply_complete" => self.hook.map(|hook| Event::Completed(hook.into())),
            "apply_errored" => self.hook.map(|hook| Event::Errored(hook.into())),
            "diagnostic" => self.diagnostic.map(|wire| {
                Event::Diagnostic(Diagnostic {
                    is_error: wire.severity == "error",
                    summary: wire.summary,
                    detail: wire.detail,
                    address: wire.address,
                    place: wire.range.map(|range| range.place()),
                })
            }),
            _ => None,
        };
        event.unwrap_or(Event::Other)
    }
}

/// Writes a line as people read it, with a line feed at its end: the message of an object, why something is changed, and
/// the details of a diagnostic; text as it stands.
pub fn render(line: &str, out: &mut String) {
    let Some(wire) = read(line) else {
        out.push_str(line);
        out.push('\n');
        return;
    };
    let message = wire.message.as_deref().unwrap_or_default();
    let is_plain = matches!(wire.level.as_deref(), None | Some("info")) || wire.diagnostic.is_some();
    if !is_plain {
        // A text can always be written.
        let _ = write!(out, "[{}] ", wire.level.as_deref().unwrap_or_default());
    }
    out.push_str(message);
    if let Some(reason) = wire.change.and_then(|change| change.reason) {
        let _ = write!(out, " (reason: {})", reason.replace('_', " "));
    }
    out.push('\n');
    if let Some(diagnostic) = wire.diagnostic {
        if let Some(address) = diagnostic.address {
            let _ = writeln!(out, "  with {address}");
        }
        if let Some(range) = diagnostic.range {
            let _ = writeln!(out, "  on {}", range.place());
        }
        for line in diagnostic.detail.lines() {
            let _ = writeln!(out, "  {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_tools_are_read() {
        let line = r#"{"@level":"info","@message":"OpenTofu 1.12.6","@module":"tofu.ui","tofu":"1.12.6","type":"version","ui":"1.2"}"#;
        assert_eq!(parse(line), Some(Event::Version { tool: ToolKind::Tofu, version: "1.12.6".to_owned() }));
        let line = r#"{"@level":"info","@message":"x: Plan to replace","change":{"resource":{"addr":"a.b[\"c\"]","resource_type":"a","resource_key":"c"},"action":"replace","reason":"cannot_update"},"type":"planned_change"}"#;
        let change = Change {
            address: "a.b[\"c\"]".to_owned(),
            resource_type: "a".to_owned(),
            action: "replace".to_owned(),
            reason: Some("cannot_update".to_owned()),
        };
        assert_eq!(parse(line), Some(Event::Planned(change)));
        let mut out = String::new();
        render(line, &mut out);
        assert_eq!(out, "x: Plan to replace (reason: cannot update)\n");
    }

    #[test]
    fn what_is_no_event_is_text() {
        for text in ["", "Initializing...", "{", "{}", "[1]", "{\"type\":\"version\"}", "\u{1b}[0m{}"] {
            assert_eq!(parse(text), None, "{text}");
            let mut out = String::new();
            render(text, &mut out);
            assert_eq!(out, format!("{text}\n"));
        }
        assert_eq!(parse(r#"{"@message":"no type"}"#), Some(Event::Other));
        assert_eq!(parse(r#"{"@message":"x","type":"planned_change"}"#), Some(Event::Other));
    }

    #[test]
    fn a_diagnostic_is_shown_with_its_details() {
        let line = r#"{"@level":"error","@message":"Error: no","diagnostic":{"severity":"error","summary":"no","detail":"because\nof that","address":"a.b","range":{"filename":"main.tf","start":{"line":7,"column":1,"byte":90},"end":{"line":7,"column":9,"byte":98}}},"type":"diagnostic"}"#;
        let mut out = String::new();
        render(line, &mut out);
        assert_eq!(out, "Error: no\n  with a.b\n  on main.tf line 7\n  because\n  of that\n");
        assert!(matches!(parse(line), Some(Event::Diagnostic(it)) if it.is_error && it.summary == "no"));
    }
}
