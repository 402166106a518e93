//! What the status plane makes of what was read.

mod exposition;
mod pods;
mod quantity;
