//! What the JSON answers look like. Absent members are unknown or do not apply; times are RFC 3339 in UTC.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use rezus_core::base::Timestamp;
use rezus_core::declared::diff::{ChangeKind, ObjectChange};
use rezus_core::declared::index::{IndexRow, InstanceKey};
use rezus_core::declared::store::{Content, HeldLock, RefusalRecord, TenantRecord, VersionMeta};
use rezus_core::declared::{Encryption, Freeze, Lineage, LockId, Serial, VersionNumber};
use rezus_core::runs::workspace::TenantSettings;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::runs::Holder;

pub use super::settings::views::{ConfigurationView, FreezeView};

/// A list.
#[derive(Debug, Serialize)]
pub struct List<T> {
    /// What is in it.
    pub items: Vec<T>,
}

/// The server.
#[derive(Debug, Serialize)]
pub struct ServerView {
    /// Its release.
    pub version: &'static str,
    /// The URLs it listens on.
    pub listeners: Vec<String>,
}

/// A tenant.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantView {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created_at: String,
    /// Whether writes without the lock are refused.
    pub require_locks: bool,
    /// `required` where states in clear are refused, else `optional`.
    pub encryption: &'static str,
    /// The kubeconfig that counts where the state holds no credential that opens Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kubeconfig_file: Option<String>,
    /// Whether its cluster is observed, where that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<bool>,
    /// Addresses that may be asked although they are loopback or link-local ones.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub destinations: BTreeSet<IpAddr>,
    /// The recording that is replayed instead of asking anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// The port at which `node_exporter` answers on its machines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_metrics: Option<u16>,
    /// The same of a talosconfig.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub talosconfig_file: Option<String>,
    /// What its operators labelled it with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// An operator's stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<FreezeView>,
    /// What its runs are made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<ConfigurationView>,
    /// The lock, while one is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockView>,
    /// The newest version, a deletion included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<VersionView>,
    /// The newest refusal that no accepted write followed: nobody else shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<RefusalView>,
}

/// A lock that is held, or a freeze in its place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockView {
    /// In which tenant.
    pub tenant: String,
    /// Its ID.
    pub id: String,
    /// What its client is doing.
    pub operation: String,
    /// `user@host` of the client, as the client says.
    pub who: String,
    /// The client's version.
    pub client_version: String,
    /// When the client made it, as the client says.
    pub created: String,
    /// When it was granted.
    pub acquired_at: String,
    /// To whom it was granted, as the server knows.
    pub acquired_by: String,
    /// Seconds it has been held.
    pub age_seconds: u64,
    /// Whether its holder lives: `alive` or `gone` of a run's program, `unknown` of anybody else.
    pub holder: &'static str,
    /// The run that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Why, of a freeze.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A version of a state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one write")]
pub struct VersionView {
    /// The server's count.
    pub version: u64,
    /// The state's serial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The state's lineage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    /// The version of the tool that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// Length of its bytes.
    pub size_bytes: u64,
    /// How many instance objects it holds; absent when it is encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u64>,
    /// When it was accepted.
    pub written_at: String,
    /// From whom.
    pub written_by: String,
    /// What the client was doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_operation: Option<String>,
    /// Whether it broke the rules of serial and lineage.
    pub forced: bool,
    /// Whether it was written without a lock.
    pub unlocked: bool,
    /// Whether the same operation wrote a later version.
    pub intermediate: bool,
    /// Whether retention must keep it.
    pub pinned: bool,
    /// Whether it is an encrypted envelope.
    pub encrypted: bool,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// The version it brought back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<u64>,
}

/// A request that was refused.
#[derive(Debug, Serialize)]
pub struct RefusalView {
    /// When.
    pub at: String,
    /// Who asked.
    pub who: String,
    /// For what.
    pub operation: String,
    /// The status of the answer.
    pub code: u16,
    /// Why.
    pub reason: String,
}

