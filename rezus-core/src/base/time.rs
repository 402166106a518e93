//! Points in time, and the port that tells them.

use std::fmt;
use std::time::Duration;

/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z.
///
/// Shown as RFC 3339 in UTC with milliseconds: `2026-11-30T19:10:37.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Why a text is no point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a date and time of RFC 3339, such as 2026-11-30T19:10:37Z")]
pub struct TimestampError;

impl Timestamp {
    /// Makes a point in time from milliseconds since the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads a date and time of RFC 3339, with any offset and any fraction of a second (kept to the millisecond).
    ///
    /// # Errors
    ///
    /// [`TimestampError`] for any other text.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let parsed: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        Ok(Self(parsed.as_millisecond()))
    }

    /// Returns how long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }

    /// Returns the point in time that lies `span` before this one.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_sub(millis))
    }

    /// Returns the point in time that lies `span` after this one.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(millis))
    }
}

/// As its text: RFC 3339.
#[cfg(feature = "serde")]
impl serde::Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(at) => write!(f, "{at:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// The port that tells the time.
///
/// *Contract:* calls may go backwards by as much as the machine's clock was set back; callers that need an order keep
/// their own. How much time passed is told whatever the clock is set to. Never blocks.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the present time.
    fn now(&self) -> Timestamp;

    /// Returns how long ago some moment was that is the same one until the process ends. It never goes backwards, and is of no
    /// use after the process's end.
    fn elapsed(&self) -> Duration;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_number_agree() {
        let at = Timestamp::parse("2026-11-30T21:10:37.123456789+02:00");
        assert_eq!(at, Ok(Timestamp::from_millis(1_796_065_837_123)));
        assert_eq!(at.map(|t| t.to_string()).as_deref(), Ok("2026-11-30T19:10:37.123Z"));
        assert_eq!(Timestamp::parse("yesterday"), Err(TimestampError));
        assert_eq!(Timestamp::from_millis(i64::MAX).to_string(), "9223372036854775807 ms");
    }

    #[test]
    fn spans_never_run_backwards() {
        let (early, late) = (Timestamp::from_millis(1_000), Timestamp::from_millis(3_500));
        assert_eq!(late.since(early), Duration::from_millis(2_500));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(late.minus(Duration::from_millis(2_500)), early);
    }
}
