//! Strategies of whole states, each with what a correct reader finds in it, and large states for benchmarks.
//!
//! [`states()`] has all that the format allows; [`machines`] has states that declare machines.
//!
//! ```
//! use proptest::prelude::*;
//! use rezus_testkit::strategy::states;
//!
//! proptest!(ProptestConfig::with_cases(8), |(state in states())| {
//!     let text = std::str::from_utf8(&state.body)?;
//!     prop_assert!(text.contains(&state.model.serial.to_string()));
//! });
//! ```

mod address;
mod json;
mod large;
pub mod machines;
mod model;
mod noise;
mod plan;
mod render;
mod terraform_data;

pub use address::keys;
pub use large::{large_state, large_state_with_secrets};
pub use model::{Key, Mode, ObjectModel, OutputModel, StateModel};
pub use render::GeneratedState;
pub use terraform_data::terraform_data_state;

use proptest::strategy::Strategy;

/// Returns a strategy of whole states of format 4: from empty ones to some dozens of instances, with all that the format
/// allows and writers have been seen to write.
///
/// Modules, `count`, `for_each` with hostile keys, blocks that belong together, old generations, tainted objects, data
/// sources, marks of every form (also through dynamically typed attributes), sensitive outputs, copies of secrets in
/// other strings, numbers of any size, providers on block or instance, attributes absent, null or flat, unknown members,
/// members in any order, and any layout of the text.
pub fn states() -> impl Strategy<Value = GeneratedState> {
    plan::state().prop_map(|plan| render::render(&plan))
}
