//! Which of the machines that were seen is which of those that are looked for.
//!
//! Rules are tried in order, and the first that decides wins: the provider's id, the system's UUID, an address, what was
//! matched before, the host name. A rule decides only where it leaves one candidate on both sides; what several machines
//! show is no evidence. Nothing is guessed: what stays open is told with its candidates. All of it within one tenant.

mod keys;
mod pairs;
mod seen;

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;

use super::facts::{Node, Talos};
use keys::Key;
pub use seen::{Identity, Seen};

/// A machine that is looked for: plain texts, as whoever looks for it has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// By what name the match is given.
    pub name: String,
    /// The provider's id of it, with or without its scheme: `i-0abc`, `hcloud://42`, `/subscriptions/...`.
    pub provider_id: Option<String>,
    /// The UUID of its system.
    pub system_uuid: Option<String>,
    /// Its addresses: of IP, or names.
    pub addresses: Vec<String>,
    /// Its host name; its `name` where there is none.
    pub hostname: Option<String>,
}

/// By what a machine was recognised, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The provider's id.
    ProviderId,
    /// The system's UUID.
    SystemUuid,
    /// An address.
    Address,
    /// It is what the same claim was matched to before.
    Earlier,
    /// The host name.
    Hostname,
}

impl Rule {
    const ALL: [Self; 5] = [Self::ProviderId, Self::SystemUuid, Self::Address, Self::Earlier, Self::Hostname];
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// One machine is it.
    Matched {
        /// Which of [`Matches::seen`].
        seen: usize,
        /// By what.
        rule: Rule,
        /// What both have: an id, an address, a name.
        evidence: String,
        /// Which machine it was before, where that is another one.
        replaced: Option<Identity>,
    },
    /// Several may be it, or one that may be others' as well.
    Ambiguous {
        /// Names of them, sorted; no more than eight.
        candidates: Vec<String>,
    },
    /// Nothing that was seen is it.
    Missing,
}

/// What was seen, and what became of each claim.
#[derive(Clone, Debug)]
pub struct Matches<'a> {
    /// The machines that were seen, sorted by name.
    pub seen: Vec<Seen<'a>>,
    /// What became of each claim, in the order of the claims.
    pub found: Vec<Found>,
    /// Which of `seen` no claim has, nor may have.
    pub undeclared: Vec<usize>,
    /// Nodes that were left behind by a machine that has another name now, sorted by name: none of `seen`.
    pub stale: Vec<&'a Node>,
}

/// Matches claims with what Kubernetes and Talos show, given who each claim was before.
///
/// The outcome does not hang on the order of anything but `found`, which is that of `claims`.
pub fn matched<'a, S: BuildHasher>(
    claims: &[Claim],
    nodes: &'a [Node],
    talos: Option<&'a Talos>,
    earlier: &HashMap<String, Identity, S>,
) -> Matches<'a> {
    let (seen, stale) = seen::joined(nodes, talos);
    let uuids = |uuid: Option<&str>| uuid.and_then(keys::uuid);
    let claimed_uuids = claims.iter().map(|claim| uuids(claim.system_uuid.as_deref())).collect::<Vec<_>>();
    let seen_uuids = seen.iter().map(Seen::uuids).collect::<Vec<_>>();
    // Two that have UUIDs, and not the same, are two machines, whatever address or name they share.
    let may_be = |claim: usize, at: usize| {
        let known: &BTreeSet<u128> = &seen_uuids[at];
        claimed_uuids[claim].is_none_or(|uuid| known.is_empty() || known.contains(&uuid))
    };
    let mut links: Vec<Option<(usize, Rule, String)>> = vec![None; claims.len()];
    let mut taken = vec![false; seen.len()];
    let mut candidates: Vec<Vec<usize>> = vec![Vec::new(); claims.len()];
    for rule in Rule::ALL {
        let left =
            claims.iter().map(|claim| claim_keys(claim, rule, earlier.get(&claim.name))).collect::<Vec<_>>();
        let right = seen.iter().map(|seen| seen.keys(rule)).collect::<Vec<_>>();
        let free = |claim: usize, at: usize| {
            links[claim].is_none() && !taken[at] && (rule < Rule::Address || may_be(claim, at))
        };
        let round = pairs::round(&left, &right, free);
        for (claim, at, key) in round.decided {
            links[claim] = Some((at, rule, key.to_string()));
            taken[at] = true;
        }
        for (claim, open) in round.open {
            // Those of the strongest rule that has any.
            if candidates[claim].is_empty() {
                candidates[claim] = open;
            }
        }
    }
    let mut wanted = taken.clone();
    let mut found = Vec::with_capacity(claims.len());
    for ((claim, link), mut open) in claims.iter().zip(links).zip(candidates) {
        found.push(if let Some((at, rule, evidence)) = link {
            let before = earlier.get(&claim.name).filter(|before| before.is_other(&seen[at].identity()));
            Found::Matched { seen: at, rule, evidence, replaced: before.cloned() }
        } else {
            // A stronger rule, or a later one, may have found whose they are.
            open.retain(|at| !taken[*at]);
            for at in &open {
                wanted[*at] = true;
            }
            let candidates = open.iter().map(|at| seen[*at].name().to_owned()).collect::<Vec<_>>();
            if candidates.is_empty() { Found::Missing } else { Found::Ambiguous { candidates } }
        });
    }
    let undeclared = (0..seen.len()).filter(|at| !wanted[*at]).collect();
    Matches { seen, found, undeclared, stale }
}

fn claim_keys(claim: &Claim, rule: Rule, earlier: Option<&Identity>) -> Vec<Key> {
    match rule {
        Rule::ProviderId => claim.provider_id.iter().flat_map(|id| keys::provider_id(id)).collect(),
        Rule::SystemUuid => claim.system_uuid.iter().filter_map(|id| keys::uuid(id)).map(Key::Uuid).collect(),
        Rule::Address => claim.addresses.iter().filter_map(|address| keys::address(address)).collect(),
        Rule::Earlier => earlier.map(Identity::keys).unwrap_or_default(),
        Rule::Hostname => {
            keys::hostname(claim.hostname.as_deref().unwrap_or(&claim.name)).into_iter().collect()
        }
    }
}
