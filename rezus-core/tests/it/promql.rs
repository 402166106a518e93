//! Laws of queries over series.

use std::time::Duration;

use proptest::prelude::*;
use rezus_core::base::Timestamp;
use rezus_core::series::promql::{EvaluateError, Line, ParseError, Query, Range, RangeError, Value};
use rezus_core::series::{Labels, NAME, Rollup, Sample, Selection, Series, TENANT};

/// A whole hour, in milliseconds since the epoch.
const HOUR: i64 = 1_796_061_600_000;

const LIMIT: usize = 1_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(HOUR + seconds * 1_000)
}

fn labels(metric: &str, machine: &str) -> Labels {
    Labels::new([(NAME, metric), (TENANT, "prod"), ("machine", machine)]).unwrap()
}

fn series(metric: &str, machine: &str, samples: impl IntoIterator<Item = (i64, f64)>) -> Series {
    let samples = samples.into_iter().map(|(seconds, value)| Sample { at: at(seconds), value });
    Series { labels: labels(metric, machine), rolled: Vec::new(), samples: samples.collect() }
}

/// What a store would give.
fn select(all: &[Series], selection: &Selection) -> Vec<Series> {
    let is_within = |sample: &&Sample| (selection.from..=selection.to).contains(&sample.at);
    let cut = |series: &Series| Series {
        labels: series.labels.clone(),
        rolled: series
            .rolled
            .iter()
            .filter(|span| span.from <= selection.to && span.from.after(span.width) > selection.from)
            .copied()
            .collect(),
        samples: series.samples.iter().filter(is_within).copied().collect(),
    };
    let meant = all.iter().filter(|series| selection.is_of(&series.labels)).map(cut);
    meant.filter(|series| !series.rolled.is_empty() || !series.samples.is_empty()).collect()
}

fn evaluate(query: &str, range: Range, all: &[Series]) -> Result<Value, EvaluateError> {
    let query = Query::parse(query).unwrap();
    let selections = query.selections(range, None, LIMIT);
    let data: Vec<_> = selections.iter().map(|selection| select(all, selection)).collect();
    query.evaluate(range, &data, LIMIT, &|| false)
}

fn lines(query: &str, range: Range, all: &[Series]) -> Vec<Line> {
    match evaluate(query, range, all).unwrap() {
        Value::Matrix(lines) => lines,
        other => panic!("{other:?}"),
    }
}

fn elements(query: &str, time: Timestamp, all: &[Series]) -> Vec<(Labels, Sample)> {
    match evaluate(query, Range::at(time), all).unwrap() {
        Value::Vector(elements) => elements,
        other => panic!("{other:?}"),
    }
}

fn by_labels(mut elements: Vec<(Labels, Sample)>) -> Vec<(Labels, Sample)> {
    elements.sort_by(|a, b| a.0.cmp(&b.0));
    elements
}

fn only(query: &str, time: Timestamp, all: &[Series]) -> Option<f64> {
    let elements = elements(query, time, all);
    assert!(elements.len() < 2, "{elements:?}");
    elements.first().map(|(_, sample)| sample.value)
}

fn is_close(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// Seconds of samples, rising, none twice.
fn times() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::btree_set(0_i64..3_600, 2..60).prop_map(|all| all.into_iter().collect())
}

/// Spans of five minutes made of samples.
fn rolled(samples: &[Sample]) -> Vec<Rollup> {
    let width = Duration::from_mins(5);
    let bucket = |sample: &Sample| sample.at.as_millis().div_euclid(300_000);
    let mut before: Option<f64> = None;
    let mut spans = Vec::new();
    for bucketed in samples.chunk_by(|a, b| bucket(a) == bucket(b)) {
        let values = || bucketed.iter().map(|sample| sample.value);
        let mut increase = 0.0;
        for value in values() {
            increase += before.map_or(0.0, |before| if value < before { value } else { value - before });
            before = Some(value);
        }
        let last = bucketed.last().unwrap();
        spans.push(Rollup {
            from: Timestamp::from_millis(bucket(last) * 300_000),
            width,
            min: values().fold(f64::INFINITY, f64::min),
            max: values().fold(f64::NEG_INFINITY, f64::max),
            sum: values().sum(),
            count: bucketed.len().try_into().unwrap(),
            last: last.value,
            last_at: last.at,
            increase,
        });
    }
    spans
}

/// A series of which only spans are kept until a whole number of them.
fn rolled_until(series: Series, seconds: i64) -> Series {
    let (old, samples): (Vec<_>, Vec<_>) =
        series.samples.into_iter().partition(|sample| sample.at < at(seconds));
    Series { rolled: rolled(&old), samples, ..series }
}

