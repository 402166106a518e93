//! Which files are read for what is asked: a pure function of their names, and of the days that rollups are of.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use super::files::Days;
use super::name::{COARSE, DAY, FINE, Name, begin, open_day};

/// What is asked for. Times are in milliseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Since when.
    pub(super) from: i64,
    /// Until when; that time is part of it.
    pub(super) to: i64,
    /// How wide rollups may be.
    pub(super) width: Duration,
    /// Since when all there is is in memory too.
    pub(super) hot_from: i64,
}

/// What is read of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Samples of before this time are not given: rollups are.
    pub(super) rolled_until: i64,
    /// Of which files rollups are read, and of which of their time; by time.
    pub(super) rolled: Vec<(Name, Range<i64>)>,
    /// Of which files samples are read.
    pub(super) raw: Vec<Name>,
    /// Days before that time that something came for after their samples were gone: what no rollup is of is given rolled up.
    pub(super) open: BTreeSet<i64>,
}

/// Plans a read; `days_of` tells of which days a file of rollups is. It is asked once for each.
pub(super) fn plan<E>(
    files: &BTreeSet<Name>,
    asked: Asked,
    mut days_of: impl FnMut(Name) -> Result<Days, E>,
) -> Result<Plan, E> {
    let mut known: BTreeMap<Name, Days> = BTreeMap::new();
    let mut days_of = |name| match known.get(&name) {
        Some(days) => Ok(Days::clone(days)),
        None => days_of(name).inspect(|days| drop(known.insert(name, Days::clone(days)))),
    };
    let rolled_until = rolled_until(files, asked, &mut days_of)?;
    let first = begin(asked.from, DAY);
    let open: BTreeSet<i64> = files
        .iter()
        .filter_map(|name| open_day(*name))
        .filter(|day| (first..rolled_until).contains(day) && *day <= asked.to)
        .collect();
    let from = asked.from.max(rolled_until);
    let raw = files.iter().copied().filter(|name| {
        let span = name.span();
        let is_meant = match name {
            Name::Raw { .. } => span.end > from,
            Name::Sealed { from: day } => span.end > from || open.contains(day),
            Name::Tail { .. } | Name::Fine { .. } | Name::Coarse { .. } => false,
        };
        is_meant && span.start <= asked.to && span.start < asked.hot_from
    });
    let raw = raw.collect();
    Ok(Plan { rolled_until, rolled: rolled(files, asked, rolled_until, days_of)?, raw, open })
}

/// Until when rollups are given: as long as there are samples in their place, or as soon as there are rollups, as is wanted.
///
/// A day that has rollups and not all its samples, because these are too old or were set aside, is given as rollups, and so is what
/// is before it. But nothing is that has samples and no rollups: what follows it is given as the samples there are.
fn rolled_until<E>(
    files: &BTreeSet<Name>,
    asked: Asked,
    days_of: &mut impl FnMut(Name) -> Result<Days, E>,
) -> Result<i64, E> {
    let within = begin(asked.from, DAY)..asked.to.saturating_add(1).min(asked.hot_from);
    let whole: BTreeSet<i64> =
        files.iter().filter(|name| matches!(name, Name::Raw { .. })).map(|name| name.span().start).collect();
    let open: BTreeSet<i64> = files.iter().filter_map(|name| open_day(*name)).collect();
    let mut until = within.start;
    if asked.width >= FINE {
        // A day is rolled up whole, though the rest of it may be in memory still.
        let day = begin(asked.hot_from, DAY);
        until = if whole.contains(&day) { day + DAY } else { asked.hot_from };
        for day in whole.iter().copied().filter(|day| within.contains(day)) {
            // Rollups of before something came have not all there is, and wider ones than is wanted are no better than samples.
            let is_as_good = !open.contains(&day)
                && (asked.width >= COARSE || days_of(Name::fine_at(day))?.contains(&day));
            if !is_as_good {
                until = day;
                break;
            }
        }
    }
    for name in files.iter().copied().filter(is_rolled) {
        let within = name.span().start.max(within.start)..name.span().end.min(within.end);
        // One of days that all have their samples is not opened.
        if !has_all_days(&within, |day| whole.contains(&day)) {
            let days = days_of(name)?;
            let last = days.iter().rev().find(|day| within.contains(day) && !whole.contains(day));
            until = last.map_or(until, |day| until.max(day + DAY));
        }
    }
    for day in whole.union(&open).copied().filter(|day| within.contains(day) && *day < until) {
        if !days_of(Name::fine_at(day))?.contains(&day) && !days_of(Name::coarse_at(day))?.contains(&day) {
            return Ok(day);
        }
    }
    Ok(until)
}

