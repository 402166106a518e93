//! A watch: a list that is kept up to date by what changes, for as long as its owner is there.

use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use rezus_core::observed::{Failure, Phase};
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::line::{Line, Turns};
use super::task::Task;
use super::trouble::{self, Asked, Trouble};

/// Objects in one page of a list: 100 pods are 1.5 MB.
const PAGE: u32 = 100;

/// How long after a failure it is tried again, at first and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long a server can ask for fewer requests.
const MOST_ASKED_FOR: Duration = Duration::from_mins(2);

/// How long what a watch brought counts as present while the watch is interrupted.
const GRACE: Duration = Duration::from_secs(20);

/// What is told of objects that come, change and go.
pub(super) trait Keep: Debug + Send + 'static {
    /// The objects.
    type Object: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static;

    /// All of them are listed anew; until the end of that, what was there before is still what is told.
    fn begin(&mut self);

    /// One that was listed.
    fn listed(&mut self, object: Self::Object);

    /// All were listed. Returns whether that is news.
    fn end(&mut self) -> bool;

    /// One that came or changed. Returns whether that is news.
    fn put(&mut self, object: Self::Object) -> bool;

    /// One that is gone. Returns whether that is news.
    fn remove(&mut self, object: &Self::Object) -> bool;
}

#[derive(Debug)]
enum Standing {
    /// Not all was listed yet, and why.
    Never(Option<Failure>),
    /// What changes comes in.
    Live,
    /// It does not, since when, and why.
    Broken(Instant, Failure),
}

#[derive(Debug)]
struct State<K> {
    keep: K,
    standing: Standing,
}

#[derive(Debug)]
struct Shared<K> {
    state: Mutex<State<K>>,
    /// Counts what happened to `standing`.
    turned: watch::Sender<u64>,
    /// News are counted here.
    news: watch::Sender<u64>,
    retry: Notify,
}

impl<K> Shared<K> {
    fn lock(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) {
        let mut state = self.lock();
        if matches!(state.standing, Standing::Broken(..)) {
            state.standing = Standing::Live;
        }
        drop(state);
        self.turned.send_modify(|count| *count += 1);
    }

    fn failed(&self, failure: Failure) {
        let mut state = self.lock();
        state.standing = match &state.standing {
            Standing::Never(_) => Standing::Never(Some(failure)),
            Standing::Live => Standing::Broken(Instant::now(), failure),
            Standing::Broken(since, _) => Standing::Broken(*since, failure),
        };
        drop(state);
        self.turned.send_modify(|count| *count += 1);
    }
}

/// A watch, until it is dropped.
#[derive(Debug)]
pub(super) struct Watch<K> {
    shared: Arc<Shared<K>>,
    _task: Task,
}

impl<K: Keep> Watch<K> {
    /// Begins to list, and then to watch.
    pub(super) fn begin(keep: K, line: &Line, news: &watch::Sender<u64>) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State { keep, standing: Standing::Never(None) }),
            turned: watch::Sender::new(0),
            news: news.clone(),
            retry: Notify::new(),
        });
        let task = Task::spawn(follow(Arc::clone(&shared), line.clone()));
        Self { shared, _task: task }
    }

    /// Gives what is told, once all was listed; waits for that until a point in time.
    pub(super) async fn read<T>(&self, until: Instant, look: impl FnOnce(&mut K) -> T) -> Result<T, Failure> {
        let mut turned = self.shared.turned.subscribe();
        let begun = Instant::now();
        // What failed before is tried again now: something of this server was just read.
        let mut kicked = false;
        loop {
            turned.mark_unchanged();
            let failure = {
                let mut state = self.shared.lock();
                match &state.standing {
                    Standing::Live => return Ok(look(&mut state.keep)),
                    Standing::Never(None) => None,
                    Standing::Never(Some(failure)) | Standing::Broken(_, failure) => Some(failure.clone()),
                }
            };
            match failure {
                Some(Failure::RateLimited { retry_after }) => {
                    return Err(Failure::RateLimited { retry_after });
                }
                Some(_) if !kicked => {
                    kicked = true;
                    self.shared.retry.notify_one();
                }
                Some(failure) => return self.in_grace(look).ok_or(failure),
                None => {}
            }
            if timeout_at(until, turned.changed()).await.is_err() {
                let after = begun.elapsed();
                return self.in_grace(look).ok_or(failure_or_timeout(&self.shared, after));
            }
        }
    }

    /// What was told until a moment ago still holds, unless it is refused by now.
    fn in_grace<T>(&self, look: impl FnOnce(&mut K) -> T) -> Option<T> {
        let mut state = self.shared.lock();
        let holds = match &state.standing {
            Standing::Live => true,
            Standing::Broken(since, failure) => since.elapsed() < GRACE && is_interruption(failure),
            Standing::Never(_) => false,
        };
        holds.then(|| look(&mut state.keep))
    }
}

