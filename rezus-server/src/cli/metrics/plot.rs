//! Lines drawn with the characters that a terminal has.

use std::time::Duration;

use rezus_core::base::Timestamp;
use textplots::{Chart, Plot as _, Shape};

/// How many lines a plot has, and how many dots a character has in it, up and across.
const LINES: u16 = 12;
const UP: u16 = 4;
const ACROSS: u16 = 2;

/// The least and the greatest width of a plot's line, in characters.
const WIDTHS: [u16; 2] = [20, 200];

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values over time. There is at least one.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) points: Vec<(Timestamp, f64)>,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// How far apart points are that belong together.
    pub(super) step: Duration,
}

impl Line {
    /// The least and the greatest value.
    pub(super) fn bounds(&self) -> [f64; 2] {
        let values = self.points.iter().map(|(_, value)| *value);
        values.fold([f64::INFINITY, f64::NEG_INFINITY], |[min, max], value| [min.min(value), max.max(value)])
    }

    /// Draws it with an axis on the left, whose ends `show` writes, and one below, within so many columns.
    pub(super) fn plot(&self, columns: u16, show: impl Fn(f64) -> String) -> Vec<String> {
        let [low, high] = self.bounds();
        // A line that never moves lies in the middle.
        let margin = if high > low { 0.0 } else { high.abs().max(1.0) / 2.0 };
        let [low, high] = [low - margin, high + margin];
        let ends = [show(high), show(low)];
        let gutter = ends.iter().map(|end| end.chars().count()).max().unwrap_or(0);
        let taken = u16::try_from(gutter).unwrap_or(u16::MAX).saturating_add(2);
        let [least, most] = WIDTHS;
        let width = columns.saturating_sub(taken).clamp(least, most);
        let dots = self.dots(width * ACROSS - 1, LINES * UP - 1, [low, high]);
        let frame = drawn(&dots, width, LINES);
        let mut lines = Vec::with_capacity(frame.len() + 2);
        let last = frame.len().saturating_sub(1);
        for (place, row) in frame.iter().enumerate() {
            let [high, low] = &ends;
            let (end, axis) = match place {
                0 => (high.as_str(), '┤'),
                place if place == last => (low.as_str(), '┤'),
                _ => ("", '│'),
            };
            lines.push(format!("{end:>gutter$} {axis}{row}").trim_end().to_owned());
        }
        let width = usize::from(width);
        lines.push(format!("{:>gutter$} └{}", "", "─".repeat(width)));
        lines.push(format!("{:>gutter$}  {}", "", self.times(width)));
        lines
    }

    /// Draws it in one line of so many characters: each point as long as a step, and blanks where there is nothing.
    pub(super) fn sparkline(&self, width: u16, [low, high]: [f64; 2]) -> String {
        let mut columns: Vec<Option<f64>> = vec![None; usize::from(width)];
        for (at, value) in &self.points {
            let [begin, end] = [*at, at.after(self.step)].map(|at| usize::from(self.across(at, width)));
            // The last one is on the edge, and a narrow one has a place all the same.
            let begin = begin.min(columns.len().saturating_sub(1));
            for column in columns.iter_mut().take(end.max(begin + 1)).skip(begin) {
                *column = Some(column.map_or(*value, |other: f64| other.max(*value)));
            }
        }
        let bar = |value: f64| BARS.get(usize::from(up(value, 7, [low, high]))).copied().unwrap_or(' ');
        columns.into_iter().map(|column| column.map_or(' ', bar)).collect()
    }

    /// The times at both ends and in the middle, of so many characters.
    pub(super) fn times(&self, width: usize) -> String {
        let whole = self.to.since(self.from);
        let show = |at: Timestamp| {
            let text = at.to_string();
            let (day, time) = (text.get(5..10).unwrap_or_default(), text.get(11..16).unwrap_or_default());
            match whole.as_secs() {
                0..600 => text.get(11..19).unwrap_or_default().to_owned(),
                600..86_400 => time.to_owned(),
                86_400..864_000 => format!("{day} {time}"),
                _ => text.get(..10).unwrap_or_default().to_owned(),
            }
        };
        let [left, middle, right] = [self.from, self.from.after(whole / 2), self.to].map(show);
        let rest = width.saturating_sub(left.len() + right.len());
        if rest < middle.len() + 2 {
            return format!("{left}{:>rest$}{right}", "");
        }
        format!("{left}{middle:^rest$}{right}")
    }