const QUERIES: [&str; 14] = [
    "a",
    "a offset 1m",
    "a + on (machine) b",
    "sum(a)",
    "rate(a[5m])",
    "increase(a[10m])",
    "max_over_time(a[7m])",
    "sum by (machine) (rate(a[5m]))",
    "a > 50",
    "a > bool 50",
    "topk(1, a)",
    "a and on (machine) b",
    "{__name__=~\"a|b\"}",
    "avg_over_time(a[5m]) - scalar(sum(b))",
];

fn two_metrics() -> impl Strategy<Value = Vec<Series>> {
    let one = || (times(), prop::collection::vec(0_i32..100, 60));
    (one(), one(), one(), one()).prop_map(|(a, b, c, d)| {
        let of = |metric: &str, machine: &str, (times, values): (Vec<i64>, Vec<i32>)| {
            series(metric, machine, times.into_iter().zip(values.into_iter().map(f64::from)))
        };
        vec![of("a", "m1", a), of("a", "m2", b), of("b", "m1", c), of("b", "m2", d)]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// How often a counter begins anew changes nothing of how much it counted.
    #[test]
    fn a_rate_does_not_depend_on_when_a_counter_began_anew(
        times in times(),
        steps in prop::collection::vec(0_u16..1_000, 60),
        resets in prop::collection::vec(any::<bool>(), 60),
    ) {
        let (mut whole, mut broken) = (vec![(times[0], 5.0)], vec![(times[0], 5.0)]);
        for ((time, step), is_reset) in times[1..].iter().zip(&steps).zip(&resets) {
            let step = f64::from(*step);
            whole.push((*time, whole.last().unwrap().1 + step));
            // What it counts after it began anew must be less than what it had, or nobody could tell.
            let before: f64 = broken.last().unwrap().1;
            broken.push((*time, if *is_reset && step < before { step } else { before + step }));
        }
        let (whole, broken) = ([series("a", "m", whole)], [series("a", "m", broken)]);
        for query in ["rate(a[1h])", "increase(a[1h])"] {
            let (expected, found) = (only(query, at(3_600), &whole), only(query, at(3_600), &broken));
            prop_assert!(is_close(expected.unwrap_or(-1.0), found.unwrap_or(-1.0)), "{expected:?} {found:?}");
        }
    }

    /// A step of a range is what a query at that time gives.
    #[test]
    fn a_step_is_a_query_at_its_time(
        all in two_metrics(),
        begin in 0_i64..3_000,
        step in 15_u64..600,
        edge in 0_i64..3_600,
    ) {
        let all: Vec<_> = all.into_iter().map(|series| rolled_until(series, edge / 300 * 300)).collect();
        let range = Range::new(at(begin), at(3_700), Duration::from_secs(step)).unwrap();
        for query in QUERIES {
            let lines = lines(query, range, &all);
            for time in range.times() {
                let expected = by_labels(elements(query, time, &all));
                let at_time = |line: &Line| {
                    let sample = line.samples.iter().find(|sample| sample.at == time)?;
                    Some((line.labels.clone(), *sample))
                };
                let found: Vec<_> = lines.iter().filter_map(at_time).collect();
                prop_assert_eq!(found, expected, "{} at {}", query, time);
            }
        }
    }

    /// In which order series come is of no meaning.
    #[test]
    fn the_order_of_series_does_not_matter(all in two_metrics(), turn in 1_usize..4) {
        let mut turned = all.clone();
        turned.rotate_left(turn);
        for query in QUERIES {
            let found = by_labels(elements(query, at(3_600), &turned));
            let expected = by_labels(elements(query, at(3_600), &all));
            // Of equal ones the first is kept.
            if query.starts_with("topk") {
                let values = |all: &[(Labels, Sample)]| all.iter().map(|it| it.1).collect::<Vec<_>>();
                prop_assert_eq!(values(&found), values(&expected));
            } else {
                prop_assert_eq!(found, expected, "{}", query);
            }
        }
    }

    /// Grouping by nothing is no grouping; by everything it is each for itself; groups add up.
    #[test]
    fn groups_add_up(all in two_metrics()) {
        let time = at(3_600);
        prop_assert_eq!(elements("sum(a)", time, &all), elements("sum by () (a)", time, &all));
        let each = elements("sum by (__name__, tenant, machine) (a)", time, &all);
        prop_assert_eq!(each, elements("a", time, &all));
        prop_assert_eq!(only("sum(sum by (machine) (a))", time, &all), only("sum(a)", time, &all));
        prop_assert_eq!(only("sum(count by (machine) (a))", time, &all), only("count(a)", time, &all));
    }

    /// Spans say of windows that hold whole ones what samples say.
    #[test]
    fn spans_and_samples_agree_of_whole_windows(
        times in times(),
        values in prop::collection::vec(0_u32..1_000, 60),
        windows in 1_i64..6,
    ) {
        // None on an edge: that would be in both windows.
        let times = times.into_iter().filter(|time| time % 300 != 0);
        let raw = series("a", "m", times.zip(values.into_iter().map(f64::from)));
        let spans = Series { rolled: rolled(&raw.samples), samples: Vec::new(), ..raw.clone() };
        let (raw, spans) = ([raw], [spans]);
        for function in ["min", "max", "sum", "count", "last", "present", "avg"] {
            for end in (windows * 300..=3_600).step_by(300) {
                let query = format!("{function}_over_time(a[{}m])", windows * 5);
                let (expected, found) = (only(&query, at(end), &raw), only(&query, at(end), &spans));
                prop_assert_eq!(expected.is_some(), found.is_some());
                prop_assert!(is_close(expected.unwrap_or(0.0), found.unwrap_or(0.0)), "{query}: {expected:?} {found:?}");
            }
        }
    }

    /// A counter that is first kept in spans and then in samples counted as much as it did.
    #[test]
    fn counters_go_on_from_spans_to_samples(
        values in prop::collection::vec(0_u32..1_000, 120),
        cut in 12_usize..100,
        is_whole in any::<bool>(),
    ) {
        let samples = (0_i64..).map(|step| step * 30 + 7).zip(values.into_iter().map(f64::from));
        let raw = series("a", "m", samples);
        let edge = raw.samples[cut].at.since(at(0)).as_secs() / 300 * 300;
        let mixed = rolled_until(raw.clone(), edge.try_into().unwrap());
        let first = &mixed.rolled[0];
        // The whole of the first span is seen, or nothing but its last value.
        let begin = if is_whole { first.from } else { first.last_at };
        let end = raw.samples.last().unwrap().at;
        let seen = raw.samples.windows(2).filter(|pair| is_whole || pair[0].at >= begin);
        let counted: f64 =
            seen.map(|pair| rezus_core::series::counter_increase(pair[0].value, pair[1].value)).sum();
        let query = format!("increase(a[{}ms])", end.since(begin).as_millis());
        let found = only(&query, end, &[mixed]).unwrap();
        prop_assert!(is_close(found, counted), "{found} {counted}");
    }

    /// Whatever is asked is refused or answered.
    #[test]
    fn no_text_is_too_odd(text in "[a-c0-9 (){}\\[\\]\"=~!<>+*/^%@:,.mbysuoraten_-]{0,40}") {
        if let Ok(query) = Query::parse(&text) {
            let range = Range::new(at(0), at(100), Duration::from_secs(10)).unwrap();
            let all = [series("a", "m", [(0, 1.0), (50, 2.0)]), series("b", "m", [(0, 1.0)])];
            let data: Vec<_> =
                query.selections(range, None, LIMIT).iter().map(|selection| select(&all, selection)).collect();
            drop(query.evaluate(range, &data, LIMIT, &|| false));
        }
    }
}

#[test]
fn what_needs_each_sample_says_so_of_spans() {
    let raw =
        series("a", "m", (0..60).map(|minute| (minute * 60, f64::from(i32::try_from(minute).unwrap()))));
    let spans = [Series { rolled: rolled(&raw.samples), samples: Vec::new(), ..raw }];
    for (query, function) in [
        ("quantile_over_time(0.5, a[30m])", "quantile_over_time"),
        ("stddev_over_time(a[30m])", "stddev_over_time"),
        ("changes(a[30m])", "changes"),
    ] {
        let refused = evaluate(query, Range::at(at(3_600)), &spans);
        assert_eq!(refused, Err(EvaluateError::NeedsSamples { function }));
    }
    assert_eq!(only("resets(a[30m])", at(90_000), &spans), None);
    let rate = only("rate(a[30m])", at(3_600), &spans).unwrap();
    assert!((rate - 1.0 / 60.0).abs() < 1e-3, "{rate}");
}

#[test]
fn spans_are_asked_for_where_a_window_holds_enough_of_them() {
    let range = Range::new(at(0), at(86_400), Duration::from_hours(1)).unwrap();
    let widths = |query: &str| -> Vec<u64> {
        let selections = Query::parse(query).unwrap().selections(range, None, LIMIT);
        selections.iter().map(|selection| selection.width.as_secs() / 60).collect()
    };
    assert_eq!(widths("a"), [60]);
    assert_eq!(widths("rate(a[25m]) / avg_over_time(b[5h])"), [5, 60]);
    assert_eq!(widths("timestamp(a) + irate(a[5h]) + changes(a[5h])"), [0, 0, 0]);
    let now = Query::parse("a").unwrap().selections(Range::at(at(0)), None, LIMIT);
    assert_eq!((now[0].width, now[0].from, now[0].to), (Duration::ZERO, at(-300), at(0)));
    let back = Query::parse("rate(a[10m] offset 1h)").unwrap().selections(range, None, LIMIT);
    assert_eq!((back[0].from, back[0].to), (at(-4_200), at(82_800)));
    let fixed = Query::parse("a @ end()").unwrap().selections(range, None, LIMIT);
    assert_eq!((fixed[0].from, fixed[0].to), (at(86_100), at(86_400)));
}

#[test]
fn ranges_have_an_end_and_no_more_steps_than_prometheus_allows() {
    let new = |from: i64, to: i64, step: u64| Range::new(at(from), at(to), Duration::from_secs(step));
    assert_eq!(new(1, 0, 1), Err(RangeError::Backwards));
    assert_eq!(new(0, 1, 0), Err(RangeError::NoStep));
    assert_eq!(new(0, 11_001, 1), Err(RangeError::TooMany));
    assert_eq!(new(0, 11_000, 1).unwrap().times().count(), 11_001);
    assert_eq!(new(0, 5, 2).unwrap().times().collect::<Vec<_>>(), [at(0), at(2), at(4)]);
    let far = Timestamp::from_millis(i64::MAX);
    assert_eq!(Range::new(far, far, Duration::from_secs(1)).unwrap().times().count(), 1);
}

#[test]
fn what_is_no_query_is_told_apart_from_what_is_none_here() {
    assert!(matches!(Query::parse("sum(up"), Err(ParseError::Syntax(_))));
    assert!(matches!(Query::parse("up{a=~\"(\"}"), Err(ParseError::Syntax(_) | ParseError::Matcher(_))));
    assert!(matches!(Query::parse("absent(up)"), Err(ParseError::Unsupported { .. })));
    assert!(matches!(Query::parse(&"(".repeat(100_000)), Err(ParseError::TooLong { .. })));
    assert!(Query::selector("up{a=\"b\"}").is_ok_and(|matchers| matchers.len() == 2));
    assert!(Query::selector("sum(up)").is_err() && Query::selector("up offset 5m").is_err());
}

#[test]
fn time_that_is_over_ends_a_query() {
    let query = Query::parse("a").unwrap();
    let range = Range::at(at(0));
    let data = [vec![series("a", "m", [(0, 1.0)])]];
    assert_eq!(query.evaluate(range, &data, LIMIT, &|| true), Err(EvaluateError::Timeout));
    assert!(matches!(query.evaluate(range, &data, 0, &|| false), Err(EvaluateError::TooMany { .. })));
}

#[test]
fn numbers_that_are_no_length_of_time_are_refused() {
    for query in ["up[1e30]", "up offset 1e30", "rate(up[99999999999999999999])"] {
        assert!(matches!(Query::parse(query), Err(ParseError::Syntax(_))), "{query}");
    }
}

#[test]
fn regular_expressions_are_few_and_short() {
    let of = |count: usize, expression: &str| {
        let matchers: Vec<_> = (0..count).map(|nth| format!("l{nth}=~\"{expression}\"")).collect();
        Query::parse(&format!("up{{{}}}", matchers.join(",")))
    };
    assert!(of(20, "a.*").is_ok());
    assert!(matches!(of(21, "a.*"), Err(ParseError::TooManyExpressions { .. })));
    assert!(matches!(of(2, &"a".repeat(3_000)), Err(ParseError::TooManyExpressions { .. })));
    // What is no expression is not counted.
    assert!(Query::parse(&format!("up{{l=\"{}\"}}", "~".repeat(5_000))).is_ok());
}

#[test]
fn all_parts_of_a_query_together_are_held_to_the_limit() {
    let all = [series("up", "a", (0..600).map(|minute| (minute * 60, 1.0)))];
    let range = Range::new(at(0), at(36_000), Duration::from_secs(4)).unwrap();
    let steps = 9_001;
    let evaluate = |query: &str, limit: usize| {
        let query = Query::parse(query).unwrap();
        let selections = query.selections(range, None, LIMIT);
        let data: Vec<_> = selections.iter().map(|selection| select(&all, selection)).collect();
        query.evaluate(range, &data, limit, &|| false)
    };
    assert!(evaluate("up", steps).is_ok());
    let four = "up ^ up ^ up ^ up";
    assert!(matches!(evaluate(four, 2 * steps), Err(EvaluateError::TooMany { .. })));
    assert!(evaluate(four, 20 * steps).is_ok());
}
