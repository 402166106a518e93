//! Makes all objects of a tenant.

use std::sync::Arc;

use rezus_core::base::Timestamp;
use rezus_core::declared::projection::ResourceKind;
use rezus_core::declared::projector::{Declared, Objects};
use rezus_core::declared::store::{Content, RefusalRecord, TenantRecord, VersionMeta};

use super::{PROJECTED, Trouble};
use crate::kube::credentials::Validity;
use crate::kube::item::Draft;
use crate::kube::kinds::{EVENT, KINDS, KindInfo, MACHINE, NAMESPACE, NODE_GROUP, STATE_VERSION, TENANT};
use crate::kube::object::Condition;
use crate::kube::show::{self, Known, Told};

/// All that objects are made of.
pub(super) struct Facts {
    pub(super) record: TenantRecord,
    /// What the state declares, where that is known.
    pub(super) declared: Option<Arc<Declared>>,
    pub(super) trouble: Option<Trouble>,
    /// What an earlier state declared, where this one cannot be read.
    pub(super) remembered: Option<Objects>,
    pub(super) versions: Vec<VersionMeta>,
    /// Newest first.
    pub(super) refusals: Vec<RefusalRecord>,
    /// The Tenant's conditions when it was shown last.
    pub(super) conditions: Vec<Condition>,
    /// How long the credentials are good that the state holds.
    pub(super) validity: Vec<Validity>,
    /// The time.
    pub(super) now: Timestamp,
    /// Whether machines and node groups are shown as they are already.
    pub(super) is_shown: bool,
}

/// Objects, kind by kind: what is not named stays as it is.
pub(super) struct Rendered {
    pub(super) objects: Vec<(&'static KindInfo, Vec<Draft>)>,
    /// The Tenant's conditions now.
    pub(super) conditions: Vec<Condition>,
}

impl Rendered {
    /// Nothing, of every kind that tenants have.
    pub(super) fn nothing() -> Self {
        let is_tenants = |kind: &&&'static KindInfo| kind.namespaced || kind.kind == "Tenant" || kind.is_core;
        // What is in a namespace goes before the namespace.
        let mut kinds: Vec<_> = KINDS.iter().filter(is_tenants).copied().collect();
        kinds.sort_by_key(|kind| !kind.namespaced);
        Self { objects: kinds.into_iter().map(|kind| (kind, Vec::new())).collect(), conditions: Vec::new() }
    }
}

impl Facts {
    /// Makes the objects.
    pub(super) fn render(self) -> Rendered {
        let tenant = self.record.name.as_str();
        let known = match (&self.declared, self.trouble) {
            (Some(declared), _) => Known::All(&declared.projection),
            (None, Some(Trouble::Encrypted)) => Known::Encrypted,
            (None, Some(Trouble::Damaged)) => Known::Damaged,
            (None, None) => Known::Nothing,
        };
        let objects = self.declared.as_ref().map(|declared| &declared.objects).or(self.remembered.as_ref());
        let lifetime = objects.and_then(|objects| objects.get(&(ResourceKind::Cluster, String::new())));
        let head = self.record.head.as_ref().map(|head| head.version);
        // Of no account once something was accepted.
        let is_write = |refusal: &&RefusalRecord| !matches!(refusal.operation.as_str(), "LOCK" | "UNLOCK");
        let refused = self.refusals.iter().find(is_write).filter(|refusal| refusal.head == head);
        let told = Told {
            record: &self.record,
            known,
            lifetime,
            refused,
            validity: &self.validity,
            now: self.now,
            before: &self.conditions,
        };
        let (shown, conditions) = show::tenant(told);
        let uid = show::tenant_uid(&self.record, lifetime);
        let events = self.refusals.iter().enumerate().map(|(place, refusal)| {
            // Those of one moment are told apart by their order, which older ones that are let go do not change.
            let same = self.refusals.iter().skip(place + 1).take_while(|earlier| earlier.at == refusal.at);
            show::event(tenant, &uid, refusal, same.count())
        });
        let versions = self.versions.iter().filter(|meta| meta.content != Content::Tombstone);
        let versions = versions.map(|meta| show::state_version(&self.record, meta));
        let mut rendered: Vec<(&'static KindInfo, Vec<Draft>)> = vec![
            (&NAMESPACE, vec![show::namespace(&self.record)]),
            (&TENANT, vec![shown]),
            (&STATE_VERSION, versions.collect()),
            (&EVENT, events.collect()),
        ];
        if !self.is_shown {
            rendered.extend(PROJECTED.map(|kind| (kind, self.projected(kind))));
        }
        Rendered { objects: rendered, conditions }
    }

    fn projected(&self, kind: &'static KindInfo) -> Vec<Draft> {
        let tenant = self.record.name.as_str();
        let is_machine = kind.is(&MACHINE);
        match (&self.declared, &self.remembered) {
            (Some(declared), _) => drafts(tenant, declared, kind),
            (None, Some(remembered)) => {
                let wanted = if is_machine { ResourceKind::Machine } else { ResourceKind::NodeGroup };
                let of_kind = remembered.iter().filter(|((kind, _), _)| *kind == wanted);
                of_kind
                    .map(|((_, name), lifetime)| show::remembered(name, tenant, lifetime, is_machine))
                    .collect()
            }
            (None, None) => Vec::new(),
        }
    }
}

/// Shows the machines or node groups of a version.
pub(in crate::kube) fn drafts(tenant: &str, declared: &Declared, kind: &KindInfo) -> Vec<Draft> {
    let lifetime = |kind, name: &str| declared.objects.get(&(kind, name.to_owned()));
    if kind.plural == NODE_GROUP.plural {
        let groups = declared.projection.node_groups.iter();
        let shown =
            |group| show::node_group(group, tenant, lifetime(ResourceKind::NodeGroup, &group.object_name));
        return groups.map(shown).collect();
    }
    let machines = declared.projection.machines.iter();
    machines
        .map(|machine| show::machine(machine, tenant, lifetime(ResourceKind::Machine, &machine.object_name)))
        .collect()
}
