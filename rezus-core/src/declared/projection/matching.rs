//! Which parts are one machine.

use std::collections::{BTreeSet, HashMap};

use super::assemble::{self, Members};
use super::parts::{Mark, Part};
use super::shared::Shared;
use crate::declared::mapping::extract::{Field, Kind};
use crate::declared::resource::Problem;

/// Puts the parts of each machine together, sorted by the machines' addresses.
pub(super) fn machines<'a>(parts: &[Part<'a>], shared: &Shared) -> Vec<Members<'a>> {
    let of_kind =
        |kind| parts.iter().filter(move |part| part.is_machine() && part.extract.kind == kind).copied();
    let mut members: Vec<_> = of_kind(Kind::Machine).map(Members::of).collect();
    let talos: Vec<_> = of_kind(Kind::TalosMachine).collect();
    let marks: Vec<_> = talos.iter().map(|part| marks(part, shared)).collect();
    let mut holders: HashMap<Mark, Vec<usize>> = HashMap::new();
    if !talos.is_empty() {
        for (place, one) in members.iter().enumerate() {
            for mark in self::marks(&one.main, shared) {
                holders.entry(mark).or_default().push(place);
            }
        }
    }
    for group in connected(&marks) {
        let found = group.iter().filter_map(|place| marks.get(*place)).flatten();
        let matches: BTreeSet<usize> =
            found.filter_map(|mark| holders.get(mark)).flatten().copied().collect();
        let group = group.iter().filter_map(|place| talos.get(*place)).copied();
        let matches: Vec<_> = matches.into_iter().collect();
        match matches.as_slice() {
            [] => members.extend(Members::of_several(group)),
            [one] => members.get_mut(*one).into_iter().for_each(|one| one.merged.extend(group.clone())),
            [first, second, ..] => {
                let ambiguous: Vec<_> = group.collect();
                let named = |place: &usize| members.get(*place).map(|one| one.main.row.address.clone());
                let (first_name, second_name) = (named(first), named(second));
                for place in &matches {
                    let other = if place == first { &second_name } else { &first_name };
                    if let (Some(one), Some(other)) = (members.get_mut(*place), other) {
                        one.problems.extend(ambiguous.iter().map(|part| Problem {
                            field: "alsoKnownAs".to_owned(),
                            reason: format!(
                                "{} has an address of this machine and of {other}: it is taken to describe neither",
                                part.row.address
                            ),
                        }));
                    }
                }
            }
        }
    }
    for one in &mut members {
        one.merged.sort_by(|a, b| a.order().cmp(&b.order()));
        if !shared.is_empty() {
            let candidates = assemble::candidates(one);
            let addresses: Vec<_> = candidates.iter().map(|candidate| &candidate.address).collect();
            one.dropped = shared.dropped(&addresses);
        }
    }
    members.sort_by(|a, b| a.main.order().cmp(&b.main.order()));
    members
}

/// Returns what a part is recognised by: its addresses but for those of the cluster, and of a machine its host's name.
/// A Talos resource's host name is not where it is applied to, and may well be the same in many of them.
fn marks(part: &Part<'_>, shared: &Shared) -> Vec<Mark> {
    let addresses: Vec<_> = part.extract.addresses.iter().map(|(address, _)| address).collect();
    let dropped = shared.dropped(&addresses);
    let kept = addresses.iter().enumerate().filter(|(place, _)| !dropped.contains(place));
    let mut marks: Vec<_> = kept.filter_map(|(_, address)| Mark::of(&address.address)).collect();
    if !part.is_talos() {
        marks.extend(part.found(Field::Hostname).and_then(|found| Mark::of(&found.value)));
    }
    marks.sort();
    marks.dedup();
    marks
}

/// Groups the places of what has marks in common, each group sorted, groups sorted by their first.
fn connected(marks: &[Vec<Mark>]) -> Vec<Vec<usize>> {
    let mut leaders: Vec<usize> = (0..marks.len()).collect();
    let mut first_with: HashMap<&Mark, usize> = HashMap::new();
    for (place, marks) in marks.iter().enumerate() {
        for mark in marks {
            let other = *first_with.entry(mark).or_insert(place);
            let (a, b) = (leader(&mut leaders, place), leader(&mut leaders, other));
            if let Some(entry) = leaders.get_mut(a.max(b)) {
                *entry = a.min(b);
            }
        }
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); marks.len()];
    for place in 0..marks.len() {
        let leader = leader(&mut leaders, place);
        if let Some(group) = groups.get_mut(leader) {
            group.push(place);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// Follows a place to the smallest of its group, and shortens the way for the next time.
fn leader(leaders: &mut [usize], place: usize) -> usize {
    let mut at = place;
    while let Some(next) = leaders.get(at).copied().filter(|next| *next != at) {
        let after = leaders.get(next).copied().unwrap_or(next);
        if let Some(entry) = leaders.get_mut(at) {
            *entry = after;
        }
        at = next;
    }
    at
}