/// An instance object of a state, without its attributes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub struct ResourceView {
    /// As OpenTofu spells it.
    pub address: String,
    /// The key of an old generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// The module instance; absent for the root.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// `managed` or `data`.
    pub mode: String,
    /// The resource type.
    #[serde(rename = "type")]
    pub resource_type: String,
    /// The resource's name.
    pub name: String,
    /// The instance key: a number or a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<serde_json::Value>,
    /// The provider's configuration, as the state spells it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Whether it is to be replaced.
    pub tainted: bool,
    /// Its JSON path in the state.
    pub path: String,
    /// JSON pointers of what is not shown of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<String>,
}

/// All objects of a state.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourcesView {
    /// The version they are of.
    pub version: u64,
    /// Its serial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The objects, in the state's order.
    pub items: Vec<ResourceView>,
}

/// One object of a state.
#[derive(Debug, Serialize)]
pub struct ObjectView {
    /// The version it is of.
    pub version: u64,
    /// Where it stands.
    pub resource: ResourceView,
    /// The object as the state has it, with what is secret masked. Numbers keep their digits.
    pub object: Box<RawValue>,
}

/// What differs between two versions.
#[derive(Debug, Serialize)]
pub struct DiffView {
    /// The earlier version.
    pub from: u64,
    /// The later one.
    pub to: u64,
    /// The objects that differ, sorted by address.
    pub items: Vec<ObjectChangeView>,
}

/// An object that differs.
#[derive(Debug, Serialize)]
pub struct ObjectChangeView {
    /// Its address.
    pub address: String,
    /// The key of an old generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// The places that differ, of a changed one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributeChangeView>,
}

/// A place that differs. A value that must not be shown is `"(sensitive)"`; an absent side is absent.
#[derive(Debug, Serialize)]
pub struct AttributeChangeView {
    /// The JSON pointer into the object.
    pub path: String,
    /// What was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<RawValue>>,
    /// What is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Box<RawValue>>,
}

impl DiffView {
    /// Shows what differs.
    pub fn of(from: VersionNumber, to: VersionNumber, changes: Vec<ObjectChange>) -> Self {
        // The values are JSON texts already, cut out of the state.
        let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        let items = changes.into_iter().map(|change| {
            let (name, attributes) = match change.kind {
                ChangeKind::Added => ("added", Vec::new()),
                ChangeKind::Removed => ("removed", Vec::new()),
                ChangeKind::Changed { attributes } => ("changed", attributes),
            };
            let attributes = attributes.into_iter().map(|attribute| AttributeChangeView {
                path: attribute.pointer,
                before: raw(attribute.before),
                after: raw(attribute.after),
            });
            ObjectChangeView {
                address: change.address.to_string(),
                deposed: change.deposed,
                change: name,
                attributes: attributes.collect(),
            }
        });
        Self { from: from.get(), to: to.get(), items: items.collect() }
    }
}

impl VersionView {
    /// Shows a version.
    pub fn of(meta: &VersionMeta) -> Self {
        let resources = match meta.content {
            Content::Plain { objects, .. } => Some(objects),
            Content::Encrypted | Content::Tombstone => None,
        };
        Self {
            version: meta.version.get(),
            serial: meta.serial.map(Serial::get),
            lineage: meta.lineage.as_ref().map(Lineage::to_string).filter(|lineage| !lineage.is_empty()),
            writer: meta.writer.clone(),
            sha256: meta.fingerprint.sha256_hex(),
            size_bytes: meta.size_bytes,
            resources,
            written_at: meta.written_at.to_string(),
            written_by: meta.written_by.clone(),
            lock_operation: meta.lock_operation.clone(),
            forced: meta.forced,
            unlocked: meta.unlocked,
            intermediate: meta.intermediate,
            pinned: meta.pinned,
            encrypted: meta.content == Content::Encrypted,
            deleted: meta.content == Content::Tombstone,
            rollback_of: meta.rollback_of.map(VersionNumber::get),
        }
    }
}

