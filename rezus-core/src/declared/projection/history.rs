//! What is remembered of an object from version to version: who it is, since when, and when its spec last changed.

use uuid::Uuid;

use super::ResourceKind;
use crate::base::{TenantName, Timestamp};
use crate::declared::{Lineage, VersionNumber};

/// The namespace of object UIDs (RFC 9562, section 5.5): a random UUID, made once. Never to be changed.
const NAMESPACE: Uuid = Uuid::from_u128(0x6b1e_9c52_0f3d_4a87_9d24_c1f0_7e58_b3a6);

/// What an object is, whatever its spec says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Whose.
    pub tenant: &'a TenantName,
    /// Of which line of states.
    pub lineage: &'a Lineage,
    /// Its kind.
    pub kind: ResourceKind,
    /// What tells it from others of its kind: [`Machine::identity`](crate::declared::resource::Machine::identity), a
    /// group's object name, nothing for the cluster.
    pub identity: &'a str,
}

/// An entry of the table of object history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The object's UID.
    pub uid: String,
    /// The version in which it appeared, or appeared again.
    pub first_version: VersionNumber,
    /// The version of the last change of its spec: its `generation`.
    pub changed_version: VersionNumber,
    /// The [digest](super::spec_digest) of its spec in that version.
    pub digest: [u8; 32],
}

/// An object over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Its identity and the versions that made it what it is.
    pub history: History,
    /// When the version was written in which it came.
    pub created_at: Timestamp,
    /// When the version of its spec's last change was written.
    pub changed_at: Timestamp,
}

impl Lifetime {
    /// Makes of a lifetime as of version `number` one that began when the object that is there now came, which was in
    /// that version or before.
    pub(in crate::declared) fn stands_in(&mut self, now: Self, number: VersionNumber) {
        if now.history.changed_version <= number {
            *self = now;
        } else {
            self.created_at = now.created_at;
            self.history.uid = now.history.uid;
            self.history.first_version = now.history.first_version;
        }
    }
}

/// Returns the UID of an object: a UUID of version 5, the same for the same object and no other.
pub fn uid(
    tenant: &TenantName,
    lineage: &Lineage,
    kind: ResourceKind,
    identity: &str,
    first_version: VersionNumber,
) -> String {
    let parts = [tenant.as_str(), lineage.as_str(), kind.as_str(), identity];
    let mut name = String::new();
    for part in parts {
        name.push_str(&part.len().to_string());
        name.push(':');
        name.push_str(part);
    }
    name.push_str(&first_version.to_string());
    Uuid::new_v5(&NAMESPACE, name.as_bytes()).hyphenated().to_string()
}

impl History {
    /// Returns the entry of an object in a version that has it.
    ///
    /// `previous` is the entry under the same object name as of the version before, `None` if that had no such object:
    /// what went and came back is another object. So is what took over the name, or came with another lineage.
    #[must_use]
    pub fn next(
        previous: Option<&Self>,
        subject: Subject<'_>,
        version: VersionNumber,
        digest: [u8; 32],
    ) -> Self {
        let Subject { tenant, lineage, kind, identity } = subject;
        let is_same = |entry: &&Self| entry.uid == uid(tenant, lineage, kind, identity, entry.first_version);
        match previous.filter(is_same) {
            Some(entry) if entry.digest == digest => entry.clone(),
            Some(entry) => {
                Self { changed_version: version.max(entry.changed_version), digest, ..entry.clone() }
            }
            None => Self {
                uid: uid(tenant, lineage, kind, identity, version),
                first_version: version,
                changed_version: version,
                digest,
            },
        }
    }

    /// Returns the object's `generation`.
    pub const fn generation(&self) -> u64 {
        self.changed_version.get()
    }
}