fn is_rolled(name: &Name) -> bool {
    matches!(name, Name::Fine { .. } | Name::Coarse { .. })
}

/// Tells whether all days are there that begin in a span, or in which it begins.
fn has_all_days(span: &Range<i64>, has: impl Fn(i64) -> bool) -> bool {
    let mut day = begin(span.start, DAY);
    while day < span.end && has(day) {
        day += DAY;
    }
    day >= span.end
}

/// Goes from day to day: each is of the tier that is wanted, or else of the other.
fn rolled<E>(
    files: &BTreeSet<Name>,
    asked: Asked,
    until: i64,
    mut days_of: impl FnMut(Name) -> Result<Days, E>,
) -> Result<Vec<(Name, Range<i64>)>, E> {
    let within = begin(asked.from, DAY)..asked.to.saturating_add(1).min(until);
    let is_wanted = |name: &Name| matches!(name, Name::Coarse { .. }) == (asked.width >= COARSE);
    let (wanted, others): (Vec<Name>, Vec<Name>) =
        files.iter().copied().filter(is_rolled).partition(is_wanted);
    let mut chosen: BTreeMap<i64, Name> = BTreeMap::new();
    for name in wanted.into_iter().chain(others) {
        let span = name.span().start.max(within.start)..name.span().end.min(within.end);
        // One that has nothing to add is not opened.
        if !has_all_days(&span, |day| chosen.contains_key(&day)) {
            for day in days_of(name)?.iter().filter(|day| span.contains(day)) {
                chosen.entry(*day).or_insert(name);
            }
        }
    }
    let mut found: Vec<(Name, Range<i64>)> = Vec::new();
    for (day, name) in chosen {
        let end = within.end.min(day + DAY);
        match found.last_mut().filter(|(last, range)| *last == name && range.end == day) {
            Some((_, range)) => range.end = end,
            None => found.push((name, day..end)),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::history::name::SLOT;

    /// A Thursday on which a week and thirteen weeks begin.
    const START: i64 = 91 * DAY * 200;

    fn day(number: i64) -> i64 {
        START + number * DAY
    }

    fn files() -> BTreeSet<Name> {
        let mut files: BTreeSet<Name> = (14..20).map(|nth| Name::raw_at(day(nth))).collect();
        files.extend([
            Name::fine_at(day(7)),
            Name::fine_at(day(14)),
            Name::coarse_at(day(0)),
            Name::coarse_at(day(-1)),
        ]);
        files.extend([Name::sealed_at(day(20)), Name::Tail { slot: day(20) + SLOT, run: 1 }]);
        files
    }

    /// Of all files, what was compacted before day 20 but for some days of some files.
    fn days(missing: &[(Name, i64)]) -> impl Fn(Name) -> Result<Days, Infallible> + use<> {
        let missing: BTreeSet<(Name, i64)> = missing.iter().copied().collect();
        move |name| {
            let all = (-91..20).map(day).filter(|day| name.span().contains(day));
            Ok(Days::new(
                all.filter(|day| files().contains(&name) && !missing.contains(&(name, *day))).collect(),
            ))
        }
    }

    fn asked(from: i64, to: i64, width: Duration) -> Asked {
        Asked { from, to, width, hot_from: day(20) + SLOT }
    }

    #[test]
    fn samples_are_read_where_they_are_kept_and_rollups_before() {
        let Ok(plan) = plan(&files(), asked(day(3) + 1, day(16) + 5, Duration::ZERO), days(&[]));
        assert_eq!(plan.rolled_until, day(14));
        assert_eq!(
            plan.rolled,
            [(Name::coarse_at(day(0)), day(3)..day(7)), (Name::fine_at(day(7)), day(7)..day(14))]
        );
        assert_eq!(plan.raw, [Name::raw_at(day(14)), Name::raw_at(day(15)), Name::raw_at(day(16))]);
    }

    #[test]
    fn wide_steps_are_read_of_rollups_as_far_as_there_are() {
        let Ok(wide) = plan(&files(), asked(day(-3), day(25), COARSE), days(&[]));
        assert_eq!(wide.rolled_until, day(20));
        assert_eq!(
            wide.rolled,
            [(Name::coarse_at(day(-1)), day(-3)..day(0)), (Name::coarse_at(day(0)), day(0)..day(20))]
        );
        assert_eq!(wide.raw, [Name::sealed_at(day(20))]);
        let Ok(fine) = plan(&files(), asked(day(6), day(16), FINE), days(&[]));
        assert_eq!(
            fine.rolled,
            [
                (Name::coarse_at(day(0)), day(6)..day(7)),
                (Name::fine_at(day(7)), day(7)..day(14)),
                (Name::fine_at(day(14)), day(14)..day(16) + 1),
            ]
        );
        assert_eq!(fine.raw, []);
    }

    #[test]
    fn what_is_all_in_memory_needs_no_file() {
        // Nor does it need to be known which days they are of.
        let hot = plan(&files(), asked(day(21), i64::MAX, Duration::ZERO), Err).unwrap();
        assert_eq!((hot.rolled, hot.raw), (vec![], vec![]));
        let none = plan(&BTreeSet::new(), asked(i64::MIN, i64::MAX, COARSE), Err).unwrap();
        assert_eq!((none.rolled_until, none.rolled, none.raw), (day(20) + SLOT, vec![], vec![]));
    }

    /// A day that samples came for again after the clock was set back: those of the days after it are read as they are.
    #[test]
    fn nothing_is_rolled_up_after_what_is_not() {
        let mut files = files();
        files.insert(Name::Tail { slot: day(15), run: 2 });
        files.insert(Name::sealed_at(day(16)));
        let Ok(plan) = plan(&files, asked(day(14), day(17), COARSE), days(&[]));
        assert_eq!(plan.rolled_until, day(15));
        assert_eq!(plan.rolled, [(Name::coarse_at(day(0)), day(14)..day(15))]);
        let raw = plan.raw.iter().copied().filter(|name| matches!(name, Name::Raw { .. }));
        assert_eq!(raw.collect::<Vec<_>>(), [15, 16, 17].map(|nth| Name::raw_at(day(nth))));
        // Of samples of one time the first one that is read stays.
        let place = |wanted| plan.raw.iter().position(|name| *name == wanted);
        assert!(place(Name::raw_at(day(16))) < place(Name::sealed_at(day(16))));
        assert_eq!(plan.raw.len(), 4);
    }

    #[test]
    fn each_day_is_of_the_tier_that_has_it() {
        let (fine, coarse) = (Name::fine_at(day(7)), Name::coarse_at(day(0)));
        let few = || days(&[(fine, day(8)), (coarse, day(9)), (coarse, day(12))]);
        let Ok(plan) = plan(&files(), asked(day(7), day(13), FINE), few());
        assert_eq!(
            plan.rolled,
            [(fine, day(7)..day(8)), (coarse, day(8)..day(9)), (fine, day(9)..day(13) + 1)]
        );
        let Ok(plan) = super::plan(&files(), asked(day(8), day(12) + 5, COARSE), few());
        let expected = [
            (coarse, day(8)..day(9)),
            (fine, day(9)..day(10)),
            (coarse, day(10)..day(12)),
            (fine, day(12)..day(12) + 6),
        ];
        assert_eq!(plan.rolled, expected);
    }

    /// Raw day 17 is not in any tier, as both lost it: it and what follows is read as it is.
    #[test]
    fn a_day_without_rollups_is_read_as_it_is() {
        let missing = [(Name::coarse_at(day(0)), day(17)), (Name::fine_at(day(14)), day(17))];
        let Ok(plan) = plan(&files(), asked(day(10), day(25), COARSE), days(&missing));
        assert_eq!(plan.rolled_until, day(17));
        assert_eq!(plan.raw[..1], [Name::raw_at(day(17))]);
        // Of what is asked alone.
        let Ok(plan) = super::plan(&files(), asked(day(18), day(25), COARSE), days(&missing));
        assert_eq!(plan.rolled_until, day(20));
    }

    /// Raw day 17 is not there: rollups are given of it, and so of what is before it.
    #[test]
    fn a_day_without_samples_is_read_as_rollups() {
        let mut files = files();
        files.remove(&Name::raw_at(day(17)));
        let narrow =
            |from, to| plan(&files, asked(from, to, Duration::ZERO), days(&[])).unwrap().rolled_until;
        assert_eq!(narrow(day(13), day(19)), day(18));
        assert_eq!((narrow(day(13), day(17) - 1), narrow(day(18), day(19))), (day(14), day(18)));
        // Nobody has anything of it.
        let missing = [(Name::coarse_at(day(0)), day(17)), (Name::fine_at(day(14)), day(17))];
        let Ok(plan) = plan(&files, asked(day(13), day(19), Duration::ZERO), days(&missing));
        assert_eq!(plan.rolled_until, day(14));
    }

    /// The clock was set back into day 12, of which there are rollups alone: they are given still, whatever is wanted.
    #[test]
    fn what_came_later_hides_no_rollups() {
        let mut files = files();
        files.extend([Name::Tail { slot: day(12) + SLOT, run: 2 }, Name::sealed_at(day(12))]);
        for width in [Duration::ZERO, FINE, COARSE] {
            let Ok(plan) = plan(&files, asked(day(10), day(13) - 1, width), days(&[]));
            let name = if width == COARSE { Name::coarse_at(day(0)) } else { Name::fine_at(day(7)) };
            assert_eq!(plan.rolled, [(name, day(10)..day(13))]);
            assert_eq!((plan.raw, plan.open), (vec![Name::sealed_at(day(12))], BTreeSet::from([day(12)])));
        }
        let Ok(plan) = plan(&files, asked(day(13), day(16), FINE), days(&[]));
        assert_eq!(plan.open, BTreeSet::new());
    }

    /// Raw day 15 is in no tier, and day 17 has rollups alone, which are given up.
    #[test]
    fn rollups_never_hide_a_day_that_has_none() {
        let (fine, coarse) = (Name::fine_at(day(14)), Name::coarse_at(day(0)));
        let mut files = files();
        files.remove(&Name::raw_at(day(17)));
        for own in [Name::raw_at(day(15)), Name::sealed_at(day(15)), Name::Tail { slot: day(15), run: 1 }] {
            files.remove(&Name::raw_at(day(15)));
            files.insert(own);
            for width in [Duration::ZERO, FINE, COARSE] {
                let missing = [(fine, day(15)), (coarse, day(15))];
                let Ok(plan) = plan(&files, asked(day(13), day(19), width), days(&missing));
                assert_eq!(plan.rolled_until, day(15), "{own:?}");
            }
            files.remove(&own);
        }
    }

    #[test]
    fn samples_are_read_where_rollups_are_too_wide() {
        let missing = [(Name::fine_at(day(14)), day(15))];
        let until =
            |width| plan(&files(), asked(day(13), day(25), width), days(&missing)).unwrap().rolled_until;
        assert_eq!((until(FINE), until(COARSE)), (day(15), day(20)));
    }

    #[test]
    fn each_file_is_asked_once_for_its_days() {
        for width in [Duration::ZERO, FINE, COARSE] {
            let mut asked_of = Vec::new();
            let Ok(_) = plan(&files(), asked(day(-3), day(25), width), |name| {
                asked_of.push(name);
                days(&[])(name)
            });
            let once: BTreeSet<Name> = asked_of.iter().copied().collect();
            assert_eq!(asked_of.len(), once.len(), "{asked_of:?}");
        }
    }
}
