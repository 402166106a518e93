//! Work over many things at once, on several cores.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many cores one piece of work takes at most: others have work as well.
const MOST: usize = 4;

/// Fewer things than these are not worth a thread.
const FEWEST: usize = 512;

/// Into how many parts a core's share is cut, so that none is idle while another has a hard part.
const PARTS: usize = 8;

/// Works over the places below `count`, a range at a time, and returns what that gave in the order of places: the same
/// as `work(0..count)`, if what is made of a place does not depend on the others of its range.
pub(in crate::declared) fn spread<T: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> Vec<T> + Sync,
) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(MOST);
    if cores == 1 || count < 2 * FEWEST {
        return work(0..count);
    }
    let size = count.div_ceil(cores * PARTS).max(FEWEST);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let take_parts = || loop {
        let start = next.fetch_add(size, Ordering::Relaxed);
        if start >= count {
            return;
        }
        let made = work(start..count.min(start + size));
        done.lock().unwrap_or_else(PoisonError::into_inner).push((start, made));
    };
    std::thread::scope(|scope| {
        for _ in 1..cores.min(count.div_ceil(size)) {
            scope.spawn(take_parts);
        }
        take_parts();
    });
    let mut parts = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    parts.sort_unstable_by_key(|(start, _)| *start);
    let mut all = Vec::with_capacity(parts.iter().map(|(_, made)| made.len()).sum());
    for (_, made) in parts {
        all.extend(made);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_in_order() {
        for count in [0, 1, FEWEST, 2 * FEWEST, 10_007] {
            let odd = |range: Range<usize>| range.filter(|place| place % 2 == 1).collect();
            assert_eq!(spread(count, odd), (0..count).filter(|place| place % 2 == 1).collect::<Vec<_>>());
        }
    }
}
