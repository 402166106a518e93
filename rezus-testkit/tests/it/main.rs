//! The kit's own tests: the fakes keep the laws, fixtures and recordings are whole, generated states are what they say.

mod executor;
mod fakes;
mod files;
mod laws;
mod time_series;
mod walls;
