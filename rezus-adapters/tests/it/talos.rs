//! The Talos scraper against fake clusters.

mod failures;
mod fixture;
mod reader;
mod turns;
