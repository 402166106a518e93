//! Which series there are: by tenant and metric, which is how they are asked for.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use rezus_core::series::{Labels, Matcher, NAME, Selection, TENANT};

use super::SeriesCaps;

/// All series of one tenant and metric. Whoever reads holds on to what there was, and nobody waits for that.
type Family = Arc<BTreeSet<Labels>>;

/// The series there are.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    tenants: HashMap<Box<str>, Tenant>,
    total: usize,
}

#[derive(Debug, Default)]
struct Tenant {
    count: usize,
    metrics: HashMap<Box<str>, Family>,
}

impl Directory {
    /// Returns how many series there are.
    pub(crate) fn count(&self) -> usize {
        self.total
    }

    /// Takes a series that is not there yet, if there may be another one.
    pub(crate) fn add(&mut self, labels: &Labels, caps: SeriesCaps) -> bool {
        let (tenant, metric) = (labels.get(TENANT), labels.get(NAME));
        let own = self.tenants.get(tenant).map_or(0, |tenant| tenant.count);
        if self.total >= caps.total || own >= caps.per_tenant {
            return false;
        }
        let entry = self.tenants.entry(tenant.into()).or_default();
        entry.count += 1;
        self.total += 1;
        Arc::make_mut(entry.metrics.entry(metric.into()).or_default()).insert(labels.clone());
        true
    }

    /// Forgets a series.
    pub(crate) fn remove(&mut self, labels: &Labels) {
        let (tenant, metric) = (labels.get(TENANT), labels.get(NAME));
        let Some(entry) = self.tenants.get_mut(tenant) else { return };
        let Some(family) = entry.metrics.get_mut(metric) else { return };
        if !Arc::make_mut(family).remove(labels) {
            return;
        }
        if family.is_empty() {
            entry.metrics.remove(metric);
        }
        entry.count -= 1;
        self.total -= 1;
        if entry.count == 0 {
            self.tenants.remove(tenant);
        }
    }

    /// Returns the families in which series that are meant can be.
    pub(crate) fn families(&self, selection: &Selection) -> Vec<Family> {
        let fits = |label: &str, value: &str| {
            selection.matchers.iter().filter(|m| m.name() == label).all(|m| m.matches_value(value))
        };
        let only = selection.matchers.iter().filter(|m| m.name() == NAME).find_map(Matcher::only);
        let mut found = Vec::new();
        let mut look = |name: &str, tenant: &Tenant| {
            if !fits(TENANT, name) {
                return;
            }
            match only {
                Some(metric) if fits(NAME, metric) => found.extend(tenant.metrics.get(metric).cloned()),
                Some(_) => {}
                None => {
                    let metrics = tenant.metrics.iter().filter(|(metric, _)| fits(NAME, metric));
                    found.extend(metrics.map(|(_, family)| Arc::clone(family)));
                }
            }
        };
        match &selection.tenants {
            Some(tenants) => {
                for name in tenants.iter().map(rezus_core::base::TenantName::as_str) {
                    self.tenants.get(name).into_iter().for_each(|tenant| look(name, tenant));
                }
            }
            None => self.tenants.iter().for_each(|(name, tenant)| look(name, tenant)),
        }
        found
    }

    /// Returns all families.
    #[cfg(feature = "history")]
    pub(crate) fn all(&self) -> Vec<Family> {
        self.tenants.values().flat_map(|tenant| tenant.metrics.values().cloned()).collect()
    }
}
