//! The derived index: one row for each instance object of a state, so that one is read without the rest.

use std::fmt;
use std::ops::Range;

use crate::declared::{ResourceAddress, VersionNumber};

/// The format of the rows. Raised with every change of what a row means, so that an index built by another release is
/// rebuilt and never believed.
pub const INDEX_FORMAT: u32 = 1;

/// What an index was built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexHead {
    /// The version of the state.
    pub version: VersionNumber,
    /// SHA-256 of the state: a tenant that was removed and created again counts its versions anew.
    pub sha256: [u8; 32],
    /// [`INDEX_FORMAT`] of the release that built it.
    pub format: u32,
    /// How many rows it has.
    pub rows: u64,
    /// The [digest](crate::declared::mapping::Mappings::secrets_digest) of the rules that told what must not be shown.
    pub secret_rules: [u8; 32],
}

/// Whether a resource is managed or only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A resource that the configuration manages.
    Managed,
    /// A data source.
    Data,
}

/// Where one instance object stands in a state's bytes. No attribute value is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    /// The instance's address, spelt as OpenTofu spells it.
    pub address: ResourceAddress,
    /// The key of an old generation that waits to be destroyed; `None` for the current object.
    pub deposed: Option<String>,
    /// The address of the module instance; empty for the root.
    pub module: String,
    /// Managed or data.
    pub mode: Mode,
    /// The resource type, such as `hcloud_server`.
    pub resource_type: String,
    /// The resource's name in the configuration.
    pub name: String,
    /// The instance key.
    pub key: Option<InstanceKey>,
    /// The provider's configuration address as the state spells it; empty if neither block nor instance has one.
    pub provider: String,
    /// Whether the object is to be replaced.
    pub tainted: bool,
    /// Position in `resources[]`, then in `instances[]`: the JSON path.
    pub position: (u32, u32),
    /// The object's bytes in the body: from `{` to behind `}`.
    pub span: Range<u64>,
    /// CRC-32 of those bytes: tells a row that does not fit the state.
    pub checksum: u32,
    /// JSON pointers (RFC 6901) into the object that must not be shown; an empty pointer hides all of it.
    pub masked: Vec<String>,
}

impl IndexRow {
    /// Returns the JSON path (RFC 9535) of the object in the state.
    pub fn json_path(&self) -> String {
        json_path(self.position)
    }
}

/// Returns the JSON path (RFC 9535) of the object at a position in a state.
pub(in crate::declared) fn json_path((block, instance): (u32, u32)) -> String {
    format!("$.resources[{block}].instances[{instance}]")
}

/// The key that tells the instances of one resource apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstanceKey {
    /// Of `count`.
    Number(i64),
    /// Of `for_each`: the text itself, not escaped.
    Text(String),
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed",
            Self::Data => "data",
        })
    }
}
