//! The closing table: what was promised, against whom, and what came of it.

use std::time::Duration;

/// What is promised of a ratio or a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Promise {
    /// At most so much.
    AtMost(f64),
    /// At least so much.
    AtLeast(f64),
    /// Nothing: it is shown to be compared with.
    Nothing,
}

impl Promise {
    fn is_kept(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
            Self::Nothing => true,
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    work: String,
    figure: String,
    rival: String,
    rivals_figure: String,
    value: f64,
    unit: &'static str,
    promise: Promise,
}

impl Row {
    /// How many times as long rezus takes as a rival; for [`Promise::AtLeast`], and where it is next to nothing, how many
    /// times faster it is. `ratio` is rezus's time divided by the rival's.
    pub fn times(
        work: &str,
        ours: Duration,
        rival: &str,
        rivals: Duration,
        ratio: f64,
        promise: Promise,
    ) -> Self {
        let is_speed = matches!(promise, Promise::AtLeast(_)) || ratio < 0.01;
        Self {
            work: work.to_owned(),
            figure: span(ours),
            rival: rival.to_owned(),
            rivals_figure: span(rivals),
            value: if is_speed { 1.0 / ratio } else { ratio },
            unit: if is_speed { "x faster" } else { "x" },
            promise,
        }
    }

    /// A figure that is compared with another one of any kind.
    pub fn figures(
        work: &str,
        figure: impl Into<String>,
        (rival, rivals_figure): (&str, String),
        (value, unit): (f64, &'static str),
        promise: Promise,
    ) -> Self {
        Self {
            work: work.to_owned(),
            figure: figure.into(),
            rival: rival.to_owned(),
            rivals_figure,
            value,
            unit,
            promise,
        }
    }

    /// A figure with nothing to compare it with.
    pub fn alone(
        work: &str,
        figure: impl Into<String>,
        (value, unit): (f64, &'static str),
        promise: Promise,
    ) -> Self {
        Self::figures(work, figure, ("-", "-".to_owned()), (value, unit), promise)
    }

    fn cells(&self) -> [String; 7] {
        let promised = match self.promise {
            Promise::AtMost(limit) => format!("at most {}{}", number(limit), self.unit),
            Promise::AtLeast(limit) => format!("at least {}{}", number(limit), self.unit),
            Promise::Nothing => "-".to_owned(),
        };
        let verdict = match self.promise {
            Promise::Nothing => "-",
            _ if crate::is_smoke() => "not measured",
            promise if promise.is_kept(self.value) => "kept",
            _ => "MISSED",
        };
        [
            self.work.clone(),
            self.figure.clone(),
            self.rival.clone(),
            self.rivals_figure.clone(),
            format!("{}{}", number(self.value), self.unit),
            promised,
            verdict.to_owned(),
        ]
    }
}

/// Prints a line of what is going on.
#[expect(clippy::print_stdout, reason = "a benchmark's findings are for the terminal")]
pub fn say(line: &str) {
    println!("{line}");
}

/// Prints the table.
pub fn print(title: &str, rows: &[Row]) {
    let head = ["work", "rezus", "rival", "its figure", "ratio or figure", "promised", "verdict"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let what = if crate::is_smoke() { " (each run once, over small states: no measurement)" } else { "" };
    say(&format!("\n## {title}{what}"));
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        say(cells.collect::<Vec<_>>().join(" | ").trim_end());
    }
    say("");
}

/// Writes a time to three digits.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        1.0.. => format!("{} s", number(seconds)),
        0.001.. => format!("{} ms", number(seconds * 1e3)),
        _ => format!("{} us", number(seconds * 1e6)),
    }
}

/// Writes a number to three digits.
fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_of_speed_is_the_ratio_turned_round() {
        let ms = Duration::from_millis;
        let row = Row::times("w", ms(10), "r", ms(40), 0.25, Promise::AtLeast(3.0));
        assert_eq!(row.cells()[4], "4.00x faster");
        assert!(row.promise.is_kept(row.value));
        let row = Row::times("w", ms(80), "r", ms(40), 2.0, Promise::AtMost(1.5));
        assert!(!row.promise.is_kept(row.value));
    }

    #[test]
    fn times_have_three_digits() {
        let cases =
            [(1_234, "1.23 us"), (12_345_678, "12.3 ms"), (1_500_000_000, "1.50 s"), (250_000, "250 us")];
        for (nanos, text) in cases {
            assert_eq!(span(Duration::from_nanos(nanos)), text);
        }
    }
}
