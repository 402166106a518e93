//! The fake time series keeps the laws of its port, and fails on demand.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_core::base::Clock as _;
use rezus_core::series::{
    Entry, Labels, Sample, Selection, SeriesError, TimeSeries, TimeSeriesSink as _, Window,
};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::contract::time_series::TimeSeriesFixture;
use rezus_testkit::fake::{FakeTimeSeries, Fault};

struct Fake(FakeTimeSeries, ManualClock);

impl Fake {
    fn new() -> Self {
        let clock = ManualClock::default();
        Self(FakeTimeSeries::new(&clock, Window::default()), clock)
    }
}

#[async_trait]
impl TimeSeriesFixture for Fake {
    async fn open(&self) -> Arc<dyn TimeSeries> {
        Arc::new(self.0.clone())
    }

    fn clock(&self) -> &ManualClock {
        &self.1
    }
}

rezus_testkit::time_series_contract!(Fake::new());
rezus_testkit::durable_time_series_contract!(Fake::new());

#[tokio::test]
async fn it_fails_on_demand_before_or_after_what_was_asked_for() {
    let Fake(store, clock) = Fake::new();
    let now = clock.now();
    let labels = Labels::new([("__name__", "up"), ("tenant", "prod")]).unwrap();
    let entry = |value| [Entry { labels: labels.clone(), sample: Sample { at: now, value } }];
    let all = Selection {
        tenants: None,
        matchers: Vec::new(),
        from: now,
        to: now,
        width: Duration::ZERO,
        limit: 9,
    };
    for fault in [Fault::BeforeWrite, Fault::AfterWrite] {
        store.inject(fault);
        let error = store.append(&entry(1.0)).await.unwrap_err();
        assert!(matches!(error, SeriesError::Unavailable { doing: "kept", .. }), "{error:?}");
        let kept = store.select(&all).await.unwrap().len();
        assert_eq!(kept, usize::from(fault == Fault::AfterWrite));
    }
    store.inject(Fault::Read);
    assert!(store.select(&all).await.is_err());
    assert!(store.select(&all).await.is_ok());
}
