//! An operator's stop of a tenant.

use crate::base::Timestamp;
use crate::declared::{LockId, LockInfo};

/// An operator's stop: no run begins until the one who set it, or another operator, takes it away. No run ever does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub at: Timestamp,
    /// Whether locks and writes of clients are refused as well.
    pub clients: bool,
}

impl Freeze {
    /// Returns it as the lock that clients are shown in its place. Its ID releases nothing, and is no tenant's name.
    ///
    /// The ID says who and why: Terraform shows nothing else of a lock that is in the way.
    pub fn as_lock(&self) -> LockInfo {
        LockInfo {
            id: LockId::saying(&format!("frozen by {}: {}", self.by, self.reason)),
            operation: "freeze".to_owned(),
            info: self.reason.clone(),
            who: self.by.clone(),
            version: String::new(),
            created: self.at.to_string(),
            path: String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freeze_can_be_shown_whatever_is_said_of_it() {
        for reason in ["", "audit", "a\nb\u{0}", &"\u{e4}".repeat(900)] {
            let (by, at) = ("ops".to_owned(), Timestamp::from_millis(0));
            let lock = Freeze { by, reason: reason.to_owned(), at, clients: true }.as_lock();
            assert_eq!(LockId::parse(lock.id.as_str()).as_ref(), Ok(&lock.id), "{reason:?}");
            assert!(lock.id.as_str().starts_with("frozen by ops: "));
        }
    }
}
