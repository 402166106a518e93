//! Where long computing is done: reading a whole state takes a core for as long as the state is large.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;

/// The port behind which long computing is done, away from threads that serve others.
///
/// *Contract.* `run` returns after `work` has run to its end, or [`Busy`] without having run it. A dropped `run` leaves
/// work that has begun to finish. `bytes` says how much memory the work holds, so that an implementor can keep the sum
/// within bounds.
#[async_trait]
pub trait Compute: fmt::Debug + Send + Sync + 'static {
    /// Runs work over `bytes` bytes.
    ///
    /// # Errors
    ///
    /// [`Busy`] when there is no room for it in time.
    async fn run(&self, bytes: u64, work: Box<dyn FnOnce() + Send>) -> Result<(), Busy>;
}

/// There was no room for the work in time. Nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too much is being computed: try again")]
pub struct Busy;

/// Computes on the spot: for programs without a runtime, and for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

#[async_trait]
impl Compute for Inline {
    async fn run(&self, _bytes: u64, work: Box<dyn FnOnce() + Send>) -> Result<(), Busy> {
        work();
        Ok(())
    }
}

/// Runs work behind the port and returns what it gave.
pub(in crate::declared) async fn compute<T: Send + 'static>(
    port: &dyn Compute,
    bytes: u64,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Busy> {
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let work = move || {
        let value = work();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    };
    port.run(bytes, Box::new(work)).await?;
    let value = result.lock().unwrap_or_else(PoisonError::into_inner).take();
    // A port that drops the work without a word breaks its contract; its caller is told to come back.
    value.ok_or(Busy)
}
