//! One rule: who shares a key with whom, and with nobody else.

use std::collections::HashMap;
use std::hash::Hash;

/// How many candidates are kept of what stays open.
const CANDIDATES: usize = 8;

/// What one rule gives.
#[derive(Debug)]
pub(super) struct Round<'a, K> {
    /// Pairs that it decides, and by which key.
    pub(super) decided: Vec<(usize, usize, &'a K)>,
    /// Of those on the left that it does not, the candidates.
    pub(super) open: Vec<(usize, Vec<usize>)>,
}

/// Pairs those on the left with those on the right that share a key and that are `free` for one another. A key that several
/// on the right have decides nothing. Time and memory grow with the number of keys.
pub(super) fn round<'a, K: Eq + Hash>(
    left: &'a [Vec<K>],
    right: &'a [Vec<K>],
    free: impl Fn(usize, usize) -> bool,
) -> Round<'a, K> {
    let mut owners: HashMap<&K, Vec<usize>> = HashMap::new();
    for (at, keys) in right.iter().enumerate() {
        for key in keys {
            let of_key = owners.entry(key).or_default();
            if of_key.last() != Some(&at) && of_key.len() < CANDIDATES {
                of_key.push(at);
            }
        }
    }
    let mut wishes: Vec<(usize, Vec<(usize, &K)>)> = Vec::new();
    let mut wished: HashMap<usize, usize> = HashMap::new();
    let mut open = Vec::new();
    for (from, keys) in left.iter().enumerate() {
        let (mut sure, mut shared) = (Vec::new(), Vec::new());
        for key in keys {
            match owners.get(key).map(Vec::as_slice) {
                Some([at]) if free(from, *at) && sure.iter().all(|(known, _)| known != at) => {
                    sure.push((*at, key));
                }
                Some([_]) | None => {}
                Some(several) => shared.extend(several.iter().copied().filter(|at| free(from, *at))),
            }
        }
        for (at, _) in &sure {
            *wished.entry(*at).or_default() += 1;
        }
        if !sure.is_empty() {
            wishes.push((from, sure));
        } else if !shared.is_empty() {
            open.push((from, candidates(shared)));
        }
    }
    let mut decided = Vec::new();
    for (from, sure) in wishes {
        match sure.as_slice() {
            [(at, key)] if wished.get(at) == Some(&1) => decided.push((from, *at, *key)),
            several => open.push((from, candidates(several.iter().map(|(at, _)| *at).collect()))),
        }
    }
    Round { decided, open }
}

fn candidates(mut open: Vec<usize>) -> Vec<usize> {
    open.sort_unstable();
    open.dedup();
    open.truncate(CANDIDATES);
    open
}
