//! Laws of the way from readings to the store.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use proptest::prelude::*;
use rezus_core::observed::facts::{Facts, Holds, Kubernetes, Node, NodeCondition};
use rezus_core::series::{
    Appended, Forwarded, Forwarder, Labels, NAME, Sample, Selection, SeriesError, TimeSeriesSink, Window,
};
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::{FakeTimeSeries, Fault};

use super::*;
use crate::serve::Draining;

const EVERY: Duration = Duration::from_secs(30);

fn first() -> Incarnation {
    Incarnations::default().present().clone()
}

fn tenant(name: &str) -> TenantName {
    TenantName::parse(name).unwrap()
}

fn reading(at: Timestamp, nodes: usize) -> Reading {
    let ready = NodeCondition {
        kind: "Ready".to_owned(),
        status: Holds::True,
        reason: String::new(),
        message: String::new(),
        since: None,
    };
    let node =
        |number| Node { name: format!("n{number}"), conditions: vec![ready.clone()], ..Node::default() };
    let nodes = Some((0..nodes).map(node).collect());
    let facts = Facts::Kubernetes(Kubernetes { nodes, ..Kubernetes::default() });
    Reading { started: at, finished: at, facts: Some(facts), failures: Vec::new() }
}

fn store(clock: &ManualClock) -> FakeTimeSeries {
    FakeTimeSeries::new(clock, Window::default())
}

/// All that is kept of a tenant: by metric and node, the values in the order of time.
async fn kept(store: &FakeTimeSeries, name: &str) -> Vec<(String, String, Vec<f64>)> {
    let selection = Selection {
        tenants: Some([tenant(name)].into()),
        matchers: Vec::new(),
        from: Timestamp::from_millis(0),
        to: Timestamp::from_millis(i64::MAX),
        width: Duration::ZERO,
        limit: usize::MAX,
    };
    let found = store.select(&selection).await.unwrap();
    let shown = |series: rezus_core::series::Series| {
        let values = series.samples.iter().map(|sample| sample.value).collect();
        (series.labels.get(NAME).to_owned(), series.labels.get("node").to_owned(), values)
    };
    found.into_iter().map(shown).collect()
}

