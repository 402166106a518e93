//! The laws of `TimeSeries`, and those of one that is durable.

#![expect(clippy::unwrap_used, reason = "test code")]
#![expect(clippy::missing_panics_doc, reason = "a law panics where it is broken")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use rezus_core::base::{Clock as _, TenantName, Timestamp};
use rezus_core::series::{
    Appended, Entry, Labels, Matcher, NAME, Operator, STALE, Sample, Selection, Series, SeriesError, TENANT,
    TimeSeries, Window,
};

use crate::clock::ManualClock;

/// Storage of its own for one law. It keeps at least two hours of samples, whatever becomes of older ones.
#[async_trait]
pub trait TimeSeriesFixture: Send + Sync {
    /// Opens the port, with the default [`Window`] around the fixture's clock; again, on the same storage as before, which
    /// nobody has open any more.
    async fn open(&self) -> Arc<dyn TimeSeries>;

    /// Returns the clock that it goes by.
    fn clock(&self) -> &ManualClock;
}

/// Makes a test of each law of `TimeSeries`, in a module `time_series_laws`. See [`contract`](crate::contract).
#[macro_export]
macro_rules! time_series_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            time_series_laws,
            $crate::contract::time_series,
            $fixture,
            after_the_clock_was_set_back_the_clock_is_the_measure,
            any_history_is_read_as_a_plain_model_has_it,
            both_ends_of_the_range_are_within,
            each_matcher_selects_what_it_says,
            more_than_the_limit_is_told,
            of_samples_of_one_time_the_first_one_stays,
            samples_are_read_in_the_order_of_time_whatever_the_order_they_came_in,
            series_without_a_sample_in_the_range_are_not_given,
            tenants_restrict_what_is_given,
            what_comes_too_late_or_too_early_is_refused_and_the_rest_kept,
            what_many_append_at_a_time_is_read_whole,
            what_was_appended_is_read_bit_for_bit,
        );
    };
}

/// Makes a test of each law of a `TimeSeries` that is durable, in a module `durable_time_series_laws`. See
/// [`contract`](crate::contract).
#[macro_export]
macro_rules! durable_time_series_contract {
    ($fixture:expr) => {
        $crate::__laws!(
            durable_time_series_laws,
            $crate::contract::time_series,
            $fixture,
            what_was_appended_is_the_same_when_it_is_opened_again,
            a_series_goes_on_when_it_is_opened_again,
        );
    };
}

const MINUTE: Duration = Duration::from_mins(1);

fn labels(tenant: &str, metric: &str, others: &[(&str, &str)]) -> Labels {
    let own = [(TENANT, tenant), (NAME, metric)];
    Labels::new(own.iter().chain(others).copied()).unwrap()
}

fn entry(labels: &Labels, at: Timestamp, value: f64) -> Entry {
    Entry { labels: labels.clone(), sample: Sample { at, value } }
}

/// Everything of the last two hours and the next one.
fn everything(now: Timestamp) -> Selection {
    Selection {
        tenants: None,
        matchers: Vec::new(),
        from: now.minus(Duration::from_hours(2)),
        to: now.after(Duration::from_hours(1)),
        width: Duration::ZERO,
        limit: 1_000_000,
    }
}

/// Of each matcher its label, its operator and its value.
type Conditions<'a> = &'a [(&'a str, Operator, &'a str)];

fn matching(now: Timestamp, matchers: Conditions<'_>) -> Selection {
    let matchers =
        matchers.iter().map(|(name, operator, value)| Matcher::new(name, *operator, value).unwrap());
    Selection { matchers: matchers.collect(), ..everything(now) }
}

/// Reads all samples of series, none of which are rolled up.
async fn read(store: &dyn TimeSeries, selection: &Selection) -> BTreeMap<Labels, Vec<Sample>> {
    let found = store.select(selection).await.unwrap();
    assert!(found.is_sorted_by(|a, b| a.labels < b.labels), "{found:?}");
    let listed = store.list(selection).await.unwrap();
    let names: Vec<&Labels> = found.iter().map(|series| &series.labels).collect();
    assert_eq!(listed.iter().collect::<Vec<_>>(), names);
    let samples = |series: Series| {
        assert!(series.rolled.is_empty() && !series.samples.is_empty(), "{series:?}");
        (series.labels, series.samples)
    };
    found.into_iter().map(samples).collect()
}

