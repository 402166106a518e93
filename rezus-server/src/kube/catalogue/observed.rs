//! Shows what was observed beside what is declared: whenever there is news, and whenever news becomes old.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::store::StoreError;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Catalogue, Inner, lock, micros, of_namespace};
use crate::collector::{Board, Paces};
use crate::config::CollectorConfig;
use crate::error::Chain;
use crate::kube::hub::Hub;
use crate::kube::item::{Draft, Item};
use crate::kube::join::{Declared, Joined, Memory, SampledAs, Transition, is_suspicious, join};
use crate::kube::kinds::{EVENT, MACHINE, NODE_GROUP, TENANT};
use crate::kube::show;

/// How often it is looked at whose news becomes old.
const LOOK: Duration = Duration::from_secs(1);

/// What is put together at a time waits so many times as long as that took: however much news there is, most of the time
/// is for others.
const SHARE: u32 = 4;

/// The least and the longest such wait.
const BREATH: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];

/// How many events of one tenant are kept.
const EVENTS: usize = 100;

/// What was observed, and what was shown of it.
#[derive(Debug)]
pub struct Observed {
    board: Board,
    paces: Paces,
    /// What happened lately, newest last, to be shown with each tenant's other events.
    events: Mutex<HashMap<TenantName, VecDeque<Draft>>>,
    /// What is remembered of each tenant from one time to the next, and when its news becomes old.
    memories: Mutex<HashMap<TenantName, Remembered>>,
    /// By what names samples of each tenant's machines are known.
    sampled_as: Mutex<HashMap<TenantName, SampledAs>>,
}

#[derive(Debug, Default)]
struct Remembered {
    /// Taken out while it is worked with.
    memory: Memory,
    next_turn: Option<Timestamp>,
}

impl Observed {
    /// What is on a board.
    pub fn new(board: Board, config: &CollectorConfig) -> Self {
        Self {
            board,
            paces: Paces::of(config),
            events: Mutex::default(),
            memories: Mutex::default(),
            sampled_as: Mutex::default(),
        }
    }

    /// What happened to a tenant's objects lately.
    pub(super) fn events(&self, tenant: &TenantName) -> Vec<Draft> {
        lock(&self.events).get(tenant).map(|events| events.iter().cloned().collect()).unwrap_or_default()
    }

    /// Says that a tenant declares something else than before.
    pub(super) fn stir(&self, tenant: &TenantName) {
        self.board.stir(tenant);
    }

    /// Forgets a tenant that is gone.
    pub(super) fn forget(&self, tenant: &TenantName) {
        lock(&self.memories).remove(tenant);
        lock(&self.events).remove(tenant);
        lock(&self.sampled_as).remove(tenant);
    }

    /// Those whose news becomes old now.
    fn due(&self, now: Timestamp) -> BTreeSet<TenantName> {
        let memories = lock(&self.memories);
        let due =
            memories.iter().filter(|(_, remembered)| remembered.next_turn.is_some_and(|turn| turn <= now));
        due.map(|(tenant, _)| tenant.clone()).collect()
    }
}

impl Catalogue {
    /// By what names samples of a machine are known; none where nothing that was seen was matched with it.
    pub fn sampled_as(&self, tenant: &TenantName, machine: &str) -> BTreeSet<String> {
        let names = lock(&self.0.observed.sampled_as).get(tenant).cloned();
        names.and_then(|names| names.get(machine).cloned()).unwrap_or_default()
    }

    /// Shows what is observed as it comes in, until the task is ended.
    pub async fn run_observed(self) {
        let Observed { board, .. } = &self.0.observed;
        loop {
            let look = Instant::now() + LOOK;
            drop(timeout_at(look, board.news()).await);
            let mut tenants = board.fresh();
            tenants.extend(self.0.observed.due(self.0.clock.now()));
            let began = Instant::now();
            for tenant in tenants {
                if let Err(error) = self.0.show_observed(&tenant).await {
                    tracing::warn!(tenant.name = %tenant, cause = %Chain(&error), "what was observed cannot be shown now");
                }
            }
            let [least, longest] = BREATH;
            sleep((began.elapsed() * SHARE).clamp(least, longest)).await;
        }
    }
}

