//! What is done besides: slots are sealed, days compacted, and what is too old or too much is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use rezus_core::base::Timestamp;
use rezus_core::series::SeriesError;

use super::compact::{Compact, Failure};
use super::error::FileError;
use super::files::Files;
use super::fill::Fill;
use super::name::{DAY, Name, SLOT, begin, open_day};
use super::retention::KeptRetention;
use super::seal::Seal;
use super::{HistorySettings, Inner, Tended};

/// How much must have become too old to be kept in memory before it is looked for.
const SWEEP: Duration = Duration::from_mins(1);

/// How much time passes before something is removed again for want of room: where something else fills the disk, or what is
/// removed gives no room at once, all would be gone within seconds.
const ROOM: Duration = Duration::from_mins(10);

/// What is under way.
pub(super) struct Upkeep {
    work: Option<Work>,
    swept: Option<Timestamp>,
    retention: KeptRetention,
    failing: Failing,
    /// How much time had passed when something was last removed for want of room.
    found_room: Option<Duration>,
}

/// Which file failed last, and how often since a piece of work came to its end.
#[derive(Default)]
struct Failing(Option<(Name, u32)>);

/// How often a file may fail, for whatever reason but a lack of room, before it is put aside: it would hold up all that comes
/// after it.
const FAILURES: u32 = 20;

enum Work {
    Seal(Box<Seal>),
    Compact(Box<Compact>),
    Fill(Box<Fill>),
}

/// What there is to do next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Seal(i64),
    Compact(i64),
    Fill(Name, Vec<i64>),
    Nothing,
}

/// Does one step of what there is to do.
pub(super) fn tend(inner: &Inner, upkeep: &mut Upkeep) -> Result<Tended, SeriesError> {
    let now = inner.clock.now();
    sweep(inner, upkeep, now);
    // First, so that there is room for the rest.
    let removed = remove(inner, upkeep, now);
    let kept = upkeep.retention.keep().map_err(FileError::Io);
    let has_worked = match work(inner, upkeep, now) {
        Ok(has_worked) => has_worked,
        Err((name, error)) if error.is_damage() || upkeep.failing.fails_again(name, &error) => {
            inner.files.set_aside(name, error).map_err(|error| error.while_being("kept"))?;
            true
        }
        Err((_, error)) => {
            // What is sealed and compacted takes room before it gives any back.
            let has_found_room = error.is_lack_of_room()
                && find_room(inner, upkeep, now).map_err(|error| error.while_being("kept"))?;
            if !has_found_room {
                return Err(error.while_being("kept"));
            }
            false
        }
    };
    // Last: that one of these fails holds up nothing else.
    let has_removed =
        removed.and_then(|removed| kept.map(|()| removed)).map_err(|error| error.while_being("kept"))?;
    Ok(Tended { more: has_removed || has_worked, set_aside: inner.files.take_set_aside() })
}

impl Upkeep {
    /// One that has not done anything yet.
    pub(super) fn new(retention: KeptRetention) -> Self {
        Self { work: None, swept: None, retention, failing: Failing::default(), found_room: None }
    }

    /// Tells whether a file is being written to: removed, it would only have to be written again.
    fn is_at_work_on(&self, name: Name) -> bool {
        match &self.work {
            Some(Work::Compact(compact)) => compact.writes_to(name),
            Some(Work::Fill(fill)) => fill.writes_to(name),
            Some(Work::Seal(_)) | None => false,
        }
    }
}

impl Failing {
    /// Tells whether a file failed too often.
    fn fails_again(&mut self, name: Name, error: &FileError) -> bool {
        if error.is_lack_of_room() || error.is_in_use() || matches!(error, FileError::Unfinished(_)) {
            return false;
        }
        let times = self.0.filter(|(failing, _)| *failing == name).map_or(1, |(_, times)| times + 1);
        self.0 = Some((name, times)).filter(|_| times < FAILURES);
        times >= FAILURES
    }
}

/// Drops from memory what is old and in files.
fn sweep(inner: &Inner, upkeep: &mut Upkeep, now: Timestamp) {
    let floor = {
        // Nobody begins a tail meanwhile.
        let _log = inner.log();
        let hot = now.minus(inner.settings.ring.hot);
        let unsealed = inner.files.list().into_iter().filter(|name| matches!(name, Name::Tail { .. }));
        let floor =
            unsealed.map(|name| Timestamp::from_millis(name.span().start)).min().unwrap_or(hot).min(hot);
        if upkeep.swept.is_some_and(|swept| floor.since(swept).max(swept.since(floor)) < SWEEP) {
            return;
        }
        inner.hot_from.fetch_max(floor.as_millis(), Ordering::SeqCst);
        inner.heads.set_floor(floor);
        floor
    };
    inner.heads.sweep();
    upkeep.swept = Some(floor);
}

