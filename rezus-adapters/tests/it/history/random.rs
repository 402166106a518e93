//! Whatever happens in whatever order: what is read is what a plain list of what was kept says.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use rezus_adapters::history::{History, HistorySettings};
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::series::{Entry, Sample, TimeSeriesSink as _};

use super::fixture::{DAY, HOUR, MINUTE, START, Store, at, is_full, labels, select, tend};

const SERIES: u32 = 3;

/// Further than any clock goes here.
const EVERYTHING: (i64, i64) = (START - 20_000 * DAY, START + 90_000 * DAY);

#[derive(Clone, Debug)]
enum Step {
    /// Samples of a series, at so many milliseconds from the clock.
    Append(Vec<(u32, i64, f64)>),
    /// The clock goes on.
    Pass(i64),
    /// The clock is set back.
    SetBack(i64),
    /// The clock jumps ahead.
    Jump(i64),
    /// The clock is put right: it shows the time that passed.
    PutRight,
    /// So many steps of what there is to do besides.
    Tend(u8),
    /// It is closed, and opened again.
    Start,
}

fn step() -> impl Strategy<Value = Step> {
    let value = prop_oneof![5 => (0_u32..9).prop_map(f64::from), 1 => Just(f64::NAN), 1 => Just(-0.0)];
    let offset = prop_oneof![3 => (-10_i64..=1).prop_map(|n| n * MINUTE), 1 => -600_000_i64..=300_000];
    prop_oneof![
        8 => prop::collection::vec((0..SERIES, offset, value), 1..20).prop_map(Step::Append),
        6 => (1_i64..40).prop_map(|n| Step::Pass(n * 5 * MINUTE)),
        1 => (1_i64..30).prop_map(|n| Step::Pass(n * HOUR)),
        1 => (1_i64..50).prop_map(|n| Step::SetBack(n * HOUR)),
        1 => prop_oneof![1_i64..50, 1_i64..9_000].prop_map(|n| Step::Jump(n * HOUR)),
        1 => Just(Step::PutRight),
        6 => (1_u8..8).prop_map(Step::Tend),
        2 => Just(Step::Start),
    ]
}

/// Of each series, what was kept.
type Model = BTreeMap<u32, BTreeMap<Timestamp, Sample>>;

async fn append(history: &History, model: &mut Model, now: Timestamp, samples: &[(u32, i64, f64)]) {
    let entry = |(series, offset, value): &(u32, i64, f64)| {
        let sample = Sample { at: at(now.as_millis() + offset), value: *value };
        (*series, Entry { labels: labels(*series), sample })
    };
    let (series, entries): (Vec<u32>, Vec<Entry>) = samples.iter().map(entry).unzip();
    let appended = history.append(&entries).await.unwrap();
    // What memory has forgotten is no repeat, so how many are is not always known; what is read is the same.
    assert_eq!(
        (appended.kept + appended.repeated, appended.late),
        (u64::try_from(entries.len()).unwrap(), 0)
    );
    for (series, entry) in series.into_iter().zip(entries) {
        model.entry(series).or_default().entry(entry.sample.at).or_insert(entry.sample);
    }
}

/// Asks for everything and for a part, with narrow and with wide steps.
async fn check(history: &History, model: &Model, part: (i64, i64)) {
    for (series, own) in model {
        for (from, to) in [EVERYTHING, part] {
            let all = select(history, *series, from, to, Duration::ZERO).await;
            let all = all.map(|found| (found.rolled.len(), found.samples)).unwrap_or_default();
            let expected: Vec<Sample> = own.range(at(from)..=at(to)).map(|(_, sample)| *sample).collect();
            assert_eq!(all, (0, expected));
        }
        for width in [Duration::from_mins(5), Duration::from_hours(1)] {
            let wide = select(history, *series, EVERYTHING.0, EVERYTHING.1, width).await;
            let (rolled, samples) = wide.map(|found| (found.rolled, found.samples)).unwrap_or_default();
            let kept = samples.iter().filter(|sample| !sample.value.is_nan()).count();
            let count: u64 = rolled.iter().map(|rollup| rollup.count).sum();
            let expected = own.values().filter(|sample| !sample.value.is_nan()).count();
            assert_eq!(count + u64::try_from(kept).unwrap(), u64::try_from(expected).unwrap());
            assert!(rolled.iter().all(|rollup| rollup.width == width));
        }
    }
}

#[tokio::test]
async fn any_history_is_read_as_a_plain_model_has_it_whatever_else_happens() {
    let mut runner = TestRunner::deterministic();
    for case in 0..if is_full() { 300 } else { 16 } {
        let steps = prop::collection::vec(step(), 1..80).new_tree(&mut runner).unwrap().current();
        println!("case {case}: {steps:?}");
        let days = Duration::from_hours(100 * 24);
        let store = Store::new(HistorySettings { raw: days, fine: days, ..HistorySettings::default() });
        let mut history = store.history();
        let mut model = Model::new();
        for (nth, step) in (0_i64..).zip(&steps) {
            match step {
                Step::Append(samples) => append(&history, &mut model, store.clock.now(), samples).await,
                Step::Pass(millis) => store.clock.set(at(store.clock.now().as_millis() + millis)),
                Step::SetBack(millis) => store.clock.set(at(store.clock.now().as_millis() - millis)),
                Step::Jump(millis) => store.clock.jump(at(store.clock.now().as_millis() + millis)),
                Step::PutRight => store.clock.jump(at(START).after(store.clock.elapsed())),
                Step::Tend(count) => {
                    for _ in 0..*count {
                        assert!(history.tend().await.unwrap().set_aside.is_empty());
                    }
                }
                Step::Start => {
                    drop(history);
                    history = store.history();
                }
            }
            if nth % 8 == 7 {
                let middle = store.clock.now().as_millis() - nth * HOUR / 2;
                check(&history, &model, (middle - 7 * HOUR, middle)).await;
            }
        }
        check(&history, &model, (START, START + 3 * HOUR)).await;
        // Later than anything: the clock may have been set back since.
        let newest = model.values().filter_map(|own| own.last_key_value()).map(|(at, _)| *at).max();
        store.clock.jump(newest.unwrap_or(at(START)).after(Duration::from_hours(3 * 24)));
        assert!(tend(&history).await.is_empty());
        assert!(
            store.files("tail-").is_empty() && store.files("sealed-").is_empty(),
            "{:?}",
            store.files("")
        );
        check(&history, &model, (START, START + 3 * HOUR)).await;
    }
}
