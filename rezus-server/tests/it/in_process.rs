//! The router without a listener: every caller, every time, every fault.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use rezus_adapters::sqlite::SqliteStore;
use rezus_core::access::{Access, AccountStore, Identity};
use rezus_core::declared::mapping::Mappings;
use rezus_core::runs::executor::TofuExecutor;
use rezus_core::series::{TimeSeries, Window};
use rezus_server::collector::Scrapers;
use rezus_server::compose::{self, Plane, Stores};
use rezus_server::config::{AuthConfig, Config, LimitsConfig, StateConfig};
use rezus_server::peer::Peer;
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::{FakeAccountStore, FakeRunStore, FakeStateStore, FakeTimeSeries, ScriptedExecutor};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt as _;

use crate::answer::Answer;
use crate::lock;

/// A process on this machine: it may break locks and create tenants.
pub(crate) fn local() -> Peer {
    Peer::Address(SocketAddr::from(([127, 0, 0, 1], 40_000)))
}

/// A process elsewhere, with a token for the state of the tenant `web`: it may do neither.
pub(crate) fn elsewhere() -> Peer {
    Peer::Address(SocketAddr::from(([192, 0, 2, 7], 40_000)))
}

/// Who that is.
fn guest() -> Identity {
    Identity {
        name: "backend:web:guest".to_owned(),
        groups: Vec::new(),
        access: Access::backend("web".parse().unwrap()),
        token: None,
    }
}

/// The mappings that come with rezus, compiled once.
fn mappings() -> Mappings {
    static MAPPINGS: OnceLock<Mappings> = OnceLock::new();
    MAPPINGS.get_or_init(Mappings::built_in).clone()
}

/// No samples.
pub(crate) fn series() -> Arc<dyn TimeSeries> {
    Arc::new(FakeTimeSeries::new(&ManualClock::default(), Window::default()))
}

/// Settings by which nobody has to prove who they are.
fn open() -> Config {
    Config { auth: AuthConfig { enabled: false }, ..Config::default() }
}

/// A plane over a store of its own, with a clock that stands still until it is moved.
#[derive(Debug)]
pub(crate) struct InProcess {
    pub(crate) clock: ManualClock,
    plane: Plane,
    router: Router,
    /// Where the database is; it goes away with this.
    directory: Option<TempDir>,
}

impl InProcess {
    /// A plane over a database of its own, with default settings.
    pub(crate) fn new() -> Self {
        Self::with(StateConfig::default())
    }

    /// A plane over a database of its own.
    pub(crate) fn with(limits: StateConfig) -> Self {
        Self::limited(LimitsConfig::default(), limits)
    }

