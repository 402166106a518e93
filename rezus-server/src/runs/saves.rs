//! What of an apply was done when its program began to save: the order that tells whether a version has the changes that
//! nothing in it shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rezus_core::base::TenantName;
use rezus_core::runs::executor::RunId;
use rezus_core::runs::{RunFacts, Tally};

use super::Runs;

/// In which order an apply's operations and saves were seen by this server. What an earlier one saw is not known.
///
/// An operation is seen a little after it was done, a save as soon as its request comes in: a save that begins after an
/// operation was seen holds what that did.
#[derive(Debug)]
pub(super) struct Saves {
    /// The name under which the program works on the state.
    principal: String,
    /// How many operations were done.
    done: AtomicU64,
    /// How many of them were done when the last save began that was accepted.
    saved: AtomicU64,
    /// Whether the program has asked to let go of its lock: it does so after its last save.
    let_go: AtomicBool,
}

impl Saves {
    pub(super) fn of(principal: String) -> Arc<Self> {
        let none = || AtomicU64::new(0);
        Arc::new(Self { principal, done: none(), saved: none(), let_go: AtomicBool::new(false) })
    }

    /// Says that so many operations were done.
    pub(super) fn done(&self, operations: u64) {
        self.done.store(operations, Ordering::SeqCst);
    }
}

/// What the tools say after a second interrupt: they let go then without waiting for what they do.
const CANCELED: &str = "operation canceled";

/// A save that has begun while an apply is under way: by whom, is known later.
#[derive(Debug)]
pub struct Save {
    saves: Arc<Saves>,
    done: u64,
}

impl Save {
    /// Says that it was accepted, from this one.
    pub fn accepted(self, from: &str) {
        if from == self.saves.principal {
            self.saves.saved.fetch_max(self.done, Ordering::SeqCst);
        }
    }
}

impl Runs {
    /// Says that somebody begins to save a tenant's state: before any of its bytes are read.
    pub async fn save_begins(&self, tenant: &TenantName) -> Option<Save> {
        let saves = self.saves_of_active(tenant).await?;
        let done = saves.done.load(Ordering::SeqCst);
        Some(Save { saves, done })
    }

    /// Says that somebody asks to let go of a tenant's lock.
    pub async fn lets_go(&self, tenant: &TenantName, who: &str) {
        if let Some(saves) = self.saves_of_active(tenant).await.filter(|saves| saves.principal == who) {
            saves.let_go.store(true, Ordering::SeqCst);
        }
    }

    /// Tells whether an apply's program came to its last save, as far as this server has seen.
    pub(super) async fn has_all(&self, id: &RunId, tally: &Tally) -> bool {
        let saves = self.saves(id).await;
        saves.is_some_and(|saves| saves.let_go.load(Ordering::SeqCst)) && !tally.says(CANCELED)
    }

    /// Tells whether the newest version that an apply wrote has what it did and no version shows, if it did any such thing,
    /// where its program did not come to its last save: by the order of things alone, as this server has seen it.
    pub(super) async fn has_unseen(&self, id: &RunId, facts: &RunFacts, tally: &Tally) -> bool {
        // The tools say nothing when they take a resource into the state, or out of it.
        let is_silent = facts.counts.is_some_and(|counts| counts.import > 0 || counts.forget > 0);
        if tally.unseen_at == 0 && !is_silent {
            return true;
        }
        let saves = self.saves(id).await;
        !is_silent && saves.is_some_and(|saves| saves.saved.load(Ordering::SeqCst) >= tally.unseen_at)
    }

    async fn saves_of_active(&self, tenant: &TenantName) -> Option<Arc<Saves>> {
        let board = self.0.board.lock().await;
        let active = board.queue.active(tenant)?;
        board.runs.get(active)?.saves.clone()
    }

    /// The order of an apply's operations and saves, once it has begun.
    pub(super) async fn saves(&self, id: &RunId) -> Option<Arc<Saves>> {
        self.0.board.lock().await.runs.get(id)?.saves.clone()
    }

    /// Begins to watch the order of an apply's operations and saves.
    pub(super) async fn watch_saves(&self, id: &RunId, principal: Option<&String>) {
        if let Some(entry) = self.0.board.lock().await.runs.get_mut(id) {
            entry.saves = principal.cloned().map(Saves::of);
        }
    }
}
