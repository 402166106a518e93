//! Clocks that jump, and downtimes: what is kept is removed because time passed, not because a clock says so.

use std::time::Duration;

use rezus_adapters::history::{History, HistorySettings};
use rezus_adapters::ring::{Ring, RingSettings};
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::series::{Entry, Sample, TimeSeries as _, TimeSeriesSink as _};

use super::fixture::{DAY, HOUR, START, Store, at, labels, pass, samples, select, selection, tend};

const YEAR: Duration = Duration::from_hours(365 * 24);

fn days(count: u64) -> Duration {
    Duration::from_hours(24 * count)
}

fn settings() -> HistorySettings {
    HistorySettings { raw: days(2), fine: days(14), coarse: days(91), ..HistorySettings::default() }
}

/// Takes a sample of the clock's time, and finds it again.
async fn take_one(store: &Store, history: &History, value: f64) -> Sample {
    let sample = Sample { at: store.clock.now(), value };
    let appended = history.append(&[Entry { labels: labels(1), sample }]).await.unwrap();
    assert_eq!(appended.kept, 1);
    let found =
        select(history, 1, sample.at.as_millis(), sample.at.as_millis(), Duration::ZERO).await.unwrap();
    assert_eq!(found.samples, [sample]);
    sample
}

async fn all(history: &History, series: u32) -> Vec<Sample> {
    let found = select(history, series, START - DAY, START + 5_000 * DAY, Duration::ZERO).await;
    found.map(|found| found.samples).unwrap_or_default()
}

#[tokio::test]
async fn a_clock_that_jumps_a_year_ahead_and_back_costs_nothing() {
    let store = Store::new(settings());
    let mut history = store.history();
    pass(&store, &history, 0..2 * 1_440 + 700).await;
    // A start in between, with the clock as wrong as before; the second time what is of the jump is there already.
    for round in 0..2 {
        let right = store.clock.now();
        let before = all(&history, 1).await;
        assert!(before.starts_with(&samples(1, 0..2 * 1_440 + 700)), "{}", before.len());
        store.clock.jump(right.after(YEAR));
        for start in 0..3 {
            tend(&history).await;
            assert_eq!(all(&history, 1).await, before, "round {round}, start {start}");
            drop(history);
            history = store.history();
        }
        let ahead = take_one(&store, &history, 7.0).await;
        store.clock.advance(Duration::from_mins(3));
        tend(&history).await;
        store.clock.jump(right.after(Duration::from_mins(3)));
        tend(&history).await;
        let behind = take_one(&store, &history, 8.0).await;
        for _ in 0..2 {
            let mut expected = [before.as_slice(), &[behind, ahead]].concat();
            expected.sort_by_key(|sample| sample.at);
            assert_eq!(all(&history, 1).await, expected);
            drop(history);
            history = store.history();
            tend(&history).await;
        }
    }
}

/// Each time it is ahead so long that whatever has ended is sealed and compacted.
#[tokio::test]
async fn a_clock_that_jumps_again_and_again_costs_nothing() {
    let store = Store::new(settings());
    let history = store.history();
    let mut taken = Vec::new();
    for round in 0..40_u32 {
        let right = at(START).after(store.clock.elapsed());
        store.clock.jump(right.after(Duration::from_hours(24 * 100 * u64::from(round % 4))));
        tend(&history).await;
        taken.push(take_one(&store, &history, f64::from(round)).await);
        store.clock.advance(Duration::from_mins(10));
        tend(&history).await;
    }
    taken.sort_by_key(|sample| sample.at);
    assert_eq!(all(&history, 1).await, taken);
}

#[tokio::test]
async fn a_clock_that_stays_ahead_is_followed_over_days() {
    let store = Store::new(settings());
    let history = store.history();
    pass(&store, &history, 0..1_440).await;
    store.clock.jump(at(START + DAY).after(YEAR));
    tend(&history).await;
    let raw = |day: &str| store.count(&format!("raw-{day}"));
    assert_eq!(raw("2026"), 1, "{:?}", store.files(""));
    // The day is two days old after a quarter of that time, but for a minute.
    for hour in 1..=13 {
        store.clock.advance(Duration::from_hours(1));
        tend(&history).await;
        assert_eq!(raw("2026"), usize::from(hour <= 12), "after {hour} hours");
    }
    assert_eq!((store.count("fine-"), store.count("coarse-")), (1, 1));
    store.clock.advance(days(46));
    tend(&history).await;
    assert_eq!(store.count("-2026"), 0, "{:?}", store.files(""));
}

