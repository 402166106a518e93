//! A plane with series that tests put there.

use std::sync::Arc;
use std::time::Duration;

use rezus_core::base::{Clock as _, TenantName, Timestamp};
use rezus_core::series::{Entry, Labels, Sample, TimeSeries, TimeSeriesSink as _, Window};
use rezus_server::compose::Stores;
use rezus_server::config::{AuthConfig, Config, QueryConfig};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::{FakeAccountStore, FakeRunStore, FakeStateStore, FakeTimeSeries, ScriptedExecutor};
use serde_json::Value;

use crate::access::people;
use crate::answer::Answer;
use crate::in_process::{InProcess, elsewhere, local};

/// A plane, and its series.
pub(super) struct Lab {
    pub(super) plane: InProcess,
    pub(super) series: FakeTimeSeries,
}

/// Whether callers must prove who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    Closed,
}

impl Lab {
    /// A plane whose clock shows this.
    pub(super) fn at(now: Timestamp) -> Self {
        let accounts = FakeAccountStore::new();
        Self::with(now, Door::Open, accounts, QueryConfig::default())
    }

    /// A plane that knows everybody.
    pub(super) async fn closed() -> Self {
        let accounts = people::accounts().await;
        Self::with(ManualClock::default().now(), Door::Closed, accounts, QueryConfig::default())
    }

    pub(super) fn with(now: Timestamp, door: Door, accounts: FakeAccountStore, query: QueryConfig) -> Self {
        let clock = ManualClock::at(now);
        let series = FakeTimeSeries::new(
            &clock,
            Window { late: Duration::from_hours(24 * 365), early: Duration::from_hours(1) },
        );
        let plane = plane(clock, door, accounts, query, Arc::new(series.clone()));
        Self { plane, series }
    }

    /// Puts samples there.
    pub(super) async fn put(&self, entries: &[Entry]) {
        let appended = self.series.append(entries).await.unwrap();
        assert_eq!(appended.kept, u64::try_from(entries.len()).unwrap(), "{appended:?}");
    }

    /// Asks for something below `/prometheus/api/v1/`.
    pub(super) async fn get(&self, target: &str) -> Answer {
        self.plane.get(&format!("/prometheus/api/v1/{target}")).await
    }

    /// Asks for something that is answered well, and returns the data.
    pub(super) async fn data(&self, target: &str) -> Value {
        let answer = self.get(target).await.expect(200, target).json();
        assert_eq!(answer["status"], "success", "{target}");
        answer["data"].clone()
    }

    /// Posts a form.
    pub(super) async fn post(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let target = format!("/prometheus/api/v1/{path}");
        self.plane.send_as(local(), "POST", &target, &headers, encoded(form)).await
    }

    /// Asks as somebody, from another machine.
    pub(super) async fn ask(&self, who: &str, target: &str) -> Answer {
        let bearer = format!("Bearer {}", people::secret(who).reveal());
        let target = format!("/prometheus/api/v1/{target}");
        self.plane.send_as(elsewhere(), "GET", &target, &[("authorization", &bearer)], "").await
    }
}

/// A plane over these series.
pub(super) fn plane(
    clock: ManualClock,
    door: Door,
    accounts: FakeAccountStore,
    query: QueryConfig,
    series: Arc<dyn TimeSeries>,
) -> InProcess {
    let store = FakeStateStore::new();
    let stores = Stores {
        states: Arc::new(store.handle()),
        index: Arc::new(store.handle()),
        history: Arc::new(store.handle()),
        mark: Arc::new(store.handle()),
        accounts: Arc::new(accounts),
        runs: Arc::new(FakeRunStore::new()),
        series,
    };
    let config = Config { auth: AuthConfig { enabled: door == Door::Closed }, query, ..Config::default() };
    InProcess::reading(&config, stores, Arc::new(ScriptedExecutor::new()), Vec::new(), clock, None)
}

/// Parameters as a form or a query has them.
pub(super) fn encoded(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Labels of a tenant's series.
pub(super) fn labels(tenant: &str, metric: &str, others: &[(&str, &str)]) -> Labels {
    let tenant: TenantName = tenant.parse().unwrap();
    Labels::of_series(&tenant, metric, others.iter().copied()).unwrap()
}

/// A sample of a series.
pub(super) fn entry(labels: &Labels, at: Timestamp, value: f64) -> Entry {
    Entry { labels: labels.clone(), sample: Sample { at, value } }
}
