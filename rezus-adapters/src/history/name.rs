//! What files are called, and so what time they are of: nothing has to be opened to know that.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use rezus_core::base::Timestamp;

/// A day, in milliseconds.
pub(super) const DAY: i64 = 86_400_000;

/// How long what a tail holds is, in milliseconds.
pub(super) const SLOT: i64 = 7_200_000;

/// How wide the rollups of the finer tier are, and those of the coarser one.
pub(super) const FINE: Duration = Duration::from_mins(5);
pub(super) const COARSE: Duration = Duration::from_hours(1);

/// A file of a history. Times are in milliseconds since 1970. What came first is in what sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// What came in and is not sealed: of the time from `slot` on, since the `run`th start.
    Tail { slot: i64, run: u32 },
    /// A day: a chunk for each series.
    Raw { from: i64 },
    /// What was sealed of a day and not compacted: a chunk for each series and slot. What is in a day's other file was there first.
    Sealed { from: i64 },
    /// A week of rollups of five minutes.
    Fine { from: i64 },
    /// Thirteen weeks of rollups of an hour.
    Coarse { from: i64 },
}

impl Name {
    /// The day that a time is in, before it has ended.
    pub(super) fn sealed_at(at: i64) -> Self {
        Self::Sealed { from: begin(at, DAY) }
    }

    /// The day that a time is in.
    pub(super) fn raw_at(at: i64) -> Self {
        Self::Raw { from: begin(at, DAY) }
    }

    /// The week that a time is in.
    pub(super) fn fine_at(at: i64) -> Self {
        Self::Fine { from: begin(at, 7 * DAY) }
    }

    /// The thirteen weeks that a time is in.
    pub(super) fn coarse_at(at: i64) -> Self {
        Self::Coarse { from: begin(at, 91 * DAY) }
    }

    /// Returns what its name begins with.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Tail { .. } => "tail",
            Self::Sealed { .. } => "sealed",
            Self::Raw { .. } => "raw",
            Self::Fine { .. } => "fine",
            Self::Coarse { .. } => "coarse",
        }
    }

    /// Returns since when it is, and until when: that end is not part of it.
    pub(super) fn span(self) -> Range<i64> {
        let (from, length) = match self {
            Self::Tail { slot, .. } => (slot, SLOT),
            Self::Sealed { from } | Self::Raw { from } => (from, DAY),
            Self::Fine { from } => (from, 7 * DAY),
            Self::Coarse { from } => (from, 91 * DAY),
        };
        from..from.saturating_add(length)
    }

    /// Reads a file's name; nothing of files of another kind.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.strip_suffix(".db")?.split_once('-')?;
        let day = |date: &str| Some(Timestamp::parse(&format!("{date}T00:00:00Z")).ok()?.as_millis());
        let name = match kind {
            "tail" => {
                let (hour, run) = rest.rsplit_once('-')?;
                let slot = Timestamp::parse(&format!("{hour}:00:00Z")).ok()?.as_millis();
                Self::Tail { slot, run: run.parse().ok()? }
            }
            "sealed" => Self::Sealed { from: day(rest)? },
            "raw" => Self::Raw { from: day(rest)? },
            "fine" => Self::Fine { from: day(rest)? },
            "coarse" => Self::Coarse { from: day(rest)? },
            _ => return None,
        };
        (name.to_string() == text).then_some(name)
    }
}

/// The day of what is not compacted; nothing of other files.
pub(super) fn open_day(name: Name) -> Option<i64> {
    matches!(name, Name::Tail { .. } | Name::Sealed { .. }).then(|| begin(name.span().start, DAY))
}

/// Where the span of this length begins that a time is in.
pub(super) fn begin(at: i64, length: i64) -> i64 {
    at.div_euclid(length).saturating_mul(length)
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |at: i64| Timestamp::from_millis(at).to_string();
        let date = |at: i64| text(at).split('T').next().unwrap_or_default().to_owned();
        let kind = self.kind();
        match self {
            Self::Tail { slot, run } => {
                write!(f, "{kind}-{}-{run}.db", text(*slot).split(':').next().unwrap_or_default())
            }
            Self::Sealed { from } | Self::Raw { from } | Self::Fine { from } | Self::Coarse { from } => {
                write!(f, "{kind}-{}.db", date(*from))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_time_a_file_is_of() {
        let at = Timestamp::parse("2026-12-01T11:59:59Z").unwrap().as_millis();
        let names = [
            (Name::Tail { slot: begin(at, SLOT), run: 3 }, "tail-2026-12-01T10-3.db"),
            (Name::sealed_at(at), "sealed-2026-12-01.db"),
            (Name::raw_at(at), "raw-2026-12-01.db"),
            (Name::fine_at(at), "fine-2026-11-26.db"),
            (Name::coarse_at(at), "coarse-2026-10-22.db"),
        ];
        for (name, text) in names {
            assert_eq!((name.to_string().as_str(), Name::parse(text)), (text, Some(name)));
            assert!(name.span().contains(&at), "{name}");
        }
        for other in
            ["raw-2026-12-01.db.new", "raw-2026-12-01.db-wal", "raw.db", "fine-2026-12-1.db", "rezus.db"]
        {
            assert_eq!(Name::parse(other), None, "{other}");
        }
    }
}