    /// Where each point is among so many dots across and up, in pieces between which there is a gap.
    fn dots(&self, across: u16, up_most: u16, bounds: [f64; 2]) -> Vec<Vec<(f32, f32)>> {
        let mut pieces: Vec<Vec<(f32, f32)>> = Vec::new();
        let mut before: Option<Timestamp> = None;
        // One that is missing is no gap yet: sources are read a little earlier and later.
        let apart = self.step * 5 / 2;
        for (at, value) in &self.points {
            let dot = (f32::from(self.across(*at, across)), f32::from(up(*value, up_most, bounds)));
            match pieces.last_mut().filter(|_| before.is_some_and(|before| at.since(before) <= apart)) {
                Some(piece) => piece.push(dot),
                None => pieces.push(vec![dot]),
            }
            before = Some(*at);
        }
        pieces
    }

    /// Which of the places from 0 to `most` a time is at.
    fn across(&self, at: Timestamp, most: u16) -> u16 {
        let whole = self.to.since(self.from).as_millis().max(1);
        let part = at.since(self.from).as_millis();
        u16::try_from(part * u128::from(most) / whole).unwrap_or(most).min(most)
    }
}

/// Which of the places from 0 to `most` a value is nearest to.
fn up(value: f64, most: u16, [low, high]: [f64; 2]) -> u16 {
    let height = |place: u16| low + (high - low) * (f64::from(place) - 0.5) / f64::from(most.max(1));
    let above = (1..=most).filter(|place| value >= height(*place)).count();
    if high > low { u16::try_from(above).unwrap_or(most) } else { most / 2 }
}

/// Draws pieces of a line on so many characters across and up.
fn drawn(pieces: &[Vec<(f32, f32)>], across: u16, up: u16) -> Vec<String> {
    let (width, height) = (u32::from(across * ACROSS), u32::from(up * UP));
    let [right, top] = [across * ACROSS, up * UP].map(f32::from);
    // A piece of one point is a dot.
    let shapes: Vec<Shape<'_>> = pieces
        .iter()
        .map(|piece| if piece.len() == 1 { Shape::Points(piece) } else { Shape::Lines(piece) })
        .collect();
    let mut chart = Chart::new_with_y_range(width, height, 0.0, right, 0.0, top);
    let mut whole = &mut chart;
    for shape in &shapes {
        whole = whole.lineplot(shape);
    }
    whole.figures();
    let frame = whole.frame();
    let rows = frame.lines().take(usize::from(up)).map(|row| row.chars().take(usize::from(across)).collect());
    // What is blank is a blank, so that nothing trails.
    rows.map(|row: String| row.replace('\u{2800}', " ").trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(i64, f64)]) -> Line {
        let at = |second: i64| Timestamp::from_millis(1_796_065_800_000 + second * 1_000);
        let points = points.iter().map(|(second, value)| (at(*second), *value)).collect();
        Line { points, from: at(0), to: at(3_600), step: Duration::from_mins(1) }
    }

    #[test]
    fn a_line_that_never_moves_lies_in_the_middle() {
        let drawn = line(&[(0, 5.0), (60, 5.0), (1_800, 5.0)]).plot(20, |value| format!("{value:.1}"));
        let rows: Vec<usize> = (0..drawn.len())
            .filter(|row| drawn[*row].contains(['⠒', '⠤', '⠉', '⣀', '⠁', '⡀', '⠂', '⠄']))
            .collect();
        assert!(matches!(rows.as_slice(), [5 | 6]), "{}", drawn.join("\n"));
        assert!(drawn[0].starts_with("7.5 ┤") && drawn[11].starts_with("2.5 ┤"), "{}", drawn.join("\n"));
    }

    proptest::proptest! {
        #[test]
        fn whatever_the_values_it_fits(
            points in proptest::collection::vec((0..3_600_i64, proptest::num::f64::NORMAL | proptest::num::f64::ZERO), 1..50),
            columns in 0..300_u16,
        ) {
            let points: std::collections::BTreeMap<i64, f64> = points.into_iter().collect();
            let drawn = line(&points.into_iter().collect::<Vec<_>>()).plot(columns, |value| format!("{value:.1e}"));
            let widest = drawn.iter().map(|row| row.chars().count()).max().unwrap();
            proptest::prop_assert_eq!(drawn.len(), 14);
            proptest::prop_assert!(widest <= usize::from(columns.max(20 + 20)), "{}", drawn.join("\n"));
        }
    }

    #[test]
    fn a_sparkline_has_blanks_where_nothing_is_known() {
        let line = line(&[(0, 0.0), (600, 1.0), (1_200, 2.0), (3_000, 7.0), (3_600, 7.0)]);
        assert_eq!(line.sparkline(13, line.bounds()), "▁ ▂ ▃     █ █");
        let wide = Line { step: Duration::from_mins(10), ..line.clone() };
        assert_eq!(wide.sparkline(12, line.bounds()), "▁▁▂▂▃▃    ██");
        assert_eq!(line.sparkline(13, [7.0, 7.0]).chars().next(), Some('▄'));
    }
}