/// Shows something that happened to an object.
fn transition(hub: &Hub, tenant: &str, event: &Transition) -> Draft {
    let items = hub.snapshot(event.kind).items;
    let (namespace, name) = if event.kind.namespaced { (tenant, event.name.as_str()) } else { ("", tenant) };
    let place = items.binary_search_by(|item| item.key().cmp(&(namespace, name)));
    let uid = place.ok().and_then(|at| items.get(at)).and_then(|item| item.shown().uid());
    show::transition(tenant, event, name, uid.as_deref().unwrap_or_default())
}

impl Inner {
    /// Shows what is observed of a tenant now, beside what is shown of it.
    async fn show_observed(&self, tenant: &TenantName) -> Result<(), StoreError> {
        let _one = self.publishing.lock().await;
        let hub = self.hub().await?;
        let name = tenant.as_str();
        let machines = hub.snapshot(&MACHINE).items;
        let machines: Vec<Arc<Item>> = of_namespace(&machines, name).cloned().collect();
        let groups = hub.snapshot(&NODE_GROUP).items;
        let groups: Vec<Arc<Item>> = of_namespace(&groups, name).cloned().collect();
        let declared = move || Declared {
            machines: machines
                .iter()
                .filter_map(|item| Some((item.name().to_owned(), super::spec(item)?)))
                .collect(),
            groups: groups
                .iter()
                .filter_map(|item| Some((item.name().to_owned(), super::spec(item)?)))
                .collect(),
        };
        let Some(joined) = self.joined(tenant, declared).await? else { return Ok(()) };
        let now = micros(self.clock.now());
        self.reserve(hub.newest().max(now)).await;
        for (kind, pieces) in [(&MACHINE, &joined.machines), (&NODE_GROUP, &joined.groups)] {
            hub.observe(kind, name, pieces, now);
        }
        if let Some(piece) = joined.tenant {
            hub.observe(&TENANT, "", &[(name.to_owned(), piece)], now);
        }
        for event in joined.events.iter().filter(|event| is_suspicious(&event.reason)) {
            tracing::warn!(tenant.name = %tenant, reason = event.reason, "a cluster is not read: {}", event.message);
        }
        if !joined.events.is_empty() {
            let drafts: Vec<Draft> = joined.events.iter().map(|event| transition(hub, name, event)).collect();
            let is_full = {
                let mut events = lock(&self.observed.events);
                let events = events.entry(tenant.clone()).or_default();
                events.extend(drafts.iter().cloned());
                let surplus = events.len().saturating_sub(EVENTS);
                events.drain(..surplus);
                surplus > 0
            };
            hub.add(&EVENT, drafts, now);
            if is_full {
                // The next turn shows those that are kept, and no others.
                *lock(&self.touched).entry(tenant.clone()).or_default() += 1;
                self.wake.notify_one();
            }
        }
        hub.announce();
        Ok(())
    }

    /// Puts what was observed of a tenant beside what it declares. Nothing where it is not observed, and was not.
    async fn joined(
        &self,
        tenant: &TenantName,
        declared: impl FnOnce() -> Declared + Send + 'static,
    ) -> Result<Option<Joined>, StoreError> {
        let Observed { board, paces, memories, sampled_as, .. } = &self.observed;
        let picture = board.picture(tenant);
        let known = lock(memories).remove(tenant);
        if picture.is_none() && known.is_none() && !board.is_off(tenant) {
            return Ok(None);
        }
        let mut memory = known.unwrap_or_default().memory;
        let (paces, now) = (*paces, self.clock.now());
        let has_picture = picture.is_some();
        let work = move || {
            let joined = join(&declared(), picture.as_deref(), &mut memory, paces, now);
            (joined, memory)
        };
        let worked = tokio::task::spawn_blocking(work).await;
        let (joined, memory) = worked.map_err(|error| StoreError::Unavailable { source: Box::new(error) })?;
        if has_picture {
            let next_turn = joined.next_turn;
            lock(sampled_as).insert(tenant.clone(), Arc::clone(&memory.sampled_as));
            lock(memories).insert(tenant.clone(), Remembered { memory, next_turn });
        }
        Ok(Some(joined))
    }
}
