//! Which files are read for what is asked: a pure function of their names.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use super::name::{COARSE, DAY, FINE, Name, begin};

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
}

/// Plans a read.
pub(super) fn plan(files: &BTreeSet<Name>, asked: Asked) -> Plan {
    let first = |is_it: fn(&Name) -> bool| {
        files.iter().filter(|name| is_it(name)).map(|name| name.span().start).min()
    };
    // What is older than anything that is not rolled up yet is rolled up; days are, one after the other.
    let settled_until = first(|name| matches!(name, Name::Tail { .. } | Name::Sealed { .. }));
    let rolled_until = if asked.width >= FINE {
        settled_until.unwrap_or(asked.hot_from)
    } else {
        first(|name| matches!(name, Name::Tail { .. } | Name::Sealed { .. } | Name::Raw { .. }))
            .unwrap_or(asked.hot_from)
    };
    let from = asked.from.max(rolled_until);
    let raw = files.iter().copied().filter(|name| {
        let span = name.span();
        matches!(name, Name::Raw { .. } | Name::Sealed { .. })
            && span.end > from
            && span.start <= asked.to
            && span.start < asked.hot_from
    });
    Plan { rolled_until, rolled: rolled(files, asked, rolled_until), raw: raw.collect() }
}

/// Goes from week to week: each is of one tier.
fn rolled(files: &BTreeSet<Name>, asked: Asked, until: i64) -> Vec<(Name, Range<i64>)> {
    let end = asked.to.saturating_add(1).min(until);
    let kept = files.iter().filter(|name| matches!(name, Name::Fine { .. } | Name::Coarse { .. }));
    let Some(oldest) = kept.map(|name| name.span().start).min() else { return Vec::new() };
    let mut found: Vec<(Name, Range<i64>)> = Vec::new();
    let mut week = begin(asked.from.max(oldest), 7 * DAY);
    while week < end {
        let (fine, coarse) = (Name::fine_at(week), Name::coarse_at(week));
        let order = if asked.width >= COARSE { [coarse, fine] } else { [fine, coarse] };
        let span = week.max(begin(asked.from, DAY))..end.min(fine.span().end);
        if let Some(name) = order.into_iter().find(|name| files.contains(name)) {
            match found.last_mut().filter(|(last, range)| *last == name && range.end == span.start) {
                Some((_, range)) => range.end = span.end,
                None => found.push((name, span)),
            }
        }
        week = fine.span().end;
    }
    found
}

#[cfg(test)]
mod tests {
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

    fn asked(from: i64, to: i64, width: Duration) -> Asked {
        Asked { from, to, width, hot_from: day(20) + SLOT }
    }

    #[test]
    fn samples_are_read_where_they_are_kept_and_rollups_before() {
        let plan = plan(&files(), asked(day(3) + 1, day(16) + 5, Duration::ZERO));
        assert_eq!(plan.rolled_until, day(14));
        assert_eq!(
            plan.rolled,
            [(Name::coarse_at(day(0)), day(3)..day(7)), (Name::fine_at(day(7)), day(7)..day(14))]
        );
        assert_eq!(plan.raw, [Name::raw_at(day(14)), Name::raw_at(day(15)), Name::raw_at(day(16))]);
    }

    #[test]
    fn wide_steps_are_read_of_rollups_as_far_as_there_are() {
        let wide = plan(&files(), asked(day(-3), day(25), COARSE));
        assert_eq!(wide.rolled_until, day(20));
        assert_eq!(
            wide.rolled,
            [(Name::coarse_at(day(-1)), day(-3)..day(0)), (Name::coarse_at(day(0)), day(0)..day(20))]
        );
        assert_eq!(wide.raw, [Name::sealed_at(day(20))]);
        let fine = plan(&files(), asked(day(6), day(16), FINE));
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
        let hot = plan(&files(), asked(day(20) + SLOT, i64::MAX, Duration::ZERO));
        // The day's file is of before too: that nothing is read of it is for who asks to see.
        assert_eq!((hot.rolled, hot.raw), (vec![], vec![Name::sealed_at(day(20))]));
        let none = plan(&BTreeSet::new(), asked(i64::MIN, i64::MAX, COARSE));
        assert_eq!((none.rolled_until, none.rolled, none.raw), (day(20) + SLOT, vec![], vec![]));
    }

    /// A day that samples came for again after the clock was set back: those of the days after it are read as they are.
    #[test]
    fn nothing_is_rolled_up_after_what_is_not() {
        let mut files = files();
        files.insert(Name::Tail { slot: day(15), run: 2 });
        files.insert(Name::sealed_at(day(16)));
        let plan = plan(&files, asked(day(14), day(17), COARSE));
        assert_eq!(plan.rolled_until, day(15));
        assert_eq!(plan.rolled, [(Name::coarse_at(day(0)), day(14)..day(15))]);
        let raw = plan.raw.iter().copied().filter(|name| matches!(name, Name::Raw { .. }));
        assert_eq!(raw.collect::<Vec<_>>(), [15, 16, 17].map(|nth| Name::raw_at(day(nth))));
        // Of samples of one time the first one that is read stays.
        let place = |wanted| plan.raw.iter().position(|name| *name == wanted);
        assert!(place(Name::raw_at(day(16))) < place(Name::sealed_at(day(16))));
        assert_eq!(plan.raw.len(), 4);
    }
}
