//! What is long past is kept in spans only, and is asked for like everything else.

use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::history::{History, HistorySettings};
use rezus_core::base::{Clock, Timestamp};
use rezus_core::series::TimeSeriesSink as _;
use rezus_server::config::QueryConfig;
use rezus_testkit::clock::ManualClock;
use rezus_testkit::fake::FakeAccountStore;
use serde_json::Value;
use tempfile::TempDir;

use super::lab::{Door, encoded, entry, labels, plane};
use crate::in_process::InProcess;

const DAY: i64 = 86_400;

/// A midnight.
const BEGIN: i64 = 1_796_083_200;

const DAYS: i64 = 12;

/// Twelve days of minutes, of which samples are kept for two days and spans of five minutes for five.
async fn twelve_days(directory: &TempDir) -> InProcess {
    let clock = ManualClock::at(Timestamp::from_millis(BEGIN * 1_000));
    let of_history: Arc<dyn Clock> = Arc::new(clock.clone());
    let days = |days: u64| Duration::from_hours(days * 24);
    let settings =
        HistorySettings { raw: days(2), fine: days(5), coarse: days(100), ..HistorySettings::default() };
    let history = History::open(directory.path(), settings, of_history).unwrap();
    let total = labels("prod", "requests_total", &[]);
    let load = labels("prod", "load", &[]);
    let mut count = 0.0;
    for step in 0..DAYS * 288 {
        let mut entries = Vec::new();
        for minute in 0..5 {
            // Within a minute, so that none is on the edge of a span.
            let seconds = step * 300 + minute * 60 + 30;
            let at = Timestamp::from_millis((BEGIN + seconds) * 1_000);
            // It begins anew each 1,000 minutes and counts one a second.
            count = if (seconds / 60) % 1_000 == 0 { 60.0 } else { count + 60.0 };
            entries.push(entry(&total, at, count));
            let hour = i32::try_from(seconds / 3_600 % 24).unwrap();
            entries.push(entry(&load, at, f64::from(hour)));
        }
        clock.advance(Duration::from_mins(5));
        assert_eq!(history.append(&entries).await.unwrap().kept, 10);
        while step % 12 == 11 && history.tend().await.unwrap().more {}
    }
    plane(clock, Door::Open, FakeAccountStore::new(), QueryConfig::default(), Arc::new(history))
}

async fn ask(plane: &InProcess, query: &str, time: i64) -> Value {
    let target =
        format!("/prometheus/api/v1/query?{}", encoded(&[("query", query), ("time", &time.to_string())]));
    plane.get(&target).await.json()
}

async fn number(plane: &InProcess, query: &str, time: i64) -> f64 {
    let answer = ask(plane, query, time).await;
    let value = answer["data"]["result"][0]["value"][1].as_str();
    value.unwrap_or_else(|| panic!("{query} at {time}: {answer}")).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_kept_in_spans_is_told_as_if_it_were_kept_whole() {
    let directory = TempDir::new().unwrap();
    let plane = twelve_days(&directory).await;
    // In spans of an hour, in spans of five minutes, as it was taken.
    for day in [2, 8, 11] {
        let noon = BEGIN + day * DAY + DAY / 2;
        let is = async |query: &str, expected: f64, apart: f64| {
            let found = number(&plane, query, noon).await;
            assert!((found - expected).abs() <= apart, "{query} on day {day}: {found}, not {expected}");
        };
        is("max_over_time(load[6h])", 11.0, 0.0).await;
        is("min_over_time(load[6h])", 6.0, 0.0).await;
        is("count_over_time(load[6h])", 360.0, 0.0).await;
        is("sum_over_time(load[6h])", 60.0 * (6.0 + 7.0 + 8.0 + 9.0 + 10.0 + 11.0), 0.0).await;
        is("avg_over_time(load[6h])", 8.5, 1e-9).await;
        is("last_over_time(load[6h])", 11.0, 0.0).await;
        is("load", 11.0, 0.0).await;
        // One a second, however often it began anew.
        is("rate(requests_total[12h])", 1.0, 0.01).await;
        is("increase(requests_total[1d])", 86_400.0, 900.0).await;
    }
    let new = ask(&plane, "quantile_over_time(0.5, load[6h])", BEGIN + 11 * DAY + DAY / 2).await;
    assert_eq!(new["data"]["result"][0]["value"][1], "8.5");
    let old = ask(&plane, "quantile_over_time(0.5, load[6h])", BEGIN + 2 * DAY + DAY / 2).await;
    assert_eq!(old["errorType"], "execution", "{old}");
    assert!(old["error"].as_str().unwrap().starts_with("quantile_over_time needs every sample"), "{old}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_graph_of_all_of_it_has_no_seam() {
    let directory = TempDir::new().unwrap();
    let plane = twelve_days(&directory).await;
    for (query, step) in [
        ("rate(requests_total[12h])", "3h"),
        ("rate(requests_total[6h])", "1h"),
        ("count_over_time(load[5h]) / 300", "1h"),
        ("requests_total > bool 0", "1h"),
    ] {
        let (start, end) = ((BEGIN + DAY).to_string(), (BEGIN + DAYS * DAY).to_string());
        let form = [("query", query), ("start", &*start), ("end", &*end), ("step", step)];
        let target = format!("/prometheus/api/v1/query_range?{}", encoded(&form));
        let answer = plane.get(&target).await.expect(200, query).json();
        let values = answer["data"]["result"][0]["values"].as_array().unwrap();
        let steps = if step == "3h" { 11 * 8 + 1 } else { 11 * 24 + 1 };
        assert_eq!(values.len(), steps, "{query}");
        for value in values {
            let found: f64 = value[1].as_str().unwrap().parse().unwrap();
            assert!((found - 1.0).abs() < 0.02, "{query}: {value}");
        }
    }
}
