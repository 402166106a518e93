//! Samples like those of machines: names of the usual length, and values that stand still, rise, or go up and down.

use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::{Entry, Labels, Matcher, NAME, Operator, Sample, Selection, TENANT};

pub(crate) const MINUTE: i64 = 60_000;

/// A midnight, on which a week begins.
pub(crate) const START: i64 = 91 * 24 * 60 * MINUTE * 228;

/// How many metrics a machine has.
const METRICS: usize = 100;

/// How many machines a tenant has.
const MACHINES: usize = 200;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// The names of so many series, machine by machine.
pub(crate) fn names(count: usize) -> Vec<Labels> {
    (0..count)
        .map(|nth| {
            let (metric, machine) = (nth % METRICS, nth / METRICS);
            let pairs = [
                (NAME, format!("node_example_metric_{metric:03}_seconds_total")),
                (TENANT, format!("tenant-{:04}", machine / MACHINES)),
                ("machine", format!("prod-worker-{machine:05}.example.internal")),
                ("instance", format!("10.{}.{}.7:9100", machine / 250, machine % 250)),
                ("job", "node".to_owned()),
                ("mode", "idle".to_owned()),
            ];
            Labels::new(pairs.iter().map(|(name, value)| (*name, value.as_str()))).expect("names of labels")
        })
        .collect()
}

/// What they have at a minute.
pub(crate) fn entries(names: &[Labels], minute: i64) -> Vec<Entry> {
    let at = at(START + minute * MINUTE);
    let tick = u32::try_from(minute).unwrap_or(0);
    (0..)
        .zip(names)
        .map(|(nth, labels)| Entry { labels: labels.clone(), sample: Sample { at, value: value(nth, tick) } })
        .collect()
}

fn value(series: u32, tick: u32) -> f64 {
    let noise = (series ^ tick).wrapping_mul(0x9e37_79b9).rotate_left(15).wrapping_mul(0x85eb_ca6b) >> 16;
    match series % 5 {
        0 | 1 => f64::from(series),
        2 => f64::from(tick) * 60.0 * f64::from(series % 97) + f64::from(noise % 600),
        3 => f64::from(tick * 5_900 + noise % 100) / 100.0,
        _ => f64::from(noise % 10_000) * 4_096.0,
    }
}

/// Asks for a series' last hour.
pub(crate) fn hour_of_one(labels: &Labels, last: i64) -> Selection {
    let equal = |name: &str| Matcher::new(name, Operator::Equal, labels.get(name));
    let last = START + last * MINUTE;
    Selection {
        tenants: None,
        matchers: [NAME, TENANT, "machine"].into_iter().filter_map(|name| equal(name).ok()).collect(),
        from: at(last - 60 * MINUTE),
        to: at(last),
        width: Duration::ZERO,
        limit: 1_000_000,
    }
}

/// Asks for a week of the first so many series, by the hour. They are of the first machines.
pub(crate) fn week_of_some(count: usize, last: i64) -> Selection {
    let last = START + last * MINUTE;
    let machine = Matcher::new("machine", Operator::Matches, "prod-worker-00000.*");
    let metric =
        Matcher::new(NAME, Operator::Matches, &format!("node_example_metric_0({})_.*", two_digits(count)));
    Selection {
        tenants: None,
        matchers: machine.into_iter().chain(metric).collect(),
        from: at(last - 7 * 24 * 60 * MINUTE),
        to: at(last),
        width: Duration::from_hours(1),
        limit: 1_000_000,
    }
}

/// All numbers below `count` with two digits, as a choice.
fn two_digits(count: usize) -> String {
    (0..count.min(100)).map(|nth| format!("{nth:02}")).collect::<Vec<_>>().join("|")
}
