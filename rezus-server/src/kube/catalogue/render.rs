//! Makes all objects of a tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use rezus_core::base::Timestamp;
use rezus_core::declared::projection::{Lifetime, ResourceKind};
use rezus_core::declared::projector::{Declared, Objects};
use rezus_core::declared::resource::{Cluster, Projection};
use rezus_core::declared::store::{Content, RefusalRecord, TenantRecord, VersionMeta};

use super::{PROJECTED, Trouble};
use crate::kube::credentials::Validity;
use crate::kube::item::Draft;
use crate::kube::kinds::{
    EVENT, KINDS, KindInfo, MACHINE, NAMESPACE, NODE_GROUP, RUN, STATE_VERSION, TENANT,
};
use crate::kube::object::Condition;
use crate::kube::show::{self, KnownRuns, Told};

/// What is known of what a tenant's state declares.
#[derive(Default)]
pub(super) struct Known {
    /// All of it, where it has to be written out.
    pub(super) declared: Option<Arc<Declared>>,
    /// What it is as a whole; nothing where there is no state, or it cannot be read.
    pub(super) summary: Option<Arc<Summary>>,
    /// Why it cannot be read.
    pub(super) trouble: Option<Trouble>,
    /// What an earlier state declared, where this one cannot be read.
    pub(super) remembered: Option<Objects>,
}

/// What a Tenant shows of its projection.
#[derive(Debug)]
pub(super) struct Summary {
    cluster: Cluster,
    machines: usize,
    node_groups: usize,
    lifetime: Option<Lifetime>,
}

impl Summary {
    pub(super) fn of(declared: &Declared) -> Self {
        let Projection { cluster, machines, node_groups, .. } = &declared.projection;
        Self {
            cluster: cluster.clone(),
            machines: machines.len(),
            node_groups: node_groups.len(),
            lifetime: declared.objects.get(&(ResourceKind::Cluster, String::new())).cloned(),
        }
    }

    /// Tells whether a cluster of Talos is declared.
    pub(super) fn is_talos(&self) -> bool {
        self.cluster.providers.iter().any(|provider| provider.source.ends_with(TALOS))
    }
}

/// The provider of Talos, whatever registry it is from.
const TALOS: &str = "/siderolabs/talos";

/// All that objects are made of.
pub(super) struct Facts {
    pub(super) record: TenantRecord,
    pub(super) known: Known,
    /// How long the credentials are good with which its cluster is reached.
    pub(super) validity: Vec<Validity>,
    pub(super) versions: Vec<VersionMeta>,
    /// Newest first.
    pub(super) refusals: Vec<RefusalRecord>,
    /// What is known of its runs.
    pub(super) runs: KnownRuns,
    /// The labels that the tenant's operators gave it.
    pub(super) labels: BTreeMap<String, String>,
    /// The Tenant's conditions when it was shown last.
    pub(super) conditions: Vec<Condition>,
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
        let Known { summary, trouble, remembered, .. } = &self.known;
        let known = match (summary, trouble) {
            (Some(summary), _) => show::Known::All {
                cluster: &summary.cluster,
                machines: summary.machines,
                node_groups: summary.node_groups,
            },
            (None, Some(Trouble::Encrypted(standing))) => show::Known::Encrypted(standing),
            (None, Some(Trouble::Damaged)) => show::Known::Damaged,
            (None, None) => show::Known::Nothing,
        };
        let of_cluster = |objects: &'_ Objects| objects.get(&(ResourceKind::Cluster, String::new())).cloned();
        let lifetime = match summary {
            Some(summary) => summary.lifetime.clone(),
            None => remembered.as_ref().and_then(of_cluster),
        };
        let lifetime = lifetime.as_ref();
        let head = self.record.head.as_ref().map(|head| head.version);
        // Of no account once something was accepted.
        let is_write = |refusal: &&RefusalRecord| !matches!(refusal.operation.as_str(), "LOCK" | "UNLOCK");
        let refused = self.refusals.iter().find(is_write).filter(|refusal| refusal.head == head);
        let told = Told {
            record: &self.record,
            known,
            lifetime,
            refused,
            runs: &self.runs,
            validity: &self.validity,
            labels: &self.labels,
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
        let versions = versions.map(|meta| show::state_version(&self.record, meta, &self.runs));
        let runs = self.runs.records.iter().map(|run| show::run(run, &self.versions));
        let mut rendered: Vec<(&'static KindInfo, Vec<Draft>)> = vec![
            (&NAMESPACE, vec![show::namespace(&self.record)]),
            (&TENANT, vec![shown]),
            (&STATE_VERSION, versions.collect()),
            (&EVENT, events.collect()),
            (&RUN, runs.collect()),
        ];
        if !self.is_shown {
            rendered.extend(PROJECTED.map(|kind| (kind, self.projected(kind))));
        }
        Rendered { objects: rendered, conditions }
    }

    fn projected(&self, kind: &'static KindInfo) -> Vec<Draft> {
        let tenant = self.record.name.as_str();
        let is_machine = kind.is(&MACHINE);
        match (&self.known.declared, &self.known.remembered) {
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
