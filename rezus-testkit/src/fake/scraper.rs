//! A scraper that tells what tests say.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::{Clock, TenantName, Timestamp};
use rezus_core::observed::facts::Facts;
use rezus_core::observed::{ClusterScraper, Failure, Reading, Session, Source, Target};
use tokio::sync::watch;

/// What each turn gives from now on.
#[derive(Clone, Debug)]
pub enum Turn {
    /// This; machines and lists are dated when they are told.
    Tells(Box<Facts>),
    /// This, but for a part of this name, for this cause.
    Lacks(Box<Facts>, &'static str, Failure),
    /// Nothing, for this cause.
    Fails(Failure),
    /// Nothing, after all of the time that the turn had.
    Hangs,
    /// Nothing, and it never ends: a scraper that breaks its contract.
    Sticks,
    /// It panics.
    Panics,
}

/// A scraper of one source that asks nobody. Clones share what they tell.
#[derive(Clone, Debug)]
pub struct ScriptedScraper {
    source: Source,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    scripts: Mutex<HashMap<TenantName, Turn>>,
    turns: Mutex<HashMap<TenantName, usize>>,
    news: watch::Sender<()>,
}

#[derive(Debug)]
struct Scripted {
    scraper: ScriptedScraper,
    target: Target,
    news: watch::Receiver<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn dated(mut facts: Facts, now: Timestamp) -> Facts {
    if let Facts::Talos(talos) = &mut facts {
        let answers = talos.machines.iter_mut().filter_map(|machine| machine.answered_at.as_mut());
        let lists = talos.etcd.iter_mut().filter_map(|etcd| etcd.listed_at.as_mut());
        answers.chain(lists).for_each(|at| *at = now);
    }
    facts
}

impl ScriptedScraper {
    /// One that nobody answers yet.
    pub fn new(source: Source, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock, shared: Arc::default() }
    }

    /// Says what each turn of a tenant gives from now on, and tells who waits for news.
    pub fn set(&self, tenant: &TenantName, turn: Turn) {
        self.set_quietly(tenant, turn);
        self.shared.news.send_replace(());
    }

    /// Says what each turn of a tenant gives from now on, and tells nobody.
    pub fn set_quietly(&self, tenant: &TenantName, turn: Turn) {
        lock(&self.shared.scripts).insert(tenant.clone(), turn);
    }

    /// How many turns of a tenant began.
    pub fn turns(&self, tenant: &TenantName) -> usize {
        lock(&self.shared.turns).get(tenant).copied().unwrap_or(0)
    }

    fn script(&self, tenant: &TenantName) -> Turn {
        let unset = || {
            Turn::Fails(Failure::Unreachable {
                phase: rezus_core::observed::Phase::Tcp,
                detail: "nobody listens".to_owned(),
            })
        };
        lock(&self.shared.scripts).get(tenant).cloned().unwrap_or_else(unset)
    }
}

#[async_trait]
impl ClusterScraper for ScriptedScraper {
    fn source(&self) -> Source {
        self.source
    }

    fn open(&self, target: Target) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(Scripted { scraper: self.clone(), target, news: self.shared.news.subscribe() }))
    }
}

#[async_trait]
impl Session for Scripted {
    #[expect(clippy::panic, reason = "a script may ask for it")]
    async fn read(&mut self, budget: Duration) -> Reading {
        let ScriptedScraper { clock, shared, .. } = &self.scraper;
        let started = clock.now();
        *lock(&shared.turns).entry(self.target.tenant.clone()).or_default() += 1;
        let nothing = |failure| (None, vec![("all".to_owned(), failure)]);
        let (facts, failures) = match self.scraper.script(&self.target.tenant) {
            Turn::Tells(facts) => (Some(dated(*facts, clock.now())), Vec::new()),
            Turn::Lacks(facts, part, failure) => {
                (Some(dated(*facts, clock.now())), vec![(part.to_owned(), failure)])
            }
            Turn::Fails(failure) => nothing(failure),
            Turn::Hangs => {
                tokio::time::sleep(budget).await;
                nothing(Failure::Timeout { after: budget })
            }
            Turn::Sticks => std::future::pending().await,
            Turn::Panics => panic!("as the script says"),
        };
        Reading { started, finished: clock.now(), facts, failures }
    }

    async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
