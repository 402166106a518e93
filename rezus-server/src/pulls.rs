//! Plaintext of encrypted states: had by `state pull` with the tenant's own key, into memory only.
//!
//! A pull takes a core for more than a second whatever the state's size (the key is derived anew each time), so there
//! are few at a time, whoever is asked for goes first, and nothing waits for one but a run of that tenant, whose log must
//! not show what is secret in it: until its plaintext is there, a tenant is shown by what is remembered of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rezus_core::base::{Clock, TenantName, Timestamp};
use rezus_core::declared::VersionNumber;
use rezus_core::declared::plaintext::{PlaintextError, Plaintexts};
use rezus_core::declared::store::{Content, VersionMeta};
use rezus_core::runs::executor::{Answer, Query, RunId};
use rezus_core::runs::{Cause, RunName};
use tokio::sync::{Notify, watch};
use zeroize::Zeroizing;

use crate::error::Chain;
use crate::kube::catalogue::Catalogue;
use crate::runs::Runs;

/// How long one command of a pull may take.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How large a plaintext may be.
const LARGEST: usize = 512 << 20;

/// After how long a pull that failed is tried again: its key may have been put right.
const AGAIN: Duration = Duration::from_mins(10);

/// Where it stands with a tenant's plaintext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The server has no key.
    NoKey,
    /// It is being had, or waits for its turn.
    Waiting,
    /// It cannot be had, for this reason.
    Failed(String),
}

/// Which plaintexts are wanted, and where it stands with each. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Desk(Arc<DeskInner>);

#[derive(Debug, Default)]
struct DeskInner {
    cards: Mutex<Cards>,
    wake: Notify,
    /// Changes whenever it stands otherwise with a plaintext.
    moved: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Cards {
    wanted: VecDeque<TenantName>,
    /// Those whose plaintext is had even while the state is locked.
    insisted: HashSet<TenantName>,
    of: HashMap<TenantName, Card>,
}

#[derive(Clone, Debug)]
struct Card {
    version: VersionNumber,
    standing: Standing,
    at: Timestamp,
}

impl Desk {
    fn cards(&self) -> MutexGuard<'_, Cards> {
        self.0.cards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for the plaintext of a tenant's newest version, and tells where it stands.
    pub fn ask(&self, tenant: &TenantName, version: VersionNumber, now: Timestamp) -> Standing {
        let mut cards = self.cards();
        if let Some(card) = cards.of.get(tenant)
            && card.version == version
            && (card.standing == Standing::Waiting || now.since(card.at) < AGAIN)
        {
            return card.standing.clone();
        }
        let card = Card { version, standing: Standing::Waiting, at: now };
        cards.of.insert(tenant.clone(), card);
        if !cards.wanted.contains(tenant) {
            cards.wanted.push_back(tenant.clone());
        }
        drop(cards);
        self.0.wake.notify_one();
        Standing::Waiting
    }

    /// The same for a run that waits: it goes first, and is had even while the state is locked.
    pub fn insist(&self, tenant: &TenantName, version: VersionNumber, now: Timestamp) -> Standing {
        self.cards().insisted.insert(tenant.clone());
        let standing = self.ask(tenant, version, now);
        self.hurry(tenant);
        standing
    }

    /// Tells whenever it stands otherwise with one of them.
    pub fn moves(&self) -> watch::Receiver<()> {
        self.0.moved.subscribe()
    }

    /// Has a tenant that waits go first.
    pub fn hurry(&self, tenant: &TenantName) {
        let mut cards = self.cards();
        if let Some(place) = cards.wanted.iter().position(|name| name == tenant)
            && let Some(name) = cards.wanted.remove(place)
        {
            cards.wanted.push_front(name);
        }
    }

    /// Forgets what is known of a tenant: what its plaintext is had with has changed.
    pub fn forget(&self, tenant: &TenantName) {
        self.cards().of.remove(tenant);
        self.0.moved.send_replace(());
    }

    fn take(&self) -> Option<TenantName> {
        self.cards().wanted.pop_front()
    }

    fn is_insisted(&self, tenant: &TenantName) -> bool {
        self.cards().insisted.remove(tenant)
    }

