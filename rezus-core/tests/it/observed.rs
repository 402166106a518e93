//! What the status plane makes of what was read.

mod exposition;
mod matching;
mod node_id;
mod pods;
mod quantity;