/// Tells whether a failure says nothing of what is watched, but that it does not come through.
const fn is_interruption(failure: &Failure) -> bool {
    matches!(
        failure,
        Failure::Unreachable { .. }
            | Failure::Timeout { .. }
            | Failure::RateLimited { .. }
            | Failure::StaleCache
    )
}

fn failure_or_timeout<K>(shared: &Shared<K>, after: Duration) -> Failure {
    match &shared.lock().standing {
        Standing::Never(Some(failure)) | Standing::Broken(_, failure) => failure.clone(),
        Standing::Never(None) | Standing::Live => Failure::Timeout { after },
    }
}

/// Lists and watches, again and again.
async fn follow<K: Keep>(shared: Arc<Shared<K>>, line: Line) {
    let resource = K::Object::plural(&()).into_owned();
    let mut back_off = BackOff::default();
    let opened = Arc::clone(&shared);
    line.on_watch(&resource, move || opened.opened());
    // Since when nothing came but failures: that a watch opens again proves nothing if it always breaks.
    let mut unproved: Option<Instant> = None;
    loop {
        let api: Api<K::Object> = Api::all(line.client().clone());
        let config = watcher::Config { page_size: Some(PAGE), ..watcher::Config::default() };
        let mut events = Box::pin(watcher::watcher(api, config));
        let mut listing = Listing::default();
        // Ends where all is to be listed anew.
        let mut gone = false;
        while !gone {
            let trouble = match events.try_next().await {
                Ok(Some(event)) => {
                    if matches!(event, Event::InitDone | Event::Apply(_) | Event::Delete(_)) {
                        unproved = None;
                    }
                    take(&shared, event, &mut listing, line.turns()).await;
                    continue;
                }
                Ok(None) => Trouble::Gone,
                Err(error) => of_watcher(&error, &resource),
            };
            listing = Listing::default();
            gone = unproved.get_or_insert_with(Instant::now).elapsed() > GRACE;
            let failure = match trouble {
                Trouble::Failed(failure) => {
                    // The same event would come again.
                    gone |= matches!(failure, Failure::Malformed { .. } | Failure::TooLarge { .. });
                    failure
                }
                Trouble::Gone => {
                    gone = true;
                    // A list that is too old to go on from at once is what an old copy gives.
                    Failure::StaleCache
                }
            };
            let asked_for = match &failure {
                Failure::RateLimited { retry_after: Some(after) } => (*after).min(MOST_ASKED_FOR),
                _ => Duration::ZERO,
            };
            shared.failed(failure);
            tokio::select! {
                () = sleep(back_off.next().max(asked_for)) => {}
                () = shared.retry.notified(), if asked_for.is_zero() => {}
            }
        }
    }
}

/// How long is waited after a failure: longer each time, until there is none for a while.
#[derive(Default)]
struct BackOff {
    delay: Duration,
    last: Option<Instant>,
}

impl BackOff {
    fn next(&mut self) -> Duration {
        let calm = self.last.is_none_or(|last| last.elapsed() > 2 * BACK_OFF.1);
        self.delay = if calm { BACK_OFF.0 } else { (self.delay * 2).min(BACK_OFF.1) };
        self.last = Some(Instant::now());
        self.delay
    }
}

/// How far a list came.
#[derive(Default)]
struct Listing {
    objects: u32,
    turn: Option<OwnedSemaphorePermit>,
}

async fn take<K: Keep>(shared: &Shared<K>, event: Event<K::Object>, listing: &mut Listing, turns: &Turns) {
    if let Event::InitApply(_) = event {
        listing.objects += 1;
        if listing.objects == PAGE {
            // There is more than a page: one of few at a time.
            listing.turn = Arc::clone(&turns.big).acquire_owned().await.ok();
        }
    } else {
        *listing = Listing::default();
    }
    let mut state = shared.lock();
    let news = match event {
        Event::Init => {
            state.keep.begin();
            false
        }
        Event::InitApply(object) => {
            state.keep.listed(object);
            false
        }
        Event::InitDone => {
            state.standing = Standing::Live;
            state.keep.end()
        }
        Event::Apply(object) => state.keep.put(object),
        Event::Delete(object) => state.keep.remove(&object),
    };
    let live = matches!(state.standing, Standing::Live);
    // Under the lock: who reads what is kept knows how many news are in it.
    if news {
        shared.news.send_modify(|count| *count += 1);
    }
    drop(state);
    if live {
        shared.turned.send_modify(|count| *count += 1);
    }
}

fn of_watcher(error: &watcher::Error, resource: &str) -> Trouble {
    let asked = Asked { verb: "watch", resource: resource.to_owned() };
    match error {
        watcher::Error::WatchError(status) => trouble::of_code(status.code, &asked),
        watcher::Error::NoResourceVersion => {
            Failure::Malformed { start: "a list without a version".to_owned() }.into()
        }
        watcher::Error::InitialListFailed(cause)
        | watcher::Error::WatchStartFailed(cause)
        | watcher::Error::WatchFailed(cause) => match cause {
            kube::Error::Api(status) => trouble::of_code(status.code, &asked),
            other => trouble::of_error(other, Phase::Http),
        },
    }
}