#[tokio::test]
async fn a_clock_that_is_set_back_for_a_moment_and_right_again_stalls_nothing() {
    let store = Store::new(settings());
    let history = store.history();
    pass(&store, &history, 0..2 * 1_440).await;
    for back in [1, 30, 20_000] {
        let right = store.clock.now();
        store.clock.jump(at(right.as_millis() - back * DAY));
        store.clock.advance(Duration::from_secs(20));
        tend(&history).await;
        store.clock.jump(right.after(Duration::from_secs(20)));
        tend(&history).await;
    }
    assert_eq!(store.count("raw-"), 1);
    pass(&store, &history, 2 * 1_440..4 * 1_440 + 20).await;
    assert_eq!(store.count("raw-"), 2, "{:?}", store.files("raw-"));
    assert_eq!(store.count("raw-2026-10-22"), 0);
}

#[tokio::test]
async fn after_a_long_downtime_what_is_too_old_goes_in_the_end() {
    let store = Store::new(settings());
    pass(&store, &store.history(), 0..3 * 1_440).await;
    let kept = |part: &str| store.count(part);
    assert_eq!(kept("raw-"), 2);
    // No time passes for a process that does not run.
    store.clock.jump(at(START + 300 * DAY));
    let mut history = store.history();
    tend(&history).await;
    assert_eq!((kept("raw-"), kept("fine-"), kept("coarse-")), (3, 1, 1));
    let mut hours = 0;
    while kept("raw-") + kept("fine-") + kept("coarse-") > 0 {
        assert!(hours < 24 * 60, "{:?}", store.files(""));
        // It is not on for long at a time.
        for _ in 0..7 {
            store.clock.advance(Duration::from_hours(1));
            tend(&history).await;
        }
        hours += 7;
        drop(history);
        history = store.history();
    }
    assert!(hours > 24 * 20, "{hours}");
    assert!(all(&history, 1).await.is_empty());
    take_one(&store, &history, 1.0).await;
}

/// A file that says nothing is as none.
#[tokio::test]
async fn where_it_is_not_known_how_far_retention_was_it_begins_after_what_there_is() {
    for text in ["", "yesterday", "2026-10-22T00:00:00"] {
        let store = Store::new(settings());
        pass(&store, &store.history(), 0..1_440 + 100).await;
        std::fs::write(store.directory().join("retention"), text).unwrap();
        store.clock.jump(at(START + 90 * DAY));
        let history = store.history();
        tend(&history).await;
        assert_eq!((store.count("raw-"), store.count("coarse-")), (2, 1), "{text}");
        let text = std::fs::read_to_string(store.directory().join("retention")).unwrap();
        assert_eq!(Timestamp::parse(text.trim()), Ok(at(START + 2 * DAY + 2 * HOUR)));
        // The day before yesterday of then goes after what is left of a day, at four times the pace.
        store.clock.advance(Duration::from_hours(6));
        tend(&history).await;
        assert_eq!((store.count("raw-"), store.count("coarse-")), (1, 1), "{text}");
    }
}

/// In memory there is nothing but the last hours by the clock: a jump costs these, and no more than these.
#[tokio::test]
async fn memory_alone_goes_on_after_a_jump() {
    let store = Store::new(settings());
    let ring = Ring::new(RingSettings::default(), std::sync::Arc::new(store.clock.clone()));
    for offset in [0, 365 * DAY, 2 * HOUR, -30 * DAY, 5 * HOUR] {
        store.clock.jump(at(START + offset));
        store.clock.advance(Duration::from_mins(2));
        let sample = Sample { at: store.clock.now(), value: 1.0 };
        assert_eq!(ring.append(&[Entry { labels: labels(1), sample }]).await.unwrap().kept, 1);
        let now = sample.at.as_millis();
        let found = ring.select(&selection(now, now, Duration::ZERO)).await.unwrap();
        assert_eq!(found.len(), 1, "{offset}");
    }
}