/// A value comes back with the bits it had, whatever it is.
pub async fn what_was_appended_is_read_bit_for_bit(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let values = [
        1.0,
        -0.0,
        0.0,
        f64::NAN,
        -f64::NAN,
        STALE,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        0.1,
        f64::MAX,
        f64::from_bits(1),
        f64::from_bits(0x7ff8_dead_beef_0001),
        1e15 + 0.3,
    ];
    let name = labels("prod", "odd", &[]);
    let start = now.minus(MINUTE);
    let entries: Vec<Entry> = (0_u64..)
        .zip(values)
        .map(|(nth, value)| entry(&name, start.after(Duration::from_millis(nth * 137)), value))
        .collect();
    let appended = store.append(&entries).await.unwrap();
    assert_eq!(appended, Appended { kept: 14, ..Appended::default() });
    let expected: Vec<Sample> = entries.iter().map(|entry| entry.sample).collect();
    assert_eq!(read(&*store, &everything(now)).await, BTreeMap::from([(name, expected)]));
    assert_eq!(store.append(&[]).await.unwrap(), Appended::default());
}

/// Within the window samples may come in any order, in one call or several.
pub async fn samples_are_read_in_the_order_of_time_whatever_the_order_they_came_in(
    fixture: &dyn TimeSeriesFixture,
) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let name = labels("prod", "mixed", &[]);
    let mut expected = Vec::new();
    // Every seventh of a hundred places, round and round: no two neighbours come one after the other.
    for batch in 0..10_u32 {
        let entries: Vec<Entry> = (0..10_u32)
            .map(|nth| {
                let place = (batch * 10 + nth) * 7 % 100;
                entry(&name, now.minus(place * Duration::from_secs(5)), f64::from(place))
            })
            .collect();
        expected.extend(entries.iter().map(|entry| entry.sample));
        assert_eq!(store.append(&entries).await.unwrap().kept, 10);
    }
    expected.sort_by_key(|sample| sample.at);
    assert_eq!(read(&*store, &everything(now)).await, BTreeMap::from([(name, expected)]));
}

/// A second sample of one time changes nothing; a repeat of the newest is counted as one.
pub async fn of_samples_of_one_time_the_first_one_stays(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let name = labels("prod", "twice", &[]);
    let (early, late) = (now.minus(2 * MINUTE), now.minus(MINUTE));
    store.append(&[entry(&name, early, 1.0), entry(&name, late, 2.0)]).await.unwrap();
    let repeats = [
        entry(&name, late, 3.0),
        entry(&name, late, 2.0),
        entry(&name, early, 4.0),
        entry(&name, now, 5.0),
        entry(&name, now, 6.0),
    ];
    let appended = store.append(&repeats).await.unwrap();
    assert_eq!(appended, Appended { kept: 2, repeated: 3, ..Appended::default() });
    let expected = [(early, 1.0), (late, 2.0), (now, 5.0)].map(|(at, value)| Sample { at, value });
    assert_eq!(read(&*store, &everything(now)).await, BTreeMap::from([(name, expected.to_vec())]));
}

/// What is out of the window is refused and counted, what is on its edges is not, and one sample is no harm to another.
pub async fn what_comes_too_late_or_too_early_is_refused_and_the_rest_kept(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let Window { late, early } = Window::default();
    let moment = Duration::from_millis(1);
    let name = |which| labels("prod", "edge", &[("which", which)]);
    let (oldest, newest) = (now.minus(late), now.after(early));
    let entries = [
        entry(&name("a"), oldest.minus(moment), 1.0),
        entry(&name("b"), oldest, 2.0),
        entry(&name("c"), newest, 3.0),
        entry(&name("d"), newest.after(moment), 4.0),
        entry(&name("b"), now, 5.0),
        entry(&name("b"), Timestamp::from_millis(i64::MIN), 6.0),
        entry(&name("b"), Timestamp::from_millis(i64::MAX), 7.0),
    ];
    let appended = store.append(&entries).await.unwrap();
    assert_eq!(appended, Appended { kept: 3, late: 2, early: 2, ..Appended::default() });
    let expected = BTreeMap::from([
        (name("b"), vec![entries[1].sample, entries[4].sample]),
        (name("c"), vec![entries[2].sample]),
    ]);
    assert_eq!(read(&*store, &everything(now)).await, expected);
}

