//! What is shown of the states themselves: their versions, and the writes that were refused.

use rezus_core::base::Timestamp;
use rezus_core::declared::projection::SpecFields;
use rezus_core::declared::store::{Content, RefusalRecord, TenantRecord, VersionMeta};
use rezus_core::declared::{Lineage, Serial};
use serde_json::json;

use super::run::KnownRuns;
use super::uid;
use crate::kube::item::{Draft, Row};
use crate::kube::join::Transition;
use crate::kube::kinds::{EVENT, KindInfo, STATE_VERSION, TENANT};
use crate::kube::object::{Object, seconds};

/// Shows a version, which a run may have written. Its name is `v` and its number.
pub fn state_version(record: &TenantRecord, meta: &VersionMeta, runs: &KnownRuns) -> Draft {
    let tenant = record.name.as_str();
    let name = format!("v{}", meta.version);
    let mut object = Object::new(&STATE_VERSION, &name, SpecFields::new()).within(tenant);
    object.label("rezuscloud.io/tenant", Some(tenant));
    let serial = meta.serial.map(Serial::get);
    let lineage = meta.lineage.as_ref().map(Lineage::to_string).filter(|lineage| !lineage.is_empty());
    object.field("version", &meta.version.get());
    if let Some(serial) = serial {
        object.field("serial", &serial);
    }
    for (field, text) in [("lineage", &lineage), ("writer", &meta.writer)] {
        if let Some(text) = text {
            object.field(field, text);
        }
    }
    let sha256 = meta.fingerprint.sha256_hex();
    object.field("sha256", &sha256);
    object.field("sizeBytes", &meta.size_bytes);
    object.field("writtenAt", &meta.written_at.to_string());
    object.field("writtenBy", &meta.written_by);
    if let Some(operation) = &meta.lock_operation {
        object.field("lockOperation", operation);
    }
    object.field("forced", &meta.forced);
    object.field("unlocked", &meta.unlocked);
    object.field("intermediate", &meta.intermediate);
    if let Some(version) = meta.rollback_of {
        object.field("rollbackOf", &version.get());
    }
    object.field("encrypted", &(meta.content == Content::Encrypted));
    if let Some(run) = runs.writer(&meta.written_by) {
        object.field("run", &run);
    }
    let written = meta.written_at.as_millis().to_string();
    let object = object.created(uid(&["StateVersion", tenant, &name, &written, &sha256]), meta.written_at);
    let cells = Row::default()
        .text(Some(&name))
        .text(serial.map(|serial| serial.to_string()).as_deref())
        .text(meta.writer.as_deref())
        .text(Some(&meta.written_by))
        .age(meta.written_at)
        .text(lineage.as_deref())
        .number(meta.size_bytes)
        .text(meta.lock_operation.as_deref())
        .text(Some(if meta.forced { "true" } else { "false" }));
    Draft::new(&STATE_VERSION, object, Vec::new(), cells)
}

/// Shows a refused write as an Event on the Tenant whose UID is `involved`. `place` tells it from others of the same
/// moment.
pub fn event(tenant: &str, involved: &str, refusal: &RefusalRecord, place: usize) -> Draft {
    let name = format!("{tenant}.{:x}.{place}", refusal.at.as_millis());
    let message = format!(
        "{} by {} was refused ({}): {}",
        refusal.operation, refusal.who, refusal.code, refusal.reason
    );
    happened(&Happened {
        tenant,
        name: &name,
        salt: &refusal.operation,
        kind: &TENANT,
        object: tenant,
        uid: involved,
        is_warning: true,
        reason: "WriteRefused",
        message: &message,
        at: refusal.at,
    })
}

/// Shows a change of what was observed as an Event on the object that has the UID `uid`.
pub fn transition(tenant: &str, event: &Transition, object: &str, uid: &str) -> Draft {
    let kind = event.kind.singular;
    let name = format!("{object}.{kind}.{:x}.{}", event.at.as_millis(), event.reason.to_ascii_lowercase());
    happened(&Happened {
        tenant,
        name: &name,
        salt: kind,
        kind: event.kind,
        object,
        uid,
        is_warning: event.is_warning,
        reason: &event.reason,
        message: &event.message,
        at: event.at,
    })
}

/// Something that happened to an object.
struct Happened<'a> {
    tenant: &'a str,
    name: &'a str,
    /// Tells its UID from that of another one of the same name.
    salt: &'a str,
    kind: &'static KindInfo,
    object: &'a str,
    uid: &'a str,
    is_warning: bool,
    reason: &'a str,
    message: &'a str,
    at: Timestamp,
}

fn happened(it: &Happened<'_>) -> Draft {
    let Happened { tenant, name, kind, object: involved, reason, message, .. } = *it;
    let object = Object::bare(&EVENT, name).within(tenant);
    let mut object = object.created(uid(&["Event", tenant, name, it.salt]), it.at);
    let mut reference = json!({
        "apiVersion": kind.api_version(), "kind": kind.kind, "name": involved, "uid": it.uid,
    });
    if kind.namespaced {
        reference["namespace"] = tenant.into();
    }
    let severity = if it.is_warning { "Warning" } else { "Normal" };
    object.member("involvedObject", &reference);
    object.member("reason", &reason);
    object.member("message", &message);
    object.member("source", &json!({ "component": "rezus" }));
    object.member("firstTimestamp", &seconds(it.at));
    object.member("lastTimestamp", &seconds(it.at));
    object.member("count", &1);
    object.member("type", &severity);
    object.member("eventTime", &());
    object.member("reportingComponent", &"rezus");
    object.member("reportingInstance", &"");
    let cells = Row::default()
        .age(it.at)
        .text(Some(severity))
        .text(Some(reason))
        .text(Some(&format!("{}/{involved}", kind.singular)))
        .text(Some(message))
        .text(Some(name));
    let of = |label, value: &str| (label, Some(value.to_owned()));
    let mut fields = vec![
        of("involvedObject.kind", kind.kind),
        of("involvedObject.name", involved),
        of("involvedObject.uid", it.uid),
        of("involvedObject.apiVersion", kind.api_version()),
        of("reason", reason),
        of("reportingComponent", "rezus"),
        of("source", "rezus"),
        of("type", severity),
    ];
    if kind.namespaced {
        fields.push(of("involvedObject.namespace", tenant));
    }
    Draft::new(&EVENT, object, fields, cells)
}
