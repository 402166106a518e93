//! The plaintext of encrypted states, while it is known: in memory only, and only of the newest version.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use zeroize::Zeroizing;

use crate::base::TenantName;
use crate::declared::document::{self, Document};
use crate::declared::mapping::Mappings;
use crate::declared::store::{Content, VersionMeta};

/// How many bytes are held, over all tenants; what was used longest ago goes first, and can be had again.
const MOST: usize = 64 << 20;

/// The plaintexts that are known. Clones share them. Each is overwritten in memory once nobody reads it any more.
#[derive(Clone, Default)]
pub struct Plaintexts(Arc<Mutex<Held>>);

#[derive(Default)]
struct Held {
    of: HashMap<TenantName, Plaintext>,
    /// Counts uses.
    now: u64,
}

struct Plaintext {
    envelope: VersionMeta,
    content: Content,
    body: Bytes,
    used: u64,
}

/// The text is no state in clear, or not the one that the envelope holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaintextError {
    /// It is none.
    #[error("what was decrypted is no state")]
    NoState,
    /// It is of another version.
    #[error("what was decrypted is of another version")]
    OtherVersion,
}

impl Plaintexts {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what an encrypted version holds. Reads all of it: call it where blocking is allowed.
    ///
    /// # Errors
    ///
    /// [`PlaintextError`].
    pub fn put(
        &self,
        tenant: &TenantName,
        envelope: VersionMeta,
        body: Zeroizing<Vec<u8>>,
        mappings: &Mappings,
    ) -> Result<(), PlaintextError> {
        let rules = |kind: &str| mappings.secret_rules(kind);
        let Ok(Document::Plain(state)) = document::read_with(&body, &rules) else {
            return Err(PlaintextError::NoState);
        };
        // OpenTofu checks the envelope's own copies against these; where it has none, nothing can be compared.
        if envelope.serial.is_some_and(|serial| serial != state.serial) {
            return Err(PlaintextError::OtherVersion);
        }
        let content = Content::Plain {
            objects: u64::try_from(state.rows.len()).unwrap_or(u64::MAX),
            empty: state.is_empty(),
        };
        let mut held = self.held();
        held.now += 1;
        let used = held.now;
        let body = Bytes::from_owner(body);
        held.of.insert(tenant.clone(), Plaintext { envelope, content, body, used });
        while held.of.len() > 1 && held.of.values().map(|it| it.body.len()).sum::<usize>() > MOST {
            let oldest = held.of.iter().min_by_key(|(_, it)| it.used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { break };
            held.of.remove(&oldest);
        }
        Ok(())
    }

    /// Returns an encrypted version as it is in clear, if that is known. One of an earlier version is forgotten.
    pub(super) fn version(&self, tenant: &TenantName, envelope: &VersionMeta) -> Option<VersionMeta> {
        let mut held = self.held();
        held.now += 1;
        let now = held.now;
        let known = held.of.get_mut(tenant)?;
        if !known.envelope.is_same_write(envelope) {
            held.of.remove(tenant);
            return None;
        }
        known.used = now;
        Some(VersionMeta {
            content: known.content,
            size_bytes: u64::try_from(known.body.len()).unwrap_or(u64::MAX),
            ..envelope.clone()
        })
    }

    /// Returns the plaintext of a version, if it is known.
    pub(super) fn body(&self, tenant: &TenantName, version: &VersionMeta) -> Option<Bytes> {
        let held = self.held();
        let known = held.of.get(tenant).filter(|known| known.envelope.is_same_write(version));
        known.map(|known| known.body.clone())
    }

    /// Forgets a tenant's.
    pub fn forget(&self, tenant: &TenantName) {
        self.held().of.remove(tenant);
    }
}

/// How many there are.
impl fmt::Debug for Plaintexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plaintexts({})", self.held().of.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Timestamp;
    use crate::declared::{Fingerprint, Serial, VersionNumber};

    fn tenant(name: &str) -> TenantName {
        TenantName::parse(name).unwrap()
    }

    fn envelope(version: u64, serial: u64) -> VersionMeta {
        VersionMeta {
            version: VersionNumber::new(version).unwrap(),
            serial: Some(Serial::new(serial)),
            lineage: None,
            writer: None,
            fingerprint: Fingerprint::of(format!("envelope {version}").as_bytes()),
            size_bytes: 10,
            content: Content::Encrypted,
            written_at: Timestamp::from_millis(0),
            written_by: "tofu".to_owned(),
            lock_id: None,
            lock_operation: None,
            forced: false,
            unlocked: false,
            intermediate: false,
            pinned: false,
            rollback_of: None,
        }
    }

    fn state(serial: u64, padding: usize) -> Zeroizing<Vec<u8>> {
        let text = format!(
            r#"{{"version":4,"terraform_version":"1.12.6","serial":{serial},"lineage":"l","outputs":{{"o":{{"value":"{}","type":"string"}}}},"resources":[]}}"#,
            "x".repeat(padding)
        );
        Zeroizing::new(text.into_bytes())
    }

    #[test]
    fn a_plaintext_is_read_in_place_of_its_own_version_alone() {
        let (plaintexts, mappings, name) = (Plaintexts::default(), Mappings::built_in(), tenant("a"));
        let first = envelope(1, 3);
        assert_eq!(plaintexts.version(&name, &first), None);
        plaintexts.put(&name, first.clone(), state(3, 0), &mappings).unwrap();
        let plain = plaintexts.version(&name, &first).unwrap();
        assert_eq!(plain.content, Content::Plain { objects: 0, empty: false });
        assert_eq!(plaintexts.body(&name, &first).unwrap().len(), state(3, 0).len());
        assert_eq!(plaintexts.body(&tenant("b"), &first), None);
        // A newer version is another one, and the older plaintext is of no use any more.
        assert_eq!(plaintexts.version(&name, &envelope(2, 4)), None);
        assert_eq!(plaintexts.body(&name, &first), None);
    }

    #[test]
    fn what_is_no_state_or_of_another_version_is_not_taken() {
        let (plaintexts, mappings, name) = (Plaintexts::default(), Mappings::built_in(), tenant("a"));
        let other = plaintexts.put(&name, envelope(1, 3), state(4, 0), &mappings);
        assert_eq!(other, Err(PlaintextError::OtherVersion));
        let none = plaintexts.put(&name, envelope(1, 3), Zeroizing::new(b"secret".to_vec()), &mappings);
        assert_eq!(none, Err(PlaintextError::NoState));
        assert_eq!(format!("{plaintexts:?}"), "Plaintexts(0)");
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let (plaintexts, mappings) = (Plaintexts::default(), Mappings::built_in());
        for name in ["a", "b", "c"] {
            plaintexts.put(&tenant(name), envelope(1, 3), state(3, MOST / 3), &mappings).unwrap();
            plaintexts.version(&tenant("a"), &envelope(1, 3)).unwrap();
        }
        assert!(plaintexts.body(&tenant("b"), &envelope(1, 3)).is_none());
        assert!(plaintexts.body(&tenant("a"), &envelope(1, 3)).is_some());
        assert!(plaintexts.body(&tenant("c"), &envelope(1, 3)).is_some());
    }
}
