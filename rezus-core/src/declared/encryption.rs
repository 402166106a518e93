//! Whether states in clear are accepted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::TenantName;
use crate::declared::store::TenantRecord;

/// What is asked of a tenant's states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encryption {
    /// They may be in clear.
    #[default]
    Optional,
    /// Each is an envelope of OpenTofu's state encryption; one in clear is refused.
    Required,
}

/// What is asked of whose states.
#[derive(Clone, Debug, Default)]
pub struct EncryptionPolicy {
    /// Of tenants that nothing is set of.
    pub default: Encryption,
    /// Of these whatever is set of them.
    pub fixed: BTreeMap<TenantName, Encryption>,
}

impl Encryption {
    /// Returns its word in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

impl EncryptionPolicy {
    /// Returns what is asked of a tenant's states.
    pub fn of(&self, record: &TenantRecord) -> Encryption {
        self.fixed.get(&record.name).copied().or(record.encryption).unwrap_or(self.default)
    }
}