/// Goes on with what is under way, or begins something; tells whether there was anything to do.
fn work(inner: &Inner, upkeep: &mut Upkeep, now: Timestamp) -> Result<bool, Failure> {
    // Where it fails it is gone, and begun anew the next time.
    let left = match upkeep.work.take() {
        Some(Work::Seal(seal)) => {
            seal.step(&inner.files, &inner.heads)?.map(|left| Work::Seal(Box::new(left)))
        }
        Some(Work::Compact(compact)) => compact.step(&inner.files)?.map(|left| Work::Compact(Box::new(left))),
        Some(Work::Fill(fill)) => fill.step(&inner.files)?.map(|left| Work::Fill(Box::new(left))),
        None => match to_do(inner, upkeep, now)? {
            Next::Nothing => return Ok(false),
            Next::Compact(day) => Some(Work::Compact(Box::new(Compact::begin(&inner.files, day)?))),
            Next::Fill(week, days) => Some(Work::Fill(Box::new(Fill::begin(&inner.files, week, days)?))),
            Next::Seal(slot) => {
                // All that came is in memory once nobody writes; what comes later is in another tail.
                let (ended, tails) = {
                    let mut log = inner.log();
                    let is_of = |name: &Name| matches!(name, Name::Tail { slot: of, .. } if *of == slot);
                    (log.end(slot), inner.files.list().into_iter().filter(is_of).collect())
                };
                drop(ended);
                Some(Work::Seal(Box::new(Seal::begin(&inner.files, &inner.heads, slot, tails)?)))
            }
        },
    };
    if left.is_none() {
        upkeep.failing = Failing::default();
    }
    upkeep.work = left;
    Ok(true)
}

/// Looks at what there is, and says what is to be done.
fn to_do(inner: &Inner, upkeep: &Upkeep, now: Timestamp) -> Result<Next, Failure> {
    let mut files = inner.files.list();
    // What is to be removed is not even looked at.
    let time = upkeep.retention.retention.time(now);
    files.retain(|name| !is_expired(*name, time, &inner.settings));
    let days_of = |name| inner.files.days(name).map_err(|error| (name, error));
    let next = next(&files, now.minus(inner.settings.ring.window.late), |day| {
        Ok(days_of(Name::fine_at(day))?.contains(&day) && days_of(Name::coarse_at(day))?.contains(&day))
    })?;
    if next != Next::Nothing {
        return Ok(next);
    }
    for week in files.iter().copied().filter(|name| matches!(name, Name::Fine { .. })) {
        let coarse = days_of(Name::coarse_at(week.span().start))?;
        let is_alone = |day: &i64| {
            !coarse.contains(day)
                && ![Name::raw_at(*day), Name::sealed_at(*day)].iter().any(|name| files.contains(name))
        };
        let days: Vec<i64> = days_of(week)?.iter().copied().filter(is_alone).collect();
        if !days.is_empty() {
            return Ok(Next::Fill(week, days));
        }
    }
    Ok(Next::Nothing)
}

/// Says what is to be done, where no samples come any more for what is before `closed`. The oldest first. A day that is compacted
/// already is again, where not all `is_whole`: a file of its rollups was set aside, and what is left of it are its samples.
fn next<E>(
    files: &BTreeSet<Name>,
    closed: Timestamp,
    mut is_whole: impl FnMut(i64) -> Result<bool, E>,
) -> Result<Next, E> {
    let is_closed = |name: &&Name| name.span().end <= closed.as_millis();
    let mut tails = files.iter().filter_map(|name| match name {
        Name::Tail { slot, .. } => Some(*slot),
        _ => None,
    });
    let slots = files.iter().filter(is_closed).filter_map(|name| match name {
        Name::Tail { slot, .. } => Some(*slot),
        _ => None,
    });
    if let Some(slot) = slots.min() {
        return Ok(Next::Seal(slot));
    }
    let days: BTreeMap<i64, bool> = files
        .iter()
        .filter(is_closed)
        .filter_map(|name| match name {
            Name::Raw { from } => Some((*from, true)),
            // What follows a day's other file here, and so counts.
            Name::Sealed { from } => Some((*from, false)),
            _ => None,
        })
        .collect();
    // In this order also because of what counters had the day before.
    for (day, is_compacted) in days {
        if !is_compacted || !is_whole(day)? {
            let is_open = tails.any(|slot| begin(slot, DAY) == day);
            return Ok(if is_open { Next::Nothing } else { Next::Compact(day) });
        }
    }
    Ok(Next::Nothing)
}

