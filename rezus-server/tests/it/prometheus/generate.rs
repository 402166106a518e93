//! Samples with all that is unusual about them, and queries over all that is supported.

use std::fmt::Write as _;
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::{Entry, Labels, STALE};

use super::lab::{entry, labels};

/// Numbers that look random and are the same each time (splitmix64).
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Less than this.
    pub(super) fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).unwrap()
    }

    pub(super) fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[usize::try_from(self.below(u32::try_from(all.len()).unwrap())).unwrap()]
    }

    /// Whether something that happens once in so many times happens.
    fn is_once_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    fn fraction(&mut self) -> f64 {
        f64::from(self.below(1 << 30)) / f64::from(1 << 30)
    }
}

/// For how long there are samples: a real Prometheus takes none that are much older than an hour.
pub(super) const SPAN: Duration = Duration::from_mins(50);

/// How a series goes on.
#[derive(Clone, Copy)]
enum Course {
    Counter,
    Gauge,
    Constant(f64),
    /// Now and then no number, or infinite.
    Odd,
}

/// Samples of many series until a time.
pub(super) fn samples(until: Timestamp, dice: &mut Dice) -> Vec<Entry> {
    let begin = until.minus(SPAN);
    let mut all = Vec::new();
    let machines = ["m1", "m2", "m3"];
    for tenant in ["prod", "test"] {
        for machine in machines {
            for mode in ["idle", "user"] {
                let of = labels(tenant, "cpu_seconds_total", &[("machine", machine), ("mode", mode)]);
                all.extend(series(&of, begin, until, Course::Counter, dice));
            }
            let of = |metric: &str| labels(tenant, metric, &[("machine", machine)]);
            all.extend(series(&of("memory_bytes"), begin, until, Course::Gauge, dice));
            all.extend(series(&of("up"), begin, until, Course::Constant(1.0), dice));
            all.extend(series(&of("load"), begin, until, Course::Odd, dice));
        }
        // One that comes late and one that goes early.
        let late = labels(tenant, "memory_bytes", &[("machine", "late")]);
        all.extend(series(&late, begin.after(SPAN / 2), until, Course::Gauge, dice));
        let early = labels(tenant, "memory_bytes", &[("machine", "early")]);
        all.extend(series(&early, begin, until.minus(SPAN / 2), Course::Gauge, dice));
    }
    for (kind, zone) in [("control-plane", "a"), ("worker", "b"), ("worker", "c")]
        .into_iter()
        .zip(machines)
        .map(|((role, zone), machine)| ((role, machine), zone))
    {
        let (role, machine) = kind;
        let of = labels("prod", "machine_info", &[("machine", machine), ("role", role), ("zone", zone)]);
        all.extend(series(&of, begin, until, Course::Constant(1.0), dice));
    }
    all
}

fn series(of: &Labels, begin: Timestamp, until: Timestamp, course: Course, dice: &mut Dice) -> Vec<Entry> {
    let every = Duration::from_secs([10, 15, 30, 60][usize::try_from(dice.below(4)).unwrap()]);
    let mut at = begin.after(Duration::from_millis(dice.below(60_000).into()));
    let mut value = dice.fraction() * 1_000.0;
    let mut all = Vec::new();
    while at <= until {
        value = match course {
            Course::Counter if dice.is_once_in(40) => dice.fraction(),
            Course::Counter if dice.is_once_in(5) => value,
            Course::Counter => value + dice.fraction() * 30.0,
            Course::Gauge => value + dice.fraction() * 20.0 - 10.0,
            Course::Constant(value) => value,
            Course::Odd => match dice.below(12) {
                0 => f64::NAN,
                1 => f64::INFINITY,
                2 => f64::NEG_INFINITY,
                3 => -0.0,
                4 => 1e-9,
                5 => 1e22,
                _ => dice.fraction() * 4.0 - 2.0,
            },
        };
        all.push(entry(of, at, value));
        // On the spot, a little late, much too late, or after the series had ended.
        let pause = match dice.below(60) {
            0 => Duration::from_mins(7),
            1 => {
                all.push(entry(of, at.after(Duration::from_secs(1)), STALE));
                every * 4
            }
            2..12 => every + Duration::from_millis(dice.below(3_000).into()),
            _ => every,
        };
        at = at.after(pause);
    }
    all.retain(|entry| entry.sample.at <= until);
    all
}

const SELECTORS: [&str; 16] = [
    "up",
    "load",
    "memory_bytes",
    "cpu_seconds_total",
    r#"cpu_seconds_total{mode="idle"}"#,
    r#"cpu_seconds_total{mode!="idle",tenant="prod"}"#,
    r#"memory_bytes{machine=~"m.*"}"#,
    r#"memory_bytes{machine!~"m1|late"}"#,
    r#"{__name__=~"up|load",tenant="test"}"#,
    r#"{__name__="memory_bytes",nothing=""}"#,
    "machine_info",
    "nowhere",
    "memory_bytes offset 3m",
    "up offset -1m",
    "load @ start()",
    "memory_bytes @ end() offset 90s",
];

