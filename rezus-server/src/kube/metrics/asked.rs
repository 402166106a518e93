//! The time that somebody asks for, and in which steps.

use std::time::Duration;

use rezus_core::base::Timestamp;
use serde::Deserialize;

use crate::config::Span;
use crate::error::ApiError;

/// Steps that are chosen where none is asked for.
const STEPS: [u64; 14] =
    [10, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400];

/// How many points a series then has at most.
const POINTS: u32 = 120;

/// How many points may be asked for.
const MOST_POINTS: u32 = 11_000;

const RANGE: Duration = Duration::from_hours(1);

/// What is asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::kube) struct Asked {
    /// A metric's name; all of them if absent.
    pub(super) name: Option<String>,
    from: Option<String>,
    to: Option<String>,
    range: Option<String>,
    step: Option<String>,
}

/// A span of time in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    pub(super) step: Duration,
}

impl Asked {
    /// Tells which time is meant.
    ///
    /// # Errors
    ///
    /// [`ApiError`] names what cannot be read, or does not go together.
    pub(super) fn steps(&self, now: Timestamp) -> Result<Steps, ApiError> {
        let [from, to] = [time("from", self.from.as_ref())?, time("to", self.to.as_ref())?];
        let range = span("range", self.range.as_ref())?;
        let (from, to) = match (from, to, range) {
            (Some(_), Some(_), Some(_)) => {
                return Err(ApiError::bad_request("from, to and range: give two of them at most"));
            }
            (Some(from), None, Some(range)) => (from, from.after(range)),
            (Some(from), to, None) => (from, to.unwrap_or(now)),
            (None, to, range) => {
                let to = to.unwrap_or(now);
                (to.minus(range.unwrap_or(RANGE)), to)
            }
        };
        if from >= to {
            return Err(ApiError::bad_request(format!("from: {from} is not before {to}")));
        }
        let whole = to.since(from);
        let step = match span("step", self.step.as_ref())? {
            Some(step) if step < Duration::from_secs(1) => {
                return Err(ApiError::bad_request("step: it is shorter than 1s"));
            }
            Some(step) if step.checked_mul(MOST_POINTS).is_some_and(|most| whole > most) => {
                return Err(ApiError::bad_request(format!(
                    "step: that is more than {MOST_POINTS} points for each series: ask for wider steps or a shorter time"
                )));
            }
            Some(step) => step,
            None => chosen(whole),
        };
        Ok(Steps { from, to, step })
    }
}

/// The narrowest of the usual steps by which there are not too many points; beyond them whole days.
fn chosen(whole: Duration) -> Duration {
    let fits = |seconds: &u64| whole <= Duration::from_secs(*seconds) * POINTS;
    let day = Duration::from_hours(24);
    let days =
        || day * u32::try_from(whole.as_secs() / day.as_secs() / u64::from(POINTS) + 1).unwrap_or(u32::MAX);
    STEPS.into_iter().find(fits).map_or_else(days, Duration::from_secs)
}

fn time(name: &str, text: Option<&String>) -> Result<Option<Timestamp>, ApiError> {
    let read = |text: &String| {
        let wrong = || format!("{name}: it is no date and time of RFC 3339, such as 2026-11-30T19:10:37Z");
        Timestamp::parse(text).map_err(|_| ApiError::bad_request(wrong()))
    };
    text.map(read).transpose()
}

fn span(name: &str, text: Option<&String>) -> Result<Option<Duration>, ApiError> {
    let read = |text: &String| match days(text).map_or_else(|| text.parse(), |days| Ok(Span(days))) {
        Ok(Span(span)) if !span.is_zero() => Ok(span),
        Ok(Span(_)) => Err(ApiError::bad_request(format!("{name}: it is zero"))),
        Err(_) => {
            Err(ApiError::bad_request(format!("{name}: it is no length of time, such as 90s, 6h or 7d")))
        }
    };
    text.map(read).transpose()
}

/// `7d`: days are as long as people mean them to be.
fn days(text: &str) -> Option<Duration> {
    let days: u32 = text.strip_suffix('d')?.parse().ok()?;
    (days <= 36_500).then(|| Duration::from_hours(24) * days)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Result<Steps, String> {
        let now = Timestamp::parse("2026-11-30T12:00:00Z").unwrap();
        let pairs = form_urlencoded::parse(query.as_bytes());
        let asked: serde_json::Map<_, _> =
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into())).collect();
        let asked: Asked = serde_json::from_value(asked.into()).unwrap();
        asked.steps(now).map_err(|error| format!("{error:?}"))
    }

    #[test]
    fn the_time_and_the_steps_are_as_asked_for() {
        let shown = |query| {
            let Steps { from, to, step } = asked(query).unwrap();
            format!("{from} {to} {}s", step.as_secs())
        };
        for (query, expected) in [
            ("", "2026-11-30T11:00:00.000Z 2026-11-30T12:00:00.000Z 30s"),
            ("range=20m", "2026-11-30T11:40:00.000Z 2026-11-30T12:00:00.000Z 10s"),
            ("range=7d", "2026-11-23T12:00:00.000Z 2026-11-30T12:00:00.000Z 7200s"),
            ("range=730d", "2024-11-30T12:00:00.000Z 2026-11-30T12:00:00.000Z 604800s"),
            ("range=2h&step=1h", "2026-11-30T10:00:00.000Z 2026-11-30T12:00:00.000Z 3600s"),
            ("to=2026-11-30T00:00:00Z", "2026-11-29T23:00:00.000Z 2026-11-30T00:00:00.000Z 30s"),
            ("from=2026-11-29T12:00:00Z", "2026-11-29T12:00:00.000Z 2026-11-30T12:00:00.000Z 900s"),
            ("step=2000000000000000s", "2026-11-30T11:00:00.000Z 2026-11-30T12:00:00.000Z 2000000000000000s"),
            ("from=2026-11-29T12:00:00Z&range=1h", "2026-11-29T12:00:00.000Z 2026-11-29T13:00:00.000Z 30s"),
        ] {
            assert_eq!(shown(query), expected, "{query}");
        }
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (query, named) in [
            ("from=yesterday", "from: it is no date"),
            ("to=1", "to: it is no date"),
            ("range=long", "range: it is no length"),
            ("range=0s", "range: it is zero"),
            ("step=500ms", "step: it is shorter"),
            ("range=30d&step=1s", "step: that is more than 11000 points"),
            ("from=2026-12-30T12:00:00Z", "from: 2026-12-30T12:00:00.000Z is not before"),
            ("from=2026-11-29T12:00:00Z&to=2026-11-29T13:00:00Z&range=1h", "two of them"),
        ] {
            let error = asked(query).unwrap_err();
            assert!(error.contains(named), "{query}: {error}");
        }
    }
}