    fn say(&self, tenant: &TenantName, version: VersionNumber, standing: Standing, at: Timestamp) {
        self.cards().of.insert(tenant.clone(), Card { version, standing, at });
        self.0.moved.send_replace(());
    }
}

/// Has plaintexts that are wanted.
#[derive(Clone, Debug)]
pub struct Pulls {
    runs: Runs,
    desk: Desk,
    plaintexts: Plaintexts,
    catalogue: Catalogue,
    clock: Arc<dyn Clock>,
}

/// Why there is no plaintext.
enum Unread {
    /// The server has no key.
    NoKey,
    /// It is not the time: the state is being written.
    NotNow,
    /// For this reason.
    Failed(String),
}

impl From<Cause> for Unread {
    fn from(cause: Cause) -> Self {
        Self::Failed(cause.message)
    }
}

impl Pulls {
    /// Makes it; nothing happens before [`serve`](Self::serve).
    pub fn new(
        runs: Runs,
        desk: Desk,
        plaintexts: Plaintexts,
        catalogue: Catalogue,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { runs, desk, plaintexts, catalogue, clock }
    }

    /// Has what is wanted, one after the other, until the task is ended.
    pub async fn serve(self) {
        loop {
            let Some(tenant) = self.desk.take() else {
                self.desk.0.wake.notified().await;
                continue;
            };
            // Another one may go on meanwhile.
            self.desk.0.wake.notify_one();
            self.pull(&tenant).await;
        }
    }

    async fn pull(&self, tenant: &TenantName) {
        let is_insisted = self.desk.is_insisted(tenant);
        let record = match self.runs.states().tenant(tenant).await {
            Ok(Some((record, _))) => record,
            Ok(None) => return self.desk.forget(tenant),
            Err(error) => {
                tracing::warn!(tenant.name = %tenant, cause = %Chain(&error), "a state cannot be read now");
                return self.desk.forget(tenant);
            }
        };
        let Some(head) = record.head.filter(|head| head.content == Content::Encrypted) else {
            return self.desk.forget(tenant);
        };
        // Snapshots of an operation under way are passed over: its last one is had once the lock is let go. But what is
        // secret in them must not stand in a run's log.
        if record.lock.is_some() && !is_insisted {
            return self.desk.forget(tenant);
        }
        let version = head.version;
        let standing = match self.plaintext(tenant, head).await {
            Ok(()) => {
                self.desk.forget(tenant);
                self.catalogue.touch(tenant);
                return self.runs.is_readable(tenant).await;
            }
            Err(Unread::NotNow) => {
                self.desk.forget(tenant);
                self.catalogue.touch(tenant);
                return;
            }
            Err(Unread::NoKey) => Standing::NoKey,
            Err(Unread::Failed(why)) => {
                tracing::warn!(tenant.name = %tenant, reason = why, "an encrypted state cannot be decrypted");
                Standing::Failed(why)
            }
        };
        self.desk.say(tenant, version, standing, self.clock.now());
        self.catalogue.touch(tenant);
    }

