//! Sizes and spans with their units.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;

/// A number of bytes, written `64MiB`, `1GiB`, `500kB` or as a bare number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Text")]
pub struct ByteSize(
    /// Bytes.
    pub u64,
);

/// A length of time, written `30s`, `5m`, `1h 30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "Text")]
pub struct Span(
    /// The same as a duration.
    pub Duration,
);

/// What a configuration holds in place of a quantity.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Number(u64),
    Text(String),
}

const UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
    ("", 1),
];

impl TryFrom<Text> for ByteSize {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        match text {
            Text::Number(bytes) => Ok(Self(bytes)),
            Text::Text(text) => text.parse(),
        }
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no size: write a whole number and a unit, as 256MiB");
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let unit = text[digits.len()..].trim();
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        number.checked_mul(*factor).map(Self).ok_or_else(wrong)
    }
}

impl TryFrom<Text> for Span {
    type Error = String;

    fn try_from(text: Text) -> Result<Self, String> {
        match text {
            Text::Number(number) => number.to_string().parse(),
            Text::Text(text) => text.parse(),
        }
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no length of time: write a number and a unit, as 30s or 1h");
        let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
        Duration::try_from(span).map(Self).map_err(|_| wrong())
    }
}

/// As it is written in settings: `1h 30m`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::SignedDuration::try_from(self.0) {
            Ok(span) => write!(f, "{span:#}"),
            Err(_) => write!(f, "{}s", self.0.as_secs()),
        }
    }
}

/// In the greatest unit that leaves at least one, to a tenth.
impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, factor) in [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
            if self.0 >= factor {
                let tenths = (u128::from(self.0) * 10 + u128::from(factor) / 2) / u128::from(factor);
                return write!(f, "{}.{} {unit}", tenths / 10, tenths % 10);
            }
        }
        write!(f, "{} B", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("0", 0), ("17", 17), ("64MiB", 64 << 20), ("1 GiB", 1 << 30), ("500kB", 500_000), ("3B", 3)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for bad in ["", "MiB", "-1", "1.5MiB", "1 mib", "99999999999GiB", "1 MiB 2"] {
            assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
        }
        assert_eq!(ByteSize(1_536).to_string(), "1.5 KiB");
        assert_eq!(ByteSize(1_023).to_string(), "1023 B");
    }

    #[test]
    fn spans_are_shown_as_they_are_written() {
        for text in ["30s", "1h", "1h 30m", "24h", "500ms"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()).as_deref(), Ok(text));
        }
        for bad in ["", "-1h", "hour", "1"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }
}
