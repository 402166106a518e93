//! Names and time: what both planes share, and nothing else.

mod name;
mod time;

pub use name::{NameError, TenantName};
pub use time::{Clock, Timestamp, TimestampError};
