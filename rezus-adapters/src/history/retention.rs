//! The time that retention goes by: the clock's, but not where it jumps.
//!
//! Asked for what is too old, a clock that is a year ahead for a second would have everything removed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use rezus_core::base::{Clock, Timestamp};

use super::files::Files;
use super::name::{DAY, Name};

/// How many times as fast as time itself it goes at most.
// After a downtime it has caught up with the clock after a third as long. One that is on for six hours a day keeps up. A jump that
// nobody notices for a day costs three days too many of the oldest, rather than all there is.
const PACE: u32 = 4;

/// No clock that was ever set shows less, 2026-01-01T00:00:00Z: where one that was not is all there is to begin with, its time would
/// not be caught up with for years.
const NO_CLOCK_BEFORE: Timestamp = Timestamp::from_millis(1_767_225_600_000);

/// What its file is called.
const FILE: &str = "retention";

/// How much time may pass before it is written down again.
const WRITE: Duration = Duration::from_mins(1);

/// A time that follows the clock, at no more than a certain pace, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retention {
    at: Timestamp,
    /// How much time had passed then.
    elapsed: Duration,
}

impl Retention {
    /// One that goes on from a time, when so much time had passed.
    pub(super) fn new(at: Timestamp, elapsed: Duration) -> Self {
        Self { at, elapsed }
    }

    /// Follows the clock, which shows `now` when so much time has passed.
    pub(super) fn follow(&mut self, now: Timestamp, elapsed: Duration) {
        let most = elapsed.saturating_sub(self.elapsed).saturating_mul(PACE);
        self.at = now.clamp(self.at.minus(most), self.at.after(most));
        self.elapsed = elapsed;
    }

    /// Returns the time by which things are too old: one that is behind is believed at once.
    pub(super) fn time(self, now: Timestamp) -> Timestamp {
        self.at.min(now)
    }
}

/// A retention's time that outlives a start: it is kept in a file.
#[derive(Debug)]
pub(super) struct KeptRetention {
    path: PathBuf,
    pub(super) retention: Retention,
    /// How much time had passed when it was written.
    written: Option<Duration>,
}

impl KeptRetention {
    /// Goes on from what the file says. Where there is none that can be read, from the clock's time, but not later than a day after
    /// the newest of what is kept: the clock may be wrong.
    pub(super) fn open(files: &Files, clock: &dyn Clock) -> Self {
        let path = files.directory().join(FILE);
        let at = fs::read_to_string(&path).ok().and_then(|text| Timestamp::parse(text.trim()).ok());
        let begin = || {
            let newest = files.list().into_iter().map(sure_end).max();
            let latest = newest.map_or(i64::MAX, |end| end.saturating_add(DAY));
            clock.now().max(NO_CLOCK_BEFORE).min(Timestamp::from_millis(latest))
        };
        Self { path, retention: Retention::new(at.unwrap_or_else(begin), clock.elapsed()), written: None }
    }

    /// Writes it down, where that is due: at first, and then every minute.
    pub(super) fn keep(&mut self) -> io::Result<()> {
        let Retention { at, elapsed } = self.retention;
        if self.written.is_some_and(|written| elapsed.saturating_sub(written) < WRITE) {
            return Ok(());
        }
        // Whatever happens, it is there as it was before or as it is now.
        let new = self.path.with_added_extension("new");
        let mut file = File::create(&new)?;
        writeln!(file, "{at}")?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_all())?;
        self.written = Some(elapsed);
        Ok(())
    }
}

/// Until when a file has something: one of rollups is of one day of its span at least.
fn sure_end(name: Name) -> i64 {
    match name {
        Name::Tail { .. } | Name::Sealed { .. } | Name::Raw { .. } => name.span().end,
        Name::Fine { from } | Name::Coarse { from } => from.saturating_add(DAY),
    }
}