/// Removes a file that is too old, or the first to go where there is too much; tells whether there was one.
pub(super) fn remove(inner: &Inner, upkeep: &mut Upkeep, now: Timestamp) -> Result<bool, FileError> {
    let (settings, damaged) = (&inner.settings, inner.files.damaged());
    let lacks_room = inner.lacks_room.swap(false, Ordering::SeqCst);
    let files = removable(inner, upkeep);
    let kept = &mut upkeep.retention.retention;
    kept.follow(now, inner.clock.elapsed());
    let time = kept.time(now);
    if let Some(name) = files.into_iter().find(|name| is_expired(*name, time, settings)) {
        return inner.files.remove(name).map(|()| true);
    }
    if let Some(name) = damaged.into_iter().find(|name| is_past(*name, time, settings)) {
        return inner.files.remove_damaged(name).map(|()| true);
    }
    if lacks_room {
        find_room(inner, upkeep, now)?;
    }
    if settings.max_bytes.is_some_and(|most| inner.files.total() > most) {
        return make_room(inner, upkeep, now);
    }
    Ok(false)
}

/// Removes what goes first for want of room, where that was not done just now; tells whether it did.
fn find_room(inner: &Inner, upkeep: &mut Upkeep, now: Timestamp) -> Result<bool, FileError> {
    let elapsed = inner.clock.elapsed();
    if upkeep.found_room.is_some_and(|found| elapsed.saturating_sub(found) < ROOM) {
        return Ok(false);
    }
    upkeep.found_room = Some(elapsed);
    make_room(inner, upkeep, now)
}

/// Removes what goes first: what is of no use any more, or else the oldest of the finest tier. Tells whether there was any.
fn make_room(inner: &Inner, upkeep: &Upkeep, now: Timestamp) -> Result<bool, FileError> {
    if let Some(name) = inner.files.damaged().pop_first() {
        return inner.files.remove_damaged(name).map(|()| true);
    }
    match first_to_go(&removable(inner, upkeep), now, |name| is_copied(&inner.files, name)) {
        Some(name) => inner.files.remove(name).map(|()| true),
        None => Ok(false),
    }
}

/// All files but those that are being written to, or that what came for their day later is still to be put into.
fn removable(inner: &Inner, upkeep: &Upkeep) -> BTreeSet<Name> {
    let files = inner.files.list();
    let open: BTreeSet<i64> = files.iter().filter_map(|name| open_day(*name)).collect();
    let is_open = |name: Name| matches!(name, Name::Raw { from } if open.contains(&from));
    files.into_iter().filter(|name| !upkeep.is_at_work_on(*name) && !is_open(*name)).collect()
}

/// Tells whether a file may be removed: what is not compacted is so first.
fn is_expired(name: Name, time: Timestamp, settings: &HistorySettings) -> bool {
    !matches!(name, Name::Tail { .. } | Name::Sealed { .. }) && is_past(name, time, settings)
}

/// Tells whether what a file holds is too old.
fn is_past(name: Name, time: Timestamp, settings: &HistorySettings) -> bool {
    let kept_for = match name {
        Name::Tail { .. } | Name::Sealed { .. } | Name::Raw { .. } => settings.raw,
        Name::Fine { .. } => settings.fine,
        Name::Coarse { .. } => settings.coarse,
    };
    name.span().end <= time.minus(kept_for).as_millis()
}

/// Tells whether a coarser tier has all days of a file; not where that cannot be read.
fn is_copied(files: &Files, name: Name) -> bool {
    let has = |tier, day| files.days(tier).is_ok_and(|days| days.contains(&day));
    match name {
        Name::Raw { from } => has(Name::fine_at(from), from) || has(Name::coarse_at(from), from),
        Name::Fine { from } => {
            files.days(name).is_ok_and(|days| days.iter().all(|day| has(Name::coarse_at(from), *day)))
        }
        Name::Tail { .. } | Name::Sealed { .. } | Name::Coarse { .. } => false,
    }
}

