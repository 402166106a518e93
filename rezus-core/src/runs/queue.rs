//! Whose turn it is: one run a tenant, so many at a time, and tenants take turns.

use std::collections::{BTreeMap, HashMap};

use super::executor::RunId;
use crate::base::{TenantName, Timestamp};

/// Runs that wait for their turn, and those whose turn it is.
///
/// The tenant that was served longest ago comes first, and of those that never were the one that asked first: who asks
/// for much does not keep others waiting. A tenant's own runs keep their order.
#[derive(Clone, Debug)]
pub struct Queue {
    slots: usize,
    waiting: Vec<Waiting>,
    active: BTreeMap<TenantName, RunId>,
    served: HashMap<TenantName, u64>,
    turn: u64,
}

#[derive(Clone, Debug)]
struct Waiting {
    id: RunId,
    not_before: Timestamp,
}

impl Queue {
    /// A queue with so many places.
    pub fn new(slots: usize) -> Self {
        let (waiting, active) = (Vec::new(), BTreeMap::new());
        Self { slots: slots.max(1), waiting, active, served: HashMap::new(), turn: 0 }
    }

    /// Adds a run behind its tenant's others; its turn does not come before `not_before`.
    pub fn push(&mut self, id: RunId, not_before: Timestamp) {
        self.waiting.push(Waiting { id, not_before });
    }

    /// Takes the run whose turn it is at `now`, among the tenants that `may`.
    pub fn next(&mut self, now: Timestamp, may: impl Fn(&TenantName) -> bool) -> Option<RunId> {
        if self.active.len() >= self.slots {
            return None;
        }
        let mut firsts: Vec<(u64, usize)> = Vec::new();
        let mut seen: Vec<&TenantName> = Vec::new();
        for (place, waiting) in self.waiting.iter().enumerate() {
            let tenant = &waiting.id.tenant;
            if seen.contains(&tenant) {
                continue;
            }
            seen.push(tenant);
            if waiting.not_before <= now && !self.active.contains_key(tenant) && may(tenant) {
                firsts.push((self.served.get(tenant).copied().unwrap_or(0), place));
            }
        }
        let (_, place) = firsts.into_iter().min()?;
        let Waiting { id, .. } = self.waiting.remove(place);
        self.turn += 1;
        self.served.insert(id.tenant.clone(), self.turn);
        self.active.insert(id.tenant.clone(), id.clone());
        Some(id)
    }

    /// Gives a run its turn that it had before, whether or not there is a place.
    pub fn resume(&mut self, id: &RunId) {
        self.active.insert(id.tenant.clone(), id.clone());
    }

    /// Takes a run out, if it waits. Returns whether it did.
    pub fn remove(&mut self, id: &RunId) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| waiting.id != *id);
        self.waiting.len() < before
    }

    /// A run's turn is over.
    pub fn finish(&mut self, id: &RunId) {
        if self.active.get(&id.tenant) == Some(id) {
            self.active.remove(&id.tenant);
        }
        if self.waiting.is_empty() {
            // Nobody waits: who was served last need not be known.
            self.served.clear();
        }
    }

    /// Returns the run of a tenant whose turn it is.
    pub fn active(&self, tenant: &TenantName) -> Option<&RunId> {
        self.active.get(tenant)
    }

    /// How many runs' turn it is.
    pub fn active_count(&self) -> usize {
        self.active.len()
    }

    /// Returns a tenant's runs that wait, in their order.
    pub fn waiting<'q>(&'q self, tenant: &'q TenantName) -> impl Iterator<Item = &'q RunId> {
        self.waiting.iter().map(|waiting| &waiting.id).filter(move |id| id.tenant == *tenant)
    }

    /// Returns when a run's turn may come that waits for a time alone.
    pub fn next_time(&self, now: Timestamp) -> Option<Timestamp> {
        self.waiting.iter().map(|waiting| waiting.not_before).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::RunName;

    const NOW: Timestamp = Timestamp::from_millis(1_000);

    fn id(tenant: &str, run: &str) -> RunId {
        RunId { tenant: TenantName::parse(tenant).unwrap(), run: RunName::parse(run).unwrap() }
    }

    fn drain(queue: &mut Queue) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(id) = queue.next(NOW, |_| true) {
            order.push(format!("{}/{}", id.tenant, id.run));
            queue.finish(&id);
        }
        order
    }

    #[test]
    fn tenants_take_turns_and_keep_the_order_of_their_own_runs() {
        let mut queue = Queue::new(1);
        for (tenant, run) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1"), ("b", "2")] {
            queue.push(id(tenant, run), NOW);
        }
        assert_eq!(drain(&mut queue), ["a/1", "b/1", "c/1", "a/2", "b/2", "a/3"]);
    }

    #[test]
    fn a_tenant_has_one_run_at_a_time_and_all_have_so_many_places() {
        let mut queue = Queue::new(2);
        for (tenant, run) in [("a", "1"), ("a", "2"), ("b", "1"), ("c", "1")] {
            queue.push(id(tenant, run), NOW);
        }
        let first = queue.next(NOW, |_| true).unwrap();
        let second = queue.next(NOW, |_| true).unwrap();
        assert_eq!((&first, &second), (&id("a", "1"), &id("b", "1")));
        assert_eq!(queue.next(NOW, |_| true), None);
        queue.finish(&first);
        assert_eq!(queue.next(NOW, |_| true), Some(id("c", "1")));
        assert_eq!(queue.active_count(), 2);
    }

    #[test]
    fn who_may_not_or_not_yet_waits_and_keeps_nobody_from_going() {
        let mut queue = Queue::new(4);
        queue.push(id("a", "1"), Timestamp::from_millis(2_000));
        queue.push(id("b", "1"), NOW);
        queue.push(id("c", "1"), NOW);
        let frozen = TenantName::parse("b").unwrap();
        assert_eq!(queue.next(NOW, |tenant| *tenant != frozen), Some(id("c", "1")));
        assert_eq!(queue.next(NOW, |tenant| *tenant != frozen), None);
        assert_eq!(queue.next_time(NOW), Some(Timestamp::from_millis(2_000)));
        assert!(queue.remove(&id("b", "1")));
        assert!(!queue.remove(&id("b", "1")));
        assert_eq!(queue.next(Timestamp::from_millis(2_000), |_| true), Some(id("a", "1")));
    }
}
