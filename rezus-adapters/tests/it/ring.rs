//! The ring under the laws of its port, and what only memory shows: what is old is dropped, and there is room for so many series.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rezus_adapters::ring::{Ring, RingSettings, SeriesCaps};
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::series::{
    Appended, Entry, Labels, NAME, Sample, Selection, TENANT, TimeSeries, TimeSeriesSink as _,
};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::contract::time_series::TimeSeriesFixture;

struct Fixture(Ring, ManualClock);

impl Fixture {
    fn new(settings: RingSettings) -> Self {
        let clock = ManualClock::default();
        Self(Ring::new(settings, Arc::new(clock.clone())), clock)
    }
}

#[async_trait]
impl TimeSeriesFixture for Fixture {
    async fn open(&self) -> Arc<dyn TimeSeries> {
        Arc::new(self.0.clone())
    }

    fn clock(&self) -> &ManualClock {
        &self.1
    }
}

rezus_testkit::time_series_contract!(Fixture::new(RingSettings::default()));

fn entry(tenant: &str, series: u32, at: Timestamp) -> Entry {
    let labels = Labels::new([(NAME, "load"), (TENANT, tenant), ("series", &series.to_string())]).unwrap();
    Entry { labels, sample: Sample { at, value: 1.0 } }
}

fn all() -> Selection {
    Selection {
        tenants: None,
        matchers: Vec::new(),
        from: Timestamp::from_millis(i64::MIN),
        to: Timestamp::from_millis(i64::MAX),
        width: Duration::ZERO,
        limit: usize::MAX,
    }
}

#[tokio::test]
async fn what_is_older_than_the_hot_window_is_dropped_and_so_are_series_without_anything_newer() {
    let Fixture(ring, clock) = Fixture::new(RingSettings::default());
    for minute in 0..600_u32 {
        let now = clock.now();
        // The second one ends in the middle.
        let entries = [entry("prod", 0, now), entry("prod", 1, now)];
        ring.append(&entries[..if minute < 300 { 2 } else { 1 }]).await.unwrap();
        let found = ring.select(&all()).await.unwrap();
        let first = &found[0].samples;
        // Two hours of it, and at most the pack that reaches into them.
        let expected = usize::try_from(minute + 1).unwrap();
        assert!(first.len() >= expected.min(121) && first.len() <= expected.min(182), "{}", first.len());
        assert!(first.is_sorted_by(|a, b| a.at < b.at) && first.last().unwrap().at == now);
        clock.advance(Duration::from_mins(1));
    }
    assert_eq!(ring.series(), 1);
    clock.advance(Duration::from_hours(3));
    ring.tend();
    assert_eq!((ring.series(), ring.select(&all()).await.unwrap().len()), (0, 0));
    assert_eq!(ring.append(&[entry("prod", 0, clock.now())]).await.unwrap().kept, 1);
}

#[tokio::test]
async fn new_series_beyond_a_limit_are_refused_and_counted_and_known_ones_are_not() {
    let caps = SeriesCaps { per_tenant: 10, total: 15 };
    let Fixture(ring, clock) = Fixture::new(RingSettings { caps, ..RingSettings::default() });
    let now = clock.now();
    let of =
        |tenant: &'static str, count: u32, at| (0..count).map(|n| entry(tenant, n, at)).collect::<Vec<_>>();
    let counted = |kept, over_limit| Appended { kept, over_limit, ..Appended::default() };
    assert_eq!(ring.append(&of("a", 12, now)).await.unwrap(), counted(10, 2));
    assert_eq!(ring.append(&of("b", 8, now)).await.unwrap(), counted(5, 3));
    assert_eq!(ring.append(&of("c", 1, now)).await.unwrap(), counted(0, 1));
    let later = now.after(Duration::from_secs(1));
    assert_eq!(ring.append(&of("a", 12, later)).await.unwrap(), counted(10, 2));
    assert_eq!((ring.series(), ring.list(&all()).await.unwrap().len()), (15, 15));
    // What is forgotten makes room.
    clock.advance(Duration::from_hours(3));
    ring.tend();
    assert_eq!(ring.append(&of("c", 12, clock.now())).await.unwrap(), counted(10, 2));
}
