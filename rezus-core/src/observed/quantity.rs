//! Amounts as Kubernetes writes them: `250m`, `1.5Gi`, `129e6`.
//!
//! The grammar is that of `k8s.io/apimachinery/pkg/api/resource`: a sign, digits with a fraction (`1.` and `.5` too), and
//! `n`, `u`, `m`, nothing, `k`, `M`, `G`, `T`, `P`, `E` in tens, `Ki` to `Ei` in twos, or `e` or `E` with an exponent. `1E` is
//! 10^18, `1E3` is 1000.

use std::str::FromStr;

/// An amount in billionths, exact; what is finer is rounded away from zero, and what is beyond 2^63-1 units is 2^63-1 units,
/// as Kubernetes itself does.
///
/// ```
/// use rezus_core::observed::Quantity;
///
/// let cores: Quantity = "250m".parse()?;
/// assert_eq!(cores.nanocores(), Some(250_000_000));
/// let memory: Quantity = "1.5Gi".parse()?;
/// assert_eq!(memory.whole(), Some(1_610_612_736));
/// # Ok::<(), rezus_core::observed::QuantityError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

/// Why a text is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// There is no number before the suffix.
    #[error("an amount begins with a number")]
    Number,
    /// What follows the number is no suffix.
    #[error("an amount ends in one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent")]
    Suffix,
    /// It has more than 128 bytes.
    #[error("an amount has no more than 128 bytes")]
    Length,
}

const NANO: i128 = 1_000_000_000;
/// 2^63-1 units, in billionths.
const LARGEST: u128 = 9_223_372_036_854_775_807_000_000_000;
const MAX_BYTES: usize = 128;

impl Quantity {
    /// The amount in billionths.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// The amount in units, rounded up: bytes, or pods. `None` where it is negative, as no amount of a node is.
    pub fn whole(self) -> Option<u64> {
        // The largest amount is 2^63-1 units, so what is not negative fits.
        u64::try_from(self.0.checked_add(NANO - 1)?.div_euclid(NANO)).ok().filter(|_| self.0 >= 0)
    }

    /// An amount of cores in billionths of one; `u64::MAX` for more than that holds, `None` where it is negative.
    pub fn nanocores(self) -> Option<u64> {
        u128::try_from(self.0).ok().map(|nanos| u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MAX_BYTES {
            return Err(QuantityError::Length);
        }
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .bytes()
            .position(|byte| !byte.is_ascii_digit() && byte != b'.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.len() + fraction.len() == 0 {
            return Err(QuantityError::Number);
        }
        let (factor, exponent) = scale(suffix)?;
        let digits = whole.bytes().chain(fraction.bytes()).map(|byte| byte - b'0').collect::<Vec<_>>();
        let behind_point = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        let size = nanos(&digits, factor, exponent.saturating_add(9).saturating_sub(behind_point));
        let size = i128::try_from(size).unwrap_or(i128::MAX);
        Ok(Self(if negative { -size } else { size }))
    }
}

/// The factor (a power of two, or 1) and the power of ten that a suffix stands for.
fn scale(suffix: &str) -> Result<(u64, i64), QuantityError> {
    Ok(match suffix {
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "" => (1, 0),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
            // Also with a sign.
            (1, exponent.parse().map_err(|_| QuantityError::Suffix)?)
        }
    })
}

/// `digits * factor * 10^exponent`, rounded up, and no more than [`LARGEST`]. Digit by digit, since neither the digits nor
/// their product need fit any number.
fn nanos(digits: &[u8], factor: u64, exponent: i64) -> u128 {
    let mut product = Vec::with_capacity(digits.len() + 20);
    let mut carry = 0_u128;
    for digit in digits.iter().rev() {
        carry += u128::from(*digit) * u128::from(factor);
        product.push(carry % 10);
        carry /= 10;
    }
    while carry > 0 {
        product.push(carry % 10);
        carry /= 10;
    }
    // `product` has its lowest digit first: what is below one billionth goes, and rounds up.
    let below = usize::try_from(exponent.saturating_neg().max(0)).unwrap_or(usize::MAX).min(product.len());
    let (finer, rest) = product.split_at(below);
    let mut size = 0_u128;
    for digit in rest.iter().rev() {
        size = (size * 10 + digit).min(LARGEST);
    }
    for _ in 0..exponent.clamp(0, 28) {
        size = (size * 10).min(LARGEST);
    }
    size.saturating_add(u128::from(finer.iter().any(|digit| *digit > 0))).min(LARGEST)
}
