//! A tier that lost days hides nothing that the other one has, and has again what there are samples of.

use std::time::Duration;

use rezus_adapters::history::{History, HistorySettings};
use rezus_core::base::Clock as _;
use rezus_core::series::{Entry, Sample, Series, TimeSeriesSink as _};

use super::damage::garble;
use super::fixture::{DAY, HOUR, MINUTE, START, Store, at, labels, pass, select, tend};
use super::month::Model;

const FINE: Duration = Duration::from_mins(5);
const COARSE: Duration = Duration::from_hours(1);

fn settings() -> HistorySettings {
    HistorySettings { raw: Duration::from_hours(48), ..HistorySettings::default() }
}

/// Whatever is asked of whichever time, what was is given.
async fn check(history: &History, minutes: u32) {
    let end = START + i64::from(minutes - 1) * MINUTE;
    // Of whole numbers: sums of others depend on the order in which they are taken.
    for series in [0, 2, 3] {
        let model = Model::new(series, minutes);
        for width in [Duration::ZERO, FINE, COARSE] {
            for (from, to) in
                [(START, end), (START + 2 * DAY + 7 * MINUTE, START + 4 * DAY + HOUR), (end - DAY, end)]
            {
                let empty = Series { labels: labels(series), rolled: Vec::new(), samples: Vec::new() };
                let found = select(history, series, from, to, width).await.unwrap_or(empty);
                model.check(&found, from, to);
            }
        }
    }
}

/// Of each day, how wide its rollups are.
async fn widths(history: &History, width: Duration, days: i64) -> Vec<Vec<Duration>> {
    let mut all = Vec::new();
    for day in 0..days {
        let (from, to) = (START + day * DAY, START + (day + 1) * DAY - 1);
        let found = select(history, 2, from, to, width).await.unwrap();
        let mut widths: Vec<Duration> = found.rolled.iter().map(|rollup| rollup.width).collect();
        widths.dedup();
        all.push(widths);
    }
    all
}

#[tokio::test]
async fn a_tier_that_was_set_aside_hides_nothing_and_is_filled_again() {
    // Rollups of the hours are made of those of five minutes, which cannot be made again.
    for (lost, of_old, asked) in [("fine-", COARSE, FINE), ("coarse-", COARSE, COARSE)] {
        // It is found by who reads, and by who compacts the next day.
        for is_read in [true, false] {
            let store = Store::new(settings());
            let mut history = store.history();
            pass(&store, &history, 0..5 * 1_440 + 20).await;
            assert_eq!(store.files("raw-").len(), 2, "{:?}", store.files("raw-"));
            check(&history, 5 * 1_440 + 20).await;
            assert_eq!(widths(&history, asked, 5).await, vec![vec![asked]; 5]);
            // What it knew of the file is of before.
            drop(history);
            garble(&store.files(lost)[0], 1_000_000);
            history = store.history();
            if is_read {
                check(&history, 5 * 1_440 + 20).await;
                // Samples, where there are any, rather than rollups that are too wide.
                let expected = if asked == FINE {
                    [vec![vec![COARSE]; 3], vec![vec![]; 2]].concat()
                } else {
                    vec![vec![FINE]; 5]
                };
                assert_eq!(widths(&history, asked, 5).await, expected, "{lost}");
            }
            pass(&store, &history, 5 * 1_440 + 20..6 * 1_440 + 20).await;
            let damaged = store.files(".db.damaged");
            assert_eq!(damaged.len(), 1, "{damaged:?}");
            for _ in 0..2 {
                check(&history, 6 * 1_440 + 20).await;
                // Of days 3 and 4 there were samples still, of those before rollups alone.
                let mut expected = vec![vec![of_old]; 3];
                expected.resize(6, vec![asked]);
                assert_eq!(widths(&history, asked, 6).await, expected, "{lost}");
                drop(history);
                history = store.history();
                assert!(tend(&history).await.is_empty());
            }
        }
    }
}