#[tokio::test(start_paused = true)]
async fn what_is_read_is_kept_within_seconds_and_what_waits_at_the_end_too() {
    let clock = ManualClock::default();
    let store = store(&clock);
    let samples = Samples::new(Arc::new(store.clone()), true);
    let draining = Draining::new();
    let writing = tokio::spawn(samples.clone().write(None, draining.clone()));
    let now = rezus_core::base::Clock::now(&clock);
    samples.take(&tenant("a"), Source::Kubernetes, &reading(now, 2), &first(), Some(now.after(EVERY)), EVERY);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let found = kept(&store, "a").await;
    assert!(found.contains(&("rezus_node_ready".to_owned(), "n1".to_owned(), vec![1.0])), "{found:?}");
    assert!(found.contains(&("rezus_credential_remaining_seconds".to_owned(), String::new(), vec![30.0])));
    assert_eq!(samples.told().live, found.len());

    samples.take(&tenant("b"), Source::Kubernetes, &reading(now, 1), &first(), None, EVERY);
    draining.begin();
    writing.await.unwrap();
    assert!(!kept(&store, "b").await.is_empty());
    let told = samples.told();
    assert_eq!((told.waiting, told.lost), (0, 0));
    assert_eq!(told.appended.kept, u64::try_from(told.live).unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_is_observed_no_more_ends_and_others_go_on() {
    let clock = ManualClock::default();
    let store = store(&clock);
    let samples = Samples::new(Arc::new(store.clone()), true);
    let draining = Draining::new();
    let writing = tokio::spawn(samples.clone().write(None, draining.clone()));
    let now = rezus_core::base::Clock::now(&clock);
    for name in ["a", "b"] {
        samples.take(&tenant(name), Source::Kubernetes, &reading(now, 1), &first(), None, EVERY);
    }
    clock.advance(Duration::from_secs(1));
    samples.keep_only(&[tenant("b")].into(), rezus_core::base::Clock::now(&clock));
    draining.begin();
    writing.await.unwrap();
    let is_over = |found: &[(String, String, Vec<f64>)]| {
        found.iter().all(|(_, _, values)| {
            values.last().is_some_and(|value| value.to_bits() == rezus_core::series::STALE.to_bits())
        })
    };
    assert!(is_over(&kept(&store, "a").await));
    assert!(!is_over(&kept(&store, "b").await));
}

#[tokio::test(start_paused = true)]
async fn while_the_store_fails_samples_wait_and_readings_do_not() {
    let clock = ManualClock::default();
    let store = store(&clock);
    let samples = Samples::with_room(Arc::new(store.clone()), true, 40);
    for _ in 0..3 {
        store.inject(Fault::BeforeWrite);
    }
    let draining = Draining::new();
    let writing = tokio::spawn(samples.clone().write(None, draining.clone()));
    for turn in 0..5_u32 {
        let now = rezus_core::base::Clock::now(&clock);
        let began = tokio::time::Instant::now();
        samples.take(&tenant("a"), Source::Kubernetes, &reading(now, 4), &first(), None, EVERY);
        assert_eq!(began.elapsed(), Duration::ZERO, "turn {turn}");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        clock.advance(EVERY);
    }
    tokio::time::sleep(Duration::from_mins(1)).await;
    draining.begin();
    writing.await.unwrap();
    let told = samples.told();
    let dropped = told.no_room.get(&tenant("a")).copied().unwrap_or(0);
    // 15 samples a turn: 3 of the source, 2 of each of 4 nodes... whatever there was is either kept or counted.
    let all = u64::try_from(told.live * 5).unwrap();
    assert!(dropped > 0 && told.appended.kept > 0, "{told:?}");
    assert_eq!(told.appended.kept + dropped + told.lost, all, "{told:?}");
}

/// Counts what it is handed, and fails when it is told to.
#[derive(Debug, Default)]
struct Counting {
    taken: AtomicU64,
    fails: std::sync::atomic::AtomicBool,
}

#[async_trait]
impl TimeSeriesSink for Counting {
    async fn append(&self, entries: &[Entry]) -> Result<Appended, SeriesError> {
        if self.fails.load(Ordering::SeqCst) {
            let source = std::io::Error::other("no room").into();
            return Err(SeriesError::Unavailable { doing: "kept", source });
        }
        self.taken.fetch_add(u64::try_from(entries.len()).unwrap(), Ordering::SeqCst);
        Ok(Appended::default())
    }
}

#[async_trait]
impl Forwarder for Counting {
    fn forwarded(&self) -> Forwarded {
        Forwarded::default()
    }

    async fn forward(&self, _tell: &(dyn for<'e> Fn(&'e (dyn std::error::Error + 'static)) + Send + Sync)) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_on_is_kept_all_the_same() {
    let clock = ManualClock::default();
    let store = store(&clock);
    let samples = Samples::new(Arc::new(store.clone()), true);
    let forwarder = Arc::new(Counting::default());
    let draining = Draining::new();
    let shared: Arc<dyn Forwarder> = Arc::<Counting>::clone(&forwarder);
    let writing = tokio::spawn(samples.clone().write(Some(shared), draining.clone()));
    let now = rezus_core::base::Clock::now(&clock);
    samples.take(&tenant("a"), Source::Kubernetes, &reading(now, 1), &first(), None, EVERY);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let taken = forwarder.taken.load(Ordering::SeqCst);
    assert_eq!(taken, samples.told().appended.kept);
    forwarder.fails.store(true, Ordering::SeqCst);
    samples.take(&tenant("b"), Source::Kubernetes, &reading(now, 1), &first(), None, EVERY);
    draining.begin();
    writing.await.unwrap();
    let told = samples.told();
    assert_eq!((told.not_forwarded, told.appended.kept), (taken, 2 * taken));
}

#[test]
fn where_samples_are_not_wanted_none_are_made() {
    let clock = ManualClock::default();
    let samples = Samples::new(Arc::new(store(&clock)), false);
    let now = rezus_core::base::Clock::now(&clock);
    samples.take(&tenant("a"), Source::Kubernetes, &reading(now, 1), &first(), None, EVERY);
    assert_eq!(samples.told(), Told::default());
}

/// Somebody puts samples in, or takes out what waits.
#[derive(Clone, Debug)]
enum Step {
    Put(u8, usize),
    Take(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..4_u8, 0..60_usize).prop_map(|(tenant, count)| Step::Put(tenant, count)),
        1 => (1..80_usize).prop_map(Step::Take),
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost_uncounted_and_nobody_has_more_than_half(steps in prop::collection::vec(step(), 1..60)) {
        const ROOM: usize = 100;
        let queue = Queue::new(ROOM);
        let (mut given, mut dropped, mut taken) = (0, 0, Vec::new());
        let mut waiting = [0_usize; 4];
        for step in steps {
            match step {
                Step::Put(of, count) => {
                    let name = format!("t{of}");
                    let labels = Labels::new([("__name__", "x"), ("tenant", name.as_str())]).unwrap();
                    let sample = |number| Sample { at: Timestamp::from_millis(i64::try_from(number).unwrap()), value: 0.0 };
                    let entries: Vec<Entry> =
                        (given..given + count).map(|number| Entry { labels: labels.clone(), sample: sample(number) }).collect();
                    let lost = queue.put(&tenant(&name), entries);
                    given += count;
                    dropped += lost;
                    waiting[usize::from(of)] += count - lost;
                    prop_assert!(waiting[usize::from(of)] <= ROOM / 2);
                    // What does not fit is what there is no room for, and no more.
                    prop_assert!(lost == 0 || waiting[usize::from(of)] == ROOM / 2 || waiting.iter().sum::<usize>() == ROOM);
                }
                Step::Take(count) => {
                    for entry in queue.take(count).into_iter().flatten() {
                        let of: usize = entry.labels.get("tenant")[1..].parse().unwrap();
                        waiting[of] -= 1;
                        taken.push(entry.sample.at);
                    }
                }
            }
            prop_assert_eq!(queue.len(), waiting.iter().sum::<usize>());
        }
        while let Some(entries) = queue.take(1) {
            taken.extend(entries.iter().map(|entry| entry.sample.at));
        }
        prop_assert_eq!(taken.len() + dropped, given);
        prop_assert!(taken.is_sorted());
    }
}

#[tokio::test(start_paused = true)]
async fn which_clusters_there_were_is_known_by_their_samples_of_whatever_time() {
    let clock = ManualClock::default();
    let samples = Samples::new(Arc::new(store(&clock)), true);
    let draining = Draining::new();
    let writing = tokio::spawn(samples.clone().write(None, draining.clone()));
    assert_eq!(samples.clusters(&tenant("a")).await, Some(Incarnations::default()));
    let marks = rezus_core::observed::Marks { cluster_uid: Some("two".to_owned()), ..Default::default() };
    let second = Incarnation { number: 2, marks: marks.clone() };
    let now = rezus_core::base::Clock::now(&clock);
    samples.take(&tenant("a"), Source::Kubernetes, &reading(now, 1), &second, None, EVERY);
    draining.begin();
    writing.await.unwrap();
    // The clock was ahead then.
    clock.set(now.minus(Duration::from_hours(1_000)));
    assert_eq!(samples.clusters(&tenant("a")).await, Some(Incarnations::of([(2, marks)].into())));
    assert_eq!(samples.clusters(&tenant("b")).await, Some(Incarnations::default()));
}
