//! What is shown of the states themselves: their versions, and the writes that were refused.

use rezus_core::declared::projection::SpecFields;
use rezus_core::declared::store::{Content, RefusalRecord, TenantRecord, VersionMeta};
use rezus_core::declared::{Lineage, Serial};
use serde_json::json;

use super::run::KnownRuns;
use super::uid;
use crate::kube::item::{Draft, Row};
use crate::kube::kinds::{EVENT, STATE_VERSION};
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
    let at = refusal.at.as_millis();
    let name = format!("{tenant}.{at:x}.{place}");
    let object = Object::bare(&EVENT, &name).within(tenant);
    let mut object = object.created(uid(&["Event", tenant, &name, &refusal.operation]), refusal.at);
    let message = format!(
        "{} by {} was refused ({}): {}",
        refusal.operation, refusal.who, refusal.code, refusal.reason
    );
    object.member(
        "involvedObject",
        &json!({ "apiVersion": "rezuscloud.io/v1alpha1", "kind": "Tenant", "name": tenant, "uid": involved }),
    );
    object.member("reason", &"WriteRefused");
    object.member("message", &message);
    object.member("source", &json!({ "component": "rezus" }));
    object.member("firstTimestamp", &seconds(refusal.at));
    object.member("lastTimestamp", &seconds(refusal.at));
    object.member("count", &1);
    object.member("type", &"Warning");
    object.member("eventTime", &());
    object.member("reportingComponent", &"rezus");
    object.member("reportingInstance", &"");
    let cells = Row::default()
        .age(refusal.at)
        .text(Some("Warning"))
        .text(Some("WriteRefused"))
        .text(Some(&format!("tenant/{tenant}")))
        .text(Some(&message))
        .text(Some(&name));
    let of = |label, value: &str| (label, Some(value.to_owned()));
    let fields = vec![
        of("involvedObject.kind", "Tenant"),
        of("involvedObject.name", tenant),
        of("involvedObject.uid", involved),
        of("involvedObject.apiVersion", "rezuscloud.io/v1alpha1"),
        of("reason", "WriteRefused"),
        of("reportingComponent", "rezus"),
        of("source", "rezus"),
        of("type", "Warning"),
    ];
    Draft::new(&EVENT, object, fields, cells)
}