const COUNTERS: [&str; 3] =
    ["cpu_seconds_total", r#"cpu_seconds_total{mode="user"}"#, r#"cpu_seconds_total{tenant=~"prod|dev"}"#];

const GAUGES: [&str; 4] = ["memory_bytes", "load", r#"memory_bytes{tenant="prod"}"#, "up"];

const RANGES: [&str; 7] = ["30s", "1m", "2m", "5m", "10m", "90s", "25m"];

const OF_RANGES: [&str; 17] = [
    "rate",
    "irate",
    "increase",
    "delta",
    "idelta",
    "changes",
    "resets",
    "avg_over_time",
    "min_over_time",
    "max_over_time",
    "sum_over_time",
    "count_over_time",
    "last_over_time",
    "present_over_time",
    "stddev_over_time",
    "stdvar_over_time",
    "quantile_over_time",
];

const OF_EACH: [&str; 9] = ["abs", "ceil", "floor", "sqrt", "exp", "ln", "log2", "log10", "sgn"];

const OPERATORS: [&str; 13] = ["+", "-", "*", "/", "%", "^", "atan2", "==", "!=", ">", "<", ">=", "<="];

const GROUPINGS: [&str; 8] = [
    "",
    "by (tenant)",
    "by (machine, tenant)",
    "by (nothing)",
    "without (machine)",
    "without (machine, mode, tenant)",
    "by (__name__)",
    "without ()",
];

/// A vector of one series at most for each tenant and machine.
const PLAIN: [&str; 4] = ["up", "memory_bytes", "load", r#"cpu_seconds_total{mode="idle"}"#];

/// Writes a query.
pub(super) fn query(dice: &mut Dice) -> String {
    if dice.is_once_in(12) { scalar(dice, 3) } else { vector(dice, 3) }
}

fn scalar(dice: &mut Dice, depth: u32) -> String {
    match dice.below(if depth == 0 { 2 } else { 6 }) {
        0 => dice.one_of(&["0", "1", "2.5", "-3", "1e3", "0.25", "NaN", "Inf", "100"]).to_owned(),
        1 => dice.one_of(&["time()", "pi()"]).to_owned(),
        2 => format!("scalar({})", vector(dice, depth - 1)),
        3 => format!("-({})", scalar(dice, depth - 1)),
        _ => {
            let (left, right) = (scalar(dice, depth - 1), scalar(dice, depth - 1));
            let operator = dice.one_of(&OPERATORS);
            let is_comparison = operator.starts_with(['=', '!', '<', '>']);
            format!("({left}) {operator} {}({right})", if is_comparison { "bool " } else { "" })
        }
    }
}

fn over_time(dice: &mut Dice) -> String {
    let function = dice.one_of(&OF_RANGES);
    let selector = if dice.is_once_in(2) { dice.one_of(&COUNTERS) } else { dice.one_of(&GAUGES) };
    let range = dice.one_of(&RANGES);
    let more = dice.one_of(&["", "", "", " offset 2m", " offset -30s", " @ end()"]);
    let quantile = if function == "quantile_over_time" {
        dice.one_of(&["0.5, ", "0.99, ", "0, ", "-1, ", "2, "])
    } else {
        ""
    };
    format!("{function}({quantile}{selector}[{range}]{more})")
}

fn vector(dice: &mut Dice, depth: u32) -> String {
    if depth == 0 {
        return if dice.is_once_in(3) { dice.one_of(&SELECTORS).to_owned() } else { over_time(dice) };
    }
    let inner = |dice: &mut Dice| vector(dice, depth - 1);
    match dice.below(13) {
        0 => dice.one_of(&SELECTORS).to_owned(),
        1 | 2 => over_time(dice),
        3 => format!("{}({})", dice.one_of(&OF_EACH), inner(dice)),
        4 => format!("-({})", inner(dice)),
        5 | 6 => {
            let by = dice.one_of(&["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"]);
            format!("{by} {} ({})", dice.one_of(&GROUPINGS), inner(dice))
        }
        7 => {
            let of = inner(dice);
            format!("quantile {} ({}, {of})", dice.one_of(&GROUPINGS), dice.one_of(&["0.5", "0.9", "1.5"]))
        }
        8 => {
            let (of, scalar) = (inner(dice), scalar(dice, 1));
            match dice.below(5) {
                0 => format!("clamp_min({of}, {scalar})"),
                1 => format!("clamp_max({of}, {scalar})"),
                2 => format!("clamp({of}, -1, {scalar})"),
                3 => format!("round({of}, 0.25)"),
                _ => format!("timestamp({of})"),
            }
        }
        9 | 10 => {
            let (of, scalar) = (inner(dice), scalar(dice, 1));
            let operator = dice.one_of(&OPERATORS);
            let is_comparison = operator.starts_with(['=', '!', '<', '>']);
            let is_bool = if is_comparison && dice.is_once_in(2) { "bool" } else { "" };
            let (left, right) = if dice.is_once_in(2) { (of, scalar) } else { (scalar, of) };
            format!("({left}) {operator} {is_bool} ({right})")
        }
        11 => matched(dice),
        _ => {
            let operator = dice.one_of(&["and", "or", "unless"]);
            let on = dice.one_of(&["", "on (machine)", "ignoring (mode)", "on (tenant, machine)"]);
            format!("({}) {operator} {on} ({})", inner(dice), inner(dice))
        }
    }
}

/// Vectors with each other, most of which match.
fn matched(dice: &mut Dice) -> String {
    let (left, right) = (dice.one_of(&PLAIN), dice.one_of(&PLAIN));
    let operator = dice.one_of(&OPERATORS);
    let is_comparison = operator.starts_with(['=', '!', '<', '>']);
    let is_bool = if is_comparison && dice.is_once_in(2) { "bool" } else { "" };
    let mut text = String::new();
    match dice.below(5) {
        0 => write!(text, "{left} {operator} {is_bool} on (tenant, machine) {right}"),
        1 => write!(text, "{left} {operator} {is_bool} ignoring (mode) {right}"),
        2 => write!(text, "cpu_seconds_total {operator} {is_bool} on (tenant, machine) group_left {right}"),
        3 => write!(
            text,
            "{left} {operator} {is_bool} on (tenant, machine) group_left (role, zone) machine_info"
        ),
        _ => write!(text, "machine_info {operator} {is_bool} on (tenant, machine) group_right (role) {left}"),
    }
    .unwrap();
    text
}