/// The four operators, with a label that is not there as one with an empty value.
pub async fn each_matcher_selects_what_it_says(fixture: &dyn TimeSeriesFixture) {
    use Operator::{DoesNotMatch, Equal, Matches, NotEqual};
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let all = [
        labels("prod", "load", &[("machine", "cp-1"), ("role", "control-plane")]),
        labels("prod", "load", &[("machine", "w-1"), ("role", "worker")]),
        labels("prod", "load", &[("machine", "w-2")]),
        labels("prod", "up", &[("machine", "w-2")]),
        labels("test", "load", &[("machine", "w-1")]),
    ];
    let entries: Vec<Entry> = all.iter().map(|labels| entry(labels, now, 1.0)).collect();
    store.append(&entries).await.unwrap();
    let cases: &[(Conditions<'_>, &[usize])] = &[
        (&[], &[0, 1, 2, 3, 4]),
        (&[(NAME, Equal, "load")], &[0, 1, 2, 4]),
        (&[(NAME, Equal, "load"), (TENANT, Equal, "prod")], &[0, 1, 2]),
        (&[(TENANT, NotEqual, "prod")], &[4]),
        (&[(NAME, Matches, "lo.*|u")], &[0, 1, 2, 4]),
        (&[(NAME, DoesNotMatch, "lo.*")], &[3]),
        (&[("role", Equal, "")], &[2, 3, 4]),
        (&[("role", Matches, "")], &[2, 3, 4]),
        (&[("role", NotEqual, "")], &[0, 1]),
        (&[("role", DoesNotMatch, "worker")], &[0, 2, 3, 4]),
        (&[("role", NotEqual, "worker"), ("machine", Matches, "w-.")], &[2, 3, 4]),
        (&[(NAME, Equal, "none")], &[]),
        (&[("none", Matches, ".+")], &[]),
    ];
    for (matchers, expected) in cases {
        let found: Vec<Labels> = read(&*store, &matching(now, matchers)).await.into_keys().collect();
        let expected: BTreeSet<Labels> = expected.iter().map(|place| all[*place].clone()).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{matchers:?}");
    }
}

/// Of other tenants nothing is given, whatever the matchers say.
pub async fn tenants_restrict_what_is_given(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let all: Vec<Labels> = ["a", "b", "c"].iter().map(|tenant| labels(tenant, "up", &[])).collect();
    store.append(&all.iter().map(|labels| entry(labels, now, 1.0)).collect::<Vec<_>>()).await.unwrap();
    let of = |tenants: &[&str], matchers: &[(&str, Operator, &str)]| Selection {
        tenants: Some(tenants.iter().map(|tenant| TenantName::parse(tenant).unwrap()).collect()),
        ..matching(now, matchers)
    };
    let keys = async |selection| read(&*store, &selection).await.into_keys().collect::<Vec<_>>();
    assert_eq!(keys(of(&["a", "c"], &[])).await, [all[0].clone(), all[2].clone()]);
    assert_eq!(keys(of(&["b"], &[(NAME, Operator::Equal, "up")])).await, [all[1].clone()]);
    assert_eq!(keys(of(&["a"], &[(TENANT, Operator::Equal, "b")])).await, []);
    assert_eq!(keys(of(&["a"], &[(TENANT, Operator::Matches, ".*")])).await, [all[0].clone()]);
    assert_eq!(keys(of(&[], &[])).await, []);
}

/// A sample of the first or the last moment asked for is given, and none beyond.
pub async fn both_ends_of_the_range_are_within(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let name = labels("prod", "range", &[]);
    let at = |nth: i64| Timestamp::from_millis(now.as_millis() - 300_000 + nth);
    let entries: Vec<Entry> =
        (0_i32..300).map(|nth| entry(&name, at(i64::from(nth) * 1_000), f64::from(nth))).collect();
    store.append(&entries).await.unwrap();
    let times = async |from, to| {
        let found = read(&*store, &Selection { from: at(from), to: at(to), ..everything(now) }).await;
        found.values().flatten().map(|sample| sample.at.as_millis() - at(0).as_millis()).collect::<Vec<_>>()
    };
    assert_eq!(times(1_000, 3_000).await, [1_000, 2_000, 3_000]);
    assert_eq!(times(1_001, 2_999).await, [2_000]);
    assert_eq!(times(130_000, 130_000).await, [130_000]);
    assert_eq!(times(-5_000, 0).await, [0]);
    assert_eq!(times(3_000, 1_000).await, Vec::<i64>::new());
    assert_eq!(times(299_001, 400_000).await, Vec::<i64>::new());
}

/// A series is given where it has a sample in the range, and only then.
pub async fn series_without_a_sample_in_the_range_are_not_given(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let (early, late) = (labels("prod", "early", &[]), labels("prod", "late", &[]));
    let entries = [entry(&early, now.minus(5 * MINUTE), 1.0), entry(&late, now, 1.0)];
    store.append(&entries).await.unwrap();
    let keys = async |selection| read(&*store, &selection).await.into_keys().collect::<Vec<_>>();
    let all = everything(now);
    assert_eq!(keys(Selection { to: now.minus(MINUTE), ..all.clone() }).await, [early]);
    assert_eq!(keys(Selection { from: now.minus(MINUTE), ..all.clone() }).await, [late]);
    assert_eq!(keys(Selection { from: now.minus(4 * MINUTE), to: now.minus(MINUTE), ..all }).await, []);
}

/// Who asks for more than may be given is told so instead of being given a part.
pub async fn more_than_the_limit_is_told(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let all: Vec<Labels> = ["a", "b"].iter().map(|name| labels("prod", name, &[])).collect();
    let entries: Vec<Entry> = (0..10_u32)
        .flat_map(|nth| all.iter().map(move |labels| entry(labels, now.minus(nth * MINUTE), 1.0)))
        .collect();
    store.append(&entries).await.unwrap();
    let limited = |limit| Selection { limit, ..everything(now) };
    assert_eq!(store.select(&limited(20)).await.unwrap().len(), 2);
    assert_eq!(store.list(&limited(2)).await.unwrap().len(), 2);
    for (limit, error) in [
        (19, store.select(&limited(19)).await.unwrap_err()),
        (0, store.select(&limited(0)).await.unwrap_err()),
        (1, store.list(&limited(1)).await.unwrap_err()),
    ] {
        assert!(matches!(error, SeriesError::TooMany { limit: told } if told == limit), "{error:?}");
    }
}

/// A clock that was set back is believed: what is of its time is kept, and what was of the other one stays.
pub async fn after_the_clock_was_set_back_the_clock_is_the_measure(fixture: &dyn TimeSeriesFixture) {
    let (store, clock) = (fixture.open().await, fixture.clock());
    let (name, now) = (labels("prod", "clock", &[]), clock.now());
    let before = now.minus(Duration::from_hours(1));
    store.append(&[entry(&name, now, 1.0)]).await.unwrap();
    clock.set(before);
    let appended =
        store.append(&[entry(&name, before, 2.0), entry(&name, now.minus(MINUTE), 3.0)]).await.unwrap();
    assert_eq!(appended, Appended { kept: 1, early: 1, ..Appended::default() });
    let expected = [(before, 2.0), (now, 1.0)].map(|(at, value)| Sample { at, value });
    assert_eq!(read(&*store, &everything(now)).await, BTreeMap::from([(name, expected.to_vec())]));
}

/// Samples of many tasks are all there at the end, and each read meanwhile is of whole samples in order.
pub async fn what_many_append_at_a_time_is_read_whole(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let (tasks, samples) = (8_u32, 60_u32);
    let start = now.minus(9 * MINUTE);
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let name = labels("prod", "many", &[("task", &task.to_string())]);
                for nth in 0..samples {
                    let entry = entry(&name, start.after(nth * Duration::from_secs(9)), f64::from(nth));
                    assert_eq!(store.append(&[entry]).await.unwrap().kept, 1);
                    let found = store.select(&everything(now)).await.unwrap();
                    let found = found.into_iter().find(|series| series.labels == name).unwrap();
                    let own: Vec<f64> = found.samples.iter().map(|sample| sample.value).collect();
                    assert_eq!(own, (0..=nth).map(f64::from).collect::<Vec<_>>());
                }
            })
        })
        .collect();
    for task in running {
        task.await.unwrap();
    }
    let found = read(&*store, &everything(now)).await;
    assert_eq!(found.values().map(Vec::len).collect::<Vec<_>>(), [60; 8]);
}

