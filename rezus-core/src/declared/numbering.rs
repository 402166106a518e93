//! The port behind resource versions: a mark that only rises, kept over restarts.

use std::fmt;

use async_trait::async_trait;

use crate::declared::store::StoreError;

/// Where the high-water mark of resource versions is kept: whoever begins above it never repeats a number, whatever the
/// clock says.
///
/// *Contract.* [`VersionMark::raise`] is durable before it returns; of several calls at a time each returns another's
/// mark or the one before all.
///
/// The suite: `rezus_testkit::version_mark_contract!`.
#[async_trait]
pub trait VersionMark: fmt::Debug + Send + Sync + 'static {
    /// Raises the mark to `to`, unless it is there or beyond, and returns it as it was before: 0 at first.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when it cannot be read or written.
    async fn raise(&self, to: u64) -> Result<u64, StoreError>;
}