/// The file that goes first where there is too much: none that is written to, and one that there are coarser rollups of before one
/// that is all there is.
fn first_to_go(files: &BTreeSet<Name>, now: Timestamp, is_copied: impl Fn(Name) -> bool) -> Option<Name> {
    // A day is compacted when it has ended, so whatever is written to is of today, or of yesterday.
    let written = now.as_millis() - DAY - SLOT;
    let is_tier = |name: &&Name| matches!(name, Name::Raw { .. } | Name::Fine { .. } | Name::Coarse { .. });
    let mut able = files
        .iter()
        .filter(is_tier)
        .filter(|name| matches!(name, Name::Raw { .. }) || name.span().end <= written)
        .copied();
    able.clone().find(|name| is_copied(*name)).or_else(|| able.next())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    fn at(hours: i64) -> Timestamp {
        Timestamp::from_millis(hours * 3_600_000)
    }

    #[test]
    fn slots_are_sealed_and_days_compacted_once_nothing_comes_for_them_any_more() {
        let tail = |hours: i64| Name::Tail { slot: at(hours).as_millis(), run: 1 };
        let next = |names: &[Name], closed| {
            let Ok(next) =
                next(&names.iter().copied().collect(), closed, |day| Ok::<_, Infallible>(day != DAY));
            next
        };
        let sealed = Name::sealed_at(0);
        assert_eq!(next(&[sealed, tail(20), tail(22)], at(22)), Next::Seal(at(20).as_millis()));
        assert_eq!(next(&[sealed, tail(22)], Timestamp::from_millis(DAY - 1)), Next::Nothing);
        assert_eq!(next(&[sealed, tail(22), tail(24)], at(24)), Next::Seal(at(22).as_millis()));
        assert_eq!(next(&[sealed, tail(24)], at(24)), Next::Compact(0));
        assert_eq!(next(&[sealed, tail(24)], Timestamp::from_millis(DAY - 1)), Next::Nothing);
        assert_eq!(next(&[Name::raw_at(0)], at(100)), Next::Nothing);
        // The second day's rollups are not there.
        let days = [0, 1, 2].map(|nth| Name::raw_at(nth * DAY));
        assert_eq!(next(&days, at(100)), Next::Compact(DAY));
        assert_eq!(next(&days, at(40)), Next::Nothing);
        let [first, ..] = days;
        assert_eq!(next(&[first, Name::raw_at(DAY), sealed], at(100)), Next::Compact(0));
        assert_eq!(next(&[Name::raw_at(DAY), Name::sealed_at(2 * DAY)], at(100)), Next::Compact(DAY));
    }

    #[test]
    fn what_fails_again_and_again_is_put_aside_but_not_for_want_of_room() {
        let (mut failing, name) = (Failing::default(), Name::sealed_at(0));
        let full = FileError::Io(std::io::ErrorKind::StorageFull.into());
        let other = FileError::Format(9);
        let unfinished = FileError::Unfinished(Box::new(FileError::Format(9)));
        for _ in 0..FAILURES {
            assert!(!failing.fails_again(name, &full) && !failing.fails_again(name, &unfinished));
        }
        for _ in 1..FAILURES {
            assert!(!failing.fails_again(name, &other));
        }
        // One of another file begins anew.
        assert!(!failing.fails_again(Name::raw_at(0), &other));
        for _ in 1..FAILURES {
            assert!(!failing.fails_again(name, &other));
        }
        assert!(failing.fails_again(name, &other));
    }

    #[test]
    fn the_finest_and_oldest_goes_first_and_nothing_that_is_written_to() {
        let day = |nth: i64| nth * DAY;
        let mut files: BTreeSet<Name> = [8, 9]
            .map(|nth| Name::raw_at(day(nth)))
            .into_iter()
            .chain([0, 7].map(|nth| Name::fine_at(day(nth))))
            .collect();
        files.extend([Name::coarse_at(0), Name::sealed_at(day(10)), Name::Tail { slot: day(10), run: 1 }]);
        let now = Timestamp::from_millis(day(10) + SLOT);
        let (first, second, week) = (Name::raw_at(day(8)), Name::raw_at(day(9)), Name::fine_at(0));
        for (only, expected) in [
            (None, [first, second, week]),
            (Some(first), [second, week, first]),
            (Some(week), [first, second, week]),
        ] {
            let (mut left, mut gone) = (files.clone(), Vec::new());
            while let Some(name) = first_to_go(&left, now, |name| Some(name) != only) {
                left.remove(&name);
                gone.push(name);
            }
            assert_eq!(gone, expected, "{only:?}");
            assert_eq!(left.len(), 4);
        }
    }
}
