//! The same samples and the same queries: rezus answers as the real Prometheus does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rezus_adapters::clock::SystemClock;
use rezus_adapters::history::{History, HistorySettings};
use rezus_adapters::ring::RingSettings;
use rezus_core::base::{Clock as _, Timestamp};
use rezus_core::series::{Entry, TimeSeriesSink as _, Window};
use serde_json::Value;

use super::generate::{self, Dice};
use super::lab::encoded;
use super::real::Prometheus;
use crate::answer::Answer;
use crate::server::Server;
use crate::tools;

/// Queries of every function and operator, and of what is special about each.
const FIXED: &[&str] = &[
    "1+1",
    "2 ^ 3 ^ 2",
    "-2 ^ 2",
    "7 % 4 * 2",
    "1 == bool 2",
    "time()",
    "vector(time())",
    "scalar(up)",
    r#"scalar(up{tenant="prod",machine="m1"})"#,
    "up",
    "up{tenant=\"prod\"}",
    "{__name__=~\"up|memory.*\"}",
    "{machine=~\"m1|m2\",__name__!~\"cpu.*\"}",
    "load",
    "-load",
    "+load",
    "load @ 4000000000",
    "memory_bytes offset 1m30s",
    "memory_bytes offset -1m30s",
    "memory_bytes @ start() offset 2m",
    "last_over_time(memory_bytes[7m])",
    "present_over_time(memory_bytes{machine=\"early\"}[10m])",
    "rate(cpu_seconds_total[1m])",
    "rate(cpu_seconds_total[5m])",
    "rate(cpu_seconds_total[5m] offset 5m)",
    "rate(cpu_seconds_total[5m] @ end())",
    "increase(cpu_seconds_total[10m])",
    "irate(cpu_seconds_total[5m])",
    "delta(memory_bytes[5m])",
    "idelta(memory_bytes[5m])",
    "changes(load[10m])",
    "resets(cpu_seconds_total[30m])",
    "avg_over_time(memory_bytes[5m])",
    "avg_over_time(load[5m])",
    "min_over_time(load[5m])",
    "max_over_time(load[5m])",
    "sum_over_time(load[5m])",
    "sum_over_time(memory_bytes[5m])",
    "count_over_time(load[5m])",
    "stddev_over_time(memory_bytes[5m])",
    "stdvar_over_time(memory_bytes[5m])",
    "quantile_over_time(0.9, memory_bytes[5m])",
    "quantile_over_time(0.5, load[5m])",
    "sum(rate(cpu_seconds_total[5m]))",
    "sum by (tenant, mode) (rate(cpu_seconds_total[5m]))",
    "sum without (mode) (rate(cpu_seconds_total[5m]))",
    "avg by (mode) (cpu_seconds_total)",
    "min by (machine) (memory_bytes)",
    "max without (machine) (memory_bytes)",
    "count by (tenant) (up)",
    "count({__name__=~\".+\"}) by (__name__)",
    "group by (machine) (up)",
    "stddev by (tenant) (memory_bytes)",
    "stdvar(memory_bytes)",
    "quantile by (tenant) (0.75, memory_bytes)",
    "topk(2, memory_bytes)",
    "topk by (tenant) (1, memory_bytes)",
    "bottomk(3, memory_bytes)",
    "topk(0, up)",
    "topk(scalar(count(up)), memory_bytes)",
    "sum(load)",
    "avg(load)",
    "min(load)",
    "max(load)",
    "memory_bytes / 1024",
    "1024 / memory_bytes",
    "memory_bytes > 500",
    "500 < memory_bytes",
    "memory_bytes > bool 500",
    "memory_bytes != NaN",
    "memory_bytes / on (tenant, machine) up",
    "memory_bytes / ignoring (x) up",
    "memory_bytes > ignoring (x) load",
    "memory_bytes > bool ignoring (x) load",
    "cpu_seconds_total / on (tenant, machine) up",
    "cpu_seconds_total * on (tenant, machine) group_left (role, zone) machine_info",
    "machine_info * on (tenant, machine) group_right () up",
    "sum by (role) (up * on (tenant, machine) group_left (role) machine_info)",
    "up and on (machine) memory_bytes > 500",
    "up or load",
    "up unless on (tenant, machine) (memory_bytes > 500)",
    "memory_bytes and ignoring (machine) up",
    "{__name__=~\"up|load\"} * 2",
    "rate({__name__=~\"up|load\"}[5m])",
    "-{__name__=~\"up|load\"}",
    "abs(load)",
    "ceil(load)",
    "floor(load)",
    "round(load)",
    "round(memory_bytes, 5)",
    "clamp(load, -1, 1)",
    "clamp(load, 1, -1)",
    "clamp_min(load, 0)",
    "clamp_max(load, 0)",
    "sgn(load)",
    "sqrt(load)",
    "exp(load)",
    "ln(load)",
    "log2(memory_bytes)",
    "log10(memory_bytes)",
    "timestamp(memory_bytes)",
    "timestamp(memory_bytes offset 1m)",
    "timestamp(memory_bytes * 2)",
    "timestamp(load @ end())",
    "sort(memory_bytes)",
    "sort_desc(load)",
    "vector(1) or up",
    "load ^ 2",
    "load % 0.3",
    "atan2(1)",
    "load atan2 memory_bytes",
    "sum(nowhere)",
    "memory_bytes[2m]",
    "load[3m] offset 1m",
    "up{",
    "sum(up",
    "rate(up)",
    "up[5m",
    "up == on () up",
    "{tenant=\"\"}",
    "{}",
];