    async fn plaintext(&self, tenant: &TenantName, head: VersionMeta) -> Result<(), Unread> {
        let workspace = self.runs.workspace(tenant).await.map_err(|_| Unread::NoKey)?;
        if !workspace.encrypts() {
            return Err(Unread::NoKey);
        }
        let id = RunId {
            tenant: tenant.clone(),
            run: RunName::parse("pull").map_err(|error| Unread::Failed(error.to_string()))?,
        };
        let puller = self.runs.puller(&id, &workspace).await?;
        let query = |arguments: &[&str]| Query {
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
            timeout: TIMEOUT,
            limit: LARGEST,
            ..puller.query.clone()
        };
        let executor = self.runs.executor();
        let work = async {
            let init = executor.query(query(&["init", "-input=false", "-no-color", "-reconfigure"])).await;
            answered(init)?;
            let pulled = executor.query(query(&["state", "pull"])).await;
            answered(pulled)
        };
        let outcome = work.await;
        self.runs.end_puller(puller).await;
        let answer = outcome?;
        let now = self.runs.states().tenant(tenant).await.ok().flatten().and_then(|(record, _)| record.head);
        if !now.is_some_and(|now| now.is_same_write(&head)) {
            return Err(Unread::NotNow);
        }
        let (plaintexts, name) = (self.plaintexts.clone(), tenant.clone());
        let mappings = self.runs.mappings();
        let body: Zeroizing<Vec<u8>> = answer.stdout;
        let put = tokio::task::spawn_blocking(move || plaintexts.put(&name, head, body, &mappings)).await;
        match put {
            Ok(Ok(())) => Ok(()),
            Ok(Err(PlaintextError::OtherVersion)) => Err(Unread::NotNow),
            Ok(Err(error @ PlaintextError::NoState)) => Err(Unread::Failed(error.to_string())),
            Err(error) => Err(Unread::Failed(error.to_string())),
        }
    }
}

/// Reads why a command failed. Only texts that are known are repeated: others may quote the key.
fn answered(answer: Result<Answer, rezus_core::runs::executor::ExecutorError>) -> Result<Answer, Unread> {
    let answer = answer.map_err(|error| Unread::Failed(Chain(&error).to_string()))?;
    if answer.code == Some(0) {
        return Ok(answer);
    }
    let said = answer.stderr.reveal();
    let known = [
        (
            "decryption failed for all provided methods",
            "the key does not fit, or the state was tampered with",
        ),
        ("invalid state metadata", "the envelope's serial or lineage was changed since it was written"),
        ("Unable to build encryption key data", "TF_ENCRYPTION has a key that cannot be used"),
        (
            "encountered unencrypted payload",
            "the state is in clear, and TF_ENCRYPTION has no fallback to that",
        ),
    ];
    if said.contains("without an encryption configuration") {
        return Err(Unread::NoKey);
    }
    let known = known.iter().find(|(words, _)| said.contains(words)).map(|(_, why)| (*why).to_owned());
    Err(Unread::Failed(
        known.unwrap_or_else(|| format!("the tool cannot read it (exit code {})", answer.code.unwrap_or(-1))),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantName {
        name.parse().unwrap()
    }

    #[test]
    fn who_is_asked_for_goes_first_and_nobody_twice() {
        let (desk, now) = (Desk::default(), Timestamp::from_millis(0));
        for name in ["a", "b", "c", "b"] {
            assert_eq!(desk.ask(&tenant(name), VersionNumber::FIRST, now), Standing::Waiting);
        }
        desk.hurry(&tenant("c"));
        desk.hurry(&tenant("nobody"));
        let order: Vec<String> = std::iter::from_fn(|| desk.take()).map(|name| name.to_string()).collect();
        assert_eq!(order, ["c", "a", "b"]);
    }

    #[test]
    fn what_a_run_waits_for_goes_first_and_once_past_a_lock() {
        let (desk, now) = (Desk::default(), Timestamp::from_millis(0));
        desk.ask(&tenant("a"), VersionNumber::FIRST, now);
        let mut moves = desk.moves();
        assert_eq!(desk.insist(&tenant("b"), VersionNumber::FIRST, now), Standing::Waiting);
        assert_eq!(desk.take(), Some(tenant("b")));
        assert!(desk.is_insisted(&tenant("b")) && !desk.is_insisted(&tenant("b")));
        assert!(!desk.is_insisted(&tenant("a")));
        moves.mark_unchanged();
        desk.forget(&tenant("b"));
        assert!(moves.has_changed().unwrap());
    }

    #[test]
    fn what_failed_is_tried_again_for_a_new_version_or_after_a_while() {
        let (desk, now) = (Desk::default(), Timestamp::from_millis(0));
        let (name, first) = (tenant("a"), VersionNumber::FIRST);
        desk.ask(&name, first, now);
        desk.take();
        let failed = Standing::Failed("no".to_owned());
        desk.say(&name, first, failed.clone(), now);
        assert_eq!(desk.ask(&name, first, now), failed);
        assert_eq!(desk.take(), None);
        assert_eq!(desk.ask(&name, first.next(), now), Standing::Waiting);
        assert_eq!(desk.take(), Some(name.clone()));
        desk.say(&name, first, failed, now);
        let later = Timestamp::from_millis(i64::try_from(AGAIN.as_millis()).unwrap());
        assert_eq!(desk.ask(&name, first, later), Standing::Waiting);
        desk.forget(&name);
        assert_eq!(desk.ask(&name, first, now), Standing::Waiting);
    }
}
