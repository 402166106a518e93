//! Why a document is refused.

use std::fmt;

use crate::declared::ResourceAddress;
use crate::declared::json::JsonError;

use super::naming;

/// Why a document is refused. No message repeats content: only names that the tools define, addresses, places and
/// version numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Zero bytes.
    #[error("the document is empty: zero bytes mean \"no state\" and replace none")]
    Empty,
    /// A UTF-8 byte order mark, which the tools do not read either.
    #[error("the document begins with a byte order mark: save it without one")]
    ByteOrderMark,
    /// Not text.
    #[error("the document is no JSON: byte {offset} is not UTF-8")]
    NotUtf8 {
        /// Bytes before the fault.
        offset: usize,
    },
    /// Not JSON, cut short, or followed by something else.
    #[error("the document is no well-formed JSON: {fault} at byte {offset}")]
    Syntax {
        /// Bytes before the fault.
        offset: usize,
        /// What is wrong there.
        fault: &'static str,
    },
    /// A state of a format before version 4.
    #[error(
        "the document is a state of format version {version}{}: have it rewritten as version 4 by one apply with \
         Terraform >= 0.12 or OpenTofu <= 1.12",
        written_by(writer.as_deref())
    )]
    LegacyVersion {
        /// Its format: 1, 2 or 3.
        version: u64,
        /// The version of the tool that wrote it, if it says so.
        writer: Option<String>,
    },
    /// A state of a format after version 4.
    #[error(
        "the document is a state of format version {version}{}: this release reads version 4",
        written_by(writer.as_deref())
    )]
    NewerVersion {
        /// Its format: 5 or more.
        version: u64,
        /// The version of the tool that wrote it, if it says so.
        writer: Option<String>,
    },
    /// JSON without the member that every state has.
    #[error("the document is no state: it has no \"version\" member")]
    NoVersion,
    /// A format version that no state has.
    #[error("the document is no state that can be read: its \"version\" is not the number 4")]
    StrangeVersion,
    /// What `show -json` prints of a plan or a state.
    #[error(
        "the document is what \"show -json\" prints of a plan or a state, not a state: \"state pull\" gives the state"
    )]
    ShownPlan,
    /// `.terraform.tfstate.lock.info`, or the body of a LOCK.
    #[error("the document is a lock info, not a state: it has no \"version\" member")]
    LockInfo,
    /// `.terraform/terraform.tfstate`.
    #[error("the document is .terraform/terraform.tfstate, the cache of the backend settings, not a state")]
    BackendCache,
    /// JSON, but not even an object.
    #[error("the document is no state: it is JSON, but not an object")]
    NotAState,
    /// A state of version 4 in which a member is not what the tools write.
    #[error("the state cannot be read: {}{place} must be {expected}", of(address.as_deref()))]
    Unreadable {
        /// The address of the resource it is of, as far as its names can be read; without control characters, and cut
        /// where it is long.
        address: Option<String>,
        /// The member's JSON path.
        place: String,
        /// What the tools write there.
        expected: &'static str,
        /// Which part of the state that is.
        at: Place,
    },
    /// The lineage is longer than any that a tool makes.
    #[error("the state cannot be kept: its \"lineage\" has {length} bytes, and 1024 are the most")]
    LongLineage {
        /// Its length in bytes.
        length: usize,
    },
    /// The same object twice.
    #[error("the state cannot be read: it holds {address}{} twice", deposed_key(deposed.as_deref()))]
    Duplicate {
        /// The instance.
        address: ResourceAddress,
        /// The deposed key, if it is an old generation.
        deposed: Option<String>,
    },
}

impl DocumentError {
    /// Says whose member it is, where the state's own names tell.
    pub(super) fn named(self, text: &str) -> Self {
        match self {
            Self::Unreadable { place, expected, at, .. } => {
                let address = match at {
                    Place::Top | Place::Output => None,
                    Place::Block(block) => naming::address_of(text, block, None),
                    Place::Instance(block, instance) => naming::address_of(text, block, Some(instance)),
                };
                Self::Unreadable { address, place, expected, at }
            }
            other => other,
        }
    }

    /// Tells whether the bytes themselves are at fault (HTTP 400), not what they say (HTTP 422).
    pub fn is_malformed(&self) -> bool {
        match self {
            Self::Empty | Self::ByteOrderMark | Self::NotUtf8 { .. } | Self::Syntax { .. } => true,
            Self::LegacyVersion { .. }
            | Self::NewerVersion { .. }
            | Self::NoVersion
            | Self::StrangeVersion
            | Self::ShownPlan
            | Self::LockInfo
            | Self::BackendCache
            | Self::NotAState
            | Self::Unreadable { .. }
            | Self::LongLineage { .. }
            | Self::Duplicate { .. } => false,
        }
    }
}

impl From<JsonError> for DocumentError {
    fn from(error: JsonError) -> Self {
        Self::Syntax { offset: error.offset, fault: error.fault }
    }
}

fn of(address: Option<&str>) -> String {
    address.map(|address| format!("{address}: ")).unwrap_or_default()
}

fn written_by(writer: Option<&str>) -> String {
    writer.map(|version| format!(" (written by version {version} of the tool)")).unwrap_or_default()
}

fn deposed_key(deposed: Option<&str>) -> String {
    deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default()
}

/// Where in a state a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The top level.
    Top,
    /// An output. Which one is not said: names of outputs are the user's.
    Output,
    /// A block of `resources`.
    Block(u32),
    /// An instance object.
    Instance(u32, u32),
}

impl Place {
    /// Makes the error for a member that is not what it must be; an empty one stands for the place itself.
    pub(in crate::declared) fn wrong(self, member: &str, expected: &'static str) -> DocumentError {
        let dot = if member.is_empty() { "" } else { "." };
        DocumentError::Unreadable { address: None, at: self, place: format!("{self}{dot}{member}"), expected }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => f.write_str("$"),
            Self::Output => f.write_str("$.outputs.*"),
            Self::Block(block) => write!(f, "$.resources[{block}]"),
            Self::Instance(block, instance) => write!(f, "$.resources[{block}].instances[{instance}]"),
        }
    }
}
