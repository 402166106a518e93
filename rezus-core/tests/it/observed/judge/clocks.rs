//! Clocks that are off, and those that are not.

use rezus_core::observed::facts::Holds;
use rezus_core::observed::judge::{ClockSeen, clocks};

fn clock(of: &str, skew: Option<i64>, offset: Option<i64>, synced: Option<bool>) -> ClockSeen<'_> {
    ClockSeen { of, skew_ms: skew, offset_ms: offset, synced }
}

/// Clocks, and what is said of them: whether any is off, and which.
type Case<'a> = (&'a [ClockSeen<'a>], Option<(Holds, &'a str)>);

#[test]
fn each_clock_is_compared_and_what_is_off_is_told() {
    let api = |millis| clock("the API server", Some(millis), None, None);
    let synced = |of, synced| clock(of, None, None, Some(synced));
    let cases: &[Case<'_>] = &[
        (&[], None),
        (&[clock("a", None, None, None)], None),
        (&[api(-900), synced("a", true)], Some((Holds::False, ""))),
        (&[api(5_000), clock("a", Some(-5_000), Some(5_000), None)], Some((Holds::False, ""))),
        (
            &[api(5_001)],
            Some((Holds::True, "the clock of the API server is more than 5 seconds ahead of rezus' own")),
        ),
        (
            &[api(-61_000)],
            Some((Holds::True, "the clock of the API server is more than 5 seconds behind rezus' own")),
        ),
        (
            &[synced("b", false), synced("a", false), synced("c", true), synced("b", false)],
            Some((Holds::True, "no other clock is followed by a, b")),
        ),
        (
            &[api(0), clock("a", Some(0), Some(-700_000), Some(true))],
            Some((Holds::True, "the clock of a is more than 5 seconds behind the one that it follows")),
        ),
        (
            &[api(0), clock("a", Some(4_000_000), None, Some(false)), synced("b", false)],
            Some((
                Holds::True,
                "the clock of a is more than 5 seconds ahead of rezus' own; no other clock is followed by b",
            )),
        ),
        // They agree with one another, so it is rezus' own.
        (
            &[api(90_000_000), clock("a", Some(90_004_000), None, Some(true))],
            Some((Holds::True, "rezus' own clock is more than 5 seconds behind those of the cluster")),
        ),
        (
            &[api(i64::MIN), clock("a", Some(i64::MIN), None, None)],
            Some((Holds::True, "rezus' own clock is more than 5 seconds ahead of those of the cluster")),
        ),
        (
            &[api(90_000_000), clock("a", Some(0), None, None)],
            Some((Holds::True, "the clock of the API server is more than 5 seconds ahead of rezus' own")),
        ),
    ];
    for (seen, expected) in cases {
        let verdict = clocks(seen);
        let told = verdict.as_ref().map(|health| (health.holds, health.message.as_str()));
        assert_eq!(told, *expected, "{seen:?}");
        let reason = verdict.map(|health| health.reason);
        let word = expected.map(|(holds, _)| if holds == Holds::True { "ClockSkew" } else { "InStep" });
        assert_eq!(reason.as_deref(), word);
    }
}

#[test]
fn of_many_a_few_are_named() {
    let names: Vec<String> = (0..1_000).map(|number| format!("m{number:04}")).collect();
    let unsynced: Vec<_> = names.iter().map(|name| clock(name, None, None, Some(false))).collect();
    let message = clocks(&unsynced).unwrap().message;
    assert_eq!(message, "no other clock is followed by m0000, m0001, m0002, m0003, m0004 and 995 more");
    let skewed: Vec<_> =
        (10_000..).zip(&names).map(|(skew, name)| clock(name, Some(skew * 7), None, None)).collect();
    let message = clocks(&skewed).unwrap().message;
    assert!(message.len() < 500 && message.ends_with("; and 995 more"), "{message}");
}