#[cfg(test)]
mod tests {
    use rezus_testkit::clock::ManualClock;

    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * 3_600_000)
    }

    #[test]
    fn it_is_the_clock_s_time_while_that_goes_as_time_does() {
        let mut retention = Retention::new(at(100), HOUR);
        for passed in 1..50 {
            retention.follow(at(100 + i64::from(passed)), HOUR + HOUR * passed);
            assert_eq!(retention.time(at(1_000)), at(100 + i64::from(passed)));
        }
        // On for six hours of each day.
        for day in 1..10 {
            let mut started = Retention::new(retention.time(at(1_000)), Duration::ZERO);
            started.follow(at(149 + day * 24), 6 * HOUR);
            retention = started;
            assert_eq!(retention.time(at(1_000)), at(149 + day * 24));
        }
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_followed_slowly_and_back_at_once() {
        let mut retention = Retention::new(at(100), Duration::ZERO);
        retention.follow(at(9_000), Duration::ZERO);
        assert_eq!(retention.time(at(9_000)), at(100));
        retention.follow(at(9_001), HOUR);
        assert_eq!(retention.time(at(9_001)), at(104));
        assert_eq!(retention.time(at(101)), at(101));
        // And back to the clock as slowly.
        retention.follow(at(98), HOUR + Duration::from_mins(15));
        assert_eq!(retention.time(at(9_000)), at(103));
        retention.follow(at(98), 3 * HOUR);
        assert_eq!(retention.time(at(9_000)), at(98));
    }

    #[test]
    fn a_clock_that_is_set_back_for_a_moment_stalls_nothing() {
        let mut retention = Retention::new(at(100), Duration::ZERO);
        retention.follow(at(-9_000), Duration::from_mins(1));
        assert_eq!(retention.time(at(-9_000)), at(-9_000));
        retention.follow(at(100), Duration::from_mins(2));
        assert_eq!(retention.time(at(100)), at(100));
        for odd in [Timestamp::from_millis(i64::MAX), Timestamp::from_millis(i64::MIN), at(100)] {
            retention.follow(odd, Duration::MAX);
            assert_eq!(retention.time(odd), odd);
        }
    }

    #[test]
    fn a_clock_that_was_never_set_is_not_where_it_begins() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(at(0)));
        let files = Files::scan(directory.path()).unwrap();
        assert_eq!(KeptRetention::open(&files, &clock).retention.at, NO_CLOCK_BEFORE);
        clock.set(NO_CLOCK_BEFORE.after(HOUR));
        assert_eq!(KeptRetention::open(&files, &clock).retention.at, clock.now());
    }

    #[test]
    fn it_begins_no_later_than_a_day_after_what_is_there() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let files = Files::scan(directory.path()).unwrap();
        let day = Name::raw_at(clock.now().minus(100 * 24 * HOUR).as_millis());
        let begun = || KeptRetention::open(&files, &clock).retention.at.as_millis();
        // That a file is of thirteen weeks does not say that there is something of their end.
        for name in [Name::coarse_at(day.span().start), Name::fine_at(day.span().start)] {
            files.add(name);
            assert_eq!(begun(), name.span().start + 2 * DAY);
        }
        files.add(day);
        assert_eq!(begun(), day.span().end + DAY);
        files.add(Name::sealed_at(clock.now().as_millis()));
        assert_eq!(begun(), clock.now().as_millis());
    }

    #[test]
    fn it_is_written_every_minute_of_time_that_passes() {
        let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::default());
        let start = clock.now();
        let files = Files::scan(directory.path()).unwrap();
        let mut kept = KeptRetention::open(&files, &clock);
        let mut written = |seconds: u64| {
            clock.advance(Duration::from_secs(seconds));
            kept.retention.follow(clock.now(), clock.elapsed());
            kept.keep().unwrap();
            // A clock of another process, which begins anew.
            let other = ManualClock::at(at(9_000_000));
            KeptRetention::open(&files, &other).retention.at.since(start).as_secs()
        };
        assert_eq!([0, 30, 29, 2, 59, 1].map(&mut written), [0, 0, 0, 61, 61, 121]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
