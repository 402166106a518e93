//! What a state says of the cluster as a whole.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::Part;
use super::providers;
use crate::declared::index::{IndexRow, Mode};
use crate::declared::mapping::extract::{Field, Kind, Known};
use crate::declared::resource::{Cluster, Problem, Provenance, ProviderConfig, Shapes, Spot};

pub(super) fn cluster(parts: &[Part<'_>], rows: &[IndexRow], known: impl Fn(&IndexRow) -> Known) -> Cluster {
    let mut facts = Facts { parts, provenance: BTreeMap::new(), problems: BTreeSet::new() };
    for part in parts.iter().filter(|part| part.extract.kind == Kind::Cluster) {
        facts.problems.extend(part.extract.problems.iter().map(|problem| Problem {
            field: problem.field.clone(),
            reason: format!("{}: {}", part.row.address, problem.reason),
        }));
    }
    let cluster_name = facts.best(Field::ClusterName, "clusterName");
    let endpoint = facts.best(Field::Endpoint, "endpoint");
    let kubernetes_version = facts.best(Field::KubernetesVersion, "kubernetesVersion");
    let talos_version = facts.best(Field::TalosVersion, "talosVersion");
    let providers = facts.providers(rows);
    Cluster {
        cluster_name,
        endpoint,
        kubernetes_version,
        talos_version,
        providers,
        unmapped: unmapped(rows, known),
        problems: facts.problems.into_iter().collect(),
        provenance: Provenance::of_sorted(
            facts.provenance.iter().map(|(name, source)| (*name, source)),
            &mut Shapes::default(),
        ),
    }
}

fn unmapped(rows: &[IndexRow], known: impl Fn(&IndexRow) -> Known) -> Vec<(String, u64)> {
    let mut of_kind: BTreeMap<(&str, &str), (&IndexRow, u64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.mode == Mode::Managed && row.deposed.is_none()) {
        of_kind.entry((&row.resource_type, &row.provider)).or_insert((row, 0)).1 += 1;
    }
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (row, count) in of_kind.into_values().filter(|(row, _)| known(row) == Known::Unknown) {
        *counts.entry(row.resource_type.clone()).or_default() += count;
    }
    counts.into_iter().collect()
}

struct Facts<'p, 'a> {
    parts: &'p [Part<'a>],
    provenance: BTreeMap<&'static str, Spot>,
    problems: BTreeSet<Problem>,
}

impl Facts<'_, '_> {
    /// Returns the value of the greatest precedence, of several that of the smallest address. Others of the same
    /// precedence that disagree are a problem.
    fn best(&mut self, field: Field, name: &'static str) -> Option<String> {
        let found = || self.parts.iter().filter_map(|part| part.found(field));
        let best =
            found().reduce(|best, other| if other.precedence > best.precedence { other } else { best })?;
        let disagrees =
            found().find(|other| other.precedence == best.precedence && other.value != best.value);
        if let Some(other) = disagrees {
            let (here, there) = (&best.source.address, &other.source.address);
            let reason = format!("{there} says otherwise than {here}, which is believed");
            self.problems.insert(Problem { field: name.to_owned(), reason });
        }
        self.provenance.insert(name, best.source.clone());
        Some(best.value.clone())
    }

    fn providers(&mut self, rows: &[IndexRow]) -> Vec<ProviderConfig> {
        let spelt: BTreeSet<&str> =
            rows.iter().map(|row| &*row.provider).filter(|text| !text.is_empty()).collect();
        let mut configs = BTreeSet::new();
        for text in spelt {
            if let Some(config) = providers::parse(text) {
                configs.insert(config);
            } else {
                let reason = "an object names a provider in a way that is not understood".to_owned();
                self.problems.insert(Problem { field: "providers".to_owned(), reason });
            }
        }
        configs.into_iter().collect()
    }
}