/// What a history does: samples of a few series, at so many milliseconds from the clock, and then the clock goes on.
type Step = (Vec<(u8, i64, f64)>, u64);

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![
        4 => (0_u32..20).prop_map(f64::from),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => Just(STALE),
    ];
    // Mostly on whole quarters of a minute, so that times meet.
    let at = prop_oneof![6 => (-40_i64..5).prop_map(|n| n * 15_000), 1 => -700_000_i64..400_000];
    (prop::collection::vec((0_u8..4, at, value), 0..40), 0_u64..300_000)
}

/// Whatever is appended when, in whatever order: what is counted and what is read is what a plain list of it all says.
pub async fn any_history_is_read_as_a_plain_model_has_it(fixture: &dyn TimeSeriesFixture) {
    let (store, clock) = (fixture.open().await, fixture.clock());
    let mut runner = TestRunner::deterministic();
    for case in 0..24 {
        let case = case.to_string();
        let steps = prop::collection::vec(step(), 1..12).new_tree(&mut runner).unwrap().current();
        let mut model: BTreeMap<Labels, BTreeMap<Timestamp, Sample>> = BTreeMap::new();
        for (samples, millis) in &steps {
            let now = clock.now();
            let entries: Vec<Entry> = samples
                .iter()
                .map(|(series, offset, value)| {
                    let name = labels("prod", "model", &[("case", &case), ("series", &series.to_string())]);
                    entry(&name, Timestamp::from_millis(now.as_millis() + offset), *value)
                })
                .collect();
            let expected = append_to_model(&mut model, &entries, now);
            assert_eq!(store.append(&entries).await.unwrap(), expected, "case {case}: {steps:?}");
            clock.advance(Duration::from_millis(*millis));
        }
        let selection = matching(clock.now(), &[("case", Operator::Equal, &case)]);
        let expected: BTreeMap<Labels, Vec<Sample>> =
            model.into_iter().map(|(labels, samples)| (labels, samples.into_values().collect())).collect();
        assert_eq!(read(&*store, &selection).await, expected, "case {case}: {steps:?}");
    }
}

