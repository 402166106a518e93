//! A process that appends, seals and compacts is killed at any moment, again and again: what was acknowledged is there.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use rezus_adapters::history::HistorySettings;
use rezus_core::series::{Series, TimeSeriesSink as _};

use super::fixture::{DAY, HOUR, MINUTE, START, Store, at, entries, is_full, labels, samples, select, tend};

/// Tells a process of these tests that it is the one to be killed, and where it is to write.
const DIRECTORY: &str = "REZUS_TEST_HISTORY";

/// The first minute that it appends.
const FIRST: &str = "REZUS_TEST_HISTORY_FIRST";

const SERIES: u32 = 8;

fn settings() -> HistorySettings {
    HistorySettings { raw: Duration::from_hours(24 * 10), ..HistorySettings::default() }
}

/// Appends minute after minute and says so; meanwhile does all else there is to do. Ends after so many.
async fn write(store: &Store, first: u32, count: u32, acknowledge: impl Fn(u32)) {
    let history = store.history();
    for minute in first..first.saturating_add(count) {
        store.clock.set(at(START + i64::from(minute) * MINUTE));
        history.append(&entries(SERIES, minute..minute + 1)).await.unwrap();
        acknowledge(minute);
        if minute % 8 == 0 {
            history.tend().await.unwrap();
        }
    }
}

/// The process that is killed runs this test alone; in a run of all it writes for a day, and ends.
#[tokio::test]
async fn what_is_written_until_the_end_is_there_without_an_orderly_one() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let first = std::env::var(FIRST).unwrap().parse().unwrap();
        let store = Store::at(directory.into(), settings());
        write(&store, first, u32::MAX, |minute| println!("\nappended {minute}")).await;
        return;
    }
    let store = Store::new(settings());
    write(&store, 0, 1_500, |_| ()).await;
    verify(&store, 1_499).await;
}

/// What there is: of each series all samples until a minute, and of the next one all or nothing; rollups of days that were
/// compacted count all of them. Returns the minute to go on with.
async fn verify(store: &Store, last: u32) -> u32 {
    let history = store.history();
    let damaged = history.tend().await.unwrap().set_aside;
    assert!(damaged.is_empty(), "{damaged:?}");
    let end = START + i64::from(last + 1) * MINUTE;
    let since = (end - 4 * DAY).max(START);
    let first = u32::try_from((since - START) / MINUTE).unwrap();
    let mut went_on = false;
    for series in 0..SERIES {
        let found = select(&history, series, since, end, Duration::ZERO).await.unwrap();
        let whole = samples(series, first..last + 2);
        let acknowledged = samples(series, first..last + 1).len();
        went_on |= found.samples.len() > acknowledged;
        assert!(found.rolled.is_empty());
        assert!(
            found.samples.len() >= acknowledged,
            "series {series}: {} of {acknowledged}",
            found.samples.len()
        );
        assert_eq!(found.samples, whole[..found.samples.len()], "series {series}");

        let empty = Series { labels: labels(series), rolled: Vec::new(), samples: Vec::new() };
        let wide = select(&history, series, START, end, Duration::from_hours(1)).await.unwrap_or(empty);
        for (hour, rollup) in (0..).zip(&wide.rolled) {
            assert_eq!(rollup.from, at(START + hour * HOUR));
            assert!(series % 4 != 2 || rollup.count == 60, "{rollup:?}");
        }
    }
    last + 1 + u32::from(went_on)
}

#[tokio::test]
async fn a_kill_at_any_moment_loses_nothing_that_was_acknowledged() {
    let kills = if is_full() { 200 } else { 10 };
    let store = Store::new(settings());
    let mut next = 0;
    for kill in 0..kills {
        let random = RandomState::new().build_hasher().finish();
        // Not so long that there is more than can be looked at, nor so short that nothing happens.
        let wait = Duration::from_micros(5_000 + random % 400_000);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["what_is_written_until_the_end_is_there_without_an_orderly_one", "--nocapture"])
            .env(DIRECTORY, store.directory())
            .env(FIRST, next.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acknowledged =
            |line: &str| line.strip_prefix("appended ").and_then(|minute| minute.parse::<u32>().ok());
        let mut last = lines.by_ref().find_map(|line| acknowledged(&line.unwrap())).unwrap();
        tokio::time::sleep(wait).await;
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before it was killed, however late it is read.
        for line in lines.map_while(Result::ok) {
            last = acknowledged(&line).unwrap_or(last);
        }
        println!("kill {kill}: after {wait:?}, at minute {last}, with {} files", store.files("").len());
        store.clock.set(at(START + i64::from(last) * MINUTE));
        next = verify(&store, last).await;
    }
    store.clock.set(at(START + i64::from(next) * MINUTE + DAY));
    assert!(tend(&store.history()).await.is_empty());
    assert!(store.files(".new").is_empty() && store.files("damaged").is_empty(), "{:?}", store.files(""));
    assert!(next > 60 * 10, "{next}: hardly anything was written");
}
