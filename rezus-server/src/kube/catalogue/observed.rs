//! Shows what was observed beside what is declared: whenever there is news, and whenever news becomes old.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rezus_core::base::{TenantName, Timestamp};
use rezus_core::declared::store::StoreError;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::render::Rendered;
use super::{Catalogue, Inner, lock, micros, of_namespace};
use crate::collector::Board;
use crate::config::CollectorConfig;
use crate::error::Chain;
use crate::kube::item::{Draft, Item, Piece};
use crate::kube::join::{Declared, Joined, Memory, join};
use crate::kube::kinds::{EVENT, MACHINE, NODE_GROUP, TENANT};
use crate::kube::show;

/// How often it is looked at whose news becomes old.
const LOOK: Duration = Duration::from_secs(1);

/// What is put together at a time waits so many times as long as that took: however much news there is, most of the time
/// is for others.
const SHARE: u32 = 4;

/// The least and the longest such wait.
const BREATH: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// How many events of one tenant are shown before those that were let go are taken away.
const EVENTS: usize = 200;

/// What was observed, and what was shown of it.
#[derive(Debug)]
pub struct Observed {
    board: Board,
    config: CollectorConfig,
    /// What is remembered of each tenant from one time to the next, and when its news becomes old.
    memories: Mutex<HashMap<TenantName, Remembered>>,
}

#[derive(Debug, Default)]
struct Remembered {
    /// Taken out while it is worked with.
    memory: Memory,
    next_turn: Option<Timestamp>,
}

impl Observed {
    /// What is on a board.
    pub fn new(board: Board, config: CollectorConfig) -> Self {
        Self { board, config, memories: Mutex::default() }
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
            if board.is_quiet() {
                sleep_until(look).await;
            }
        }
    }
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
        let of = |pieces: &'_ [(String, Piece)]| -> Vec<(String, Piece)> { pieces.to_vec() };
        for (kind, pieces) in [(&MACHINE, of(&joined.machines)), (&NODE_GROUP, of(&joined.groups))] {
            let pieces: Vec<(&str, Piece)> =
                pieces.iter().map(|(name, piece)| (name.as_str(), piece.clone())).collect();
            hub.observe(kind, name, &pieces, now);
        }
        if let Some(piece) = joined.tenant {
            hub.observe(&TENANT, "", &[(name, piece)], now);
        }
        let items = hub.snapshot(&EVENT).items;
        let events = joined.events.iter().map(|event| {
            let of_kind = hub.snapshot(event.kind).items;
            let namespace = if event.kind.namespaced { name } else { "" };
            let place = of_kind.binary_search_by(|item| item.key().cmp(&(namespace, event.name.as_str())));
            let uid = place.ok().and_then(|at| of_kind.get(at)).and_then(|item| item.shown().uid());
            show::transition(tenant.as_str(), event, uid.as_deref().unwrap_or_default())
        });
        let events: Vec<Draft> = events.collect();
        let count = of_namespace(&items, name).count() + events.len();
        hub.add(&EVENT, events, now);
        hub.announce();
        if count > EVENTS {
            // The next turn shows those that are kept, and no others.
            *lock(&self.touched).entry(tenant.clone()).or_default() += 1;
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Puts what was observed of a tenant beside what it declares. Nothing where it is not observed, and was not.
    async fn joined(
        &self,
        tenant: &TenantName,
        declared: impl FnOnce() -> Declared + Send + 'static,
    ) -> Result<Option<Joined>, StoreError> {
        let Observed { board, config, memories } = &self.observed;
        let picture = board.picture(tenant);
        let known = lock(memories).remove(tenant);
        if picture.is_none() && known.is_none() {
            return Ok(None);
        }
        let mut memory = known.unwrap_or_default().memory;
        let (config, now) = (config.clone(), self.clock.now());
        let has_picture = picture.is_some();
        let work = move || {
            let joined = join(&declared(), picture.as_deref(), &mut memory, &config, now);
            (joined, memory)
        };
        let worked = tokio::task::spawn_blocking(work).await;
        let (joined, memory) = worked.map_err(|error| StoreError::Unavailable { source: Box::new(error) })?;
        if has_picture {
            let next_turn = joined.next_turn;
            lock(memories).insert(tenant.clone(), Remembered { memory, next_turn });
        }
        Ok(Some(joined))
    }

    /// Has objects that are about to be shown say what was observed: those that are new, or declared otherwise, too.
    pub(super) async fn put_beside(
        &self,
        tenant: &TenantName,
        rendered: &mut Rendered,
    ) -> Result<(), StoreError> {
        let _ = (tenant, rendered);
        Ok(())
    }
}
