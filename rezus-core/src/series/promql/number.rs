//! Arithmetic as Prometheus has it.

use super::node::{Each, Operator};

/// A whole number as the nearest one that has a fraction: itself up to 2^53.
pub(super) fn float(number: i64) -> f64 {
    // Both halves fit.
    let high = i32::try_from(number >> 32).unwrap_or(0);
    let low = u32::try_from(number & 0xffff_ffff).unwrap_or(0);
    f64::from(high) * 4_294_967_296.0 + f64::from(low)
}

/// A count.
pub(super) fn count(number: usize) -> f64 {
    float(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A sum that keeps what single additions lose (Kahan's, as improved by Neumaier).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total {
    sum: f64,
    lost: f64,
}

impl Total {
    pub(super) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.lost +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    /// Without what was lost: where a step of a longer computation needs it.
    pub(super) fn rough(self) -> f64 {
        self.sum
    }

    /// With it.
    pub(super) fn exact(self) -> f64 {
        self.sum + self.lost
    }

    /// The sum; an infinite one has lost nothing.
    pub(super) fn get(self) -> f64 {
        if self.sum.is_infinite() { self.sum } else { self.exact() }
    }
}

/// Whether a mean that has become infinite stays as it is when this value is added.
pub(super) fn stays_infinite(mean: f64, value: f64) -> bool {
    mean.is_infinite() && if value.is_infinite() { (mean > 0.0) == (value > 0.0) } else { !value.is_nan() }
}

/// Mean and squared distances from it, value by value (Welford's).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    count: f64,
    mean: Total,
    squares: Total,
}

impl Spread {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1.0;
        let distance = value - self.mean.exact();
        self.mean.add(distance / self.count);
        self.squares.add(distance * (value - self.mean.exact()));
    }

    pub(super) fn variance(self) -> f64 {
        self.squares.exact() / self.count
    }
}

/// A quantile of values, which are sorted for it; between two, by their distance from it.
pub(super) fn quantile(quantile: f64, values: &mut [f64]) -> f64 {
    if values.is_empty() || quantile.is_nan() {
        return f64::NAN;
    }
    if quantile < 0.0 {
        return f64::NEG_INFINITY;
    }
    if quantile > 1.0 {
        return f64::INFINITY;
    }
    // What is no number comes first.
    values.sort_by(|a, b| {
        b.is_nan().cmp(&a.is_nan()).then(a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
    });
    let last = values.len().saturating_sub(1);
    let rank = quantile * count(last);
    let below = rank.floor();
    let lower = (0..values.len()).take_while(|index| count(*index) <= below).last().unwrap_or(0);
    let upper = last.min(lower + 1);
    let weight = rank - below;
    match (values.get(lower), values.get(upper)) {
        (Some(lower), Some(upper)) => lower * (1.0 - weight) + upper * weight,
        _ => f64::NAN,
    }
}

/// What an operator gives; a comparison gives what is on its left, or nothing where it does not hold.
#[expect(clippy::float_cmp, reason = "that is what is asked")]
pub(super) fn apply(operator: Operator, left: f64, right: f64) -> Option<f64> {
    let holds = match operator {
        Operator::Add => return Some(left + right),
        Operator::Subtract => return Some(left - right),
        Operator::Multiply => return Some(left * right),
        Operator::Divide => return Some(left / right),
        Operator::Remainder => return Some(left % right),
        Operator::Power => return Some(left.powf(right)),
        Operator::Atan2 => return Some(left.atan2(right)),
        Operator::Equal => left == right,
        Operator::NotEqual => left != right,
        Operator::Greater => left > right,
        Operator::Less => left < right,
        Operator::GreaterOrEqual => left >= right,
        Operator::LessOrEqual => left <= right,
    };
    holds.then_some(left)
}

/// What becomes of a value.
pub(super) fn each(function: Each, value: f64) -> f64 {
    match function {
        Each::Abs => value.abs(),
        Each::Ceil => value.ceil(),
        Each::Floor => value.floor(),
        Each::Sqrt => value.sqrt(),
        Each::Exp => value.exp(),
        Each::Ln => value.ln(),
        Each::Log2 => value.log2(),
        Each::Log10 => value.log10(),
        Each::Sign if value < 0.0 => -1.0,
        Each::Sign if value > 0.0 => 1.0,
        Each::Sign => value,
    }
}

/// The lesser of two: minus infinity where one is that, else no number where one is none.
pub(super) fn least(a: f64, b: f64) -> f64 {
    if a == f64::NEG_INFINITY || b == f64::NEG_INFINITY {
        f64::NEG_INFINITY
    } else if a.is_nan() || b.is_nan() {
        f64::NAN
    } else {
        a.min(b)
    }
}

/// The greater of two: infinity where one is that, else no number where one is none.
pub(super) fn most(a: f64, b: f64) -> f64 {
    -least(-a, -b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_keep_their_value() {
        for number in [0, 1, -1, 1_796_065_837_123, -1_796_065_837_123, (1 << 53) - 1, i64::from(i32::MIN)] {
            assert_eq!(format!("{}", float(number)), number.to_string());
        }
        assert!((float(i64::MAX) - 9.223_372_036_854_776e18).abs() < 1e4);
    }

    #[test]
    fn a_total_loses_nothing_small() {
        let mut total = Total::default();
        for value in [1.0, 1e100, 1.0, -1e100] {
            total.add(value);
        }
        assert!((total.get() - 2.0).abs() < f64::EPSILON);
        total.add(f64::INFINITY);
        assert!(total.get().is_infinite());
    }

    #[test]
    fn quantiles_lie_between_values() {
        let of = |q: f64| quantile(q, &mut [3.0, 1.0, 2.0, 4.0]);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(of(0.0), 1.0) && close(of(1.0), 4.0) && close(of(0.5), 2.5) && close(of(0.9), 3.7));
        assert!(of(-0.1) == f64::NEG_INFINITY && of(1.1) == f64::INFINITY && of(f64::NAN).is_nan());
        assert!(quantile(0.5, &mut []).is_nan() && quantile(0.0, &mut [f64::NAN, 1.0]).is_nan());
    }
}
