//! The Talos scraper against fake clusters.

mod failures;
mod fixture;
mod laws;
mod reader;
mod turns;
