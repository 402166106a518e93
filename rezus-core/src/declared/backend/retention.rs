//! Which versions a retention policy lets go.

use std::time::Duration;

use crate::base::Timestamp;
use crate::declared::VersionNumber;
use crate::declared::store::VersionMeta;

/// How long versions are kept. A version goes when no clause keeps it; the newest and pinned ones never do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How many of the newest versions are kept, snapshots of operations under way not counted.
    pub keep_last: usize,
    /// For how long every version is kept.
    pub keep_for: Duration,
    /// For how long snapshots of operations under way are kept: neither clause above is for them.
    pub keep_intermediate_for: Duration,
}

impl Retention {
    /// Returns the versions that may go at `now`, oldest first. `versions` are all of one tenant, oldest first.
    pub fn expired(&self, versions: &[VersionMeta], now: Timestamp) -> Vec<VersionNumber> {
        let finals = versions.iter().filter(|version| !version.intermediate).count();
        let mut finals_after = finals;
        let mut expired = Vec::new();
        for (place, version) in versions.iter().enumerate() {
            let age = now.since(version.written_at);
            let goes = if version.intermediate {
                age > self.keep_intermediate_for
            } else {
                finals_after -= 1;
                finals_after >= self.keep_last && age > self.keep_for
            };
            let is_newest = place + 1 == versions.len();
            if goes && !version.pinned && !is_newest {
                expired.push(version.version);
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declared::Fingerprint;
    use crate::declared::store::Content;

    const DAY: Duration = Duration::from_hours(24);

    /// One version a day, the newest written now; `i` marks an intermediate, `p` a pinned one.
    fn history(kinds: &str) -> (Vec<VersionMeta>, Timestamp) {
        let now = Timestamp::from_millis(1_000 * 86_400_000);
        let count = u32::try_from(kinds.len()).unwrap();
        let versions = (0..count).zip(kinds.chars()).map(|(place, kind)| VersionMeta {
            version: VersionNumber::new(u64::from(place) + 1).unwrap(),
            serial: None,
            lineage: None,
            writer: None,
            fingerprint: Fingerprint::of(b""),
            size_bytes: 0,
            content: Content::Encrypted,
            written_at: now.minus(DAY * (count - 1 - place)),
            written_by: String::new(),
            lock_id: None,
            lock_operation: None,
            forced: false,
            unlocked: false,
            intermediate: kind == 'i',
            pinned: kind == 'p',
            rollback_of: None,
        });
        (versions.collect(), now)
    }

    fn check(kinds: &str, policy: Retention, expired: &[u64]) {
        let (versions, now) = history(kinds);
        let found: Vec<u64> = policy.expired(&versions, now).into_iter().map(VersionNumber::get).collect();
        assert_eq!(found, expired, "{kinds}");
    }

    #[test]
    fn a_version_goes_when_it_is_neither_young_nor_among_the_last() {
        let policy = Retention { keep_last: 2, keep_for: DAY * 3, keep_intermediate_for: DAY };
        check("......", policy, &[1, 2]);
        check(".p....", policy, &[1]);
        let by_count = Retention { keep_last: 3, keep_for: Duration::ZERO, ..policy };
        check("......", by_count, &[1, 2, 3]);
        check(".", Retention { keep_last: 0, ..by_count }, &[]);
    }

    #[test]
    fn snapshots_go_sooner_and_do_not_count() {
        let policy = Retention { keep_last: 2, keep_for: Duration::ZERO, keep_intermediate_for: DAY * 2 };
        check("..ii.i", policy, &[1, 3]);
        check("iiiii", Retention { keep_intermediate_for: Duration::ZERO, ..policy }, &[1, 2, 3, 4]);
    }
}
