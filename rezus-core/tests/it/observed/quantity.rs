//! Amounts as Kubernetes writes them.

use proptest::prelude::*;
use rezus_core::observed::{Quantity, QuantityError};

const UNIT: i128 = 1_000_000_000;

fn nanos(text: &str) -> i128 {
    text.parse::<Quantity>().unwrap_or_else(|error| panic!("{text}: {error}")).nanos()
}

#[test]
fn every_form_of_an_amount_is_read() {
    for (text, expected) in [
        ("0", 0),
        ("1", UNIT),
        ("+1", UNIT),
        ("-1", -UNIT),
        ("1.", UNIT),
        (".5", UNIT / 2),
        ("-.5", -UNIT / 2),
        ("250m", UNIT / 4),
        ("128974848000m", 128_974_848 * UNIT),
        ("129e6", 129_000_000 * UNIT),
        ("1e+3", 1000 * UNIT),
        ("1E3", 1000 * UNIT),
        ("1E-3", UNIT / 1000),
        ("1E", 1_000_000_000_000_000_000 * UNIT),
        ("1.5Gi", 1_610_612_736 * UNIT),
        ("16Ti", 17_592_186_044_416 * UNIT),
        ("123456789n", 123_456_789),
        ("5u", 5000),
        ("2034560Ki", 2_083_389_440 * UNIT),
        ("0.1n", 1),
        ("-0.1n", -1),
        ("1e-100", 1),
        ("0e-100", 0),
        ("0e999999999999", 0),
        ("9223372036854775807", 9_223_372_036_854_775_807 * UNIT),
        ("9223372036854775808", 9_223_372_036_854_775_807 * UNIT),
        ("1e100", 9_223_372_036_854_775_807 * UNIT),
        ("-8Ei", -9_223_372_036_854_775_807 * UNIT),
        ("1.0000000000000000000000000000000000000000000000000000001", UNIT + 1),
    ] {
        assert_eq!(nanos(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_amount_is_refused() {
    for (text, error) in [
        ("", QuantityError::Number),
        ("-", QuantityError::Number),
        (".", QuantityError::Number),
        ("1.2.3", QuantityError::Number),
        ("--1", QuantityError::Number),
        ("Ki", QuantityError::Number),
        ("1 Ki", QuantityError::Suffix),
        ("1K", QuantityError::Suffix),
        ("1ki", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1e1.5", QuantityError::Suffix),
        ("1mm", QuantityError::Suffix),
        ("1ä", QuantityError::Suffix),
        ("0x10", QuantityError::Suffix),
    ] {
        assert_eq!(text.parse::<Quantity>(), Err(error), "{text}");
    }
    assert_eq!("1".repeat(129).parse::<Quantity>(), Err(QuantityError::Length));
}

#[test]
fn bytes_and_cores_are_rounded_up_and_never_negative() {
    for (text, whole, nanocores) in [
        ("0", Some(0), Some(0)),
        ("1n", Some(1), Some(1)),
        ("1500m", Some(2), Some(1_500_000_000)),
        ("-1", None, None),
        ("-1n", None, None),
        ("1E", Some(1_000_000_000_000_000_000), Some(u64::MAX)),
        ("9E", Some(9_000_000_000_000_000_000), Some(u64::MAX)),
    ] {
        let quantity = text.parse::<Quantity>().unwrap();
        assert_eq!((quantity.whole(), quantity.nanocores()), (whole, nanocores), "{text}");
    }
}

proptest! {
    #[test]
    fn whole_numbers_are_exact_with_every_suffix(
        number in 0_u32..=u32::MAX,
        (suffix, factor) in prop::sample::select(vec![
            ("n", 1), ("u", 1000), ("m", 1_000_000), ("", UNIT), ("k", 1000 * UNIT), ("M", 1_000_000 * UNIT),
            ("G", UNIT * UNIT), ("Ki", UNIT << 10), ("Mi", UNIT << 20), ("Gi", UNIT << 30), ("e2", 100 * UNIT),
            ("e-2", UNIT / 100),
        ]),
        sign in prop::sample::select(vec![("", 1), ("+", 1), ("-", -1)]),
    ) {
        prop_assert_eq!(nanos(&format!("{}{number}{suffix}", sign.0)), sign.1 * i128::from(number) * factor);
    }

    #[test]
    fn fractions_are_rounded_away_from_zero(whole in 0_u32..1000, fraction in "[0-9]{1,25}", shift in 0_u32..4) {
        let suffix = ["", "Ki", "Mi", "Gi"][usize::try_from(shift).unwrap()];
        // At most 25 + 3 digits, times 2^30: that fits.
        let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
        let divisor = 10_u128.pow(u32::try_from(fraction.len()).unwrap());
        let units = (digits / divisor) << (10 * shift);
        let rest = (digits % divisor) << (10 * shift);
        // In two steps, since the rest times 10^9 need not fit.
        let high = rest / divisor;
        let low = rest % divisor;
        let mut billionths = 0;
        let mut left = low;
        for _ in 0..9 {
            left *= 10;
            billionths = billionths * 10 + left / divisor;
            left %= divisor;
        }
        let expected = (units + high) * 1_000_000_000 + billionths + u128::from(left > 0);
        prop_assert_eq!(nanos(&format!("{whole}.{fraction}{suffix}")), i128::try_from(expected).unwrap());
    }

    #[test]
    fn no_text_is_too_odd_to_be_refused(text in ".{0,140}") {
        let _ = text.parse::<Quantity>();
    }
}