impl LockView {
    /// Shows a lock.
    pub fn of(tenant: &str, lock: &HeldLock, holder: &Holder, now: Timestamp) -> Self {
        Self {
            tenant: tenant.to_owned(),
            id: LockId::to_string(&lock.info.id),
            operation: lock.info.operation.clone(),
            who: lock.info.who.clone(),
            client_version: lock.info.version.clone(),
            created: lock.info.created.clone(),
            acquired_at: lock.acquired_at.to_string(),
            acquired_by: lock.acquired_by.clone(),
            age_seconds: now.since(lock.acquired_at).as_secs(),
            holder: holder.as_str(),
            run: holder.run().map(ToString::to_string),
            reason: None,
        }
    }

    /// Shows a freeze as what is held.
    fn of_freeze(tenant: &str, freeze: &Freeze, now: Timestamp) -> Self {
        let lock = HeldLock {
            info: freeze.as_lock(),
            acquired_at: freeze.at,
            acquired_by: freeze.by.clone(),
            acquired_head: None,
        };
        let holder = Holder::Unknown;
        Self { reason: Some(freeze.reason.clone()), ..Self::of(tenant, &lock, &holder, now) }
    }

    /// Shows a tenant's lock, and its freeze.
    pub fn all(record: &TenantRecord, holder: &Holder, now: Timestamp) -> Vec<Self> {
        let lock = record.lock.as_ref().map(|lock| Self::of(record.name.as_str(), lock, holder, now));
        let freeze = record.freeze.as_ref().map(|freeze| Self::of_freeze(record.name.as_str(), freeze, now));
        lock.into_iter().chain(freeze).collect()
    }
}

impl RefusalView {
    /// Shows a refusal.
    pub fn of(refusal: &RefusalRecord) -> Self {
        Self {
            at: refusal.at.to_string(),
            who: refusal.who.clone(),
            operation: refusal.operation.clone(),
            code: refusal.code,
            reason: refusal.reason.clone(),
        }
    }
}

impl TenantView {
    /// Shows a tenant, with the newest of its refusals if no accepted write followed that one.
    pub fn of(
        record: &TenantRecord,
        encryption: Encryption,
        newest_refusal: Option<&RefusalRecord>,
        holder: &Holder,
        now: Timestamp,
    ) -> Self {
        let head = record.head.as_ref().map(|head| head.version);
        Self {
            name: record.name.to_string(),
            created_at: record.created_at.to_string(),
            require_locks: record.require_locks,
            encryption: encryption.as_str(),
            kubeconfig_file: None,
            collect: None,
            destinations: BTreeSet::new(),
            recording: None,
            node_metrics: None,
            talosconfig_file: None,
            labels: BTreeMap::new(),
            freeze: record.freeze.as_ref().map(FreezeView::of),
            configuration: None,
            lock: record.lock.as_ref().map(|lock| LockView::of(record.name.as_str(), lock, holder, now)),
            state: record.head.as_ref().map(VersionView::of),
            refusal: newest_refusal.filter(|refusal| refusal.head == head).map(RefusalView::of),
        }
    }

    /// Shows what is set of it; `is_fixed` by the configuration file.
    #[must_use]
    pub fn with(self, settings: &TenantSettings, is_fixed: bool) -> Self {
        let configuration =
            settings.workspace.as_ref().map(|workspace| ConfigurationView::of(workspace, is_fixed));
        let shown = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        Self {
            labels: settings.labels.clone(),
            kubeconfig_file: shown(&settings.kubeconfig_file),
            collect: settings.collect,
            destinations: settings.destinations.clone(),
            recording: shown(&settings.recording),
            node_metrics: settings.node_metrics,
            talosconfig_file: shown(&settings.talosconfig_file),
            configuration,
            ..self
        }
    }
}

impl ResourceView {
    /// Shows a row.
    pub fn of(row: &IndexRow) -> Self {
        Self {
            address: row.address.to_string(),
            deposed: row.deposed.clone(),
            module: row.module.clone(),
            mode: row.mode.to_string(),
            resource_type: row.resource_type.clone(),
            name: row.name.clone(),
            key: row.key.as_ref().map(|key| match key {
                InstanceKey::Number(number) => (*number).into(),
                InstanceKey::Text(text) => text.clone().into(),
            }),
            provider: row.provider.clone(),
            tainted: row.tainted,
            path: row.json_path(),
            masked: row.masked.clone(),
        }
    }
}