/// One after another: how far values may be apart, in parts of them. Sums are added in another order, and powers are computed
/// by another library.
const APART: f64 = 1e-9;

struct Both {
    rezus: Server,
    real: Prometheus,
    until: Timestamp,
}

impl Both {
    async fn start(seed: u64) -> Option<Self> {
        let real = Prometheus::start("that queries are answered as Prometheus answers them").await?;
        // Whole seconds: so samples lie on the edges of windows.
        let now = SystemClock.now().as_millis() / 1_000 * 1_000;
        let until = Timestamp::from_millis(now);
        let entries = generate::samples(until, &mut Dice::new(seed));
        real.write(&entries).await;
        let mut rezus = Server::start().await;
        rezus.terminate().await;
        keep(&rezus, &entries).await;
        rezus.start_again().await;
        Some(Self { rezus, real, until })
    }

    async fn ask_rezus(&self, target: &str) -> Answer {
        self.rezus.get(&format!("/prometheus/api/v1/{target}")).await
    }

    /// Asks both, and fails where they differ.
    async fn agree(&self, path: &str, parameters: &[(&str, &str)]) -> Value {
        let target = format!("{path}?{}", encoded(parameters));
        let (code, expected) = self.real.get(&format!("/api/v1/{target}")).await;
        let own = self.ask_rezus(&target).await;
        let (own_code, own) = (own.code, own.json());
        let what = || format!("{path} {parameters:?}\nrezus:      {own}\nprometheus: {expected}");
        assert_eq!((own_code, &own["status"]), (code, &expected["status"]), "{}", what());
        assert_eq!(own["errorType"], expected["errorType"], "{}", what());
        assert_eq!(own["data"]["resultType"], expected["data"]["resultType"], "{}", what());
        match expected["data"]["resultType"].as_str() {
            Some("scalar") => {
                assert!(are_close(&own["data"]["result"], &expected["data"]["result"]), "{}", what());
            }
            Some(_) => {
                let (own, expected) = (elements(&own), elements(&expected));
                assert!(own.keys().eq(expected.keys()), "{}", what());
                for (labels, expected) in &expected {
                    let is_close = own[labels].len() == expected.len()
                        && own[labels].iter().zip(expected).all(|(own, expected)| are_close(own, expected));
                    assert!(is_close, "{labels}\n{}", what());
                }
            }
            None => assert_eq!(own["data"], expected["data"], "{}", what()),
        }
        expected
    }

    fn seconds(&self, before: Duration) -> String {
        let millis = self.until.minus(before).as_millis();
        format!("{}.{:03}", millis / 1_000, millis % 1_000)
    }

    async fn query(&self, query: &str) -> Value {
        let mut last = Value::Null;
        for before in [0, 1_000, 754_321, 2_400_000] {
            let time = self.seconds(Duration::from_millis(before));
            last = self.agree("query", &[("query", query), ("time", &time)]).await;
        }
        for (minutes, step) in [(50, "1m"), (20, "17.5"), (30, "7m"), (45, "45m")] {
            let start = self.seconds(Duration::from_mins(minutes));
            let end = self.seconds(Duration::ZERO);
            let parameters = [("query", query), ("start", &*start), ("end", &*end), ("step", step)];
            self.agree("query_range", &parameters).await;
        }
        last
    }
}

/// Puts samples where a server that does not run at the moment keeps its own.
async fn keep(server: &Server, entries: &[Entry]) {
    let window = Window { late: Duration::from_hours(2), ..Window::default() };
    let settings = HistorySettings {
        ring: RingSettings { window, ..RingSettings::default() },
        ..HistorySettings::default()
    };
    let history = History::open(&server.data_dir().join("series"), settings, Arc::new(SystemClock)).unwrap();
    let appended = history.append(entries).await.unwrap();
    assert_eq!(appended.kept, u64::try_from(entries.len()).unwrap(), "{appended:?}");
}