    /// A plane over a database of its own, whose requests are held to these limits.
    pub(crate) fn limited(limits: LimitsConfig, state: StateConfig) -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqliteStore::open(&directory.path().join("rezus.db")).unwrap();
        let stores = Stores {
            states: Arc::new(store.clone()),
            index: Arc::new(store.clone()),
            history: Arc::new(store.clone()),
            mark: Arc::new(store.clone()),
            accounts: Arc::new(store.clone()),
            runs: Arc::new(store),
            series: series(),
        };
        Self::over(&Config { state, limits, ..open() }, stores, Some(directory))
    }

    /// A plane over a database of its own, with these settings and nobody to prove who they are.
    pub(crate) fn configured(config: Config) -> Self {
        let directory = TempDir::new().unwrap();
        let store = SqliteStore::open(&directory.path().join("rezus.db")).unwrap();
        Self::over(&Config { auth: open().auth, ..config }, Stores::of(store, series()), Some(directory))
    }

    /// A plane over a store that fails when it is told to.
    pub(crate) fn over_fake(store: &FakeStateStore) -> Self {
        let stores = Stores {
            states: Arc::new(store.handle()),
            index: Arc::new(store.handle()),
            history: Arc::new(store.handle()),
            mark: Arc::new(store.handle()),
            accounts: Arc::new(FakeAccountStore::new()),
            runs: Arc::new(FakeRunStore::new()),
            series: series(),
        };
        Self::over(&open(), stores, None)
    }

    /// A plane over stores in memory, where callers must prove who they are.
    pub(crate) fn closed(accounts: Arc<dyn AccountStore>) -> Self {
        let store = FakeStateStore::new();
        let stores = Stores {
            states: Arc::new(store.handle()),
            index: Arc::new(store.handle()),
            history: Arc::new(store.handle()),
            mark: Arc::new(store.handle()),
            accounts,
            runs: Arc::new(FakeRunStore::new()),
            series: series(),
        };
        Self::over(&Config::default(), stores, None)
    }

    fn over(config: &Config, stores: Stores, directory: Option<TempDir>) -> Self {
        Self::executing(config, stores, Arc::new(ScriptedExecutor::new()), directory)
    }

    /// A plane over stores, whose runs are executed by this.
    pub(crate) fn executing(
        config: &Config,
        stores: Stores,
        executor: Arc<dyn TofuExecutor>,
        directory: Option<TempDir>,
    ) -> Self {
        Self::reading(config, stores, executor, Vec::new(), ManualClock::default(), directory)
    }

    /// A plane over stores that reads clusters by these scrapers, once its collector is run.
    pub(crate) fn reading(
        config: &Config,
        stores: Stores,
        executor: Arc<dyn TofuExecutor>,
        scrapers: Vec<Scrapers>,
        clock: ManualClock,
        directory: Option<TempDir>,
    ) -> Self {
        let plane = compose::plane(config, stores, executor, scrapers, Arc::new(clock.clone()), mappings());
        Self { router: compose::router(&plane), clock, plane, directory }
    }

    /// What the router works with.
    pub(crate) fn plane(&self) -> &Plane {
        &self.plane
    }

    /// Where its database is.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.as_ref().unwrap().path()
    }

    /// Ends it, and gives the directory of its database once nobody has that open any more.
    pub(crate) async fn into_directory(mut self) -> TempDir {
        let directory = self.directory.take().unwrap();
        drop(self);
        tokio::task::yield_now().await;
        directory
    }

    /// Its database, to be damaged.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.directory.as_ref().unwrap().path().join("rezus.db")).unwrap()
    }

    /// Sends a request as `peer`, with these headers and no others.
    pub(crate) async fn send_as(
        &self,
        peer: Peer,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        self.send_body(peer, method, target, headers, Body::from(body.into())).await
    }

    /// Sends a request whose body comes in pieces, or breaks off.
    pub(crate) async fn send_body(
        &self,
        peer: Peer,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: Body,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(target).extension(ConnectInfo(peer.clone()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if peer == elsewhere() && !self.plane.auth.is_enabled() {
            request = request.extension(guest());
        }
        let request = request.body(body).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        // What goes on until somebody ends it is not waited for.
        let goes_on =
            parts.headers.get("content-type").is_some_and(|it| it.as_bytes() == b"application/x-ndjson");
        let body = if goes_on { Bytes::new() } else { axum::body::to_bytes(body, usize::MAX).await.unwrap() };
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Asks for something as clients on this machine do, and leaves the answer to be read.
    pub(crate) async fn open(&self, target: &str, headers: &[(&str, &str)]) -> axum::response::Response {
        let mut request = Request::builder().uri(target).extension(ConnectInfo(local()));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
    }

    /// Watches something.
    pub(crate) async fn watch(&self, target: &str, accept: &str) -> Events {
        self.watch_with(target, ("accept", accept)).await
    }

    /// Watches something with a header.
    pub(crate) async fn watch_with(&self, target: &str, (name, value): (&str, &str)) -> Events {
        let request = Request::builder().uri(target).header(name, value).extension(ConnectInfo(local()));
        let answer = self.router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200, "{target}");
        assert_eq!(answer.headers()["content-type"], "application/json");
        Events { body: answer.into_body(), read: Vec::new() }
    }

    /// The same data under another server, whose clock stands where the first one's began.
    pub(crate) fn restarted(mut self) -> Self {
        let directory = self.directory.take();
        drop(self);
        let store = SqliteStore::open(&directory.as_ref().unwrap().path().join("rezus.db")).unwrap();
        Self::over(&open(), Stores::of(store, series()), directory)
    }

    /// Sends a request as clients on this machine do.
    pub(crate) async fn send(&self, method: &str, target: &str, body: impl Into<Bytes>) -> Answer {
        self.send_as(local(), method, target, &[("content-type", "application/json")], body).await
    }

    /// Gets something.
    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.send("GET", target, Bytes::new()).await
    }

    /// Takes a tenant's lock.
    pub(crate) async fn lock(&self, tenant: &str, id: &str, operation: &str) -> Answer {
        self.send("LOCK", &format!("/state/{tenant}"), lock::info(id, operation)).await
    }

    /// Releases it.
    pub(crate) async fn unlock(&self, tenant: &str, id: &str) -> Answer {
        self.send("UNLOCK", &format!("/state/{tenant}"), lock::info(id, lock::APPLY)).await
    }

    /// Writes a state without a lock.
    pub(crate) async fn post(&self, tenant: &str, body: impl Into<Bytes>) -> Answer {
        self.send("POST", &format!("/state/{tenant}"), body).await
    }

    /// Writes a state under a lock.
    pub(crate) async fn post_under(&self, tenant: &str, id: &str, body: impl Into<Bytes>) -> Answer {
        self.send("POST", &format!("/state/{tenant}?ID={id}"), body).await
    }

    /// Locks, writes, unlocks, as `state push` does.
    pub(crate) async fn push(&self, tenant: &str, id: &str, body: impl Into<Bytes>) -> Answer {
        self.lock(tenant, id, lock::PUSH).await.expect(200, "the lock of a push");
        let written = self.post_under(tenant, id, body).await;
        self.unlock(tenant, id).await.expect(200, "the end of a push");
        written
    }

    /// Returns the bytes of the current state, or nothing where there is none.
    pub(crate) async fn current(&self, tenant: &str) -> Option<Bytes> {
        let answer = self.get(&format!("/state/{tenant}")).await;
        if answer.code == 404 {
            return None;
        }
        Some(answer.expect(200, "the current state").body)
    }

    /// Returns all versions of a tenant, oldest first.
    pub(crate) async fn versions(&self, tenant: &str) -> Vec<Value> {
        let path = format!("/rezus/v1/tenants/{tenant}/versions?intermediate=true");
        self.get(&path).await.expect(200, "versions").items()
    }

    /// Returns what the server tells of a tenant.
    pub(crate) async fn tenant(&self, tenant: &str) -> Value {
        self.get(&format!("/rezus/v1/tenants/{tenant}")).await.expect(200, "tenant").json()
    }

    /// Returns the refusals that are kept of a tenant, newest first.
    pub(crate) async fn refusals(&self, tenant: &str) -> Vec<Value> {
        self.get(&format!("/rezus/v1/tenants/{tenant}/refusals")).await.expect(200, "refusals").items()
    }
}

/// The events of a watch.
#[derive(Debug)]
pub(crate) struct Events {
    body: Body,
    read: Vec<u8>,
}

impl Events {
    /// The next one; fails at the end.
    pub(crate) async fn next(&mut self) -> Value {
        self.next_or_end().await.expect("the watch goes on")
    }

    /// The next one: one JSON text a line. Fails if none comes in time.
    pub(crate) async fn next_or_end(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = tokio::time::timeout(std::time::Duration::from_secs(20), self.body.frame()).await;
            let Some(frame) = frame.expect("an event or the end comes in time") else {
                assert!(self.read.is_empty(), "the last line has no end");
                return None;
            };
            self.read.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
    }
}
