//! The status plane: what was seen, by whom, and how old the news is. Nothing here knows a state.

mod observation;

pub use observation::{Freshness, Observation};