fn append_to_model(
    model: &mut BTreeMap<Labels, BTreeMap<Timestamp, Sample>>,
    entries: &[Entry],
    now: Timestamp,
) -> Appended {
    let Window { late, early } = Window::default();
    let mut appended = Appended::default();
    for Entry { labels, sample } in entries {
        if sample.at < now.minus(late) {
            appended.late += 1;
        } else if sample.at > now.after(early) {
            appended.early += 1;
        } else {
            let own = model.entry(labels.clone()).or_default();
            if own.last_key_value().is_some_and(|(newest, _)| *newest == sample.at) {
                appended.repeated += 1;
            } else {
                own.entry(sample.at).or_insert(*sample);
                appended.kept += 1;
            }
        }
    }
    appended
}

/// After all handles are gone and it is opened again, the same is read.
pub async fn what_was_appended_is_the_same_when_it_is_opened_again(fixture: &dyn TimeSeriesFixture) {
    let (store, now) = (fixture.open().await, fixture.clock().now());
    let entries: Vec<Entry> = (0_u32..500)
        .map(|nth| {
            let name = labels("prod", "kept", &[("series", &(nth % 7).to_string())]);
            entry(
                &name,
                now.minus(nth * Duration::from_secs(1)),
                if nth == 3 { STALE } else { f64::from(nth) / 3.0 },
            )
        })
        .collect();
    for batch in entries.chunks(50) {
        store.append(batch).await.unwrap();
    }
    let before = read(&*store, &everything(now)).await;
    assert_eq!(before.values().map(Vec::len).sum::<usize>(), 500);
    for _ in 0..3 {
        let again = fixture.open().await;
        assert_eq!(read(&*again, &everything(now)).await, before);
    }
}

/// What comes after it was opened again is put where it would have been put without.
pub async fn a_series_goes_on_when_it_is_opened_again(fixture: &dyn TimeSeriesFixture) {
    let (clock, now) = (fixture.clock(), fixture.clock().now());
    let name = labels("prod", "on", &[]);
    let mut expected = Vec::new();
    for nth in 0..6_u32 {
        let store = fixture.open().await;
        let now = clock.now();
        let entries = [
            entry(&name, now, f64::from(nth)),
            // There already, or older than what is there.
            entry(&name, now.minus(MINUTE), 100.0),
            entry(&name, now.minus(Duration::from_secs(90)), f64::from(nth)),
            entry(&name, now, 100.0),
        ];
        assert_eq!(
            store.append(&entries).await.unwrap(),
            Appended { kept: 3, repeated: 1, ..Appended::default() }
        );
        if nth == 0 {
            expected.push(entries[1].sample);
        }
        expected.extend([entries[0].sample, entries[2].sample]);
        drop(store);
        assert_eq!(fixture.open().await.append(&entries[..1]).await.unwrap().repeated, 1);
        clock.advance(MINUTE);
    }
    expected.sort_by_key(|sample| sample.at);
    assert_eq!(read(&*fixture.open().await, &everything(now)).await, BTreeMap::from([(name, expected)]));
}