/// Samples by labels.
fn elements(answer: &Value) -> BTreeMap<String, Vec<Value>> {
    let list = answer["data"]["result"].as_array().unwrap();
    let element = |it: &Value| {
        let labels: BTreeMap<String, Value> = serde_json::from_value(it["metric"].clone()).unwrap();
        let samples = it["values"].as_array().cloned().unwrap_or_else(|| vec![it["value"].clone()]);
        (serde_json::to_string(&labels).unwrap(), samples)
    };
    let found: BTreeMap<_, _> = list.iter().map(element).collect();
    assert_eq!(found.len(), list.len(), "twice the same labels: {answer}");
    found
}

/// Whether two samples are of one time and, but for rounding, of one value.
fn are_close(a: &Value, b: &Value) -> bool {
    let of = |sample: &Value| (sample[0].as_f64().unwrap(), sample[1].as_str().unwrap().to_owned());
    let ((at, a), (other_at, b)) = (of(a), of(b));
    let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) else { return false };
    let is_same = a == b || (x - y).abs() <= APART * x.abs().max(y.abs());
    (at - other_at).abs() < 1e-6 && is_same
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_function_and_operator_is_answered_as_prometheus_answers_it() {
    let Some(both) = Both::start(1).await else { return };
    tools::say(&format!("compared with Prometheus {}", both.real.version().await));
    for query in FIXED {
        both.query(query).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_asked_is_answered_as_prometheus_answers_it() {
    let rounds = if tools::drills_are_full() { 5 } else { 1 };
    let (mut empty, mut refused, mut asked) = (0, 0, 0);
    for seed in 0..rounds {
        let Some(both) = Both::start(100 + seed).await else { return };
        let mut dice = Dice::new(1_000 + seed);
        for _ in 0..300 {
            let answer = both.query(&generate::query(&mut dice)).await;
            asked += 1;
            refused += usize::from(answer["status"] == "error");
            empty += usize::from(answer["data"]["result"].as_array().is_some_and(Vec::is_empty));
        }
    }
    // What answers nothing proves little.
    assert!(empty + refused < asked / 2, "{empty} were empty and {refused} refused of {asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn series_and_labels_are_listed_as_prometheus_lists_them() {
    let Some(both) = Both::start(2).await else { return };
    let (start, end) = (both.seconds(generate::SPAN), both.seconds(Duration::ZERO));
    let time = [("start", start.as_str()), ("end", end.as_str())];
    let asked = |more: &[(&'static str, &'static str)]| -> Vec<(&str, &str)> {
        time.iter().copied().chain(more.iter().copied()).collect()
    };
    for matched in
        [&[][..], &["up"], &["up", "load{tenant=\"prod\"}"], &["{__name__=~\"mem.*\"}"], &["nowhere"]]
    {
        let matched: Vec<_> = matched.iter().map(|it| ("match[]", *it)).collect();
        both.agree("labels", &asked(&matched)).await;
        both.agree("label/__name__/values", &asked(&matched)).await;
        both.agree("label/machine/values", &asked(&matched)).await;
        both.agree("label/nothing/values", &asked(&matched)).await;
        let listed = async |target: &str, is_real: bool| {
            let target = format!("{target}?{}", encoded(&asked(&matched)));
            let answer = if is_real {
                both.real.get(&format!("/api/v1/{target}")).await.1
            } else {
                both.ask_rezus(&target).await.json()
            };
            let texts = answer["data"].as_array().map(|all| all.iter().map(Value::to_string).collect());
            let mut texts: Vec<String> = texts.unwrap_or_default();
            texts.sort();
            (answer["status"].clone(), texts)
        };
        assert_eq!(listed("series", false).await, listed("series", true).await, "{matched:?}");
    }
    for (path, parameters) in [
        ("query", vec![("query", "up"), ("time", "soon")]),
        ("query", vec![]),
        ("query_range", vec![("query", "up"), ("start", "1"), ("end", "0"), ("step", "1")]),
        ("query_range", vec![("query", "up"), ("start", "0"), ("end", "1"), ("step", "0")]),
        ("query_range", vec![("query", "up"), ("start", "0"), ("end", "11001"), ("step", "1")]),
        ("query_range", vec![("query", "up"), ("start", "0"), ("end", "11000"), ("step", "1")]),
        ("query_range", vec![("query", "up[5m]"), ("start", "0"), ("end", "1"), ("step", "1")]),
        ("query_range", vec![("query", "up"), ("start", "0"), ("end", "1")]),
        ("series", vec![("match[]", "{")]),
        ("series", vec![("match[]", "{x=\"\"}")]),
        ("labels", vec![("start", "soon")]),
    ] {
        both.agree(path, &parameters).await;
    }
}
