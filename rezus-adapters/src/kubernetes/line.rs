//! kube's client over connections of our own: one for all that is watched of a server.
//!
//! Each client keeps a queue of its own, of 10 kB; with two for each of a thousand clusters that is a tenth of all memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Request;
use kube::client::{Body, Client};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::body::{Bounded, Limit};
use super::poll::LIST;
use super::trouble::{Asked, Trouble};
use super::wire::{ANSWER, Reading, Wire};

/// How long a page may take.
const PAGE_TIME: Duration = Duration::from_secs(15);

/// One event: an object is no larger than what etcd takes, 1.5 MB.
const LINE: u64 = 4 * 1024 * 1024;

/// A server tells about once a minute how far it is, even where nothing happens. Who is silent for longer may be gone.
const SILENCE: Duration = Duration::from_secs(100);

/// A watch that ended may be begun again so soon, whatever the server does.
const BETWEEN: Duration = Duration::from_secs(1);

/// Turns that all watches of a process take when they list.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    /// Pages that are read at one time.
    pages: Arc<Semaphore>,
    /// Lists of more than a page that are read at one time.
    pub(super) big: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { pages: Arc::new(Semaphore::new(8)), big: Arc::new(Semaphore::new(2)) }
    }
}

/// What watches of one server ask by. A clone is the same one.
#[derive(Clone)]
pub(super) struct Line {
    client: Client,
    turns: Turns,
    doors: Arc<Mutex<Doors>>,
}

/// What is done as the watch of a resource (`pods`) opens, and when one began last.
#[derive(Default)]
struct Doors {
    opened: HashMap<String, Arc<dyn Fn() + Send + Sync>>,
    begun: HashMap<String, Instant>,
}

impl Line {
    /// Makes one, of a new connection for each request: a watch has one of its own in any case.
    pub(super) fn new(wire: &Arc<Wire>, turns: &Turns) -> Self {
        let doors = Arc::new(Mutex::new(Doors::default()));
        let (of_all, wire, its_turns) = (Arc::clone(&doors), Arc::clone(wire), turns.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (doors, wire, turns) = (Arc::clone(&of_all), Arc::clone(&wire), its_turns.clone());
            async move {
                let resource = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
                if !is_watch(&request) {
                    return list(&wire, &turns, request, resource).await;
                }
                // kube begins a watch that ended again at once; a server that ends each at once would keep us busy.
                let begun = lock(&doors).begun.insert(resource.clone(), Instant::now());
                if let Some(begun) = begun {
                    tokio::time::sleep_until(begun + BETWEEN).await;
                }
                let limit = Limit::Lines { bytes: LINE, silence: SILENCE };
                let asked = Asked { verb: "watch", resource: resource.clone() };
                let response = send(&wire, request, &asked, limit).await?;
                let opened = lock(&doors).opened.get(&resource).cloned();
                if let Some(opened) = opened {
                    opened();
                }
                Ok::<_, Trouble>(response)
            }
        });
        Self { client: Client::new(service, "default"), turns: turns.clone(), doors }
    }

    pub(super) const fn client(&self) -> &Client {
        &self.client
    }

    pub(super) const fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Has something done each time that the watch of a resource opens.
    pub(super) fn on_watch(&self, resource: &str, opened: impl Fn() + Send + Sync + 'static) {
        lock(&self.doors).opened.insert(resource.to_owned(), Arc::new(opened));
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("turns", &self.turns).finish_non_exhaustive()
    }
}

fn lock(doors: &Mutex<Doors>) -> MutexGuard<'_, Doors> {
    doors.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

async fn list(
    wire: &Wire,
    turns: &Turns,
    request: Request<Body>,
    resource: String,
) -> Result<http::Response<Bounded>, Trouble> {
    let limit = Limit::Whole { bytes: LIST, within: PAGE_TIME };
    let mut page = send(wire, request, &Asked { verb: "list", resource }, limit).await?;
    // Only who answers takes a turn: those who are silent hold nobody up.
    page.body_mut().hold(Arc::clone(&turns.pages).acquire_owned().await.ok());
    Ok(page)
}

async fn send(
    wire: &Wire,
    request: Request<Body>,
    asked: &Asked,
    limit: Limit,
) -> Result<http::Response<Bounded>, Trouble> {
    let until = Instant::now() + 2 * ANSWER;
    let mut link = wire.connect(until).await?;
    let reading = Reading { limit, json: true, also: None };
    wire.exchange(&mut link, request, asked, reading, until).await
}
