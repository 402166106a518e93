//! The spec plane: states and what can be read from their bytes, versions, locks, the derived index, and the rules of
//! the backend that keeps them.

mod address;
pub mod backend;
pub mod compute;
mod cores;
pub mod credentials;
pub mod diff;
pub mod document;
mod encryption;
mod fingerprint;
mod freeze;
pub mod index;
pub mod json;
mod lock;
pub mod mapping;
pub mod masked;
pub mod numbering;
pub mod plaintext;
pub mod projection;
pub mod projector;
pub mod reader;
pub mod resource;
mod revision;
pub mod secrets;
pub mod store;

pub use address::{AddressError, ResourceAddress};
pub use encryption::{Encryption, EncryptionPolicy};
pub use fingerprint::Fingerprint;
pub use freeze::Freeze;
pub use lock::{LockError, LockId, LockIdError, LockInfo};
pub use revision::{Lineage, Serial, SerialError, VersionNumber};
