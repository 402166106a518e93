//! Accepted states.

use serde::{Deserialize, Serialize};

/// One accepted state of a tenant: what it says of itself, and how it was written. Its content is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StateVersionSpec {
    /// The server's own count of the tenant's accepted states: 1, 2, 3 and so on.
    pub version: u64,
    /// The serial, as the state says of itself; absent in some encrypted states and of a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<u64>,
    /// The lineage, as the state says of itself; absent in some encrypted states and of a deletion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    /// The version of the tofu or terraform that wrote the state, as the state says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer: Option<String>,
    /// SHA-256 of the state's bytes, as 64 lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The state's length in bytes, as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// When the server accepted the state, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("format" = "date-time")))]
    pub written_at: Option<String>,
    /// Who wrote it, as the server knows the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<String>,
    /// The operation of the lock that it was written under, as the writer named it; absent without a lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_operation: Option<String>,
    /// Whether it broke the rules of serial and lineage, as `state push -force` may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<bool>,
    /// Whether it was written without holding the lock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlocked: Option<bool>,
    /// Whether it is a snapshot in the middle of an apply: the same operation wrote a later version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intermediate: Option<bool>,
    /// The version whose content a rollback brought back; absent of any other write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<u64>,
    /// Whether the state is encrypted by its writer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// The Run that wrote it; absent of a write from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}