/// A day whose samples were set aside between others is given as rollups, and so is what is before it.
#[tokio::test]
async fn samples_that_were_set_aside_are_given_as_rollups() {
    let store = Store::new(HistorySettings::default());
    let history = store.history();
    pass(&store, &history, 0..4 * 1_440 + 20).await;
    garble(&store.files("raw-2026-10-24")[0], 1_000_000);
    check(&history, 4 * 1_440 + 20).await;
    let found = select(&history, 2, START, START + 4 * DAY, Duration::ZERO).await.unwrap();
    assert_eq!((found.rolled.len(), found.samples[0].at), (3 * 288, at(START + 3 * DAY)));
    let found = select(&history, 2, START, START + 2 * DAY - 1, Duration::ZERO).await.unwrap();
    assert_eq!((found.rolled.len(), found.samples.len()), (0, 2 * 1_440));
}

/// With both tiers set aside there is what there are samples of, before it is rolled up again too.
#[tokio::test]
async fn of_what_is_in_no_tier_samples_are_given() {
    let store = Store::new(HistorySettings::default());
    let history = store.history();
    pass(&store, &history, 0..3 * 1_440 + 20).await;
    for tier in ["fine-", "coarse-"] {
        garble(&store.files(tier)[0], 1_000_000);
    }
    drop(history);
    let history = store.history();
    check(&history, 3 * 1_440 + 20).await;
    let found = select(&history, 2, START, START + 3 * DAY - 1, COARSE).await.unwrap();
    assert_eq!((found.rolled.len(), found.samples.len()), (0, 3 * 1_440));
    assert_eq!(tend(&history).await.len(), 2);
    check(&history, 3 * 1_440 + 20).await;
    assert_eq!(widths(&history, COARSE, 3).await, vec![vec![COARSE]; 3]);
}

/// After the clock was set back into a day of which rollups are all that is left, what comes is little of it.
#[tokio::test]
async fn what_comes_for_a_day_later_takes_nothing_of_its_rollups() {
    for lost in [None, Some("fine-"), Some("coarse-")] {
        let store = Store::new(settings());
        let mut history = store.history();
        pass(&store, &history, 0..5 * 1_440).await;
        assert_eq!(store.files("2026-10-23.db").len(), 0, "{:?}", store.files(""));
        if let Some(lost) = lost {
            drop(history);
            garble(&store.files(lost)[0], 1_000_000);
            history = store.history();
        }
        let right = store.clock.now();
        // Of a series that was there before, and of one that was not.
        for minute in 0..30 {
            let now = at(START + DAY + 12 * HOUR + i64::from(minute) * MINUTE + 1);
            store.clock.jump(now);
            let entry = |series| Entry { labels: labels(series), sample: Sample { at: now, value: 7.0 } };
            assert_eq!(history.append(&[entry(2), entry(6)]).await.unwrap().kept, 2);
            tend(&history).await;
        }
        for is_compacted in [false, true] {
            if is_compacted {
                store.clock.jump(right);
                tend(&history).await;
                assert_eq!(store.files("2026-10-23").len(), 0, "{:?}", store.files(""));
            }
            for width in [Duration::ZERO, FINE, COARSE] {
                let (from, to) = (START + DAY, START + 2 * DAY - 1);
                let found = select(&history, 2, from, to, width).await.unwrap();
                let count: u64 = found.rolled.iter().map(|rollup| rollup.count).sum();
                assert_eq!((count, found.samples), (1_440, vec![]), "{lost:?}, {width:?}, {is_compacted}");
                let found = select(&history, 6, from, to, width).await.unwrap();
                let count: u64 = found.rolled.iter().map(|rollup| rollup.count).sum();
                assert_eq!((count, found.samples), (30, vec![]), "{lost:?}, {width:?}, {is_compacted}");
            }
        }
        pass(&store, &history, 5 * 1_440..5 * 1_440 + 200).await;
        check(&history, 5 * 1_440 + 200).await;
        drop(history);
        check(&store.history(), 5 * 1_440 + 200).await;
    }
}
